"""Verification over arbitrary edits of real files: it never raises, and every byte is good or damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.log.record_batch import CRC_STARTS_AT
from kctl.checks.indexes import OffsetIndexCheck, highest_so_far, rises, rows_within, used_entries
from kctl.checks.replica import check_replica
from kctl.checks.report import CheckOptions, ReplicaTask, Report
from kctl.findings import Place
from kctl.scan.options import Level
from tests.conftest import examples, recording
from tests.kctl.checks.broken import batches, segment

FOLDER = "txn-mix-0"


@pytest.fixture(scope="module")
def original() -> dict[str, bytes]:
    folder = recording("segments/2.8.2") / "data-clean/broker-11/logdir-0" / FOLDER
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("log") / FOLDER
    place.mkdir()
    return place


def checked(folder: Path, files: dict[str, bytes], level: Level = Level.RECORDS) -> Report:
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    report = check_replica(ReplicaTask(folder, Place(file=".")), CheckOptions(level=level))
    assert sorted(f.place.file for f in report.files) == sorted(files)  # type: ignore[type-var]
    for file in report.files:
        assert file.size_in_bytes == len(files[str(file.place.file)])
        assert 0 <= file.damaged_bytes <= file.size_in_bytes
    return report


quick = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
edits = st.lists(
    st.tuples(
        st.integers(0, 8000), st.binary(min_size=1, max_size=24), st.sampled_from(["over", "in", "out"])
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, changes: list[tuple[int, bytes, str]]) -> bytes:
    for position, piece, how in changes:
        at = position % (len(data) + 1)
        behind = at if how == "in" else at + len(piece)
        data = data[:at] + (b"" if how == "out" else piece) + data[behind:]
    return data


@quick
@given(name=st.integers(0, 100), changes=edits)
def test_any_edit_of_any_file_is_survived(
    folder: Path, original: dict[str, bytes], name: int, changes: list[tuple[int, bytes, str]]
) -> None:
    names = sorted(original)
    files = dict(original)
    chosen = names[name % len(names)]
    files[chosen] = edited(files[chosen], changes)
    checked(folder, files)


@quick
@given(st.dictionaries(st.sampled_from([segment(0, s) for s in (".log", ".index", ".timeindex", ".txnindex")]
                                       + [segment(9, ".snapshot"), "leader-epoch-checkpoint", "quorum-state",
                                          "partition.metadata", "remote_log_snapshot"]), st.binary(max_size=300)))  # fmt: skip
def test_files_of_arbitrary_bytes_are_survived(folder: Path, files: dict[str, bytes]) -> None:
    checked(folder, files)


@quick
@given(bit=st.integers(0, 8 * 5684 - 1), level=st.sampled_from([Level.CRC, Level.RECORDS]))
def test_a_flipped_bit_that_the_crc_covers_is_always_found_where_it_is(
    folder: Path, original: dict[str, bytes], bit: int, level: Level
) -> None:
    log = bytearray(original[segment(0)])
    position = bit // 8
    (folder / "original").write_bytes(bytes(log))
    start, size = next((s, n) for s, n in batches(folder / "original") if s <= position < s + n)
    log[position] ^= 1 << bit % 8
    if position - start < CRC_STARTS_AT:
        return
    report = checked(folder, {**original, segment(0): bytes(log)}, level)
    wrong = [f.place for f in report.all_findings() if f.code == "batch-crc-mismatch"]
    assert [(p.position, p.size_in_bytes) for p in wrong] == [(start, size)]
    (file,) = [f for f in report.files if f.type == "log"]
    assert file.damaged_bytes == size


@quick
@given(bit=st.integers(0, 8 * 72 - 1))
def test_a_flipped_bit_of_an_index_is_always_found(
    folder: Path, original: dict[str, bytes], bit: int
) -> None:
    index = bytearray(original[segment(0, ".index")])
    index[bit // 8] ^= 1 << bit % 8
    report = checked(folder, {**original, segment(0, ".index"): bytes(index)})
    entry = bit // 64
    # An offset may turn into the first offset of the batch, or another batch's last, as other versions write it.
    found = [f for f in report.all_findings() if str(f.place.file).endswith(".index")]
    if bit // 8 % 8 >= 4:
        assert found, entry


@given(st.binary(max_size=200), st.sampled_from([8, 12]))
def test_used_entries_and_zeros_make_up_the_whole(data: bytes, width: int) -> None:
    used = used_entries(data, width)
    assert used.count * width + used.fragment <= len(data)
    assert used.fragment == len(data) % width
    if used.is_padded and used.dirty_entry is None:
        assert not any(data[used.count * width : len(data) - used.fragment])


def test_an_index_fed_in_pieces_is_judged_as_one_fed_whole(original: dict[str, bytes]) -> None:
    import numpy as np

    from formats.log.columns.headers import PADDING, gather, walk

    log = original[segment(0)]
    data = np.frombuffer(log + bytes(PADDING), np.uint8)
    headers = gather(data, walk(data, 0, len(log)).positions)
    index = bytearray(original[segment(0, ".index")])
    index[19] ^= 1
    verdicts = []
    for size in (1, 3, len(headers)):
        check = OffsetIndexCheck(bytes(index), 0)
        for first in range(0, len(headers), size):
            check.feed(headers[first : first + size])
        verdicts.append((check.misplaced().tolist(), check.unordered().tolist()))
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert any(verdicts[0][0])


NUMBERS = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(NUMBERS, min_size=1), NUMBERS, NUMBERS, st.booleans())
def test_short_cuts_for_what_rises(values: list[int], before: int, last: int, ordered: bool) -> None:
    column = np.array(sorted(values) if ordered else values, np.int64)
    highest = np.maximum.accumulate(np.maximum(column, before))
    assert (highest_so_far(column, before) == highest).all()
    within = rows_within(column, before, last, rises(column))
    assert within.tolist() == [row for row, value in enumerate(column.tolist()) if before < value <= last]
