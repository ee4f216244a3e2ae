"""JSON in znodes, parsed as strictly as by Kafka's own decoders.

Kafka ignores what follows the first JSON value, ignores keys it does not know, and refuses numbers that are
written as text; so does this module. Unknown keys are kept by the values in `formats.znodes.cluster`.

Source: core/src/main/scala/kafka/utils/Json.scala, kafka/utils/json/DecodeJson.scala @ 2.8.2
"""

import json
from collections.abc import Mapping

from formats.errors import FormatError

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Object = dict[str, Json]
DECODER = json.JSONDecoder()


def parse_object(data: bytes | None) -> Object:
    """The JSON object that a znode holds. Raises FormatError for anything else."""
    value = parse_value(data)
    if not isinstance(value, dict):
        raise FormatError(f"{kind_of(value)} where Kafka expects a JSON object", 0)
    return value


def parse_value(data: bytes | None) -> Json:
    """The first JSON value; what follows it is ignored, as Kafka's parser does."""
    if not data or not data.strip():
        raise FormatError("empty where Kafka expects JSON", 0)
    try:
        value: Json = DECODER.raw_decode(data.decode("utf-8").lstrip())[0]
    except UnicodeDecodeError as error:
        raise FormatError("not UTF-8", error.start) from None
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON ({error.msg})", error.pos) from None
    except (RecursionError, ValueError):
        raise FormatError("not JSON that can be read", 0) from None
    return value


def encode(value: Json) -> bytes:
    """Compact UTF-8 JSON, keys in the order given."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def kind_of(value: Json) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return {str: "text", list: "a list", dict: "an object"}[type(value)]


def integer(values: Mapping[str, Json], key: str, default: int | None = None) -> int:
    """An integer that is one in JSON too."""
    value = values.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(key, "an integer", value, key in values)
    return value


def long_text(values: Mapping[str, Json], key: str, default: int | None = None) -> int | None:
    """A number that Kafka writes as text, such as a timestamp; a plain number is accepted too."""
    value = values.get(key)
    if value is None:
        return default
    try:
        if isinstance(value, (int, str)) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise _wrong(key, "a number written as text", value, True)


def required_long(values: Mapping[str, Json], key: str) -> int:
    """As `long_text`, and raises FormatError if the key is absent."""
    value = long_text(values, key)
    if value is None:
        raise FormatError(f"no key {key!r} (a number written as text)", 0)
    return value


def text(values: Mapping[str, Json], key: str) -> str:
    """A string."""
    value = values.get(key)
    if not isinstance(value, str):
        raise _wrong(key, "text", value, key in values)
    return value


def optional_text(values: Mapping[str, Json], key: str) -> str | None:
    """A string, or None if it is absent or null."""
    return None if values.get(key) is None else text(values, key)


def integers(values: Mapping[str, Json], key: str) -> tuple[int, ...]:
    """A list of integers."""
    return integer_list(values.get(key), key, key in values)


def integer_list(value: Json, key: str, is_there: bool = True) -> tuple[int, ...]:
    """A list of integers; `key` is named in errors."""
    if not isinstance(value, list) or any(type(item) is not int for item in value):
        raise _wrong(key, "a list of integers", value, is_there)
    return tuple(value)  # type: ignore[arg-type]  # all int, as just checked


def objects(values: Mapping[str, Json], key: str) -> list[Object]:
    """A list of objects."""
    value = values.get(key)
    if not isinstance(value, list) or any(not isinstance(item, dict) for item in value):
        raise _wrong(key, "a list of objects", value, key in values)
    return value  # type: ignore[return-value]  # all dict, as just checked


def mapping(values: Mapping[str, Json], key: str, *, required: bool = True) -> Object:
    """An object; empty if it is absent and not required."""
    value = values.get(key)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise _wrong(key, "an object", value, key in values)
    return value


def texts(values: Mapping[str, Json], key: str) -> dict[str, str]:
    """An object whose values are all strings; empty if it is absent."""
    strings: dict[str, str] = {}
    for name, value in mapping(values, key, required=False).items():
        if not isinstance(value, str):
            raise _wrong(f"{key}.{name}", "text", value, True)
        strings[name] = value
    return strings


def _wrong(key: str, expected: str, value: Json, is_there: bool) -> FormatError:
    if not is_there:
        return FormatError(f"no key {key!r} ({expected})", 0)
    # The value may be a password: only numbers, booleans and null are quoted.
    shown = json.dumps(value) if value is None or isinstance(value, (bool, int, float)) else kind_of(value)
    return FormatError(f"{key} is {shown}, not {expected}", 0)
