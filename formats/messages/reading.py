"""Bytes to messages, in the notation of `schema`: dictionaries by field, or values of the classes of `attributes`.

The way through the fields of a version is laid once; numbers that follow each other are read at once. In a dictionary
fields of other versions have their default, and UUIDs are text.
"""

from collections.abc import Callable, Iterable
from itertools import repeat
from struct import Struct as Packed
from struct import calcsize
from struct import error as PackedError
from typing import Any, NamedTuple
from uuid import UUID

from formats.binary.layout import Bytes
from formats.binary.varint import read_unsigned
from formats.errors import FormatError, Truncated
from formats.messages.schema import (
    UNKNOWN_TAGGED_FIELDS,
    Message,
    MessageField,
    Struct,
    Values,
    absent,
    default_of,
    form_of,
    kind_of,
    uuid_text,
)

Read = Callable[[Bytes, int], tuple[Any, int]]
SHORT = 128  # lengths below are one byte


def read_message(message: Message, version: int, data: Bytes, position: int = 0) -> tuple[Values, int]:
    """The fields of a message by name, and where it ends. Raises FormatError for bytes that are not one."""
    if version not in message.versions:
        raise FormatError(f"{message.name} has no version {version}", position)
    return reader(message.fields, None, version, version in message.flexible)(data, position)


def reader(struct: Struct, kind: type[Any] | None, version: int, flexible: bool) -> Read:
    """What reads a version of a struct from bytes and a position; it returns the values and where they end.

    The values are of a class, or a dictionary where none is given. Raises FormatError for bytes that are not such
    a struct.
    """
    key = kind, version, flexible
    if (found := struct.readers.get(key)) is None:
        found = struct.readers[key] = _reader(struct, kind, version, flexible)
    return found


def take(data: Bytes, position: int, size: int) -> tuple[bytes, int]:
    """`size` bytes at position, and where they end."""
    if size < 0:
        raise FormatError(f"length {size} is negative", position)
    if position + size > len(data):
        raise _cut_off([size], data, position)
    return bytes(data[position : position + size]), position + size


def _cut_off(sizes: Iterable[int], data: Bytes, position: int) -> Truncated:
    """The error of the first of several parts that goes past the end."""
    for size in sizes:
        if position + size > len(data):
            break
        position += size
    return Truncated(f"{size} bytes are promised, {len(data) - position} are left", position)


class _Run(NamedTuple):
    """Fields that are read in one step: numbers that follow each other, or one field of another type."""

    names: tuple[str, ...]
    form: Packed | None
    read: Read | None


def _reader(struct: Struct, kind: type[Any] | None, version: int, flexible: bool) -> Read:
    runs, tagged = list[_Run](), dict[int, tuple[str, Read]]()
    defaults, made_anew = dict[str, Any](), list[MessageField]()
    for field in struct:
        is_tagged, is_here = field.tag is not None and flexible, version in field.versions
        if kind is None:
            defaults[field.name] = field.default
            if isinstance(field.default, list | dict) and (is_tagged or not is_here):
                made_anew.append(field)
        if not is_here:
            continue
        if field.tag is not None and flexible:
            tagged[field.tag] = field.name, _field_reader(field, kind, version, flexible)
        elif field.array or (form := form_of(field)) is None:
            runs.append(_Run((field.name,), None, _field_reader(field, kind, version, flexible)))
        elif runs and (last := runs[-1]).form is not None:
            runs[-1] = _Run((*last.names, field.name), Packed(last.form.format + form.format[1:]), None)
        else:
            runs.append(_Run((field.name,), form, None))

    def read(data: Bytes, at: int) -> tuple[Any, int]:
        values = defaults.copy()
        for field in made_anew:
            values[field.name] = default_of(field)
        for names, form, one in runs:
            if one is not None:
                values[names[0]], at = one(data, at)
            elif form is not None:
                try:
                    values.update(zip(names, form.unpack_from(data, at), strict=True))
                except PackedError:
                    raise _cut_off(map(calcsize, form.format[1:]), data, at) from None
                at += form.size
        if flexible:
            at = _read_tagged(tagged, values, data, at)
        if kind is None:
            return values, at
        made = object.__new__(kind)
        made.__dict__ = values
        return made, at

    return read


def _read_tagged(fields: dict[int, tuple[str, Read]], values: Values, data: Bytes, at: int) -> int:
    count, at = read_unsigned(data, at)
    for _ in range(count):
        tag, at = read_unsigned(data, at)
        size, at = read_unsigned(data, at)
        raw, end = take(data, at, size)
        if tag in fields:
            name, read = fields[tag]
            values[name], used = read(raw, 0)
            if used != size:
                raise FormatError(f"tagged field {tag} has {size - used} bytes too many", at)
        else:
            values.setdefault(UNKNOWN_TAGGED_FIELDS, []).append((tag, raw))
        at = end
    return at


def _field_reader(field: MessageField, kind: type[Any] | None, version: int, flexible: bool) -> Read:
    one = _one_reader(field, kind, version, flexible)
    if not field.array:
        return one
    length, numbers = _length_reader(flexible, 4), form_of(field)

    def read(data: Bytes, start: int) -> tuple[Any, int]:
        count, at = length(data, start)
        if count < 0:
            _check_nullable(field, start)
            return None, at
        if count > len(data) - at:
            raise Truncated(f"{field.name} promises {count} elements, {len(data) - at} bytes are left", start)
        if numbers is not None:
            if at + count * numbers.size > len(data):
                raise _cut_off(repeat(numbers.size), data, at)
            form = Packed(f">{count}{numbers.format[1:]}")
            return list(form.unpack_from(data, at)), at + form.size
        items = []
        for _ in range(count):
            item, at = one(data, at)
            items.append(item)
        return items, at

    return read


def _one_reader(field: MessageField, kind: type[Any] | None, version: int, flexible: bool) -> Read:
    if isinstance(field.type, Struct):
        read_struct = reader(field.type, kind_of(field.type, kind), version, flexible)
        return _or_null(field, read_struct) if field.nullable and not field.array else read_struct
    if (form := form_of(field)) is not None:
        return lambda data, at: (form.unpack(take(data, at, form.size)[0])[0], at + form.size)
    if field.type == "uuid":
        made: Callable[[bytes], Any] = uuid_text if kind is None else lambda raw: UUID(bytes=raw)
        return lambda data, at: (made(take(data, at, 16)[0]), at + 16)
    is_text = field.type == "string"
    length = _length_reader(flexible, 2 if is_text else 4)

    def read(data: Bytes, start: int) -> tuple[Any, int]:
        size, at = length(data, start)
        if size < 0:
            _check_nullable(field, start)
            return None, at
        end = at + size
        if end > len(data):
            raise _cut_off([size], data, at)
        if not is_text:
            return bytes(data[at:end]), end
        try:
            return str(data[at:end], "utf-8"), end
        except UnicodeDecodeError:
            raise FormatError(f"{field.name} is not UTF-8", start) from None

    return read


def _or_null(field: MessageField, read_struct: Read) -> Read:
    def read(data: Bytes, at: int) -> tuple[Any, int]:
        mark, at = take(data, at, 1)
        return (None, at) if mark == absent(field) else read_struct(data, at)

    return read


def _length_reader(flexible: bool, width: int) -> Read:
    """What reads a length or count, -1 for null."""
    if not flexible:
        return lambda data, at: (
            int.from_bytes(take(data, at, width)[0], "big", signed=True),
            at + width,
        )

    def read(data: Bytes, at: int) -> tuple[int, int]:
        if at < len(data) and (size := data[at]) < SHORT:
            return size - 1, at + 1
        size, at = read_unsigned(data, at)
        return size - 1, at

    return read


def _check_nullable(field: MessageField, position: int) -> None:
    if not field.nullable:
        raise FormatError(f"{field.name} must not be null", position)
