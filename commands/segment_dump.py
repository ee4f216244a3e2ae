"""`kctl segment dump`: batches, records and entries of the files of a partition."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from commands.frame import Frame, command
from commands.render import Outcome, visible

TYPES = ("log", "index", "timeindex", "txnindex", "snapshot", "checkpoint", "epochs")
FORMS = ("utf8", "hex", "base64", "json")
DECODER_OPTIONS = {
    "offsets": "offsets_decoder",
    "transaction-log": "transaction_log_decoder",
    "cluster-metadata": "cluster_metadata_decoder",
}


@command(
    "dump",
    examples="""
        kctl segment dump orders-0/00000000000000000000.log
        kctl segment dump --records --from-offset 120 --limit 5 orders-0/*.log
        kctl segment dump --format kafka --records orders-0/00000000000000000000.log
        kctl segment dump --type index evidence.bin
    """,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=str))
@click.option(
    "--type", "kind", type=click.Choice(TYPES), help="What the files are, whatever their names say."
)
@click.option("--format", "form", type=click.Choice(["kctl", "kafka"]), default="kctl", show_default=True)
@click.option("--records", is_flag=True, help="The records of each batch too.")
@click.option("--offsets-decoder", is_flag=True)
def dump(
    frame: Frame, files: tuple[str, ...], kind: str | None, form: str, records: bool, offsets_decoder: bool
) -> Outcome:
    """Print batches, records and index entries."""
    return as_kafka(frame, files, kind, records, "text")


def as_kafka(
    frame: Frame, files: tuple[str, ...], kind: str | None, records: bool, decoder_name: str
) -> Outcome:
    """The text of Kafka's dump tool."""
    from kctl.dump.decoders import decoder
    from kctl.dump.kafka import KafkaDump
    from kctl.dump.kinds import FileKind

    told = FileKind(kind) if kind else None
    dump = KafkaDump(
        records=records,
        kind=told,
        decode=decoder(decoder_name),
        say=lambda line: click.echo(frame.on_terminal(line), err=True),
        report=frame.report,
    )

    def encoded(_: str) -> Iterator[bytes]:
        terminal = sys.stdout.isatty()
        for piece in dump.pieces(files):
            yield (visible(piece) if terminal else piece).encode("utf-8", "surrogateescape")
        if dump.is_wrong:
            frame.raise_status(5)

    return Outcome(encoded=encoded)
