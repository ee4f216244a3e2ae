"""The section of the report on who led when: a bar for each leadership on a time axis, marks for what went wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kctl.audit.tables import Tables
from kctl.broker_logs.leaderships import NO_LEADER, IsrChange, Leadership
from kctl.broker_logs.zones import iso
from kctl.model import TopicPartition
from kctl.report.html import Html, count, element, table

Row = Mapping[str, Any]

WIDTH, LABELS, RIGHT, TOP = 960, 190, 8, 24
COLORS = 8
# Up to so many partitions each gets a tall row; more get low ones, and quiet ones are only counted.
TALL, TALL_ROW, LOW_ROW = 60, 26, 12
MOST_ROWS = 500
MOST_LISTED = 400
STYLE = """
.leaders { --l0:#bcd7f2; --l1:#f3d9b0; --l2:#cdebc9; --l3:#e6cdf0; --l4:#f5c9c9; --l5:#c9ecec; --l6:#e9e4b7; --l7:#d7d7e8; }
@media (prefers-color-scheme: dark) { .leaders { --l0:#1f4a75; --l1:#6b4a17; --l2:#22592a; --l3:#553068; --l4:#6e2c2c;
  --l5:#1c5a5a; --l6:#57511b; --l7:#43435c; } }
.leaders rect { stroke: var(--paper); } .leaders text { font-size: 11px; } .leaders .low text { font-size: 9px; }
.leaders .none { fill: none; stroke: var(--error); stroke-dasharray: 3 2; } .leaders .gap { fill: none; stroke: var(--mark); stroke-dasharray: 1 3; }
.leaders .unclean { fill: var(--error); } .leaders .isr { stroke: var(--mark); } .leaders .axis { stroke: var(--line); }
"""


@dataclass(frozen=True, slots=True)
class Axis:
    """Times to places."""

    start: int
    end: int

    def x(self, time_ms: int) -> float:
        """Where a time is, from the left."""
        span = max(self.end - self.start, 1)
        return round(LABELS + (WIDTH - LABELS - RIGHT) * (time_ms - self.start) / span, 1)


def section(tables: Tables) -> Html | None:
    """The section of the report; None where no log named a partition."""
    return leaders_section(tables.rows("leaders"))


def leaders_section(rows: Iterable[Row]) -> Html | None:
    """Who led each partition and when, as a picture and a table, from rows of kind `leader`; None without any.

    Brokers are told apart by number as well as by colour, so that it reads in black and white; the hover text
    of each bar, and the table beneath, say what it is. Times are UTC.
    """
    partitions: dict[TopicPartition, list[Leadership]] = {}
    for row in rows:
        one = leadership_of(row)
        partitions.setdefault(one.topic_partition, []).append(one)
    if not partitions:
        return None
    everything = [one for ones in partitions.values() for one in ones]
    start = min(one.from_ms for one in everything)
    end = max(one.to_ms or one.last_seen_ms for one in everything)
    # Room at the right for what still holds.
    axis = Axis(start, end + max((end - start) // 25, 1))
    shown, quiet = _shown(partitions)
    brokers = sorted({one.leader for one in everything if one.leader is not None and one.leader >= 0})
    colors = {broker: number % COLORS for number, broker in enumerate(brokers)}
    parts: list[object] = [
        element("style", Html(STYLE)),
        element("p", _sentence(everything, len(partitions), axis), class_="quiet"),
        _legend(brokers, colors),
        element("div", _picture(shown, partitions, colors, axis, is_low=len(shown) > TALL), class_="scroll"),
    ]
    if quiet:
        said = f"{count(quiet, 'more partition')} kept the first leader all the time."
        parts.append(element("p", said, class_="quiet"))
    parts.append(_listed(partitions))
    return element("section", element("h2", "Who led when"), *parts, class_="leaders", id="leaders")


def leadership_of(row: Row) -> Leadership:
    """A leadership from its row; lists may be JSON text, as tables hold them."""
    isr = _held(row["isr"])
    changes = _held(row["isr_changes"]) or []
    start = _millis(row["from_time"])
    found = Leadership(
        TopicPartition(row["topic"], row["partition"]),
        row["leader_epoch"],
        leader=row["leader"],
        isr=None if isr is None else tuple(isr),
        isr_changes=[
            IsrChange(_millis(c["time"]), tuple(c["isr"]), None, c["file"], c["line"]) for c in changes
        ],
        from_ms=start,
        to_ms=_millis(row["to_time"]) if row["to_time"] else None,
        how=row["how"],
        cause=row.get("cause") or "",
        proofs=_held(row["evidence"]) or [],
    )
    found.last_seen_ms = max([start, *(change.time_ms for change in found.isr_changes)])
    return found


def _held(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _millis(text: str) -> int:
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def _shown(partitions: dict[TopicPartition, list[Leadership]]) -> tuple[list[TopicPartition], int]:
    """The partitions to draw, those with trouble first; and how many quiet ones are left out."""
    names = sorted(partitions, key=lambda name: (-_trouble(partitions[name]), name))
    if len(names) <= TALL:
        return names, 0
    busy = [name for name in names if len(partitions[name]) > 1][:MOST_ROWS]
    drawn = busy or names[:TALL]
    return drawn, len(names) - len(drawn)


def _trouble(ones: Iterable[Leadership]) -> int:
    return max(
        (3 if one.is_unclean else 2 if one.leader == NO_LEADER else 1 if one.leader is None else 0)
        for one in ones
    )


def _sentence(everything: Sequence[Leadership], partitions: int, axis: Axis) -> str:
    unclean = sum(one.is_unclean for one in everything)
    said = f"{count(partitions, 'partition')} from {iso(axis.start)} to {iso(axis.end)}, as the brokers' logs say. "
    return said + (
        f"{count(unclean, 'unclean election')}." if unclean else "No leader was elected uncleanly."
    )


def _legend(brokers: Sequence[int], colors: dict[int, int]) -> Html:
    keys = [
        element(
            "span",
            f" broker {broker} ",
            style=f"background: var(--l{colors[broker]}); padding: 0 .4rem; margin-right: .4rem",
        )
        for broker in brokers
    ]
    marks = (
        " dashed frame: no leader · dotted: not in these logs · ▼: unclean election · tick: change of the ISR"
    )
    return element("p", *keys, element("span", marks, class_="quiet"))


def _picture(
    names: Sequence[TopicPartition],
    partitions: dict[TopicPartition, list[Leadership]],
    colors: dict[int, int],
    axis: Axis,
    *,
    is_low: bool,
) -> Html:
    row = LOW_ROW if is_low else TALL_ROW
    height = TOP + row * len(names) + 4
    parts: list[object] = list(_ticks(axis, height))
    for number, name in enumerate(names):
        parts.append(_row(name, partitions[name], colors, axis, TOP + row * number, row))
    return element(
        "svg",
        element("title", "Leaders of partitions over time"),
        *parts,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        class_="low" if is_low else None,
    )


def _ticks(axis: Axis, height: int) -> Iterable[Html]:
    for number in range(5):
        time_ms = axis.start + (axis.end - axis.start) * number // 4
        x = axis.x(time_ms)
        anchor = "end" if number == 4 else "start" if number == 0 else "middle"
        shown = iso(time_ms)[5:19].replace("T", " ")
        yield element("line", x1=x, x2=x, y1=TOP - 6, y2=height, class_="axis")
        yield element("text", shown, x=x, y=12, text_anchor=anchor, class_="quiet")


def _row(
    name: TopicPartition, ones: Sequence[Leadership], colors: dict[int, int], axis: Axis, top: int, row: int
) -> Html:
    high = row - (6 if row == TALL_ROW else 2)
    label = str(name)
    short = label if len(label) <= 28 else f"{label[:12]}…{label[-15:]}"
    parts: list[object] = [
        element("text", element("title", label), short, x=2, y=top + high - 2 - (high > 15) * 3)
    ]
    for one in ones:
        parts.extend(_bar(one, colors, axis, top, high))
    return element("g", *parts)


def _bar(one: Leadership, colors: dict[int, int], axis: Axis, top: int, high: int) -> Iterable[Html]:
    left = axis.x(one.from_ms)
    wide = max(axis.x(one.to_ms if one.to_ms is not None else axis.end) - left, 1.0)
    said = element("title", _words(one))
    box = {"x": left, "y": top, "width": round(wide, 1), "height": high}
    if one.leader is None:
        yield element("rect", said, class_="gap", **box)
    elif one.leader < 0:
        yield element("rect", said, class_="none", **box)
    else:
        yield element("rect", said, style=f"fill: var(--l{colors[one.leader]})", **box)
        if wide > 16 and high > 8:
            text = (
                f"{one.leader}"
                if wide < 60
                else f"{one.leader} · epoch {one.leader_epoch}"
                if wide > 90
                else f"{one.leader}·{one.leader_epoch}"
            )
            yield element("text", text, x=left + 4, y=top + high - 2 - (high > 15) * 4)
    for change in one.isr_changes:
        x = axis.x(change.time_ms)
        yield element("line", x1=x, x2=x, y1=top + high - 4, y2=top + high, class_="isr")
    if one.is_unclean:
        points = f"{left},{top} {left + 7},{top} {left + 3.5},{top + min(high, 8)}"
        yield element("polygon", element("title", _words(one)), points=points, class_="unclean")


def _words(one: Leadership) -> str:
    who = (
        "not in these logs"
        if one.leader is None
        else "no leader"
        if one.leader < 0
        else f"broker {one.leader} leads"
    )
    until = iso(one.to_ms)[11:-1] if one.to_ms is not None else "still"
    isr = "" if one.isr is None else f", ISR {','.join(map(str, one.isr))}"
    how = one.how.replace("_", " ")
    cause = f": {one.cause}" if one.cause else ""
    return f"{one.topic_partition}: {who}, epoch {one.leader_epoch}{isr}, {iso(one.from_ms)[11:-1]} to {until}, {how}{cause}"


def _listed(partitions: dict[TopicPartition, list[Leadership]]) -> Html:
    """Every leadership in words, partitions with trouble first."""
    rows: list[list[object]] = []
    total = sum(map(len, partitions.values()))
    for name in sorted(partitions, key=lambda one: (-_trouble(partitions[one]), one)):
        for one in partitions[name]:
            if len(rows) < MOST_LISTED:
                rows.append(_cells(one))
    header = ["partition", "from (UTC)", "leader", "epoch", "ISR", "how", "proof"]
    more = f" (the first {len(rows)} of {total})" if total > len(rows) else ""
    return element(
        "details",
        element("summary", f"{total} leaderships in words{more}"),
        table(header, rows, frozenset((3,))),
    )


def _cells(one: Leadership) -> list[object]:
    proof = one.proofs[0] if one.proofs else None
    leader = "?" if one.leader is None else "none" if one.leader < 0 else one.leader
    how = one.how.replace("_", " ") + (f": {one.cause}" if one.cause else "")
    return [
        str(one.topic_partition),
        iso(one.from_ms)[:-1].replace("T", " "),
        leader,
        one.leader_epoch,
        "" if one.isr is None else ",".join(map(str, one.isr)),
        element("strong", how) if one.is_unclean else how,
        element("code", f"{proof['file']}:{proof['line']}") if proof else "",
    ]
