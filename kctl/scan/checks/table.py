"""The table of checks of a log; every scan runs them all.

`kctl.scan` runs them for `segment verify`, `audit run`, the findings of Spark, and the audit of a tier. A new check
is one more line.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from formats.log.columns.headers import Headers
from kctl.findings import Finding, Severity
from kctl.scan.checks import batches, producers, records
from kctl.scan.checks.check import HeaderCheck, LogCheck, RecordCheck, Suspects
from kctl.scan.options import ScanOptions


class Form(enum.Enum):
    """What a check is; see `kctl.scan.checks.check`."""

    HEADERS = enum.auto()  # a function of headers
    FILE = enum.auto()  # the same, whose answer depends on the file's name or topic
    LOG = enum.auto()  # a class, one object for a log
    RECORDS = enum.auto()  # a function of decoded records


class RegisteredCheck(NamedTuple):
    """A line of the table."""

    form: Form
    check: Callable[..., Any]


CHECKS: tuple[RegisteredCheck, ...] = (
    RegisteredCheck(Form.HEADERS, batches.attributes),
    RegisteredCheck(Form.HEADERS, batches.counts),
    RegisteredCheck(Form.HEADERS, batches.negative_epochs),
    RegisteredCheck(Form.FILE, batches.producer_fields),
    RegisteredCheck(Form.FILE, batches.offsets_against_name),
    RegisteredCheck(Form.LOG, batches.OffsetOrder),
    RegisteredCheck(Form.LOG, batches.EpochOrder),
    RegisteredCheck(Form.LOG, producers.ProducerOrder),
    RegisteredCheck(Form.RECORDS, records.unreadable_records),
    RegisteredCheck(Form.RECORDS, records.record_crcs),
    RegisteredCheck(Form.RECORDS, records.control_records),
    RegisteredCheck(Form.RECORDS, records.record_offsets),
    RegisteredCheck(Form.RECORDS, records.record_timestamps),
)


def record_checks() -> list[RecordCheck]:
    """The checks of records."""
    return [check for form, check in CHECKS if form is Form.RECORDS]


def header_checks() -> list[HeaderCheck]:
    """The checks of what headers say of themselves."""
    return [check for form, check in CHECKS if form is Form.HEADERS]


class LogChecks:
    """The checks of headers for one log, from its first segment to its last."""

    def __init__(self) -> None:
        self.shows_compaction = False  # a batch holds fewer records than offsets
        self.gaps: list[Finding] = []
        self._logs: list[LogCheck] = []
        self._feeds: list[HeaderCheck] = []
        for form, check in CHECKS:
            if form is Form.FILE:
                self._feeds.append(check)
            elif form is Form.LOG:
                self._logs.append(check())
                self._feeds.append(self._logs[-1].feed)

    def suspects(
        self, headers: Headers, options: ScanOptions, *, is_examined: bool = False
    ) -> Iterator[Suspects]:
        """What is wrong with the next sound batches; gaps that compaction would explain are kept for `finish`.

        With `is_examined`, `header_checks` have found nothing in them.
        """
        for feed in self._feeds if is_examined else (*header_checks(), *self._feeds):
            for suspects in feed(headers, options):
                if not suspects.is_gap:
                    yield suspects
                elif not self.shows_compaction:
                    room = max(0, options.max_findings - len(self.gaps))
                    self.gaps += [gap for _, gap in suspects.findings(headers, options.place, room)]
        if not self.shows_compaction:
            short = headers.records_count != headers.last_offset_delta + 1
            self.shows_compaction = bool((short & (headers.magic == 2) & (headers.records_count >= 0)).any())

    def end_segment_at(self, next_offset: int) -> None:
        """The segment ends before `next_offset`, whatever the base offset of its last batch says."""
        for check in self._logs:
            check.end_segment_at(next_offset)

    def finish(self, *, is_compacted: bool | None = None) -> list[Finding]:
        """What the log as a whole shows, after its last segment.

        `is_compacted` is what the topic's configuration says; None if it is unknown: then the batches tell.
        """
        if is_compacted is None and self.shows_compaction:
            is_compacted = True
        gaps = [] if is_compacted else self.gaps if is_compacted is False else map(_unsure, self.gaps)
        return [*gaps, *(finding for check in self._logs for finding in check.finish())]


def _unsure(gap: Finding) -> Finding:
    """The gap as information: the topic may be compacted."""
    message = f"{gap.message.rstrip('.')} (normal if the topic is compacted, which is unknown)."
    return Finding(gap.code, Severity.INFO, message, gap.place)
