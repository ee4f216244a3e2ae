"""Headers of batches that say what no broker writes, one at a time, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from benchmarks.in_memory import InMemory
from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, read_header, seal, write_batch
from kctl.findings import Place
from kctl.scan.options import Level, ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.splits import Split
from tests.kctl.scan.test_splits import scanned


def batch(base: int, records: int = 2, **fields: int) -> bytes:
    """A batch whose header is changed and sealed again."""
    made = write_batch([Record(base + n, 5, None, b"v") for n in range(records)])
    return seal(read_header(made)._replace(**fields), made[61:])


def said(*batches: bytes, named: int | None = None) -> Iterator[tuple[str, int | None]]:
    """Codes and positions, in batches, of what a scan of headers says."""
    log = b"".join(batches)
    starts = [len(b"".join(batches[:n])) for n in range(len(batches))]
    options = ScanOptions(level=Level.CRC, base_offset=named, place=Place(topic="orders", partition=0))
    scan = scan_segment(InMemory(log), options)
    for chunk in scan:
        for finding in chunk.findings:
            yield finding.code, starts.index(finding.place.position or 0)
    for finding in scan.checks.finish():
        yield finding.code, starts.index(finding.place.position or 0)


SOUND = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, None),
        ({"attributes": 4}, None),
        ({"attributes": 5}, "batch-unknown-codec"),
        ({"attributes": 0x80}, "batch-unknown-attributes"),
        ({"last_offset_delta": -1}, "batch-illegal-last-offset-delta"),
        ({"last_offset_delta": 1, "records_count": 2}, None),
        ({"last_offset_delta": 5, "records_count": 2}, None),
        ({"last_offset_delta": 1, "records_count": 3}, "batch-records-count"),
        ({"records_count": -1}, "batch-records-count"),
        ({"records_count": 0}, "batch-records-count"),
        ({"partition_leader_epoch": -1}, None),
        ({"partition_leader_epoch": -2}, "batch-leader-epoch-wrong"),
        ({"attributes": TRANSACTIONAL}, "batch-producer-fields"),
        ({"attributes": TRANSACTIONAL, **SOUND}, "transaction-open"),
        ({"attributes": CONTROL}, "batch-producer-fields"),
        ({**SOUND, "producer_epoch": -1}, "batch-producer-fields"),
        ({**SOUND, "base_sequence": -1}, "batch-producer-fields"),
        ({**SOUND, "base_sequence": -1, "attributes": CONTROL | TRANSACTIONAL}, None),
    ],
)
def test_a_header_by_itself(fields: dict[str, int], code: str | None) -> None:
    codes = [found for found, _ in said(batch(0, **fields))]
    assert codes[:1] == ([] if code is None else [code]), codes


@pytest.mark.parametrize(
    ("named", "expected"),
    [(10, []), (9, []), (11, ["segment-offset-below-name"]), (10 - 2**31 + 2, []), (10 - 2**31 + 1, ["segment-offset-overflow"])],
)  # fmt: skip
def test_offsets_against_the_name(named: int, expected: list[str]) -> None:
    assert [code for code, _ in said(batch(10), named=named)] == expected


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        ([0, 2, 4], []),
        ([0, 2, 3], [("batch-offsets-go-back", 2)]),
        ([0, 2, 2], [("batch-offsets-go-back", 2)]),
        ([0, 3, 5], [("batch-offset-gap", 1)]),
    ],
)
def test_offsets_after_each_other(bases: list[int], expected: list[tuple[str, int]]) -> None:
    assert [*said(*map(batch, bases))] == expected


BACK, AHEAD = "batch-leader-epoch-goes-back", "batch-leader-epoch-runs-ahead"


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ([1, 1, 2, 2, 5], []),
        ([2, 2, 1], [(BACK, 2)]),
        ([1, 1, 5, 1, 1], [(AHEAD, 2)]),
        ([1, 1, 1, 5, 2], [(AHEAD, 3)]),
        ([3, 4, 2], [(BACK, 2)]),
        ([5, 1, 1], [(AHEAD, 0)]),  # the third goes on after the second
        ([5, 1, 5], [(BACK, 1)]),
        ([5, 5], []),
        ([5, 1], [(BACK, 1)]),
        ([1 << 20, 1], [(AHEAD, 0)]),
    ],
)
def test_leader_epochs_after_each_other(epochs: list[int], expected: list[tuple[str, int]]) -> None:
    batches = [batch(2 * n, partition_leader_epoch=epoch) for n, epoch in enumerate(epochs)]
    assert [*said(*batches)] == expected


def test_two_batches_are_remembered_from_one_chunk_to_the_next() -> None:
    """Only they tell that the batch before the last runs ahead, and the last does not go back."""
    log = b"".join(batch(2 * n, partition_leader_epoch=epoch) for n, epoch in enumerate((1, 1, 1, 2, 9, 2)))
    size = len(log) // 6
    for cuts in ([], [size * n for n in range(1, 6)], [size * 5]):
        parts = [Split(start, end) for start, end in pairwise([0, *cuts, len(log)])]
        findings = [f for f in scanned(log, parts)[0] if "epoch" in f.code]
        assert [(f.code, f.place.position) for f in findings] == [("batch-leader-epoch-runs-ahead", 4 * size)]
