"""Requests and answers have the bytes that another client gives them: kafka-python, with values drawn for every version."""

from __future__ import annotations

import contextlib
import random
import uuid
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.messages.schema import MessageField, Struct
from kctl.wire.protocol import messages
from kctl.wire.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    MetadataRequest,
    MetadataResponse,
    message_class,
)

MODULES = (
    kafka.protocol.admin,
    kafka.protocol.metadata,
    kafka.protocol.consumer,
    kafka.protocol.producer,
    kafka.protocol.sasl,
)
DRAWS = 4  # of each version
# The library has these as sets of operations, partly under a shorter name.
OPERATIONS, OPERATIONS_AS_SET = 0b101, {0, 2}
# In version 0 an empty list stands for all topics, and null is not one; no supported broker has it as its newest.
EXCEPT = {("MetadataRequest", 0)}


def library_class(name: str) -> Any:
    return next((getattr(module, name) for module in MODULES if hasattr(module, name)), None)


COMMON = [name for name in messages.names() if library_class(name) is not None]


def drawn(chance: random.Random, kind: Any, theirs: Any, version: int) -> tuple[Any, Any]:
    """The same values for both."""
    ours, for_them = {}, {}
    for field in kind.STRUCT:
        if version not in field.versions:
            continue
        name = field.name
        if name.endswith("authorized_operations") and field.type == "int32":
            ours[name] = OPERATIONS
            short = name if hasattr(theirs, name) else "authorized_operations"
            is_set = not (theirs.__name__.startswith("DescribeTopicPartitions"))
            for_them[short] = OPERATIONS_AS_SET if is_set else OPERATIONS
            continue
        ours[name], for_them[name] = _field(chance, field, kind, theirs, version)
    return kind(**ours), theirs(version=version, **for_them)


def _field(
    chance: random.Random, field: MessageField, kind: Any, theirs: Any, version: int
) -> tuple[Any, Any]:
    if field.nullable and chance.random() < 0.2:
        return None, None
    if not field.array:
        return _one(chance, field, kind, theirs, version)
    items = [_one(chance, field, kind, theirs, version) for _ in range(chance.choice([0, 1, 3]))]
    return [one for one, _ in items], [other for _, other in items]


def _one(chance: random.Random, field: MessageField, kind: Any, theirs: Any, version: int) -> tuple[Any, Any]:
    if isinstance(field.type, Struct):
        name = field.type.name
        return drawn(chance, getattr(kind, name), getattr(theirs, name), version)
    size = chance.choice([0, 1, 5, 200])
    value: Any
    if field.type == "string":
        value = "".join(chance.choice("abcé") for _ in range(size))
    elif field.type == "bytes":
        value = chance.randbytes(size)
    elif field.type == "uuid":
        value = uuid.UUID(int=chance.getrandbits(128))
    elif field.type == "bool":
        value = chance.random() < 0.5
    elif field.type == "float64":
        value = chance.random()
    else:
        bits = int(field.type.strip("uint"))
        value = chance.getrandbits(bits - 1) - chance.choice([0, 0 if "u" in field.type else 2 ** (bits - 1)])
    return value, value


@pytest.mark.parametrize("name", COMMON)
def test_bytes_are_those_of_another_client(name: str) -> None:
    kind, theirs = message_class(name), library_class(name)
    assert kind.MESSAGE.key == theirs.API_KEY
    chance = random.Random(name)
    for version in range(min(kind.MESSAGE.versions.last, theirs.max_version) + 1):
        if (name, version) in EXCEPT:
            continue
        for _ in range(DRAWS):
            ours, other = drawn(chance, kind, theirs, version)
            data = ours.encoded(version)
            assert data == bytes(other.encode(version=version))
            assert kind.decoded(memoryview(data), version) == ours


def test_most_messages_are_compared() -> None:
    assert len(COMMON) > 90


@pytest.mark.parametrize("name", messages.names())
def test_what_is_cut_off_is_an_error(name: str) -> None:
    kind = message_class(name)
    version = kind.MESSAGE.versions.last
    data = kind().encoded(version)
    kind.decoded(data, version)
    for size in range(len(data)):
        with pytest.raises(ValueError):
            kind.decoded(data[:size], version)


@settings(deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["MetadataResponse", "DescribeGroupsResponse", "OffsetFetchResponse"]),
)
def test_no_bytes_are_more_than_an_error(data: bytes, name: str) -> None:
    kind = message_class(name)
    for version in range(kind.MESSAGE.versions.last + 1):
        with contextlib.suppress(ValueError):
            kind.decoded(memoryview(data), version)


def test_fields_that_are_not_given_have_their_defaults() -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="a")
    assert (topic.name, topic.assignments, topic.num_partitions) == ("a", (), 0)
    read = MetadataResponse.decoded(MetadataResponse(cluster_id="c").encoded(1), 1)
    assert read.cluster_id is None and read.cluster_authorized_operations == -(2**31)
    with pytest.raises(TypeError, match="CreatableTopic has no nmae"):
        CreateTopicsRequest.CreatableTopic(nmae="a")
    with pytest.raises(TypeError, match="MetadataRequest has no topic"):
        MetadataRequest(topic=None)


def test_a_name_that_nobody_has() -> None:
    with pytest.raises(AttributeError, match="NobodyRequest"):
        messages.NobodyRequest  # noqa: B018


def test_a_node_that_does_not_know_the_version_answers_in_the_oldest() -> None:
    key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)
    data = ApiVersionsResponse(error_code=35, api_keys=[key]).encoded(0)
    found = ApiVersionsRequest.answered(memoryview(data), 3)
    assert found.error_code == 35 and [one.max_version for one in found.api_keys] == [2]
