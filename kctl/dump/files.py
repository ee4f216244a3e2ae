"""Rows of several files, one after the other; a file that cannot be read is reported and the rest goes on."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from os.path import basename

from formats.values import replace
from kctl.dump.batches import RowLimit, log_rows
from kctl.dump.decoded import TOPICS
from kctl.dump.entries import ENTRIES, partition_of
from kctl.dump.file_kinds import FileKind, kind_of
from kctl.dump.opening import opened
from kctl.dump.selection import DumpSelection
from kctl.dump.spelling import Spelling
from kctl.errors import KctlError, UnreadableFile
from kctl.model import Row
from kctl.stores.mirror import given_name


def dump_rows(
    paths: Iterable[str], selection: DumpSelection, report: Callable[[Exception], None]
) -> Iterator[Row]:
    """The rows of the files in this order, up to the limit in all."""
    row_limit = RowLimit(selection.limit)
    for path in paths:
        try:
            yield from _file_rows(path, selection, row_limit)
        except KctlError as error:
            report(error)
        if row_limit.is_empty:
            return


SMALL = 512 << 10
"""Bytes of a log below which its rows are made sooner than the libraries for columns are loaded."""


def dump_lines(
    paths: Iterable[str],
    selection: DumpSelection,
    report: Callable[[Exception], None],
    spelling: Spelling,
    *,
    least: float = 0,
) -> Iterator[bytes | memoryview | Row]:
    """The same rows: as lines if they can be made from columns and the log has so many bytes, else as rows."""
    row_limit = RowLimit(selection.limit)
    for path in paths:
        if row_limit.is_empty:
            return
        try:
            with opened(path) as source:
                of_topic = replace(selection, topic=selection.topic or topic_of(path))
                quick = (of_topic.kind or kind_of(source, basename(path))) is FileKind.LOG
                if quick and of_topic.topic not in TOPICS and source.size >= least:
                    from kctl.dump.row_lines import log_lines

                    yield from log_lines(source, path, given_name(path), of_topic, row_limit, spelling)
                    continue
            yield from _file_rows(path, selection, row_limit)
        except KctlError as error:
            report(error)


def topic_of(path: str) -> str | None:
    """The topic of the folder that a file is in."""
    folder = partition_of(path)
    return folder.topic if folder else None


def _file_rows(path: str, selection: DumpSelection, row_limit: RowLimit) -> Iterator[Row]:
    with opened(path) as source:
        kind = selection.kind or kind_of(source, basename(path))
        if kind is None:
            raise UnreadableFile(
                f"{path}: neither its name nor its content shows its format", "name it with --type"
            )
        if kind is FileKind.LOG:
            of_topic = replace(selection, topic=selection.topic or topic_of(path))
            yield from log_rows(source, path, given_name(path), of_topic, row_limit)
            return
        for row in islice(ENTRIES[kind](source, path, given_name(path), selection), row_limit.rows):
            row_limit.take()
            yield row
