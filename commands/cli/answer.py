"""The last lines of a command that judges: what was judged, a sentence a question, and what to fetch next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from commands.cli.leaving import NEXT
from commands.cli.render import Page, Row, Text

SAID_LAST = ("judgement", "coverage")
OPEN = ("unreadable", "could_not_judge")
WRONG = ("lost", "damaged")


def with_answer(text: Text, following: Sequence[str] = ()) -> Text:
    """The layout without its judgements; after it the answer of each `coverage` row, then the commands `following`."""

    def laid_out(rows: Iterable[Row], page: Page) -> Iterator[str]:
        coverages: list[Row] = []

        def shown() -> Iterator[Row]:
            for row in rows:
                if row["kind"] == "coverage":
                    coverages.append(row)
                elif row["kind"] not in SAID_LAST:
                    yield row

        yield from text(shown(), page)
        yield from answer(coverages, page)
        yield from (f"{NEXT}{command}" for command in following)

    return laid_out


def answer(coverages: Sequence[Row], page: Page) -> Iterator[str]:
    """A sentence a question, then the command that fetches what most subjects lack."""
    from kctl.judging.sentences import coverage_sentence

    for row in coverages:
        style = "error" if any(row[v] for v in WRONG) else "warning" if any(row[v] for v in OPEN) else "good"
        yield page.style(coverage_sentence(row), style if row["judged"] or style != "good" else "warning")
    lacking = [cast("list[Row]", row["missing"]) for row in coverages if any(row[v] for v in OPEN)]
    following = dict.fromkeys(str(missing[0]["get"]) for missing in lacking if missing and missing[0]["get"])
    for command in following:
        yield f"{NEXT}{command}"
