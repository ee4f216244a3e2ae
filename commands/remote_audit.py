"""`kctl remote audit`: metadata of tiered storage against its objects against the local logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from commands.evidence_options import refuse_nothing
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Page, Row, folding

if TYPE_CHECKING:
    from formats.tier_layouts import Layout


@command(
    "audit",
    examples="""
    kctl remote audit evidence/
    kctl remote audit /var/lib/kafka/data --tier 's3://bucket/prefix?region=eu-west-1'
    kctl remote audit evidence/brokers --tier copy-of-tier/ --plan-cleanup orphans.jsonl
    """,
    status="0 whole · 3 a path or the tier could not be opened · 5 something is wrong (see `kctl finding`)",
)
@click.argument("evidence", metavar="EVIDENCE...", type=GIVEN, nargs=-1, required=True)
@click.option(
    "--tier", type=GIVEN, metavar="URI-or-FOLDER", help="The tier, in place of one found in the evidence."
)
@click.option(
    "--layout",
    type=GIVEN,
    metavar="NAME-or-FILE",
    help="How objects are named: local-tiered-storage, aiven, or a file.",
)
@click.option(
    "--now",
    metavar="TIME",
    help="The time that retention is judged at.  [default: the newest in the evidence]",
)
@click.option("--as-of", metavar="WHEN", help="Metadata up to a time, an offset, or PARTITION:OFFSET.")
@click.option("--no-content", is_flag=True, help="List objects without reading them.")
@click.option(
    "--plan-cleanup",
    type=GIVEN,
    metavar="FILE",
    help="Write the objects that nothing refers to, one JSON line each.",
)
@click.option("--broker", "brokers", multiple=True, metavar="ID=FOLDER", help="Whose a folder is.")
@click.option("--moment", "moments", multiple=True, metavar="NAME=FOLDER", help="When a folder was copied.")
def audit(
    frame: Frame,
    evidence: tuple[str, ...],
    tier: str | None,
    layout: str | None,
    now: str | None,
    as_of: str | None,
    no_content: bool,
    plan_cleanup: str | None,
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
) -> Outcome:
    """Hold metadata, stored objects and local logs of tiered storage against each other.

    EVIDENCE are log directories or folders with those of several brokers, tiers and znode exports. kctl deletes
    nothing: --plan-cleanup writes down what could go.
    """
    from kctl.remote.asking import NOW, parse_as_of, parse_time
    from kctl.remote.audit import AuditOptions
    from kctl.remote.opening import open_audit

    options = AuditOptions(
        now=parse_time(now) if now else None,
        as_of=parse_as_of(as_of) if as_of else NOW,
        layout=read_layout(layout),
        content=not no_content,
        progress=frame.progress(),
    )
    opened = open_audit(evidence, tier, options, brokers=brokers, moments=moments)
    for failure in opened.failures:
        frame.report(failure)
    if tier is None:
        refuse_nothing(opened.evidence)
    if not opened.stores:
        frame.note("no tier in the evidence and no --tier: metadata are held against the local logs alone")
    return Outcome(opened.rows(plan_cleanup), text=folding(_text))


def read_layout(text: str | None) -> Layout | None:
    """A layout by its name or from a file; None where none was given."""
    from pathlib import Path

    from formats.errors import FormatError
    from formats.tier_layouts import LAYOUTS, parse_layout
    from kctl.errors import UnreadableFile

    if text is None or text in LAYOUTS:
        return LAYOUTS[text] if text else None
    try:
        return parse_layout(Path(text).read_text("utf-8"))
    except (OSError, FormatError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{text}: {error}", f"known layouts are {', '.join(LAYOUTS)}") from None


def _text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    from commands.remote_text import audit_text

    return audit_text(rows, page)
