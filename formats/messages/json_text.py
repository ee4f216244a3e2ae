"""Messages as the JSON text that Kafka's generated converters and its dump tool print.

Keys are in lower camel case and in the order of the fields; fields of other versions and tagged fields at their
default are left out; UUIDs are text, bytes base64. Text is escaped as Jackson does: only quotes, backslashes
and controls, these with capital hexadecimal digits.

Source: generator/src/main/java/org/apache/kafka/message/JsonConverterGenerator.java @ 3.9.0-rc3
"""

import re
from base64 import b64encode
from typing import Any

from formats.messages.schema import Message, MessageField, Struct, Values, default_of

JsonNode = None | bool | int | float | str | bytes | list["JsonNode"] | dict[str, "JsonNode"]

ESCAPED = re.compile(r'["\\\x00-\x1f]')
SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def camel(name: str) -> str:
    """A field's name as Kafka prints it: `leader_epoch` is `leaderEpoch`."""
    head, *words = name.split("_")
    return head + "".join(word.capitalize() for word in words)


def message_node(message: Message, version: int, values: Values) -> dict[str, JsonNode]:
    """The JSON tree of a message; bytes stay bytes until they are printed."""
    return _struct_node(message.fields, version, version in message.flexible, values)


def _struct_node(struct: Struct, version: int, flexible: bool, values: Values) -> dict[str, JsonNode]:
    node: dict[str, JsonNode] = {}
    for field in struct:
        if version not in field.versions:
            continue
        value = values[field.name]
        if field.tag is not None and flexible and value == default_of(field):
            continue
        node[camel(field.name)] = _field_node(field, version, flexible, value)
    return node


def _field_node(field: MessageField, version: int, flexible: bool, value: Any) -> JsonNode:
    kind = field.type
    if value is None or isinstance(kind, str):
        return value  # type: ignore[no-any-return]  # a plain value, or a list of them
    if field.array:
        return [_struct_node(kind, version, flexible, item) for item in value]
    return _struct_node(kind, version, flexible, value)


def json_text(node: JsonNode) -> str:
    """The node as Jackson prints it."""
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, int):
        return str(node)
    if isinstance(node, float):
        return double_text(node)
    if isinstance(node, bytes):
        return f'"{b64encode(node).decode()}"'
    if isinstance(node, str):
        return f'"{ESCAPED.sub(_escape, node)}"'
    if isinstance(node, list):
        return f"[{','.join(map(json_text, node))}]"
    return "{" + ",".join(f"{json_text(key)}:{json_text(value)}" for key, value in node.items()) + "}"


def _escape(match: re.Match[str]) -> str:
    return SHORT.get(match[0]) or f"\\u{ord(match[0]):04X}"


def double_text(value: float) -> str:
    """A double as Java prints it: a fraction always, an exponent below 0.001 and from ten million on."""
    if value != value or value in (float("inf"), float("-inf")):
        return f'"{"NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{value:f}".rstrip("0")
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    shortest = repr(value)
    digits = re.sub(r"e.*$", "", shortest).replace(".", "").lstrip("-0").rstrip("0") or "0"
    mantissa = digits[0] + "." + (digits[1:] or "0")
    return f"{'-' if value < 0 else ''}{mantissa}E{int(exponent)}"
