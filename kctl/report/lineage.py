"""The picture of a partition: a lane for each replica, its epochs as bands on the offset axis.

Colour helps and is never needed: bands carry their epoch's number and a border, high watermarks are ticks, branch
points are dashed lines with their offset, lost ranges are outlined and named, damaged ranges are hatched.
Details stand in the titles that a pointer shows. Nothing runs, and every text is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from kctl.report.html import Html, element

Row = Mapping[str, Any]
WIDTH, LEFT, RIGHT = 720, 150, 14
DRAWN = 960  # as wide as the timeline, so that letters are of much the same size
LANE, BETWEEN, TOP = 22, 8, 30
MOST_BANDS = 300  # in one lane; narrower ones are drawn as part of their neighbour
MOST_LANES = 40
MOST_MARKS = 50
NUMBER_WIDTH = 7.5  # of a digit, in the units of the picture
Band = tuple[int, int, int | None]


def lineage_picture(
    lineages: Sequence[Row],
    divergences: Iterable[Row] = (),
    losses: Iterable[Row] = (),
    findings: Iterable[Row] = (),
    segments: Iterable[Row] = (),
) -> Html:
    """An inline SVG of one partition from its rows of kind lineage, divergence, loss, finding and segment.

    The rows may be as commands print them or as tables hold them, with lists as JSON text. Lanes stand in the
    order of the lineages; of more than 40 the first are drawn.
    """
    shown = list(lineages)[:MOST_LANES]
    lost = sorted(losses, key=lambda row: int(row["from_offset"]))[:MOST_MARKS]
    picture = _Picture(shown, lost)
    damaged = [row for row in findings if is_damage(row)]
    held = list(segments)
    for row in shown:
        picture.lane(row, [d for d in damaged if _is_of(d, row)], [s for s in held if _is_of(s, row)])
    picture.branch_points(divergences)
    for row in lost:
        picture.loss(row)
    return picture.svg()


def listed(value: object) -> list[Any]:
    """A list, or JSON text that holds one."""
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else []


def is_damage(finding: Row) -> bool:
    """Whether a finding is about bytes of a log that are not right."""
    in_a_file = finding["severity"] == "error" and finding.get("position") is not None
    return finding["code"] == "replica-damaged-copy" or in_a_file


def _is_of(finding: Row, lineage: Row) -> bool:
    return bool(
        finding["broker_id"] == lineage["broker_id"] and finding.get("moment") == lineage.get("moment")
    )


def bands_of(lineage: Row) -> list[Band]:
    """The bands (from, to, epoch) of a replica; the epoch None where none is known."""
    start, end = int(lineage["log_start_offset"]), int(lineage["log_end_offset"])
    epochs = [(int(epoch), int(first)) for epoch, first in listed(lineage["epochs"])]
    found: list[Band] = []
    known_from = epochs[0][1] if epochs else end
    if start < min(known_from, end):
        found.append((start, min(known_from, end), None))
    for index, (epoch, first) in enumerate(epochs):
        until = epochs[index + 1][1] if index + 1 < len(epochs) else end
        if max(first, start) < min(until, end):
            found.append((max(first, start), min(until, end), epoch))
    return found


class _Picture:
    def __init__(self, lineages: Sequence[Row], losses: Sequence[Row]) -> None:
        self.name = f"{lineages[0]['topic']}-{lineages[0]['partition']}" if lineages else "partition"
        starts = [int(row["log_start_offset"]) for row in lineages] + [int(r["from_offset"]) for r in losses]
        ends = [int(row["log_end_offset"]) for row in lineages]
        ends += [int(row["to_offset"]) for row in losses if row["to_offset"] is not None]
        self.low, self.high = min(starts, default=0), max(ends, default=1)
        self.high = max(self.high, self.low + 1)
        told = json.dumps([self.name, [str(row.get("moment")) for row in lineages]])
        # Each picture has a pattern of its own, as ids are of the whole page.
        self.hatch = f"damage-{crc32(told.encode('utf-8', 'replace')):08x}"
        self.y = TOP
        self.parts: list[Html] = []
        self.lanes: dict[tuple[object, object], int] = {}
        epochs = {int(epoch) for row in lineages for epoch, _ in listed(row["epochs"])}
        self.colors = {epoch: "abc"[rank % 3] for rank, epoch in enumerate(sorted(epochs))}

    def x(self, offset: int) -> float:
        """The place of an offset on the axis."""
        inside = min(max(offset, self.low), self.high)
        return round(LEFT + (inside - self.low) * (WIDTH - LEFT - RIGHT) / (self.high - self.low), 1)

    def lane(self, row: Row, damaged: Sequence[Row], segments: Sequence[Row] = ()) -> None:
        """A replica: its bands, where its segments begin, its high watermark, what of it is damaged."""
        who = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
        at = f" · {row['moment']}" if row.get("moment") else ""
        self.parts.append(element("text", _short(who + at), x=0, y=self.y + 15))
        for start, end, epoch in _thinned(bands_of(row), (self.high - self.low) / (WIDTH * 2)):
            self._band(start, end, epoch)
        for one in damaged[:MOST_MARKS]:
            if one["base_offset"] is not None:
                last = one["last_offset"] if one["last_offset"] is not None else one["base_offset"]
                self._damage(int(one["base_offset"]), int(last) + 1)
        for segment in segments[:MOST_BANDS]:
            self._notch(segment)
        mark = row["high_watermark"]
        if mark is not None:
            self._tick(int(mark))
        self.lanes[row["broker_id"], row.get("moment")] = self.y
        self.y += LANE + BETWEEN

    def _band(self, start: int, end: int, epoch: int | None) -> None:
        x, width = self.x(start), max(round(self.x(end) - self.x(start), 1), 0.5)
        said = "epoch not known" if epoch is None else f"epoch {epoch}"
        fill = "none" if epoch is None else f"var(--band-{self.colors[epoch]})"
        self.parts.append(
            element(
                "rect", element("title", f"offsets [{start}, {end}), {said}"),
                x=x, y=self.y, width=width, height=LANE, fill=fill, stroke="var(--mark)", stroke_width=0.7,
            )
        )  # fmt: skip
        if epoch is not None and width > NUMBER_WIDTH * len(str(epoch)) + 4:
            at = round(x + width / 2, 1)
            self.parts.append(element("text", epoch, x=at, y=self.y + 15, text_anchor="middle"))

    def _damage(self, start: int, end: int) -> None:
        width = max(round(self.x(end) - self.x(start), 1), 3)
        self.parts.append(
            element(
                "rect", element("title", f"damaged: offsets [{start}, {end})"),
                x=self.x(start), y=self.y, width=width, height=LANE, fill=f"url(#{self.hatch})",
                stroke="var(--ink)", stroke_width=0.7,
            )
        )  # fmt: skip

    def _notch(self, segment: Row) -> None:
        if segment["base_offset"] is None:
            return
        x, said = self.x(int(segment["base_offset"])), str(segment["file"]).rpartition("/")[2]
        self.parts.append(
            element(
                "line", element("title", f"segment {said}"),
                x1=x, x2=x, y1=self.y + LANE - 5, y2=self.y + LANE, stroke="var(--ink)", stroke_width=1,
            )
        )  # fmt: skip

    def _tick(self, mark: int) -> None:
        x = self.x(mark)
        self.parts.append(
            element(
                "line", element("title", f"high watermark {mark}"),
                x1=x, x2=x, y1=self.y - 3, y2=self.y + LANE + 3, stroke="var(--ink)", stroke_width=2,
            )
        )  # fmt: skip

    def branch_points(self, divergences: Iterable[Row]) -> None:
        """A dashed line with its offset where replicas part."""
        points = sorted({int(row["from_offset"]) for row in divergences})[:MOST_MARKS]
        free = 0.0
        for point in points:
            x = self.x(point)
            self.parts.append(
                element(
                    "line", element("title", f"replicas part at offset {point}"),
                    x1=x, x2=x, y1=TOP - 8, y2=self.y - BETWEEN + 4, stroke="var(--ink)", stroke_width=1,
                    stroke_dasharray="2 3",
                )
            )  # fmt: skip
            text = f"parts at {point:,}"
            if x >= free and x + len(text) * NUMBER_WIDTH < WIDTH:
                self.parts.append(element("text", text, x=x, y=TOP - 12, class_="quiet"))
                free = x + len(text) * NUMBER_WIDTH

    def loss(self, row: Row) -> None:
        """A lost range: outlined on the lanes that still hold it, and named on a lane of its own."""
        start, end = int(row["from_offset"]), row["to_offset"]
        until = self.high if end is None else int(end)
        shown_end = "..." if end is None else f"{until:,}"
        said = f"{row['class']}, {str(row['cause']).replace('_', ' ')}"
        title = f"lost: offsets [{start}, {shown_end}), {said}"
        for copy in listed(row["recoverable_from"]):
            y = self.lanes.get((copy.get("broker_id"), copy.get("moment")))
            if y is not None:
                self._outline(start, until, y - 2, LANE + 4, title)
        self._outline(start, until, self.y, LANE, title)
        self.parts.append(element("text", "lost", x=0, y=self.y + 15))
        text = f"[{start:,}, {shown_end}) {said}"
        room = self.x(until) + 6 + len(text) * 6.5 < WIDTH
        x = self.x(until) + 6 if room else self.x(start) - 6
        anchor = None if room else "end"
        if not room and x - len(text) * 6.5 < LEFT - 80:  # beside it there is no room: below
            self.y += LANE
            x, anchor = LEFT, None
        self.parts.append(element("text", text, x=x, y=self.y + 15, text_anchor=anchor))
        self.y += LANE + BETWEEN

    def _outline(self, start: int, end: int, y: float, height: float, title: str) -> None:
        width = max(round(self.x(end) - self.x(start), 1), 3)
        self.parts.append(
            element(
                "rect", element("title", title),
                x=self.x(start), y=y, width=width, height=height, fill="none", stroke="var(--lost)",
                stroke_width=2.5, stroke_dasharray="6 3",
            )
        )  # fmt: skip

    def svg(self) -> Html:
        """The whole picture."""
        hatch = element(
            "pattern",
            element("rect", width=6, height=6, fill="var(--paper)"),
            element("line", x1=0, y1=0, x2=0, y2=6, stroke="var(--mark)", stroke_width=3),
            id=self.hatch, width=6, height=6, patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
        )  # fmt: skip
        axis = [
            element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=self.y, y2=self.y, stroke="var(--mark)"),
            element("text", f"{self.low:,}", x=LEFT, y=self.y + 14, class_="quiet"),
            element(
                "text", f"{self.high:,}", x=WIDTH - RIGHT, y=self.y + 14, text_anchor="end", class_="quiet"
            ),
        ]
        label = f"{self.name}: leader epochs of each replica by offset"
        return element(
            "svg", element("title", label), element("defs", hatch), *self.parts, *axis,
            viewBox=f"0 0 {WIDTH} {self.y + 20}", width=DRAWN, role="img",
        )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 22 else text[:21] + "…"


def _thinned(bands: list[Band], least: float) -> list[Band]:
    """The bands without those too narrow to be seen, where there are very many."""
    if len(bands) <= MOST_BANDS:
        return bands
    kept: list[Band] = []
    for start, end, epoch in bands:
        if kept and end - kept[-1][0] < least * 4:
            kept[-1] = (kept[-1][0], end, epoch)
        else:
            kept.append((start, end, epoch))
    return kept
