"""`kctl remote segments` and `partition-of`: remote segments by their metadata records."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, flag, option
from commands.cli.render import Outcome, Page, Row, folding
from commands.remote.text import segments_text

if TYPE_CHECKING:
    from pathlib import Path

    from kctl.evidence.model import Arriving
    from kctl.findings import Finding


@command("segments", paged=True, status="0 listed · 3 a source could not be opened · 5 the records are wrong")
@click.argument("sources", metavar="SOURCE...", type=GIVEN, nargs=-1, required=True)
@option("--topic NAME", "Only this topic.", shell_complete=completing.topics)
@option("--partition N", "Only this partition.", type=int)
@option("--as-of WHEN", "Show the state at a time, an offset, or PARTITION:OFFSET of the metadata topic.")
@flag("--all", "Include segments whose deletion has finished.", into="everything")
def segments(
    frame: Frame,
    sources: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    as_of: str | None,
    everything: bool,
) -> Outcome:
    """List remote segments by their metadata records.

    SOURCE is the same as for `kctl remote format`. Deleted segments are listed only with --all.

    $ kctl remote segments evidence/
    $ kctl remote segments evidence/ --topic orders --as-of 2026-11-21T13:24:08Z
    $ kctl remote segments evidence/ --all --output jsonl | jq 'select(.state == "COPY_SEGMENT_STARTED")'
    """
    from kctl.tier.metadata.fold import fold_findings, folded
    from kctl.tier.metadata.rows import SegmentTotals, segment_rows
    from kctl.tier.metadata.selection import NOW, parse_as_of
    from kctl.tier.metadata.sources import open_sources

    arriving: dict[Path, Arriving] = {}
    if frame.given.get("bootstrap_server"):
        from commands.cli import live_paths

        sources, arriving = live_paths.sources(frame, sources)
    when = parse_as_of(as_of) if as_of else NOW

    def rows() -> Iterator[Row]:
        findings: list[Finding] = []
        opened = open_sources(sources, findings.append, sys.stdin.buffer.read, arriving)
        for failure in opened.failures:
            frame.report(failure)
        fold = folded(opened.chunks, findings.append, when, keep_deleted=everything)
        yield from (finding.row() for finding in (*findings, *fold_findings(fold, opened.log)))

        totals = SegmentTotals()
        yield from segment_rows(fold, totals, topic, partition)
        yield from totals.rows()

    return Outcome(rows(), text=folding(segments_text))


@command("partition-of", status="0 done · 2 not a topic id and partition")
@click.argument("topic_id_partition", metavar="TOPIC-ID:PARTITION")
@option("--partitions N", "Number of partitions of the metadata topic.", type=click.IntRange(1), default=50)
def partition_of(frame: Frame, topic_id_partition: str, partitions: int) -> Outcome:
    """Show which metadata partition holds the records of a partition.

    With the topic's name (TOPIC-ID:TOPIC-PARTITION), the row also shows the partition by the text of KIP-405, which
    no release implements.

    $ kctl remote partition-of LWgrMmVrT0a__7a4SasuPA:0
    $ kctl remote partition-of LWgrMmVrT0a__7a4SasuPA:orders-7 --partitions 5
    """
    from kctl.tier.metadata.partitioner import metadata_partition_row

    return Outcome([metadata_partition_row(topic_id_partition, partitions)], text=folding(_partition_text))


def _partition_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    for row in rows:
        yield f"__remote_log_metadata-{row['metadata_partition']}"
