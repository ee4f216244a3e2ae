"""The keys set for topics and brokers, from answers that list every key: 33,000 of them for 1,000 topics.

An object of each would take most of the time. Of the newest version of the answer only the set keys
are decoded here, the rest is skipped; if every key is needed, what is the same in many topics is decoded once.

Source: clients/src/main/resources/common/message/DescribeConfigsResponse.json @ 4.3.0 (version 4)
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from formats.binary.varint import after_tags, read_unsigned
from kctl.cluster.state import NOT_RETURNED
from kctl.wire.answers.texts import text
from kctl.wire.protocol.messages import DescribeConfigsRequest

QUICK_VERSION = 4
# Sources of values that somebody has set; the last one in a broker's own file.
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC_BROKER = 1, 2, 3, 4
TOPIC, BROKER = 2, 4  # types of resources
# What is in brokers' files is repeated for each topic.
SET_FOR_TOPICS = (DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT)
SET = (*SET_FOR_TOPICS, STATIC_BROKER)


class EntityKind(NamedTuple):
    """A type of entity: Kafka's number of the resource, and of the source of what is set for it."""

    resource: int
    source: int


KINDS = {
    "topics": EntityKind(TOPIC, DYNAMIC_TOPIC),
    "brokers": EntityKind(BROKER, DYNAMIC_BROKER),
    "broker-loggers": EntityKind(8, 6),
    "client-metrics": EntityKind(16, 7),
    "groups": EntityKind(32, 8),
}


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
    """What to describe, with the names of the request; one of its own takes longer to make."""

    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None = None


class ConfigsAnswer(NamedTuple):
    """A whole answer, with the names that the usual decoding gives."""

    results: list[Result]
    throttle_time_ms: int


class DescribeSetConfigsRequest(DescribeConfigsRequest):  # type: ignore[misc]
    """What is set for topics and brokers. Synonyms must not be requested."""

    @classmethod
    def answered(cls, data: memoryview, version: int) -> Any:
        """The decoded answer. Raises ValueError if it does not have the form of the version."""
        return decoded(bytes(data)) if version == QUICK_VERSION else super().answered(data, version)


class Synonym(NamedTuple):
    """A value that would apply without those before it."""

    name: str
    value: str | None
    source: int


class DescribedConfig(NamedTuple):
    """A key with all its attributes, under the names of the usual decoding."""

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
    configs: list[DescribedConfig]


class AnswerInForce(NamedTuple):
    """A whole answer."""

    results: list[ResultInForce]
    throttle_time_ms: int


class DescribeConfigsInForceRequest(DescribeConfigsRequest):  # type: ignore[misc]
    """Every key of entities. What entities have in common is one object in the answer."""

    @classmethod
    def answered(cls, data: memoryview, version: int) -> Any:
        """The decoded answer. Raises ValueError if it does not have the form of the version."""
        return decoded_in_force(bytes(data)) if version == QUICK_VERSION else super().answered(data, version)


def described(
    kind: int, names: Sequence[str], keys: Sequence[str] | None = None
) -> DescribeSetConfigsRequest:
    """The request that describes resources of a type."""
    listed = [Resource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in names]
    return DescribeSetConfigsRequest(resources=listed, include_synonyms=False, include_documentation=False)


def values_from(result: Any, sources: Collection[int]) -> dict[str, str]:
    """The keys of a described resource that come from these sources; a secret's value is an empty text."""
    return {str(c.name): c.value or NOT_RETURNED for c in result.configs if c.config_source in sources}


def decoded(data: bytes) -> ConfigsAnswer:
    """The answer of version 4. Raises ValueError for anything else."""
    try:
        return _answer(data)
    except IndexError:
        raise ValueError("the answer is cut off") from None


def _answer(data: bytes) -> ConfigsAnswer:
    count, at = read_unsigned(data, 4)
    results = []
    for _ in range(count - 1):
        error, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        _, at = text(data, at)
        sources = SET_FOR_TOPICS if data[at] == TOPIC else SET
        name, at = text(data, at + 1)
        keys, at = read_unsigned(data, at)
        configs: list[Config] = []
        for _ in range(keys - 1):
            at = _config(data, at, configs, sources)
        results.append(Result(name or "", error, configs))
        at = after_tags(data, at)
    return ConfigsAnswer(results, _throttle_time_ms(data))


def _throttle_time_ms(data: bytes) -> int:
    return int.from_bytes(data[:4], "big", signed=True)


def _config(data: bytes, at: int, configs: list[Config], sources: tuple[int, ...]) -> int:
    """Append the key if it is set; returns where the next one begins."""
    begin, size = at, data[at]
    at += size
    if size > 127 or data[at] > 127:  # a long name or value
        size, at = read_unsigned(data, begin)
        size, at = read_unsigned(data, at + size - 1)
        at += max(size - 1, 0)
    else:
        at += data[at] or 1
    if data[at + 1] in sources:
        name, value_at = text(data, begin)
        value, _ = text(data, value_at)
        configs.append(Config(name or "", value, data[at + 1]))
    if data[at + 3] == 1 and not data[at + 5] and not data[at + 6]:  # no synonyms, documentation, tags
        return at + 7
    if data[at + 3] > 1:
        raise ValueError("synonyms that were not requested")
    size, at = read_unsigned(data, at + 5)  # of the documentation
    return after_tags(data, at + max(size - 1, 0))


def decoded_in_force(data: bytes) -> AnswerInForce:
    """The answer of version 4 with all of its keys, under the names of the usual decoding. Raises ValueError for anything else."""
    try:
        return AnswerInForce(list(_results_in_force(data)), _throttle_time_ms(data))
    except IndexError:
        raise ValueError("the answer ends too early") from None


def _results_in_force(data: bytes) -> Iterator[ResultInForce]:
    known: dict[
        bytes, tuple[bytes, DescribedConfig]
    ] = {}  # by name: the bytes of a key's last description, and the result
    count, at = read_unsigned(data, 4)
    for _ in range(count - 1):
        error, at = int.from_bytes(data[at : at + 2], "big", signed=True), at + 2
        message, at = text(data, at)
        name, at = text(data, at + 1)
        keys, at = read_unsigned(data, at)
        configs = []
        for _ in range(keys - 1):
            begin = data[at : at + data[at]]
            previous = known.get(begin)
            if previous is None or not data.startswith(previous[0], at):
                config, end = _config_in_force(data, at)
                previous = known[begin] = data[at:end], config
            configs.append(previous[1])
            at += len(previous[0])
        yield ResultInForce(name or "", error, message, configs)
        at = after_tags(data, at)


def _config_in_force(data: bytes, at: int) -> tuple[DescribedConfig, int]:
    name, at = text(data, at)
    value, at = text(data, at)
    read_only, source, is_sensitive = data[at : at + 3]
    count, at = read_unsigned(data, at + 3)
    synonyms = []
    for _ in range(count - 1):
        synonym_name, at = text(data, at)
        synonym_value, at = text(data, at)
        synonyms.append(Synonym(synonym_name or "", synonym_value, data[at]))
        at = after_tags(data, at + 1)
    type, (documentation, at) = data[at], text(data, at + 1)
    config = DescribedConfig(
        name or "", value, bool(read_only), source, bool(is_sensitive), tuple(synonyms), type, documentation
    )
    return config, after_tags(data, at)
