"""Messages to bytes, in the notation of `schema`: from dictionaries by field, or from values with attributes."""

from collections.abc import Callable
from operator import attrgetter
from struct import Struct as Packed
from typing import Any

from formats.binary.varint import write_unsigned
from formats.messages.schema import (
    UNKNOWN_TAGGED_FIELDS,
    Message,
    MessageField,
    Struct,
    Values,
    absent,
    form_of,
    kind_of,
    uuid_bytes,
)

Get = Callable[[Any], Any]
Write = Callable[[Any, bytearray], object]
LONGEST_TEXT = 0x7FFF  # bytes, in flexible versions too: brokers refuse longer ones by closing the connection


def write_message(message: Message, version: int, values: Values) -> bytes:
    """The bytes of a message; a field that is not given takes its default."""
    out = bytearray()
    writer(message.fields, None, version, version in message.flexible)(values, out)
    return bytes(out)


def writer(struct: Struct, kind: type[Any] | None, version: int, flexible: bool) -> Write:
    """What appends the bytes of a version of a struct.

    With a class of values it takes anything that has its fields as attributes, else dictionaries. It raises
    `struct.error` for a number that is too large and, for a class, ValueError for a text that is.
    """
    key = kind, version, flexible
    if (found := struct.writers.get(key)) is None:
        found = struct.writers[key] = _writer(struct, kind, version, flexible)
    return found


def _writer(struct: Struct, kind: type[Any] | None, version: int, flexible: bool) -> Write:
    steps, tagged = list[tuple[Get, Write]](), list[tuple[int, Get, Write, Any]]()
    for field in struct:
        if version not in field.versions:
            continue
        default = field.default if kind is None else getattr(kind, field.name)
        get, write = _getter(field.name, kind, default), _field_writer(field, kind, version, flexible)
        if field.tag is not None and flexible:
            tagged.append((field.tag, get, write, default))
        else:
            steps.append((get, write))
    unknown: Get = (
        _getter(UNKNOWN_TAGGED_FIELDS, None, ())
        if kind is None
        else lambda values: getattr(values, UNKNOWN_TAGGED_FIELDS, ())  # a value of another class has none
    )

    def write_all(values: Any, out: bytearray) -> None:
        for get, write in steps:
            write(get(values), out)
        if not flexible:
            return
        given: list[tuple[int, bytes]] = [*unknown(values)]
        for tag, get, write, default in tagged:
            if _is_given(value := get(values), default):
                room = bytearray()
                write(value, room)
                given.append((tag, bytes(room)))
        out += write_unsigned(len(given))
        # By number alone: one that comes twice keeps its order.
        for tag, raw in sorted(given, key=lambda pair: pair[0]):
            out += write_unsigned(tag) + write_unsigned(len(raw)) + raw

    return write_all


def _getter(name: str, kind: type[Any] | None, default: Any) -> Get:
    return attrgetter(name) if kind is not None else lambda values: values.get(name, default)


def _is_given(value: Any, default: Any) -> bool:
    is_empty = isinstance(default, list | tuple) and value is not None and not len(value)
    return bool(value != default) and not is_empty


def _field_writer(field: MessageField, kind: type[Any] | None, version: int, flexible: bool) -> Write:
    one = _one_writer(field, kind, version, flexible)
    if not field.array:
        return one
    length = _length_writer(flexible, 4)

    def write(items: Any, out: bytearray) -> None:
        out += length(-1 if items is None else len(items))
        for item in items or ():
            one(item, out)

    return write


def _one_writer(field: MessageField, kind: type[Any] | None, version: int, flexible: bool) -> Write:
    if isinstance(field.type, Struct):
        write_struct = writer(field.type, kind_of(field.type, kind), version, flexible)
        return _or_null(field, write_struct) if field.nullable and not field.array else write_struct
    if (form := form_of(field)) is not None:
        pack = form.pack
        return lambda value, out: out.extend(pack(value))
    if field.type == "uuid":
        return lambda value, out: out.extend(uuid_bytes(value) if kind is None else value.bytes)
    is_text = field.type == "string"
    length = _length_writer(flexible, 2 if is_text else 4)
    has_limit = is_text and kind is not None

    def write(value: Any, out: bytearray) -> None:
        raw = value.encode() if isinstance(value, str) else value
        if has_limit and raw is not None and len(raw) > LONGEST_TEXT:
            raise ValueError(f"{field.name} has {len(raw):,} bytes, and a text has at most {LONGEST_TEXT:,}")
        out += length(-1 if raw is None else len(raw))
        out += raw or b""

    return write


def _or_null(field: MessageField, write_struct: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        out += absent(field) if value is None else b"\x01"
        if value is not None:
            write_struct(value, out)

    return write


def _length_writer(flexible: bool, width: int) -> Callable[[int], bytes]:
    if flexible:
        return lambda count: write_unsigned(count + 1)
    return Packed(">h" if width == 2 else ">i").pack
