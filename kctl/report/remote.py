"""Tiered storage in the report: a picture of remote and local ranges by epoch for each partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from formats import bounded_json
from formats.words import counted
from kctl.audit.tables import Tables
from kctl.model import StoredRow
from kctl.report.html import Html, element, join, more_rows, size, slug, table
from kctl.report.lineage import AXIS, DRAWN, key, offset_axis, swatch

Fault = tuple[int, int, str]  # from, to, codes of findings
WIDTH, LEFT, RIGHT = 720, 120, 12
LANE, GAP_BETWEEN = 22, 8
# Pictures of at most so many partitions; the table lists the others.
MOST_PICTURES = 40
MOST_ROWS, MOST_NAMED = 1_000, 5
# With more bands than this, neighbours of one epoch are drawn as one band.
MOST_BANDS = 300


def _pairs(value: object) -> list[tuple[int, int]]:
    """Pairs of numbers, also from JSON text as tables hold them."""
    pairs = bounded_json.loads(value) if isinstance(value, str) else value
    return [(int(a), int(b)) for a, b in pairs] if isinstance(pairs, list) else []


def _bands(rows: Iterable[StoredRow]) -> list[tuple[int, int, int]]:
    """Ranges (from, to, epoch) of remote segments, split by epoch."""
    bands = []
    for row in rows:
        epochs = _pairs(row["segment_leader_epochs"]) or [(-1, row["start_offset"])]
        ends = [start for _, start in epochs[1:]] + [row["end_offset"] + 1]
        for (epoch, start), end in zip(epochs, ends, strict=True):
            bands.append((max(start, row["start_offset"]), end, epoch))
    return sorted(bands)


def _merged(bands: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The ranges with neighbours of one epoch joined."""
    merged: list[tuple[int, int, int]] = []
    for start, end, epoch in bands:
        if merged and merged[-1][2] == epoch and merged[-1][1] >= start:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end), epoch)
        else:
            merged.append((start, end, epoch))
    return merged


def local_bands(partition: StoredRow) -> list[tuple[int, int, int]]:
    """The leader's local range, split by epoch."""
    start, end = partition["local_log_start_offset"], partition["log_end_offset"]
    if start is None or end is None:
        return []
    epochs = _pairs(partition["leader_epochs"]) or [(-1, start)]
    bands = []
    for (epoch, first), following in zip(epochs, [s for _, s in epochs[1:]] + [end], strict=True):
        low, high = max(first, start), min(following, end)
        if low < high:
            bands.append((low, high, epoch))
    return bands or ([(start, end, -1)] if end > start else [])


class _TierPicture:
    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, max(high, low + 1)
        self.parts: list[Html] = []
        self.y = 18

    def draw(self, name: str, *children: object, **attributes: object) -> None:
        self.parts.append(element(name, *children, **attributes))

    def x(self, offset: int) -> float:
        return round(LEFT + (offset - self.low) * (WIDTH - LEFT - RIGHT) / (self.high - self.low), 1)

    def lane(self, name: str, bands: list[tuple[int, int, int]], style: str) -> None:
        if not bands:
            return
        shown = Counter(bands if len(bands) <= MOST_BANDS else _merged(bands))
        self.draw("text", name, x=0, y=self.y + 15)
        # Overlapping copies are drawn on top of each other in half height, so that none hides another.
        end = self.low
        for (start, after, epoch), times in shown.items():
            overlaps = start < end
            self._band(start, after, epoch, style, overlaps, times)
            end = max(end, after)
        self.y += LANE + GAP_BETWEEN

    def _band(self, start: int, end: int, epoch: int, style: str, overlaps: bool, times: int) -> None:
        x, width = self.x(start), max(self.x(end) - self.x(start), 1)
        height = LANE / 2 if overlaps else LANE
        fills = {"solid": f"url(#band-{'ab'[epoch % 2]})", "outside": "url(#outside)", "unfinished": "none"}
        title = element(
            "title",
            f"offsets [{start}, {end}), "
            + (f"epoch {epoch}" if epoch >= 0 else "no epoch known")
            + (f", {times} times" if times > 1 else ""),
        )
        dashes = "4 3" if style == "unfinished" else None
        self.draw(
            "rect", title, x=x, y=self.y, width=round(width, 1), height=height, fill=fills[style],
            stroke="var(--mark)", stroke_width=0.7, stroke_dasharray=dashes,
        )  # fmt: skip
        if width > 14 and epoch >= 0 and not overlaps:
            self.draw("text", epoch, x=round(x + width / 2, 1), y=self.y + 15, text_anchor="middle")

    def faults(self, name: str, faults: list[Fault]) -> None:
        """Draw a lane with a hatched box for each fault; its title names the findings."""
        if not faults:
            return
        self.draw("text", name, x=0, y=self.y + 15)
        for start, end, codes in faults[:MOST_BANDS]:
            width = max(round(self.x(end) - self.x(start), 1), 3)
            title = element("title", f"offsets [{start}, {end}): {codes}")
            self.draw(
                "rect", title, x=self.x(start), y=self.y, width=width, height=LANE, fill="url(#damage)",
                stroke="var(--lost)", stroke_width=1,
            )  # fmt: skip
        self.y += LANE + GAP_BETWEEN

    def gap(self, start: int, end: int) -> None:
        x = self.x(start)
        title = element("title", f"offsets [{start}, {end}) are served by nothing")
        width, height = max(round(self.x(end) - x, 1), 2), max(self.y - 18, 4)
        self.draw(
            "rect", title, x=x, y=14, width=width, height=height, fill="none",
            stroke="var(--lost)", stroke_width=2, stroke_dasharray="5 3",
        )  # fmt: skip

    def tick(self, offset: int | None, name: str, anchor: str = "middle") -> None:
        if offset is None or not self.low <= offset <= self.high:
            return
        x = self.x(offset)
        anchor = "end" if x > WIDTH - RIGHT - 40 else anchor
        self.draw("line", x1=x, x2=x, y1=14, y2=self.y, stroke="var(--ink)", stroke_width=1)
        self.draw("text", name, x=x, y=10, text_anchor=anchor, class_="quiet")

    def svg(self, label: str, description: str) -> Html:
        return element(
            "svg", element("title", label), element("desc", description), *self.parts,
            *offset_axis(self.low, self.high, self.x, self.y),
            viewBox=f"0 0 {WIDTH} {self.y + AXIS}", width=DRAWN, role="img",
        )  # fmt: skip


def faults_of(
    segments: Iterable[StoredRow], findings: Iterable[StoredRow]
) -> tuple[list[Fault], list[Fault]]:
    """Segments with findings as (from, to, codes), and objects without metadata."""
    codes: dict[str, dict[str, None]] = defaultdict(dict)
    orphans: list[Fault] = []
    ranges = {row["remote_log_segment_id"]: (row["start_offset"], row["end_offset"] + 1) for row in segments}
    for row in findings:
        segment = row["remote_log_segment_id"]
        if segment in ranges:
            codes[segment][row["code"]] = None
        elif row["base_offset"] is not None:
            end = row["base_offset"] if row["last_offset"] is None else row["last_offset"]
            orphans.append((row["base_offset"], end + 1, row["code"]))
    return sorted((*ranges[segment], ", ".join(names)) for segment, names in codes.items()), sorted(orphans)


def tier_picture(
    partition: StoredRow, segments: Iterable[StoredRow], findings: Iterable[StoredRow] = ()
) -> Html:
    """An inline SVG: the tier's lanes and the leader's local lane by offset, with gaps outlined.

    `partition` is a `tier_partition` row, `segments` and `findings` the partition's rows of these kinds.
    """
    segments = list(segments)
    live = [row for row in segments if row["state"] != "DELETE_SEGMENT_FINISHED"]
    outside_ids = partition["outside_segments"]
    outside_ids = set(bounded_json.loads(outside_ids) if isinstance(outside_ids, str) else outside_ids or ())
    finished = [row for row in live if row["state"] == "COPY_SEGMENT_FINISHED"]
    inside = [row for row in finished if row["remote_log_segment_id"] not in outside_ids]
    outside = [row for row in finished if row["remote_log_segment_id"] in outside_ids]
    unfinished = [row for row in live if row["state"] != "COPY_SEGMENT_FINISHED"]
    local = local_bands(partition)
    offsets = [offset for a, b, _ in [*_bands(live), *local] for offset in (a, b)]
    ends = (partition["log_start_offset"], partition["log_end_offset"])
    offsets += [offset for offset in ends if offset is not None]
    faulty, orphans = faults_of(segments, findings)
    offsets += [offset for start, end, _ in orphans for offset in (start, end)]
    picture = _TierPicture(min(offsets, default=0), max(offsets, default=1))
    picture.lane("in the tier", _bands(inside), "solid")
    picture.lane("outside lineage", _bands(outside), "outside")
    picture.lane("not finished", _bands(unfinished), "unfinished")
    picture.faults("with faults", faulty)
    picture.faults("no metadata", orphans)
    picture.lane("local", local, "solid")
    gaps = _pairs(partition["gaps"])
    for start, end in gaps:
        picture.gap(start, end)
    picture.tick(partition["log_start_offset"], "log start", "start")
    if partition["local_log_start_offset"] != partition["log_start_offset"]:
        picture.tick(partition["local_log_start_offset"], "local start")
    missing = ", ".join(f"[{start:,}, {end:,})" for start, end in gaps[:MOST_NAMED])
    return picture.svg(
        f"{partition['topic']}-{partition['partition']}: remote and local offset ranges by leader epoch",
        f"{counted(len(inside), 'segment')} in the tier, {len(outside)} outside the lineage, {len(unfinished)} not finished. "
        + (f"Served by nothing: {missing}. " if gaps else "No gap. ")
        + " ".join(
            f"[{start:,}, {end:,}): {codes}." for start, end, codes in [*faulty, *orphans][:MOST_BANDS]
        ),
    )


def legend() -> Html:
    """The legend of a tiered partition's picture."""
    line = {"y1": 0, "y2": 14, "x1": 13, "x2": 13}
    return key(
        (swatch("url(#band-a)"), "segments of a leader epoch, with its number"),
        (swatch("url(#outside)"), "outside the lineage: never served"),
        (swatch("none", stroke_dasharray="4 3"), "not finished"),
        (
            swatch("none", stroke="var(--lost)", stroke_width=2, stroke_dasharray="5 3"),
            "gap: served by nothing",
        ),
        (swatch("url(#damage)", stroke="var(--lost)"), "segments with faults, objects without metadata"),
        (element("line", stroke="var(--ink)", **line), "log start, local start"),
    )


def section(tables: Tables) -> Html | None:
    """The section of the report; None without tiered partitions. Partitions with faults get pictures, others a table."""
    partitions = list(tables.rows("tier_partitions"))
    if not partitions:
        return None
    worst = sorted(
        partitions, key=lambda row: (-row["errors"], -row["warnings"], row["topic"], row["partition"])
    )
    faulty = [row for row in worst if row["errors"] or row["warnings"] or _pairs(row["gaps"])]
    by_partition: dict[tuple[object, object], list[StoredRow]] = {}
    pictured = {(partition["topic_id"], partition["partition"]) for partition in faulty[:MOST_PICTURES]}
    for row in tables.rows("remote_segments"):
        if (row["topic_id"], row["partition"]) in pictured:
            by_partition.setdefault((row["topic_id"], row["partition"]), []).append(row)
    damage: dict[tuple[object, object], list[StoredRow]] = defaultdict(list)
    pictured_names = {(partition["topic"], partition["partition"]) for partition in faulty[:MOST_PICTURES]}
    for row in tables.rows("findings"):
        is_of_tier = row["remote_log_segment_id"] is not None and row["severity"] != "info"
        if is_of_tier and (row["topic"], row["partition"]) in pictured_names:
            damage[row["topic"], row["partition"]].append(row)
    parts: list[Html] = [legend()] if faulty else []
    for partition in faulty[:MOST_PICTURES]:
        amounts = [counted(partition["segments"], "remote segment"), size(partition["size_in_bytes"])]
        amounts += [counted(partition["errors"], "error")] if partition["errors"] else []
        amounts += [counted(partition["warnings"], "warning")] if partition["warnings"] else []
        segments = by_partition.get((partition["topic_id"], partition["partition"]), [])
        name = f"{partition['topic']}-{partition['partition']}"
        picture = element(
            "div",
            tier_picture(partition, segments, damage[partition["topic"], partition["partition"]]),
            class_="scroll",
        )
        parts.append(
            element(
                "article",
                element("h3", name),
                element("p", ", ".join(amounts), class_="quiet"),
                picture,
                id=slug(f"tier-{name}"),
            )
        )
    without_picture = [row for row in worst if (row["topic_id"], row["partition"]) not in pictured]
    if without_picture:
        rows: list[list[object]] = [
            [f"{partition['topic']}-{partition['partition']}", partition["segments"], size(partition["size_in_bytes"]), partition["errors"] or "", partition["warnings"] or ""]
            for partition in without_picture[:MOST_ROWS]
        ]  # fmt: skip
        summary = f"{counted(len(without_picture), 'partition')} without a picture"
        header = ["partition", "remote segments", "size", "errors", "warnings"]
        parts.append(element(
            "details", element("summary", summary), table(header, rows, frozenset({1, 2, 3, 4})),
            more_rows(len(without_picture) - len(rows), "SELECT * FROM tier_partitions"), class_="bulk",
        ))  # fmt: skip
    return element("section", element("h2", "Tiered storage"), join(parts), id="tier")
