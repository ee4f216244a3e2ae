"""`kctl remote format`: the records of `__remote_log_metadata` as rows, in Kafka's format or KIP-405's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from commands.cli import completing
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, flag, option
from commands.cli.render import Outcome, Page, Row, folding
from kctl.errors import BadValue
from kctl.rows.remote import DELETION_STATES, SEGMENT_STATES

if TYPE_CHECKING:
    from pathlib import Path

    from formats.kafka_text.remote_log_metadata import KipProperties
    from kctl.evidence.model import Arriving
    from kctl.findings import Finding
    from kctl.tier.metadata.log import ValueChunk
    from kctl.tier.metadata.selection import MetadataSelection

STATES = f"{SEGMENT_STATES}|{DELETION_STATES}".split("|")


@command(
    "format",
    paged=True,
    status="0 all printed · 3 a source could not be opened · 5 a record or batch is wrong, or replicas differ",
)
@click.argument("sources", metavar="SOURCE...", type=GIVEN, nargs=-1, required=True)
@option(
    "--format",
    "Print rows, Kafka's format, or KIP-405's.",
    into="form",
    type=click.Choice(("rows", "kafka", "kip")),
    default="rows",
    show_default=False,
)
@option("--topic NAME", "Only records of this topic.", shell_complete=completing.topics)
@option("--topic-id ID", "Only records of this topic id.")
@option("--partition N", "Only records of this partition.", type=int)
@option("--segment ID", "Only records of this remote segment.", into="segment_id")
@option("--broker ID", "Only records that this broker wrote.", into="broker_id", type=int)
@option(
    "--state STATE", "Only records with this state, such as COPY_SEGMENT_STARTED.", type=click.Choice(STATES)
)
@option("--from TIME", "Only records from this event time on (ms or ISO 8601).", into="since")
@option("--until TIME", "Only records up to this event time.")
@option("--property KEY=VALUE...", "Set a property of --format kip.", into="properties")
@flag("--follow", "Wait for new records and print them.")
@option("--until-idle SECONDS", "With --follow: stop after SECONDS without a record.", type=float)
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

    $ kctl remote format /var/lib/kafka/data
    $ kctl remote format --format kafka evidence/ > records.txt
    $ kctl remote format --topic orders --partition 0 --state COPY_SEGMENT_STARTED evidence/
    $ kafka-console-consumer.sh --topic __remote_log_metadata ... | kctl remote format -
    """
    from functools import partial

    from formats.kafka_text.remote_log_metadata import format_kafka_line, format_kip_line
    from kctl.tier.metadata.rows import lines_of_chunk
    from kctl.tier.metadata.selection import MetadataSelection
    from kctl.times import parse_time

    selection = MetadataSelection(
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
        return Outcome(_rows(chunks, selection, findings), text=folding(_text), is_live=follow)
    text = format_kafka_line
    if form == "kip":
        text = partial(format_kip_line, properties=_kip_properties(properties))

    def lines() -> Iterator[bytes]:
        """The lines; findings go to standard error."""
        for chunk in chunks:
            if form == "kafka" and selection.is_everything:
                yield from lines_of_chunk(chunk, findings.append)
                continue
            for offset, record in _typed(chunk, selection, findings):
                yield f"{text(chunk.metadata_partition, offset, record)}\n".encode()
        for finding in findings:
            frame.note(f"{finding.severity}: {finding.code}: {finding.message}")
            if finding.is_wrong:
                frame.raise_status(5)

    return Outcome(encoded=lambda _: lines(), is_exact=True, is_live=follow)


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
    chunk: ValueChunk, selection: MetadataSelection, findings: list[Finding]
) -> Iterator[tuple[int, Any]]:
    for row, record in chunk.records(findings.append):
        if record in selection:
            yield int(chunk.offsets[row]), record


def _rows(
    chunks: Iterable[ValueChunk], selection: MetadataSelection, findings: list[Finding]
) -> Iterator[Row]:
    from kctl.tier.metadata.rows import record_row

    for chunk in chunks:
        for offset, record in _typed(chunk, selection, findings):
            yield record_row(chunk.metadata_partition, offset, record)
        yield from (finding.row() for finding in findings)
        findings.clear()
    yield from (finding.row() for finding in findings)


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
        partition = f"{row['topic']}-{row['partition']}" if row["topic"] else ""
        offsets = segment_offsets(row) if row["end_offset"] is not None else ""
        size = f"{row['size_in_bytes']:,} bytes" if row["size_in_bytes"] is not None else ""
        yield (
            f"{place:>10}  {when}  broker {row['broker_id']}  {partition:<24} {row['remote_log_segment_id'] or '':<22}"
            f"  {row['state']:<23} {offsets} {size}".rstrip()
        )
