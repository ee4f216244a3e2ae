"""`kctl remote`: what the metadata of tiered storage say, and what brokers would do with it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Page, Row, as_lines, folding, json_encoder

if TYPE_CHECKING:
    from pathlib import Path

    from kctl.evidence.model import Arriving
    from kctl.findings import Finding
    from kctl.remote.asking import AsOf


@command(
    "segments",
    examples="""
    kctl remote segments evidence/
    kctl remote segments evidence/ --topic orders --as-of 2026-11-21T13:24:08Z
    kctl remote segments evidence/ --all --output jsonl | jq 'select(.state == "COPY_SEGMENT_STARTED")'
    """,
    status="0 listed · 3 a source could not be opened · 5 the records are not right",
)
@click.argument("sources", metavar="SOURCE...", type=GIVEN, nargs=-1, required=True)
@click.option("--topic", metavar="NAME", help="Segments of this topic.")
@click.option("--partition", type=int, metavar="N", help="Segments of this partition.")
@click.option(
    "--as-of", metavar="WHEN", help="State at a time, an offset, or PARTITION:OFFSET of the metadata topic."
)
@click.option("--all", "everything", is_flag=True, help="Segments whose deletion has finished as well.")
def segments(
    frame: Frame,
    sources: tuple[str, ...],
    topic: str | None,
    partition: int | None,
    as_of: str | None,
    everything: bool,
) -> Outcome:
    """List the remote segments, as their metadata records leave them.

    SOURCE is what `kctl remote format` takes. Segments that are deleted are not listed unless --all is given.
    """
    from kctl.remote.asking import NOW, parse_as_of

    arriving: dict[Path, Arriving] = {}
    if frame.given.get("bootstrap_server"):
        from commands import live_paths

        sources, arriving = live_paths.sources(frame, sources)
    when = parse_as_of(as_of) if as_of else NOW
    given = (frame, sources, arriving, topic, partition, when, everything)

    def encoded(form: str) -> Iterator[bytes | memoryview] | None:
        return as_lines(frame, _segments(*given, in_lines=True)) if form == "jsonl" else None

    return Outcome(_segments(*given), text=folding(_segments_text), encoded=encoded)


def _segments(
    frame: Frame,
    sources: tuple[str, ...],
    arriving: dict[Path, Arriving],
    topic: str | None,
    partition: int | None,
    when: AsOf,
    everything: bool,
    *,
    in_lines: bool = False,
) -> Iterator[Any]:
    """Rows, those of segments as lines of JSON where they are asked for."""
    from kctl.remote.listing import Totals, fold_findings, folded, segment_lines, segment_rows
    from kctl.remote.sources import open_chunks

    found: list[Finding] = []
    opened = open_chunks(sources, found.append, sys.stdin.buffer.read, arriving)
    for failure in opened.failures:
        frame.report(failure)
    fold = folded(opened.chunks, found.append, when, keep_deleted=everything)
    yield from (one.row() for one in (*found, *fold_findings(fold, opened.log)))

    totals = Totals()
    if in_lines:
        yield from segment_lines(fold, totals, json_encoder(), topic, partition)
    else:
        yield from segment_rows(fold, totals, topic, partition)
    yield from totals.rows()


def _segments_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    from commands.remote_text import segments_text

    return segments_text(rows, page)


@command(
    "partition-of",
    examples="""
    kctl remote partition-of LWgrMmVrT0a__7a4SasuPA:0
    kctl remote partition-of LWgrMmVrT0a__7a4SasuPA:orders-7 --partitions 5
    """,
    status="0 done · 2 no topic id and partition",
)
@click.argument("topic_id_partition", metavar="TOPIC-ID:PARTITION")
@click.option(
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    default=50,
    show_default=True,
    help="Partitions of the topic.",
)
def partition_of(frame: Frame, topic_id_partition: str, partitions: int) -> Outcome:
    """Say which partition of the metadata topic holds a partition's records.

    With the topic's name (TOPIC-ID:TOPIC-PARTITION) what the text of KIP-405 would give is said too; no release
    does that.
    """
    from kctl.remote.partitioner import metadata_partition_row

    return Outcome([metadata_partition_row(topic_id_partition, partitions)], text=folding(_partition_text))


def _partition_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    for row in rows:
        yield f"__remote_log_metadata-{row['metadata_partition']}"
