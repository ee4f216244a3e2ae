"""Losses on made-up copies: what is none, what nobody can tell, how much was committed, and what proves it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands.cli.render import Page
from commands.replica.loss_text import loss_text
from formats.log.message_set import write_message
from formats.log.record_batch import Record, write_batch
from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
    write_remote_log_metadata,
)
from formats.values import replace
from kctl.copies import replica_log
from kctl.copies.leaders import LeaderTerm
from kctl.evidence.names import TOLD_CLUSTER
from kctl.evidence.replica_copies import Copy
from kctl.judging.judgement import Verdict
from kctl.judging.loss import LossFacts, judge_loss
from kctl.model import TopicPartition
from kctl.replica.loss import lost_parts
from kctl.replica.loss.lost_parts import LostParts
from tests.conftest import Ran, kctl, recording, rows
from tests.kctl.replica.test_compare import FRONT, TOPIC_IDS, batch, encoded, log_dir, message

STATE = "/brokers/topics/orders/partitions/0/state"


def znodes(
    folder: Path,
    leader: int,
    leader_epoch: int,
    isr: list[int],
    *,
    replicas: tuple[int, ...] = (1, 2),
    live: tuple[int, ...] = (1, 2),
    zxid: int = 1,
    created: int = 1,
    created_ms: int = 0,
) -> None:
    """An export with one partition and who is alive."""
    state = {"version": 1, "leader": leader, "leader_epoch": leader_epoch, "isr": isr, "controller_epoch": 1}
    topic = {"version": 1, "partitions": {"0": replicas}}
    lines = [
        {
            "path": "/brokers/topics/orders",
            "data": encoded(topic),
            "czxid": created,
            "mzxid": created,
            "ctime": created_ms,
        },
        {"path": STATE, "data": encoded(state), "czxid": created, "mzxid": zxid},
        *({"path": f"/brokers/ids/{b}", "data": encoded({"version": 4}), "czxid": zxid} for b in live),
        {"path": "/controller_epoch", "data": encoded(1), "mzxid": zxid},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "znodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def lost(root: Path, *options: object) -> Ran:
    return rows("replica", "loss", root, *options)


def spans(ran: Ran) -> list[tuple[int, int | None, str]]:
    return [(row["from_offset"], row["to_offset"], row["class"]) for row in ran.of("loss")]


def test_a_tail_of_an_older_epoch_is_lost(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], high_watermark=18, epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 3)], high_watermark=17, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2], live=(2,))
    ran = lost(tmp_path)
    assert spans(ran) == [(15, 18, "committed"), (18, 20, "unknown")]
    first, second = ran.of("loss")
    assert (first["replaced"], first["missing"]) == ([[15, 17]], [[17, 18]])
    assert (second["replaced"], second["missing"]) == ([], [[18, 20]])
    assert first["lost_in_epoch"] == 3
    assert first["cause"] == "unknown"
    (proof,) = [e for e in first["evidence"] if e["kind"] == "high_watermark_checkpoint"]
    assert (proof["strength"], proof["broker_id"]) == ("sure", 1)


def test_the_order_of_copying_is_no_loss(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT[:2], epochs=[[0, 0]])
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes(), ran.status) == ([], [], 0)


def test_an_election_between_two_copies_of_one_moment_is_no_loss(tmp_path: Path) -> None:
    # The leader's log was copied first, its epoch file after the epoch had moved on.
    log_dir(tmp_path, 1, FRONT[:2], epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 18, epoch=1)], epochs=[[0, 0], [1, 15]])
    znodes(tmp_path, 1, 1, [1, 2])
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes(), ran.status) == ([], [], 0)


def test_a_tail_without_epochs_on_a_broker_that_may_be_following_is_undecided(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [message(o) for o in range(10)])
    log_dir(tmp_path, 2, [message(o) for o in range(12)])
    znodes(tmp_path, 1, 4, [1], live=(1, 2))
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes(), ran.status) == ([], ["replica-undecided-tail"], 0)
    znodes(tmp_path, 1, 4, [1], live=(1,))  # it is away, so it fetched nothing from this leader
    assert [(a, b) for a, b, _ in spans(lost(tmp_path))] == [(10, 12)]


def test_retention_is_no_loss(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT[2:], base=10, epochs=[[0, 10]])
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes(), ran.status) == ([], [], 0)


def test_compaction_is_no_loss(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [FRONT[0], FRONT[2]], cleaner=True, epochs=[[0, 0]])
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    assert lost(tmp_path).of("loss") == []


def test_a_hole_in_the_leaders_log_is_missing_records(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [FRONT[0], FRONT[2]], epochs=[[0, 0]])
    log_dir(tmp_path, 2, FRONT, high_watermark=15, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    (row,) = lost(tmp_path).of("loss")
    assert (row["from_offset"], row["to_offset"], row["missing"]) == (5, 10, [[5, 10]])
    assert row["replaced"] == []


def test_damage_of_the_leaders_copy_is_not_called_loss(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [FRONT[0], b"\xff" * len(FRONT[1]), FRONT[2]], epochs=[[0, 0]])
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    assert lost(tmp_path).of("loss") == []


@pytest.mark.parametrize("command", ["compare", "loss"])
@pytest.mark.parametrize("what", ["fifo", "link", "countless"])
def test_leader_epochs_that_cannot_be_read_are_said(tmp_path: Path, command: str, what: str) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    assert rows("replica", command, tmp_path).status == 0
    (path, *_) = sorted(tmp_path.rglob("leader-epoch-checkpoint"))
    path.unlink()
    if what == "fifo":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/etc/hostname")
    else:
        path.write_text("0\n300000\n" + "".join(f"{1000000 + n} {1000000 + n}\n" for n in range(300_000)))
    ran = rows("replica", command, tmp_path)
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] == "unreadable"
    assert "leader-epoch-checkpoint cannot be read" in str(ran.of("finding"))
    assert ran.status != 0


@pytest.mark.parametrize(
    ("position", "is_whole"), [(-1, True), (0, True), (1, False), (2, True)]
)  # of the damaged batch of the other copy
def test_damage_in_every_copy_is_no_sound_partition(tmp_path: Path, position: int, is_whole: bool) -> None:
    damage = b"\xff" * len(FRONT[1])
    log_dir(tmp_path, 1, [FRONT[0], damage, FRONT[2]], epochs=[[0, 0]])
    others = [damage if number == position else part for number, part in enumerate(FRONT)]
    log_dir(tmp_path, 2, others, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (ran.status, judgement["verdict"]) == ((0, "sound") if is_whole else (5, "damaged"))
    assert ran.codes().count("replica-damaged-copy") == (not is_whole)


def without_segment(root: Path, broker_id: int, start: int, end: int, **identity: Any) -> None:
    """A copy whose first segment ends at `start` and whose second begins at `end`, of offsets up to 20."""
    folder = log_dir(root, broker_id, [batch(0, start)], epochs=[[0, 0]], **identity) / "orders-0"
    ends = batch(end, 10) if end < 10 else b""
    (folder / f"{end:020d}.log").write_bytes(ends + batch(10, 20))


def configured(folder: Path, policy: str | None = None, **values: str) -> None:
    """Add the topic's configuration to an export."""
    config = {"version": 1, "config": {**({"cleanup.policy": policy} if policy else {}), **values}}
    with (folder / "znodes.jsonl").open("a") as file:
        file.write(json.dumps({"path": "/config/topics/orders", "data": encoded(config), "czxid": 1}) + "\n")


@pytest.mark.parametrize(
    ("other", "policy", "identity", "verdict"),
    [
        ((5, 10), None, {}, "could_not_judge"),  # brokers may compact by default
        ((5, 10), "delete", {}, "damaged"),
        ((5, 8), "delete", {}, "could_not_judge"),  # it has a part
        ((10, 10), "delete", {}, "sound"),  # the other copy has it
        ((5, 10), "compact", {}, "sound"),
        ((5, 10), None, {"cleaner": True}, "sound"),
    ],
)
def test_a_segment_that_every_copy_lacks_is_no_sound_partition(
    other: tuple[int, int], policy: str | None, identity: dict[str, Any], verdict: str, tmp_path: Path
) -> None:
    """The range is a finding with its offsets, an error if the configuration rules compaction out.

    There is no finding where the topic is compacted by its configuration, or looks so.
    """
    without_segment(tmp_path, 1, 5, 10, **identity)
    without_segment(tmp_path, 2, *other, **identity)
    znodes(tmp_path, 1, 0, [1, 2])
    if policy:
        configured(tmp_path, policy)
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] == verdict, judgement
    said = [
        row
        for row in ran.of("finding")
        if row["code"] in ("replica-hole-everywhere", "replica-gap-everywhere")
    ]
    missing = [(finding["base_offset"], finding["last_offset"], finding["severity"]) for finding in said]
    severity = "error" if policy == "delete" else "info"
    assert missing == ([] if verdict == "sound" else [(5, other[1] - 1, severity)])
    assert ran.status == (0 if verdict == "sound" else 5 if policy == "delete" else 3)


def holes(ran: Ran) -> list[tuple[str, int, int]]:
    return [
        (row["code"], row["base_offset"], row["last_offset"])
        for row in ran.of("finding")
        if row["code"].endswith("-everywhere")
    ]


@pytest.mark.parametrize("broker_id", [1, 2])
def test_a_segment_that_a_broker_was_about_to_delete_is_no_hole(tmp_path: Path, broker_id: int) -> None:
    """Retention ran while a directory was copied by hand: the first segment was copied before, the next was renamed."""
    for number in (1, 2):
        without_segment(tmp_path, number, 5, 10)
    folder = next(path for path in tmp_path.rglob("orders-0") if f"broker-{broker_id}" in str(path))
    (folder / f"{5:020d}.log.deleted").write_bytes(batch(5, 10))
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "delete")
    ran = lost(tmp_path)
    assert holes(ran) == [("replica-gap-everywhere", 5, 9)]
    assert ran.of("judgement")[0]["verdict"] == "could_not_judge" and ran.status == 3


def test_a_range_that_retention_may_have_taken_hides_no_other(tmp_path: Path) -> None:
    for broker_id, first in ((1, [batch(0, 5)]), (2, [])):
        folder = log_dir(tmp_path, broker_id, first, epochs=[[0, 0]]) / "orders-0"
        for path in () if first else folder.glob(f"{0:020d}.*"):
            path.unlink()
        (folder / f"{8:020d}.log").write_bytes(batch(8, 12))
        for start, end in ((15, 18), (19, 22)):
            (folder / f"{start:020d}.log").write_bytes(batch(start, end))
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "delete")
    ran = lost(tmp_path)
    assert holes(ran) == [("replica-hole-everywhere", 12, 14), ("replica-gap-everywhere", 5, 7)]
    assert " and 1 more range are in no copy" in str(ran.of("finding"))
    assert ran.of("judgement")[0]["verdict"] == "damaged" and ran.status == 5


def test_damage_elsewhere_explains_no_missing_segment(tmp_path: Path) -> None:
    broken = batch(2, 4)[:-1] + b"\xff"
    for broker_id, middle in ((1, broken), (2, batch(2, 4))):
        first = [batch(0, 2), middle, batch(4, 5)]
        folder = log_dir(tmp_path, broker_id, first, epochs=[[0, 0]]) / "orders-0"
        (folder / f"{10:020d}.log").write_bytes(batch(10, 20))
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "delete")
    ran = lost(tmp_path)
    (finding,) = (row for row in ran.of("finding") if row["code"] == "replica-hole-everywhere")
    assert (finding["base_offset"], finding["last_offset"]) == (5, 9)
    assert str(finding["file"]).endswith("orders-0/00000000000000000010.log")


@pytest.mark.parametrize(
    ("first", "verdict"),
    [
        ([batch(0, 5), b"\xff" * 400], "damaged"),  # the damage hides where the segment ended
        ([batch(0, 2), batch(3, 5)], "sound"),  # as a cleaner leaves it
    ],
)
def test_a_hole_that_something_explains_is_no_missing_segment(
    first: list[bytes], verdict: str, tmp_path: Path
) -> None:
    for broker_id in (1, 2):
        folder = log_dir(tmp_path, broker_id, first, epochs=[[0, 0]]) / "orders-0"
        (folder / f"{10:020d}.log").write_bytes(batch(10, 20))
    znodes(tmp_path, 1, 0, [1, 2])
    if verdict == "damaged":
        configured(tmp_path, "delete")
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] == verdict
    assert not {"replica-hole-everywhere", "replica-gap-everywhere"} & {*ran.codes()}


@pytest.mark.parametrize(("mark", "verdict"), [(15, "sound"), (18, "damaged"), (None, "sound")])
def test_garbage_where_every_copy_held_committed_records(
    tmp_path: Path, mark: int | None, verdict: str
) -> None:
    """A torn append lies above the high watermark; what lies below it was committed."""
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, [*FRONT, b"\xff" * 400], high_watermark=mark, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    (judgement,) = lost(tmp_path).of("judgement")
    assert judgement["verdict"] == verdict, judgement


def whole_dirs(root: Path, *, clean: bool = False) -> None:
    """Give each log directory what a broker leaves in it: a cleaner's checkpoint without entries, and a clean end."""
    for meta in root.rglob("meta.properties"):
        (meta.parent / "cleaner-offset-checkpoint").write_text("0\n0\n")
        if clean:
            (meta.parent / ".kafka_cleanshutdown").touch()


@pytest.mark.parametrize(
    ("live", "clean", "status", "verdict"),
    [
        ((1, 2), False, 3, "could_not_judge"),  # the checkpoint may have been copied later
        ((1, 2), True, 5, "lost"),
        ((), False, 5, "lost"),  # the power went before the tails were on the disks
    ],
)
def test_a_high_watermark_beyond_every_copy(
    live: tuple[int, ...], clean: bool, status: int, verdict: str, tmp_path: Path
) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=20, epochs=[[0, 0]])
    whole_dirs(tmp_path, clean=clean)
    znodes(tmp_path, 1, 0, [1, 2], live=live)
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (judgement["verdict"], ran.status) == (verdict, status)
    assert spans(ran) == ([(15, 20, "committed")] if verdict == "lost" else [])
    assert ran.codes().count("replica-incomplete-copy") == 2


def test_copies_made_without_their_segments_prove_no_loss(tmp_path: Path) -> None:
    """A pattern may have left *.log out, as .gitignore files do; the brokers were shut down in order."""
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=15, epochs=[[0, 0]])
    whole_dirs(tmp_path, clean=True)
    znodes(tmp_path, 1, 0, [1, 2])
    segments = [path for path in tmp_path.rglob("*.log") if path.stem.isdigit()]
    for path in segments:
        path.unlink()
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert segments
    assert (spans(ran), judgement["verdict"], ran.status) == ([], "could_not_judge", 5)
    assert [one["what"] for one in judgement["missing"]] == ["replica of broker 1"]


def test_one_high_watermark_that_others_contradict_proves_no_loss(tmp_path: Path) -> None:
    """No checksum covers a checkpoint: a flipped digit is no loss."""
    for broker_id, mark in ((1, 15), (2, 15_000_000)):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=mark, epochs=[[0, 0]])
    whole_dirs(tmp_path, clean=True)
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (spans(ran), judgement["verdict"], ran.status) == ([], "could_not_judge", 5)


def test_a_leader_epoch_that_starts_beyond_every_copy(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=15, epochs=[[0, 0], [3, 18]])
    znodes(tmp_path, 1, 3, [1, 2])
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (judgement["verdict"], ran.status) == ("could_not_judge", 3)
    assert "kctl collect" in judgement["missing"][0]["get"]


@pytest.mark.parametrize(("first_epoch", "verdict"), [(5, "sound"), (0, "could_not_judge")])
@pytest.mark.parametrize("clean", [False, True])
def test_leader_epochs_that_begin_below_the_first_segment(
    first_epoch: int, verdict: str, clean: bool, tmp_path: Path
) -> None:
    """Retention deletes the epochs with the segments; a hand deletes segments alone."""
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT[1:], base=5, high_watermark=15, epochs=[[0, first_epoch]])
    whole_dirs(tmp_path, clean=clean)
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] == verdict
    assert ran.status == (0 if verdict == "sound" else 3)


def test_epochs_below_the_log_of_a_tiered_topic_are_of_the_tier(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT[1:], base=5, high_watermark=15, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, **{"remote.storage.enable": "true"})
    assert lost(tmp_path).status == 0


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "leader-epoch-checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_said(name: str, tmp_path: Path) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, high_watermark=20, epochs=[[0, 0]])
    whole_dirs(tmp_path, clean=True)
    znodes(tmp_path, 1, 0, [1, 2])
    for path in tmp_path.rglob(name):
        path.write_bytes(b"\xff\x00garbage\n")
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert judgement["verdict"] in ("unreadable", "lost") and f"{name} cannot be read" in str(
        ran.of("finding")
    )


def retained(root: Path, broker_id: int, bases: tuple[int, ...], *, first: int) -> None:
    """A copy with these segments of five offsets each, whose epochs begin at `first`."""
    folder = (
        log_dir(root, broker_id, [batch(bases[0], bases[0] + 5)], base=bases[0], epochs=[[0, first]])
        / "orders-0"
    )
    for base in bases[1:]:
        (folder / f"{base:020d}.log").write_bytes(batch(base, base + 5))


@pytest.mark.parametrize("first", [10, 0])
def test_retention_at_work_while_a_directory_is_copied_is_no_damage(first: int, tmp_path: Path) -> None:
    """The first segment was copied, the second was gone by then; the other broker was asked later."""
    retained(tmp_path, 1, (0, 10, 15), first=first)
    retained(tmp_path, 2, (10, 15), first=10)
    whole_dirs(tmp_path)
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "delete")
    assert lost(tmp_path).status == 0


@pytest.mark.parametrize(
    ("leader", "isr", "live", "clean"),
    [(1, [1], (1,), False), (1, [1, 2], (), False), (2, [2], (), True), (None, [], (), True)],
)
def test_a_mark_of_a_copy_that_stands_for_others_proves_no_loss(
    leader: int | None, isr: list[int], live: tuple[int, ...], clean: bool, tmp_path: Path
) -> None:
    """The power went before the tail of broker 2 was on the disk; broker 1, which is not here, may have it."""
    log_dir(tmp_path, 2, FRONT, high_watermark=20, epochs=[[0, 0]])
    whole_dirs(tmp_path, clean=clean)
    if leader is not None:
        znodes(tmp_path, leader, 0, isr, live=live)
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (spans(ran), judgement["verdict"]) == ([], "could_not_judge")


@pytest.mark.parametrize(
    ("is_whole", "policy", "verdict"),
    [
        (False, None, "sound"),
        (True, None, "could_not_judge"),
        (False, "delete", "could_not_judge"),
        (True, "compact", "sound"),
    ],
)
def test_a_batch_that_every_copy_lacks(
    is_whole: bool, policy: str | None, verdict: str, tmp_path: Path
) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, [FRONT[0], FRONT[2]], high_watermark=15, epochs=[[0, 0]])
    if is_whole:
        whole_dirs(tmp_path)
    znodes(tmp_path, 1, 0, [1, 2])
    if policy:
        configured(tmp_path, policy)
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    said = [
        (row["base_offset"], row["last_offset"])
        for row in ran.of("finding")
        if row["code"] == "replica-gap-everywhere"
    ]
    assert (judgement["verdict"], said) == (verdict, [] if verdict == "sound" else [(5, 9)])


@pytest.mark.parametrize(("position", "verdict"), [(1, "damaged"), (2, "sound")])
def test_damage_of_a_compacted_topic_in_every_copy(position: int, verdict: str, tmp_path: Path) -> None:
    """What the other copy lacks a cleaner may have taken; what is damaged there as well is damaged."""
    damage = b"\xff" * len(FRONT[1])
    for broker_id, damaged in ((1, 1), (2, position)):
        parts = [damage if number == damaged else part for number, part in enumerate(FRONT)]
        log_dir(tmp_path, broker_id, parts, epochs=[[0, 0]], cleaner=True)
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "compact")
    (judgement,) = lost(tmp_path).of("judgement")
    assert judgement["verdict"] == verdict


def test_a_partition_whose_folders_are_gone_is_not_passed_over(tmp_path: Path) -> None:
    """Brokers' checkpoints name it, and the metadata; each is enough."""
    first, last = moments(tmp_path)
    for moment, zxid in ((first, 5), (last, 9)):
        for broker_id in (1, 2):
            log_dir(moment, broker_id, FRONT, high_watermark=15, epochs=[[0, 0]])
        znodes(moment, 1, 0, [1, 2], zxid=zxid)
    assert lost(tmp_path).status == 0
    for moment in (last, first):
        for folder in list(moment.rglob("orders-0")):
            other = folder.rename(folder.with_name("audit-0"))  # so that the log directory is not empty
            (other / "leader-epoch-checkpoint").unlink()
        ran = lost(tmp_path)
        judged = {row["topic"]: (row["verdict"], len(row["missing"])) for row in ran.of("judgement")}
        assert (judged["orders"], ran.status) == (("could_not_judge", 2), 3)
    for checkpoint in last.rglob("replication-offset-checkpoint"):
        checkpoint.write_text("0\n0\n")
    judged = {row["topic"]: row["verdict"] for row in lost(tmp_path).of("judgement")}
    assert judged["orders"] == "could_not_judge"


def moments(root: Path) -> tuple[Path, Path]:
    return root / "moments" / "first", root / "moments" / "last"


def test_what_an_earlier_copy_holds_and_the_leader_lacks_is_evidence(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, FRONT, high_watermark=15, epochs=[[0, 0]])
        log_dir(last, broker_id, FRONT[:2], high_watermark=10, epochs=[[0, 0], [2, 10]])
    znodes(first, 1, 0, [1, 2], zxid=5)
    znodes(last, 2, 2, [1, 2], zxid=9)
    (row,) = lost(tmp_path).of("loss")
    assert (row["from_offset"], row["to_offset"], row["class"]) == (10, 15, "committed")
    assert row["recoverable_from"] == [
        {"moment": "first", "broker_id": 1},
        {"moment": "first", "broker_id": 2},
    ]
    assert {"isr_presence", "high_watermark_checkpoint"} <= {e["kind"] for e in row["evidence"]}


@pytest.mark.parametrize("topic_id", [None, "AAAAAAAAAAAAAAAAAAAAAQ"])
def test_an_isr_below_the_minimum_commits_before_3_7(tmp_path: Path, topic_id: str | None) -> None:
    """A topic of ZooKeeper without an id is of brokers before 2.8; one with an id may be of 3.7."""
    first, last = moments(tmp_path)
    log_dir(first, 1, FRONT, epochs=[[0, 0]])
    log_dir(last, 2, FRONT[:2], epochs=[[0, 0], [2, 10]])
    znodes(first, 1, 0, [1], zxid=5)
    znodes(last, 2, 2, [2], zxid=9)
    for export in (first / "znodes.jsonl", last / "znodes.jsonl"):
        config = {"version": 1, "config": {"min.insync.replicas": "2"}}
        lines = [json.loads(line) for line in export.read_text().splitlines()]
        if topic_id:
            lines[0]["data"] = encoded({"version": 3, "topic_id": topic_id, "partitions": {"0": [1, 2]}})
        lines.append({"path": "/config/topics/orders", "data": encoded(config), "czxid": 1})
        export.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert spans(lost(tmp_path)) == [(10, 15, "unknown" if topic_id else "committed")]


def test_a_leader_does_not_shorten_its_log_within_an_epoch(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, FRONT, epochs=[[0, 0]])
        log_dir(last, broker_id, FRONT[:2], epochs=[[0, 0]])
    znodes(first, 1, 0, [1, 2], zxid=5)
    znodes(last, 1, 0, [1, 2], zxid=9)
    ran = lost(tmp_path)
    assert ran.of("loss") == []
    assert set(ran.codes("warning")) == {"replica-present-incomplete"}


def told(folder: Path, leader: int, leader_epoch: int, isr: list[int]) -> None:
    """What brokers told of the partition: nothing of when the topic was made."""
    state = {"leader": leader, "leader_epoch": leader_epoch, "replicas": [1, 2], "isr": isr}
    lines = [
        {"kind": "cluster", "cluster_id": "one-cluster-000000000"},
        *({"kind": "broker", "broker_id": id, "is_alive": True} for id in (1, 2)),
        {"kind": "topic", "topic": "orders", "topic_id": None, "configs": {}},
        {"kind": "partition", "topic": "orders", "partition": 0, **state},
    ]
    rows_of = (json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path = folder.joinpath(*TOLD_CLUSTER)
    path.parent.mkdir()
    path.write_text("".join(rows_of))


@pytest.mark.parametrize(
    ("first_told", "last_told"), [(True, False), (False, True), (True, True), (False, False)]
)
@pytest.mark.parametrize("epochs", [[[0, 0]], None])
def test_brokers_that_do_not_tell_when_a_topic_was_made_do_not_say_that_it_was_made_again(
    tmp_path: Path, epochs: list[list[int]] | None, first_told: bool, last_told: bool
) -> None:
    for folder, is_told, count, zxid in zip(
        moments(tmp_path), (first_told, last_told), (3, 2), (5, 9), strict=True
    ):
        batches = [FRONT[at] if epochs else message(at) for at in range(count)]
        for broker_id in (1, 2):
            other = log_dir(folder, broker_id, batches, epochs=epochs).joinpath("other-0")
            other.mkdir()
            (other / f"{0:020}.log").write_bytes(
                batch(0, zxid * 100)
            )  # so that the last moment is the newest
        if is_told:
            told(folder, 1, 0, [1, 2])
        else:
            znodes(folder, 1, 0, [1, 2], zxid=zxid)
    ran = lost(tmp_path)
    assert ran.of("loss") == []
    assert set(ran.codes("warning")) == {"replica-present-incomplete"}


@pytest.mark.parametrize("is_again", [True, False])
def test_a_tail_of_a_topic_that_was_made_again_is_of_no_present_leadership(
    tmp_path: Path, is_again: bool
) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, FRONT, epochs=[[0, 0]])
        log_dir(last, broker_id, FRONT[:2], epochs=[[0, 0]])
    znodes(first, 1, 0, [1, 2], zxid=5)
    znodes(last, 1, 0, [1, 2], zxid=9, created=7 if is_again else 1)
    assert bool(lost(tmp_path).of("loss")) is is_again


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_record_of_a_superseded_epoch_is_lost_also_where_the_cleaner_left_a_hole(
    tmp_path: Path, is_one_batch: bool
) -> None:
    cut = [batch(15, 20, "a", 1)] if is_one_batch else [batch(o, o + 1, "a", 1) for o in range(15, 20)]
    log_dir(tmp_path, 1, [*FRONT, *cut], epochs=[[0, 0], [1, 15]])
    now = [FRONT[0], FRONT[2], batch(16, 17, "b", 3), batch(20, 22, "b", 3)]  # [5, 10) was cleaned
    log_dir(tmp_path, 2, now, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2], live=(2,))
    ran = lost(tmp_path, "--compacted", "orders")
    assert [(a, b) for a, b, _ in spans(ran)] == [(15, 20)]
    assert (ran.of("loss")[0]["replaced"], ran.of("loss")[0]["missing"]) == ([[16, 17]], [[15, 16], [17, 20]])


def test_what_the_same_epoch_held_the_cleaner_took(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 3)], epochs=[[0, 0], [3, 15]])
    now = [FRONT[0], batch(16, 17, "a", 3), batch(20, 22, "b", 3)]
    log_dir(tmp_path, 2, now, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2], live=(2,))
    assert lost(tmp_path, "--compacted", "orders").of("loss") == []


def test_a_topic_made_again_lost_nothing(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, FRONT, epochs=[[0, 0]], topic_id=TOPIC_IDS[0])
        log_dir(last, broker_id, [batch(0, 3, "new")], epochs=[[0, 0]], topic_id=TOPIC_IDS[1])
    znodes(first, 1, 0, [1, 2], zxid=5)
    znodes(last, 1, 0, [1, 2], zxid=9)
    ran = lost(tmp_path)
    assert ran.of("loss") == []
    # Deleting a topic and making it again is ordinary work: told once a moment, and nothing is wrong.
    assert (ran.codes(), ran.status) == (["replica-topic-of-before"], 0)


def test_copies_of_two_topics_at_one_moment_are_told_apart(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [batch(0, 3, "new")], epochs=[[0, 0]], topic_id=TOPIC_IDS[1])
    log_dir(
        tmp_path, 2, FRONT, epochs=[[0, 0]], topic_id=TOPIC_IDS[0]
    )  # it was away when the topic was deleted
    znodes(tmp_path, 1, 0, [1], live=(1,))
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes("warning")) == ([], ["replica-topic-recreated"])


def test_copies_of_another_cluster_are_left_out(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    log_dir(first, 1, FRONT, epochs=[[0, 0]], cluster="another-cluster-000000")
    log_dir(last, 1, FRONT[:1], epochs=[[0, 0], [1, 5]])
    znodes(first, 1, 0, [1], zxid=5)
    znodes(last, 1, 1, [1], zxid=9)
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes("warning")[-1]) == ([], "replica-clusters-mixed")


def test_before_topic_ids_the_znodes_tell_a_new_topic(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, FRONT)
        log_dir(last, broker_id, [batch(0, 3, "new")])
    znodes(first, 1, 0, [1, 2], zxid=5, created=2)
    znodes(last, 1, 0, [1, 2], zxid=9, created=8)
    assert lost(tmp_path).of("loss") == []


def test_no_leader_writes_the_first_offset_of_an_epoch_twice(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [batch(0, 3, "new")], high_watermark=3, epochs=[[0, 0]])
    log_dir(tmp_path, 2, FRONT, high_watermark=15, epochs=[[0, 0]])  # it was away when the topic was deleted
    ran = lost(tmp_path, "--leader", "1")
    assert (ran.of("loss"), ran.codes("warning")) == ([], ["replica-topic-recreated"])


@pytest.mark.parametrize(
    ("old_ms", "new_ms", "is_other"), [(1_000, 9_000, True), (6_000, 9_000, False), (1_000, 2_000, False)]
)
def test_records_older_than_the_topic_are_of_another(
    tmp_path: Path, old_ms: int, new_ms: int, is_other: bool
) -> None:
    """The last case: producers made the times up, and say nothing."""
    old = write_batch([Record(o, old_ms, b"k", b"old") for o in range(5)], partition_leader_epoch=0)
    new = write_batch([Record(o, new_ms, b"k", b"new") for o in range(3)], partition_leader_epoch=3)
    log_dir(tmp_path, 1, [new], epochs=[[3, 0]])
    log_dir(tmp_path, 2, [old], epochs=[[0, 0]])
    znodes(tmp_path, 1, 3, [1], live=(1,), created_ms=5_000)
    ran = lost(tmp_path)
    assert spans(ran) == ([] if is_other else [(0, 5, "unknown")])
    assert ran.codes("warning") == (["replica-topic-recreated"] if is_other else [])


def back_dated(epoch: int = 0, *, magic: int = 2) -> list[bytes]:
    """Records of a time before the topic was made, as a mirror writes them."""
    if magic < 2:
        return [write_message(magic, o, b"k", b"old", timestamp=1_000 + o) for o in range(5)]
    return [write_batch([Record(o, 1_000, b"k", b"old") for o in range(5)], partition_leader_epoch=epoch)]


@pytest.mark.parametrize("now", [[], [batch(0, 3, "new", 0)]])
def test_one_topic_id_is_one_topic_whatever_times_the_records_have(tmp_path: Path, now: list[bytes]) -> None:
    log_dir(tmp_path, 1, now, epochs=[[0, 0]], topic_id=TOPIC_IDS[0])
    log_dir(tmp_path, 2, back_dated(), epochs=[[0, 0]], high_watermark=5, topic_id=TOPIC_IDS[0])
    znodes(tmp_path, 1, 2, [1], live=(1,), created_ms=5_000)
    ran = lost(tmp_path)
    assert [(a, b) for a, b, _ in spans(ran)] == [(0, 5)]
    assert "replica-topic-recreated" not in ran.codes()


@pytest.mark.parametrize("now", [[], [batch(0, 3, "new", 0)]])
def test_who_was_in_the_isr_held_the_topic_whatever_times_the_records_have(
    tmp_path: Path, now: list[bytes]
) -> None:
    """A broker alone that lost its disk may lead on in the same epoch: no controller saw it go."""
    first, last = moments(tmp_path)
    log_dir(first, 1, back_dated(), epochs=[[0, 0]], high_watermark=5)
    log_dir(last, 1, now, epochs=[[0, 0]])
    for number, moment in enumerate((first, last)):
        led_in = 0 if now else number  # within one leadership an empty copy is an incomplete one
        znodes(moment, 1, led_in, [1], live=(1,), zxid=5 + number, created_ms=5_000)
    ran = lost(tmp_path)
    assert [(a, b) for a, b, _ in spans(ran)] == [(0, 5)]
    assert "replica-topic-of-before" not in ran.codes()


@pytest.mark.parametrize(
    ("magic", "leader_epoch", "is_other"), [(2, 3, True), (2, 4, False), (1, 0, True), (1, 1, False)]
)
def test_an_empty_leader_of_a_later_epoch_may_have_lost_its_disk(
    tmp_path: Path, magic: int, leader_epoch: int, is_other: bool
) -> None:
    log_dir(tmp_path, 1, [])
    epochs = [[3, 0]] if magic == 2 else None
    log_dir(tmp_path, 2, back_dated(3, magic=magic), epochs=epochs, high_watermark=5)
    znodes(tmp_path, 1, leader_epoch, [1], live=(1,), created_ms=5_000)
    ran = lost(tmp_path)
    assert spans(ran) == ([] if is_other else [(0, 5, "unknown")])
    assert ran.codes("warning") == (["replica-topic-recreated"] if is_other else [])


def test_one_epoch_at_offset_0_of_two_moments_is_another_topic_or_a_power_failure(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    log_dir(first, 1, FRONT, epochs=[[0, 0]], high_watermark=15)
    later = [Record(o, 1 << 42, b"k", b"new") for o in range(3)]
    log_dir(last, 1, [write_batch(later, partition_leader_epoch=0)], epochs=[[0, 0]])
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes("warning")) == (
        [],
        ["replica-topic-recreated"],
    )  # not silent: nobody knows


def test_before_times_and_epochs_a_broker_that_is_no_replica_tells(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [message(o, magic=0) for o in range(3)])
    log_dir(tmp_path, 3, [message(o, "old", magic=0) for o in range(9)])
    znodes(tmp_path, 1, 0, [1, 2])  # assigned to 1 and 2
    ran = lost(tmp_path)
    assert (ran.of("loss"), ran.codes("warning")) == ([], ["replica-topic-recreated"])


def test_before_times_and_epochs_nobody_knows_without_znodes(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [message(o, magic=0) for o in range(3)])
    log_dir(tmp_path, 3, [message(o, "old", magic=0) for o in range(9)], high_watermark=9)
    assert spans(lost(tmp_path, "--leader", "1")) == [(0, 9, "unknown")]


def test_before_times_and_epochs_znodes_of_one_moment_tell_nothing_of_another(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    for broker_id in (1, 2):
        log_dir(first, broker_id, [message(o, "old", magic=0) for o in range(9)], high_watermark=9)
        log_dir(last, broker_id, [message(o, magic=0) for o in range(12)], high_watermark=12)
    znodes(first, 1, 3, [1, 2])
    assert spans(lost(tmp_path)) == [(0, 9, "unknown")]


def test_a_deleted_topic_lost_nothing(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    log_dir(first, 1, FRONT, epochs=[[0, 0]])
    log_dir(first, 2, FRONT, epochs=[[0, 0]])
    log_dir(last, 1, [])
    znodes(first, 1, 0, [1, 2], zxid=5)
    line = {"path": "/brokers/topics/other", "data": encoded({"version": 1, "partitions": {}}), "czxid": 9}
    last.mkdir(parents=True, exist_ok=True)
    (last / "znodes.jsonl").write_text(json.dumps(line) + "\n")
    assert lost(tmp_path).of("loss") == []
    ran = rows("replica", "explain", tmp_path, "--topic", "orders", "--partition", 0, "--offset", 3)
    assert ran.status == 0 and [row["text"].partition(":")[0] for row in ran.rows] == ["the topic is deleted"]


def test_the_leaders_missing_copy_is_said(tmp_path: Path) -> None:
    log_dir(tmp_path, 2, FRONT, epochs=[[0, 0]])
    log_dir(tmp_path, 3, FRONT, epochs=[[0, 0]])
    znodes(tmp_path, 1, 0, [1, 2, 3])
    assert lost(tmp_path).codes("warning") == ["replica-leader-copy-missing"]


def test_without_znodes_the_highest_epoch_leads(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 3)], epochs=[[0, 0], [3, 15]])
    (row,) = lost(tmp_path).of("loss")
    assert (row["from_offset"], row["to_offset"], row["lost_in_epoch"]) == (15, 20, 3)
    # A leader that was named comes first.
    (other,) = lost(tmp_path, "--leader", 1).of("loss")
    assert (other["from_offset"], other["to_offset"]) == (15, 17)


def test_two_losses_at_the_same_offsets_are_two_rows(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(
        tmp_path, 2, [*FRONT, batch(15, 17, "b", 3), batch(17, 19, "b", 4)], epochs=[[0, 0], [3, 15], [4, 17]]
    )
    log_dir(
        tmp_path, 3, [*FRONT, batch(15, 17, "b", 3), batch(17, 18, "c", 6)], epochs=[[0, 0], [3, 15], [6, 17]]
    )
    znodes(tmp_path, 3, 6, [3], live=(3,))
    found = {(r["from_offset"], r["to_offset"], r["lost_in_epoch"]) for r in lost(tmp_path).of("loss")}
    assert found == {(15, 20, 3), (17, 19, 6)}


LINES = {
    "controller": "[2026-11-21 10:00:0{s},000] TRACE [Controller id=2 epoch=1] Changed partition orders-0 from "
    "OfflinePartition to OnlinePartition with state LeaderAndIsr(leader={leader}, leaderEpoch={epoch}, "
    "isr=List({isr}), zkVersion=1) (state.change.logger)",
}


def decisions(root: Path, *ones: tuple[int, int, str]) -> None:
    folder = root / "broker-2" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        LINES["controller"].format(s=number, leader=leader, epoch=epoch, isr=isr)
        for number, (leader, epoch, isr) in enumerate(ones)
    ]
    (folder / "state-change.log").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("before", "cause"),
    [
        ([(1, 1, "1"), (-1, 2, "1")], "unclean_election"),
        ([(1, 1, "1"), (-1, 2, "")], "unclean_election"),  # 0.8.2 to 1.0 leave the ISR empty
        ([(1, 1, "1,2"), (-1, 2, "1,2")], "unknown"),  # clean, and nothing says why it lacked them
    ],
)
def test_whether_the_election_was_unclean(tmp_path: Path, before: Any, cause: str) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 3)], epochs=[[0, 0], [3, 15]])
    decisions(tmp_path, (1, 0, "1,2"), *before, (2, 3, "2"))
    (row,) = lost(tmp_path).of("loss")
    assert row["cause"] == cause
    assert (row["written_by"], row["dropped_by"], row["lost_in_epoch"]) == (1, 2, 3)


@pytest.mark.parametrize(("has_logs", "cause"), [(True, "unclean_election"), (False, "unknown")])
def test_a_leader_without_logs_may_have_taken_a_broker_back_unseen(
    tmp_path: Path, has_logs: bool, cause: str
) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 2)], epochs=[[0, 0], [2, 15]])
    decisions(tmp_path, (1, 0, "1,2"), (1, 1, "1"), (2, 2, "2"))
    if has_logs:
        (tmp_path / "broker-1" / "logs").mkdir()
        line = "[2026-11-21 09:59:00,000] INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)\n"
        (tmp_path / "broker-1" / "logs" / "server.log").write_text(line)
    (row,) = lost(tmp_path).of("loss")
    assert row["cause"] == cause


def test_the_isr_of_a_moment_may_have_grown_before_the_next_election(tmp_path: Path) -> None:
    first, last = moments(tmp_path)
    log_dir(first, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(last, 2, [*FRONT, batch(15, 17, "b", 2)], epochs=[[0, 0], [2, 15]])
    znodes(first, 1, 1, [1], zxid=5)
    znodes(last, 2, 2, [2], zxid=9)
    (row,) = lost(tmp_path).of("loss")
    assert (row["cause"], row["class"]) == ("unknown", "committed")  # then 1 alone was in sync, and had them


def test_missing_decisions_leave_the_cause_unknown(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 7)], epochs=[[0, 0], [7, 15]])
    decisions(tmp_path, (1, 1, "1"), (2, 7, "2"))
    (row,) = lost(tmp_path).of("loss")
    assert row["cause"] == "unknown"
    assert "decisions_missing" in {e["kind"] for e in row["evidence"]}


@pytest.mark.parametrize(("high_watermark", "is_lost"), [(15, False), (17, True)])
def test_a_tail_that_a_leader_had_when_it_was_told_to_stop(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, high_watermark: int, is_lost: bool
) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 17, "a")], high_watermark=high_watermark, epochs=[[0, 0]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 1)], epochs=[[0, 0], [1, 15]])
    decisions(tmp_path, (1, 0, "1,2"), (2, 1, "2"))
    log = tmp_path / "broker-2" / "logs" / "state-change.log"
    log.write_text(log.read_text().replace("from OfflinePartition", "from OnlinePartition"))
    line = "[2026-11-21 10:00:00,990] INFO [Controller id=2] Shutting down broker 1 (kafka.controller.KafkaController)\n"
    log.with_name("controller.log").write_text(line)
    ran = lost(tmp_path)
    # What was never committed, its producers with acks=all were told to send again; what was, is lost all the same.
    assert spans(ran) == [(15, 17, "committed" if is_lost else "uncommitted")]
    assert ran.of("loss")[0]["cause"] == ("unknown" if is_lost else "handover")
    assert ran.codes() == ([] if is_lost else ["replica-tail-of-handover"])
    assert ran.status == (5 if is_lost else 0)
    assert lost(tmp_path, "--acks", "all").status == ran.status
    assert lost(tmp_path, "--acks", "1").status == lost(tmp_path, "--acks", "0").status == 5
    last = list(loss_text([*ran.of("loss"), *ran.of("finding")], Page(80, color=False)))[-1]
    assert (
        "2 committed records are gone from the cluster" if is_lost else "were dropped at a handover"
    ) in last
    audit = rows("audit", "run", tmp_path, "--out", tmp_path_factory.mktemp("report"))
    said = audit.of("audit")[0]["verdict"]
    assert ("2 records are lost" if is_lost else "2 uncommitted records were dropped at a handover") in said
    assert audit.of("audit")[0]["lost_records"] == (2 if is_lost else 0)


def test_explain_names_both_records(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [*FRONT, batch(15, 20, "a", 1)], high_watermark=18, epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 3)], high_watermark=17, epochs=[[0, 0], [3, 15]])
    decisions(tmp_path, (1, 0, "1,2"), (1, 1, "1"), (-1, 2, "1"), (2, 3, "2"))
    znodes(tmp_path, 2, 3, [2], live=(2,))
    where = ("--topic", "orders", "--partition", 0, "--offset")
    ran = rows("replica", "explain", tmp_path, *where, 15)
    told = [row["text"] for row in ran.rows]
    assert "record A was written by broker 1 in leader epoch 1" in told
    assert "record B was written by broker 2 in leader epoch 3" in told
    assert any("the election was unclean" in text for text in told)
    assert any(row["file"] == "broker-2/logs/state-change.log" and row["line"] for row in ran.rows)
    gone = [r["text"] for r in rows("replica", "explain", tmp_path, *where, 19).rows]
    assert "broker 2 ends at 17" in gone
    kept = [r["text"] for r in rows("replica", "explain", tmp_path, *where, 3).rows]
    assert kept[-1] == "it is in the present lineage; nothing was lost at this offset"
    never = rows("replica", "explain", tmp_path, *where, 99)
    assert "nothing says that it was ever written" in never.rows[-1]["text"]
    assert never.status == 3 and "beyond the end of every copy: the longest ends at 20" in never.err


def test_explain_does_not_take_the_record_of_today_for_the_lost_one() -> None:
    """Nobody has the lost record any more; what is at its offset is another, and committed."""
    where = ("--topic", "trades", "--partition", 2, "--offset", 22)
    ran = rows("replica", "explain", recording("incidents/pauses-2.8"), *where)
    told = {
        what: [r["text"] for r in ran.rows if r["what"] == what]
        for what in ("written", "committed", "lost", "led")
    }
    assert told["written"] == [
        "record A, of which no copy is left, was written by broker 3 in leader epoch 1",
        "record B was written by broker 1 in leader epoch 3",
    ]
    assert told["committed"] and all(text.startswith("record B was committed") for text in told["committed"])
    assert [text.partition(":")[0] for text in told["lost"]] == ["record A, uncommitted"]
    assert told["led"] == ["record B is in the present lineage"]


def test_explain_behind_what_a_loss_is_known_to_have_reached() -> None:
    where = ("--topic", "zed", "--partition", 0, "--offset", 25)
    ran = rows("replica", "explain", recording("drills/zombie-2.4"), *where)
    (lost,) = [row["text"] for row in ran.rows if row["what"] == "lost"]
    assert "no evidence says how far it reached" in lost
    assert ran.rows[0]["text"].startswith("record A, if there was one, was written by broker 3")


def test_explaining_what_is_not_here_is_an_error(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    ran = kctl("replica", "explain", tmp_path, "--topic", "nothing", "--partition", "0", "--offset", "1")
    assert (ran.status, len(ran.errors)) == (3, 1)
    assert ran.err.startswith("kctl: no copy of nothing-0 is in the evidence\n")


def test_a_znode_export_that_cannot_be_read_is_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    log_dir(tmp_path, 2, FRONT)
    (tmp_path / "znodes.jsonl").write_text('{"path": "/brokers/ids"}\n{"path": 7}\n')
    ran = rows("replica", "compare", tmp_path)
    assert ran.status == 5
    assert "no znode at line 2" in ran.of("finding")[0]["message"]
    assert [row["verdict"] for row in ran.of("verdict")] == ["equal"]


def test_a_consumers_commit_of_an_older_epoch_proves_a_loss_that_no_copy_holds(tmp_path: Path) -> None:
    folder = log_dir(tmp_path, 1, [*FRONT, batch(15, 17, "b", 3)], epochs=[[0, 0], [3, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 3)], epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 1, 3, [1, 2])
    group, topic = b"readers", b"orders"
    key = b"\0\1" + len(group).to_bytes(2, "big") + group + len(topic).to_bytes(2, "big") + topic + bytes(4)

    def value(offset: int, epoch: int, committed_ms: int = 10_000) -> bytes:
        fields = (
            offset.to_bytes(8, "big")
            + epoch.to_bytes(4, "big", signed=True)
            + b"\0\0"
            + committed_ms.to_bytes(8, "big")
        )
        return b"\0\3" + fields

    commits = folder / "__consumer_offsets-0"
    commits.mkdir()
    log = commits / f"{0:020d}.log"
    log.write_bytes(write_batch([Record(0, 10_000, key, value(19, 1))]))
    (row,) = lost(tmp_path, "--topic", "orders").of("loss")
    assert (row["from_offset"], row["to_offset"], row["class"]) == (15, 19, "committed")
    assert (row["replaced"], row["missing"]) == ([[15, 17]], [[17, 19]])
    assert row["recoverable_from"] == []
    assert "group 'readers' committed offset 19" in [e["text"] for e in row["evidence"]]
    # Of the epoch that is present, or without one, a commit proves nothing.
    for epoch in (3, -1):
        log.write_bytes(write_batch([Record(0, 10_000, key, value(40, epoch))]))
        assert lost(tmp_path, "--topic", "orders").of("loss") == []


@pytest.mark.parametrize(("leader", "leader_epoch"), [(1, 0), (-1, 1)])
def test_a_high_watermark_of_before_proves_a_loss_that_no_copy_holds(
    tmp_path: Path, leader: int, leader_epoch: int
) -> None:
    first, last = moments(tmp_path)
    log_dir(first, 2, FRONT[:2], high_watermark=15, epochs=[[0, 0]])  # it lost its tail, and was down
    log_dir(last, 2, [*FRONT[:2], batch(10, 17, "b", 2)], high_watermark=17, epochs=[[0, 0], [2, 10]])
    znodes(first, leader, leader_epoch, [1, 2], live=(), zxid=5)
    znodes(last, 2, 2, [2], zxid=9)
    (row,) = lost(tmp_path).of("loss")
    assert (row["from_offset"], row["to_offset"], row["class"]) == (10, 15, "committed")
    assert (row["replaced"], row["recoverable_from"]) == ([[10, 15]], [])
    assert "high_watermark_checkpoint" in {e["kind"] for e in row["evidence"]}
    # Under one leadership a shorter log is an incomplete copy.
    znodes(first, 2, 2, [2], live=(), zxid=5)
    assert lost(tmp_path).of("loss") == []


def without(name: str, root: Path, *gone: str) -> Path:
    """A copy of a recording without its story, and without some of it."""
    folder = root / "evidence"
    shutil.copytree(recording(name), folder, ignore=shutil.ignore_patterns("story.json", "expected", "tools"))
    for pattern in gone:
        for path in list(folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


@pytest.mark.parametrize("name", ["unclean-0.10.2", "unclean-2.8", "unclean-3.9"])
def test_an_unclean_election_that_nobody_can_cost_is_said(name: str, tmp_path: Path) -> None:
    """Everything of broker 1, which was the ISR, is missing: its disk and its logs."""
    folder = without(f"incidents/{name}", tmp_path, "broker-1", "moments/*/broker-1")
    ran = lost(folder, "--topic", "ledger")
    assert ran.of("loss") == []
    assert set(ran.codes("warning")) == {"replica-unclean-cost-unknown"}
    assert ran.status == 5


def test_a_leader_whose_own_logs_are_missing_was_not_elected_uncleanly_for_it(tmp_path: Path) -> None:
    """Only broker 2 says that 1 was in its ISR again; but a controlled shutdown moves leaders within the ISR alone."""
    ran = lost(without("incidents/unclean-0.10.2", tmp_path, "broker-2/logs"))
    assert [(a, b) for a, b, _ in spans(ran)] == [(40, 70), (40, 50), (40, 60)]
    assert ran.codes("warning", "error") == []


def test_moments_that_nothing_dates_prove_no_loss(tmp_path: Path) -> None:
    """Messages of format 0 have no timestamps: which copy is the older is not known without znodes."""
    folder = without("incidents/life-0.8.2", tmp_path, "moments/*/znodes.jsonl")
    ran = lost(folder)
    assert (ran.of("loss"), ran.codes("warning", "error"), ran.status) == ([], [], 0)
    assert ran.codes("info") == ["replica-moments-undated"]


def rebuilt_from_a_tier(root: Path, epochs: list[list[int]], **identity: Any) -> list[Path]:
    """Two brokers that held [0, 20), and hold [30, 35) of epoch 3 now; the log directories of now."""
    first, last = moments(root)
    now = []
    for broker_id in (1, 2):
        held = [*FRONT, batch(15, 20, "a", 1)]
        log_dir(first, broker_id, held, high_watermark=20, epochs=[[0, 0], [1, 15]], **identity)
        kept = [batch(30, 35, "b", 3)]
        now.append(log_dir(last, broker_id, kept, base=30, high_watermark=35, epochs=epochs, **identity))
    znodes(first, 1, 1, [1, 2], zxid=5)
    znodes(last, 2, 3, [1, 2], zxid=9)
    return now


@pytest.mark.parametrize(("cut_at", "lost_range"), [(17, [(17, 20, "committed")]), (20, [])])
def test_a_leader_whose_own_log_begins_beyond_them_has_dropped_records_too(
    cut_at: int, lost_range: list[tuple[int, int, str]], tmp_path: Path
) -> None:
    """What lies below it is in a tier; the leader's epochs tell where the copy's were cut (nemesis 3.9, seed 41)."""
    for now in rebuilt_from_a_tier(tmp_path, [[0, 0], [1, 15], [3, cut_at]]):
        (now / "log-start-offset-checkpoint").write_text("0\n1\norders 0 0\n")
    ran = lost(tmp_path)
    assert spans(ran) == lost_range
    assert [row["replaced"] for row in ran.of("loss")] == [[list(one[:2])] for one in lost_range]


TOPIC_ID = "LWgrMmVrT0a__7a4SasuPA"


def remote_log(data: Path, *segments: tuple[int, int, int]) -> None:
    """The metadata of a tier in a log directory: finished copies as [from, to) of an epoch."""
    folder = data / "__remote_log_metadata-0"
    folder.mkdir()
    where = TopicIdPartition(TOPIC_ID, "orders", 0)
    values: list[bytes] = []
    for number, (start, end, epoch) in enumerate(segments):
        name = f"{'A' * 20}{number}A"
        copied = SegmentMetadata(
            where,
            name,
            start,
            end - 1,
            1,
            5,
            5,
            ((epoch, start),),
            99,
            None,
            SegmentState.COPY_SEGMENT_STARTED,
        )
        done = SegmentMetadataUpdate(where, name, 1, 6, None, SegmentState.COPY_SEGMENT_FINISHED)
        values += [write_remote_log_metadata(copied), write_remote_log_metadata(done)]
    log = b"".join(write_batch([Record(offset, 5, None, value)]) for offset, value in enumerate(values))
    (folder / f"{0:020d}.log").write_bytes(log)


def test_a_tiered_log_that_nobody_wrote_the_start_of_begins_with_its_epochs(tmp_path: Path) -> None:
    """A replica that was built from the tier a moment ago is no reason to call it retention (nemesis 3.9, seed 41)."""
    for now in rebuilt_from_a_tier(tmp_path, [[3, 8]], topic_id=TOPIC_ID):
        remote_log(now, (8, 30, 3))
    assert spans(lost(tmp_path)) == [(8, 20, "committed")]


def test_what_the_metadata_of_an_earlier_moment_name_was_committed(tmp_path: Path) -> None:
    """A disk of which the metadata of the tier were lost too was there once (nemesis 4.1, seed 46)."""
    first, last = moments(tmp_path)
    held = log_dir(
        first, 1, [batch(20, 25, "a", 1)], base=20, high_watermark=25, epochs=[[1, 0]], topic_id=TOPIC_ID
    )
    remote_log(held, (0, 20, 1))
    remote_log(log_dir(last, 1, [batch(0, 5, "b", 3)], high_watermark=5, epochs=[[3, 0]], topic_id=TOPIC_ID))
    znodes(first, 1, 1, [1], zxid=5)
    znodes(last, 1, 3, [1], zxid=9)
    ran = lost(tmp_path)
    assert {(start, end) for start, end, kind in spans(ran) if kind == "committed"} == {(0, 20), (20, 25)}
    (row,) = [row for row in ran.of("loss") if row["from_offset"] == 0]
    assert [held["to_offset"] for held in row["recoverable_from_tier"]] == [20]


@pytest.mark.slow
def test_a_tier_remembers_what_every_replica_lost() -> None:
    from tests.conftest import recording

    (row,) = lost(recording("tier/e-unclean-election")).of("loss")
    assert (row["topic"], row["from_offset"], row["to_offset"]) == ("sensor.raw", 100, 260)
    assert (row["class"], row["cause"]) == ("committed", "unclean_election")
    assert {e["kind"] for e in row["evidence"]} >= {"remote_segment", "election"}
    for healthy in ("a-healthy", "bc-retention-topic-delete", "d-failed-copies", "g2-seeded-leader"):
        assert lost(recording(f"tier/{healthy}")).of("loss") == []


def test_a_folder_that_awaits_its_deletion_does_not_name_the_topic(tmp_path: Path) -> None:
    for broker_id in (1, 2):
        now = log_dir(
            tmp_path,
            broker_id,
            [batch(0, 5, "b", 3)],
            high_watermark=5,
            epochs=[[3, 0]],
            topic_id=TOPIC_ID,
        )
    remote_log(now, (0, 20, 1))
    znodes(tmp_path, 1, 3, [1, 2])
    assert spans(lost(tmp_path, "--topic", "orders")) == [(0, 20, "committed")]
    earlier = now / f"orders-0.{'0123456789abcdef' * 2}-delete"
    earlier.mkdir()
    (earlier / f"{0:020d}.log").write_bytes(FRONT[0])
    (earlier / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_IDS[0]}")
    assert spans(lost(tmp_path, "--topic", "orders")) == [(0, 20, "committed")]


@pytest.mark.parametrize(
    ("replicas", "status", "verdict"),
    [((1,), 5, "damaged"), ((1, 2), 3, "could_not_judge"), (None, 3, "could_not_judge")],
)
def test_damage_of_the_one_copy_there_is(
    tmp_path: Path, replicas: tuple[int, ...] | None, status: int, verdict: str
) -> None:
    """What the other replicas hold in its place is not known where they are not there."""
    log_dir(tmp_path, 1, [FRONT[0], b"\xff" * len(FRONT[1]), FRONT[2]], epochs=[[0, 0]])
    if replicas:
        znodes(tmp_path, 1, 0, list(replicas), replicas=replicas)
    ran = lost(tmp_path)
    (judgement,) = ran.of("judgement")
    assert (ran.status, judgement["verdict"]) == (status, verdict)


def test_damage_where_the_other_copy_holds_nothing(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, [FRONT[0], b"\xff" * len(FRONT[1]), FRONT[2]], epochs=[[0, 0]])
    other = log_dir(tmp_path, 2, [FRONT[0]], epochs=[[0, 0]])
    (other / "orders-0" / f"{10:020d}.log").write_bytes(FRONT[2])
    znodes(tmp_path, 1, 0, [1, 2])
    ran = lost(tmp_path)
    assert (ran.status, [row["verdict"] for row in ran.of("judgement")]) == (5, ["damaged"])


def test_logs_that_end_before_the_epoch_of_a_copy_do_not_show_every_election(tmp_path: Path) -> None:
    facts = LossFacts(
        TopicPartition("orders", 0),
        copies=frozenset({1}),
        assigned=frozenset({1, 2}),
        evidence_brokers=frozenset({1}),
        leaderships=[LeaderTerm(0, 1, (1, 2), how="creation")],
        has_broker_logs=True,
    )
    assert judge_loss(facts, ()).verdict is Verdict.SOUND
    assert judge_loss(replace(facts, newest_epoch=0), ()).verdict is Verdict.SOUND
    assert judge_loss(replace(facts, newest_epoch=5), ()).verdict is Verdict.COULD_NOT_JUDGE


def test_what_nobody_looked_for_is_not_called_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies that part very often: the search for what producers sent again ends."""
    log_dir(tmp_path, 1, [batch(0, 5), batch(5, 10, "b", 1)], epochs=[[0, 0], [1, 5]])
    log_dir(tmp_path, 2, [batch(0, 5), batch(5, 10, "c", 0)], high_watermark=10, epochs=[[0, 0]])
    znodes(tmp_path, 1, 1, [1, 2])
    assert {found for _, _, found in spans(lost(tmp_path))} == {"committed"}
    monkeypatch.setattr(lost_parts, "sent_again", lambda *_: None)
    assert {found for _, _, found in spans(lost(tmp_path))} == {"unknown"}


def test_the_search_for_what_was_sent_again_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_dir(tmp_path, 1, [batch(0, 5), batch(5, 10, "b", 1)], epochs=[[0, 0], [1, 5]])
    log_dir(tmp_path, 2, [batch(0, 5), batch(5, 10, "c", 0)], high_watermark=10, epochs=[[0, 0]])
    znodes(tmp_path, 1, 1, [1, 2])
    asked: list[object] = []
    again = lost_parts.sent_again

    def watched(parts: LostParts, copy: Copy, start: int, end: int) -> object:
        first, budget = again(parts, copy, start, end), parts.records_to_search
        assert again(parts, copy, start, end) == first
        assert parts.records_to_search == budget < lost_parts.MOST_SEARCHED_OF_A_PARTITION  # looked for once
        parts.records_to_search = 0
        asked.append(again(parts, copy, start, end))
        return first

    monkeypatch.setattr(lost_parts, "sent_again", watched)
    lost(tmp_path)
    assert asked == [None]


def test_what_lies_in_remote_storage_alone_is_said_not_to_be_judged() -> None:
    judged = rows("replica", "loss", recording("tier/a-healthy") / "brokers", "--topic", "carts").of(
        "judgement"
    )
    assert [(row["verdict"], row["reason"].partition("; ")[2]) for row in judged] == [
        ("sound", f"offsets [0, {end}) lie in remote storage alone, which `kctl remote audit` judges")
        for end in (160, 160)
    ]


def test_damage_of_a_cleaned_log_that_the_other_copy_holds_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleaned log has as many gaps as batches; those that are not counted are no reason to doubt what is there."""
    monkeypatch.setattr(replica_log, "MOST_GAPS", 2)
    monkeypatch.setattr(lost_parts, "MOST_GAPS", 2)
    front = [batch(0, 1), batch(2, 3), batch(4, 5), batch(6, 10), batch(10, 15)]
    damaged = [*front[:3], b"\xff" * len(front[3]), front[4]]
    for broker_id, batches in ((1, damaged), (2, front)):
        log_dir(tmp_path, broker_id, batches, epochs=[[0, 0]], cleaner=True)
    znodes(tmp_path, 1, 0, [1, 2])
    configured(tmp_path, "compact")
    (judgement,) = lost(tmp_path).of("judgement")
    assert judgement["verdict"] == "sound"


def test_the_segment_behind_a_hole_is_named_where_folders_are_given(tmp_path: Path) -> None:
    options: list[object] = []
    for broker_id in (1, 2):
        without_segment(tmp_path, broker_id, 5, 10)
        folder = tmp_path / f"broker-{broker_id}" / "data" / "orders-0"
        options += [folder]
    znodes(tmp_path, 1, 0, [1, 2])
    ran = rows("replica", "loss", *options, tmp_path / "znodes.jsonl")
    files = [row["file"] for row in ran.of("finding") if row["code"].endswith("-everywhere")]
    assert files and all("None" not in str(file) for file in files), ran.out


@pytest.mark.parametrize(("cut_to", "cause"), [(12, "power_failure_tail"), (20, "unknown")])
def test_a_log_that_was_cut_within_a_batch_ends_below_its_high_watermark_without_a_power_failure(
    tmp_path: Path, cut_to: int, cause: str
) -> None:
    """The batch goes as a whole, and the broker goes on from where it meant to cut (1.1, seed 913)."""
    log_dir(tmp_path, 1, FRONT, epochs=[[0, 0], [2, 15]], high_watermark=20)
    log_dir(tmp_path, 2, [*FRONT, batch(15, 20, "a", 1)], epochs=[[0, 0], [1, 15]], high_watermark=20)
    (tmp_path / "broker-1" / "logs").mkdir()
    (tmp_path / "broker-1" / "logs" / "server.log").write_text(
        "[2026-11-28 03:57:50,770] INFO [Log partition=orders-0, dir=/data] "
        f"Truncating to offset {cut_to} (kafka.log.Log)\n"
    )
    (row,) = lost(tmp_path, "--leader", 1).of("loss")
    assert (row["from_offset"], row["to_offset"], row["cause"]) == (15, 20, cause)
