"""`kctl remote audit`: metadata, objects and local logs of tiered storage compared; options of `kctl remote`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commands.cli.answer import with_answer
from commands.cli.evidence_options import EvidenceOptions, evidence
from commands.cli.frame import Frame, command
from commands.cli.options import STORE_OR_PATH, WRITTEN, flag, option
from commands.cli.render import Outcome, folding
from commands.remote.text import audit_text
from kctl.errors import UnreadableFile, reason_of

if TYPE_CHECKING:
    from formats.tier.object_names import ObjectLayout
    from kctl.tier.metadata.selection import MetadataAsOf

TIER = option(
    "--tier URI-or-FOLDER", "Use this tier instead of one found in the evidence.", type=STORE_OR_PATH
)
LAYOUT = option(
    "--layout NAME-or-FILE",
    "Naming scheme of objects: local-tiered-storage, aiven, or a file.",
    type=STORE_OR_PATH,
)
NOW = option("--now TIME", "Apply retention as of this time.  [default: the newest time in the evidence]")
AS_OF = option("--as-of WHEN", "Use metadata up to a time, an offset, or PARTITION:OFFSET.")


@command(
    "audit",
    status="0 complete · 3 a path or the tier could not be opened, or a partition not judged · 5 something is wrong (see `kctl finding`)",
)
@evidence("broker", "moment")
@TIER
@LAYOUT
@NOW
@AS_OF
@flag("--no-content", "List objects without reading them.")
@option(
    "--plan-cleanup FILE", "Write unreferenced objects to FILE as JSON lines; delete nothing.", type=WRITTEN
)
@flag(
    "--all",
    "Show every finding on a terminal, not only the first of each code in a partition.",
    into="everything",
)
def audit(
    frame: Frame,
    options: EvidenceOptions,
    tier: str | None,
    layout: str | None,
    now: str | None,
    no_content: bool,
    plan_cleanup: str | None,
    everything: bool,
) -> Outcome:
    """Check tiered storage: metadata against objects against local logs.

    EVIDENCE is one or more log directories, or folders that hold those of several brokers, tiers and znode
    exports.

    $ kctl remote audit evidence/
    $ kctl remote audit /var/lib/kafka/data --tier 's3://bucket/prefix?region=eu-west-1'
    $ kctl remote audit evidence/brokers --tier copy-of-tier/ --plan-cleanup orphans.jsonl
    """
    from functools import partial

    from kctl.stores.mirror import given_name
    from kctl.tier.audit.audit import AuditOptions
    from kctl.tier.audit.opening import open_audit
    from kctl.times import parse_time

    audit_options = AuditOptions(
        now=parse_time(now) if now else None,
        as_of=parse_bound(options.as_of),
        layout=read_layout(layout),
        content=not no_content,
        progress=frame.progress(),
    )
    opened = open_audit(options.paths, tier, audit_options, brokers=options.brokers, moments=options.moments)
    for failure in opened.failures:
        frame.report(failure)
    if tier is None:
        from kctl.evidence.discover import refuse_nothing

        refuse_nothing(opened.evidence)
    if not opened.stores and opened.evidence.roots:
        frame.note("no tier in the evidence and no --tier: metadata are compared with local logs only")
    given = ["--tier", given_name(tier)] if tier else []
    following: list[str] = []
    text = partial(
        audit_text,
        everything=everything,
        cleanup=""
        if plan_cleanup
        else options.command_line("kctl remote audit", *given, "--plan-cleanup", "orphans.jsonl"),
        following=following,
    )
    return Outcome(opened.rows(plan_cleanup), text=folding(with_answer(text, following)))


def parse_bound(text: str | None) -> MetadataAsOf:
    """What `--as-of` says about the metadata topic."""
    from kctl.tier.metadata.selection import NOW, parse_as_of

    return parse_as_of(text) if text else NOW


def read_layout(text: str | None) -> ObjectLayout | None:
    """A layout by its name or from a file; None where none was given."""
    from formats.errors import FormatError
    from formats.tier.object_names import LAYOUTS, parse_layout
    from kctl.files import read_text

    if text is None or text in LAYOUTS:
        return LAYOUTS[text] if text else None
    try:
        return parse_layout(read_text(text, follow=True))
    except (OSError, FormatError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"{text}: {error if isinstance(error, FormatError) else reason_of(error)}",
            f"known layouts are {', '.join(LAYOUTS)}",
        ) from None
