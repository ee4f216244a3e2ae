"""Who led when, drawn in text: a line of leaders, epochs and ISRs on a time axis, then each leadership in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from commands.render import Page, Row, aligned, cell, visible

LABEL = 10
HOW = {
    "unclean": "UNCLEAN", "failure": "failure", "controlled_shutdown": "controlled shutdown", "preferred": "preferred",
    "reassignment": "reassignment", "creation": "creation", "isr_change": "ISR change", "none": "", "unknown": "unknown",
}  # fmt: skip
# A chart for each partition up to so many; more get the words alone.
CHARTS = 30


def chart(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The rows of `state-log timeline` on a terminal."""
    for kind, run in groupby(rows, key=lambda row: str(row["kind"])):
        if kind == "leader":
            yield from _partitions(run, page)
        else:
            yield from _others(kind, run, page)


def _partitions(rows: Iterable[Row], page: Page) -> Iterator[str]:
    for number, ((topic, partition), run) in enumerate(
        groupby(rows, key=lambda r: (r["topic"], r["partition"]))
    ):
        ones: list[dict[str, Any]] = [dict(row) for row in run]
        if number < CHARTS:
            yield from _axis(f"{topic}-{partition}", ones, page)
        else:
            yield page.style(visible(f"{topic}-{partition}"), "bold")
        for one in ones:
            yield _words(one, page)
        missing = [str(one["leader_epoch"]) for one in ones if one["leader"] is None]
        if missing:
            few = ", ".join(missing)
            yield page.style(
                f"  epoch{'s' * (len(missing) > 1)} {few} {'is' if len(missing) == 1 else 'are'} not in these logs",
                "warning",
            )
        yield ""


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _axis(name: str, ones: list[dict[str, Any]], page: Page) -> Iterator[str]:
    width = max(min(page.width, 160) - LABEL - 1, 24)
    start = _when(ones[0]["from_time"])
    last = max(_when(one["to_time"] or one["from_time"]) for one in ones)
    span = max((last - start).total_seconds() * 1.1, 1.0)
    if ones[-1]["to_time"]:
        span = max((last - start).total_seconds(), 1.0)

    def place(text: str) -> int:
        return min(int((_when(text) - start).total_seconds() / span * width), width - 1)

    times = ""
    for at in range(0, width - 8, max(width // 4, 12)):
        shown = f"{start + timedelta(seconds=span * at / width):%H:%M:%S}"
        times = times.ljust(at) + shown
    yield page.style(visible(name).ljust(LABEL), "bold") + page.style(f" {times}", "dim")
    leaders, epochs, isrs = [" "] * width, [" "] * width, [" "] * width
    styles: list[str] = ["bold"] * width
    for one in ones:
        at = place(one["from_time"])
        end = width if one["to_time"] is None else max(place(one["to_time"]), at + 1)
        letter = _letter(one["leader"])
        for column in range(at, min(end, width)):
            leaders[column] = letter
            styles[column] = "error" if one["leader"] == -1 else "bold"
        if one["how"] == "unclean":
            leaders[at], styles[at] = "!", "error"
        _write(epochs, at, str(one["leader_epoch"]))
        _write(isrs, at, _ids(one["isr"]))
        for change in one["isr_changes"]:
            _write(isrs, place(change["time"]), _ids(change["isr"]))
    drawn = "".join(
        page.style("".join(leaders[i] for i, _ in run), style)
        for style, run in ((s, list(g)) for s, g in groupby(enumerate(styles), key=lambda pair: pair[1]))
    )
    yield f"{'  leader'.ljust(LABEL)} {drawn}"
    yield f"{'  epoch'.ljust(LABEL)} {''.join(epochs).rstrip()}"
    yield f"{'  ISR'.ljust(LABEL)} {''.join(isrs).rstrip()}"


def _letter(leader: int | None) -> str:
    if leader is None:
        return "?"
    return "-" if leader < 0 else str(leader)[-1]


def _write(line: list[str], at: int, text: str) -> None:
    """Write where there is room: what stands there already counts more than what comes later."""
    if at and line[at - 1] != " ":
        return
    for offset, char in enumerate(text):
        if at + offset < len(line):
            line[at + offset] = char


def _ids(ids: list[int] | None) -> str:
    return "" if ids is None else ",".join(map(str, ids))


def _words(one: dict[str, Any], page: Page) -> str:
    leader = (
        "unknown"
        if one["leader"] is None
        else "no leader"
        if one["leader"] < 0
        else f"leader {one['leader']}"
    )
    how = HOW[one["how"]]
    cause = one["cause"] or ""
    why = (
        f"{how}: {cause}"
        if how and cause and one["how"] in ("unclean", "isr_change", "failure")
        else cause or how
    )
    proof = one["evidence"][0] if one["evidence"] else None
    where = f"{proof['file']}:{proof['line']}" if proof else ""
    time = one["from_time"][11:-1]
    text = f"  {time}  {leader:<10} epoch {one['leader_epoch']:<4} ISR {_ids(one['isr']):<12} {visible(why):<28} "
    style = "error" if one["how"] == "unclean" else "warning" if one["leader"] == -1 else ""
    return (page.style(text, style) if style else text) + page.style(visible(where), "dim")


def _others(kind: str, rows: Iterable[Row], page: Page) -> Iterator[str]:
    if kind == "controller_term":
        yield page.style("controllers", "bold")
        for row in rows:
            one: dict[str, Any] = dict(row)
            until = one["to_time"][11:-1] if one["to_time"] else "still"
            stale = f"  {len(one['rejections'])} requests rejected as stale" if one["rejections"] else ""
            yield (
                f"  {one['from_time'][11:-1]} to {until:<12}  broker {one['broker_id']}  epoch {one['controller_epoch']}"
                f"  {one['ended'] or ''}{page.style(stale, 'warning')}"
            )
        yield ""
    elif kind == "broker_state":
        yield page.style("brokers", "bold")
        for row in rows:
            state: dict[str, Any] = dict(row)
            proof = state["evidence"][0] if state["evidence"] else None
            where = f"{proof['file']}:{proof['line']}" if proof else ""
            wrong = state["state"] in ("killed", "halted", "fenced", "unclean_shutdown")
            said = f"broker {state['broker_id']}  {state['state'].replace('_', ' '):<20}"
            yield (
                f"  {state['time'][11:-1]}  {page.style(said, 'warning') if wrong else said}  "
                f"{page.style(visible(where), 'dim')}"
            )
        yield ""
    elif kind == "finding":
        for row in rows:
            severity = str(row["severity"])
            yield f"{page.style(severity, severity)}: {visible(str(row['message']))}"
    else:
        yield from aligned(rows, page)


def explained(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The row of `state-log explain` on a terminal."""
    for row in rows:
        one: dict[str, Any] = dict(row)
        yield page.style(visible(one["text"]), "bold")
        if one["event"] is None:
            yield "no template fits this line"
            continue
        yield ""
        yield f"{one['event']}  {visible(one['meaning'] or '')}"
        if one["sign"]:
            yield page.style(f"a sign of: {one['sign']}", "warning")
        yield f"printed by Kafka {one['versions']}, level {level_words(str(one['level']))}"
        for name, value in one["fields"].items():
            yield f"  {name:<24} {visible(cell(value))}"
        for title, listed in (("before it", one["before"]), ("after it", one["after"])):
            for line in listed:
                yield f"{title:<10} {line['event']:<5} {visible(KIND_OF_FIELD.sub('}', line['pattern']))}"


KIND_OF_FIELD = re.compile(r":[A-Za-z]+\}")  # `{partition:i}`: how the field is read is nothing for people
LEVELS = {"T": "TRACE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}


def level_words(text: str) -> str:
    """`T; I 2.6+` as `TRACE; INFO 2.6+`."""
    return re.sub(r"\b[TDIWEF]\b", lambda found: LEVELS[found[0]], text)
