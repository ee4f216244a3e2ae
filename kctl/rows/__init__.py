"""The rows that commands print: one table of kinds and fields, and their JSON Schema.

The rows stand in this folder, one file a subject. A `RowType` is called with the values and gives the row,
`kind` first, what was not given as null; an unknown key is a bug and raises TypeError.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple


class Field(NamedTuple):
    """One key of a row: JSON types allowed, and what it holds."""

    types: tuple[str, ...]
    doc: str = ""
    choices: tuple[str, ...] = ()
    is_optional: bool = False


def string(doc: str = "", *choices: str) -> Field:
    """Text; one of the choices where some are given."""
    return Field(("string",), doc, choices)


def integer(doc: str = "") -> Field:
    """An integer."""
    return Field(("integer",), doc)


def number(doc: str = "") -> Field:
    """A number that may have a fraction."""
    return Field(("number",), doc)


def boolean(doc: str = "") -> Field:
    """True or false."""
    return Field(("boolean",), doc)


def array(doc: str = "") -> Field:
    """A list."""
    return Field(("array",), doc)


def mapping(doc: str = "") -> Field:
    """An object."""
    return Field(("object",), doc)


def anything(doc: str = "") -> Field:
    """Any JSON value."""
    return Field((), doc)


def nullable(field: Field) -> Field:
    """The same, or null where it is absent."""
    return field._replace(types=(*field.types, "null")) if field.types else field


def optional(field: Field) -> Field:
    """The same, and rows may be without it: of `NAME` and `NAME_base64` a row has one."""
    return field._replace(is_optional=True)


def _spelt(column: Sequence[object], encode: Callable[[Any], bytes]) -> tuple[bytes, Sequence[object]]:
    """What stands for a value in a line, and what is put there for each."""
    types = set(map(type, column))
    if types == {int}:
        return b"%d", column
    if list in types:
        return b"%b", list(map(encode, column))
    texts = {value: encode(value) for value in set(column)}
    return b"%b", list(map(texts.__getitem__, column))


class RowType:
    """A kind of row: its fields in order, and whether one of it means that something is wrong (exit 5)."""

    def __init__(self, kind: str, doc: str, /, *, is_wrong: bool = False, **fields: Field) -> None:
        self.kind = kind
        self.doc = doc
        self.fields = fields
        self.is_wrong = is_wrong
        self.required = ["kind", *(name for name, field in fields.items() if not field.is_optional)]
        self._blank: dict[str, object] = {**dict.fromkeys(self.required), "kind": kind}

    def __call__(self, **values: object) -> dict[str, object]:
        row = {**self._blank, **values}
        if len(row) != len(self._blank) and not values.keys() <= self.fields.keys():
            raise TypeError(f"row {self.kind} has no key {sorted(values.keys() - self.fields.keys())}")
        return row

    def many(self, **columns: Iterable[object]) -> Iterator[dict[str, object]]:
        """A row for each place of the columns, which are equally long; what has no column is null."""
        unknown = columns.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"row {self.kind} has no key {sorted(unknown)}")
        given = [columns.get(name) for name in self.required[1:]]
        blank = repeat(None)
        names = self.required
        for values in zip(repeat(self.kind), *(blank if one is None else one for one in given), strict=False):
            yield dict(zip(names, values, strict=True))

    def lines(self, encode: Callable[[Any], bytes], **columns: Sequence[object]) -> bytes:
        """The rows of `many` as lines of JSON; `encode` gives that of a value."""
        unknown = columns.keys() - self.fields.keys()
        if unknown:
            raise TypeError(f"row {self.kind} has no key {sorted(unknown)}")
        places, values = [], []
        for name in self.required:
            if name in columns:
                place, spelt = _spelt(columns[name], encode)
                values.append(spelt)
            else:
                place = encode(self.kind if name == "kind" else None)
            places.append(encode(name) + b":" + place)
        line = b"{" + b",".join(places) + b"}\n"
        return b"".join(map(line.__mod__, zip(*values, strict=True)))

    def with_all_keys(self, row: dict[str, object]) -> dict[str, object]:
        """The row with its optional keys too, for columns that must not shift."""
        return {"kind": self.kind, **{name: row.get(name) for name in self.fields}}

    def schema(self) -> dict[str, object]:
        """JSON Schema (draft 2020-12) of this kind."""
        properties: dict[str, object] = {"kind": {"const": self.kind}}
        for name, field in self.fields.items():
            one: dict[str, object] = {"description": field.doc} if field.doc else {}
            if field.choices:
                one["enum"] = [*field.choices, *([None] if "null" in field.types else [])]
            elif field.types:
                one["type"] = list(field.types) if len(field.types) > 1 else field.types[0]
            properties[name] = one
        return {
            "title": self.kind,
            "description": self.doc,
            "type": "object",
            "properties": properties,
            "required": self.required,
        }
