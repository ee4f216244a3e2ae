"""How rows are spelt in lines: what stands around the values, and how each of them is written.

Lines that are made of columns differ between output forms in nothing else.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache

from formats.values import Struct
from kctl.dump.values import Named
from kctl.rows import RowType

Around = tuple[bytes, bytes]


class Spelling(Struct, frozen=True, kw_only=True):
    """The spelling of an output form. Two fields, `NAME` and `NAME_base64`, are one text in columns."""

    begin: Callable[[str], bytes]
    """What begins a line, by kind of row."""
    before: Callable[[str], bytes]
    """What stands before the value of a field, by name."""
    separator: bytes
    """What stands before a field whose name depends on its value."""
    end: bytes
    names: Callable[[RowType], list[str]]
    """The fields in order, `kind` and those that end with _base64 left out."""
    value: Callable[[object], bytes]
    """A value alone."""
    named: Callable[[str, Named], bytes]
    """`NAME` and `NAME_base64`, of which one has a value."""
    around_text: Callable[[str], Around]
    """The same, around a text that `escaped` gives."""
    around_base64: Callable[[str], Around]
    escaped: Callable[[str, Iterable[str]], bytes | memoryview]
    """A text, without what stands around it; the characters of ASCII in it that are not themselves are given.

    A printable one becomes two bytes.
    """
    odd: re.Pattern[str] | None = None
    """What else of a text is not itself: `value` says how it is written, and so for lists of headers."""


@cache
def json_spelling() -> Spelling:
    """JSON lines. A row that has `NAME` has no `NAME_base64`; both are behind the fields that all rows have."""
    import msgspec

    encode = msgspec.json.Encoder().encode
    return Spelling(
        begin=lambda kind: b'{"kind":' + encode(kind),
        before=lambda name: b"," + encode(name) + b":",
        separator=b",",
        end=b"}\n",
        names=_required_first,
        value=lambda value: encode(_encodable(value)),
        named=lambda name, values: encode(values)[1:-1],
        around_text=lambda name: (f'"{name}":"'.encode(), b'"'),
        around_base64=lambda name: (f'"{name}_base64":"'.encode(), b'"'),
        escaped=lambda text, _: memoryview(encode(text))[1:-1],
    )


def _required_first(row: RowType) -> list[str]:
    optional = [name for name in row.fields if name not in row.required and not name.endswith("_base64")]
    return row.required[1:] + optional


def _encodable(value: object) -> object:
    """The value; the name of a file that is no UTF-8, which JSON cannot hold, with \\udcNN."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
