"""How the rows of `kctl state-log` look on a terminal: leaders, epochs and ISRs on a time axis, then in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from commands.cli.clock import clock, day, shown
from commands.cli.leaving import visible
from commands.cli.render import Page, Row, aligned, cell, ids
from formats.words import counted
from kctl.broker_logs.history.leaderships import place_of

LABEL = 10
A_DAY = 86_400
HOW = {
    "unclean": "UNCLEAN", "failure": "failure", "controlled_shutdown": "controlled shutdown", "preferred": "preferred",
    "reassignment": "reassignment", "creation": "creation", "isr_change": "ISR change", "none": "", "unknown": "unknown",
}  # fmt: skip
QUORUM = {"quorum_state": "nodes of the metadata quorum", "metadata_log": "copies of the metadata log"}
# Partitions that get a chart; the others get only words.
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
        leaderships: list[dict[str, Any]] = [dict(row) for row in run]
        if number < CHARTS:
            yield from _axis(f"{topic}-{partition}", leaderships, page)
        else:
            yield page.style(visible(f"{topic}-{partition}"), "bold")
        yield from _in_words(leaderships, page)
        missing = [str(row["leader_epoch"]) for row in leaderships if row["leader"] is None]
        if missing:
            verb = "epoch {} is" if len(missing) == 1 else "epochs {} are"
            yield page.style(f"  {verb.format(', '.join(missing))} not in these logs", "warning")
        yield ""


def _when(text: str) -> datetime:
    return datetime.fromisoformat(shown(text))


class Days:
    """A line with the day and the zone before the first line of each day."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._day = ""

    def before(self, time: str) -> Iterator[str]:
        """The line, where the day is another one than that of the line before."""
        if (now := day(time)) != self._day:
            self._day = now
            yield self._page.style(f"  {now}", "dim")


def _axis(name: str, leaderships: list[dict[str, Any]], page: Page) -> Iterator[str]:
    width = max(min(page.width, 160) - LABEL - 1, 24)
    start = _when(leaderships[0]["from_time"])
    last = max(_when(row["to_time"] or row["from_time"]) for row in leaderships)
    span = max((last - start).total_seconds() * (1.0 if leaderships[-1]["to_time"] else 1.1), 1.0)

    def place(text: str) -> int:
        return min(int((_when(text) - start).total_seconds() / span * width), width - 1)

    times = ""
    form = "%H:%M:%S" if span < A_DAY else "%m-%d %H:%M"
    for at in range(0, width - len(form), max(width // 4, 12)):
        times = times.ljust(at) + f"{start + timedelta(seconds=span * at / width):{form}}"
    label = visible(name)
    if len(label) > LABEL:
        yield page.style(label, "bold")
        label = ""
    yield page.style(label.ljust(LABEL), "bold") + page.style(f" {times}", "dim")
    leaders, epochs, isrs = [" "] * width, [" "] * width, [" "] * width
    styles: list[str] = ["bold"] * width
    for row in leaderships:
        at = place(row["from_time"])
        end = width if row["to_time"] is None else max(place(row["to_time"]), at + 1)
        letter = _letter(row["leader"])
        for column in range(at, min(end, width)):
            leaders[column] = letter
            styles[column] = "error" if row["leader"] == -1 else "bold"
        if row["how"] == "unclean":
            leaders[at], styles[at] = "!", "error"
        _write(epochs, at, str(row["leader_epoch"]))
        _write(isrs, at, ids(row["isr"]))
        for change in row["isr_changes"]:
            _write(isrs, place(change["time"]), ids(change["isr"]))
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
    """Write where there is room, else a mark in the next free column; earlier text is kept."""
    end = min(at + len(text), len(line))
    has_room = (not at or line[at - 1] == " ") and all(
        sign == " " for sign in line[at : min(end + 1, len(line))]
    )
    if has_room:
        line[at:end] = text[: end - at]
    elif " " in line[at : at + 4]:
        line[line.index(" ", at)] = "·"


def _in_words(rows: list[dict[str, Any]], page: Page) -> Iterator[str]:
    """A line a row, with the place it is read from at its end: in a column where the page is wide enough."""
    isr_width = max(len(ids(row["isr"])) for row in rows)
    reasons = [visible(_why(row)) for row in rows]
    places = [visible(place_of(row["evidence"][0])) if row["evidence"] else "" for row in rows]
    widest, days = max(map(len, reasons)), Days(page)
    for row, why, place in zip(rows, reasons, places, strict=True):
        leader = (
            "unknown"
            if row["leader"] is None
            else "no leader"
            if row["leader"] < 0
            else f"leader {row['leader']}"
        )
        yield from days.before(row["from_time"])
        text = (
            f"  {clock(row['from_time'])}  {leader:<10} epoch {row['leader_epoch']:<4}"
            f" ISR {ids(row['isr']):<{isr_width}}  "
        )
        fits = len(text) + widest + 2 + max(map(len, places)) <= page.width
        text += f"{why:<{widest}}" if fits and place else why
        style = "error" if row["how"] == "unclean" else "warning" if row["leader"] == -1 else ""
        yield (page.style(text, style) if style else text) + (
            page.style(f"  {place}", "dim") if place else ""
        )


def _why(row: dict[str, Any]) -> str:
    """How a leadership came to be, and why."""
    how, cause = HOW[row["how"]], row["cause"] or ""
    probably = "probably " if row["strength"] == "likely" else ""
    if how and cause and row["how"] in ("unclean", "isr_change", "failure"):
        return f"{probably}{how}: {cause}"
    return probably + (cause or how)


def _proof(row: dict[str, Any], page: Page) -> str:
    """The file and line that a row is read from."""
    proof = row["evidence"][0] if row["evidence"] else None
    return page.style(visible(place_of(proof)), "dim") if proof else ""


def _times(since: str, until: str) -> str:
    return f"{since} to {until:<12}" if until else f"{'since ' + since:<28}"


def _others(kind: str, rows: Iterable[Row], page: Page) -> Iterator[str]:
    days = Days(page)
    if kind == "controller_term":
        yield page.style("controllers", "bold")
        for row in rows:
            term: dict[str, Any] = dict(row)
            yield from days.before(term["from_time"])
            until = clock(term["to_time"]) if term["to_time"] else ""
            if term["to_time"] and day(term["to_time"]) != day(term["from_time"]):
                until = f"{day(term['to_time'])[:10]} {until}"
            stale = (
                f"  {counted(len(term['rejections']), 'request')} rejected as stale"
                if term["rejections"]
                else ""
            )
            yield (
                f"  {_times(clock(term['from_time']), until)}  broker {term['broker_id']}"
                f"  epoch {term['controller_epoch']}  {term['ended'] or ''}{page.style(stale, 'warning')}"
            )
        yield ""
    elif kind == "broker_state":
        yield page.style("brokers", "bold")
        for row in rows:
            state: dict[str, Any] = dict(row)
            broker = "?" if state["broker_id"] is None else state["broker_id"]
            words = f"{state['state']}: {state['how']}" if state["how"] else state["state"]
            words = f"{words} ({state['cause']})" if state["cause"] else words
            text = f"broker {broker}  {words.replace('_', ' '):<20}"
            if state["state"] in ("killed", "halted", "fenced", "unclean_shutdown"):
                text = page.style(text, "warning")
            yield from days.before(state["time"])
            yield f"  {clock(state['time'])}  {text}  {_proof(state, page)}"
        yield ""
    elif kind in QUORUM:
        yield page.style(QUORUM[kind], "bold")
        for row in rows:
            yield from days.before(str(row["time"]))
            yield _of_the_quorum(dict(row), page)
        yield ""
    elif kind == "finding":
        for row in rows:
            severity = str(row["severity"])
            yield f"{page.style(severity, severity)}: {visible(str(row['message']))}"
    else:
        yield from aligned(rows, page)


def _of_the_quorum(row: dict[str, Any], page: Page) -> str:
    """A change of a node of the metadata quorum, or of its metadata log."""
    node = "?" if row["broker_id"] is None else row["broker_id"]
    if row["kind"] == "metadata_log":
        words = f"{row['change']} offset {cell(row['offset'])}"
    else:
        words = row["state"] if row["leader_epoch"] is None else f"{row['state']} epoch {row['leader_epoch']}"
        if row["times"] > 1:
            words += f", {row['times']} times to epoch {row['last_epoch']}"
    text = f"node {node}  {words.replace('_', ' '):<40}"
    is_trouble = row.get("state") == "majority_lost" or row.get("change") in ("truncated", "snapshot_failed")
    return (
        f"  {clock(row['time'])}  {page.style(text, 'warning') if is_trouble else text}  {_proof(row, page)}"
    )


def explained(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The row of `state-log explain` on a terminal."""
    for row in rows:
        line: dict[str, Any] = dict(row)
        if line["kind"] == "exception":
            yield from _explained_exception(line, page)
            continue
        yield page.style(visible(line["text"]), "bold")
        if line["event"] is None:
            yield "no template matches this line"
            continue
        yield ""
        yield f"{line['event']}  {visible(line['meaning'] or '')}"
        if line["sign"]:
            yield page.style(f"symptom of: {line['sign']}", "warning")
        yield f"printed by Kafka {line['versions']}, level {level_words(str(line['level']))}"
        for name, value in line["fields"].items():
            yield f"  {name:<24} {visible(cell(value))}"
        for title, listed in (("before it", line["before"]), ("after it", line["after"])):
            for template in listed:
                yield f"{title:<10} {template['event']:<5} {visible(KIND_OF_FIELD.sub('}', template['pattern']))}"


def _explained_exception(row: dict[str, Any], page: Page) -> Iterator[str]:
    """An exception, its cause and what to do."""
    yield ""
    words = f"{row['exception']}: {row['message']}" if row["message"] else row["exception"]
    yield page.style(visible(words), "bold")
    if row["cause"] is None:
        yield "no row matches this exception"
        return
    yield f"{page.style(row['cause'].replace('_', ' '), 'warning')}: {row['meaning']}"
    yield f"what to do: {row['action']}"
    if row["stops"]:
        yield f"what stops: {row['stops']}"
    thrown_by = "Java or the operating system" if row["versions"] == "any" else f"Kafka {row['versions']}"
    yield f"thrown by {thrown_by}"
    for name, value in row["fields"].items():
        yield f"  {name:<24} {visible(cell(value))}"


KIND_OF_FIELD = re.compile(r":[A-Za-z]+\}")  # `{partition:i}`: the type of a field is not shown
LEVELS = {"T": "TRACE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}


def level_words(text: str) -> str:
    """`T; I 2.6+` as `TRACE; INFO 2.6+`."""
    return re.sub(r"\b[TDIWEF]\b", lambda match: LEVELS[match[0]], text)
