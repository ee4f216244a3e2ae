"""Fixed-width big-endian rows, declared once as annotated NamedTuples.

A row is a `NamedTuple` whose annotations are the types below; the struct, the offsets of its fields,
the numpy dtype and the Hypothesis strategy are all read from that one declaration.
"""

from collections.abc import Hashable
from functools import cache
from struct import Struct
from typing import Annotated, Any, NamedTuple, TypeVar, cast, get_type_hints

from formats.errors import Truncated

int8 = Annotated[int, "b"]
int16 = Annotated[int, "h"]
int32 = Annotated[int, "i"]
int64 = Annotated[int, "q"]
uint32 = Annotated[int, "I"]

WIDTHS = {"b": 1, "h": 2, "i": 4, "q": 8, "I": 4}
DTYPES = {"b": ">i1", "h": ">i2", "i": ">i4", "q": ">i8", "I": ">u4"}

Bytes = bytes | bytearray | memoryview
Row = TypeVar("Row", bound=NamedTuple)


def codes(row: type[Any]) -> dict[str, str]:
    """Field name to struct code, in the order of the bytes."""
    hints = get_type_hints(row, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in row._fields}


@cache
def _struct(row: Hashable) -> Struct:
    return Struct(">" + "".join(codes(row).values()))  # type: ignore[arg-type]  # hashable, and a type


def layout(row: type[Any]) -> Struct:
    """The struct of a row, made once."""
    return _struct(cast("Hashable", row))


def offset_of(row: type[Any], field: str) -> int:
    """Where a field starts, in bytes from the start of its row."""
    names = list(codes(row))
    return sum(WIDTHS[codes(row)[name]] for name in names[: names.index(field)])


def dtype(row: type[Any]) -> list[tuple[str, str]]:
    """The row as a packed numpy dtype description."""
    return [(name, DTYPES[code]) for name, code in codes(row).items()]


def read(row: type[Row], data: Bytes, position: int = 0) -> Row:
    """The row at position; `Truncated` where the bytes end inside it."""
    struct = layout(row)
    if position + struct.size > len(data):
        raise Truncated(
            f"{row.__name__} needs {struct.size} bytes, {max(0, len(data) - position)} are left", position
        )
    return row(*struct.unpack_from(data, position))


def write(value: NamedTuple) -> bytes:
    """The bytes of a row."""
    return layout(type(value)).pack(*value)
