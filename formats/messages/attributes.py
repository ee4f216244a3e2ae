"""Messages as values with attributes, in the notation of `schema`: for answers with tens of thousands of fields.

    Topic = value_class(struct)                       # a class with the struct's name; nested structs are its attributes
    data = writer(Topic, 5, True)(Topic(name="a"))    # bytes of version 5, in the flexible form
    topic, end = reader(Topic, 5, True)(data, 0)

`schema` walks its fields for every value; here the way through them is laid once for each version, and numbers that
follow each other are read at once. Arrays that are absent are empty tuples, and UUIDs are those of the standard library.
"""

from collections.abc import Callable
from operator import attrgetter
from struct import Struct as Packed
from struct import error as PackedError
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from formats.binary.layout import Bytes
from formats.binary.varint import read_unsigned, write_unsigned
from formats.errors import FormatError, Truncated
from formats.messages.schema import FIXED, MessageField, Struct

Read = Callable[[Bytes, int], tuple[Any, int]]
Write = Callable[[Any, bytearray], None]
NO_UUID = UUID(int=0)
SHORT = 128  # lengths below are one byte
LONGEST_TEXT = 0x7FFF  # bytes, in flexible versions too: brokers refuse longer ones by closing the connection


class Values:
    """What a struct holds. A field that is not given, or not in a version, has its default."""

    STRUCT: ClassVar[Struct]
    READERS: ClassVar[dict[tuple[int, bool], Read]]
    WRITERS: ClassVar[dict[tuple[int, bool], Write]]

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
    body: dict[str, Any] = {"STRUCT": struct, "READERS": {}, "WRITERS": {}, "__module__": __name__}
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


def _form(field: MessageField) -> Packed | None:
    """The form of a number; None for other types."""
    return FIXED.get(field.type) if isinstance(field.type, str) else None


# --- reading --------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """Fields that are read in one step: numbers that follow each other, or one field of another type."""

    names: tuple[str, ...]
    form: Packed | None
    read: Read | None


def reader(kind: type[Values], version: int, flexible: bool) -> Read:
    """What reads a version of a struct from bytes and a position; it returns the values and where they end.

    It raises ValueError for bytes that are not such a struct.
    """
    if (found := kind.READERS.get((version, flexible))) is None:
        found = kind.READERS[version, flexible] = _reader(kind, version, flexible)
    return found


def _reader(kind: type[Values], version: int, flexible: bool) -> Read:
    runs, tagged = list[Run](), dict[int, tuple[str, Read]]()
    for field in kind.STRUCT:
        if version not in field.versions:
            continue
        if field.tag is not None and flexible:
            tagged[field.tag] = field.name, _field_reader(kind, field, version, flexible)
        elif not field.array and (form := _form(field)) is not None:
            if runs and (last := runs[-1]).form is not None:
                runs[-1] = Run((*last.names, field.name), Packed(last.form.format + form.format[1:]), None)
            else:
                runs.append(Run((field.name,), form, None))
        else:
            runs.append(Run((field.name,), None, _field_reader(kind, field, version, flexible)))
    new = kind.__new__

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        for names, form, one in runs:
            if form is not None:
                values.update(zip(names, form.unpack_from(data, at), strict=True))
                at += form.size
            elif one is not None:
                values[names[0]], at = one(data, at)
        if flexible:
            at = _read_tagged(tagged, values, data, at)
        made = new(kind)
        made.__dict__ = values
        return made, at

    return read


def _read_tagged(fields: dict[int, tuple[str, Read]], values: dict[str, Any], data: Bytes, at: int) -> int:
    count, at = read_unsigned(data, at)
    for _ in range(count):
        tag, at = read_unsigned(data, at)
        size, at = read_unsigned(data, at)
        if tag in fields:
            name, read = fields[tag]
            values[name], end = read(data, at)
            if end != at + size:
                raise FormatError(f"{name} does not end where it should", at)
        at += size
    if at > len(data):
        raise Truncated("a tagged field is cut off", at)
    return at


def _field_reader(kind: type[Values], field: MessageField, version: int, flexible: bool) -> Read:
    one = _one_reader(kind, field, version, flexible)
    if not field.array:
        return one
    length = _length_reader(flexible, 4)
    numbers = _form(field)

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        count, at = length(data, at)
        if count < 0:
            _check_nullable(field, at)
            return None, at
        if count > len(data) - at:
            raise Truncated(f"{field.name} is cut off", at)
        if numbers is not None:
            form = Packed(f">{count}{numbers.format[1:]}")
            return list(form.unpack_from(data, at)), at + form.size
        items = []
        for _ in range(count):
            item, at = one(data, at)
            items.append(item)
        return items, at

    return read


def _one_reader(kind: type[Values], field: MessageField, version: int, flexible: bool) -> Read:
    if isinstance(field.type, Struct):
        read_struct = reader(getattr(kind, field.type.name), version, flexible)
        if field.array or not field.nullable:
            return read_struct
        absent = 0xFF if field.tag is None else 0
        return lambda data, at: (None, at + 1) if data[at] == absent else read_struct(data, at + 1)
    if (form := _form(field)) is not None:
        return lambda data, at: (form.unpack_from(data, at)[0], at + form.size)
    if field.type == "uuid":
        return _read_uuid
    length = _length_reader(flexible, 2 if field.type == "string" else 4)
    is_text = field.type == "string"

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        size, at = length(data, at)
        if size < 0:
            _check_nullable(field, at)
            return None, at
        end = at + size
        if end > len(data):
            raise Truncated(f"{field.name} is cut off", at)
        return str(data[at:end], "utf-8") if is_text else bytes(data[at:end]), end

    return read


def _read_uuid(data: Bytes, at: int) -> tuple[UUID, int]:
    return UUID(bytes=bytes(data[at : at + 16])), at + 16


def _length_reader(flexible: bool, width: int) -> Read:
    """What reads a length or count, -1 for null."""
    if not flexible:
        form = Packed(">h" if width == 2 else ">i")
        return lambda data, at: (form.unpack_from(data, at)[0], at + width)

    def read(data: Bytes, at: int) -> tuple[int, int]:
        size = data[at]
        if size >= SHORT:
            size, at = read_unsigned(data, at)
            return size - 1, at
        return size - 1, at + 1

    return read


def _check_nullable(field: MessageField, at: int) -> None:
    if not field.nullable:
        raise FormatError(f"{field.name} must not be null", at)


def read_values(kind: type[Values], version: int, flexible: bool, data: Bytes) -> Any:
    """The values in bytes that begin with them. Raises ValueError for anything else."""
    try:
        values, end = reader(kind, version, flexible)(data, 0)
    except (PackedError, IndexError) as error:
        raise Truncated(f"{kind.STRUCT.name} is cut off: {error}", 0) from None
    if end > len(data):
        raise Truncated(f"{kind.STRUCT.name} is cut off", end)
    return values


# --- writing --------------------------------------------------------------------------------------------


def writer(kind: type[Values], version: int, flexible: bool) -> Write:
    """What appends the bytes of a version of a struct, from anything that has its fields as attributes."""
    if (found := kind.WRITERS.get((version, flexible))) is None:
        found = kind.WRITERS[version, flexible] = _writer(kind, version, flexible)
    return found


def _writer(kind: type[Values], version: int, flexible: bool) -> Write:
    steps, tagged = list[Callable[[Any, bytearray], None]](), list[tuple[MessageField, Write]]()
    for field in sorted(kind.STRUCT, key=lambda field: -1 if field.tag is None else field.tag):
        if version not in field.versions:
            continue
        write = _field_writer(kind, field, version, flexible)
        if field.tag is not None and flexible:
            tagged.append((field, write))
        else:
            steps.append(_step(attrgetter(field.name), write))

    def write_all(values: Any, out: bytearray) -> None:
        for step in steps:
            step(values, out)
        if not flexible:
            return
        given = [(field, write) for field, write in tagged if _is_given(values, field, kind)]
        out += write_unsigned(len(given))
        for field, write in given:
            raw = bytearray()
            write(getattr(values, field.name), raw)
            out += write_unsigned(field.tag or 0) + write_unsigned(len(raw)) + raw

    return write_all


def _step(get: Callable[[Any], Any], write: Write) -> Write:
    return lambda values, out: write(get(values), out)


def _is_given(values: Any, field: MessageField, kind: type[Values]) -> bool:
    value = getattr(values, field.name)
    return bool(value != getattr(kind, field.name)) and not (
        field.array and field.default == [] and not value
    )


def _field_writer(kind: type[Values], field: MessageField, version: int, flexible: bool) -> Write:
    one = _one_writer(kind, field, version, flexible)
    if not field.array:
        return one
    length = _length_writer(flexible, 4)

    def write(items: Any, out: bytearray) -> None:
        if items is None:
            out += length(-1)
            return
        out += length(len(items))
        for item in items:
            one(item, out)

    return write


def _one_writer(kind: type[Values], field: MessageField, version: int, flexible: bool) -> Write:
    if isinstance(field.type, Struct):
        write_struct = writer(getattr(kind, field.type.name), version, flexible)
        if field.array or not field.nullable:
            return write_struct
        absent = 0xFF if field.tag is None else 0

        def write_nullable(value: Any, out: bytearray) -> None:
            out.append(absent if value is None else 1)
            if value is not None:
                write_struct(value, out)

        return write_nullable
    if (form := _form(field)) is not None:
        pack = form.pack
        return lambda value, out: out.extend(pack(value))
    if field.type == "uuid":
        return lambda value, out: out.extend(value.bytes)
    is_text = field.type == "string"
    length = _length_writer(flexible, 2 if is_text else 4)

    def write(value: Any, out: bytearray) -> None:
        raw = value.encode() if isinstance(value, str) else value
        if is_text and raw is not None and len(raw) > LONGEST_TEXT:
            raise ValueError(f"{field.name} has {len(raw):,} bytes, and a text has at most {LONGEST_TEXT:,}")
        out += length(-1 if raw is None else len(raw))
        out += raw or b""

    return write


def _length_writer(flexible: bool, width: int) -> Callable[[int], bytes]:
    if flexible:
        return lambda count: write_unsigned(count + 1)
    return Packed(">h" if width == 2 else ">i").pack


def write_values(kind: type[Values], version: int, flexible: bool, values: Any) -> bytes:
    """The bytes of a version of a struct. Raises ValueError for a text or a number that is too large."""
    out = bytearray()
    try:
        writer(kind, version, flexible)(values, out)
    except PackedError as error:
        raise ValueError(f"{kind.STRUCT.name}: {error}") from None
    return bytes(out)
