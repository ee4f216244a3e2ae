"""`kctl finding`: the table of findings, and the meaning of one."""

import re
import textwrap
from collections.abc import Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from commands.cli.frame import Frame, command
from commands.cli.render import Outcome, Page, Row, folding
from kctl.errors import BadValue, near_names


def codes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The codes for shell completion, each with its severity."""
    from kctl.findings import all_findings

    return [
        CompletionItem(template.code, help=template.severity)
        for template in sorted(all_findings(), key=lambda template: template.code)
        if template.code.startswith(begun)
    ]


@command("finding", paged=True, status="0 printed · 2 no such code")
@click.argument("code", required=False, shell_complete=codes)
def finding(frame: Frame, code: str | None) -> Outcome:
    """Explain a finding: meaning, cause and action; without CODE list all.

    $ kctl finding
    $ kctl finding batch-crc-mismatch
    """
    from kctl.findings import all_findings
    from kctl.rows.house import FINDING_TYPE

    table = {
        template.code: template for template in sorted(all_findings(), key=lambda template: template.code)
    }
    if code is not None and code not in table:
        hint = near_names(code, table, otherwise="`kctl finding` lists them")
        raise BadValue(f"no finding {code!r}", hint)
    rows = [
        FINDING_TYPE.of(template, severity=str(template.severity))
        for template in (table.values() if code is None else [table[code]])
    ]
    return Outcome(rows, text=explained if code else folding(listed))


SLOT = re.compile(r"\{(?P<name>\w+)(?:[:!](?P<words>[^}]*))?\}")  # a detail of a sentence


def shown_sentence(sentence: object) -> str:
    """A sentence with the names of its details: `<lines> lines`."""

    def shown(slot: re.Match[str]) -> str:
        words, name = slot["words"] or "", f"<{slot['name']}>"
        before = " " if slot.start() and slot.string[slot.start() - 1].isalnum() else ""
        if "|" in words:
            return words.rpartition("|")[2]
        noun, _, plural = words.partition("/")
        return f"{before}{name} {plural or noun + 's'}" if words[1:2].isalpha() else before + name

    return SLOT.sub(shown, str(sentence))


def listed(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Two lines a code."""
    for row in rows:
        severity = str(row["severity"])
        yield f"{page.style(f'{severity:<8}', severity)} {row['code']}"
        yield f"    {shown_sentence(row['sentence'])}"


def explained(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A code with its sentence, meaning, cause and action."""
    for row in rows:
        yield f"{page.style(str(row['severity']), str(row['severity']))}  {page.style(str(row['code']), 'bold')}"
        for title in ("sentence", "meaning", "cause", "action"):
            yield ""
            text = shown_sentence(row[title]) if title == "sentence" else row[title]
            text = f"{title.capitalize()}: {text}"
            yield from textwrap.wrap(text, min(page.width, 100), subsequent_indent="  ")
