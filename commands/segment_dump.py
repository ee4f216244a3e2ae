"""`kctl segment dump`: batches, records and entries of the files of a partition."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import click

from commands.dump_text import dump_text
from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, as_lines, visible
from kctl.errors import BadValue

TYPES = ("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint", "epochs")
FORMS = ("utf8", "hex", "base64", "json")
MANY = 1000  # rows from which on they are worth being made in columns


@dataclass(frozen=True, slots=True)
class Chosen:
    """The options as they were given."""

    kind: str | None
    form: str
    records: bool
    from_offset: int | None
    to_offset: int | None
    from_time: str | None
    to_time: str | None
    key: str | None
    limit: int | None
    keys: str
    values: str
    max_decompressed_bytes: int
    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    remote_log_metadata_decoder: bool

    @property
    def decoder(self) -> str:
        """The decoder of the dump tool that is asked for; the first in its own order."""
        given = {
            "offsets": self.offsets_decoder,
            "transaction-log": self.transaction_log_decoder,
            "cluster-metadata": self.cluster_metadata_decoder,
            "remote-log-metadata": self.remote_log_metadata_decoder,
        }
        return next((name for name, wanted in given.items() if wanted), "text")


@command(
    "dump",
    examples="""
        kctl segment dump orders-0/00000000000000000000.log
        kctl segment dump --records --from-offset 120 --limit 5 orders-0/00000000000000000000.log
        kctl segment dump --records --key user-17 --values json --output jsonl orders-0/*.log
        kctl segment dump --type index evidence.bin
        kctl segment dump --format kafka --records orders-0/00000000000000000000.log
    """,
    status="0 all files were read and nothing is damaged · 3 a file could not be opened · 5 something is damaged",
)
@click.argument("files", nargs=-1, required=True, type=GIVEN, metavar="FILE...")
@click.option(
    "--type", "kind", type=click.Choice(TYPES), help="What the files are, whatever their names say."
)
@click.option(
    "--format", "form", type=click.Choice(["kctl", "kafka"]), default="kctl", show_default=True,
    help="kafka: the text of Kafka 3.9's dump tool.",
)  # fmt: skip
@click.option("--records", is_flag=True, help="After each batch its records.")
@click.option("--from-offset", type=int, metavar="OFFSET", help="Records and entries from this offset on.")
@click.option("--to-offset", type=int, metavar="OFFSET", help="Records and entries below this offset.")
@click.option("--from-time", metavar="TIME", help="Records from this time on (ISO 8601, -2h, epoch ms).")
@click.option("--to-time", metavar="TIME", help="Records before this time.")
@click.option("--key", metavar="TEXT", help="Records with this key.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="At most N records, batches or entries."
)
@click.option("--keys", type=click.Choice(FORMS), default="utf8", show_default=True, help="Form of keys.")
@click.option("--values", type=click.Choice(FORMS), default="utf8", show_default=True, help="Form of values.")
@click.option(
    "--max-decompressed-bytes", type=click.IntRange(min=1), default=256 << 20, show_default=True, metavar="N",
    help="Records of a batch that decompresses to more are left out.",
)  # fmt: skip
@click.option("--offsets-decoder", is_flag=True, help="--format kafka: decode __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="--format kafka: decode __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="--format kafka: decode __cluster_metadata.")
@click.option(
    "--remote-log-metadata-decoder", is_flag=True, help="--format kafka: decode __remote_log_metadata."
)
def dump(frame: Frame, files: tuple[str, ...], **options: object) -> Outcome:
    """Print the batches, records and entries of files of a partition.

    FILE is a segment, an index, a producer snapshot or a checkpoint; what it is its name says, or its content.
    Bytes that are no batch become a finding, and the rest goes on. Offset and time filters use the indexes
    beside a segment to begin near the place. Nothing is written beside the files.

    --format kafka prints what DumpLogSegments of Kafka 3.9 prints, with --records as with its
    --deep-iteration --print-data-log. Its verdicts about indexes go to standard error and are its own: many are
    wrong, `kctl segment verify` has the right ones. Where it would end with a stack trace, that is said and the
    dump goes on.
    """
    chosen = Chosen(**options)  # type: ignore[arg-type]  # click gives exactly these
    found: Iterable[str] = files
    if frame.given.get("bootstrap_server"):
        from commands.live_paths import live_files

        found = chain(*live_files(frame, files))
    if chosen.form == "kafka":
        return as_kafka(frame, found, chosen)
    if chosen.decoder != "text":
        raise BadValue("decoders belong to --format kafka", "rows of internal topics have `decoded` anyway")
    return as_rows(frame, found, chosen)


def as_rows(frame: Frame, files: Iterable[str], chosen: Chosen) -> Outcome:
    """Rows of kctl's own."""
    from kctl.dump.files import dump_rows
    from kctl.dump.kinds import FileKind
    from kctl.dump.wanted import Wanted
    from kctl.times import parse_time

    wanted = Wanted(
        records=chosen.records,
        from_offset=chosen.from_offset,
        to_offset=chosen.to_offset,
        from_time=parse_time(chosen.from_time) if chosen.from_time else None,
        to_time=parse_time(chosen.to_time) if chosen.to_time else None,
        key=chosen.key.encode("utf-8", "surrogateescape") if chosen.key is not None else None,
        limit=chosen.limit,
        keys=chosen.keys,
        values=chosen.values,
        kind=FileKind(chosen.kind) if chosen.kind else None,
        max_decompressed_bytes=chosen.max_decompressed_bytes,
    )
    is_much = wanted.limit is None or wanted.limit >= MANY
    if frame.output in ("jsonl", "json") and is_much:
        from kctl.dump.files import dump_lines

        lines = as_lines(frame, dump_lines(files, wanted, frame.report))
        return Outcome(encoded=lambda output: as_array(lines) if output == "json" else lines)
    rows = dump_rows(files, wanted, frame.report)
    if frame.output == "text":
        from kctl.rows.dump import RECORD

        rows = (RECORD.with_all_keys(row) if row["kind"] == "record" else row for row in rows)
    return Outcome(rows, text=dump_text)


def as_array(lines: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """JSON lines as one array; no line end stands in a line."""
    before = b"["
    for piece in lines:
        if piece:
            yield before + b"\n" + bytes(piece[:-1]).replace(b"\n", b",\n")
            before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def as_kafka(frame: Frame, files: Iterable[str], chosen: Chosen) -> Outcome:
    """The text of Kafka's dump tool."""
    from kctl.dump.decoders import decoder
    from kctl.dump.kafka import KafkaDump
    from kctl.dump.kinds import FileKind

    if frame.output != "text":
        raise BadValue(f"--format kafka is text and has no --output {frame.output}")
    dump = KafkaDump(
        records=chosen.records or chosen.decoder != "text",
        kind=FileKind(chosen.kind) if chosen.kind else None,
        decode=decoder(chosen.decoder),
        limit=chosen.max_decompressed_bytes,
        say=lambda line: click.echo(frame.on_terminal(line), err=True),
        report=frame.report,
    )

    def encoded(_: str) -> Iterator[bytes | memoryview]:
        terminal = sys.stdout.isatty()
        for piece in dump.pieces(files):
            yield visible(bytes(piece).decode("utf-8", "replace")).encode() if terminal else piece
        if dump.is_wrong:
            frame.raise_status(5)

    return Outcome(encoded=encoded)
