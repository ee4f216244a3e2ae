"""`kctl remote format`: the records of `__remote_log_metadata` as rows, in Kafka's format or KIP-405's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN
from commands.cli.render import Outcome, Page, Row, folding
from kctl.errors import BadValue

if TYPE_CHECKING:
    from pathlib import Path

    from formats.kafka_text.remote_log_metadata import KipProperties
    from kctl.evidence.model import Arriving
    from kctl.findings import Finding
    from kctl.tier.metadata.asking import MetadataSelection
    from kctl.tier.metadata.log import ValueChunk

STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
    "DELETE_PARTITION_MARKED",
    "DELETE_PARTITION_STARTED",
    "DELETE_PARTITION_FINISHED",
)


@command(
    "format",
    examples="""
    kctl remote format /var/lib/kafka/data
    kctl remote format --format kafka evidence/ > records.txt
    kctl remote format --topic orders --partition 0 --state COPY_SEGMENT_STARTED evidence/
    kafka-console-consumer.sh --topic __remote_log_metadata ... | kctl remote format -
    """,
    status="0 all printed · 3 a source could not be opened · 5 a record or batch is wrong, or replicas differ",
)
@click.argument("sources", metavar="SOURCE...", type=GIVEN, nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(("rows", "kafka", "kip")), default="rows",
    help="Print rows, Kafka's format, or KIP-405's.",
)  # fmt: skip
@click.option("--topic", metavar="NAME", help="Only records of this topic.")
@click.option("--topic-id", metavar="ID", help="Only records of this topic id.")
@click.option("--partition", type=int, metavar="N", help="Only records of this partition.")
@click.option("--segment", "segment_id", metavar="ID", help="Only records of this remote segment.")
@click.option("--broker", "broker_id", type=int, metavar="ID", help="Only records that this broker wrote.")
@click.option(
    "--state",
    type=click.Choice(STATES),
    metavar="STATE",
    help="Only records with this state, such as COPY_SEGMENT_STARTED.",
)
@click.option(
    "--from", "since", metavar="TIME", help="Only records from this event time on (ms or ISO 8601)."
)
@click.option("--until", metavar="TIME", help="Only records up to this event time.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="Set a property of --format kip."
)
@click.option("--follow", is_flag=True, help="Wait for new records and print them.")
@click.option(
    "--until-idle", type=float, metavar="SECONDS", help="With --follow: stop after SECONDS without a record."
)
def remote_format(
    frame: Frame,
    sources: tuple[str, ...],
    form: str,
    since: str | None,
    until: str | None,
    properties: tuple[str, ...],
    follow: bool,
    until_idle: float | None,
    **filters: Any,
) -> Outcome:
    """Print the records of the remote log metadata topic.

    SOURCE is a segment or folder of `__remote_log_metadata`, a log directory, a folder with those of several
    brokers, or `-` for output of Kafka's console consumer. Each record is printed once, by metadata partition and
    offset, however many replicas there are.

    Properties of KIP-405's format: print.partition, print.message.offset, print.version,
    print.all.event.value.fields (true or false), separator.
    """
    from kctl.tier.metadata.asking import MetadataSelection
    from kctl.times import parse_time

    wanted = MetadataSelection(
        **filters, since=parse_time(since) if since else None, until=parse_time(until) if until else None
    )
    arriving: dict[Path, Arriving] = {}
    if frame.given.get("bootstrap_server"):
        from commands.cli import live_paths

        if follow and live_paths.is_live(frame, sources, *sources):
            raise BadValue("--follow reads files", "name a broker's folder, or omit --follow")
        sources, arriving = live_paths.sources(frame, sources)
    findings: list[Finding] = []
    chunks = _chunks(frame, sources, arriving, findings, follow, until_idle)
    if form == "rows":
        return Outcome(_rows(chunks, wanted, findings), text=folding(_text))
    lines = (
        _kafka(chunks, wanted, findings)
        if form == "kafka"
        else _kip(chunks, wanted, findings, _kip_properties(properties))
    )
    return Outcome(encoded=lambda _: _with_findings(frame, lines, findings), is_exact=True)


def _chunks(
    frame: Frame,
    sources: tuple[str, ...],
    arriving: dict[Path, Arriving],
    findings: list[Finding],
    follow: bool,
    until_idle: float | None,
) -> Iterator[ValueChunk]:
    from kctl.tier.metadata.sources import open_sources

    opened = open_sources(sources, findings.append, sys.stdin.buffer.read, arriving)
    for failure in opened.failures:
        frame.report(failure)
    if follow:
        from kctl.tier.metadata.sources import followed

        yield from opened.stream
        yield from followed(opened.log, until_idle)
    else:
        yield from opened.chunks


def _typed(
    chunk: ValueChunk, wanted: MetadataSelection, findings: list[Finding]
) -> Iterator[tuple[int, Any]]:
    for row, record in chunk.records(findings.append):
        if record in wanted:
            yield int(chunk.offsets[row]), record


def _rows(chunks: Iterable[ValueChunk], wanted: MetadataSelection, findings: list[Finding]) -> Iterator[Row]:
    from kctl.tier.metadata.rows import record_row

    for chunk in chunks:
        for offset, record in _typed(chunk, wanted, findings):
            yield record_row(chunk.metadata_partition, offset, record)
        yield from (finding.row() for finding in findings)
        findings.clear()
    yield from (finding.row() for finding in findings)


def _kafka(
    chunks: Iterable[ValueChunk], wanted: MetadataSelection, findings: list[Finding]
) -> Iterator[bytes]:
    from formats.kafka_text.remote_log_metadata import format_kafka_line
    from kctl.tier.metadata.rows import lines_of_chunk

    for chunk in chunks:
        if wanted.is_everything:
            yield from lines_of_chunk(chunk, findings.append)
        else:
            for offset, record in _typed(chunk, wanted, findings):
                yield f"{format_kafka_line(chunk.metadata_partition, offset, record)}\n".encode()


def _kip(
    chunks: Iterable[ValueChunk],
    wanted: MetadataSelection,
    findings: list[Finding],
    properties: KipProperties,
) -> Iterator[bytes]:
    from formats.kafka_text.remote_log_metadata import format_kip_line

    for chunk in chunks:
        for offset, record in _typed(chunk, wanted, findings):
            yield f"{format_kip_line(chunk.metadata_partition, offset, record, properties)}\n".encode()


def _kip_properties(texts: tuple[str, ...]) -> KipProperties:
    from formats.kafka_text.remote_log_metadata import KipProperties

    names = {name.replace("_", "."): name for name in KipProperties.__struct_fields__}
    values: dict[str, Any] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key not in names or (key != "separator" and value not in ("true", "false")):
            raise click.BadParameter(
                f"{text!r} is none of {', '.join(sorted(names))}", param_hint="--property"
            )
        values[names[key]] = (
            value.encode().decode("unicode_escape") if key == "separator" else value == "true"
        )
    return KipProperties(**values)


def _with_findings(frame: Frame, lines: Iterable[bytes], findings: list[Finding]) -> Iterator[bytes]:
    """The lines; findings go to standard error."""
    yield from lines
    for finding in findings:
        frame.note(f"{finding.severity}: {finding.code}: {finding.message}")
        if finding.is_wrong:
            frame.raise_status(5)


def _text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a record: where, when, who, what."""
    from commands.remote.text import offsets as segment_offsets
    from commands.remote.text import time

    for row in rows:
        if row["kind"] == "finding":
            yield page.style(f"{row['severity']}  {row['code']}  {row['message']}", str(row["severity"]))
            continue
        when = time(row["event_timestamp"])
        place = f"{row['metadata_partition']}:{row['metadata_offset']}"
        what = f"{row['topic']}-{row['partition']}" if row["topic"] else ""
        offsets = segment_offsets(row) if row["end_offset"] is not None else ""
        size = f"{row['size_in_bytes']:,} bytes" if row["size_in_bytes"] is not None else ""
        yield (
            f"{place:>10}  {when}  broker {row['broker_id']}  {what:<24} {row['remote_log_segment_id'] or '':<22}"
            f"  {row['state']:<23} {offsets} {size}".rstrip()
        )
