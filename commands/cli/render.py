"""Rows to text, tab-separated lines, JSON or JSON lines.

On a terminal the command's `text` function lays its rows out, else they are aligned in columns. In a pipe text
is tab-separated, with a header line before the first row of each kind, and never cut.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from commands.cli.leaving import (
    IN_A_LINE,
    NEXT,
    OWN_COLOUR,
    Chunk,
    folded,
    json_chunks,
    laid_out,
    text_chunks,
    visible,
    write,
)
from formats.words import in_unit
from kctl.model import Row as Row

STYLES = {"error": "31;1", "warning": "33", "info": "36", "good": "32", "dim": "2", "bold": "1"}


class Page(NamedTuple):
    """The terminal that text is laid out for."""

    width: int
    color: bool

    def style(self, text: str, name: str) -> str:
        """The text in a colour that marks severity; as it is where colour is off."""
        return f"{OWN_COLOUR}{STYLES[name]}m{text}{OWN_COLOUR}0m" if self.color and text else text


Text = Callable[[Iterable[Row], Page], Iterable[str]]


class Outcome(NamedTuple):
    """The result of a command: rows; how to lay them out on a terminal; or bytes that it encodes itself."""

    rows: Iterable[Row] = ()
    text: Text | None = None
    # A note when there is no row at all: without it nobody knows whether anything was examined.
    nothing: str = ""
    # For output too large for a dict a row: gives the bytes of an output form ("text", "json", "jsonl"), or None for
    # one that the rows are written in. Where there is a layout as well, terminals get that.
    encoded: Callable[[str], Iterable[Chunk] | None] | None = None
    # Whether a file or pipe gets encoded text byte for byte, since a tool of Kafka's writes or reads it so.
    is_exact: bool = False
    # Whether rows come as things happen: then each leaves at once, to a pipe too.
    is_live: bool = False


def folding(text: Text) -> Text:
    """A layout whose lines, but for commands to copy, are broken between words where the page is too narrow."""
    return lambda rows, page: (
        part
        for line in text(rows, page)
        for part in ([line] if line.startswith(NEXT) else folded(line, page.width))
    )


def ids(value: object) -> str:
    """A list of broker ids as `1,2,3`; empty for null."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else ""


def epochs(value: object) -> str:
    """Leader epochs with their start offsets, as `3@120 4@125`."""
    pairs = value if isinstance(value, (list, tuple)) else ()
    return " ".join(f"{epoch}@{start}" for epoch, start in pairs) or "none"


def finding_line(row: Row, page: Page) -> str:
    """A finding on one line: severity, code and message."""
    return f"{page.style(str(row['severity']), str(row['severity']))} {row['code']}: {row['message']}"


def deliver(
    outcome: Outcome, output: str, color: str, make_room: Callable[[], None], *, paged: bool = False
) -> None:
    """Write the outcome to standard output in an output form ("text", "json", "jsonl").

    `make_room` is called before each line on a terminal, where progress may be shown. `paged`: text that is longer than
    the terminal goes through a pager.
    """
    is_terminal = sys.stdout.isatty()
    is_laid_out = output == "text" and (is_terminal or color == "always")
    put = _line_by_line if outcome.is_live else _way_out(is_terminal, paged and output == "text")
    to_pipe = _line_by_line if outcome.is_live else write
    if outcome.encoded is not None and not (outcome.text and is_laid_out):
        encoded = outcome.encoded(output)
        if encoded is not None:
            is_exact = outcome.is_exact and not is_terminal
            put(encoded if is_exact else (text_chunks if output == "text" else json_chunks)(encoded))
            return
    if output == "jsonl":
        at_once = 1 if outcome.is_live else ROWS_AT_ONCE
        to_pipe(json_chunks(_json_lines(outcome.rows, at_once)))
    elif output == "json":
        write(json_chunks(_json_array(outcome.rows)))
    elif is_terminal:
        from shutil import get_terminal_size

        page = Page(get_terminal_size().columns, color != "never")
        put(_lines(outcome, page, make_room))
    elif outcome.text and color == "always":
        write(_lines(outcome, Page(80, color=True), make_room))
    else:
        to_pipe(text_chunks(f"{line}\n".encode() for line in tab_separated(outcome.rows)))


def _lines(outcome: Outcome, page: Page, make_room: Callable[[], None]) -> Iterator[bytes]:
    for line in (outcome.text or aligned)(outcome.rows, page):
        make_room()
        yield f"{laid_out(line)}\n".encode()


def _way_out(is_terminal: bool, paged: bool) -> Callable[[Iterable[Chunk]], None]:
    """Where text is written: to a pager once it is long, else line by line to the terminal, or to a file."""
    if paged and is_terminal and sys.stdin.isatty():
        from functools import partial
        from shutil import get_terminal_size

        from commands.cli.pager import page_through, pager

        if command := pager():
            return partial(page_through, size=get_terminal_size(), command=command)
    return _line_by_line if is_terminal else write


def _line_by_line(lines: Iterable[Chunk]) -> None:
    for line in lines:
        write([line])


def json_encoder() -> Callable[[object], bytes]:
    """A row or a value as JSON. Bytes of file names that are no UTF-8, which JSON cannot hold, become \\udcNN."""
    import msgspec

    encoder = msgspec.json.Encoder()

    def encode(value: object) -> bytes:
        try:
            return encoder.encode(value)
        except UnicodeEncodeError:
            return encoder.encode(_with_surrogates_escaped(value))

    return encode


def _with_surrogates_escaped(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_with_surrogates_escaped(k): _with_surrogates_escaped(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_surrogates_escaped(element) for element in value]
    return value


ROWS_AT_ONCE = 64


def _json_lines(rows: Iterable[Row], at_once: int) -> Iterator[bytes]:
    """The rows, some at once; those before an error too."""
    import msgspec

    encode, encode_one = msgspec.json.Encoder().encode_lines, json_encoder()
    for block in _blocks(rows, at_once):
        try:
            yield encode(block)
        except UnicodeEncodeError:
            yield b"".join(encode_one(row) + b"\n" for row in block)


def _blocks(rows: Iterable[Row], at_once: int) -> Iterator[list[Row]]:
    block: list[Row] = []
    try:
        for row in rows:
            block.append(row)
            if len(block) == at_once:
                yield block
                block = []
    except (Exception, KeyboardInterrupt):
        yield block
        raise
    yield block


def _json_array(rows: Iterable[Row]) -> Iterator[bytes]:
    encode = json_encoder()
    before = b"["
    for row in rows:
        yield before + b"\n" + encode(row)
        before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def cell(value: object) -> str:
    """A value in a line of text: empty for null, JSON for lists, tabs and line ends escaped."""
    return CELLS.get(type(value), _other_cell)(value)


def text_cell(value: str) -> str:
    """A text in a line: backslashes and what no line may hold escaped."""
    return visible(value if "\\" not in value else value.replace("\\", "\\\\"))


def _list_cell(value: list[object]) -> str:
    if INTEGERS.issuperset(map(type, value)):
        return str(value).replace(" ", "")
    return _json_cell(value)


@cache
def _encode() -> Callable[[object], str]:
    """The encoder of JSON, made once; `json.dumps` would make one for each value."""
    import json

    return json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def _json_cell(value: object) -> str:
    text = _encode()(value)
    return (
        text
        if text.isprintable()
        else re.sub(IN_A_LINE, lambda match: len(match[0]) * f"\\u{ord(match[0][0]):04x}", text)
    )


def _other_cell(value: object) -> str:
    if isinstance(value, (list, tuple, dict)):
        return _json_cell(value)
    return text_cell(str(value))


INTEGERS = frozenset({int})
CELLS: dict[type, Callable[[Any], str]] = {  # by type, since large tables have millions of them
    str: text_cell,
    int: str,
    type(None): lambda _: "",
    bool: lambda value: "true" if value else "false",
    list: _list_cell,
}


KeysByKind = dict[object, tuple[str, ...]]


def tab_separated(rows: Iterable[Row], keys_by_kind: KeysByKind | None = None) -> Iterator[str]:
    """A header line before the first row of each kind, and where its keys change; then a line a row.

    What has a header line already is in `keys_by_kind`, and what gets one is put there.
    """
    keys_by_kind = {} if keys_by_kind is None else keys_by_kind
    for row in rows:
        keys = tuple(row)
        if keys_by_kind.get(row["kind"]) != keys:
            keys_by_kind[row["kind"]] = keys
            yield "\t".join(map(text_cell, row))
        yield "\t".join([CELLS.get(type(value), _other_cell)(value) for value in row.values()])


def aligned(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Rows in columns, a table for each run of one kind; empty columns left out. Works in runs of 1,000 rows."""
    run: list[Row] = []
    for row in rows:
        if run and (row["kind"] != run[0]["kind"] or len(run) == 1000):
            yield from table(run, page)
            run = []
        run.append(row)
    yield from table(run, page)


def table(rows: Sequence[Row], page: Page) -> Iterator[str]:
    """Rows of one kind in aligned columns, numbers to the right; a single row that is too wide in lines.

    Where the page is too narrow headings take several lines and gaps one space, then the rows whose first cell is too
    long two lines; then the widest columns are folded, numbers never. Where that is not enough, the columns that do not
    fit stand indented below the first.
    """
    if not rows:
        return
    names = [n for n in rows[0] if n != "kind" and any(r.get(n) is not None for r in rows)]
    if not names:
        return
    cells = [[visible(readable(n, row.get(n))) for n in names] for row in rows]
    widest = [max(len(c[i]) for c in cells) for i in range(len(names))]
    right = [all(isinstance(r.get(n), (int, float, type(None))) for r in rows) for n in names]
    widths, gap = list(map(max, widest, map(len, names))), 2
    heads, lines = [names], [range(len(names))]
    if _total(widths, gap) > page.width:
        if len(rows) == 1:
            longest = max(map(len, names))
            yield from (
                f"{page.style(n.ljust(longest), 'dim')}  {c}" for n, c in zip(names, cells[0], strict=True)
            )
            return
        beside = len(names) - (names[-1] == "")  # a remark at the end stands below where there is one
        narrow = _narrow(names[:beside], [row[:beside] for row in cells], page.width)
        if narrow is None:
            lines = list(_fitting(widths, page.width))
        else:
            heads, widths, gap = narrow
            lines = [range(beside), *([range(beside, len(names))] if beside < len(names) else [])]
            heads, widths = [[*head, ""] for head in heads], [*widths, 0]
    is_narrow = widths[0] < widest[0]
    for n, row in enumerate([*heads, *cells]):
        if is_narrow and len(row[0]) > widths[0]:
            yield row[0]
            row = ["", *row[1:]]
        for columns in lines:
            for part in _folded_cells(row, widths, columns):
                line = (" " * gap).join(
                    part[i].rjust(widths[i]) if right[i] else part[i].ljust(widths[i]) for i in columns
                )
                text = (line if columns.start == 0 else "    " + line).rstrip()
                if text or columns.start == 0:
                    yield page.style(text, "dim") if n < len(heads) else text


def _narrow(
    names: Sequence[str], cells: Sequence[Sequence[str]], room: int
) -> tuple[list[list[str]], list[int], int] | None:
    """Lines of headings, widths and the gap with which columns fit but for the longest first cells; None if they do not."""
    if not names:
        return None
    widest = [max(len(row[i]) for row in cells) for i in range(len(names))]
    heads = [list(names)]
    if _total(list(map(max, widest, map(len, names))), 2) > room:
        heads = _folded_heads(names, widest)
    least = [max(len(head[i]) for head in heads) for i in range(len(names))]
    widths = list(map(max, widest, least))
    gap = 2 if _total(widths, 2) <= room else 1
    for_first = max(least[0], *(len(row[0]) for row in cells if len(row[0]) <= room // 4), 0)
    foldable = [i for i in range(1, len(names)) if not all(re.fullmatch(NUMBERS, row[i]) for row in cells)]
    while (remaining := room - _total([0, *widths[1:]], gap)) < for_first:
        fold = max(foldable, key=widths.__getitem__, default=0)
        if widths[fold] <= max(FOLDED, least[fold]):
            return None
        widths[fold] -= 1
    first = max((len(row[0]) for row in cells if len(row[0]) <= remaining), default=remaining)
    return heads, [max(first, least[0]), *widths[1:]], gap


FOLDED = 12  # characters that a folded column has at least
# Cells that are never broken into lines: numbers, lists and ranges of them, with a unit or without.
NUMBERS = r"[\d\W_]*(?: ?[A-Za-z%]{1,3})?"


def _folded_cells(row: Sequence[str], widths: Sequence[int], columns: range) -> Iterator[Sequence[str]]:
    """The row in as many lines as its longest cell needs, broken after a character between words where there is one."""
    if all(len(row[i]) <= widths[i] for i in columns):
        yield row
        return
    rest = list(row)
    while any(rest[i] for i in columns):
        line = [""] * len(rest)
        for i in columns:
            width = max(widths[i], 1)
            end = len(rest[i]) if i == columns.start or len(rest[i]) <= width else _break(rest[i], width)
            line[i], rest[i] = rest[i][:end].rstrip(), rest[i][end:].lstrip()
        yield line


def _break(text: str, width: int) -> int:
    """Where a text longer than the width is broken: after the last character between words in its second half."""
    ends = [match.end() for match in re.finditer(r"[^A-Za-z0-9]", text[:width])]
    return width if text[width] == " " or not ends or ends[-1] <= width // 2 else ends[-1]


def _total(widths: Sequence[int], gap: int) -> int:
    """The width of columns beside each other."""
    return sum(widths) + gap * (len(widths) - 1)


def _folded_heads(names: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """Lines of headings, broken after words and underscores where their columns are narrower."""
    columns = []
    for name, width in zip(names, widths, strict=True):
        parts = re.findall(r"[^ _]*(?:_|$)|[^ _]+", name.rstrip())
        lines = [""]
        for part in filter(None, parts):
            spaced = " " * bool(lines[-1] and not lines[-1].endswith("_"))
            if lines[-1] and len(lines[-1] + spaced + part) > width:
                lines.append(part)
            else:
                lines[-1] += spaced + part
        columns.append(lines)
    height = max(map(len, columns))
    return [[([""] * (height - len(column)) + column)[line] for column in columns] for line in range(height)]


def _fitting(widths: list[int], room: int) -> Iterator[range]:
    """Which columns share a line: as many as fit, at least one; lines after the first are indented by 4."""
    start, used = 0, 0
    for i, width in enumerate(widths):
        if i > start and used + width > room:
            yield range(start, i)
            start, used = i, 4
        used += width + 2
    yield range(start, len(widths))


def readable(name: str, value: object) -> str:
    """A cell for people: milliseconds since the epoch are shown as a time."""
    if name.endswith(("timestamp", "_at", "time")) and (
        isinstance(value, str) or (type(value) is int and value > 10**11)
    ):
        from commands.cli.clock import shown

        return cell(shown(value))
    return cell(value)


def size(count: object) -> str:
    """Bytes in the largest unit that leaves at least one."""
    value, unit = in_unit(float(str(count or 0)))
    return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
