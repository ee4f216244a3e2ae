"""Keys, values and headers of records as they stand in rows: text where it is text, base64 where not."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress

from formats import bounded_json
from formats.log.record_batch import Headers

Named = Mapping[str, object]


def utf8(name: str, data: bytes) -> Named:
    """`NAME` where the bytes are UTF-8, else `NAME_base64`."""
    with suppress(UnicodeDecodeError):
        return {name: data.decode()}
    return as_base64(name, data)  # out of reach of the exception, which holds the bytes once more


def as_base64(name: str, data: bytes) -> Named:
    """`NAME_base64`."""
    return {f"{name}_base64": b64encode(data).decode()}


def as_hex(name: str, data: bytes) -> Named:
    """`NAME` in hexadecimal digits."""
    return {name: data.hex()}


def as_json(name: str, data: bytes) -> Named:
    """`NAME` as the JSON value that the bytes are; as text where they are none."""
    with suppress(ValueError, RecursionError):
        return {name: bounded_json.loads(data, parse_constant=_no_constant)}
    return utf8(name, data)


def _no_constant(text: str) -> None:
    # NaN and Infinity are no JSON, and no reader of our rows would take them.
    raise ValueError(text)


FORMS: dict[str, Callable[[str, bytes], Named]] = {
    "utf8": utf8,
    "hex": as_hex,
    "base64": as_base64,
    "json": as_json,
}


def named(name: str, data: bytes | None, form: str) -> Named:
    """The key of a row for these bytes; null under the plain name."""
    return {name: None} if data is None else FORMS[form](name, data)


def header_rows(headers: Headers) -> list[Named]:
    """Headers in order, each an object."""
    return [{**utf8("key", key), **named("value", value, "utf8")} for key, value in headers]
