"""`kctl segment verify` and `kctl segment rebuild`: what is wrong with segments, and the files beside them anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from commands.byte_sizes import Size
from commands.evidence_options import BROKER, MOMENT, find_evidence
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Row, folding

if TYPE_CHECKING:
    from kctl.checks.report import CheckOptions
    from kctl.evidence.model import Evidence

LEVELS = ("header", "crc", "records")


@command(
    "verify",
    examples="""
    kctl segment verify /var/lib/kafka/data
    kctl segment verify --level crc orders-3/ --output jsonl | jq 'select(.severity == "error")'
    kctl segment verify evidence/ --compacted profiles --jobs 4
    """,
    status="0 sound · 3 a path could not be opened · 5 something is wrong (see `kctl finding`)",
)
@click.argument("paths", nargs=-1, required=True, type=GIVEN, metavar="PATH...")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="records",
    show_default=True,
    help="Look at headers only, at CRCs too, or at every record.",
)
@click.option(
    "--max-decompressed-bytes",
    type=Size(),
    default="256MiB",
    show_default=True,
    help="Do not decompress a batch beyond this.",
)
@click.option(
    "--max-findings",
    type=click.IntRange(1),
    metavar="N",
    default=10_000,
    show_default=True,
    help="List so many findings a file; the rest is counted.",
)
@click.option(
    "--compacted", multiple=True, metavar="TOPIC", help="A topic that is compacted; may be repeated."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Worker processes.  [default: one a core]")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show each finding; without it a terminal gets the first of each code in full.",
)
@BROKER
@MOMENT
def verify(
    frame: Frame,
    paths: tuple[str, ...],
    level: str,
    max_decompressed_bytes: int,
    max_findings: int,
    compacted: tuple[str, ...],
    jobs: int | None,
    everything: bool,
    brokers: tuple[str, ...],
    moments: tuple[str, ...],
) -> Outcome:
    """Check segments and the files beside them, byte by byte.

    PATH is a segment, a partition folder, a log directory, or a folder that holds any of them.
    Nothing is written, and a broker may be running.
    """
    from functools import partial

    from commands.segment_text import verify_text
    from kctl.checks.report import CheckOptions
    from kctl.scan.options import Level

    options = CheckOptions(
        level=Level[level.upper()],
        max_decompressed_bytes=max_decompressed_bytes,
        max_findings=max_findings,
        compacted=frozenset(compacted),
    )
    live: Iterator[str] = iter(())
    if frame.given.get("bootstrap_server"):
        from commands.live_paths import live_files

        paths, live = live_files(frame, paths)
    evidence = find_evidence(frame, paths, brokers, moments, may_be_nothing=True)
    _say_what_is_left_out(frame, evidence)
    return Outcome(
        _verified(frame, evidence, live, options, jobs),
        text=folding(partial(verify_text, everything=everything)),
    )


def _say_what_is_left_out(frame: Frame, evidence: Evidence) -> None:
    from kctl.errors import KctlError

    for tier in evidence.tiers:
        frame.note(f"{tier.path}: a tier is not examined here; see `kctl remote audit`")
    for root in evidence.roots:
        found = [one.log_dir.root for one in evidence.replicas] + [one.root for one in evidence.log_dirs]
        found += [tier.root for tier in evidence.tiers] + [other for _, other in evidence.files]
        is_replica = any(one.folder.is_relative_to(root.path) for one in evidence.replicas)
        if root not in found and not is_replica and not evidence.findings:
            frame.report(KctlError(f"{root.given}: no segments lie here"))


def _verified(
    frame: Frame, evidence: Evidence, live: Iterator[str], options: CheckOptions, jobs: int | None
) -> Iterator[Row]:
    """Rows of the files, then of the segments of a running cluster as they come."""
    from kctl.checks.verify import Verification, verify

    counts = Verification()
    for item in verify(evidence, options, jobs=jobs, progress=frame.progress()):
        counts.count(item)
        yield item.row()
    for segment in live:
        for item in verify(find_evidence(frame, (segment,), (), ()), options, jobs=1):
            counts.count(item)
            yield item.row()
    yield counts.row()
