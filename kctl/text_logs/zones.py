"""The time zone of each broker's log lines: given, told by its own start-up lines, else UTC.

log4j prints local times without an offset. From 2.3 a broker prints `Kafka startTimeMs: MS` as it starts: the
difference between that and the line's own time, rounded to a quarter of an hour, is the offset of its zone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from formats.arrays import Ints
from formats.broker_logs.layouts import KAFKA
from formats.broker_logs.line import find_records
from formats.values import Struct, field
from kctl.errors import BadValue
from kctl.findings import Finding, Place
from kctl.findings import state_log as codes
from kctl.text_logs.log_files import LogFile
from kctl.text_logs.opening import STDIN, chunks_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

QUARTER = 900_000
HOUR = 3_600_000
START = re.compile(rb"\[([^\]\n]{23})\] [A-Z]+ Kafka startTimeMs: (\d{13})")
OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?):?(\d\d)?")


class Zone(Struct):
    """How far a broker's clock is ahead of UTC: a named zone, or offsets in milliseconds from local times on."""

    name: str
    named: ZoneInfo | None = None
    # Local time from which each offset holds; the first holds before it too.
    since: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=lambda: [0])
    source: str = ""
    ahead: int = 0
    """How far the clock is ahead beside that, in milliseconds: it is wrong."""
    _hours: dict[tuple[int, int], int] = field(default_factory=dict)

    def to_utc(self, millis: Ints, before: int | None = None) -> Ints:
        """Local times as UTC. `before` is the UTC time of the record before the first, in a repeated hour."""
        if not self.ahead:
            return self._to_utc(millis, before)
        return np.subtract(self._to_utc(millis, None if before is None else before + self.ahead), self.ahead)

    def _to_utc(self, millis: Ints, before: int | None) -> Ints:
        if self.named is None:
            if len(self.offsets) == 1:
                return np.subtract(millis, self.offsets[0])
            place = np.maximum(np.searchsorted(np.array(self.since), millis, "right") - 1, 0)
            return np.subtract(millis, np.array(self.offsets, np.int64)[place])
        if not len(millis):
            return millis
        hours = millis // QUARTER
        changes = np.flatnonzero(hours[1:] != hours[:-1]) + 1
        # A repeated hour is told from the first pass by the clock going back inside it.
        back = np.flatnonzero(millis[1:] < millis[:-1] - HOUR // 2) + 1
        edges = np.unique(np.concatenate((np.zeros(1, np.int64), changes, back)))
        out = np.empty_like(millis)
        last = before
        for start, end in zip(edges, [*edges[1:], len(millis)], strict=True):
            offset = self._offset(int(millis[start]), last)
            out[start:end] = millis[start:end] - offset
            last = int(out[end - 1])
        return out

    def _offset(self, local: int, before: int | None) -> int:
        """The offset of a quarter of an hour; in a repeated one, the pass that does not go back in time."""
        both = [self._folded(local // QUARTER, fold) for fold in (0, 1)]
        if both[0] == both[1] or before is None:
            return both[0]
        earlier, later = local - both[0], local - both[1]
        # Out of order by up to a minute is ordinary; more means that the hour is passed a second time.
        return both[0] if earlier >= before - 60_000 or later < before - 60_000 else both[1]

    def _folded(self, quarter: int, fold: int) -> int:
        key = quarter, fold
        if key not in self._hours:
            assert self.named is not None
            local = datetime(1970, 1, 1) + timedelta(milliseconds=quarter * QUARTER)
            delta = local.replace(tzinfo=self.named, fold=fold).utcoffset()
            assert delta is not None
            self._hours[key] = int(delta.total_seconds() * 1000)
        return self._hours[key]


UNKNOWN = Zone("UTC")


def zone_named(text: str) -> Zone:
    """The zone of a name such as `Asia/Tokyo`, `UTC` or `+05:30`; `BadValue` where there is none."""
    match = OFFSET.fullmatch(text)
    if match:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        offset = (-1 if match[1] == "-" else 1) * minutes * 60_000
        return Zone(text, offsets=[offset], source="given")
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return Zone(text, named=ZoneInfo(text), source="given")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadValue(f"time zone {text!r} is not known", "names are as `Asia/Tokyo` or `+09:00`") from None


def parse_zones(texts: Iterable[str]) -> tuple[dict[int, Zone], Zone | None]:
    """Zones given as `ID=ZONE`, and the one given as `ZONE` for every other broker."""
    zones: dict[int, Zone] = {}
    default = None
    for text in texts:
        name, equals, zone = text.partition("=")
        if not equals:
            default = zone_named(text)
        elif not (name.isascii() and name.isdigit()):
            raise BadValue(f"--time-zone {text!r} is not ID=ZONE", "write it as 2=Europe/Berlin")
        else:
            zones[int(name)] = zone_named(zone)
    return zones, default


# Logs that say when a process started; state changes and controllers' lines do not.
TELL_STARTS = ("server", "stdout", "other")


def detect_zones(
    files: Sequence[LogFile], given_zones: Mapping[int, Zone], default: Zone | None, findings: list[Finding]
) -> dict[int | None, Zone]:
    """The zone of each broker of the files."""
    zones: dict[int | None, Zone] = dict(given_zones.items())
    for broker_id in sorted({file.broker_id for file in files if file.broker_id is not None}):
        if broker_id in zones:
            continue
        if default is not None:
            zones[broker_id] = default
            continue
        own = [f for f in files if f.broker_id == broker_id]
        starts = [s for f in own if f.kind in TELL_STARTS for s in starts_in(f)]
        zones[broker_id] = _from_starts(broker_id, starts or _beside(own), findings)
    if default is not None:
        zones[None] = default
    else:
        of_several = [file for file in files if file.broker_id is None and file.path != STDIN]
        if len({os.path.dirname(os.path.abspath(file.path)) for file in of_several}) == 1:
            starts = [s for file in of_several if file.kind in TELL_STARTS for s in starts_in(file)]
            zones[None] = _from_starts(None, starts, findings)
    return zones


def starts_in(file: LogFile) -> list[tuple[int, int, str, int]]:
    """Local time, offset, file and line of each start that says its time in UTC."""
    if file.path == STDIN or file.layout is not KAFKA:
        return []
    starts = []
    rest, line = b"", 1
    try:
        for chunk in chunks_of(file.path, lambda reason: None, is_as_written=True):
            data = rest + chunk
            place = 0
            while (place := data.find(b"Kafka startTimeMs: ", place)) >= 0:
                head = data.rfind(b"\n", 0, place) + 1
                match = START.match(data, head)
                if match and match.end() < len(data):
                    local = find_records(data[head : match.end()]).millis
                    if len(local):
                        offset = round((int(local[0]) - int(match[2])) / QUARTER) * QUARTER
                        starts.append((int(local[0]), offset, file.file, line + data.count(b"\n", 0, head)))
                place += 1
            keep = data.rfind(b"\n") + 1
            line += int(np.count_nonzero(np.frombuffer(data, np.uint8, keep) == ord("\n")))
            rest = data[keep:][-4096:]
    except OSError:
        return starts
    return [start for start in starts if abs(start[1]) <= 15 * HOUR]


def _beside(files: Sequence[LogFile]) -> list[tuple[int, int, str, int]]:
    """Starts in the `server.log` next to the logs that were given, which need not have been given."""
    from formats.values import replace

    known = {os.path.abspath(file.path) for file in files}
    starts = []
    for folder in sorted({os.path.dirname(os.path.abspath(f.path)) for f in files if f.path != STDIN}):
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.startswith("server.log") and e.is_file())
        for name in names:
            path = os.path.join(folder, name)
            if path not in known:
                starts += starts_in(replace(files[0], path=path, file=path, layout=KAFKA, kind="server"))
    return starts


def _from_starts(
    broker_id: int | None, starts: list[tuple[int, int, str, int]], findings: list[Finding]
) -> Zone:
    if not starts:
        return UNKNOWN
    starts.sort()
    zone = Zone("", since=[], offsets=[], source=f"{starts[0][2]}:{starts[0][3]}")
    for local, offset, file, line in starts:
        if zone.offsets and zone.offsets[-1] == offset:
            continue
        if zone.offsets:
            findings.append(
                codes.LOG_ZONE_CHANGED.at(
                    Place(broker_id=broker_id, file=file),
                    broker=broker_id,
                    before=shown_offset(zone.offsets[-1]),
                    after=shown_offset(offset),
                    line=line,
                )
            )
        zone.since.append(local)
        zone.offsets.append(offset)
    zone.name = ", ".join(shown_offset(offset) for offset in zone.offsets)
    return zone


def shown_offset(millis: int) -> str:
    """`+09:00`."""
    minutes = abs(millis) // 60_000
    return f"{'-' if millis < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
