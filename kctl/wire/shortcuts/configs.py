"""What is set for topics and brokers, out of answers that list every key of each: 33,000 of them for 1,000 topics.

kafka-python would make an object of each. Of the newest form of the answer only the keys that are set
are decoded here, the rest is stepped over; where every key is wanted, what is the same in many topics is decoded once.

Source: clients/src/main/resources/common/message/DescribeConfigsResponse.json @ 4.3.0 (version 4)
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse

from formats.binary.varint import after_tags, read_unsigned, write_unsigned
from kctl.cluster.state import UNTOLD
from kctl.wire.shortcuts.answers import QuickAnswer, encoded_text, text

QUICK_VERSION = 4
NO_TAGS = b"\0"
# Sources of values that somebody has set; the last one in a broker's own file.
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC_BROKER = 1, 2, 3, 4
TOPIC, BROKER = 2, 4  # types of resources
# What is in brokers' files is told again for each topic.
SET_FOR_TOPICS = (DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT)
SET = (*SET_FOR_TOPICS, STATIC_BROKER)


class Kind(NamedTuple):
    """A type of entity: Kafka's number of the resource, and of the source of what is set for it."""

    resource: int
    source: int


KINDS = {
    "topics": Kind(TOPIC, DYNAMIC_TOPIC),
    "brokers": Kind(BROKER, DYNAMIC_BROKER),
    "broker-loggers": Kind(8, 6),
    "client-metrics": Kind(16, 7),
    "groups": Kind(32, 8),
}
AT_THE_BROKER = ("brokers", "broker-loggers")  # only a broker itself tells and takes them


class Config(NamedTuple):
    """A key that is set."""

    name: str
    value: str | None
    config_source: int = DYNAMIC_TOPIC


class Result(NamedTuple):
    """A topic or broker and what is set for it."""

    resource_name: str
    error_code: int
    configs: list[Config]


class Resource(NamedTuple):
    """What to describe, with the library's names; one of its own takes ten times as long to make."""

    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None = None


class Answer(NamedTuple):
    """A whole answer, with the names that the library gives."""

    results: list[Result]


class DescribeSetConfigsRequest(QuickAnswer, DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """What is set for topics and brokers. Synonyms must not be asked for."""

    QUICK_VERSIONS = range(QUICK_VERSION, QUICK_VERSION + 1)
    RESPONSE = DescribeConfigsResponse

    @staticmethod
    def decoded(data: memoryview, version: int) -> "Answer":
        """What the answer says. Raises ValueError where it has not the form of the version."""
        return decoded(bytes(data))

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> Any:
        """The bytes; those of version 4 as they go on the wire are put together here."""
        if version is not None or self.API_VERSION != QUICK_VERSION or not (header and framed):
            return super().encode(version=version, header=header, framed=framed)
        data = self.encode_header(flexible=True) + encoded(self)
        return len(data).to_bytes(4, "big") + data


class Synonym(NamedTuple):
    """A value that would hold if those before it were not there."""

    name: str
    value: str | None
    source: int


class ConfigInForce(NamedTuple):
    """A key with all that is told of it, with the library's names."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    config_type: int
    documentation: str | None


class ResultInForce(NamedTuple):
    """An entity and every key of it."""

    resource_name: str
    error_code: int
    error_message: str | None
    configs: list[ConfigInForce]


class AnswerInForce(NamedTuple):
    """A whole answer."""

    results: list[ResultInForce]


class DescribeConfigsInForceRequest(QuickAnswer, DescribeConfigsRequest, init=False):  # type: ignore[misc,call-arg]
    """Every key of entities. What entities have in common is one object in the answer."""

    QUICK_VERSIONS = range(QUICK_VERSION, QUICK_VERSION + 1)
    RESPONSE = DescribeConfigsResponse

    @staticmethod
    def decoded(data: memoryview, version: int) -> Any:
        """What the answer says. Raises ValueError where it has not the form of the version."""
        return decoded_in_force(bytes(data))


def described(
    kind: int, names: Sequence[str], keys: Sequence[str] | None = None
) -> DescribeSetConfigsRequest:
    """The request that describes resources of a type."""
    listed = [Resource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in names]
    return DescribeSetConfigsRequest(resources=listed, include_synonyms=False, include_documentation=False)


def values_from(result: Any, sources: Collection[int]) -> dict[str, str]:
    """The keys of a described resource that come from these sources; a secret's value is an empty text."""
    return {str(c.name): c.value or UNTOLD for c in result.configs if c.config_source in sources}


def encoded(request: Any) -> bytes:
    """What a request of version 4 says, without its header."""
    parts = [write_unsigned(len(request.resources) + 1)]
    keys: dict[tuple[str, ...] | None, bytes] = {}
    for resource in request.resources:
        asked = (
            resource.configuration_keys
            if resource.configuration_keys is None
            else tuple(resource.configuration_keys)
        )
        if asked not in keys:
            size = 0 if asked is None else len(asked) + 1
            keys[asked] = write_unsigned(size) + b"".join(map(encoded_text, asked or ())) + NO_TAGS
        parts += (resource.resource_type.to_bytes(1), encoded_text(resource.resource_name), keys[asked])
    parts.append(bytes((request.include_synonyms, request.include_documentation)) + NO_TAGS)
    return b"".join(parts)


def decoded(data: bytes) -> Answer:
    """The answer of version 4. Raises ValueError for anything else."""
    try:
        return _answer(data)
    except IndexError:
        raise ValueError("the answer is cut off") from None


def _answer(data: bytes) -> Answer:
    count, at = read_unsigned(data, 4)
    results = []
    for _ in range(count - 1):
        error, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        _, at = text(data, at)
        wanted = SET_FOR_TOPICS if data[at] == TOPIC else SET
        name, at = text(data, at + 1)
        keys, at = read_unsigned(data, at)
        configs: list[Config] = []
        for _ in range(keys - 1):
            at = _config(data, at, configs, wanted)
        results.append(Result(name or "", error, configs))
        at = after_tags(data, at)
    return Answer(results)


def _config(data: bytes, at: int, found: list[Config], wanted: tuple[int, ...]) -> int:
    """Take a key where it is set; where the next one begins."""
    begin, size = at, data[at]
    at += size
    if size > 127 or data[at] > 127:  # a long name or value
        size, at = read_unsigned(data, begin)
        size, at = read_unsigned(data, at + size - 1)
        at += max(size - 1, 0)
    else:
        at += data[at] or 1
    if data[at + 1] in wanted:
        name, value_at = text(data, begin)
        value, _ = text(data, value_at)
        found.append(Config(name or "", value, data[at + 1]))
    if data[at + 3] == 1 and not data[at + 5] and not data[at + 6]:  # no synonyms, documentation, tags
        return at + 7
    if data[at + 3] > 1:
        raise ValueError("synonyms that were not requested")
    size, at = read_unsigned(data, at + 5)  # of the documentation
    return after_tags(data, at + max(size - 1, 0))


def decoded_in_force(data: bytes) -> AnswerInForce:
    """The answer of version 4 with all of its keys, as the library would give it. Raises ValueError for anything else."""
    try:
        return AnswerInForce(list(_results_in_force(data)))
    except IndexError:
        raise ValueError("the answer ends too early") from None


def _results_in_force(data: bytes) -> Iterator[ResultInForce]:
    known: dict[bytes, tuple[bytes, ConfigInForce]] = {}  # by name: how a key was told last
    count, at = read_unsigned(data, 4)
    for _ in range(count - 1):
        error, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        message, at = text(data, at)
        name, at = text(data, at + 1)
        keys, at = read_unsigned(data, at)
        configs = []
        for _ in range(keys - 1):
            begin = data[at : at + data[at]]
            told = known.get(begin)
            if told is None or not data.startswith(told[0], at):
                one, end = _config_in_force(data, at)
                told = known[begin] = data[at:end], one
            configs.append(told[1])
            at += len(told[0])
        yield ResultInForce(name or "", error, message, configs)
        at = after_tags(data, at)


def _config_in_force(data: bytes, at: int) -> tuple[ConfigInForce, int]:
    name, at = text(data, at)
    value, at = text(data, at)
    read_only, source, is_sensitive = data[at : at + 3]
    count, at = read_unsigned(data, at + 3)
    synonyms = []
    for _ in range(count - 1):
        other, at = text(data, at)
        held, at = text(data, at)
        synonyms.append(Synonym(other or "", held, data[at]))
        at = after_tags(data, at + 1)
    type, (documentation, at) = data[at], text(data, at + 1)
    one = ConfigInForce(
        name or "", value, bool(read_only), source, bool(is_sensitive), tuple(synonyms), type, documentation
    )
    return one, after_tags(data, at)
