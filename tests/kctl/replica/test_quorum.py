"""What the metadata log of a KRaft cluster says about partitions, in the place of znodes."""

from __future__ import annotations

from pathlib import Path

from kctl.errors import KctlError
from kctl.evidence.discover import discover
from kctl.model import TopicPartition
from kctl.replica.copies.moments import Znodes, clusters_of
from tests.conftest import recording


def clusters(folder: Path) -> dict[str | None, Znodes]:
    reported: list[KctlError] = []
    found = clusters_of(discover([str(folder)]), reported.append)
    assert reported == []
    return found


def test_a_metadata_log_is_read_as_znodes_are() -> None:
    (found,) = clusters(recording("segments/4.3.0-kraft") / "data-killed").values()
    state = found.state(TopicPartition("payments", 2))
    assert state is not None
    assert (state.leader, state.leader_epoch, state.isr, state.file) == (1, 0, (1,), "__cluster_metadata-0")
    assert found.live == {1}
    assert found.is_compacted("profile.changes")
    assert found.is_compacted("payments") is None
    assert found.topic_ids["payments"] == "gTVYqYJISGWkuT7QPw3N7w"
    assert "short-lived" not in found.created  # it was deleted
    assert found.replicas[TopicPartition("payments", 0)] == (1,)


def test_who_is_eligible_besides_the_isr_is_known() -> None:
    (found,) = clusters(recording("drills/eligible-4.3-kraft") / "moments" / "alone").values()
    assert found.decisions[TopicPartition("el", 0)][-1].eligible == (2,)
    assert found.minimum_isr("el") == 2


def test_every_decision_that_the_log_still_has_is_known() -> None:
    (found,) = clusters(recording("segments/3.9.1-kraft")).values()
    decided = found.decisions[TopicPartition("txn-mix", 0)]
    assert [(one.leader, one.leader_epoch, one.isr, one.how) for one in decided] == [
        (1, 0, (1,), "creation"),
        (1, 0, (1,), "creation"),  # the broker said in which directory it keeps the replica
        (-1, 1, (1,), "none"),
        (1, 2, (1,), "failure"),
        (-1, 3, (1,), "none"),
    ]
    assert found.state(TopicPartition("txn-mix", 0)) is None  # nobody leads
    assert found.live == set()
