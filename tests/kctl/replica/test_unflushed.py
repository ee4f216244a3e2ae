"""Where every replica that kept what was committed ended without a shutdown, nothing says that it still has all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Ran, rows
from tests.kctl.replica.test_compare import FRONT, batch, log_dir
from tests.kctl.replica.test_loss import configured, znodes

DECIDED = (
    "[2026-11-21 10:{at},000] TRACE [Controller id=3 epoch=1] Changed partition orders-0 from {states} with state "
    "LeaderAndIsr(leader={leader}, leaderEpoch={epoch}, isr=List({isr}), zkVersion={epoch}) (state.change.logger)"
)
OFFLINE, ONLINE = "OfflinePartition to OnlinePartition", "OnlinePartition to OnlinePartition"
NEW, DOWN = "NewPartition to OnlinePartition", "OnlinePartition to OfflinePartition"
Decisions = list[tuple[str, str, int, str]]


def decided(root: Path, decisions: Decisions) -> None:
    """What controller 3 logged: time, states, leader and ISR of each epoch."""
    lines = [
        DECIDED.format(at=at, states=states, leader=leader, epoch=epoch, isr=isr)
        for epoch, (at, states, leader, isr) in enumerate(decisions)
    ]
    folder = root / "broker-3" / "logs"
    folder.mkdir(parents=True)
    (folder / "state-change.log").write_text("\n".join(lines) + "\n")


def lived(root: Path, broker_id: int, *lines: tuple[str, str]) -> None:
    """The log of a broker: times and what KafkaServer printed."""
    text = "".join(
        f"[2026-11-21 10:{at},000] INFO [KafkaServer id={broker_id}] {said} (kafka.server.KafkaServer)\n"
        for at, said in lines
    )
    folder = root / f"broker-{broker_id}" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.log").write_text(text)


def copies(root: Path, last_epoch: int) -> None:
    for broker_id in (1, 2):
        whole = [*FRONT, batch(15, 17, "b", last_epoch)]
        log_dir(root, broker_id, whole, high_watermark=17, epochs=[[0, 0], [last_epoch, 15]])
    znodes(root, 1, last_epoch, [1, 2])


BOOT = ("00:00", "starting"), ("00:02", "started")
KILLED = *BOOT, ("05:00", "starting"), ("05:02", "started")
STOPPED = *BOOT, ("04:00", "shutting down"), ("04:01", "shut down completed"), *KILLED[2:]
ALONE: Decisions = [
    ("00:10", NEW, 1, "1,2"),
    ("02:00", ONLINE, 1, "1"),
    ("04:05", DOWN, -1, "1"),
    ("05:03", OFFLINE, 1, "1"),
]


def judged(root: Path) -> tuple[str, list[str], int]:
    ran: Ran = rows("replica", "loss", root)
    (judgement,) = ran.of("judgement")
    return judgement["verdict"], ran.codes("info"), ran.status


@pytest.mark.parametrize("life", [KILLED, STOPPED])
def test_the_only_member_of_the_isr_that_was_killed_may_lack_its_tail(
    life: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    copies(tmp_path, 3)
    decided(tmp_path, ALONE)
    lived(tmp_path, 1, *life)
    lived(tmp_path, 2, *BOOT)
    if life is KILLED:
        assert judged(tmp_path) == ("could_not_judge", ["replica-tail-unproven"], 3)
    else:
        assert judged(tmp_path) == ("sound", [], 0)


@pytest.mark.parametrize("second", [KILLED, BOOT])
def test_a_member_of_the_isr_that_ran_all_along_has_what_was_committed(
    second: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    """Both are in the ISR to the end; where 2 ran on, what 1 lacked would have been cut from 2."""
    copies(tmp_path, 2)
    decided(tmp_path, [("00:10", NEW, 1, "1,2"), ("04:05", DOWN, -1, "1,2"), ("05:03", OFFLINE, 1, "1,2")])
    lived(tmp_path, 1, *KILLED)
    lived(tmp_path, 2, *second)
    verdict, codes, _ = judged(tmp_path)
    assert (verdict, codes) == (
        ("could_not_judge", ["replica-tail-unproven"]) if second is KILLED else ("sound", [])
    )


def test_who_joined_the_isr_again_has_what_its_leader_has(tmp_path: Path) -> None:
    """2 leads while 1 is away; 1 fetches what it lacks, and leads again when 2 is told to stop."""
    copies(tmp_path, 3)
    changes: Decisions = [
        ("00:10", NEW, 1, "1,2"),
        ("04:05", ONLINE, 2, "2"),
        ("05:30", ONLINE, 2, "2,1"),
        ("06:00", ONLINE, 1, "1,2"),
    ]
    decided(tmp_path, changes)
    lived(tmp_path, 1, *KILLED)
    lived(tmp_path, 2, *BOOT)
    assert judged(tmp_path) == ("sound", [], 0)


def test_a_leader_that_was_back_before_anybody_noticed_may_lack_its_tail(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=15, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1])
    decided(tmp_path, [("00:10", NEW, 1, "1")])
    lived(tmp_path, 1, *KILLED)
    lived(tmp_path, 2, *BOOT)
    assert judged(tmp_path) == ("could_not_judge", ["replica-tail-unproven"], 3)


@pytest.mark.parametrize("life", [KILLED, BOOT])
def test_what_an_unclean_election_dropped_only_an_isr_that_ran_on_shows(
    life: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    """2 is elected though 1 alone was in the ISR; 1 cuts nothing when it follows, for it lacks its tail itself."""
    copies(tmp_path, 3)
    decided(
        tmp_path,
        [
            ("00:10", NEW, 1, "1,2"),
            ("02:00", ONLINE, 1, "1"),
            ("04:05", DOWN, -1, "1"),
            ("04:50", OFFLINE, 2, "2"),
        ],
    )
    lived(tmp_path, 1, *life)
    lived(tmp_path, 2, *BOOT)
    server = tmp_path / "broker-1" / "logs" / "server.log"
    loaded = (
        "[2026-11-21 10:05:01,000] INFO [Log partition=orders-0, dir=/d] Completed load of log with 1 segments, "
        "log start offset 0 and log end offset 15 in 1 ms (kafka.log.Log)\n"
    )
    server.write_text(server.read_text() + loaded)
    verdict, codes, _ = judged(tmp_path)
    assert (verdict, codes) == (
        ("could_not_judge", ["replica-tail-unproven"]) if life is KILLED else ("sound", [])
    )


@pytest.mark.parametrize("minimum", ["1", "2"])
def test_an_isr_below_the_minimum_acknowledges_nothing(minimum: str, tmp_path: Path) -> None:
    """2 was in the ISR that acknowledged last, and ran on: what 1 lacks it would have had to cut."""
    copies(tmp_path, 3)
    configured(tmp_path, **{"min.insync.replicas": minimum})
    decided(tmp_path, ALONE)
    lived(tmp_path, 1, *KILLED)
    lived(tmp_path, 2, *BOOT)
    verdict, codes, _ = judged(tmp_path)
    assert (verdict, codes) == (
        ("could_not_judge", ["replica-tail-unproven"]) if minimum == "1" else ("sound", [])
    )


@pytest.mark.parametrize("life", [KILLED, BOOT])
def test_a_loss_may_be_larger_where_the_isr_lacks_its_tail(
    life: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    """1 has two records that 2, elected uncleanly, lacks; how many it had before its host failed nobody knows."""
    log_dir(tmp_path, 1, [*FRONT, batch(15, 17, "a", 1)], high_watermark=17, epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 16, "b", 3)], high_watermark=16, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2])
    decided(
        tmp_path,
        [
            ("00:10", NEW, 1, "1,2"),
            ("02:00", ONLINE, 1, "1"),
            ("04:05", DOWN, -1, "1"),
            ("04:50", OFFLINE, 2, "2"),
        ],
    )
    lived(tmp_path, 1, *life)
    lived(tmp_path, 2, *BOOT)
    (row,) = rows("replica", "loss", tmp_path).of("loss")
    assert (row["from_offset"], row["to_offset"], row["cause"]) == (15, 17, "unclean_election")
    assert row["is_at_least"] is (life is KILLED)
    assert (row["strength"], row["incarnation"], row["is_compacted"]) == ("sure", 1, False)


def test_each_part_of_a_loss_names_the_epoch_and_the_leader_of_its_own_records(tmp_path: Path) -> None:
    """1 led in two epochs what 2, elected uncleanly, lacks: the first is committed, of the second nobody knows."""
    of_1 = [*FRONT, batch(15, 17, "a", 1), batch(17, 20, "c", 2)]
    log_dir(tmp_path, 1, of_1, high_watermark=17, epochs=[[0, 0], [1, 15], [2, 17]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 16, "b", 3)], high_watermark=16, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2])
    decided(
        tmp_path,
        [("00:10", NEW, 1, "1,2"), ("02:00", ONLINE, 2, "1,2"), ("03:00", ONLINE, 1, "1,3"), ("04:50", OFFLINE, 2, "2")],
    )  # fmt: skip
    lived(tmp_path, 1, *BOOT)
    lived(tmp_path, 2, *BOOT)
    losses = rows("replica", "loss", tmp_path).of("loss")
    told = [
        (row["from_offset"], row["to_offset"], row["class"], row["written_in_epoch"], row["written_by"])
        for row in losses
    ]
    assert told == [(15, 17, "committed", 1, 2), (17, 20, "unknown", 2, 1)]


def created(at: str) -> str:
    return (
        f"[2026-11-21 10:{at},000] INFO Created log for partition orders-0 in /d/orders-0 with properties {{}} "
        "(kafka.log.LogManager)\n"
    )


@pytest.mark.parametrize("is_anew", [True, False])
def test_a_log_that_was_created_anew_lacks_what_it_held(is_anew: bool, tmp_path: Path) -> None:
    """1 was stopped in order, and its disk replaced; it leads alone, with a log that it has just created."""
    copies(tmp_path, 3)
    decided(tmp_path, ALONE)
    lived(tmp_path, 1, *STOPPED)
    lived(tmp_path, 2, *BOOT)
    server = tmp_path / "broker-1" / "logs" / "server.log"
    start, *rest = server.read_text().splitlines(keepends=True)
    lines = [start, created("00:09"), *rest, *([created("05:01")] if is_anew else [])]
    server.write_text("".join(sorted(lines)))
    verdict, codes, _ = judged(tmp_path)
    assert (verdict, codes) == (("could_not_judge", ["replica-tail-unproven"]) if is_anew else ("sound", []))


def test_a_log_that_its_leader_begins_with_is_no_end_of_a_later_isr(tmp_path: Path) -> None:
    """2 is elected uncleanly with a new log, and leads on: what 1 had is another question (nemesis 1.1, seed 3)."""
    copies(tmp_path, 3)
    changes: Decisions = [
        ("00:10", NEW, 1, "1,2"),
        ("02:00", ONLINE, 1, "1"),
        ("05:01", OFFLINE, 2, "2"),
        ("06:00", ONLINE, 2, "2"),
    ]
    decided(tmp_path, changes)
    lived(tmp_path, 1, *BOOT, ("04:00", "shutting down"), ("04:01", "shut down completed"))
    lived(tmp_path, 2, *STOPPED)
    server = tmp_path / "broker-2" / "logs" / "server.log"
    lines = [*server.read_text().splitlines(keepends=True), created("00:09"), created("05:02")]
    server.write_text("".join(sorted(lines)))
    assert "replica-tail-unproven" not in judged(tmp_path)[1]


DEAD = "[2026-11-21 10:{at},000] INFO [Controller id=3] Broker failure callback for {who} (kafka.controller.KafkaController)\n"


@pytest.mark.parametrize("end", ["killed", "one ran on", "stopped", "clean", "unknown"])
def test_an_isr_that_is_dead_and_was_not_started_again(end: str, tmp_path: Path) -> None:
    """1 and 2 die one after the other, and the one that is left was not in the ISR; nobody leads."""
    copies(tmp_path, 0)
    znodes(tmp_path, -1, 2, [1, 2])
    decided(tmp_path, [("00:10", NEW, 1, "1,2"), ("04:05", ONLINE, 2, "1,2"), ("04:10", DOWN, -1, "1,2")])
    stops = ("04:04", "shutting down"), ("04:04", "shut down completed")
    lived(tmp_path, 1, *BOOT, *(stops if end == "stopped" else ()))
    lived(tmp_path, 2, *BOOT, *((("06:00", "cannot reach the controller"),) if end == "one ran on" else ()))
    if end == "clean":
        (tmp_path / "broker-1" / "data" / ".kafka_cleanshutdown").touch()
    if end != "unknown":
        (tmp_path / "broker-3" / "logs" / "controller.log").write_text(
            DEAD.format(at="04:05", who="1") + DEAD.format(at="04:10", who="2")
        )
    verdict, codes, _ = judged(tmp_path)
    assert (verdict, codes) == (
        ("could_not_judge", ["replica-tail-unproven"]) if end == "killed" else ("sound", [])
    )
