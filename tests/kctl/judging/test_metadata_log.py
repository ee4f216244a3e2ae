"""The metadata log of a KRaft cluster is no partition whose records an ISR commits."""

from tests.conftest import recording, rows


def test_a_healthy_kraft_cluster_is_judged_without_its_metadata_log() -> None:
    ran = rows("replica", "loss", recording("segments/3.9.1-kraft") / "data-clean")
    judged = {row["topic"]: row["verdict"] for row in ran.of("judgement")}
    assert judged and "__cluster_metadata" not in judged


def test_a_metadata_log_that_is_named_is_not_called_whole() -> None:
    ran = rows(
        "replica", "loss", recording("segments/3.9.1-kraft") / "data-clean", "--topic", "__cluster_metadata"
    )
    assert [row["verdict"] for row in ran.of("judgement")] == ["could_not_judge"]
    assert ran.status == 3
