"""A transaction index against the ABORT markers of its segment.

An entry stands in the index of the segment that holds the marker; the transaction may have begun in an
earlier one. Compaction takes batches and with them the beginnings away, so entries that lack theirs are only
held against the marker, where that is still there (`S:TransactionIndex.java @ 3.9.0`).
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.index_files import ABORTED_SIZE, AbortedTransaction, read_transaction_index
from kctl.checks.report import FileReport
from kctl.checks.segment import read_small
from kctl.findings import indexes as say
from kctl.log.folder import FolderFile
from kctl.log.producer_state import Aborted


def check_transaction_index(
    file: FolderFile, report: FileReport, aborted: Sequence[Aborted], *, log_start: int, is_known: bool
) -> None:
    """Hold the entries of a file against the aborted transactions that the segment's markers end.

    `is_known` is False where compaction or damage may have taken batches away.
    """
    assert file.named is not None
    data = read_small(file.path, report)
    if data is None:
        return
    report.base_offset = file.named.base_offset
    if len(data) % ABORTED_SIZE:
        fragment = len(data) % ABORTED_SIZE
        place = report.at(len(data) - fragment, fragment)
        report.say(say.INDEX_FRAGMENT, place, count=fragment, width=ABORTED_SIZE)
        report.damaged_bytes += fragment
    by_marker = {one.entry.last_offset: one for one in aborted}
    seen: set[int] = set()
    highest = -1
    for number, entry in enumerate(read_transaction_index(data)):
        why = _wrong(entry, by_marker.get(entry.last_offset), highest, log_start, is_known)
        _say_entry(report, number, entry, why, file.named.base_offset)
        highest = max(highest, entry.last_offset)
        if not why:
            seen.add(entry.last_offset)
    say_missing(report, aborted, seen, is_known)


def _wrong(
    entry: AbortedTransaction, found: Aborted | None, highest: int, log_start: int, is_known: bool
) -> str:
    """Why no broker wrote this entry from this log; empty where one may have."""
    if entry.last_offset <= highest:
        return f"which does not come after the entry before it, that ends at {highest}"
    if entry.first_offset > entry.last_offset:
        return "which ends before it begins"
    if found is None:
        return "but the log has no ABORT marker there" if is_known else ""
    if entry.producer_id != found.entry.producer_id:
        return f"but the ABORT marker there is of producer {found.entry.producer_id}"
    if not found.has_beginning:
        return "but the log has no batch of it" if is_known and entry.first_offset >= log_start else ""
    if not is_known:
        return ""
    if entry.first_offset != found.entry.first_offset:
        return f"but it begins at offset {found.entry.first_offset}"
    stable = (found.entry.last_stable_offset, found.next_first_offset)
    if entry.last_stable_offset not in stable and log_start == 0:
        return (
            f"with last stable offset {entry.last_stable_offset},"
            f" where {found.entry.last_stable_offset} is right"
        )
    return ""


def _say_entry(report: FileReport, number: int, entry: AbortedTransaction, why: str, base: int) -> None:
    place = report.at(number * ABORTED_SIZE, ABORTED_SIZE)
    if entry.version:
        report.say(say.TRANSACTION_INDEX_VERSION, place, entry=number, version=entry.version)
    if entry.last_offset < base:
        report.say(
            say.TRANSACTION_INDEX_BEFORE_SEGMENT, place, entry=number, last=entry.last_offset, base=base
        )
    elif why:
        details = {"producer_id": entry.producer_id, "first": entry.first_offset, "last": entry.last_offset}
        report.say(say.TRANSACTION_INDEX_EXTRA, place, entry=number, why=why, **details)
    elif not entry.version:
        return
    report.damaged_bytes += ABORTED_SIZE


def say_missing(report: FileReport, aborted: Sequence[Aborted], seen: set[int], is_known: bool) -> None:
    """Aborted transactions that have no entry, though their batches are in the log."""
    for one in aborted:
        if one.has_beginning and is_known and one.entry.last_offset not in seen:
            details = {"producer_id": one.entry.producer_id, "marker": one.entry.last_offset}
            report.say(say.TRANSACTION_INDEX_LACKS, None, first=one.entry.first_offset, **details)
