"""`kctl finding`: the table of findings, and what one of them means."""

import re
import textwrap
from collections.abc import Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from commands.frame import Frame, command
from commands.render import Outcome, Page, Row, folding


def codes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The codes that a shell may complete, each with its severity."""
    from kctl.findings import all_findings

    table = sorted(all_findings(), key=lambda one: one.code)
    return [CompletionItem(one.code, help=one.severity) for one in table if one.code.startswith(begun)]


@command(
    "finding",
    examples="""
    kctl finding
    kctl finding batch-crc-mismatch
    """,
    status="0 printed · 2 no such code",
)
@click.argument("code", required=False, shell_complete=codes)
def finding(frame: Frame, code: str | None) -> Outcome:
    """Say what a finding means, where it comes from and what to do."""
    from kctl.findings import all_findings
    from kctl.rows.house import FINDING_TYPE

    table = sorted(all_findings(), key=lambda one: one.code)
    wanted = [one for one in table if code in (None, one.code)]
    if not wanted:
        from difflib import get_close_matches

        near = get_close_matches(code or "", [one.code for one in table], n=3)
        raise click.UsageError(
            f"no finding {code!r}." + (f" Near: {', '.join(near)}" if near else " See `kctl finding`")
        )
    rows = [
        FINDING_TYPE(
            code=one.code,
            severity=str(one.severity),
            sentence=one.sentence,
            meaning=one.meaning,
            cause=one.cause,
            action=one.action,
        )
        for one in wanted
    ]
    return Outcome(rows, text=explained if code else folding(listed))


SLOT = re.compile(r"\{[^}]*\}")  # where a sentence takes its details


def listed(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Two lines a code."""
    for row in rows:
        severity = str(row["severity"])
        yield f"{page.style(f'{severity:<8}', severity)} {row['code']}"
        yield f"    {SLOT.sub('…', str(row['sentence']))}"


def explained(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A code with everything there is to say about it."""
    for row in rows:
        yield f"{page.style(str(row['severity']), str(row['severity']))}  {page.style(str(row['code']), 'bold')}"
        for title in ("sentence", "meaning", "cause", "action"):
            yield ""
            said = SLOT.sub("…", str(row[title])) if title == "sentence" else row[title]
            yield from textwrap.wrap(
                f"{title.capitalize()}: {said}", min(page.width, 100), subsequent_indent="  "
            )
