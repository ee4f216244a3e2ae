"""Kafka's generated messages: fields by version, plain and flexible encoding, tagged fields.

From a message's first flexible version on, every struct (nested ones and array elements included) ends with
tagged fields, and lengths are unsigned varints of length + 1 instead of int16 or int32. Tagged fields that a
table does not know are kept, and written back. A UUID is 16 bytes and reads as 22 characters of URL-safe base64.

Source: generator/src/main/java/org/apache/kafka/message/MessageDataGenerator.java @ 3.9.0-rc3, KIP-482
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from struct import Struct as Packed
from typing import Any, NamedTuple

from formats.errors import FormatError, Truncated
from formats.layout import Bytes
from formats.varint import read_unsigned, write_unsigned

# Where a struct keeps the tagged fields that its table does not know: a list of (tag, bytes).
UNKNOWN_TAGGED_FIELDS = "unknown_tagged_fields"
FIXED = {
    "bool": Packed(">?"),
    "int8": Packed(">b"),
    "int16": Packed(">h"),
    "uint16": Packed(">H"),
    "int32": Packed(">i"),
    "uint32": Packed(">I"),
    "int64": Packed(">q"),
    "float64": Packed(">d"),
}
ZERO_UUID = "A" * 22

Values = dict[str, Any]


class Since(NamedTuple):
    """Versions from first to last, both included; no last is every later one."""

    first: int = 0
    last: int | None = None

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= (
            32767 if self.last is None else self.last
        )


ALWAYS, NEVER = Since(), Since(32767, -1)


@dataclass(frozen=True, slots=True)
class Field:
    """A field: a type name of `FIXED`, `uuid`, `string`, `bytes`, or a `Struct`; `array` repeats it."""

    name: str
    type: "str | Struct"
    versions: Since = ALWAYS
    nullable: Since = NEVER
    array: bool = False
    tag: int | None = None
    default: object = None


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in the order of the bytes."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its key (what a value starts with, where it does), its versions, its fields."""

    name: str
    key: int
    versions: Since
    flexible: Since
    body: Struct


def uuid_text(raw: Bytes) -> str:
    """The text of a UUID's 16 bytes (clients/.../common/Uuid.java @ 3.9.0-rc3)."""
    return urlsafe_b64encode(raw).decode().rstrip("=")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a UUID's text; `FormatError` where it is not one."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raw = b""
    if len(raw) != 16:
        raise FormatError(f"{text!r} is not a UUID of 22 characters", 0)
    return raw


def read_message(message: Message, version: int, data: Bytes, position: int = 0) -> tuple[Values, int]:
    """The fields of a message by name, and where it ends."""
    if version not in message.versions:
        raise FormatError(f"{message.name} has no version {version}", position)
    return _read_struct(message.body, version, version in message.flexible, data, position)


def write_message(message: Message, version: int, values: Values) -> bytes:
    """The bytes of a message; a field that is not given takes its default."""
    out = bytearray()
    _write_struct(message.body, version, version in message.flexible, values, out)
    return bytes(out)


def take(data: Bytes, position: int, size: int) -> tuple[bytes, int]:
    """`size` bytes at position, and where they end."""
    if size < 0:
        raise FormatError(f"length {size} is negative", position)
    if position + size > len(data):
        raise Truncated(f"{size} bytes are promised, {len(data) - position} are left", position)
    return bytes(data[position : position + size]), position + size


def _read_struct(
    struct: Struct, version: int, flexible: bool, data: Bytes, position: int
) -> tuple[Values, int]:
    values: Values = {}
    tagged: dict[int, Field] = {}
    for field in struct.fields:
        if version not in field.versions:
            values[field.name] = default_of(field, version)
        elif field.tag is not None and flexible:
            values[field.name] = default_of(field, version)
            tagged[field.tag] = field
        else:
            values[field.name], position = _read_field(field, version, flexible, data, position)
    if flexible:
        position = _read_tagged(tagged, version, data, position, values)
    return values, position


def _read_tagged(fields: dict[int, Field], version: int, data: Bytes, position: int, values: Values) -> int:
    count, position = read_unsigned(data, position)
    for _ in range(count):
        tag, position = read_unsigned(data, position)
        size, position = read_unsigned(data, position)
        raw, end = take(data, position, size)
        if tag in fields:
            values[fields[tag].name], used = _read_field(fields[tag], version, True, raw, 0)
            if used != size:
                raise FormatError(f"tagged field {tag} has {size - used} bytes too many", position)
        else:
            values.setdefault(UNKNOWN_TAGGED_FIELDS, []).append((tag, raw))
        position = end
    return position


def _read_field(field: Field, version: int, flexible: bool, data: Bytes, position: int) -> tuple[Any, int]:
    if not field.array:
        return _read_one(field, version, flexible, data, position)
    start = position
    count, position = _read_length(flexible, 4, data, position)
    if count < 0:
        _check_nullable(field, version, start)
        return None, position
    if count > len(data) - position:
        raise Truncated(
            f"{field.name} promises {count} elements, {len(data) - position} bytes are left", start
        )
    items = []
    for _ in range(count):
        item, position = _read_one(field, version, flexible, data, position)
        items.append(item)
    return items, position


def _read_one(field: Field, version: int, flexible: bool, data: Bytes, position: int) -> tuple[Any, int]:
    kind = field.type
    if isinstance(kind, Struct):
        if _may_be_null(field, version):
            present, position = take(data, position, 1)
            if present == _absent(field):
                return None, position
        return _read_struct(kind, version, flexible, data, position)
    if kind in FIXED:
        raw, end = take(data, position, FIXED[kind].size)
        return FIXED[kind].unpack(raw)[0], end
    if kind == "uuid":
        raw, end = take(data, position, 16)
        return uuid_text(raw), end
    start = position
    size, position = _read_length(flexible, 2 if kind == "string" else 4, data, position)
    if size < 0:
        _check_nullable(field, version, start)
        return None, position
    raw, position = take(data, position, size)
    if kind == "bytes":
        return raw, position
    try:
        return raw.decode(), position
    except UnicodeDecodeError:
        raise FormatError(f"{field.name} is not UTF-8", start) from None


def _read_length(flexible: bool, width: int, data: Bytes, position: int) -> tuple[int, int]:
    """A length or count, -1 for null."""
    if flexible:
        value, position = read_unsigned(data, position)
        return value - 1, position
    raw, position = take(data, position, width)
    return int.from_bytes(raw, "big", signed=True), position


def _may_be_null(field: Field, version: int) -> bool:
    """Whether a byte in front of a struct says if it is there: 1, or another for null."""
    return not field.array and version in field.nullable


def _absent(field: Field) -> bytes:
    """What stands for a struct that is null: an int8 of -1; in a tagged field an unsigned varint of 0."""
    return b"\xff" if field.tag is None else b"\x00"


def _check_nullable(field: Field, version: int, position: int) -> None:
    if version not in field.nullable:
        raise FormatError(f"{field.name} is null where it must not be", position)


def default_of(field: Field, version: int) -> Any:
    """What Kafka's generated class starts with."""
    if field.default is not None or version in field.nullable:
        return field.default
    if field.array:
        return []
    if isinstance(field.type, Struct):
        return {one.name: default_of(one, version) for one in field.type.fields}
    return {"bool": False, "uuid": ZERO_UUID, "string": "", "bytes": b"", "float64": 0.0}.get(field.type, 0)


def _write_struct(struct: Struct, version: int, flexible: bool, values: Values, out: bytearray) -> None:
    tagged = list(values.get(UNKNOWN_TAGGED_FIELDS, ())) if flexible else []
    for field in struct.fields:
        if version not in field.versions:
            continue
        value = values[field.name] if field.name in values else default_of(field, version)
        if field.tag is None or not flexible:
            _write_field(field, version, flexible, value, out)
        elif value != default_of(field, version):
            raw = bytearray()
            _write_field(field, version, True, value, raw)
            tagged.append((field.tag, bytes(raw)))
    if flexible:
        out += write_unsigned(len(tagged))
        # By number alone: one that comes twice keeps its order.
        for tag, raw in sorted(tagged, key=lambda one: one[0]):
            out += write_unsigned(tag) + write_unsigned(len(raw)) + raw


def _write_field(field: Field, version: int, flexible: bool, value: Any, out: bytearray) -> None:
    if not field.array:
        _write_one(field, version, flexible, value, out)
        return
    out += _length(flexible, 4, -1 if value is None else len(value))
    for item in value or ():
        _write_one(field, version, flexible, item, out)


def _write_one(field: Field, version: int, flexible: bool, value: Any, out: bytearray) -> None:
    kind = field.type
    if isinstance(kind, Struct):
        if _may_be_null(field, version):
            out += _absent(field) if value is None else b"\x01"
        if value is not None:
            _write_struct(kind, version, flexible, value, out)
    elif kind in FIXED:
        out += FIXED[kind].pack(value)
    elif kind == "uuid":
        out += uuid_bytes(value)
    else:
        raw = value.encode() if isinstance(value, str) else value
        out += _length(flexible, 2 if kind == "string" else 4, -1 if raw is None else len(raw))
        out += raw or b""


def _length(flexible: bool, width: int, count: int) -> bytes:
    return write_unsigned(count + 1) if flexible else count.to_bytes(width, "big", signed=True)
