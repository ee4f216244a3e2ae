"""`kctl segment dump`: batches, records and entries of partition files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

import click

from commands.cli.frame import Frame, command
from commands.cli.leaving import Chunk, say
from commands.cli.options import GIVEN, flag, option
from commands.cli.render import Outcome, Row
from commands.segment.dump_text import dump_text
from kctl.errors import BadValue

if TYPE_CHECKING:
    from kctl.dump.spelling import Spelling

TYPES = ("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint", "epochs")
FORMS = ("utf8", "hex", "base64", "json")
MANY = 1000  # rows; from here on encoding them in columns is faster


DECODERS = {  # options by name, in the order of Kafka's tool
    "offsets_decoder": "offsets",
    "transaction_log_decoder": "transaction-log",
    "cluster_metadata_decoder": "cluster-metadata",
    "remote_log_metadata_decoder": "remote-log-metadata",
}


@command(
    "dump",
    paged=True,
    status="0 all files were read and nothing is damaged · 3 a file could not be opened · 5 something is damaged",
)
@click.argument("files", nargs=-1, required=True, type=GIVEN, metavar="FILE...")
@option("--type", "Read the files as this type, whatever their names.", into="kind", type=click.Choice(TYPES))
@option(
    "--format",
    "Print kctl's rows, or the text of Kafka 3.9's dump tool.",
    into="form",
    type=click.Choice(["kctl", "kafka"]),
    default="kctl",
)
@flag("--records", "Print the records of each batch.")
@option("--from-offset OFFSET", "Only records and entries from this offset on.", type=int)
@option("--to-offset OFFSET", "Only records and entries below this offset.", type=int)
@option("--from-time TIME", "Only records from this time on (ISO 8601, -2h, epoch ms).")
@option("--to-time TIME", "Only records before this time.")
@option("--key TEXT", "Only records with this key.")
@option("--limit N", "Print at most N records, batches or entries.", type=click.IntRange(min=0))
@option("--keys", "Encoding of keys.", type=click.Choice(FORMS), default="utf8")
@option("--values", "Encoding of values.", type=click.Choice(FORMS), default="utf8")
@option(
    "--max-decompressed-bytes N",
    "Omit records of a batch that decompresses to more than N bytes.",
    type=click.IntRange(min=1),
    default=256 << 20,
)
@flag("--offsets-decoder", "With --format kafka: decode __consumer_offsets.")
@flag("--transaction-log-decoder", "With --format kafka: decode __transaction_state.")
@flag("--cluster-metadata-decoder", "With --format kafka: decode __cluster_metadata.")
@flag("--remote-log-metadata-decoder", "With --format kafka: decode __remote_log_metadata.")
@flag("--show-secrets", "Show credentials and passwords in __cluster_metadata.")
def dump(frame: Frame, files: tuple[str, ...], form: str, **options: Any) -> Outcome:
    """Print batches, records and entries of partition files.

    FILE is a segment, an index, a producer snapshot or a checkpoint, recognized by its name or its content.
    Bytes that are not a batch become a finding, and the dump continues. Offset and time filters use the indexes
    beside a segment to start near the place. Nothing is written beside the files.

    --format kafka prints the text of DumpLogSegments of Kafka 3.9; --records stands for its --deep-iteration
    --print-data-log. Its index checks go to standard error; many of them are wrong, and `kctl segment verify`
    has the correct ones. Where Kafka's tool would end with a stack trace, kctl reports it and continues.

    $ kctl segment dump orders-0/00000000000000000000.log
    $ kctl segment dump --records --from-offset 120 --limit 5 orders-0/00000000000000000000.log
    $ kctl segment dump --records --key user-17 --values json --output jsonl orders-0/*.log
    $ kctl segment dump --type index evidence.bin
    $ kctl segment dump --format kafka --records orders-0/00000000000000000000.log
    """
    from kctl.dump.file_kinds import FileKind

    decoders = [DECODERS[name] for name in DECODERS if options.pop(name)]
    kind = options.pop("kind")
    options["kind"] = FileKind(kind) if kind else None
    paths: Iterable[str] = files
    if frame.given.get("bootstrap_server"):
        from commands.cli.live_paths import live_files

        paths = chain(*live_files(frame, files))
    if form == "kafka":
        return as_kafka(frame, paths, decoders[0] if decoders else "text", options)
    if decoders:
        raise BadValue("decoders need --format kafka", "rows of internal topics always have `decoded`")
    return as_rows(frame, paths, options)


def as_rows(frame: Frame, files: Iterable[str], options: dict[str, Any]) -> Outcome:
    """The rows of kctl. What is given are fields of `DumpSelection`."""
    from kctl.dump.files import SMALL, dump_lines, dump_rows
    from kctl.dump.selection import DumpSelection
    from kctl.dump.spelling import json_spelling
    from kctl.times import parse_time

    for name in ("from_time", "to_time"):
        options[name] = parse_time(options[name]) if options[name] else None
    if options["key"] is not None:
        options["key"] = options["key"].encode("utf-8", "surrogateescape")
    selection = DumpSelection(**options)
    is_little = selection.limit is not None and selection.limit < MANY

    def lines(spelling: Spelling) -> Iterator[Chunk | Row]:
        return dump_lines(files, selection, frame.report, spelling, least=inf if is_little else SMALL)

    def encoded(output: str) -> Iterable[Chunk] | None:
        if output == "text":
            from commands.segment.dump_lines import TAB_SEPARATED, tab_separated_lines

            return tab_separated_lines(lines(TAB_SEPARATED), frame.checked)
        if frame.output == "text":
            return None  # for a selection of rows
        json = frame.json_lines(lines(json_spelling()))
        return as_array(json) if output == "json" else json

    rows = dump_rows(files, selection, frame.report)
    if frame.output == "text":
        from kctl.rows.dump import RECORD

        rows = (RECORD.with_all_keys(row) if row["kind"] == "record" else row for row in rows)
    return Outcome(rows, text=dump_text, encoded=encoded)


def as_array(lines: Iterable[Chunk]) -> Iterator[bytes]:
    """JSON lines as one array; a line holds no line end."""
    before = b"["
    for piece in lines:
        if piece:
            yield before + b"\n" + bytes(piece[:-1]).replace(b"\n", b",\n")
            before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def as_kafka(frame: Frame, files: Iterable[str], decode: str, options: dict[str, Any]) -> Outcome:
    """The text of Kafka's dump tool."""
    from kctl.dump.kafka_text.decoders import decoder
    from kctl.dump.kafka_text.dump_log_segments import KafkaDump

    if frame.output != "text":
        raise BadValue(
            f"--format kafka prints text; --output {frame.output} is not possible",
            "leave out --format kafka or --output",
        )
    dump = KafkaDump(
        records=options["records"] or decode != "text",
        kind=options["kind"],
        decode=decoder(decode, options["show_secrets"]),
        show_secrets=options["show_secrets"],
        limit=options["max_decompressed_bytes"],
        say=say,
        report=frame.report,
    )

    def encoded(_: str) -> Iterator[Chunk]:
        yield from dump.pieces(files)
        if dump.is_wrong:
            frame.raise_status(5)

    return Outcome(encoded=encoded, is_exact=True)
