"""Kafka's generated messages: a notation for their fields by version, and the reader and the writer of their bytes.

From a message's first flexible version on, every struct (nested ones and array elements included) ends with
tagged fields, and lengths are unsigned varints of length + 1 instead of int16 or int32. Tagged fields that a
message does not name are kept, and written back. A UUID is 16 bytes and reads as 22 characters of URL-safe base64.

The notation has a line for each message and below it, indented, its fields in the order of the bytes, one a line
or separated by commas:

    Member
      member_id string, client_id string
      group_instance_id ?string 3+
    GroupMetadataValue 0-4 flexible 4+
      current_state_timestamp int64 2+ = -1
      members []Member
      topic_id uuid 4+ tag 0

- A message: its name; its versions (`2`, `0-4`, or `0+` for every later one too); `flexible` and the versions that
  are, if any; `key` and its number, where a value starts with one.
- A struct: its name alone. The messages and structs below it use it as a type, until another takes its name.
- A field: its name in snake case; its type (one of `PLAIN` or a struct; `[]` in front
  makes an array of it, `?` in front of all lets it be null); its versions, every one if none are given; `tag` and
  its number, for a field that flexible versions write behind the others; `=` and its default (a
  number, `true` or `null`), the zero value of the type if none is given: for a nullable field too.

Source: generator/src/main/java/org/apache/kafka/message/MessageDataGenerator.java @ 3.9.0-rc3, KIP-482
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from copy import deepcopy
from struct import Struct as Packed
from typing import Any, NamedTuple, Self

from formats.binary.layout import Bytes
from formats.binary.varint import read_unsigned, write_unsigned
from formats.errors import FormatError, Truncated

# Where a struct keeps the tagged fields that its message does not name: a list of (tag, bytes).
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
PLAIN = {*FIXED, "uuid", "string", "bytes"}
ZERO_UUID = "A" * 22

Values = dict[str, Any]


class Versions(NamedTuple):
    """Versions from first to last, both included."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NEWEST = 32767
"""The last of versions without an end."""
ALWAYS, NEVER = Versions(0, NEWEST), Versions(NEWEST, -1)


class MessageField(NamedTuple):
    """A field; its type is a name of `PLAIN`, or the fields of a struct; its default is what Kafka reads without it."""

    name: str
    type: "str | Struct"
    array: bool
    nullable: bool
    versions: Versions
    tag: int | None
    default: object


class Struct(tuple[MessageField, ...]):
    """The fields of a struct or message, in the order of the bytes, and what the notation calls it."""

    name: str

    def __new__(cls, name: str, fields: Iterable[MessageField]) -> Self:
        """The fields under a name."""
        struct = super().__new__(cls, fields)
        struct.name = name
        return struct


class Message(NamedTuple):
    """A message; the key is what a value starts with, -1 where it does not."""

    name: str
    versions: Versions
    flexible: Versions
    key: int
    fields: Struct


def parse(notation: str) -> dict[str, Message]:
    """The messages of a notation by name, in its order."""
    messages: dict[str, Message] = {}
    structs: dict[str, Struct] = {}
    for paragraph in re.split(r"\n+(?=\w)", notation.strip()):
        head, _, lines = paragraph.partition("\n")
        name, *words = head.split()
        fields = Struct(name, (_field(text, structs) for text in re.split("[\n,]", lines) if text.strip()))
        if not words:
            structs[name] = fields
            continue
        options = dict(zip(words[1::2], words[2::2], strict=True))
        flexible = _versions(options["flexible"]) if "flexible" in options else NEVER
        messages[name] = Message(name, _versions(words[0]), flexible, int(options.get("key", -1)), fields)
    return messages


def _field(text: str, structs: dict[str, Struct]) -> MessageField:
    name, kind, *words = text.split()
    versions = ALWAYS if not words or words[0] in ("tag", "=") else _versions(words.pop(0))
    options = dict(zip(words[::2], words[1::2], strict=True))
    nullable, kind = kind.startswith("?"), kind.removeprefix("?")
    array, kind = kind.startswith("[]"), kind.removeprefix("[]")
    fields = kind if kind in PLAIN else structs[kind]
    tag = int(options["tag"]) if "tag" in options else None
    return MessageField(
        name, fields, array, nullable, versions, tag, _default(options.get("="), fields, array)
    )


def _default(text: str | None, kind: str | Struct, array: bool) -> Any:
    if text is not None:
        return {"null": None, "true": True}[text] if text.isalpha() else int(text)
    if array:
        return []
    if isinstance(kind, tuple):
        return {field.name: field.default for field in kind}
    return {"bool": False, "uuid": ZERO_UUID, "string": "", "bytes": b"", "float64": 0.0}.get(kind, 0)


def _versions(text: str) -> Versions:
    first, dash, last = text.removesuffix("+").partition("-")
    return Versions(int(first), NEWEST if text.endswith("+") else int(last if dash else first))


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
    return _read_struct(message.fields, version, version in message.flexible, data, position)


def write_message(message: Message, version: int, values: Values) -> bytes:
    """The bytes of a message; a field that is not given takes its default."""
    out = bytearray()
    _write_struct(message.fields, version, version in message.flexible, values, out)
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
    tagged: dict[int, MessageField] = {}
    for field in struct:
        if version not in field.versions:
            values[field.name] = default_of(field)
        elif field.tag is not None and flexible:
            values[field.name] = default_of(field)
            tagged[field.tag] = field
        else:
            values[field.name], position = _read_field(field, version, flexible, data, position)
    if flexible:
        position = _read_tagged(tagged, version, data, position, values)
    return values, position


def _read_tagged(
    fields: dict[int, MessageField], version: int, data: Bytes, position: int, values: Values
) -> int:
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


def _read_field(
    field: MessageField, version: int, flexible: bool, data: Bytes, position: int
) -> tuple[Any, int]:
    if not field.array:
        return _read_one(field, version, flexible, data, position)
    start = position
    count, position = _read_length(flexible, 4, data, position)
    if count < 0:
        _check_nullable(field, start)
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


def _read_one(
    field: MessageField, version: int, flexible: bool, data: Bytes, position: int
) -> tuple[Any, int]:
    kind = field.type
    if isinstance(kind, tuple):
        if field.nullable and not field.array:
            mark, position = take(data, position, 1)
            if mark == _absent(field):
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
        _check_nullable(field, start)
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


def _absent(field: MessageField) -> bytes:
    """The byte in front of a struct that is null, 1 otherwise: an int8 of -1; in a tagged field a varint of 0."""
    return b"\xff" if field.tag is None else b"\x00"


def _check_nullable(field: MessageField, position: int) -> None:
    if not field.nullable:
        raise FormatError(f"{field.name} must not be null", position)


def default_of(field: MessageField) -> Any:
    """What Kafka's generated class starts with."""
    return deepcopy(field.default) if isinstance(field.default, list | dict) else field.default


def _write_struct(struct: Struct, version: int, flexible: bool, values: Values, out: bytearray) -> None:
    tagged = list(values.get(UNKNOWN_TAGGED_FIELDS, ())) if flexible else []
    for field in struct:
        if version not in field.versions:
            continue
        value = values[field.name] if field.name in values else default_of(field)
        if field.tag is None or not flexible:
            _write_field(field, version, flexible, value, out)
        elif value != default_of(field):
            raw = bytearray()
            _write_field(field, version, True, value, raw)
            tagged.append((field.tag, bytes(raw)))
    if flexible:
        out += write_unsigned(len(tagged))
        # By number alone: one that comes twice keeps its order.
        for tag, raw in sorted(tagged, key=lambda pair: pair[0]):
            out += write_unsigned(tag) + write_unsigned(len(raw)) + raw


def _write_field(field: MessageField, version: int, flexible: bool, value: Any, out: bytearray) -> None:
    if not field.array:
        _write_one(field, version, flexible, value, out)
        return
    out += _length(flexible, 4, -1 if value is None else len(value))
    for item in value or ():
        _write_one(field, version, flexible, item, out)


def _write_one(field: MessageField, version: int, flexible: bool, value: Any, out: bytearray) -> None:
    kind = field.type
    if isinstance(kind, tuple):
        if field.nullable and not field.array:
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
