"""Two installations in one tree whose brokers have the same ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.history.timeline import timeline
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import Sources, find_sources
from kctl.model import TopicPartition

SERVER = "kafka.server.KafkaServer"
IDS = {"a": "aaaaaaaaaaaaaaaaaaaaaa", "b": "bbbbbbbbbbbbbbbbbbbbbb"}


def line(minute: int, text: str, logger: str = SERVER, millis: int = 0) -> str:
    return f"[2026-11-21 13:{minute:02d}:00,{millis:03d}] INFO {text} ({logger})\n"


def server_log(*, first: int, cluster_id: str = "", millis: int = 0) -> str:
    """A broker that starts, works and runs on."""
    named = line(first, f"Cluster ID = {cluster_id}", millis=millis) if cluster_id else ""
    return (
        line(first, "starting", millis=millis)
        + named
        + line(first + 1, "[KafkaServer id=1] started", millis=millis)
        + line(first + 9, "[GroupCoordinator 1]: Starting up.", "kafka.coordinator.GroupCoordinator", millis)
    )


def tree(folder: Path, **logs: str) -> Sources:
    for name, text in logs.items():
        path = folder / f"cluster-{name}" / "broker-1" / "logs" / "server.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return find_sources([str(folder)])


def codes(found: Sources) -> set[str]:
    return {finding.code for finding in found.findings}


@pytest.mark.parametrize("are_named", [True, False], ids=["other ids", "other lines at the same time"])
def test_brokers_of_one_id_in_two_clusters_are_apart(tmp_path: Path, are_named: bool) -> None:
    ids = IDS if are_named else dict.fromkeys(IDS, "")
    found = tree(
        tmp_path,
        a=server_log(first=0, cluster_id=ids["a"]),
        b=server_log(first=5, cluster_id=ids["b"], millis=7),
    )
    assert [(source.broker_id, len(source.files)) for source in found.sources] == [(1, 1), (1, 1)]
    assert codes(found) == {"log-of-another-installation"}
    states = timeline(prepare(found).events()).brokers
    assert [(state.cluster, state.state) for state in states] == [(1, "starting"), (1, "up"), (2, "starting"), (2, "up")]  # fmt: skip


def test_the_end_of_one_cluster_is_not_the_start_of_another_one_beside_it(tmp_path: Path) -> None:
    text = "[Controller id=1 epoch=1] Changed partition t-0 from {} to OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch={}, isr=List(1), zkVersion=0)"
    for name, first in (("a", 0), ("b", 5)):
        folder = tmp_path / f"cluster-{name}" / "broker-1" / "logs"
        folder.mkdir(parents=True)
        (folder / "server.log").write_text(server_log(first=first, cluster_id=IDS[name]))
        (folder / "state-change.log").write_text(
            line(first + 2, text.format("NewPartition", 0), "state.change.logger")
            + line(first + 20, text.format("OnlinePartition", 1), "state.change.logger")
        )
    found = timeline(prepare(find_sources([str(tmp_path)])).events()).of(TopicPartition("t", 0))
    assert [(one.cluster, one.leader_epoch, one.to_ms is None) for one in found] == [
        (1, 0, False), (1, 1, True), (2, 0, False), (2, 1, True),
    ]  # fmt: skip


def test_copies_and_logs_of_one_cluster_are_not_split(tmp_path: Path) -> None:
    text = server_log(first=0)
    found = tree(tmp_path / "copies", a=text, b=text.split("\n", 1)[1] + line(30, "shutting down"))
    assert (len(found.sources), codes(found)) == (1, set())
    found = tree(
        tmp_path / "one",
        a=server_log(first=0, cluster_id=IDS["a"]),
        b=server_log(first=30, cluster_id=IDS["a"]),
    )
    assert (len(found.sources), codes(found)) == (1, set())


def test_a_log_that_goes_on_in_a_new_cluster_is_one(tmp_path: Path) -> None:
    """The copy of its end names the new cluster alone, the log itself the old one first."""
    end = server_log(first=30, cluster_id=IDS["b"])
    found = tree(tmp_path, a=server_log(first=0, cluster_id=IDS["a"]) + end, b=end)
    assert (len(found.sources), codes(found)) == (1, set())


def test_a_folder_in_that_of_another_installation(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(server_log(first=5, cluster_id=IDS["b"]))
    found = tree(tmp_path, a=server_log(first=0, cluster_id=IDS["a"]))
    assert [source.installation for source in found.sources] == [0, 1]


def test_where_nothing_tells_it_they_are_joined_and_that_is_said(tmp_path: Path) -> None:
    found = tree(tmp_path, a=server_log(first=0), b=server_log(first=30))
    assert (len(found.sources), codes(found)) == (1, {"log-folders-joined"})
