"""Requests and answers of Kafka's protocol as classes, made when their names are first read.

    request = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="a")], min_version=2)
    data = request.encoded(5)
    answer = request.answered(data, 5)

Their fields by version are in `messages.txt`, in the notation of `formats.messages.schema`.

Source: clients/src/main/resources/common/message/*.json @ 4.3.0
"""

import re
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from formats.messages.attributes import Values, read_values, value_class, write_values
from formats.messages.schema import NEWEST, Message, parse

UNSUPPORTED_VERSION = b"\0\x23"


class ProtocolMessage(Values):
    """A request or an answer."""

    MESSAGE: ClassVar[Message]

    def encoded(self, version: int) -> bytes:
        """The bytes, without a header."""
        return write_values(type(self), version, version in self.MESSAGE.flexible, self)

    @classmethod
    def decoded(cls, data: bytes | memoryview, version: int) -> Any:
        """The message in bytes without a header. Raises ValueError for anything else."""
        return read_values(cls, version, version in cls.MESSAGE.flexible, data)


class ProtocolRequest(ProtocolMessage):
    """A request; it may be sent in its versions from `min_version` to `max_version`."""

    NAME: ClassVar[str]
    """Kafka's name of it, without `Request`."""

    def __init__(self, *, min_version: int = 0, max_version: int = NEWEST, **values: Any) -> None:
        super().__init__(**values)
        self.min_version, self.max_version = min_version, max_version

    @classmethod
    def answered(cls, data: memoryview, version: int) -> Any:
        """The answer in bytes without a header. Raises ValueError for anything else."""
        if cls.NAME == "ApiVersions" and data[:2] == UNSUPPORTED_VERSION:
            version = 0  # a node that does not know the version of this request answers in the oldest
        return message_class(f"{cls.NAME}Response").decoded(data, version)


@cache
def _notations() -> dict[str, str]:
    """The notation of each message, with its structs."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    heads = re.compile(r"^(\w+) [\d-]+(?: flexible \S+)? key \d+$", re.MULTILINE)
    found = {}
    for block in text.split("\n\n"):
        head = heads.search(block)
        assert head is not None, block
        found[head[1]] = block
    return found


def names() -> list[str]:
    """The names of all messages, `MetadataRequest`."""
    return list(_notations())


def message_class(name: str) -> Any:
    """The class of a message."""
    return globals().get(name) or __getattr__(name)


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _notations():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = parse(_notations()[name])[name]
    is_request = name.endswith("Request")
    made = value_class(message.fields, ProtocolRequest if is_request else ProtocolMessage)
    made.MESSAGE = message
    if is_request:
        made.NAME = name.removesuffix("Request")
    globals()[name] = made
    return made
