"""`kctl remote format`: the records of `__remote_log_metadata`, as rows, as Kafka prints them, as KIP-405 would."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Page, Row, folding
from kctl.errors import BadValue

if TYPE_CHECKING:
    from pathlib import Path

    from formats.remote_log_metadata_text import KipProperties
    from kctl.evidence.model import Arriving
    from kctl.findings import Finding
    from kctl.remote.asking import Wanted
    from kctl.remote.metadata_log import ValueChunk

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
    status="0 all printed · 3 a source could not be opened · 5 a record or batch is not right, or replicas differ",
)
@click.argument("sources", metavar="SOURCE...", type=GIVEN, nargs=-1, required=True)
@click.option(
    "--format", "form", type=click.Choice(("rows", "kafka", "kip")), default="rows", help="What to print."
)
@click.option("--topic", metavar="NAME", help="Records of this topic.")
@click.option("--topic-id", metavar="ID", help="Records of this topic id.")
@click.option("--partition", type=int, metavar="N", help="Records of this partition.")
@click.option("--segment", "segment_id", metavar="ID", help="Records of this remote segment.")
@click.option("--broker", "broker_id", type=int, metavar="ID", help="Records that this broker wrote.")
@click.option(
    "--state",
    type=click.Choice(STATES),
    metavar="STATE",
    help="Records with this state, as COPY_SEGMENT_STARTED.",
)
@click.option("--from", "since", metavar="TIME", help="Records from this event time on (ms or ISO 8601).")
@click.option("--until", metavar="TIME", help="Records up to this event time.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="A property of --format kip."
)
@click.option("--follow", is_flag=True, help="Go on with what is appended.")
@click.option(
    "--until-idle", type=float, metavar="SECONDS", help="With --follow: end when nothing came for so long."
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
    brokers, or `-` for what Kafka's console consumer wrote. Each record comes once, by metadata partition and
    offset, however many replicas are there.

    Properties of KIP-405's format: print.partition, print.message.offset, print.version,
    print.all.event.value.fields (true or false), separator.
    """
    from kctl.remote.asking import Wanted, parse_time

    wanted = Wanted(
        **filters,
        since=parse_time(since) if since else None,
        until=parse_time(until) if until else None,
    )
    arriving: dict[Path, Arriving] = {}
    if frame.given.get("bootstrap_server"):
        from commands import live_paths

        if follow and live_paths.is_live(frame, sources, *sources):
            raise BadValue("--follow follows files", "name a broker's folder, or leave --follow out")
        sources, arriving = live_paths.sources(frame, sources)
    found: list[Finding] = []
    chunks = _chunks(frame, sources, arriving, found, follow, until_idle)
    if form == "rows":
        return Outcome(_rows(chunks, wanted, found), text=folding(_text))
    lines = (
        _kafka(chunks, wanted, found)
        if form == "kafka"
        else _kip(chunks, wanted, found, _kip_properties(properties))
    )
    return Outcome(encoded=lambda _: _said(frame, lines, found))


def _chunks(
    frame: Frame,
    sources: tuple[str, ...],
    arriving: dict[Path, Arriving],
    found: list[Finding],
    follow: bool,
    until_idle: float | None,
) -> Iterator[ValueChunk]:
    from kctl.remote.sources import open_chunks

    opened = open_chunks(sources, found.append, sys.stdin.buffer.read, arriving)
    for failure in opened.failures:
        frame.report(failure)
    if follow:
        from kctl.remote.following import followed

        yield from opened.stream
        yield from followed(opened.log, until_idle)
    else:
        yield from opened.chunks


def _typed(chunk: ValueChunk, wanted: Wanted, found: list[Finding]) -> Iterator[tuple[int, Any]]:
    from kctl.remote.metadata_log import bad_record

    for offset, record in chunk.records():
        if isinstance(record, Exception):
            found.append(bad_record(chunk.metadata_partition, offset, record))
        elif record in wanted:
            yield offset, record


def _rows(chunks: Iterable[ValueChunk], wanted: Wanted, found: list[Finding]) -> Iterator[Row]:
    from kctl.remote.listing import record_row

    for chunk in chunks:
        for offset, record in _typed(chunk, wanted, found):
            yield record_row(chunk.metadata_partition, offset, record)
        yield from (one.row() for one in found)
        found.clear()
    yield from (one.row() for one in found)


def _kafka(chunks: Iterable[ValueChunk], wanted: Wanted, found: list[Finding]) -> Iterator[bytes]:
    from formats.remote_log_metadata_text import format_kafka_line
    from kctl.remote.kafka_lines import lines_of_chunk

    for chunk in chunks:
        if wanted.is_everything:
            yield from lines_of_chunk(chunk, found.append)
        else:
            for offset, record in _typed(chunk, wanted, found):
                yield f"{format_kafka_line(chunk.metadata_partition, offset, record)}\n".encode()


def _kip(
    chunks: Iterable[ValueChunk], wanted: Wanted, found: list[Finding], properties: KipProperties
) -> Iterator[bytes]:
    from formats.remote_log_metadata_text import format_kip_line

    for chunk in chunks:
        for offset, record in _typed(chunk, wanted, found):
            yield f"{format_kip_line(chunk.metadata_partition, offset, record, properties)}\n".encode()


def _kip_properties(texts: tuple[str, ...]) -> KipProperties:
    from formats.remote_log_metadata_text import KipProperties

    names = {name.replace("_", "."): name for name in KipProperties.__slots__}
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


def _said(frame: Frame, lines: Iterable[bytes], found: list[Finding]) -> Iterator[bytes]:
    """The lines; findings go to standard error, as the lines have no place for them."""
    yield from lines
    for one in found:
        frame.note(f"{one.severity}: {one.code}: {one.message}")
        if one.is_wrong:
            frame.raise_status(5)


def _text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a record: where, when, who, what."""
    from datetime import UTC, datetime

    for row in rows:
        if row["kind"] == "finding":
            yield page.style(f"{row['severity']}  {row['code']}  {row['message']}", str(row["severity"]))
            continue
        when = datetime.fromtimestamp(int(str(row["event_timestamp"])) / 1000, UTC).isoformat(
            " ", "milliseconds"
        )
        place = f"{row['metadata_partition']}:{row['metadata_offset']}"
        what = f"{row['topic']}-{row['partition']}" if row["topic"] else ""
        offsets = (
            f"[{row['start_offset']}, {int(str(row['end_offset'])) + 1})"
            if row["end_offset"] is not None
            else ""
        )
        size = f"{row['size_in_bytes']:,} bytes" if row["size_in_bytes"] is not None else ""
        yield (
            f"{place:>10}  {when[:-6]}  broker {row['broker_id']}  {what:<24} {row['remote_log_segment_id'] or '':<22}"
            f"  {row['state']:<23} {offsets} {size}".rstrip()
        )
