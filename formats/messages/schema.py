"""Kafka's generated messages: a notation for their fields by version; `reading` and `writing` beside it go by that.

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
from formats.errors import FormatError

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
    """The fields of a struct or message, in the order of the bytes, and what the notation calls it.

    `readers` and `writers` are those that were made of it, by class of values, version and whether it is flexible.
    """

    name: str
    readers: dict[Any, Any]
    writers: dict[Any, Any]

    def __new__(cls, name: str, fields: Iterable[MessageField]) -> Self:
        """The fields under a name."""
        struct = super().__new__(cls, fields)
        struct.name, struct.readers, struct.writers = name, {}, {}
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


def default_of(field: MessageField) -> Any:
    """What Kafka's generated class starts with."""
    return deepcopy(field.default) if isinstance(field.default, list | dict) else field.default


def absent(field: MessageField) -> bytes:
    """The byte in front of a struct that is null, 1 otherwise: an int8 of -1; in a tagged field a varint of 0."""
    return b"\xff" if field.tag is None else b"\x00"


def form_of(field: MessageField) -> Packed | None:
    """The form of a number; None for other types."""
    return FIXED.get(field.type) if isinstance(field.type, str) else None


def kind_of(struct: Struct, owner: type[Any] | None) -> type[Any] | None:
    """The class of a struct's values within those of a class; None where dictionaries hold them."""
    return None if owner is None else getattr(owner, struct.name)
