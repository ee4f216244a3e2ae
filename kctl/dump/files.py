"""Rows of several files, one after the other; a file that cannot be read is reported and the rest goes on."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from os.path import basename

from formats.values import replace
from kctl.dump.batches import Left, log_rows
from kctl.dump.decoded import TOPICS
from kctl.dump.entries import ENTRIES, partition_of
from kctl.dump.file_kinds import FileKind, kind_of
from kctl.dump.opening import opened
from kctl.dump.selection import DumpSelection
from kctl.errors import KctlError, UnreadableFile
from kctl.stores.mirror import given_name

Row = dict[str, object]


def dump_rows(
    paths: Iterable[str], wanted: DumpSelection, report: Callable[[Exception], None]
) -> Iterator[Row]:
    """The rows of the files in the order given, as many as the limit leaves in all."""
    left = Left(wanted.limit)
    for path in paths:
        try:
            yield from _file_rows(path, wanted, left)
        except KctlError as error:
            report(error)
        if left.is_empty:
            return


def dump_lines(
    paths: Iterable[str], wanted: DumpSelection, report: Callable[[Exception], None]
) -> Iterator[bytes | memoryview | Row]:
    """The same as JSON lines where those are made quickly, as rows where not."""
    from kctl.dump.json_lines import log_lines

    left = Left(wanted.limit)
    for path in paths:
        if left.is_empty:
            return
        try:
            with opened(path) as source:
                known = replace(wanted, topic=wanted.topic or topic_of(path))
                quick = (known.kind or kind_of(source, basename(path))) is FileKind.LOG
                if quick and known.topic not in TOPICS:
                    yield from log_lines(source, path, given_name(path), known, left)
                    continue
            yield from _file_rows(path, wanted, left)
        except KctlError as error:
            report(error)


def topic_of(path: str) -> str | None:
    """The topic of the folder that a file is in."""
    folder = partition_of(path)
    return folder.topic if folder else None


def _file_rows(path: str, wanted: DumpSelection, left: Left) -> Iterator[Row]:
    with opened(path) as source:
        kind = wanted.kind or kind_of(source, basename(path))
        if kind is None:
            raise UnreadableFile(
                f"{path}: neither its name nor its content shows its format", "name it with --type"
            )
        if kind is FileKind.LOG:
            known = replace(wanted, topic=wanted.topic or topic_of(path))
            yield from log_rows(source, path, given_name(path), known, left)
            return
        for row in islice(ENTRIES[kind](source, path, given_name(path), wanted), left.rows):
            left.take()
            yield row
