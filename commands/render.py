"""Rows to text, tab-separated lines, JSON or JSON lines.

Text on a terminal is for people: the command may give a `text` function that lays its rows out, else they
are aligned. In a pipe text is tab-separated, a header line before the first row of each kind, nothing cut.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from commands.frame import Frame

Row = dict[str, object]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
OWN_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WORDS = re.compile(r"\x1b\[[0-9;]*m|\s+|[^\s\x1b]+|\x1b")
ESCAPED = {ord("\\"): "\\\\", ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}
STYLES = {"error": "31;1", "warning": "33", "info": "36", "good": "32", "dim": "2", "bold": "1"}


class Page(NamedTuple):
    """The terminal that text is laid out for."""

    width: int
    color: bool

    def style(self, text: str, name: str) -> str:
        """The text in a colour that marks severity; as it is where colour is off."""
        return f"\x1b[{STYLES[name]}m{text}\x1b[0m" if self.color and text else text


Text = Callable[[Iterable[Row], Page], Iterable[str]]


class Outcome(NamedTuple):
    """What a command gives back: rows; how to lay them out on a terminal; or bytes that it encodes itself."""

    rows: Iterable[Row] = ()
    text: Text | None = None
    # What a person is told where there is no row at all: silence leaves open whether anything was looked at.
    nothing: str = ""
    # For output too large for a dict a row: gives the bytes of an output form ("text", "json", "jsonl"), or None for
    # one that the rows are written in. Where there is a layout as well, terminals get that.
    encoded: Callable[[str], Iterable[bytes | memoryview] | None] | None = None


def folding(text: Text) -> Text:
    """A layout whose lines are broken between words where the page is too narrow, and go on indented."""
    return lambda rows, page: (part for line in text(rows, page) for part in folded(line, page.width))


def folded(line: str, width: int) -> Iterator[str]:
    """The line in pieces that fit, those after the first indented by 4 more than it; a word is never broken."""
    plain = OWN_COLOUR.sub("", line)
    if len(plain) <= width:
        yield line
        return
    indent = " " * (min(len(plain) - len(plain.lstrip()), width // 2) + 4)
    piece, used, gap = "", 0, ""
    for token in WORDS.findall(line):
        if token.startswith("\x1b"):
            piece += gap + token
            used, gap = used + len(gap), ""
        elif token.isspace():
            gap = token
        elif gap and used + len(gap) + len(token) > width and piece.strip():
            yield piece
            piece, used, gap = indent + token, len(indent) + len(token), ""
        else:
            piece, used, gap = piece + gap + token, used + len(gap) + len(token), ""
    yield piece


def visible(text: str) -> str:
    """The text with control characters, which a terminal would obey, written as \\xNN or \\uNNNN."""
    return CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)


def deliver(frame: Frame, outcome: Outcome) -> None:
    """Write the outcome to standard output and let wrong rows raise the exit status."""
    is_laid_out = frame.output == "text" and (sys.stdout.isatty() or frame.color == "always")
    if outcome.encoded is not None and not (outcome.text and is_laid_out):
        encoded = outcome.encoded(frame.output)
        if encoded is not None:
            _write(encoded)
            return
    rows = _watched(frame, outcome)
    if frame.output == "jsonl":
        _write(_json_lines(rows))
    elif frame.output == "json":
        _write(_json_array(rows))
    elif sys.stdout.isatty():
        from shutil import get_terminal_size

        page = Page(get_terminal_size().columns, frame.color != "never")
        for line in (outcome.text or aligned)(rows, page):
            frame.make_room()
            _write([f"{_shown(line)}\n".encode()])
    elif outcome.text and frame.color == "always":
        _write(f"{_shown(line)}\n".encode() for line in outcome.text(rows, Page(80, color=True)))
    else:
        _write(f"{line}\n".encode("utf-8", "surrogateescape") for line in tab_separated(rows))


def _write(chunks: Iterable[bytes | memoryview]) -> None:
    out = sys.stdout.buffer
    for chunk in chunks:
        out.write(chunk)
    out.flush()


def _shown(line: str) -> str:
    """A laid-out line: our own colour sequences stay, anything else that a terminal would obey does not."""
    parts = re.split(r"(\x1b\[[0-9;]*m)", line)
    return "".join(part if index % 2 else visible(part) for index, part in enumerate(parts))


def _watched(frame: Frame, outcome: Outcome) -> Iterator[Row]:
    rows = map(frame.seen, outcome.rows)
    return _or_nothing(frame, rows, outcome.nothing) if outcome.nothing and frame.output == "text" else rows


def _or_nothing(frame: Frame, rows: Iterator[Row], nothing: str) -> Iterator[Row]:
    is_empty = True
    for row in rows:
        is_empty = False
        yield row
    if is_empty and not frame.status:
        frame.note(nothing)


def json_encoder() -> Callable[[Row], bytes]:
    """One row as JSON. Bytes of file names that are no UTF-8, which JSON cannot hold, become \\udcNN."""
    import msgspec

    encoder = msgspec.json.Encoder()

    def encode(row: Row) -> bytes:
        try:
            return encoder.encode(row)
        except UnicodeEncodeError:
            return encoder.encode(_with_lone_surrogates_spelt(row))

    return encode


def _with_lone_surrogates_spelt(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {
            _with_lone_surrogates_spelt(key): _with_lone_surrogates_spelt(one) for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_lone_surrogates_spelt(one) for one in value]
    return value


def _json_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    encode = json_encoder()
    for row in rows:
        yield encode(row) + b"\n"


def as_lines(frame: Frame, items: Iterable[bytes | memoryview | Row]) -> Iterator[bytes | memoryview]:
    """Ready lines as they are, rows encoded; findings raise the exit status."""
    encode = json_encoder()
    for item in items:
        yield encode(frame.seen(item)) + b"\n" if isinstance(item, dict) else item


def _json_array(rows: Iterable[Row]) -> Iterator[bytes]:
    encode = json_encoder()
    before = b"["
    for row in rows:
        yield before + b"\n" + encode(row)
        before = b","
    yield b"\n]\n" if before == b"," else b"[]\n"


def cell(value: object) -> str:
    """A value in a line of text: nothing for null, JSON for lists, tabs and line ends escaped."""
    return CELLS.get(type(value), _other_cell)(value)


def text_cell(value: str) -> str:
    """A text in a line: tabs, line ends and backslashes escaped."""
    return value if value.isprintable() and "\\" not in value else value.translate(ESCAPED)


def _list_cell(value: list[object]) -> str:
    if INTEGERS.issuperset(map(type, value)):
        return str(value).replace(" ", "")
    return _json_cell(value)


def _json_cell(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _other_cell(value: object) -> str:
    if isinstance(value, (list, tuple, dict)):
        return _json_cell(value)
    return str(value).translate(ESCAPED)


INTEGERS = frozenset({int})
CELLS: dict[type, Callable[[Any], str]] = {  # by type, since large tables have millions of them
    str: text_cell,
    int: str,
    type(None): lambda _: "",
    bool: lambda value: "true" if value else "false",
    list: _list_cell,
}


def tab_separated(rows: Iterable[Row]) -> Iterator[str]:
    """A header line before the first row of each kind, and where its keys change; then a line a row."""
    seen: dict[object, tuple[str, ...]] = {}
    for row in rows:
        keys = tuple(row)
        if seen.get(row["kind"]) != keys:
            seen[row["kind"]] = keys
            yield "\t".join(row)
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


def table(rows: list[Row], page: Page) -> Iterator[str]:
    """Rows of one kind in aligned columns, numbers to the right; a single row that is too wide in lines.

    Columns that do not fit the page stand indented below the first, their names likewise.
    """
    if not rows:
        return
    names = [n for n in rows[0] if n != "kind" and any(r.get(n) is not None for r in rows)]
    cells = [[visible(readable(n, row.get(n))) for n in names] for row in rows]
    widths = [max(len(n), *(len(c[i]) for c in cells)) for i, n in enumerate(names)]
    if len(rows) == 1 and sum(widths) + 2 * len(widths) - 2 > page.width:
        longest = max(map(len, names))
        yield from (
            f"{page.style(n.ljust(longest), 'dim')}  {c}" for n, c in zip(names, cells[0], strict=True)
        )
        return
    right = [all(isinstance(r.get(n), (int, float, type(None))) for r in rows) for n in names]
    lines = list(_fitting(widths, page.width))
    for n, row in enumerate([names, *cells]):
        for columns in lines:
            line = "  ".join(
                row[i].rjust(widths[i]) if right[i] else row[i].ljust(widths[i]) for i in columns
            )
            text = (line if columns.start == 0 else "    " + line).rstrip()
            if n == 0:
                yield page.style(text, "dim")
            elif text or columns.start == 0:
                yield text


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
    """A cell for people: milliseconds since the epoch, which rows have, are a time in UTC."""
    if name.endswith(("timestamp", "_at", "time")) and type(value) is int and value > 10**11:
        from kctl.times import iso

        return iso(value) or cell(value)
    return cell(value)
