"""Exports as tables, with any delimiter and with headings or without."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from functools import partial

from formats.broker_logs.exports.carried import MOST, CarriedLine, Document, head_at, lines_of
from formats.broker_logs.exports.fields import Fields, keys_in_words


def table_document(text: str) -> Document | None:
    for delimiter in ",\t;|":
        rows = list(itertools.islice(_rows(iter([text.encode()]), delimiter), 200))
        if len(rows) < 2:
            continue
        if len(rows[0][1]) == 1 and len(rows) > 2:  # a type or a separator is told first
            del rows[0]
        width = len(rows[0][1])
        whole = [row for _, row in rows if len(row) == width]
        if width < 2 or 2 * len(whole) <= len(rows):
            continue
        names = _names(rows[0][1])
        fields = Fields()
        read = sum(bool(fields.lines(dict(zip(names, row, strict=False)), 1)) for row in whole)
        # The lines of a table without headings or quotes, whose last column is the text, are those behind a mark.
        is_marked = names[0] == "0" and names[-1] in fields.keys and f'{delimiter}"' not in text
        if 2 * read > len(whole) - 1 and not is_marked:
            shown = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}[delimiter]
            return Document(
                f"a table with {shown}, the text in {keys_in_words(fields)}",
                partial(_table_lines, delimiter=delimiter, names=names, fields=fields),
            )
    return None


def _names(first: list[str]) -> list[str]:
    """The names of columns: the first row, where it is no line of a log itself."""
    if any(head_at(cell) is not None for cell in first):
        return [str(i) for i in range(len(first))]
    return [cell.strip() or str(i) for i, cell in enumerate(first)]


def _rows(chunks: Iterator[bytes], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line at which each begins."""
    csv.field_size_limit(MOST)
    lines = (line.replace("\0", "?") + "\n" for line in lines_of(chunks))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue
        if row:
            yield number, row


def _table_lines(
    chunks: Iterator[bytes], delimiter: str, names: list[str], fields: Fields
) -> Iterator[CarriedLine]:
    for number, row in _rows(chunks, delimiter):
        if [cell.strip() for cell in row] != names:
            yield from fields.lines(dict(zip(names, row, strict=False)), number)
