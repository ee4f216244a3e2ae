"""A segment cut anywhere gives the totals, findings and items of the whole."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.in_memory import InMemory
from formats.log import records as walker
from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, write_batch
from kctl.findings import Finding
from kctl.scan.checks.table import LogChecks
from kctl.scan.options import ScanOptions
from kctl.scan.segment import scan_segment
from kctl.scan.splits import Split, hints_of, most_splits, plan_splits
from tests.conftest import examples
from tests.kctl.scan.test_segment import edited, log


def idempotent(seed: int) -> bytes:
    """Batches of some producers, with gaps, repeats, older epochs and transactions."""
    rng, out, offset = random.Random(seed), b"", 0
    sequences = dict.fromkeys((1, 2, 3), 0)
    for _ in range(30):
        producer = rng.choice([1, 2, 3])
        if rng.random() < 0.1:
            attributes = TRANSACTIONAL | CONTROL
            marker = [Record(offset, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")]
            out += write_batch(marker, attributes=attributes, producer_id=producer, producer_epoch=0)
            offset += 1
            continue
        count = rng.choice([1, 3])
        sequences[producer] = max(0, sequences[producer] + rng.choice([0, 0, 0, 0, 2, -3]))
        out += write_batch(
            [Record(offset + n, 5, None, b"v") for n in range(count)],
            producer_id=producer,
            producer_epoch=rng.choice([0] * 9 + [1]),
            base_sequence=sequences[producer],
            partition_leader_epoch=rng.choice([4] * 9 + [3]),
            attributes=TRANSACTIONAL if producer == 3 else 0,
        )
        sequences[producer] += count
        offset += count + (7 if rng.random() < 0.05 else 0) - (2 if rng.random() < 0.05 else 0)
    return out


def boundaries(data: bytes) -> list[int]:
    return [
        item.position for item in walker.walk(data) if isinstance(item, walker.LogEntry) and item.crc_valid
    ][1:]


def scanned(data: bytes, splits: list[Split]) -> tuple[list[Finding], list[object], list[int]]:
    findings: list[Finding] = []
    items: list[object] = []
    checks = LogChecks()
    totals = np.zeros(4, np.int64)
    for split in splits:
        scan = scan_segment(InMemory(data), ScanOptions(start=split.start, end=split.end), checks=checks)
        for chunk in scan:
            findings += chunk.findings
            items += chunk.headers.position.tolist()
            items += [(one.position, one.size_in_bytes, one.reason) for one in chunk.damage]
        t = scan.totals
        totals += (t.batches, t.records, t.good_bytes, t.damaged_bytes)
    return [*findings, *checks.finish()], items, totals.tolist()


def by_place(findings: list[Finding]) -> list[tuple[object, ...]]:
    return sorted((f.place.position or 0, f.code, f.severity, f.message) for f in findings)


@pytest.mark.slow
@given(
    st.integers(0, 10_000), st.integers(0, 10_000), st.booleans(), st.lists(st.integers(0, 99), max_size=4)
)
@example(8, 0, False, [19])  # an epoch ahead of both sides, at the cut
@settings(max_examples=examples(80), deadline=None)
def test_cuts_change_nothing(seed: int, edit: int, damaged: bool, picked: list[int]) -> None:
    data = log(seed % 40) if seed % 2 else idempotent(seed)
    if damaged:
        data = edited(data, edit)
    places = boundaries(data)
    cuts = sorted({places[pick % len(places)] for pick in picked if places})
    edges = [0, *cuts, len(data)]
    splits = [Split(a, b) for a, b in pairwise(edges)]
    whole_findings, whole_items, whole_totals = scanned(data, [Split(0, len(data))])
    findings, items, totals = scanned(data, splits)
    assert by_place(findings) == by_place(whole_findings)
    assert items == whole_items
    assert totals == whole_totals


@pytest.mark.parametrize("target", [500, 3000, 1 << 30])
@pytest.mark.parametrize("seed", range(6))
def test_planned_splits_are_at_boundaries(seed: int, target: int) -> None:
    data = b"".join(
        write_batch([Record(n, 5, None, random.Random(n).randbytes(n % 300))]) for n in range(200)
    )
    places = boundaries(data)
    rng = random.Random(seed)
    # Some entries lie.
    hints = sorted({p + (1 if rng.random() < 0.2 else 0) for p in rng.sample(places, 150)})
    splits = plan_splits(InMemory(data), np.array(hints), target)
    assert splits[0].start == 0
    assert splits[-1].end == len(data)
    assert all(a.end == b.start for a, b in pairwise(splits))
    assert {split.start for split in splits[1:]} <= set(places)
    assert (len(splits) > 3) == (target < 1 << 20)


def test_hints_end_where_an_index_does() -> None:
    rows = np.array([[3, 100], [9, 400], [0, 0], [0, 0]], ">i4")
    assert hints_of(rows.tobytes()).tolist() == [100, 400]
    assert hints_of(rows[:2].tobytes() + b"abc").tolist() == [100, 400]
    assert hints_of(b"").tolist() == []


def test_a_log_larger_than_an_index_can_tell_has_few_parts() -> None:
    huge = InMemory(b"")
    huge.size = 1 << 60
    assert most_splits(huge.size, 1 << 26) == 32
    assert plan_splits(huge, np.empty(0, np.int64), 1 << 26) == [Split(0, 1 << 60)]
