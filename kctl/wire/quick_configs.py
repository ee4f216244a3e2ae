"""What is set for topics, out of answers that list every key of every topic: 33,000 of them for 1,000 topics.

kafka-python would make an object of each. Of the newest form of the answer only the keys that a topic itself sets
are decoded here, the rest is stepped over.

Source: clients/src/main/resources/common/message/DescribeConfigsResponse.json @ 4.3.0 (version 4)
"""

from typing import Any, NamedTuple

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse

QUICK_VERSION = 4
DYNAMIC_TOPIC = 1  # the source of a value that the topic itself sets


class Config(NamedTuple):
    """A key that a topic sets."""

    name: str
    value: str | None
    config_source: int = DYNAMIC_TOPIC


class Result(NamedTuple):
    """A topic and what it sets."""

    resource_name: str
    error_code: int
    configs: list[Config]


class Answer(NamedTuple):
    """All of it, with the names that the library gives."""

    results: list[Result]


class DescribeTopicConfigsRequest(DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """The library's request, whose answer is decoded here where its form is known. Synonyms must not be asked for."""

    @property
    def header(self) -> Any:
        """The header, which tells how the answer is decoded."""
        found = super().header
        return found if found is None or self.API_VERSION != QUICK_VERSION else _Header(found)


class _Header:
    def __init__(self, header: Any) -> None:
        self._header = header

    def __getattr__(self, name: str) -> Any:
        return getattr(self._header, name)

    def get_response_class(self) -> Any:
        return _Response


class _Response:
    @staticmethod
    def parse_header(data: Any) -> Any:
        return DescribeConfigsResponse[QUICK_VERSION].parse_header(data)

    @staticmethod
    def decode(data: Any) -> Answer:
        return decoded(bytes(data.read()))


def decoded(data: bytes) -> Answer:
    """The answer of version 4. Raises ValueError for anything else."""
    try:
        return _answer(data)
    except IndexError:
        raise ValueError("the answer ends too early") from None


def _answer(data: bytes) -> Answer:
    count, at = _number(data, 4)
    results = []
    for _ in range(count - 1):
        error, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        _, at = _text(data, at)
        name, at = _text(data, at + 1)
        keys, at = _number(data, at)
        configs: list[Config] = []
        for _ in range(keys - 1):
            at = _config(data, at, configs)
        results.append(Result(name or "", error, configs))
        at = _after_tags(data, at)
    return Answer(results)


def _config(data: bytes, at: int, found: list[Config]) -> int:
    """Take a key where the topic sets it; where the next one begins."""
    begin, size = at, data[at]
    at += size
    if size > 127 or data[at] > 127:  # a long name or value
        size, at = _number(data, begin)
        size, at = _number(data, at + size - 1)
        at += max(size - 1, 0)
    else:
        at += data[at] or 1
    if data[at + 1] == DYNAMIC_TOPIC:
        name, value_at = _text(data, begin)
        value, _ = _text(data, value_at)
        found.append(Config(name or "", value))
    if data[at + 3] == 1 and not data[at + 5] and not data[at + 6]:  # no synonyms, documentation, tags
        return at + 7
    if data[at + 3] > 1:
        raise ValueError("synonyms, which were not asked for")
    size, at = _number(data, at + 5)  # of the documentation
    return _after_tags(data, at + max(size - 1, 0))


def _number(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    """A compact text, None for null, and where it ends."""
    size, at = _number(data, at)
    if size == 0:
        return None, at
    end = at + size - 1
    if end > len(data):
        raise ValueError("a text goes beyond the end")
    return data[at:end].decode(), end


def _after_tags(data: bytes, at: int) -> int:
    """Behind tagged fields, whatever they are."""
    count, at = _number(data, at)
    for _ in range(count):
        _, at = _number(data, at)
        size, at = _number(data, at)
        at += size
    return at
