"""Tiered storage in the report: per partition a picture of remote and local ranges by epoch on the offset axis."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from kctl.audit.tables import Tables
from kctl.report.html import Html, count, element, join, size
from kctl.report.lineage import DRAWN

Row = Mapping[str, Any]
WIDTH, LEFT, RIGHT = 720, 120, 12
LANE, GAP_BETWEEN = 22, 8
# Pictures of so many partitions; the table names the others.
MOST_PICTURES = 200
# Neighbours of one epoch are drawn as one band where there are more than this.
MOST_BANDS = 300


def _pairs(value: object) -> list[tuple[int, int]]:
    """Pairs from a list or from JSON text, as a table holds them."""
    held = json.loads(value) if isinstance(value, str) else value
    return [(int(a), int(b)) for a, b in held] if isinstance(held, list) else []


def _bands(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    """Ranges (from, to, epoch) of remote segments, each cut at its epochs."""
    found = []
    for row in rows:
        epochs = _pairs(row["segment_leader_epochs"])
        ends = [start for _, start in epochs[1:]] + [row["end_offset"] + 1]
        for (epoch, start), end in zip(epochs, ends, strict=True):
            found.append((max(start, row["start_offset"]), end, epoch))
    return sorted(found)


def _merged(bands: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same with neighbours of one epoch as one."""
    out: list[tuple[int, int, int]] = []
    for start, end, epoch in bands:
        if out and out[-1][2] == epoch and out[-1][1] >= start:
            out[-1] = (out[-1][0], max(out[-1][1], end), epoch)
        else:
            out.append((start, end, epoch))
    return out


def local_bands(partition: Row) -> list[tuple[int, int, int]]:
    """The leader's local range, cut at its epochs."""
    start, end = partition["local_log_start_offset"], partition["log_end_offset"]
    if start is None or end is None:
        return []
    epochs = _pairs(partition["leader_epochs"])
    found = []
    for (epoch, first), following in zip(epochs, [s for _, s in epochs[1:]] + [end], strict=True):
        low, high = max(first, start), min(following, end)
        if low < high:
            found.append((low, high, epoch))
    return found or ([(start, end, -1)] if end > start else [])


class _Picture:
    def __init__(self, low: int, high: int, name: str) -> None:
        # Each picture has a pattern of its own, as ids are of the whole page.
        self.hatch = f"hatch-{crc32(name.encode('utf-8', 'replace')):08x}"
        self.low, self.high = low, max(high, low + 1)
        self.parts: list[Html] = []
        self.y = 18

    def x(self, offset: int) -> float:
        return round(LEFT + (offset - self.low) * (WIDTH - LEFT - RIGHT) / (self.high - self.low), 1)

    def lane(self, name: str, bands: list[tuple[int, int, int]], style: str) -> None:
        if not bands:
            return
        shown = bands if len(bands) <= MOST_BANDS else _merged(bands)
        self.parts.append(element("text", name, x=0, y=self.y + 15))
        # Overlapping copies go on top of each other in half height, so that none hides another.
        end = self.low
        for start, after, epoch in shown:
            overlaps = start < end
            self._band(start, after, epoch, style, overlaps)
            end = max(end, after)
        self.y += LANE + GAP_BETWEEN

    def _band(self, start: int, end: int, epoch: int, style: str, overlaps: bool) -> None:
        x, width = self.x(start), max(self.x(end) - self.x(start), 1)
        height = LANE / 2 if overlaps else LANE
        fill = {
            "solid": f"var(--band-{'ab'[epoch % 2]})",
            "outside": f"url(#{self.hatch})",
            "unfinished": "none",
        }[style]
        title = element(
            "title", f"offsets [{start}, {end}), " + (f"epoch {epoch}" if epoch >= 0 else "no epoch known")
        )
        dashes = "4 3" if style == "unfinished" else None
        self.parts.append(
            element(
                "rect",
                title,
                x=x,
                y=self.y,
                width=round(width, 1),
                height=height,
                fill=fill,
                stroke="var(--mark)",
                stroke_width=0.7,
                stroke_dasharray=dashes,
            )
        )
        if width > 14 and epoch >= 0 and not overlaps:
            self.parts.append(
                element("text", epoch, x=round(x + width / 2, 1), y=self.y + 15, text_anchor="middle")
            )

    def gap(self, start: int, end: int) -> None:
        x = self.x(start)
        title = element("title", f"offsets [{start}, {end}) are served by nothing")
        self.parts.append(
            element(
                "rect",
                title,
                x=x,
                y=14,
                width=max(round(self.x(end) - x, 1), 2),
                height=max(self.y - 18, 4),
                fill="none",
                stroke="var(--lost)",
                stroke_width=2,
                stroke_dasharray="5 3",
            )
        )

    def tick(self, offset: int | None, name: str, anchor: str = "middle") -> None:
        if offset is None or not self.low <= offset <= self.high:
            return
        x = self.x(offset)
        self.parts.append(element("line", x1=x, x2=x, y1=14, y2=self.y, stroke="var(--ink)", stroke_width=1))
        self.parts.append(element("text", name, x=x, y=10, text_anchor=anchor, class_="quiet"))

    def svg(self, label: str) -> Html:
        hatch = element(
            "pattern",
            element("rect", width=6, height=6, fill="var(--paper)"),
            element("line", x1=0, y1=0, x2=0, y2=6, stroke="var(--mark)", stroke_width=3),
            id=self.hatch, width=6, height=6, patternUnits="userSpaceOnUse", patternTransform="rotate(45)",
        )  # fmt: skip
        axis = [
            element("text", f"{self.low:,}", x=LEFT, y=self.y + 12),
            element("text", f"{self.high:,}", x=WIDTH - RIGHT, y=self.y + 12, text_anchor="end"),
        ]
        return element(
            "svg", element("title", label), element("defs", hatch), *self.parts, *axis,
            viewBox=f"0 0 {WIDTH} {self.y + 18}", width=DRAWN, role="img",
        )  # fmt: skip


def tier_picture(partition: Row, segments: Iterable[Row]) -> Html:
    """An inline SVG: the tier's lanes and the leader's local lane on the offset axis, gaps outlined, ticks on top.

    `partition` is a `tier_partition` row, `segments` the partition's `remote_segment` rows.
    """
    live = [row for row in segments if row["state"] != "DELETE_SEGMENT_FINISHED"]
    outside_ids = partition["outside_segments"]
    outside_ids = set(json.loads(outside_ids) if isinstance(outside_ids, str) else outside_ids or ())
    finished = [row for row in live if row["state"] == "COPY_SEGMENT_FINISHED"]
    inside = [row for row in finished if row["remote_log_segment_id"] not in outside_ids]
    outside = [row for row in finished if row["remote_log_segment_id"] in outside_ids]
    unfinished = [row for row in live if row["state"] != "COPY_SEGMENT_FINISHED"]
    local = local_bands(partition)
    offsets = [o for a, b, _ in [*_bands(live), *local] for o in (a, b)]
    offsets += [o for o in (partition["log_start_offset"], partition["log_end_offset"]) if o is not None]
    name = f"{partition['topic_id']}-{partition['partition']}"
    picture = _Picture(min(offsets, default=0), max(offsets, default=1), name)
    picture.lane("in the tier", _bands(inside), "solid")
    picture.lane("outside lineage", _bands(outside), "outside")
    picture.lane("not finished", _bands(unfinished), "unfinished")
    picture.lane("local", local, "solid")
    for start, end in _pairs(partition["gaps"]):
        picture.gap(start, end)
    picture.tick(partition["log_start_offset"], "log start", "start")
    if partition["local_log_start_offset"] != partition["log_start_offset"]:
        picture.tick(partition["local_log_start_offset"], "local start")
    return picture.svg(
        f"{partition['topic']}-{partition['partition']}: remote and local offset ranges by leader epoch"
    )


def section(tables: Tables) -> Html | None:
    """The section of the report; None where nothing is tiered."""
    if not tables.has("tier_partitions"):
        return None
    partitions = list(tables.rows("tier_partitions"))
    if not partitions:
        return None
    by_partition: dict[tuple[object, object], list[Row]] = {}
    for row in tables.rows("remote_segments"):
        by_partition.setdefault((row["topic_id"], row["partition"]), []).append(row)
    worst = sorted(partitions, key=lambda p: (-p["errors"], -p["warnings"], p["topic"], p["partition"]))
    parts: list[Html] = []
    for one in worst[:MOST_PICTURES]:
        said = [count(one["segments"], "remote segment"), size(one["size_in_bytes"])]
        said += [count(one["errors"], "error")] if one["errors"] else []
        said += [count(one["warnings"], "warning")] if one["warnings"] else []
        held = by_partition.get((one["topic_id"], one["partition"]), [])
        parts.append(element("h3", f"{one['topic']}-{one['partition']}"))
        parts.append(element("p", ", ".join(said), class_="quiet"))
        parts.append(element("div", tier_picture(one, held), class_="scroll"))
    more = len(worst) - MOST_PICTURES
    if more > 0:
        parts.append(element("p", f"{count(more, 'more partition')} without a picture", class_="quiet"))
    return element("section", element("h2", "Tiered storage"), join(parts))
