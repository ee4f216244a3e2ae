"""How `kctl replica explain` tells the story of an offset: written, committed, where it is, what became of it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from commands.render import Page, Row

# What the parts of the story are called, in the order of telling, and which rows they are made of.
PARTS = (
    ("written", ("written",)),
    ("committed", ("committed",)),
    ("copies", ("copy", "absent")),
    ("today", ("led",)),
    ("lost", ("lost",)),
    ("what the logs say of it", ("log_line",)),
)
STYLES = {"lost": "error", "committed": "good", "absent": "dim"}
INDENT = 4
NARROWEST = 40


def explain_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The parts of the story one after another, each line with the file and line that it is read from."""
    story = list(rows)
    if not story:
        return
    days = {str(row["time"])[:10] for row in story if row["time"]}
    day = days.pop() if len(days) == 1 else ""
    head = f"{story[0]['topic']}-{story[0]['partition']} offset {story[0]['offset']}"
    yield page.style(head, "bold") + (f"   {day}" if day else "")
    for title, kinds in PARTS:
        some = [row for row in story if row["what"] in kinds]
        if some:
            yield ""
            yield page.style(f"  {title}", "bold")
            for row in some:
                yield from _quoted(row, page) if row["what"] == "log_line" else _told(row, page, day)


def _told(row: Row, page: Page, day: str) -> Iterator[str]:
    """A sentence after its time; what it is read from behind it, or below where there is no room."""
    time = str(row["time"] or "")
    when = f"{time.removeprefix(f'{day}T').removesuffix('Z') if day else time}  " if time else ""
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


def _wrapped(text: str, page: Page, first: int, other: int) -> list[str]:
    """The text in lines of the page; paths and names are not broken at their hyphens."""
    return textwrap.wrap(
        text,
        max(NARROWEST, page.width - 1),
        initial_indent=" " * first,
        subsequent_indent=" " * other,
        break_on_hyphens=False,
    )


def _cited(row: Row) -> str:
    return f"{row['file']}:{row['line']}" if row["file"] and row["line"] else ""
