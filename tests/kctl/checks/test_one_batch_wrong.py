"""One wrong field that no CRC covers: the batch that has it is named, and no other file or batch is accused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kctl.checks.broken import CLEAN, KILLED, OLD, Seen, batches, copy_of, flip

COMPACT = "compact.txn-0/00000000000000000061.log"
ORDERS = "orders.plain-0/00000000000000000000.log"
MANY = "orders.plain-1/00000000000000000000.log"
AGED = "aged_out-0/00000000000000000070.log"
ROLLED = "rolled-segs-0/00000000000000000138.log"

# What is wrong: the directory, the log, which batch, the byte of its header and what of it; the code, other codes.
WRONG: dict[str, tuple[tuple[str, str], str, int, int, int, str, set[str]]] = {
    "last of a compacted segment": (CLEAN, COMPACT, -1, 7, 16, "batch-base-offset-wrong", set()),
    "last of a segment": (CLEAN, ROLLED, -1, 6, 1, "batch-base-offset-wrong", set()),
    "one too low": (CLEAN, COMPACT, -1, 7, 1, "batch-base-offset-wrong", {"batch-offsets-go-back"}),
    "too low, in between": (CLEAN, MANY, 4, 7, 1, "batch-base-offset-wrong", {"batch-offsets-go-back"}),
    "too high, in between": (CLEAN, MANY, 4, 6, 1, "batch-base-offset-wrong", set()),
    "first epoch too high": (CLEAN, ORDERS, 0, 14, 1, "batch-leader-epoch-runs-ahead", set()),
    "first epoch too low": (CLEAN, AGED, 0, 15, 2, "batch-leader-epoch-wrong", set()),
    "first epoch negative": (CLEAN, "compact.txn-0/00000000000000000000.log", 0, 12, 128, "batch-leader-epoch-wrong", set()),
    "last epoch far too high": (CLEAN, ORDERS, -1, 12, 1, "batch-leader-epoch-wrong", set()),
    "epoch ahead": (CLEAN, MANY, 4, 13, 1, "batch-leader-epoch-runs-ahead", set()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_the_batch_is_named_and_no_other(name: str, tmp_path: Path) -> None:
    place, log, number, byte, mask, code, others = WRONG[name]
    folder = copy_of(place, tmp_path)
    start, size = batches(folder / log)[number]
    flip(folder / log, start + byte, mask)
    seen = Seen(folder)
    (finding,) = seen.of(code)
    assert (finding.place.file, finding.place.position, finding.place.size_in_bytes) == (log, start, size)
    assert seen.wrong <= {code, *others}
    accused = [f for f in seen.findings if f.is_wrong and f.code in others]
    assert all((f.place.file, f.place.position) == (log, start) for f in accused)


def test_a_batch_once_more_is_the_one_that_is_wrong(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    start, size = batches(folder / ROLLED)[2]
    data = (folder / ROLLED).read_bytes()
    (folder / ROLLED).write_bytes(data[: start + size] + data[start:])
    (finding,) = Seen(folder).of("batch-base-offset-wrong")
    assert finding.place.position == start + size


def test_the_end_of_a_log_is_where_its_records_are(tmp_path: Path) -> None:
    """The last batch's offset goes back; nothing is gone."""
    folder = copy_of(CLEAN, tmp_path)
    flip(folder / MANY, batches(folder / MANY)[-1][0] + 7, 32)
    seen = Seen(folder)
    assert seen.wrong <= {"batch-base-offset-wrong", "batch-offsets-go-back", "timeindex-entry-wrong"}


def cut_out(number: int) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        start, size = batches(path)[number]
        data = path.read_bytes()
        path.write_bytes(data[:start] + data[start + size :])

    return edit


@pytest.mark.slow
@pytest.mark.parametrize("place", [CLEAN, KILLED, OLD])
@pytest.mark.parametrize("number", [0, 3])
def test_a_batch_cut_out(place: tuple[str, str], number: int, tmp_path: Path) -> None:
    folder = copy_of(place, tmp_path)
    name = (
        "orders.plain-1/00000000000000000000.log"
        if place is not KILLED
        else "orders.plain-0/00000000000000000000.log"
    )
    number = min(number, len(batches(folder / name)) - 2)
    start, _ = batches(folder / name)[number]
    cut_out(number)(folder / name)
    (finding,) = Seen(folder).of("offsets-missing")
    assert (finding.place.file, finding.place.position) == (name, start)


def test_a_clean_log_that_goes_on_behind_its_recovery_point(tmp_path: Path) -> None:
    """The last offset of a compacted topic is nowhere but in the recovery point."""
    folder = copy_of(CLEAN, tmp_path)
    log = "compact.txn-0/00000000000000000103.log"
    flip(folder / log, batches(folder / log)[-1][0] + 6, 1)
    assert "clean-shutdown-log-longer" in Seen(folder).wrong
