"""The report's section on time: brokers' lives above the leaderships; partitions with one history share a row.

The plot is a nested SVG with its own coordinates, so that the page's script can stretch it to the time range in the
URL (`#time=FROM/TO`) without stretching the letters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from formats.values import Struct
from formats.words import counted
from kctl.audit.tables import Tables
from kctl.broker_logs.history.leaderships import (
    LIKELY,
    NO_LEADER,
    SURE,
    IsrChange,
    Leadership,
    place_of,
)
from kctl.model import StoredRow, TopicPartition
from kctl.replica.loss.words import listed
from kctl.report.html import Html, element, table
from kctl.report.lineage import key, swatch
from kctl.times import iso, parse_iso

WIDTH, LABELS, RIGHT, TOP = 960, 190, 8, 40
PLOT = WIDTH - LABELS - RIGHT
COLORS = 8
# Up to so many rows are tall; more are low, and groups without changes are only counted.
TALL, TALL_ROW, LOW_ROW = 60, 26, 12
MOST_ROWS = 300
MOST_LISTED = 600
MOST_PRINTED = 100
MOST_LIVES = 24
ALIKE_MS = (
    2_000  # changes of partitions of one history are no further apart than this, or than a pixel or two
)
BEGINS = frozenset({"starting", "up", "registered", "unfenced"})
ENDS = {"killed": "✕", "halted": "✕", "down": "■", "controlled_shutdown": "▿", "stopping": "■", "fenced": "‖"}


class Axis(Struct, frozen=True):
    """The scale of time in the plot."""

    start: int
    end: int

    def x(self, time_ms: int) -> float:
        """The horizontal position of a time in the plot."""
        return round(PLOT * (time_ms - self.start) / max(self.end - self.start, 1), 1)


class SharedHistory(Struct, frozen=True):
    """Partitions with the same history; the leaderships are those of the first one."""

    partitions: tuple[TopicPartition, ...]
    leaderships: tuple[Leadership, ...]

    @property
    def name(self) -> str:
        """`ledger-0`, or `ledger-0 … ledger-9 (10)`."""
        first, last = self.partitions[0], self.partitions[-1]
        return str(first) if first == last else f"{first} … {last} ({len(self.partitions):,})"

    @property
    def trouble(self) -> int:
        """3 with an unclean election, 2 with a time without leader, 1 with a gap in the logs, else 0."""
        if any(leadership.is_unclean for leadership in self.leaderships):
            return 3
        leaders = {leadership.leader for leadership in self.leaderships}
        return 2 if NO_LEADER in leaders else 1 if None in leaders else 0


def section(tables: Tables) -> Html | None:
    """The section of the report; None if no log names a partition."""
    return leaders_section(tables.rows("leaders"), tables.rows("broker_states"))


def leaders_section(rows: Iterable[StoredRow], states: Iterable[StoredRow] = ()) -> Html | None:
    """Who led each partition and when, from rows of kind `leader` and `broker_state`; None without a leader.

    Brokers differ by number and pattern as well as by colour; each bar links to the line of the table below that
    describes it and names the log line that shows it. Times are UTC.
    """
    partitions: dict[TopicPartition, list[Leadership]] = {}
    for row in rows:
        leadership = leadership_of(row)
        partitions.setdefault(leadership.topic_partition, []).append(leadership)
    if not partitions:
        return None
    lives = sorted(states, key=lambda row: str(row["time"]))
    everything = [leadership for leaderships in partitions.values() for leadership in leaderships]
    changes = [parse_iso(row["time"]) for row in lives]
    start = min([leadership.from_ms for leadership in everything] + changes)
    end = max([leadership.to_ms or leadership.last_seen_ms for leadership in everything] + changes)
    # Room at the left for the mark of a start, at the right for leaderships that still hold.
    axis = Axis(start - max((end - start) // 80, 1), end + max((end - start) // 25, 1))
    alike_ms = max(ALIKE_MS, (axis.end - axis.start) // 400)
    groups = grouped(partitions, alike_ms)
    if len(groups) > TALL:
        groups = grouped(partitions, alike_ms, across_topics=True)
    shown = _shown(groups)
    leaders = {leadership.leader for leadership in everything}
    brokers = sorted(leader for leader in leaders if leader is not None and leader >= 0)
    colors = {broker: number % COLORS for number, broker in enumerate(brokers)}
    listing = _Listing()
    picture = _picture(shown, lives, colors, axis, listing)
    quiet = sum(len(group.partitions) for group in groups) - sum(len(group.partitions) for group in shown)
    return element(
        "section",
        element("h2", "Who led when"),
        element("p", _sentence(everything, len(partitions), axis), class_="quiet"),
        _legend(brokers, colors),
        element("p", "Zoom with a time range in the address: ", element("code", f"#time={iso(axis.start)}/{iso(axis.end)}"), class_="quiet zoom", hidden="hidden"),
        element("div", picture, class_="scroll"),
        element("p", f"{counted(quiet, 'more partition')} without a picture.", class_="quiet") if quiet else None,
        listing.html(),
        class_="leaders", id="leaders",
    )  # fmt: skip


def leadership_of(row: StoredRow) -> Leadership:
    """A leadership from its row; lists may be JSON text, as tables hold them."""
    isr = None if row["isr"] is None else tuple(listed(row["isr"]))
    start = parse_iso(row["from_time"])
    leadership = Leadership(
        TopicPartition(row["topic"], row["partition"]),
        row["leader_epoch"],
        leader=row["leader"],
        isr=isr,
        isr_changes=[
            IsrChange(parse_iso(c["time"]), tuple(c["isr"]), None, c["file"], c["line"], c.get("offset"))
            for c in listed(row["isr_changes"])
        ],
        from_ms=start,
        to_ms=parse_iso(row["to_time"]) if row["to_time"] else None,
        how=row["how"],
        cause=row.get("cause") or "",
        strength=row.get("strength") or SURE,
        proofs=listed(row["evidence"]),
    )
    leadership.last_seen_ms = max([start, *(change.time_ms for change in leadership.isr_changes)])
    return leadership


def grouped(
    partitions: Mapping[TopicPartition, Sequence[Leadership]], alike_ms: int, *, across_topics: bool = False
) -> list[SharedHistory]:
    """Partitions grouped by leaders, epochs and ISRs at about the same times; those with trouble first."""
    alike: dict[object, list[list[TopicPartition]]] = defaultdict(list)
    for name in sorted(partitions):
        leaderships = partitions[name]
        steps = tuple((led.leader, led.leader_epoch, led.how, led.isr) for led in leaderships)
        for members in alike[across_topics or name.topic, steps]:
            first = partitions[members[0]]
            if all(abs(a.from_ms - b.from_ms) <= alike_ms for a, b in zip(first, leaderships, strict=True)):
                members.append(name)
                break
        else:
            alike[across_topics or name.topic, steps].append([name])
    histories = [
        SharedHistory(tuple(members), tuple(partitions[members[0]]))
        for sets in alike.values()
        for members in sets
    ]
    return sorted(histories, key=lambda group: (-group.trouble, group.partitions))


def _shown(groups: Sequence[SharedHistory]) -> Sequence[SharedHistory]:
    """The groups to draw: all if they are few, else those that changed."""
    if len(groups) <= TALL:
        return groups
    busy = [group for group in groups if len(group.leaderships) > 1][:MOST_ROWS]
    return busy or groups[:TALL]


def _sentence(everything: Sequence[Leadership], partitions: int, axis: Axis) -> str:
    unclean = sum(leadership.is_unclean for leadership in everything)
    extent = f"{counted(partitions, 'partition')} from {iso(axis.start)} to {iso(axis.end)}, as the brokers' logs say. "
    return extent + (
        f"{counted(unclean, 'unclean election')}." if unclean else "These logs show no unclean election."
    )


def _legend(brokers: Sequence[int], colors: dict[int, int]) -> Html:
    leaders = [(swatch(f"url(#leader-{colors[broker]})"), f"broker {broker} leads") for broker in brokers]
    return key(
        *leaders,
        (swatch("none", stroke="var(--error)", stroke_dasharray="3 2"), "no leader"),
        (swatch("none", stroke_dasharray="1 3"), "not in these logs"),
        ("▼", "unclean election"),
        (element("line", x1=13, x2=13, y1=5, y2=12, stroke="var(--ink)"), "change of the ISR"),
        ("▲", "start"), ("✕", "killed or halted"), ("■", "stop"), ("▿", "controlled shutdown"), ("‖", "fenced"),
    )  # fmt: skip


class _Listing:
    """The table of everything drawn, which the bars link to."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self.total = 0

    def add(self, cells: list[object]) -> str | None:
        """Add a row; return its id, None if the table is full."""
        self.total += 1
        if len(self.rows) >= MOST_LISTED:
            return None
        self.rows.append(cells)
        return f"change-{len(self.rows)}"

    def html(self) -> Html:
        header = ["what", "from (UTC)", "leader", "epoch", "ISR", "how", "line that shows it"]
        more = f" (the first {len(self.rows):,})" if self.total > len(self.rows) else ""
        ids = [f"change-{number}" for number in range(1, len(self.rows) + 1)]
        return element(
            "details",
            element("summary", f"{counted(self.total, 'change')} in words{more}"),
            table(header, self.rows, frozenset((3,)), ids=ids),
            class_="changes bulk" if len(self.rows) > MOST_PRINTED else "changes",
        )


def _picture(
    groups: Sequence[SharedHistory],
    lives: Sequence[StoredRow],
    colors: dict[int, int],
    axis: Axis,
    listing: _Listing,
) -> Html:
    row = LOW_ROW if len(groups) > TALL else TALL_ROW
    bar_height = row - (6 if row == TALL_ROW else 2)
    labels: list[Html] = []
    plot: list[Html] = []
    top = TOP
    # Leaderships come first in the listing: of many changes they are what is asked about.
    brokers = sorted({life["broker_id"] for life in lives if life["broker_id"] is not None})[:MOST_LIVES]
    tops = {broker: TOP + 20 * number for number, broker in enumerate(brokers)}
    top += 20 * len(brokers) + (8 if brokers else 0)
    for group in groups:
        label = group.name if len(group.name) <= 28 else f"{group.name[:12]}…{group.name[-15:]}"
        y, class_ = top + bar_height - 2 - (bar_height > 15) * 3, "low" if row == LOW_ROW else None
        labels.append(element("text", element("title", group.name), label, x=2, y=y, class_=class_))
        for leadership in group.leaderships:
            plot.extend(_bar(group, leadership, colors, axis, top, bar_height, listing))
        top += row
    for broker, place in tops.items():
        labels.append(element("text", f"broker {broker}", x=2, y=place + 12))
        plot.extend(_life([life for life in lives if life["broker_id"] == broker], axis, place, listing))
    height = top + 4
    ticks = list(_ticks(axis, height))
    unclean = sum(leadership.is_unclean for group in groups for leadership in group.leaderships)
    return element(
        "svg",
        element("title", "Lives of brokers and leaders of partitions over time"),
        element("desc", f"{counted(len(groups), 'row')} of partitions and {counted(len(brokers), 'broker')}, {iso(axis.start)} to {iso(axis.end)}; {counted(unclean, 'unclean election')} drawn. The table beneath says the same in words."),
        element("text", "time (UTC)", x=2, y=14, class_="quiet"),
        *labels,
        element("svg", *ticks, *plot, x=LABELS, y=0, width=PLOT, height=height, viewBox=f"0 0 {PLOT} {height}", class_="plot", data_from=axis.start, data_to=axis.end),
        viewBox=f"0 0 {WIDTH} {height}", width=WIDTH, height=height, role="img", class_="low" if row == LOW_ROW else None,
    )  # fmt: skip


def _ticks(axis: Axis, height: int) -> Iterator[Html]:
    for number in range(5):
        time_ms = axis.start + (axis.end - axis.start) * number // 4
        x = axis.x(time_ms)
        anchor = "end" if number == 4 else "start" if number == 0 else "middle"
        yield element("line", x1=x, x2=x, y1=20, y2=height, class_="axis fixed")
        yield element(
            "text", iso(time_ms)[5:19].replace("T", " "), x=x, y=14, text_anchor=anchor, class_="quiet fixed"
        )


def _bar(
    group: SharedHistory,
    leadership: Leadership,
    colors: dict[int, int],
    axis: Axis,
    top: int,
    height: int,
    listing: _Listing,
) -> Iterator[Html]:
    left = axis.x(leadership.from_ms)
    width = max(round(axis.x(leadership.to_ms if leadership.to_ms is not None else axis.end) - left, 1), 1.0)
    box = {"x": left, "y": top, "width": width, "height": height}
    is_led = leadership.leader is not None and leadership.leader >= 0
    fill = f"url(#leader-{colors[leadership.leader]})" if leadership.leader is not None and is_led else None
    class_ = None if is_led else "gap" if leadership.leader is None else "none"
    parts = [element("rect", element("title", _words(group, leadership)), class_=class_, fill=fill, **box)]
    if is_led and width > 16 and height > 8:
        text = (
            f"{leadership.leader}"
            if width < 60
            else f"{leadership.leader}·{leadership.leader_epoch}"
            if width < 90
            else f"{leadership.leader} · epoch {leadership.leader_epoch}"
        )
        x = round(left + 4 + leadership.is_unclean * 10, 1)
        parts.append(element("text", text, x=x, y=top + height - 2 - (height > 15) * 4))
    for change in leadership.isr_changes:
        x = axis.x(change.time_ms)
        parts.append(element("line", x1=x, x2=x, y1=top + height - 4, y2=top + height, class_="isr"))
    if leadership.is_unclean:
        parts.append(element("text", "▼", x=left, y=top + min(height, 12), class_="unclean"))
    row = listing.add(_cells(group, leadership))
    yield element("a", *parts, href=f"#{row}") if row else element("g", *parts)


def _life(states: Sequence[StoredRow], axis: Axis, top: int, listing: _Listing) -> Iterator[Html]:
    """Draw a bar while the broker ran, and a mark for each change of its life."""
    running: int | None = axis.start if states[0]["state"] in ENDS else None
    bars: list[tuple[int, int]] = []
    marks: list[Html] = []
    for state in states:
        time = parse_iso(state["time"])
        if state["state"] in BEGINS:
            mark = "▲" if running is None else ""
            running = time if running is None else running
        else:
            mark = ENDS.get(state["state"], "")
            if running is not None and state["state"] in ENDS:
                bars.append((running, time))
                running = None
        if mark:
            how = f" ({str(state['how']).replace('_', ' ')})" if state.get("how") else ""
            event = f"broker {state['broker_id']} {state['state'].replace('_', ' ')}{how}"
            row = listing.add(
                [event, iso(time)[:-1].replace("T", " "), "", "", "", "", _place(listed(state["evidence"]))]
            )
            text = element(
                "text",
                element("title", f"{event}, {iso(time)}"),
                mark,
                x=axis.x(time),
                y=top + 12,
                text_anchor="middle",
                class_="life",
            )
            marks.append(element("a", text, href=f"#{row}") if row else text)
    if running is not None:
        bars.append((running, axis.end))
    for start, end in bars:
        x = axis.x(start)
        yield element(
            "rect", x=x, y=top + 5, width=max(round(axis.x(end) - x, 1), 1.0), height=6, class_="alive"
        )
    yield from marks


def _words(group: SharedHistory, leadership: Leadership) -> str:
    who = (
        "not in these logs"
        if leadership.leader is None
        else "no leader"
        if leadership.leader < 0
        else f"broker {leadership.leader} leads"
    )
    since = iso(leadership.from_ms)[11:-1]
    times = f"since {since}" if leadership.to_ms is None else f"{since} to {iso(leadership.to_ms)[11:-1]}"
    isr = "" if leadership.isr is None else f", ISR {','.join(map(str, leadership.isr))}"
    return f"{group.name}: {who}, epoch {leadership.leader_epoch}{isr}, {times}, {_how(leadership)}"


def _how(leadership: Leadership) -> str:
    probably = "probably " if leadership.strength == LIKELY else ""
    cause = f": {leadership.cause}" if leadership.cause else ""
    return probably + leadership.how.replace("_", " ") + cause


def _cells(group: SharedHistory, leadership: Leadership) -> list[object]:
    leader = "?" if leadership.leader is None else "none" if leadership.leader < 0 else leadership.leader
    isr = "" if leadership.isr is None else ",".join(map(str, leadership.isr))
    how = element("strong", _how(leadership)) if leadership.is_unclean else _how(leadership)
    return [
        group.name,
        iso(leadership.from_ms)[:-1].replace("T", " "),
        leader,
        leadership.leader_epoch,
        isr,
        how,
        _place(leadership.proofs),
    ]


def _place(proofs: Sequence[Mapping[str, Any]]) -> Html:
    return element("code", place_of(proofs[0])) if proofs else Html("")
