"""JSON as znodes hold it, read as strictly as Kafka's own decoders do.

Kafka ignores what follows the first JSON value, ignores keys it does not know, and refuses numbers that are
written as text: so do these. Nothing here keeps or loses keys; the values in `formats.znodes.cluster` do.

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
    """A number that Kafka writes as text, such as a timestamp; a plain number is taken too."""
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
    """As `long_text`, and raises FormatError where the key is absent."""
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
    """A string, or None where it is absent or null."""
    return None if values.get(key) is None else text(values, key)


def integers(values: Mapping[str, Json], key: str) -> tuple[int, ...]:
    """A list of integers."""
    return integer_list(values.get(key), key, key in values)


def integer_list(value: Json, key: str, is_there: bool = True) -> tuple[int, ...]:
    """A list of integers; `key` says where it stands."""
    if not isinstance(value, list) or any(type(one) is not int for one in value):
        raise _wrong(key, "a list of integers", value, is_there)
    return tuple(value)  # type: ignore[arg-type]  # all int, as just checked


def objects(values: Mapping[str, Json], key: str) -> list[Object]:
    """A list of objects."""
    value = values.get(key)
    if not isinstance(value, list) or any(not isinstance(one, dict) for one in value):
        raise _wrong(key, "a list of objects", value, key in values)
    return value  # type: ignore[return-value]  # all dict, as just checked


def mapping(values: Mapping[str, Json], key: str, *, required: bool = True) -> Object:
    """An object; empty where it is absent and not required."""
    value = values.get(key)
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise _wrong(key, "an object", value, key in values)
    return value


def texts(values: Mapping[str, Json], key: str) -> dict[str, str]:
    """An object whose values are all strings; empty where it is absent."""
    found: dict[str, str] = {}
    for name, value in mapping(values, key, required=False).items():
        if not isinstance(value, str):
            raise _wrong(f"{key}.{name}", "text", value, True)
        found[name] = value
    return found


def _wrong(key: str, wanted: str, value: Json, is_there: bool) -> FormatError:
    if not is_there:
        return FormatError(f"no key {key!r} ({wanted})", 0)
    # The value may be a password: only numbers and the like are quoted.
    shown = json.dumps(value) if value is None or isinstance(value, (bool, int, float)) else kind_of(value)
    return FormatError(f"{key} is {shown}, not {wanted}", 0)
