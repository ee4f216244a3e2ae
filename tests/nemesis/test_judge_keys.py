"""The judge itself, on the keys of rows: a wrong value of each is caught, and a right one is not."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kctl.times import iso
from tests.nemesis.judge_copies import judge_files, judge_lineages, judge_rejoins, judge_verdicts
from tests.nemesis.judge_history import judge_clocks, judge_leaders, judge_lives, judge_terms
from tests.nemesis.judge_loss import judge_loss_keys
from tests.nemesis.judge_transactions import judge_explanation, judge_ids, judge_open
from tests.nemesis.statements import Copies
from tests.nemesis.story import Fault, Fencing, Moment, State, Story, Term, Transactional
from tests.nemesis.test_judge import LIFE, PARTITION, RIGHT, leader, made, state, wrong
from tests.nemesis.truth import CONTROL, TRANSACTIONAL, Stored, log_of, transactional_ids

Row = dict[str, Any]


def batch(offset: int, value: str, epoch: int, time: int, producer: int = -1, attributes: int = 0) -> bytes:
    """A batch of magic 2 with one record; the judge does not ask for its CRC."""
    text = value.encode()
    record = bytes([0, 0, 0, 1, len(text) << 1]) + text + b"\0"
    body = struct.pack(
        ">ibIhiqqqhii", epoch, 2, 0, attributes, 0, time, time, producer, 0 if producer >= 0 else -1, -1, 1
    )
    body += bytes([len(record) << 1]) + record
    return struct.pack(">qi", offset, len(body)) + body


def evidence(folder: Path, logs: dict[int, list[tuple[int, str, int]]], moment: str = "after") -> Copies:
    """Copies of ledger-0: by broker, offset, value and epoch of each batch; offset 5 is of time 1005."""
    for id, held in logs.items():
        path = folder / "moments" / moment / f"broker-{id}" / "data" / "ledger-0"
        path.mkdir(parents=True)
        log = b"".join(batch(offset, value, epoch, 1000 + offset) for offset, value, epoch in held)
        (path / f"{0:020}.log").write_bytes(log)
        epochs = sorted({epoch: offset for offset, _, epoch in reversed(held)}.items())
        lines = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
        (path / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
        (path / "partition.metadata").write_text("version: 0\ntopic_id: T")
        (path.parent / "replication-offset-checkpoint").write_text("0\n1\nledger 0 3\n")
    return Copies(folder)


OLD = [(0, "a", 0), (1, "b", 0), (2, "c", 0), (3, "d", 0)]
NEW = [(0, "a", 0), (1, "b", 0), (2, "x", 2)]
LOGS = {1: NEW, 2: OLD}


def story() -> Story:
    """Broker 2 led epoch 0 and was killed; broker 1 was elected uncleanly in epoch 2. Offsets 2 and 3 are lost."""
    told = made()
    told.moments = [Moment("after", 140_000, [1], 141_000)]
    return told


LOSS: Row = {
    "kind": "loss", **PARTITION, "from_offset": 2, "to_offset": 4, "class": "committed", "cause": "unclean_election",
    "replaced": [[2, 3]], "missing": [[3, 4]], "lost_in_epoch": 2, "dropped_by": 1, "written_in_epoch": 0,
    "written_by": 2, "isr_before": [2], "recoverable_from": [{"moment": "after", "broker_id": 2}],
    "recoverable_from_tier": [], "records": 2, "first_timestamp": 1002, "last_timestamp": 1003, "evidence": [],
    "strength": "sure", "topic_id": "T", "incarnation": 1, "is_compacted": False, "is_at_least": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, ""),
        ({"lost_in_epoch": 1}, "says lost_in_epoch 1"),
        ({"dropped_by": 2}, "dropped_by 2, it led 1"),
        ({"written_in_epoch": 2}, "its batches have {0}"),
        ({"written_by": 1}, "written_by 1, it led 2"),
        ({"isr_before": [1, 2]}, "says isr_before [1, 2]"),
        ({"cause": "zombie_leader"}, "says zombie_leader in epoch 2, and nothing of that was done"),
        ({"cause": "high_watermark_truncation"}, "nothing of that was done"),
        ({"cause": "disk_lost"}, "nothing of that was done"),
        ({"cause": "handover"}, "nothing of that was done"),
        ({"replaced": [[2, 4]]}, "says replaced [2, 4), not so [3, 4)"),
        ({"missing": [[2, 4]]}, "says missing [2, 4), not so [2, 3)"),
        ({"missing": [[3, 9]]}, "missing [4, 9) are not of it"),
        ({"recoverable_from": [{"moment": "after", "broker_id": 1}]}, "holds nothing that was lost"),
        ({"recoverable_from": []}, "hold it, not said"),
        ({"records": 3}, "says records 3"),
        ({"first_timestamp": 7}, "says first_timestamp 7"),
        ({"last_timestamp": 7}, "says last_timestamp 7"),
        ({"strength": None}, "says strength None"),
        ({"topic_id": "U"}, "says topic_id U"),
        ({"incarnation": 2}, "says incarnation 2"),
        ({"is_compacted": True}, "says is_compacted True"),
    ],
)
def test_the_keys_of_a_loss(change: Row, caught: str, tmp_path: Path) -> None:
    copies = evidence(tmp_path, LOGS)
    path = copies.path("after", "ledger-0", 1)
    assert path
    found = wrong(judge_loss_keys(story(), [{**LOSS, **change}], {"ledger-0": log_of(path)}, copies))
    assert caught in found if caught else not found


def test_an_unclean_election_is_the_cause_and_a_clean_one_is_not(tmp_path: Path) -> None:
    copies = evidence(tmp_path, LOGS)
    kept = {"ledger-0": {0: Stored(0, None, b"a")}}
    told = story()
    told.faults = [fault for fault in told.faults if fault.kind != "power-loss"]
    found = wrong(judge_loss_keys(told, [{**LOSS, "cause": "unknown"}], kept, copies))
    assert "says unknown, epoch 2 was unclean" in found
    told.history["ledger-0"][2].is_unclean = False
    assert "says unclean_election in epoch 2" in wrong(judge_loss_keys(told, [LOSS], kept, copies))


LINEAGE: Row = {
    "kind": "lineage", **PARTITION, "broker_id": 1, "epochs": [[0, 0], [2, 2]], "log_start_offset": 0,
    "log_end_offset": 3, "high_watermark": 3, "recorded": [[0, 0], [2, 2]], "rebuilt": [[0, 0], [2, 2]],
    "local_log_start_offset": 0, "topic_id": "T", "folder": "broker-1/data/ledger-0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, ""),
        ({"broker_id": 3}, "there is no such copy"),
        ({"epochs": [[0, 0], [1, 2]]}, "says epochs"),
        ({"epochs": [[2, 2], [0, 0]]}, "says epochs"),
        ({"log_start_offset": 1}, "says log_start_offset 1"),
        ({"log_end_offset": 4}, "says log_end_offset 4"),
        ({"high_watermark": 2}, "says high_watermark 2"),
        ({"recorded": None}, "says recorded None"),
        ({"rebuilt": []}, "says rebuilt []"),
        ({"local_log_start_offset": 2}, "says local_log_start_offset 2"),
        ({"topic_id": "U"}, "says topic_id U"),
        ({"folder": "broker-2/data/ledger-0"}, "says folder broker-2"),
    ],
)
def test_lineages(change: Row, caught: str, tmp_path: Path) -> None:
    found = wrong(judge_lineages(story(), [{**LINEAGE, **change}], "after", evidence(tmp_path, LOGS)))
    assert caught in found if caught else not found


VERDICT: Row = {
    "kind": "verdict", **PARTITION, "verdict": "diverged", "best_source": 1, "recover_from": [2], "broker_ids": [1, 2],
    "branches": [[1], [2]], "current_lineage": 1, "most_committed": 1, "behind": [], "branch_point": None,
    "moments": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, ""),
        ({"verdict": "equal"}, "verdict equal: ends"),
        ({"verdict": "behind"}, "verdict behind: ends"),
        ({"broker_ids": [1, 2, 3]}, "of [1, 2, 3]"),
        ({"branches": [[1, 2]]}, "branches [[1, 2]]"),
        ({"behind": [2]}, "says behind [2]"),
        ({"best_source": 2}, "best_source 2, newest epochs"),
        ({"best_source": 3}, "says best_source 3"),
        ({"current_lineage": 3}, "says current_lineage 3"),
        ({"most_committed": 3}, "says most_committed 3"),
        ({"recover_from": [1]}, "recover_from 1"),
        ({"branch_point": 2}, "branch_point 2"),
    ],
)
def test_verdicts(change: Row, caught: str, tmp_path: Path) -> None:
    found = wrong(judge_verdicts(story(), [{**VERDICT, **change}], "after", evidence(tmp_path, LOGS)))
    assert caught in found if caught else not found


REJOIN: Row = {
    "kind": "rejoin", **PARTITION, "leader": 1, "broker_id": 2, "truncate_to": 2, "offsets_dropped": 2,
    "full_truncation": False, "below_own_high_watermark": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, ""),
        ({"truncate_to": 3, "offsets_dropped": 1, "below_own_high_watermark": False}, "differ from 2 on"),
        ({"offsets_dropped": 1}, "drops 1 of 4"),
        ({"below_own_high_watermark": False}, "below own False, high watermark 3"),
        ({"leader": 3}, "there is no such copy"),
    ],
)
def test_rejoins(change: Row, caught: str, tmp_path: Path) -> None:
    found = wrong(judge_rejoins(story(), [{**REJOIN, **change}], "after", evidence(tmp_path, LOGS)))
    assert caught in found if caught else not found


def test_files(tmp_path: Path) -> None:
    evidence(tmp_path, LOGS)
    name = f"moments/after/broker-1/data/ledger-0/{0:020}.log"
    size = (tmp_path / name).stat().st_size
    right = {
        "kind": "file", "file": name, "type": "log", "size_in_bytes": size, "batches": 3, "records": 3,
        "base_offset": 0, "next_offset": 3, "good_bytes": size, "damaged_bytes": 0, "broker_id": 1, **PARTITION,
        "moment": "after",
    }  # fmt: skip
    assert not wrong(judge_files(story(), [right], tmp_path))
    for key in (
        "size_in_bytes",
        "batches",
        "records",
        "base_offset",
        "next_offset",
        "broker_id",
        "partition",
    ):
        assert f"says {{'{key}': 99}}" in wrong(judge_files(story(), [{**right, key: 99}], tmp_path)), key
    assert "'good_bytes'" in wrong(judge_files(story(), [{**right, "good_bytes": 1}], tmp_path))
    damaged = {**right, "good_bytes": size - 9, "damaged_bytes": 9}
    assert "'damaged_bytes': 0" in wrong(judge_files(story(), [damaged], tmp_path)), "nobody touched broker 1"


# --- history ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({"controller_epoch": 9}, "says controller_epoch 9"),
        ({"topic_id": "U"}, "says topic_id U"),
        ({"cluster": 2}, "says cluster 2"),
        ({"to_time": iso(9)}, "says to_time"),
        ({"clock_offset_ms": 420_000}, "it was 0"),
        ({"strength": None}, "says none, strength None"),
        ({"how": "unknown", "strength": None}, "it may be ['none']"),
        ({"cause": "broker 3 failed"}, "says 'broker 3 failed', nobody did that"),
        ({"cause": "broker 2 was shut down"}, "nobody did that"),
        ({"cause": "broker 1 was not in the ISR [2]"}, "says 'broker 1 was not in the ISR [2]'"),
        ({"cause": "broker 1 left the ISR as it is no replica any more"}, "never asked for"),
        ({"cause": f"broker 2 was killed between {iso(1)} and {iso(2)}"}, "was killed between"),
        ({"isr_changes": [{"isr": [2], "time": iso(99_000)}]}, "38.5 s off"),
    ],
)
def test_the_keys_of_a_leader(change: Row, caught: str) -> None:
    assert caught in wrong(judge_leaders(made(), [RIGHT[0], {**RIGHT[1], **change}, RIGHT[2]]))


def test_what_was_asked_for() -> None:
    told = made()
    told.history["ledger-0"] = [State(0, 0, 2, [2, 1]), State(60_500, 1, 1, [1, 2])]
    for how, kind, detail in (
        ("preferred", "election", {}),
        ("reassignment", "reassign", {"partition": "ledger-0"}),
    ):
        rows = [RIGHT[0], leader(1, 1, [1, 2], how, to_time=None)]
        assert "and nobody asked for that" in wrong(judge_leaders(told, rows))
        told.faults.append(Fault(60_000, kind, None, detail))
        assert not wrong(judge_leaders(told, rows))


def test_a_fast_clock_is_told() -> None:
    told = made()
    told.skew = {1: 420}
    row = {**RIGHT[0], "clock_offset_ms": 419_500}
    assert not wrong(judge_clocks(told, [row]))
    for offset in (None, 410_000):
        assert "it was 420000" in wrong(judge_clocks(told, [{**row, "clock_offset_ms": offset}]))


TERM: Row = {
    "kind": "controller_term", "broker_id": 1, "controller_epoch": 5, "from_time": iso(1_000), "to_time": iso(9_000),
    "ended": "replaced", "rejections": [], "evidence": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "caught"),
    [
        ({}, ""),
        ({"controller_epoch": 4}, "there never was such a controller"),
        ({"broker_id": 2}, "it was 1"),
        ({"to_time": iso(99_000)}, "says to_time"),
        ({"controller_epoch": 6, "broker_id": 2}, "says replaced, and nobody came after it"),
        ({"rejections": [{"latest_controller_epoch": 5}]}, "says that it was rejected"),
    ],
)
def test_controllers(change: Row, caught: str) -> None:
    told = made()
    told.controllers = [Term(1_000, 5, 1), Term(9_000, 6, 2)]
    found = wrong(judge_terms(told, [{**TERM, **change}]))
    assert caught in found if caught else not found


def test_leaders_of_the_quorum() -> None:
    told = made()
    told.controllers = [Term(1_000, 5, 1)]
    row = {
        "kind": "leader", "topic": "__cluster_metadata", "partition": 0, "leader": 1, "leader_epoch": 5,
        "from_time": iso(1_000), "began_before": False,
    }  # fmt: skip
    assert not wrong(judge_terms(told, [row]))
    assert "it was 1" in wrong(judge_terms(told, [{**row, "leader": 3}]))
    assert "99.0 s off" in wrong(judge_terms(told, [{**row, "from_time": iso(100_000)}]))


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        (state("up", 65_000), "no process of it ran"),
        (state("controlled_shutdown", 80_000), "nobody told it to"),
        ({**state("down", 129_900), "cluster": 2}, "says cluster 2"),
        ({**state("killed", 59_800, 120_000)}, "says that the next began at"),
        ({**state("halted", 59_800), "how": "signal_in_startup"}, "says signal_in_startup"),
    ],
)
def test_the_keys_of_a_brokers_state(said: Row, caught: str) -> None:
    assert caught in wrong(judge_lives(made(), [*LIFE, said]))


def test_fencings_are_in_the_metadata_log() -> None:
    told = made()
    told.fencings = [Fencing(60_500, 2, True), Fencing(71_000, 2, False)]
    right = [*LIFE, state("fenced", 60_600), state("unfenced", 71_000)]
    assert not wrong(judge_lives(told, right))
    assert "the metadata log has it at [60500]" in wrong(judge_lives(told, [*right, state("fenced", 71_000)]))


# --- transactions and one offset ----------------------------------------------------------------------

OPEN: Row = {
    "kind": "open_transaction", **PARTITION, "producer_id": 7, "producer_epoch": 0, "first_offset": 1, "last_offset": 2,
    "last_timestamp": 2002, "transactional_id": None, "hanging": True, "why": "…", "abort_command": "kctl …",
}  # fmt: skip


def open_log(folder: Path) -> Copies:
    """Producer 7 wrote offsets 1 and 2 and ended nothing; producer 8 wrote 0 and ended it at 3."""
    path = folder / "moments" / "after" / "broker-1" / "data" / "ledger-0"
    path.mkdir(parents=True)
    log = batch(0, "a", 0, 2000, 8, TRANSACTIONAL) + batch(1, "b", 0, 2001, 7, TRANSACTIONAL)
    log += batch(2, "c", 0, 2002, 7, TRANSACTIONAL) + batch(3, "", 0, 2003, 8, TRANSACTIONAL | CONTROL)
    (path / f"{0:020}.log").write_bytes(log)
    return Copies(folder)


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        ([OPEN], ""),
        ([], "of producers {7} hang, and nothing says so"),
        ([OPEN, {**OPEN, "producer_id": 8}], "it is not open"),
        ([{**OPEN, "first_offset": 0}], "says Open(first=0"),
        ([{**OPEN, "last_timestamp": 9}], "the batches Open("),
        ([{**OPEN, "hanging": False, "abort_command": None}], "says hanging False"),
        ([{**OPEN, "transactional_id": "other"}], "says transactional id other"),
        ([{**OPEN, "hanging": None}], "of one that does not hang"),
    ],
)
def test_open_transactions(said: list[Row], caught: str, tmp_path: Path) -> None:
    told = story()
    told.settled = 130_000
    told.faults.append(Fault(1, "open", None, {"name": "hung-0", "is_hung": True, "producer": 7}))
    found = wrong(judge_open(told, said, open_log(tmp_path)))
    assert caught in found if caught else not found


ENTRIES = [
    "Dumping /data/__transaction_state-2/00000000000000000000.log",
    "| offset: 4 CreateTime: 9 keySize: 10 valueSize: 37 sequence: -1 headerKeys: [] key: transactional_id::payments "
    "payload: producerId:7,producerEpoch:1,state=Ongoing,partitions=[ledger-1, ledger-0],txnLastUpdateTimestamp=90,"
    "txnTimeoutMs=10000",
    "| offset: 5 CreateTime: 9 keySize: 10 valueSize: 37 sequence: -1 headerKeys: [] key: transactional_id::payments "
    "payload: producerId:7,producerEpoch:1,state=CompleteCommit,partitions=[],txnLastUpdateTimestamp=95,txnTimeoutMs=10000",
]


def test_transactional_ids() -> None:
    told = made()
    told.transactions = transactional_ids(ENTRIES)
    assert told.transactions == [Transactional("payments", 7, 1, "CompleteCommit", [], 10_000, 95, 2, 5)]
    row = {
        "kind": "transaction", "transactional_id": "payments", "state": "CompleteCommit", "producer_id": 7,
        "producer_epoch": 1, "timeout_ms": 10_000, "start_timestamp": 80, "last_update_timestamp": 95,
        "partitions": [], "log_partition": 2, "log_offset": 5,
    }  # fmt: skip
    assert not wrong(judge_ids(told, [row]))
    assert "ids [], the log has ['payments']" in wrong(judge_ids(told, []))
    assert "began at 99" in wrong(judge_ids(told, [{**row, "start_timestamp": 99}]))
    others = {key: "Ongoing" if key == "state" else ["t-0"] if key == "partitions" else 3 for key in row}
    for key in row.keys() - {"kind", "transactional_id", "start_timestamp"}:
        assert f"says {{'{key}'" in wrong(judge_ids(told, [{**row, key: others[key]}])), key


def explained(what: str, **keys: Any) -> Row:
    row = {"kind": "explanation", **PARTITION, "offset": 2, "what": what, "text": "…", "leader_epoch": None,
           "topic_id": None}  # fmt: skip
    return {**row, "broker_id": None, "moment": None, **keys}


BOTH = [explained("copy", moment="after", broker_id=id) for id in (1, 2)]


@pytest.mark.parametrize(
    ("said", "caught"),
    [
        (BOTH, ""),
        (BOTH[:1], "[('after', 2)] hold it, not said"),
        ([*BOTH, explained("absent", moment="after", broker_id=1)], "absent '…': of broker 1"),
        ([*BOTH, explained("absent", moment="after", broker_id=1, file="ledger-0.x-delete")], ""),
        (
            [*BOTH, explained("copy", moment="after", broker_id=1, file="ledger-0.x-delete")],
            "copy '…': of broker 1",
        ),
        ([*BOTH, explained("copy", moment="after", broker_id=3)], "copy '…': of broker 3"),
        ([*BOTH, explained("copy", moment="after", broker_id=1, leader_epoch=1)], "epoch 1; leaders"),
        ([*BOTH, explained("written", broker_id=2, leader_epoch=0)], ""),
        ([*BOTH, explained("written", broker_id=1, leader_epoch=0)], "written '…': of broker 1"),
        ([*BOTH, explained("lost", broker_id=1, leader_epoch=1)], "lost '…': of broker 1"),
        ([*BOTH, explained("led", broker_id=3)], "led '…': of broker 3"),
        ([*BOTH, explained("led", broker_id=1, topic_id="U")], "led '…'"),
        ([*BOTH, {**explained("led", broker_id=1), "offset": 9}], "led '…'"),
    ],
)
def test_explanations(said: list[Row], caught: str, tmp_path: Path) -> None:
    copies = evidence(tmp_path, LOGS)
    found = wrong(judge_explanation(story(), said, "ledger-0", 2, copies))
    assert caught in found if caught else not found
