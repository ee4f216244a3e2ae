"""Every way to break a log directory that we thought of, and the finding that says so. Nothing breaks silently."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

from formats.binary.crc import crc32c
from kctl.findings import Severity
from kctl.log.folder import Folder
from tests.conftest import recording, rows
from tests.kctl.checks.broken import (
    CLEAN,
    CLEAN_1,
    KILLED,
    KRAFT,
    KRAFT_4,
    OLD,
    Seen,
    batches,
    change,
    copy_of,
    cut,
    flip,
    remove,
    reseal,
    segment,
)

Edit = Callable[[Path], object]
ROLLED = "rolled-segs-0"
TXN = "txn-mix-0"
KRAFT_SNAPSHOT = f"__cluster_metadata-0/{33:020d}-{1:010d}.checkpoint"
EPOCHS = "leader-epoch-checkpoint"


def rolled(base: int, suffix: str = ".log") -> str:
    return f"{ROLLED}/{segment(base, suffix)}"


def snapshot_edit(position: int, data: bytes) -> Edit:
    """Change a snapshot and make its CRC right again."""

    def edit(folder: Path) -> None:
        path = folder / TXN / segment(108, ".snapshot")
        whole = bytearray(path.read_bytes())
        whole[position : position + len(data)] = data
        whole[2:6] = pack(">I", crc32c(bytes(whole[6:])))
        path.write_bytes(whole)

    return edit


def snapshot_without_busy_producer(folder: Path) -> None:
    path = folder / TXN / segment(108, ".snapshot")
    body = pack(">i", 1) + path.read_bytes()[56:]
    path.write_bytes(pack(">hI", 1, crc32c(body)) + body)


def rename(old: str, new: str) -> Edit:
    return lambda folder: (folder / old).rename(folder / new)


def write(name: str, text: str) -> Edit:
    return lambda folder: (folder / name).write_text(text)


def replace_text(name: str, old: str, new: str) -> Edit:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def swap_batches(folder: Path) -> None:
    path = folder / rolled(0)
    (a, m), (b, n) = batches(path)[2:4]
    data = path.read_bytes()
    path.write_bytes(data[:a] + data[b : b + n] + data[a : a + m] + data[b + n :])


def cut_out_a_batch(folder: Path) -> None:
    path = folder / "orders.plain-1" / segment(0)
    start, size = batches(path)[4]
    data = path.read_bytes()
    path.write_bytes(data[:start] + data[start + size :])


def repeat_a_batch(folder: Path) -> None:
    path = folder / rolled(0)
    start, size = batches(path)[2]
    data = path.read_bytes()
    path.write_bytes(data[: start + size] + data[start:])


def marked_deleted(folder: Path, base: int) -> None:
    """What a broker does to a segment before it deletes it."""
    for path in list(folder.glob(f"{segment(base, '')}*")):
        path.rename(f"{path}.deleted")


DAMAGE: dict[str, tuple[tuple[str, str], Edit, str]] = {
    # the log itself
    "a byte of a record": (CLEAN, lambda d: flip(d / rolled(72), 200), "batch-crc-mismatch"),
    "a byte of the stored crc": (CLEAN, lambda d: flip(d / rolled(72), 17), "batch-crc-mismatch"),
    "magic 2 to 3": (CLEAN, lambda d: change(d / rolled(72), 16, b"\x03"), "batch-illegal-magic"),
    "magic 2 to 1": (CLEAN, lambda d: change(d / rolled(72), 16, b"\x01"), "batch-illegal-magic"),
    "length of 2^31-1": (CLEAN, lambda d: change(d / rolled(72), 8, b"\x7f\xff\xff\xff"), "batch-illegal-length"),
    "length negative": (CLEAN, lambda d: change(d / rolled(72), 8, b"\xff"), "batch-illegal-length"),
    "base offset ahead": (CLEAN, lambda d: flip(d / rolled(72), batches(d / rolled(72))[3][0] + 6), "batch-base-offset-wrong"),
    "base offset far ahead": (CLEAN, lambda d: flip(d / rolled(72), batches(d / rolled(72))[3][0] + 2), "batch-base-offset-wrong"),
    "base offset of the first batch": (CLEAN, lambda d: flip(d / rolled(72), 7, 8), "segment-offset-below-name"),
    "base offset of the last batch": (CLEAN, lambda d: flip(d / rolled(204), batches(d / rolled(204))[-1][0] + 6), "offsets-missing"),
    "leader epoch back": (CLEAN, lambda d: change(d / rolled(72), batches(d / rolled(72))[3][0] + 12, pack(">i", 1)), "batch-leader-epoch-goes-back"),
    "leader epoch ahead of both sides": (CLEAN, lambda d: flip(d / rolled(72), batches(d / rolled(72))[3][0] + 12), "batch-leader-epoch-runs-ahead"),
    "leader epoch far ahead": (CLEAN, lambda d: flip(d / rolled(204), batches(d / rolled(204))[-1][0] + 12), "batch-leader-epoch-wrong"),
    "leader epoch ahead": (CLEAN, lambda d: flip(d / rolled(204), batches(d / rolled(204))[-1][0] + 15), "epoch-entry-missing"),
    "record count, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 57, pack(">i", 999)), "batch-records-count"),
    "record count less, sealed": (CLEAN, lambda d: reseal(d / TXN / segment(0), 2, 57, pack(">i", 1)), "record-malformed"),
    "record count 0 before records, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 57, pack(">i", 0)), "batch-records-count"),
    "a producer id alone, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 43, pack(">q", 77)), "batch-producer-fields"),
    "a transaction of nobody, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 22, b"\x10"), "batch-producer-fields"),
    "a control batch of nobody, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 22, b"\x20"), "batch-producer-fields"),
    "codec 7, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 22, b"\x07"), "batch-unknown-codec"),
    "codec claimed, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 22, b"\x01"), "batch-decompression-failed"),
    "max timestamp, sealed": (CLEAN, lambda d: reseal(d / rolled(72), 2, 35, pack(">q", 1)), "batch-max-timestamp"),
    "zeros in the middle": (CLEAN, lambda d: change(d / rolled(72), batches(d / rolled(72))[3][0], bytes(500)), "segment-zeroed"),
    "zeros over one header": (CLEAN, lambda d: change(d / rolled(72), batches(d / rolled(72))[3][0], bytes(61)), "segment-zeroed"),
    "garbage at the end": (CLEAN, lambda d: change(d / rolled(204), batches(d / rolled(204))[-2][0], b"\xa5\x5a\x3c" * 80), "batch-illegal-magic"),
    "two batches change places": (CLEAN, swap_batches, "batch-offsets-go-back"),
    "a batch repeated": (CLEAN, repeat_a_batch, "batch-offsets-go-back"),
    "a batch cut out": (CLEAN, cut_out_a_batch, "offsets-missing"),
    "a batch cut out, by its index": (CLEAN, cut_out_a_batch, "index-entry-misplaced"),
    "sequence changed, sealed": (CLEAN_1, lambda d: reseal(d / "idem_potent-0" / segment(0), 3, 53, pack(">i", 0)), "producer-sequence-duplicate"),
    "producer epoch back, sealed": (CLEAN_1, lambda d: reseal(d / "idem_potent-0" / segment(0), 2, 51, pack(">h", -1)), "producer-epoch-goes-back"),
    # segments among themselves
    "a segment in the middle gone": (CLEAN, lambda d: [remove(p) for p in (d / ROLLED).glob(f"{segment(72, '')}*")], "segment-missing"),
    "a segment in the middle renamed by hand": (CLEAN, lambda d: marked_deleted(d / ROLLED, 72), "segment-missing"),
    "two segments in the middle gone": (CLEAN, lambda d: [remove(p) for base in (72, 138) for p in (d / ROLLED).glob(f"{segment(base, '')}*")], "segment-missing"),
    "files that were not flushed emptied": (KILLED, lambda d: [replace_text("recovery-point-offset-checkpoint", "rolled-segs 0 204", "rolled-segs 0 72")(d), *(cut(d / rolled(base, suffix), 0) for base in (72, 138) for suffix in (".log", ".index", ".timeindex"))], "segment-missing"),
    "a log gone, its indexes left": (CLEAN, lambda d: remove(d / rolled(72)), "index-orphaned"),
    "the last segment gone": (CLEAN, lambda d: [remove(p) for p in (d / ROLLED).glob(f"{segment(204, '')}*")], "high-watermark-above-log-end"),
    "the last segment gone, as flushed": (CLEAN, lambda d: [remove(p) for p in (d / ROLLED).glob(f"{segment(204, '')}*")], "recovery-point-above-log-end"),
    "a middle segment cut short": (CLEAN, lambda d: cut(d / rolled(72), batches(d / rolled(72))[-3][0]), "segment-missing"),
    "the last segment cut short": (CLEAN, lambda d: cut(d / rolled(204), batches(d / rolled(204))[-3][0]), "high-watermark-above-log-end"),
    "a segment emptied": (CLEAN, lambda d: cut(d / rolled(72), 0), "segment-missing"),
    "a segment copied under another name": (CLEAN, lambda d: shutil.copy(d / rolled(72), d / rolled(73)), "segment-overlaps"),
    "a segment copied behind": (CLEAN, lambda d: shutil.copy(d / rolled(72), d / rolled(300)), "segment-offset-below-name"),
    "a segment renamed ahead": (CLEAN, rename(rolled(72), rolled(80)), "segment-offset-below-name"),
    "a segment renamed back": (CLEAN, rename(rolled(72), rolled(60)), "segment-overlaps"),
    "a torn page in a middle segment": (CLEAN, lambda d: cut(d / rolled(72), -10), "segment-missing"),
    # indexes
    "an index offset": (CLEAN, lambda d: flip(d / rolled(72, ".index"), 19), "index-entry-misplaced"),
    "an index position": (CLEAN, lambda d: flip(d / rolled(72, ".index"), 23), "index-entry-misplaced"),
    "an index position past the end": (CLEAN, lambda d: flip(d / rolled(72, ".index"), 20), "index-entry-misplaced"),
    "an index entry repeated": (CLEAN, lambda d: change(d / rolled(72, ".index"), 8, (d / rolled(72, ".index")).read_bytes()[:8]), "index-entry-unordered"),
    "an index cut inside an entry": (CLEAN, lambda d: cut(d / rolled(72, ".index"), -3), "index-fragment"),
    "an index gone": (CLEAN, lambda d: remove(d / rolled(72, ".index")), "index-missing"),
    "the only time index gone": (CLEAN, lambda d: [shutil.rmtree(p) if p.is_dir() and p.name != "codec-mix-0" else None for p in d.iterdir()] + [remove(p) for p in (d / "codec-mix-0").glob("*.timeindex")], "index-missing"),
    "a time index gone": (CLEAN, lambda d: remove(d / rolled(72, ".timeindex")), "index-missing"),
    "the index of another segment": (CLEAN, lambda d: shutil.copy(d / rolled(0, ".index"), d / rolled(72, ".index")), "index-entry-misplaced"),
    "an entry behind the zeros": (KILLED, lambda d: change(d / rolled(204, ".index"), -8, pack(">ii", 9, 9)), "index-padding-dirty"),
    "an entry before right ones, untrimmed": (KILLED, lambda d: flip(d / rolled(204, ".index"), 11), "index-entry-misplaced"),
    "the last entry beyond the log": (CLEAN, lambda d: change(d / rolled(204, ".index"), -8, pack(">i", 99999)), "index-hides-records"),
    "the last position past the log": (CLEAN, lambda d: change(d / rolled(204, ".index"), -4, pack(">i", 9999999)), "index-hides-records"),
    "the last position in a batch": (CLEAN, lambda d: flip(d / rolled(204, ".index"), -1), "index-stops-loading"),
    "a time": (CLEAN, lambda d: flip(d / rolled(72, ".timeindex"), 31), "timeindex-entry-wrong"),
    "an offset of a time": (CLEAN, lambda d: flip(d / rolled(72, ".timeindex"), 35, 16), "timeindex-entry-wrong"),
    "a time repeated": (CLEAN, lambda d: change(d / rolled(72, ".timeindex"), 12, (d / rolled(72, ".timeindex")).read_bytes()[:12]), "timeindex-entry-unordered"),
    "a time index cut": (CLEAN, lambda d: cut(d / rolled(72, ".timeindex"), -5), "index-fragment"),
    "an aborted transaction forgotten": (CLEAN, lambda d: cut(d / TXN / segment(0, ".txnindex"), -34), "txnindex-entry-missing"),
    "a transaction index gone": (CLEAN, lambda d: remove(d / TXN / segment(0, ".txnindex")), "txnindex-entry-missing"),
    "a transaction's producer": (CLEAN, lambda d: flip(d / TXN / segment(0, ".txnindex"), 9), "txnindex-entry-wrong"),
    "a transaction's first offset": (CLEAN, lambda d: flip(d / TXN / segment(0, ".txnindex"), 17), "txnindex-entry-wrong"),
    "a transaction's end": (CLEAN, lambda d: flip(d / TXN / segment(0, ".txnindex"), 25), "txnindex-entry-wrong"),
    "a last stable offset": (CLEAN, lambda d: flip(d / TXN / segment(0, ".txnindex"), 33), "txnindex-entry-wrong"),
    "a transaction index version": (CLEAN, lambda d: flip(d / TXN / segment(0, ".txnindex"), 1), "txnindex-version"),
    "a rolled index cut": (CLEAN, lambda d: cut(d / rolled(72, ".index"), 40), "index-entries-missing"),
    "a rolled index of zeros": (CLEAN, lambda d: (d / rolled(72, ".index")).write_bytes(bytes(80)), "index-untrimmed"),
    "a rolled time index of zeros": (CLEAN, lambda d: (d / rolled(72, ".timeindex")).write_bytes(bytes(120)), "index-untrimmed"),
    "a rolled time index without its last entry": (CLEAN, lambda d: cut(d / rolled(72, ".timeindex"), -12), "timeindex-incomplete"),
    "a rolled time index emptied": (CLEAN, lambda d: cut(d / rolled(72, ".timeindex"), 0), "timeindex-incomplete"),
    "a transaction index cut": (CLEAN, lambda d: cut(d / TXN / segment(0, ".txnindex"), -5), "index-fragment"),
    # snapshots
    "a byte of a snapshot": (CLEAN, lambda d: flip(d / TXN / segment(108, ".snapshot"), 30), "snapshot-crc-mismatch"),
    "a snapshot cut": (CLEAN, lambda d: cut(d / TXN / segment(108, ".snapshot"), 50), "snapshot-malformed"),
    "an empty snapshot file": (CLEAN, lambda d: cut(d / TXN / segment(108, ".snapshot"), 0), "snapshot-malformed"),
    "a snapshot's version": (CLEAN, lambda d: flip(d / TXN / segment(108, ".snapshot"), 1), "snapshot-malformed"),
    "a snapshot longer than its count": (CLEAN, lambda d: (d / TXN / segment(108, ".snapshot")).open("ab").write(b"x"), "snapshot-crc-mismatch"),
    "a sequence in a sealed snapshot": (CLEAN, snapshot_edit(20, pack(">i", 7)), "snapshot-entry-wrong"),
    "a producer epoch in a sealed snapshot": (CLEAN, snapshot_edit(18, pack(">h", 7)), "snapshot-entry-wrong"),
    "a last offset in a sealed snapshot": (CLEAN, snapshot_edit(24, pack(">q", 3)), "snapshot-entry-wrong"),
    "a coordinator epoch in a sealed snapshot": (CLEAN, snapshot_edit(44, pack(">i", 9)), "snapshot-entry-wrong"),
    "an open transaction in a sealed snapshot": (CLEAN, snapshot_edit(48, pack(">q", 3)), "snapshot-entry-wrong"),
    "another producer in a sealed snapshot": (CLEAN, snapshot_edit(10, pack(">q", 77)), "snapshot-producer-unknown"),
    "a producer left out": (CLEAN, snapshot_without_busy_producer, "snapshot-producer-missing"),
    "a snapshot beyond the end": (CLEAN, rename(f"{TXN}/{segment(108, '.snapshot')}", f"{TXN}/{segment(999, '.snapshot')}"), "snapshot-beyond-log-end"),
    # epochs
    "an epoch's start": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n2 70\n4 300\n"), "epoch-entry-wrong"),
    "an epoch that begins within a batch of the one before": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n2 70\n4 359\n"), "epoch-entry-wrong"),
    "an epoch's number": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n3 70\n4 360\n"), "epoch-entry-missing"),
    "no epochs": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n0\n"), "epoch-entry-missing"),
    "epochs beyond the end": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n2 70\n4 400\n"), "epoch-entry-beyond-end"),
    "epochs that fall": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n3\n5 0\n2 70\n4 360\n"), "epochs-not-monotonic"),
    "epochs of another count": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n3\n2 70\n4 360\n"), "checkpoint-count"),
    "epochs of another version": (CLEAN, write(f"aged_out-0/{EPOCHS}", "1\n2\n2 70\n4 360\n"), "checkpoint-malformed"),
    "epochs that are no numbers": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n2 x\n4 360\n"), "checkpoint-malformed"),
    "a negative epoch": (CLEAN, write(f"aged_out-0/{EPOCHS}", "0\n2\n-2 70\n4 360\n"), "checkpoint-malformed"),
    "the epochs file gone": (CLEAN, lambda d: remove(d / "aged_out-0" / EPOCHS), "epochs-file-missing"),
    # the directory
    "a high watermark too high": (CLEAN, replace_text("replication-offset-checkpoint", f"{ROLLED[:-2]} 0 248", f"{ROLLED[:-2]} 0 249"), "high-watermark-above-log-end"),
    "a recovery point too high": (CLEAN, replace_text("recovery-point-offset-checkpoint", "aged_out 0 360", "aged_out 0 361"), "recovery-point-above-log-end"),
    "a log start too high": (CLEAN, write("log-start-offset-checkpoint", "0\n1\naged_out 0 999\n"), "log-start-above-log-end"),
    "a cleaner point too high": (CLEAN, replace_text("cleaner-offset-checkpoint", "compact_me 0 332", "compact_me 0 999"), "cleaner-point-above-log-end"),
    "a negative high watermark": (CLEAN, replace_text("replication-offset-checkpoint", "0 248", "0 -1"), "checkpoint-negative-offset"),
    "a checkpoint of another count": (CLEAN, replace_text("replication-offset-checkpoint", "17", "18"), "checkpoint-count"),
    "a checkpoint cut": (CLEAN, lambda d: replace_text("replication-offset-checkpoint", "moving_log 0 300\n", "")(d), "checkpoint-count"),
    "a checkpoint cut in a line": (CLEAN, lambda d: cut(d / "replication-offset-checkpoint", -3), "checkpoint-malformed"),
    "a checkpoint of garbage": (CLEAN, lambda d: (d / "replication-offset-checkpoint").write_bytes(b"\xff\x00" * 50), "checkpoint-malformed"),
    "a line twice": (CLEAN, replace_text("replication-offset-checkpoint", "moving_log 0 300", "aged_out 0 360"), "checkpoint-duplicate"),
    "a folder Kafka refuses": (CLEAN, lambda d: (d / "lost+found").mkdir(), "log-dir-foreign-folder"),
    "meta.properties": (CLEAN, write("meta.properties", "version=7\n"), "meta-properties-malformed"),
    "an empty meta.properties": (CLEAN, write("meta.properties", ""), "meta-properties-malformed"),
    "meta.properties of garbage": (CLEAN, lambda d: (d / "meta.properties").write_bytes(b"\xff\x00" * 9), "meta-properties-malformed"),
    "meta.properties without a broker": (CLEAN, write("meta.properties", "version=0\n"), "meta-properties-malformed"),
    "partition.metadata": (CLEAN, lambda d: cut(d / ROLLED / "partition.metadata", 14), "partition-metadata-malformed"),
    "partition.metadata with another label": (CLEAN, lambda d: change(d / ROLLED / "partition.metadata", 11, b"topIc"), "partition-metadata-label"),
    "meta.properties with a flipped letter": (CLEAN, lambda d: change(d / "meta.properties", (d / "meta.properties").read_bytes().index(b"cluster.id=") + 14, b"\xda"), "meta-properties-unwritten"),
    "an empty partition.metadata": (CLEAN, lambda d: cut(d / ROLLED / "partition.metadata", 0), "partition-metadata-malformed"),
    "another topic's id": (CLEAN, lambda d: shutil.copy(d / ROLLED / "partition.metadata", d / "orders.plain-1" / "partition.metadata"), "topic-id-differs"),
    "quorum-state": (KRAFT, write("__cluster_metadata-0/quorum-state", '{"leaderId":1'), "quorum-state-malformed"),
    "a KRaft bootstrap snapshot": (KRAFT, lambda d: flip(d / "bootstrap.checkpoint", 83 + 70), "batch-crc-mismatch"),
    "a KRaft snapshot without its end": (KRAFT_4, lambda d: cut(d / KRAFT_SNAPSHOT, batches(d / KRAFT_SNAPSHOT)[-1][0]), "kraft-snapshot-incomplete"),
    "a KRaft snapshot without its beginning": (KRAFT_4, lambda d: (d / KRAFT_SNAPSHOT).write_bytes((d / KRAFT_SNAPSHOT).read_bytes()[batches(d / KRAFT_SNAPSHOT)[1][0] :]), "kraft-snapshot-incomplete"),
    "an empty KRaft snapshot": (KRAFT_4, lambda d: cut(d / KRAFT_SNAPSHOT, 0), "kraft-snapshot-incomplete"),
    "a bootstrap snapshot without its end": (KRAFT, lambda d: cut(d / "bootstrap.checkpoint", batches(d / "bootstrap.checkpoint")[-1][0]), "kraft-snapshot-incomplete"),
    "no KRaft snapshot up to the log's start": (KRAFT, lambda d: [remove(p) for name in (f"{segment(0, '')}*", "*.checkpoint") for p in (d / "__cluster_metadata-0").glob(name)], "kraft-snapshot-missing"),
    # tails
    "a torn tail after a clean shutdown": (CLEAN, lambda d: cut(d / rolled(204), -10), "clean-shutdown-torn"),
    "zeros after a clean shutdown": (CLEAN, lambda d: (d / rolled(204)).open("ab").write(bytes(400)), "clean-shutdown-torn"),
    "a middle segment of a compacted topic cut": (CLEAN, lambda d: cut(d / "compact_me-0" / segment(227), -5), "segment-ends-torn"),
    "every snapshot gone after a clean shutdown": (CLEAN, lambda d: [remove(p) for p in (d / TXN).glob("*.snapshot")], "snapshots-missing"),
    # magic 0 and 1
    "an old message": (OLD, lambda d: flip(d / "rolled-segs-0" / segment(0), 53 + 40), "batch-crc-mismatch"),
    "an index of old messages": (OLD, lambda d: flip(d / "rolled-segs-0" / segment(0, ".index"), 15), "index-entry-misplaced"),
    "a time index of old messages": (OLD, lambda d: flip(d / "rolled-segs-0" / segment(0, ".timeindex"), 19), "timeindex-entry-wrong"),
    # what is odd and not wrong
    "a transaction index of a later segment": (CLEAN, lambda d: [(d / ROLLED / segment(72, ".txnindex")).write_bytes((d / TXN / segment(0, ".txnindex")).read_bytes())], "txnindex-before-segment"),
    "a name without zeros": (CLEAN, rename(f"{TXN}/{segment(0)}", f"{TXN}/0.log"), "segment-name-short"),
    "an index lost and made anew empty": (CLEAN_1, lambda d: cut(d / "big-one-0" / segment(0, ".index"), 0), "index-empty"),
    "a file that Kafka does not know": (CLEAN, lambda d: (d / ROLLED / "notes.txt").write_text("?"), "folder-unknown-file"),
    "a checkpoint of no bytes": (CLEAN, lambda d: cut(d / "replication-offset-checkpoint", 0), "checkpoint-empty-file"),
    "a log start above the high watermark": (CLEAN, lambda d: [write("log-start-offset-checkpoint", "0\n1\naged_out 0 350\n")(d), replace_text("replication-offset-checkpoint", "aged_out 0 360", "aged_out 0 340")(d)], "log-start-above-high-watermark"),
    "a partition's folder gone": (CLEAN, lambda d: shutil.rmtree(d / ROLLED), "checkpoint-without-partition"),
    "a remote log snapshot": (CLEAN, lambda d: (d / ROLLED / "remote_log_snapshot").write_bytes(b"\0\1abc"), "remote-log-snapshot-malformed"),
    "a pipe among the segments": (CLEAN, lambda d: os.mkfifo(d / rolled(500)), "evidence-not-a-file"),
    "a link among the segments": (CLEAN, lambda d: (d / rolled(500)).symlink_to("/etc/hostname"), "evidence-link-not-followed"),
    # what a start makes of it
    "recovery cuts": (KILLED, lambda d: flip(d / rolled(204), 200), "startup-recovery-cuts"),
    "a start keeps": (CLEAN, lambda d: flip(d / rolled(72), 200), "startup-keeps-damage"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(name: str, tmp_path: Path) -> None:
    place, edit, code = DAMAGE[name]
    folder = copy_of(place, tmp_path)
    edit(folder)
    seen = Seen(folder)
    assert code in seen.codes(), seen.wrong


@pytest.mark.slow
@pytest.mark.parametrize("place", [CLEAN, CLEAN_1, KILLED, OLD, KRAFT], ids=lambda p: "/".join(p))
def test_what_the_damage_is_done_to_is_sound(place: tuple[str, str], tmp_path: Path) -> None:
    assert not Seen(copy_of(place, tmp_path)).wrong


def test_after_one_damaged_batch_every_other_is_counted_and_nothing_else_is_accused(tmp_path: Path) -> None:
    folder = copy_of(KILLED, tmp_path)
    before = Seen(folder).files[rolled(204)]
    start, size = batches(folder / rolled(204))[3]
    flip(folder / rolled(204), start + 70)
    seen = Seen(folder)
    after = seen.files[rolled(204)]
    assert (before.batches, before.damaged_bytes) == (after.batches, 0)
    assert after.damaged_bytes == size
    (finding,) = seen.of("batch-crc-mismatch")
    assert (finding.place.position, finding.place.size_in_bytes) == (start, size)
    (cuts,) = seen.of("startup-recovery-cuts")
    assert cuts.place.position == start
    assert seen.wrong == {"batch-crc-mismatch", "startup-recovery-cuts"}


def test_a_range_without_headers_is_exact_to_the_byte(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    path = folder / rolled(72)
    start = batches(path)[3][0]
    end = batches(path)[5][0]
    change(path, start, b"\x5a" * (end - start))
    seen = Seen(folder)
    (finding,) = [f for f in seen.findings if f.severity is Severity.ERROR]
    assert (finding.place.position, finding.place.size_in_bytes) == (start, end - start)
    assert seen.files[rolled(72)].damaged_bytes == end - start


def test_recovery_that_a_recovery_point_spares(tmp_path: Path) -> None:
    folder = copy_of(KILLED, tmp_path)
    flip(folder / rolled(0), 200)
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled-segs 0 150\n")
    assert Seen(folder).of("startup-keeps-damage")
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\nrolled-segs 0 50\n")
    (cuts,) = Seen(folder).of("startup-recovery-cuts")
    assert cuts.place.base_offset == 0


def test_leftovers_are_examined_and_said_to_be_what_they_are(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    for state in (".deleted", ".cleaned", ".swap"):
        shutil.copy(folder / rolled(72), folder / (rolled(72) + state))
    seen = Seen(folder)
    assert {"leftover-deleted", "leftover-cleaned", "leftover-swap"} <= seen.codes(Severity.INFO)
    assert not seen.wrong
    flip(folder / (rolled(72) + ".swap"), 200)
    (finding,) = Seen(folder).of("batch-crc-mismatch")
    assert finding.place.file == rolled(72) + ".swap"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delete", "stray", "future"])
def test_folders_that_are_not_live_are_examined(kind: str, tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    (folder / ROLLED).rename(folder / f"{ROLLED}.{'a' * 32}-{kind}")
    seen = Seen(folder)
    assert not seen.wrong
    assert "replica-not-live" in seen.codes(Severity.INFO)
    flip(folder / f"{ROLLED}.{'a' * 32}-{kind}" / segment(72), 200)
    assert "batch-crc-mismatch" in Seen(folder).wrong


def test_a_limit_of_findings_counts_the_rest(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    path = folder / rolled(72)
    for start, _ in batches(path):
        flip(path, start + 65)
    seen = Seen(folder, max_findings=3)
    of_file = [f for f in seen.findings if f.place.file == rolled(72)]
    assert len([f for f in of_file if f.code == "batch-crc-mismatch"]) == 3
    assert any(f.code == "more-findings" for f in of_file)


def test_a_segment_larger_than_kafka_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.checks.replica.LARGEST_SEGMENT", 3000)
    assert "segment-too-large" in Seen(copy_of(CLEAN, tmp_path)).wrong


def test_compaction_that_is_told_explains_gaps(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    cut_out_a_batch(folder)
    assert "offsets-missing" in Seen(folder).wrong
    assert "offsets-missing" not in Seen(folder, compacted=frozenset({"orders.plain"})).wrong


def test_a_replica_made_after_a_compaction_was_never_cleaned_itself(tmp_path: Path) -> None:
    """Batches that hold fewer records than offsets show that somebody's cleaner was there."""
    folder = copy_of(CLEAN, tmp_path)
    write("cleaner-offset-checkpoint", "0\n0\n")(folder)
    assert not Seen(folder).wrong


def test_gaps_where_no_cleaner_ever_ran_and_where_nobody_knows(tmp_path: Path) -> None:
    """A broker makes the file empty and writes it when it has cleaned; without the file nobody knows."""
    folder = copy_of(CLEAN, tmp_path)
    cut_out_a_batch(folder)
    cut(folder / "cleaner-offset-checkpoint", 0)
    assert "offsets-missing" in Seen(folder).wrong
    remove(folder / "cleaner-offset-checkpoint")
    seen = Seen(folder)
    assert "offsets-missing" not in seen.wrong
    (gap,) = [f for f in seen.of("batch-offset-gap") if f.place.topic == "orders.plain"]
    assert gap.severity is Severity.INFO


def test_a_cleaner_of_another_broker_explains_gaps(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    cut_out_a_batch(folder)
    both = tmp_path / "both"
    for name, cleaned in (("broker-1", "0\n0\n"), ("broker-2", "0\n1\norders.plain 1 9\n")):
        (both / name).mkdir(parents=True)
        shutil.copytree(folder / "orders.plain-1", both / name / "orders.plain-1")
        write("cleaner-offset-checkpoint", cleaned)(both / name)
    assert "offsets-missing" not in Seen(both).wrong
    shutil.rmtree(both / "broker-2")
    assert "offsets-missing" in Seen(both).wrong


@pytest.mark.parametrize(
    ("recorded", "place", "code"),
    [
        ("incidents/unclean-2.8", "moments/after/broker-1/data", "index-stale-tail"),
        ("segments/2.8.2", "data-clean/broker-11/logdir-0", "segment-gap"),
        ("segments/2.4.1", "data-clean/broker-7/logdir-0", "epochs-begin-late"),
        ("incidents/live-2.8", "moments/running/broker-1/data", "segment-torn-tail"),
    ],
)
def test_what_looks_wrong_and_is_not(recorded: str, place: str, code: str) -> None:
    seen = Seen(recording(recorded) / place)
    assert code in seen.codes(Severity.INFO)
    assert not seen.wrong


@pytest.mark.parametrize("place", ["diverge-0.10.2", "diverge-2.8"])
def test_a_log_that_lost_its_tail_in_a_recording(place: str) -> None:
    folder = recording(f"incidents/{place}") / "moments/dark/broker-2/data"
    assert Seen(folder).wrong == {"high-watermark-above-log-end"}


def test_a_damaged_copy_of_a_remote_index(tmp_path: Path) -> None:
    recorded = ("tier/a-healthy", "brokers/3/data")
    folder = copy_of(recorded, tmp_path)
    assert not Seen(folder).wrong
    cache = folder / "remote-log-index-cache"
    index = next(p for p in sorted(cache.glob("*.index")) if p.stat().st_size >= 24)
    change(index, 8, index.read_bytes()[:8])
    cut(next(iter(sorted(cache.glob("*.timeindex")))), -5)
    seen = Seen(folder)
    assert {"index-entry-unordered", "index-fragment"} <= seen.wrong
    assert all(f.place.remote_log_segment_id for f in seen.of("index-fragment"))


def test_a_folder_of_countless_files_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of(CLEAN, tmp_path)
    partition = next(path.parent for path in sorted(folder.rglob("leader-epoch-checkpoint")))
    whole = Seen(folder)
    for number in range(9):
        (partition / f"0-{number}").touch()
        (partition / f"1-{number}").symlink_to("nowhere")
    os.mkfifo(partition / "2-0")
    monkeypatch.setattr("kctl.log.folder.MOST_LISTED", 4)
    seen = Seen(folder)
    assert len(seen.of("folder-unknown-file")) == len(seen.of("evidence-link-not-followed")) == 4
    assert [finding.message.split()[0] for finding in seen.of("folder-files-left-out")] == ["11"]
    assert whole.files.keys() - seen.files.keys() == set()


def test_a_folder_of_countless_segments_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_of(CLEAN, tmp_path)
    monkeypatch.setattr("kctl.log.folder.MOST_SEGMENT_FILES", 2)
    seen = Seen(folder)
    assert seen.of("evidence-unreadable")
    assert all(
        "more than 2 files of segments" in finding.message for finding in seen.of("evidence-unreadable")
    )
    for words in (["segment", "verify"], ["replica", "loss"], ["audit", "run", "--out", tmp_path / "out"]):
        ran = rows(*words, folder)
        assert ran.status in (3, 5)
        assert "sound" not in {row["verdict"] for row in ran.of("judgement") if row["topic"] is not None}


def test_segments_are_listed_once_however_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looked at all of them for each took hours for a hundred thousand."""
    logs = Folder.logs.fget
    assert logs is not None
    asked = []
    monkeypatch.setattr(Folder, "logs", property(lambda folder: asked.append(folder) or logs(folder)))
    times = []
    for count in (20, 40):
        partition = tmp_path / f"{count}" / "orders-0"
        partition.mkdir(parents=True)
        for number in range(count):
            (partition / f"{number:020d}.log").touch()
        asked.clear()
        assert len(Seen(partition.parent).files) >= count
        times.append(len(asked))
    assert times[0] == times[1]


def cut_back(folder: Path, to: int) -> None:
    """As a follower's truncation leaves a compacted log: its first segments hold nothing any more."""
    (folder / "compact_me-0" / segment(92, ".snapshot")).rename(
        folder / "compact_me-0" / segment(to, ".snapshot")
    )
    for path in (folder / "compact_me-0").iterdir():
        if path.name[0].isdigit() and int(path.name[:20]) not in (0, to):
            path.unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (folder / name).write_text(f"0\n1\ncompact_me 0 {to}\n")
    (folder / "cleaner-offset-checkpoint").write_text("0\n1\ncompact_me 0 0\n")


def test_a_compacted_log_cut_back_between_its_records_has_lost_nothing(tmp_path: Path) -> None:
    folder = copy_of(KILLED, tmp_path)
    cut_back(folder, 50)
    seen = Seen(folder)
    assert not seen.wrong
    assert len(seen.of("checkpoint-in-compacted-gap")) == 2
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\ncompact_me 0 51\n")
    assert "recovery-point-above-log-end" in Seen(folder).wrong, "no snapshot says that the log was cut there"


def test_the_indexes_of_a_segment_that_a_start_recovers_are_not_missed(tmp_path: Path) -> None:
    """A start of 0.11 after a kill takes them away before it reads the log."""
    folder = copy_of(KILLED, tmp_path)
    for suffix in (".index", ".timeindex"):
        (folder / rolled(204, suffix)).unlink()
    seen = Seen(folder)
    assert not seen.wrong
    assert seen.of("indexes-await-recovery")
    (folder / ".kafka_cleanshutdown").touch()
    assert "index-missing" in Seen(folder).wrong


def test_the_newest_snapshot_is_empty_where_a_broker_was_killed_as_it_wrote_it(tmp_path: Path) -> None:
    folder = copy_of(KILLED, tmp_path)
    older, newest = (folder / ROLLED / segment(offset, ".snapshot") for offset in (138, 204))
    newest.write_bytes(b"")
    assert len(Seen(folder).of("snapshot-unwritten")) == 1 and not Seen(folder).wrong
    older.write_bytes(b"")
    assert "snapshot-malformed" in Seen(folder).wrong, "only the newest is being written"


@pytest.mark.slow
def test_an_empty_log_below_a_checkpoint_may_be_of_a_topic_made_anew(tmp_path: Path) -> None:
    folder = copy_of(KILLED, tmp_path)
    new = folder / "anew-0"
    new.mkdir()
    (new / segment(0, ".log")).write_bytes(b"")
    (new / segment(0, ".index")).write_bytes(bytes(4096))
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        text = (folder / name).read_text().splitlines()
        (folder / name).write_text("\n".join([text[0], str(int(text[1]) + 1), *text[2:], "anew 0 45"]) + "\n")
    for code in ("high-watermark-above-log-end", "recovery-point-above-log-end"):
        (finding,) = Seen(folder).of(code)
        assert (finding.severity, "made anew" in finding.message) == (Severity.WARNING, True)
    (new / segment(0, ".index")).write_bytes(b"\0\0\0\7\0\0\1\0")
    (finding,) = Seen(folder).of("high-watermark-above-log-end")
    assert "made anew" not in finding.message, "the log had records"
    (new / segment(0, ".index")).write_bytes(bytes(4096))
    (new / segment(45, ".snapshot")).write_bytes(b"")
    assert "made anew" not in Seen(folder).of("high-watermark-above-log-end")[0].message, "it reached 45"
    (new / segment(45, ".snapshot")).unlink()
    (new / segment(0, ".log")).write_bytes(bytes(4096))
    assert "made anew" not in Seen(folder).of("high-watermark-above-log-end")[0].message, (
        "zeros of a power failure"
    )
    (new / segment(0, ".log")).write_bytes(b"")
    (folder / ".kafka_cleanshutdown").touch()
    (finding,) = Seen(folder).of("high-watermark-above-log-end")
    assert (finding.severity, "made anew" in finding.message) == (Severity.ERROR, False), (
        "it was written last"
    )


def test_a_segment_that_a_broker_was_deleting_is_not_missing(tmp_path: Path) -> None:
    """Of a broker that ran: those before it were copied before retention came to them."""
    folder = copy_of(KILLED, tmp_path)
    marked_deleted(folder / ROLLED, 72)
    seen = Seen(folder)
    assert "segment-missing" not in seen.codes() and 72 in {
        one.place.base_offset for one in seen.of("segment-gap")
    }
