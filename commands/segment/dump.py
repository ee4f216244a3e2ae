"""`kctl segment dump`: batches, records and entries of partition files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import click

from commands.cli.frame import Frame, command
from commands.cli.leaving import Chunk, say
from commands.cli.options import GIVEN
from commands.cli.render import Outcome
from commands.segment.dump_text import dump_text
from formats.values import Struct
from kctl.errors import BadValue

TYPES = ("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint", "epochs")
FORMS = ("utf8", "hex", "base64", "json")
MANY = 1000  # rows; from here on encoding them in columns is faster


class DumpOptions(Struct, frozen=True):
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
    show_secrets: bool

    @property
    def decoder(self) -> str:
        """The decoder asked for; the first in the order of Kafka's tool."""
        flags = {
            "offsets": self.offsets_decoder,
            "transaction-log": self.transaction_log_decoder,
            "cluster-metadata": self.cluster_metadata_decoder,
            "remote-log-metadata": self.remote_log_metadata_decoder,
        }
        return next((name for name, is_given in flags.items() if is_given), "text")


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
    "--type", "kind", type=click.Choice(TYPES), help="Read the files as this type, whatever their names."
)
@click.option(
    "--format", "form", type=click.Choice(["kctl", "kafka"]), default="kctl", show_default=True,
    help="Print kctl's rows, or the text of Kafka 3.9's dump tool.",
)  # fmt: skip
@click.option("--records", is_flag=True, help="Print the records of each batch.")
@click.option(
    "--from-offset", type=int, metavar="OFFSET", help="Only records and entries from this offset on."
)
@click.option("--to-offset", type=int, metavar="OFFSET", help="Only records and entries below this offset.")
@click.option("--from-time", metavar="TIME", help="Only records from this time on (ISO 8601, -2h, epoch ms).")
@click.option("--to-time", metavar="TIME", help="Only records before this time.")
@click.option("--key", metavar="TEXT", help="Only records with this key.")
@click.option(
    "--limit", type=click.IntRange(min=0), metavar="N", help="Print at most N records, batches or entries."
)
@click.option("--keys", type=click.Choice(FORMS), default="utf8", show_default=True, help="Encoding of keys.")
@click.option(
    "--values", type=click.Choice(FORMS), default="utf8", show_default=True, help="Encoding of values."
)
@click.option(
    "--max-decompressed-bytes", type=click.IntRange(min=1), default=256 << 20, show_default=True, metavar="N",
    help="Omit records of a batch that decompresses to more than N bytes.",
)  # fmt: skip
@click.option("--offsets-decoder", is_flag=True, help="With --format kafka: decode __consumer_offsets.")
@click.option(
    "--transaction-log-decoder", is_flag=True, help="With --format kafka: decode __transaction_state."
)
@click.option(
    "--cluster-metadata-decoder", is_flag=True, help="With --format kafka: decode __cluster_metadata."
)
@click.option(
    "--remote-log-metadata-decoder", is_flag=True, help="With --format kafka: decode __remote_log_metadata."
)
@click.option("--show-secrets", is_flag=True, help="Show credentials and passwords in __cluster_metadata.")
def dump(frame: Frame, files: tuple[str, ...], **given: object) -> Outcome:
    """Print batches, records and entries of partition files.

    FILE is a segment, an index, a producer snapshot or a checkpoint, recognized by its name or its content.
    Bytes that are not a batch become a finding, and the dump continues. Offset and time filters use the indexes
    beside a segment to start near the place. Nothing is written beside the files.

    --format kafka prints the text of DumpLogSegments of Kafka 3.9; --records stands for its --deep-iteration
    --print-data-log. Its index checks go to standard error; many of them are wrong, and `kctl segment verify`
    has the correct ones. Where Kafka's tool would end with a stack trace, kctl reports it and continues.
    """
    options = DumpOptions(**given)  # type: ignore[arg-type]  # click gives exactly these
    paths: Iterable[str] = files
    if frame.given.get("bootstrap_server"):
        from commands.cli.live_paths import live_files

        paths = chain(*live_files(frame, files))
    if options.form == "kafka":
        return as_kafka(frame, paths, options)
    if options.decoder != "text":
        raise BadValue("decoders need --format kafka", "rows of internal topics always have `decoded`")
    return as_rows(frame, paths, options)


def as_rows(frame: Frame, files: Iterable[str], options: DumpOptions) -> Outcome:
    """The rows of kctl."""
    from kctl.dump.file_kinds import FileKind
    from kctl.dump.files import dump_rows
    from kctl.dump.selection import DumpSelection
    from kctl.times import parse_time

    wanted = DumpSelection(
        records=options.records,
        from_offset=options.from_offset,
        to_offset=options.to_offset,
        from_time=parse_time(options.from_time) if options.from_time else None,
        to_time=parse_time(options.to_time) if options.to_time else None,
        key=options.key.encode("utf-8", "surrogateescape") if options.key is not None else None,
        limit=options.limit,
        keys=options.keys,
        values=options.values,
        kind=FileKind(options.kind) if options.kind else None,
        max_decompressed_bytes=options.max_decompressed_bytes,
        show_secrets=options.show_secrets,
    )
    is_much = wanted.limit is None or wanted.limit >= MANY
    if frame.output in ("jsonl", "json") and is_much:
        from kctl.dump.files import dump_lines

        lines = frame.json_lines(dump_lines(files, wanted, frame.report))
        return Outcome(encoded=lambda output: as_array(lines) if output == "json" else lines)
    rows = dump_rows(files, wanted, frame.report)
    if frame.output == "text":
        from kctl.rows.dump import RECORD

        rows = (RECORD.with_all_keys(row) if row["kind"] == "record" else row for row in rows)
    return Outcome(rows, text=dump_text)


def as_array(lines: Iterable[Chunk]) -> Iterator[bytes]:
    """JSON lines as one array; a line holds no line end."""
    before = b"["
    for piece in lines:
        if piece:
            yield before + b"\n" + bytes(piece[:-1]).replace(b"\n", b",\n")
            before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def as_kafka(frame: Frame, files: Iterable[str], options: DumpOptions) -> Outcome:
    """The text of Kafka's dump tool."""
    from kctl.dump.file_kinds import FileKind
    from kctl.dump.kafka_text.decoders import decoder
    from kctl.dump.kafka_text.dump_log_segments import KafkaDump

    if frame.output != "text":
        raise BadValue(
            f"--format kafka prints text; --output {frame.output} is not possible",
            "leave out --format kafka or --output",
        )
    dump = KafkaDump(
        records=options.records or options.decoder != "text",
        kind=FileKind(options.kind) if options.kind else None,
        decode=decoder(options.decoder, options.show_secrets),
        show_secrets=options.show_secrets,
        limit=options.max_decompressed_bytes,
        say=say,
        report=frame.report,
    )

    def encoded(_: str) -> Iterator[Chunk]:
        yield from dump.pieces(files)
        if dump.is_wrong:
            frame.raise_status(5)

    return Outcome(encoded=encoded, is_exact=True)
