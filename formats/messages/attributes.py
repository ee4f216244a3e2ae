"""Messages as values with attributes, in the notation of `schema`: for answers with tens of thousands of fields.

    Topic = value_class(struct)                          # a class with the struct's name; nested structs are its attributes
    data = write_values(Topic, 5, True, Topic(name="a"))  # bytes of version 5, in the flexible form
    topic = read_values(Topic, 5, True, data)

Arrays that are absent are empty tuples, and UUIDs are those of the standard library.
"""

from struct import error as PackedError
from typing import Any, ClassVar
from uuid import UUID

from formats.binary.layout import Bytes
from formats.messages.reading import reader
from formats.messages.schema import UNKNOWN_TAGGED_FIELDS, MessageField, Struct
from formats.messages.writing import writer

NO_UUID = UUID(int=0)


class Values:
    """What a struct holds. A field that is not given, or not in a version, has its default."""

    STRUCT: ClassVar[Struct]

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - {field.name for field in self.STRUCT}:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and self.STRUCT is other.STRUCT and self._all() == other._all()

    __hash__ = None  # type: ignore[assignment]  # fields may be changed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.__dict__.items())})"

    def _all(self) -> list[Any]:
        values = [getattr(self, field.name) for field in self.STRUCT]
        return [list(value) if isinstance(value, tuple) else value for value in values]


def value_class(struct: Struct, base: type[Values] = Values) -> type[Any]:
    """The class of a struct's values."""
    return _made(struct, base, {})


def _made(struct: Struct, base: type[Values], known: dict[int, type[Any]]) -> type[Any]:
    body: dict[str, Any] = {"STRUCT": struct, UNKNOWN_TAGGED_FIELDS: (), "__module__": __name__}
    for field in struct:
        if isinstance(field.type, Struct):
            if id(field.type) not in known:
                known[id(field.type)] = _made(field.type, Values, known)
            body[field.type.name] = known[id(field.type)]
        body[field.name] = _default(field, body)
    return type(struct.name, (base,), body)


def _default(field: MessageField, body: dict[str, Any]) -> Any:
    if isinstance(field.default, list):
        return ()
    if isinstance(field.type, Struct):
        return None if field.default is None else body[field.type.name]()
    return NO_UUID if field.type == "uuid" else field.default


def read_values(kind: type[Values], version: int, flexible: bool, data: Bytes) -> Any:
    """The values in bytes that begin with them. Raises ValueError for anything else."""
    return reader(kind.STRUCT, kind, version, flexible)(data, 0)[0]


def write_values(kind: type[Values], version: int, flexible: bool, values: Any) -> bytes:
    """The bytes of a version of a struct. Raises ValueError for a text or a number that is too large."""
    out = bytearray()
    try:
        writer(kind.STRUCT, kind, version, flexible)(values, out)
    except PackedError as error:
        raise ValueError(f"{kind.STRUCT.name}: {error}") from None
    return bytes(out)
