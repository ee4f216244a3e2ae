"""Java's Properties text and what a log directory keeps in it: `meta.properties`.

Comments start with # or !, a backslash at the end of a line continues it, keys end at the first unescaped
`=`, `:` or blank, and \\uXXXX stands for a UTF-16 unit. Of a key given twice the last counts. Bytes are Latin-1.

Source: java.util.Properties (Java 17),
metadata/src/main/java/org/apache/kafka/metadata/properties/{MetaProperties,MetaPropertiesVersion}.java @ 3.9.0-rc3
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping

from formats.errors import MalformedLine
from formats.values import Struct

LINE_END = re.compile(r"\r\n|\r|\n")
KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
PRINTABLE = re.compile(r"[ -~\t\f]*\Z")
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values; `MalformedLine` for a \\u without four digits, as Java refuses it."""
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = KEY.match(line)
        assert match is not None  # it matches the empty text
        separator = SEPARATOR.match(line, match.end())
        assert separator is not None
        properties[_unescape(match[0], number)] = _unescape(line[separator.end() :], number)
    return properties


def unwritten_line(text: str) -> int | None:
    """The first line with characters that Properties.store escapes or never writes; comments are anybody's."""
    for number, line in enumerate(LINE_END.split(text), 1):
        if not line.lstrip(" \t\f").startswith(("#", "!")) and not PRINTABLE.match(line):
            return number
    return None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations, comments and blank lines left out, numbered from 1."""
    pending, began = "", 0
    for number, line in enumerate(LINE_END.split(text), 1):
        line = line.lstrip(" \t\f")
        if not pending:
            began = number
            if not line or line[0] in "#!":
                continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        yield began, pending + line
        pending = ""
    if pending:
        yield began, pending


def _unescape(text: str, line: int) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise MalformedLine("malformed \\uxxxx encoding", line)
        return ESCAPED.get(escaped, escaped)

    joined = ESCAPE.sub(plain, text)
    # Two escapes may be one character outside the first plane.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def format_properties(values: Mapping[str, str], comment: str = "") -> str:
    """Properties as Java writes them, but for the line with the date."""
    lines = [f"#{comment}"]
    lines += [f"{_escape(key, in_key=True)}={_escape(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _escape(text: str, *, in_key: bool = False) -> str:
    out = []
    for index, char in enumerate(text):
        if char in "\\=:#!" or (char == " " and (in_key or index == 0)):
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append("\\" + "tnrf"["\t\n\r\f".index(char)])
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)


class MetaProperties(Struct, frozen=True):
    """The identity of a log directory; None for a key that the file lacks."""

    version: int
    broker_id: int | None = None  # node.id in version 1
    cluster_id: str | None = None  # from 2.4 on
    directory_id: str | None = None  # from 3.7 on


# Directory ids that Kafka keeps for its own use: MIGRATING, UNASSIGNED, LOST.
RESERVED_DIRECTORY_IDS = frozenset((0).to_bytes(15) + bytes([n]) for n in range(3))


def parse_meta_properties(text: str) -> MetaProperties:
    """The values in the file; `MalformedLine` (line 0: the file as a whole) if Kafka 3.9 would not start."""
    properties = parse_properties(text)
    version = _integer(properties, "version", required=False)
    if version not in (None, 0, 1):
        raise MalformedLine(f"unknown meta.properties version number {version}", 0)
    if version == 1:
        for key in ("node.id", "cluster.id"):
            if key not in properties:
                raise MalformedLine(f"{key} was not found", 0)
    directory = properties.get("directory.id")
    if directory is not None and not _is_directory_id(directory):
        raise MalformedLine(f"directory.id {directory!r} is not a UUID", 0)
    broker_id = _integer(properties, "node.id" if version == 1 else "broker.id", required=False)
    return MetaProperties(version or 0, broker_id, properties.get("cluster.id"), directory)


def _integer(properties: Mapping[str, str], key: str, *, required: bool) -> int | None:
    text = properties.get(key)
    if text is None and not required:
        return None
    if text is None or not re.match(r"[+-]?\d{1,10}\Z", text):
        raise MalformedLine(f"unable to read {key} {text!r} as a base-10 number", 0)
    return int(text)


def _is_directory_id(text: str) -> bool:
    try:
        raw = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return False
    return len(text) <= 24 and len(raw) == 16 and raw not in RESERVED_DIRECTORY_IDS


def format_meta_properties(meta: MetaProperties) -> str:
    """The file as a broker writes it, but for the line with the date and the order of keys."""
    id_key = "node.id" if meta.version == 1 else "broker.id"
    values = {
        "version": str(meta.version),
        id_key: None if meta.broker_id is None else str(meta.broker_id),
        "cluster.id": meta.cluster_id,
        "directory.id": meta.directory_id,
    }
    return format_properties({key: value for key, value in values.items() if value is not None})
