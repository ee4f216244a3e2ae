"""Segments that retention by time keeps, since a record in them has a time that has not come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from formats.values import replace
from kctl.checks.segments import LatestTime, PlaceOf, Scanned
from kctl.findings import Finding
from kctl.findings.logs import TIMESTAMP_IN_FUTURE
from kctl.log.folder import LogSegment

DAY = 86_400_000
YEAR = 365.2425 * DAY
TOLERATED = DAY
"""Clocks of producers and brokers, and zones of hosts, differ by less."""


def check_future(scanned: Scanned, place_of: PlaceOf) -> Iterator[Finding]:
    """A finding for each segment whose largest create time lies after the last write to the folder.

    When the copy was taken nobody knows; the newest file is not younger than that where the copy kept the times of files,
    and only as old as the copying where it did not: then fewer records are reported.
    """
    written_ms = last_written(segment for segment, _ in scanned)
    if written_ms is None:
        return
    for segment, scanned_log in scanned:
        latest = scanned_log.latest
        if latest is not None and latest.time_ms > written_ms + TOLERATED:
            place = place_of(f"{segment.base_offset:020d}.log")
            yield TIMESTAMP_IN_FUTURE.at(
                replace(
                    place,
                    position=latest.position,
                    size_in_bytes=latest.size_in_bytes,
                    base_offset=latest.base_offset,
                    last_offset=latest.last_offset,
                ),
                record=_record(latest),
                time=_shown(latest.time_ms),
                ahead=_ahead(latest.time_ms - written_ms),
                written=_shown(written_ms),
            )


def last_written(segments: Iterable[LogSegment]) -> int | None:
    """When the newest log file was written, in milliseconds; None without any."""
    times = []
    for segment in segments:
        if segment.log is not None:
            with suppress(OSError):
                times.append(segment.log.path.stat().st_mtime_ns // 1_000_000)
    return max(times, default=None)


def _record(latest: LatestTime) -> str:
    if latest.base_offset == latest.last_offset:
        return f"The record at offset {latest.base_offset}"
    return f"A record of offsets [{latest.base_offset}, {latest.last_offset + 1})"


def _ahead(millis: int) -> str:
    days = millis // DAY
    return f"{days // 365} years" if days >= 730 else f"{days} days" if days > 1 else "1 day"


def _shown(millis: int) -> str:
    """The time; of one that ISO 8601 does not write also the year."""
    from kctl.times import iso  # of a finding that most folders have not

    text = iso(millis)
    return f"{text} (the year {1970 + int(millis / YEAR)})" if text.endswith("ms") else text
