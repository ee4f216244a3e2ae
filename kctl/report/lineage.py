"""The picture of a partition: a lane for each replica, its epochs as bands on the offset axis.

No meaning depends on colour: bands have their epoch's number and a border, high watermarks are ticks, branch points
are dashed lines with their offset, lost ranges are outlined and named, damaged ranges are hatched. Details are in the
titles that a pointer shows. There is no script, and every text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kctl.model import StoredRow
from kctl.replica.loss.words import listed
from kctl.report.html import Html, element

WIDTH, LEFT, RIGHT = 720, 150, 14
DRAWN = 960  # as wide as the timeline, so that letters have about the same size
LANE, BETWEEN, TOP, AXIS = 22, 8, 30, 38
MOST_BANDS = 300  # in one lane; narrower ones are joined with their neighbours
MOST_LANES = 40
MOST_MARKS = 50
NUMBER_WIDTH = 7.5  # of a digit, in units of the picture
Band = tuple[int, int, int | None]


def lineage_picture(
    lineages: Sequence[StoredRow],
    divergences: Iterable[StoredRow] = (),
    losses: Iterable[StoredRow] = (),
    findings: Iterable[StoredRow] = (),
    segments: Iterable[StoredRow] = (),
) -> Html:
    """An inline SVG of one partition from its rows of kind lineage, divergence, loss, finding and segment.

    The rows may be as commands print them or as tables hold them, with lists as JSON text. Lanes are in the order of the
    lineages, at most 40.
    """
    shown = list(lineages)[:MOST_LANES]
    lost = sorted(losses, key=lambda row: int(row["from_offset"]))[:MOST_MARKS]
    picture = _LineagePicture(shown, lost)
    damaged = [row for row in findings if is_damage(row)]
    segments = list(segments)
    for row in shown:
        of_row = [finding for finding in damaged if _is_of(finding, row)]
        picture.lane(row, of_row, [segment for segment in segments if _is_of(segment, row)])
    picture.branch_points(divergences)
    for row in lost:
        picture.loss(row)
    return picture.svg()


def is_damage(finding: StoredRow) -> bool:
    """Whether a finding is about damaged bytes of a log."""
    if finding.get("remote_log_segment_id") is not None:
        return False  # the tier's pictures show it
    in_a_file = finding["severity"] == "error" and finding.get("position") is not None
    return finding["code"] == "replica-damaged-copy" or in_a_file


def _is_of(finding: StoredRow, lineage: StoredRow) -> bool:
    return bool(
        finding["broker_id"] == lineage["broker_id"] and finding.get("moment") == lineage.get("moment")
    )


def bands_of(lineage: StoredRow) -> list[Band]:
    """The bands (from, to, epoch) of a replica; the epoch is None if unknown."""
    start, end = int(lineage["log_start_offset"]), int(lineage["log_end_offset"])
    epochs = [(int(epoch), int(first)) for epoch, first in listed(lineage["epochs"])]
    bands: list[Band] = []
    known_from = epochs[0][1] if epochs else end
    if start < min(known_from, end):
        bands.append((start, min(known_from, end), None))
    for index, (epoch, first) in enumerate(epochs):
        until = epochs[index + 1][1] if index + 1 < len(epochs) else end
        if max(first, start) < min(until, end):
            bands.append((max(first, start), min(until, end), epoch))
    return bands


class _LineagePicture:
    def __init__(self, lineages: Sequence[StoredRow], losses: Sequence[StoredRow]) -> None:
        self.name = f"{lineages[0]['topic']}-{lineages[0]['partition']}" if lineages else "partition"
        starts = [int(row["log_start_offset"]) for row in lineages] + [int(r["from_offset"]) for r in losses]
        ends = [int(row["log_end_offset"]) for row in lineages]
        ends += [int(row["to_offset"]) for row in losses if row["to_offset"] is not None]
        self.low, self.high = min(starts, default=0), max(ends, default=1)
        self.high = max(self.high, self.low + 1)
        self.y = TOP
        self.parts: list[Html] = []
        self.lanes: dict[tuple[object, object], int] = {}
        self.problems: list[str] = []  # what is wrong, for readers who cannot see the picture
        epochs = {int(epoch) for row in lineages for epoch, _ in listed(row["epochs"])}
        self.colors = {epoch: "abc"[rank % 3] for rank, epoch in enumerate(sorted(epochs))}

    def draw(self, name: str, *children: object, **attributes: object) -> None:
        self.parts.append(element(name, *children, **attributes))

    def x(self, offset: int) -> float:
        """The horizontal position of an offset."""
        inside = min(max(offset, self.low), self.high)
        return round(LEFT + (inside - self.low) * (WIDTH - LEFT - RIGHT) / (self.high - self.low), 1)

    def lane(self, row: StoredRow, damaged: Sequence[StoredRow], segments: Sequence[StoredRow] = ()) -> None:
        """Draw a replica: its epochs, segments, high watermark and damage."""
        who = "broker ?" if row["broker_id"] is None else f"broker {row['broker_id']}"
        at = f" · {row['moment']}" if row.get("moment") else ""
        self.draw("text", _short(who + at), x=0, y=self.y + 15)
        for start, end, epoch in _thinned(bands_of(row), (self.high - self.low) / (WIDTH * 2)):
            self._band(start, end, epoch)
        for finding in damaged[:MOST_MARKS]:
            start, last = finding["base_offset"], finding["last_offset"]
            if start is not None:
                self._damage(int(start), int(start if last is None else last) + 1)
        for segment in segments[:MOST_BANDS]:
            self._notch(segment)
        high_watermark = row["high_watermark"]
        if high_watermark is not None:
            self._tick(int(high_watermark))
        self.lanes[row["broker_id"], row.get("moment")] = self.y
        self.y += LANE + BETWEEN

    def _band(self, start: int, end: int, epoch: int | None) -> None:
        x, width = self.x(start), max(round(self.x(end) - self.x(start), 1), 0.5)
        epoch_words = "epoch not known" if epoch is None else f"epoch {epoch}"
        fill = "none" if epoch is None else f"url(#band-{self.colors[epoch]})"
        self.draw(
            "rect", element("title", f"offsets [{start}, {end}), {epoch_words}"),
            x=x, y=self.y, width=width, height=LANE, fill=fill, stroke="var(--mark)", stroke_width=0.7,
        )  # fmt: skip
        if epoch is not None and width > NUMBER_WIDTH * len(str(epoch)) + 4:
            at = round(x + width / 2, 1)
            self.draw("text", epoch, x=at, y=self.y + 15, text_anchor="middle")

    def _damage(self, start: int, end: int) -> None:
        self.problems.append(f"damaged: offsets [{start}, {end}).")
        width = max(round(self.x(end) - self.x(start), 1), 3)
        self.draw(
            "rect", element("title", f"damaged: offsets [{start}, {end})"),
            x=self.x(start), y=self.y, width=width, height=LANE, fill="url(#damage)",
            stroke="var(--ink)", stroke_width=0.7,
        )  # fmt: skip

    def _notch(self, segment: StoredRow) -> None:
        if segment["base_offset"] is None:
            return
        x, name = self.x(int(segment["base_offset"])), str(segment["file"]).rpartition("/")[2]
        self.draw(
            "line", element("title", f"segment {name}"),
            x1=x, x2=x, y1=self.y + LANE - 5, y2=self.y + LANE, stroke="var(--ink)", stroke_width=1,
        )  # fmt: skip

    def _tick(self, high_watermark: int) -> None:
        x = self.x(high_watermark)
        self.draw(
            "line", element("title", f"high watermark {high_watermark}"),
            x1=x, x2=x, y1=self.y - 3, y2=self.y + LANE + 3, stroke="var(--ink)", stroke_width=2,
        )  # fmt: skip

    def branch_points(self, divergences: Iterable[StoredRow]) -> None:
        """Draw a dashed line with its offset where replicas diverge."""
        points = sorted({int(row["from_offset"]) for row in divergences})[:MOST_MARKS]
        free = 0.0
        for point in points:
            x = self.x(point)
            self.draw(
                "line", element("title", f"replicas part at offset {point}"),
                x1=x, x2=x, y1=TOP - 8, y2=self.y - BETWEEN + 4, stroke="var(--ink)", stroke_width=1,
                stroke_dasharray="2 3",
            )  # fmt: skip
            text = f"parts at {point:,}"
            if x >= free and x + len(text) * NUMBER_WIDTH < WIDTH:
                self.draw("text", text, x=x, y=TOP - 12, class_="quiet")
                free = x + len(text) * NUMBER_WIDTH

    def loss(self, row: StoredRow) -> None:
        """Draw a lost range: outlined on the lanes that still hold it, and named on a lane of its own."""
        start, end = int(row["from_offset"]), row["to_offset"]
        until = self.high if end is None else int(end)
        shown_end = "..." if end is None else f"{until:,}"
        loss_kind = f"{row['class']}, {str(row['cause']).replace('_', ' ')}"
        title = f"lost: offsets [{start}, {shown_end}), {loss_kind}"
        self.problems.append(f"{title}.")
        for copy in listed(row["recoverable_from"]):
            y = self.lanes.get((copy.get("broker_id"), copy.get("moment")))
            if y is not None:
                self._outline(start, until, y - 2, LANE + 4, title)
        self._outline(start, until, self.y, LANE, title)
        self.draw("text", "lost", x=0, y=self.y + 15)
        text = f"[{start:,}, {shown_end}) {loss_kind}"
        room = self.x(until) + 6 + len(text) * 6.5 < WIDTH
        x = self.x(until) + 6 if room else self.x(start) - 6
        anchor = None if room else "end"
        if not room and x - len(text) * 6.5 < LEFT - 80:  # beside it there is no room: below
            self.y += LANE
            x, anchor = LEFT, None
        self.draw("text", text, x=x, y=self.y + 15, text_anchor=anchor)
        self.y += LANE + BETWEEN

    def _outline(self, start: int, end: int, y: float, height: float, title: str) -> None:
        width = max(round(self.x(end) - self.x(start), 1), 3)
        self.draw(
            "rect", element("title", title),
            x=self.x(start), y=y, width=width, height=height, fill="none", stroke="var(--lost)",
            stroke_width=2.5, stroke_dasharray="6 3",
        )  # fmt: skip

    def svg(self) -> Html:
        copies = f"{len(self.lanes)} copies" if len(self.lanes) != 1 else "1 copy"
        description = f"{copies}, offsets {self.low:,} to {self.high:,}. {' '.join(self.problems)}".strip()
        return element(
            "svg",
            element("title", f"{self.name}: leader epochs of each copy by offset"),
            element("desc", description),
            *self.parts, *offset_axis(self.low, self.high, self.x, self.y),
            viewBox=f"0 0 {WIDTH} {self.y + AXIS}", width=DRAWN, role="img",
        )  # fmt: skip


def offset_axis(low: int, high: int, x: Callable[[int], float], y: float) -> list[Html]:
    """The axis of a picture, `AXIS` high: a line, at most five offsets, its title."""
    step = max((high - low) // 4, 1)
    places = [low + step * number for number in range(4) if low + step * number < high - step // 2] + [high]
    parts = [element("line", x1=x(low), x2=x(high), y1=y, y2=y, stroke="var(--mark)")]
    for number, offset in enumerate(places):
        anchor = "start" if number == 0 else "end" if offset == high else "middle"
        parts.append(element("line", x1=x(offset), x2=x(offset), y1=y, y2=y + 4, stroke="var(--mark)"))
        parts.append(
            element("text", f"{offset:,}", x=x(offset), y=y + 16, text_anchor=anchor, class_="quiet")
        )
    middle = round((x(low) + x(high)) / 2, 1)
    return [*parts, element("text", "offset", x=middle, y=y + 32, text_anchor="middle", class_="quiet")]


# Fills that the pictures of a page share: a colour, and a pattern for readers who cannot see colours.
PATTERNS = {
    "band-a": ("var(--band-a)", ""), "band-b": ("var(--band-b)", "M0 0L8 8"), "band-c": ("var(--band-c)", "M4 0V8"),
    "damage": ("var(--paper)", "M0 8L8 0M-2 2L2 -2M6 10L10 6M0 4L4 0M4 8L8 4"), "outside": ("var(--paper)", "M0 0L8 8M0 8L8 0"),
    "leader-0": ("var(--l0)", ""), "leader-1": ("var(--l1)", "M0 0L8 8"), "leader-2": ("var(--l2)", "M0 8L8 0"),
    "leader-3": ("var(--l3)", "M4 0V8"), "leader-4": ("var(--l4)", "M0 4H8"), "leader-5": ("var(--l5)", "M0 0L8 8M0 8L8 0"),
    "leader-6": ("var(--l6)", "M4 0V8M0 4H8"), "leader-7": ("var(--l7)", "M2 2h2v2h-2z"),
}  # fmt: skip


def patterns() -> Html:
    """The fills of all pictures, once a page."""
    made = [
        element(
            "pattern",
            element("rect", width=8, height=8, fill=color),
            element("path", d=lines, class_="hatch", stroke_width=2 if name == "damage" else 1) if lines else None,
            id=name, width=8, height=8, patternUnits="userSpaceOnUse",
        )
        for name, (color, lines) in PATTERNS.items()
    ]  # fmt: skip
    return element("svg", element("defs", *made), width=0, height=0, class_="patterns", aria_hidden="true")


def key(*entries: tuple[Html | str, str]) -> Html:
    """The legend of a picture: samples and their meaning."""
    spans: list[object] = []
    for drawn, meaning in entries:
        sample = (
            element("svg", drawn, viewBox="0 0 26 14", width=26, height=14, aria_hidden="true")
            if isinstance(drawn, Html)
            else drawn
        )
        spans.append(element("span", sample, f" {meaning}"))
    return element("p", *spans, class_="key")


def swatch(fill: str, **attributes: object) -> Html:
    """A filled box of a legend."""
    return element(
        "rect", x=1, y=1, width=24, height=12, fill=fill, **{"stroke": "var(--mark)", **attributes}
    )


def legend() -> Html:
    """The legend of a partition's picture."""
    line = {"y1": 0, "y2": 14, "x1": 13, "x2": 13}
    return key(
        (swatch("url(#band-a)"), "leader epoch, with its number"), (swatch("none"), "epoch not known"),
        (element("line", stroke="var(--ink)", x1=13, x2=13, y1=7, y2=12), "segment begins"),
        (element("line", stroke="var(--ink)", stroke_width=2.5, **line), "high watermark"),
        (swatch("url(#damage)"), "damaged"),
        (swatch("none", stroke="var(--lost)", stroke_width=2.5, stroke_dasharray="6 3"), "lost"),
        (element("line", stroke="var(--ink)", stroke_dasharray="2 3", **line), "copies part"),
    )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= 22 else text[:21] + "…"


def _thinned(bands: list[Band], least: float) -> list[Band]:
    """The bands without those too narrow to be seen, if there are too many."""
    if len(bands) <= MOST_BANDS:
        return bands
    thinned: list[Band] = []
    for start, end, epoch in bands:
        if thinned and end - thinned[-1][0] < least * 4:
            thinned[-1] = (thinned[-1][0], end, epoch)
        else:
            thinned.append((start, end, epoch))
    return thinned
