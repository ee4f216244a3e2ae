"""Which command fetches what is missing: by whether the cluster has ZooKeeper, and whether it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.evidence.discover import discover
from kctl.judging.fetching import assignment, broker_logs, fitting, other_replicas
from kctl.judging.judgement import Judgement, JudgementSubject, Question, Verdict
from kctl.model import TopicPartition

TP = TopicPartition("orders", 0)


def commands(tmp_path: Path, version: int, *, is_live: bool = False) -> list[tuple[str, str]]:
    folder = tmp_path / "broker-1" / "data"
    folder.mkdir(parents=True)
    key = "node.id" if version else "broker.id"
    (folder / "meta.properties").write_text(
        f"version={version}\n{key}=1\ncluster.id=p0_xtebuSt2Ap8p60r4wig\n"
    )
    judgement = Judgement(
        Question.LOSS,
        Verdict.COULD_NOT_JUDGE,
        JudgementSubject(*TP),
        "why",
        (other_replicas(TP), assignment("who was in the ISR"), broker_logs("server.log of broker 2", 2)),
    )
    fitted = fitting(discover([tmp_path]), is_live=is_live)(judgement)
    assert (fitted.verdict, fitted.reason, len(fitted.missing)) == (judgement.verdict, "why", 3)
    return [(missing.what, missing.get) for missing in fitted.missing]


def test_a_node_without_zookeeper_has_no_znodes_to_export(tmp_path: Path) -> None:
    assert commands(tmp_path, 1)[1] == (
        "metadata log: who was in the ISR",
        "kctl collect --to more ssh://CONTROLLER/METADATA_LOG_DIR",
    )


def test_where_it_may_be_either_both_are_said(tmp_path: Path) -> None:
    what, get = commands(tmp_path, 0)[1]
    assert (
        what == "znodes or metadata log: who was in the ISR"
        and "znode export" in get
        and "kctl collect" in get
    )


@pytest.mark.parametrize("version", [0, 1])
def test_a_running_cluster_is_asked_and_not_copied(tmp_path: Path, version: int) -> None:
    gets = [get for _, get in commands(tmp_path, version, is_live=True)]
    assert gets == [
        "kctl replica verify orders --bootstrap-server HOSTS",
        "kctl topic describe orders --bootstrap-server HOSTS",
        "kctl collect --to more ssh://BROKER2/KAFKA_LOGS_DIR",
    ]
