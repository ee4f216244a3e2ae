"""What people see of disks, quorum, features, rolling restarts and predictions on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.cli.render import Page
from commands.cluster.describe import (
    cluster_row,
    disks_text,
    feature_rows,
    log_dir_row,
    prediction_text,
    rolling_text,
)
from commands.cluster.describe import describe_text as whole_text
from commands.cluster.feature import list_text
from commands.cluster.quorum import describe_text, member_rows, quorum_row
from commands.group import reset_text
from kctl.cluster.disks import BrokerLogDir, StoredReplica
from kctl.cluster.rolling import rolling_restart
from kctl.model import TopicPartition
from kctl.operations.kraft.features import features_of
from kctl.rows.cluster_wide import RESTART
from kctl.rows.kraft import FEATURE_LEVELS
from tests.conftest import kctl, rows
from tests.kctl.cluster.test_kraft import cluster, quorum

PAGE = Page(100, color=False)


def test_disks() -> None:
    stored = (
        StoredReplica(TopicPartition("a", 0), 1000),
        StoredReplica(TopicPartition("a", 1), 500, True, 3),
    )
    found = [
        BrokerLogDir(1, "/a", None, 10_000, 4_000, replicas=stored),
        BrokerLogDir(1, "/b", "KAFKA_STORAGE_ERROR"),
        BrokerLogDir(1, "/c", is_cordoned=True),
        BrokerLogDir(2, None, "it is not alive"),
    ]
    assert list(disks_text(map(log_dir_row, found), PAGE)) == [
        "broker  log directory  state        replicas  future  size     usable   of",
        "     1  /a             online       2              1  1.5 KiB  3.9 KiB  9.8 KiB",
        "     1  /b             failed                                                    KAFKA_STORAGE_ERROR",
        "     1  /c             cordoned     0                 0 B",
        "     2  ?              unreachable                                               it is not alive",
    ]


def test_the_quorum() -> None:
    found = quorum(101, 102, 103, dead=(103,), observers=(1,))
    lines = list(describe_text([quorum_row(found), *member_rows(found)], PAGE))
    assert lines[0] == "leader 101, epoch 4, voters 101,102,103; no answer from 103"
    assert [line.split() for line in lines[1:]] == [
        ["node", "role", "log", "end", "lag", "behind", "directory"],
        ["101", "leader", "90", "0", "0.0", "s", "dir101"],
        ["102", "voter", "90", "0", "0.0", "s", "dir102"],
        ["103", "voter", "90", "0", "0.0", "s", "dir103", "does", "not", "answer"],
        ["1", "observer", "90", "0", "0.0", "s", "dir1"],
    ]


def test_the_whole_cluster_has_a_line_for_each_member_of_the_quorum() -> None:
    state = cluster(features={"metadata.version": 29})
    found = quorum(101, 102, 103, dead=(103,), observers=(1,))
    rows = [cluster_row(state, "admin"), *member_rows(found), *feature_rows(state)]
    lines = list(whole_text(rows, Page(80, color=False)))
    members = list(describe_text(member_rows(found), PAGE))
    assert lines[0].startswith("cluster_id")
    assert lines[-2 - len(members) : -2] == members
    assert max(map(len, lines)) <= 80


def test_features() -> None:
    state = cluster(features={"metadata.version": 29})
    rows = (FEATURE_LEVELS.of(one) for one in features_of(state, {"metadata.version": (7, 30)}))
    assert [line.rstrip() for line in list_text(rows, PAGE)] == [
        "feature           level  supported  proposed",
        "metadata.version     29  7-30             30  no way back",
        "metadata.version=30 adds",
        "  30 (4.3-IV0): KIP-1066: cordoned log directories; no way back",
    ]


def test_a_rolling_restart() -> None:
    order = rolling_restart(cluster(least=3), [])
    lines = list(rolling_text((RESTART.of(one) for one in order[2:4]), PAGE))
    assert lines == [
        "  3  3 (broker)  waits for",
        "       2 partitions would have fewer in the ISR than min.insync.replicas: a-0, a-1",
        "  4  102 (controller)  can be stopped now",
    ]


@pytest.mark.parametrize(
    ("moment", "arguments", "status"),
    [
        ("before", [], 0),
        ("before", ["--watch"], 0),
        ("during", [], 5),  # broker 1 is dead, and nobody else may be stopped
        ("during", ["--watch", 3], 5),
        ("during", [3], 5),
    ],
)
def test_a_rolling_restart_ends_with_5_where_nothing_can_be_stopped(
    moment: str, arguments: list[object], status: int
) -> None:
    snapshot = f"examples/unclean-election/moments/{moment}/znodes.jsonl"
    assert rows("cluster", "rolling", *arguments, "--snapshot", snapshot).status == status


def test_predictions_end_with_the_quorum() -> None:
    row = {**quorum_row(quorum(101, 102, 103)), "message": "2 of 3 voters would answer"}
    assert list(prediction_text([row], PAGE)) == ["2 of 3 voters would answer", "no partition is affected"]


def test_a_reset_fits_a_terminal_with_long_names() -> None:
    group, topic = "payments-reconciliation-eu-west-1-production", "payments-events-v2"
    same = {"kind": "group_reset", "group": group, "topic": topic}
    listed = [
        {**same, "partition": 0, "offset": 1200, "new_offset": 0, "change": -1200, "was_outside": False,
         "from_offset": 1200, "to_offset": 0, "skips": 0, "repeats": 1200},
        {**same, "partition": 1, "offset": None, "new_offset": 7, "change": None, "was_outside": True,
         "from_offset": None, "to_offset": 7, "skips": None, "repeats": None},
    ]  # fmt: skip
    assert list(reset_text(listed, Page(80, color=False))) == [
        group,
        "partition               offset  new offset  skips  repeats",
        "  payments-events-v2-0    1200           0      0     1200",
        "  payments-events-v2-1                   7",
        "    the nearest in the log",
    ]


def test_a_voter_whose_directory_is_gone() -> None:
    """The row and the text name the steps that mend it."""
    found = quorum(101, 102, 103, dead=(103,), observers=(1,))
    (voter,) = (member for member in found.members if member.node_id == 103)
    now = voter._replace(is_voter=False, directory_id="dir103b", is_answering=True)
    found = found._replace(members=(*found.members, now))
    assert quorum_row(found)["replaced_voters"] == [103]
    lines = list(describe_text([quorum_row(found), *member_rows(found)], PAGE))
    assert any("`kctl quorum remove 103`, then `kctl quorum add 103`" in line for line in lines)


@pytest.mark.parametrize(("stopped", "is_named"), [("1,2", True), ("2", False)])
def test_the_start_of_what_a_partition_is_left_with_is_named(stopped: str, is_named: bool) -> None:
    znodes = Path(__file__).parents[2] / "examples/unclean-election/moments/after/znodes.jsonl"
    ran = kctl("cluster", "predict", "--stop", stopped, "--snapshot", znodes, columns=120)
    assert ("kctl log-dir start LOG_DIR" in ran.out.decode()) is is_named
