"""A check of a log, in one of the three forms that `kctl.scan.checks.table` lists, and what each of them yields.

- A function of the headers of some batches: what each batch says of itself.
- A `LogCheck`: a class with state, for what a batch says compared with those before it.
- A function of decoded records: what records say compared with the header of their batch.

All of them yield `Suspects`. A check sees sound batches only, in the order of the log, some thousands at a time. It
cannot know where one piece of a log ends and the next begins, so a log gives the same findings whether it is read
whole, in pieces by several processes, or segment by segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from formats.arrays import Mask
from formats.log.columns.headers import Headers
from formats.values import replace
from kctl.findings import Finding, FindingType, Place
from kctl.scan.options import ScanOptions
from kctl.scan.record_groups import RecordGroup

RowFinding = tuple[int, Finding]  # the row of the batch that it is about


class Suspects(NamedTuple):
    """Batches with one thing wrong. Findings are made of those alone that are listed."""

    type: FindingType
    rows: Sequence[int]
    details: Callable[[int], Mapping[str, Any]] = lambda row: {}
    """What the sentence of the finding about a row says besides the place."""
    place: Place | None = None
    """Where it is, if not the batch of the row: an earlier one, which these headers no longer hold."""
    is_gap: bool = False
    """Whether compaction explains it: kept back until it is known whether the topic is compacted."""

    def findings(self, headers: Headers, place: Place, most: int | None = None) -> Iterator[RowFinding]:
        """The first `most` findings; None: all. `place` says where the file is."""
        for row in self.rows[:most]:
            yield row, self.type.at(self.place or place_of(headers, row, place), **self.details(row))


def always(**details: object) -> Callable[[int], Mapping[str, Any]]:
    """Details of a finding about one row."""
    return lambda row: details


HeaderCheck = Callable[[Headers, ScanOptions], Iterable[Suspects]]
RecordCheck = Callable[[RecordGroup, Headers, ScanOptions], Iterable[Suspects]]
"""The group's rows are rows of the headers."""


class LogCheck:
    """A check that remembers batches; one object sees a log from its first segment to its last."""

    def feed(self, headers: Headers, options: ScanOptions) -> Iterable[Suspects]:
        """What is wrong with the next batches. `options` are those of their segment."""
        raise NotImplementedError

    def end_segment_at(self, next_offset: int) -> None:
        """The segment ends before `next_offset`, whatever the base offset of its last batch says."""

    def finish(self) -> Iterable[Finding]:
        """What only the end of the log shows; asked where a log was read to its end."""
        return ()


def rows_of(mask: Mask) -> list[int]:
    """Numbers of the rows for which the mask holds."""
    rows: list[int] = mask.nonzero()[0].tolist()
    return rows


def place_of(headers: Headers, row: int, place: Place) -> Place:
    """Where one batch is."""
    return replace(
        place,
        position=int(headers.position[row]),
        size_in_bytes=int(headers.size_in_bytes[row]),
        base_offset=int(headers.base_offset[row]),
        last_offset=int(headers.last_offset[row]),
    )
