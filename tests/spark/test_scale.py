"""How work is spread, on paper: a million splits, one huge partition beside many small ones, an audit with stragglers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from benchmarks.scale import GIB, PETABYTE, audit, makespan, requests, scan, seconds_of, splits
from kctl.spark.tasks import MOST_HELD, MOST_WAVES, PARTITIONS_A_WAVE, WAVES_AT_ONCE, wants_another
from tests.conftest import recording
from tests.spark.test_data_source import RECORDINGS

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
MOST = 1.5  # of the longest task's time against the mean


@pytest.mark.slow
def test_a_million_splits_take_times_that_are_alike_and_keep_the_cores_busy() -> None:
    found = scan(100, 1_350_000_000_000)
    assert found.tasks > 1_000_000
    assert found.largest <= MOST
    assert found.idle < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [[100 * GIB], [1 << 20] * 100_000, [100 * GIB, *[1 << 20] * 100_000]],
    ids=["one", "many", "both"],
)
def test_one_huge_partition_and_many_small_ones_are_spread_evenly(sizes: list[int]) -> None:
    seconds = [seconds_of(size) for size in splits(sizes)]
    assert max(seconds) <= MOST * sum(seconds) / len(seconds)
    assert sum(splits(sizes)) == sum(sizes)


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_segments_of_a_recording_are_spread_evenly(name: str) -> None:
    """By a target that makes some tasks of them; the last one has what is left."""
    from kctl.spark.listing import list_segments
    from kctl.spark.planning import Filters, plan

    segments = list_segments(str(recording(name)), [])
    target = max(sum(one.size_in_bytes for one in segments) // 8, max(one.size_in_bytes for one in segments))
    *tasks, _ = [
        sum(piece.segment.size_in_bytes // piece.of for piece in task)
        for task in plan(segments, "batches", Filters(), target)
    ]
    assert len(tasks) > 2 and max(tasks) <= MOST * target


def test_waves_begin_while_the_largest_item_of_one_is_worked_on() -> None:
    cores = 10
    assert wants_another(WAVES_AT_ONCE - 1, 10**6, 10**12, cores)
    assert wants_another(5, cores * PARTITIONS_A_WAVE - 1, 0, cores)
    assert not wants_another(5, cores * PARTITIONS_A_WAVE, 0, cores)
    assert not wants_another(MOST_WAVES, 0, 0, cores)
    assert not wants_another(5, 0, MOST_HELD, cores), "results that wait fill the driver's memory"
    straggler = [[100.0, *[1.0] * 39], *[[1.0] * 40] * 20]
    assert makespan(straggler, cores) <= 100 + 1, "cores wait for the largest item"


@pytest.mark.slow
def test_the_page_has_the_figures_of_the_simulation() -> None:
    text = PAGE.read_text("utf-8")
    found = scan(100, 1_350_000_000_000)
    hours, largest, ideal = audit(PETABYTE)
    for figure in (
        f"{found.tasks:,}", f"{found.largest:.2f} times", f"{hours:.1f} h", f"{largest:.1f} h", f"{ideal:.1f} h",
        f"{requests(PETABYTE) / 1e6:,.0f} million",
    ):  # fmt: skip
        assert figure in text, figure


def test_the_formula_of_the_page_gives_its_figures() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    names: dict[str, float] = {}
    exec(compile(program, "docs/scale.md", "exec"), names)
    assert f"{names['hours']:.1f} h" in PAGE.read_text("utf-8").replace(program, "")
    assert f"{names['cost']:,.0f}" in PAGE.read_text("utf-8").replace(program, "")
