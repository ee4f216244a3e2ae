"""Indexes that are compared for many small logs at once give, row for row, what each gives by itself."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from kctl.checks import indexes, parallel
from kctl.checks.report import CheckOptions
from kctl.checks.small_logs import read_indexes
from kctl.evidence.discover import discover
from kctl.findings import indexes as codes
from kctl.log.folder import read_folder
from kctl.verification.verify import verify

T = 1_700_000_000_000
Row = dict[str, object]


def found(folder: Path, *, alone: bool = False) -> list[Row]:
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            patch.setattr(parallel, "LARGEST", 0)
        return [item.row() for item in verify(discover([folder]), CheckOptions(), jobs=1)]


def segment(folder: Path, rng: random.Random, base: int, *, is_last: bool) -> int:
    """A segment with entries as brokers write them, for some batches at once; gives the next base offset."""
    data, offsets, times, newest, at = b"", b"", b"", -1, base
    entered = -1
    for _ in range(rng.randrange(1, 12)):
        position = len(data)
        for _ in range(rng.randrange(1, 4)):
            count = rng.randrange(1, 4)
            stamp = T + at + rng.randrange(-3, 4)
            data += write_batch(
                [Record(at + n, stamp, None, bytes(rng.randrange(900))) for n in range(count)]
            )
            at += count
            if stamp > newest:
                newest, last_of_newest = stamp, at - 1
        if position and rng.random() < 0.8:
            offsets += struct.pack(">ii", at - 1 - base, position)
            if newest > entered:
                times += struct.pack(">qi", newest, last_of_newest - base)
                entered = newest
    if newest > entered and (not is_last or rng.random() < 0.5):
        times += struct.pack(">qi", newest, last_of_newest - base)
    for suffix, content in (("log", data), ("index", offsets), ("timeindex", times)):
        (folder / f"{base:020d}.{suffix}").write_bytes(content)
    return at


def folders(data: Path, rng: random.Random) -> None:
    for number in range(4):
        partition = data / f"orders-{number}"
        partition.mkdir(parents=True)
        base = rng.choice((0, 7, 1 << 40))
        segments = rng.randrange(1, 4)
        for n in range(segments):
            base = segment(partition, rng, base, is_last=n == segments - 1)
    if rng.random() < 0.5:
        (data / ".kafka_cleanshutdown").write_bytes(b"")


def mutate(content: bytearray, width: int, rng: random.Random) -> None:
    at = rng.randrange(len(content) or 1)
    entry = at // width * width
    what = rng.randrange(7)
    if what == 0 and content:
        content[at] ^= 1 << rng.randrange(8)
    elif what == 1:
        del content[at:]
    elif what == 2:
        content += bytes(width * rng.randrange(1, 5))
    elif what == 3:
        content[entry : entry + width] = bytes(width)
    elif what == 4:
        content[entry:entry] = content[entry : entry + width]
    elif what == 5:
        del content[entry : entry + width]
    else:
        other = rng.randrange(len(content) or 1) // width * width
        one = content[entry : entry + width]
        content[entry : entry + width], content[other : other + width] = content[other : other + width], one


@pytest.mark.parametrize("seed", range(150))
def test_damaged_indexes_give_the_same(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folders(tmp_path / "data", rng)
    kinds = [("index", 8), ("timeindex", 12), ("timeindex", 12), ("log", 61)]
    for _ in range(rng.randrange(4)):
        suffix, width = rng.choice(kinds)
        file = rng.choice(sorted(tmp_path.rglob(f"*.{suffix}")))
        content = bytearray(file.read_bytes())
        mutate(content, width, rng)
        file.write_bytes(content)
    if rng.random() < 0.1:
        rng.choice(sorted(tmp_path.rglob("*.*index"))).unlink()
    assert found(tmp_path / "data") == found(tmp_path / "data", alone=True)


def test_an_entry_of_a_batch_that_is_not_the_newest_is_wrong(tmp_path: Path) -> None:
    for number in range(2):
        partition = tmp_path / "data" / f"orders-{number}"
        partition.mkdir(parents=True)
        stamps = (T + 9, T + 5, T + 12)
        data = b"".join(write_batch([Record(at, stamp, None, b"x")]) for at, stamp in enumerate(stamps))
        (partition / f"{0:020d}.log").write_bytes(data)
        (partition / f"{0:020d}.index").write_bytes(b"")
        entries = struct.pack(">qi", T + 5, 1) + struct.pack(">qi", T + 12, 2)
        (partition / f"{0:020d}.timeindex").write_bytes(entries)
        (partition / f"{3:020d}.log").write_bytes(b"")
    rows = found(tmp_path / "data")
    assert rows == found(tmp_path / "data", alone=True)
    wrong = [row for row in rows if row.get("code") == codes.TIME_INDEX_ENTRY_WRONG.code]
    assert [row["message"] for row in wrong] == [
        f"Entry 0 (timestamp {T + 5}, offset 1): timestamp {T + 9} comes before it."
    ] * 2


@pytest.mark.parametrize("seed", range(20))
def test_sound_indexes_are_compared_at_once(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders(tmp_path / "data", random.Random(seed))
    expected = found(tmp_path / "data", alone=True)

    def used_entries(data: bytes, width: int) -> indexes.Used:
        raise AssertionError("an index is compared by itself")

    monkeypatch.setattr(indexes, "used_entries", used_entries)
    assert found(tmp_path / "data") == expected


@pytest.mark.parametrize("seed", range(200))
def test_what_is_found_to_be_right_has_nothing_that_one_comparison_finds(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folders(tmp_path, rng)
    from kctl.scan.options import ScanOptions
    from kctl.scan.pieces import PieceScan
    from kctl.scan.source import LocalFile

    segments = [one for folder in sorted(tmp_path.glob("orders-*")) for one in read_folder(folder).segments]
    headers = []
    for one in segments:
        assert one.log and one.index and one.time_index
        for file, width in ((one.index, 8), (one.time_index, 12)):
            if rng.random() < 0.4:
                content = bytearray(file.path.read_bytes())
                mutate(content, width, rng)
                file.path.write_bytes(content)
        (piece,) = PieceScan(LocalFile(one.log.path), ScanOptions())
        headers.append(piece.headers)
    for one, batches, read in zip(segments, headers, read_indexes(segments, headers), strict=True):
        if read.is_sound and read.offset is not None:
            alone = indexes.OffsetIndexCheck(read.offset, one.base_offset)
            alone.feed(batches)
            assert not (alone.misplaced() | alone.unordered()).any() and alone.used.dirty_entry is None
            assert not alone.used.is_padded and not alone.used.fragment
        if read.sound_times and read.time is not None:
            times = indexes.TimeIndexCheck(read.time, one.base_offset)
            times.feed(batches)
            at_once = indexes.SoundTimeIndex(read.time, one.base_offset, read.sound_times)
            assert not (times.misplaced() | times.unordered() | times.forgetful()).any()
            assert not times.used.is_padded and not times.used.fragment
            assert times.target.tolist() == at_once.target.tolist()
            assert times.is_complete() == at_once.is_complete()
