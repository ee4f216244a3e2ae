"""How the rows of `kctl replica explain` look on a terminal: the history of an offset, part by part."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from commands.cli.clock import clock, day, shown
from commands.cli.render import Page, Row

# The parts in their order, and the rows that each shows.
PARTS = (
    ("written", ("written",)),
    ("committed", ("committed",)),
    ("copies", ("copy", "absent")),
    ("today", ("led",)),
    ("lost", ("lost",)),
    ("log lines", ("log_line",)),
)
STYLES = {"lost": "error", "committed": "good", "absent": "dim"}
INDENT = 4
NARROWEST = 40


def explain_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The parts one after another, each line with the file and line that it is read from."""
    events = list(rows)
    if not events:
        return
    days = {day(str(row["time"])) for row in events if row["time"]}
    only_day = days.pop() if len(days) == 1 else ""
    head = f"{events[0]['topic']}-{events[0]['partition']} offset {events[0]['offset']}"
    yield page.style(head, "bold") + (f"   {only_day}" if only_day else "")
    for title, kinds in PARTS:
        part = [row for row in events if row["what"] in kinds]
        if part:
            yield ""
            yield page.style(f"  {title}", "bold")
            for row in part:
                yield from (
                    _quoted(row, page)
                    if row["what"] == "log_line"
                    else _dated(row, page, is_short=bool(only_day))
                )


def _dated(row: Row, page: Page, *, is_short: bool) -> Iterator[str]:
    """A sentence after its time; its source behind it, or below where there is no room."""
    time = str(row["time"] or "")
    when = f"{clock(time) if is_short else shown(time)}  " if time else ""
    lines = _wrapped(when + str(row["text"]), page, INDENT, INDENT + len(when))
    cited = _cited(row)
    fits = len(lines) == 1 and len(lines[0]) + 3 + len(cited) < page.width
    style = STYLES.get(str(row["what"]), "")
    for number, line in enumerate(lines):
        bare = line.lstrip()
        text = line[: len(line) - len(bare)] + (page.style(bare, style) if style else bare)
        yield text + ("   " + page.style(cited, "dim") if cited and fits and not number else "")
    if cited and not fits:
        yield " " * (INDENT + len(when)) + page.style(cited, "dim")


def _quoted(row: Row, page: Page) -> Iterator[str]:
    """Where a line stands, then the line."""
    yield " " * INDENT + page.style(_cited(row), "dim")
    yield from _wrapped(str(row["text"]), page, INDENT + 2, INDENT + 2)


def _wrapped(text: str, page: Page, first: int, following: int) -> list[str]:
    """The text in lines of the page; paths and names are not broken at their hyphens."""
    return textwrap.wrap(
        text,
        max(NARROWEST, page.width - 1),
        initial_indent=" " * first,
        subsequent_indent=" " * following,
        break_on_hyphens=False,
    )


def _cited(row: Row) -> str:
    return f"{row['file']}:{row['line']}" if row["file"] and row["line"] else ""
