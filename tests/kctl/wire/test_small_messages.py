"""Small messages have the same bytes and the same meaning, whichever way they are written and read."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeClusterResponse
from kafka.protocol.admin.groups import ListGroupsResponse
from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.consumer.offsets import ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.schemas.fields.codecs.encode_buffer import EncodeBuffer

import kctl.wire.adapter  # noqa: F401  # puts the shortcuts in place
from kctl.wire.shortcuts import small_messages
from kctl.wire.shortcuts.small_messages import decoder, encoder, made_decoder, made_encoder

REQUESTS = (
    ApiVersionsRequest(client_software_name="kctl", client_software_version="1"),
    DescribeClusterRequest(include_fenced_brokers=True),
    ListPartitionReassignmentsRequest(timeout_ms=10, topics=None),
    ListPartitionReassignmentsRequest(
        timeout_ms=10,
        topics=[
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                name="orders", partition_indexes=[0, 7]
            )
        ],
    ),
)


def versions(message: Any) -> range:
    return range(message.max_version + 1)


def written(make: Any, message: Any, version: int) -> bytes:
    flexible = message.flexible_version_q(version)
    out = EncodeBuffer()
    make(type(message)._struct, version, flexible, flexible)(message, out)
    return bytes(out.buf[: out.pos])


@pytest.mark.parametrize("message", REQUESTS, ids=lambda one: type(one).__name__)
def test_requests_have_the_same_bytes(message: Any) -> None:
    assert type(message)._struct.name in small_messages.SHORT_REQUESTS
    for version in versions(message):
        message.API_VERSION = version
        assert written(encoder, message, version) == written(made_encoder, message, version)


def answers() -> list[Any]:
    broker = DescribeClusterResponse.DescribeClusterBroker
    moves = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    move = moves.OngoingPartitionReassignment
    offsets = ListOffsetsResponse.ListOffsetsTopicResponse
    offset = offsets.ListOffsetsPartitionResponse
    one = offset(partition_index=3, error_code=0, timestamp=-1, offset=2**40, leader_epoch=5)
    ongoing = move(partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[])
    return [
        DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            cluster_id="c",
            controller_id=2,
            brokers=[broker(broker_id=1, host="h", port=9092, rack=None)],
        ),
        ListPartitionReassignmentsResponse(
            throttle_time_ms=0,
            error_code=0,
            error_message="no",
            topics=[moves(name="t", partitions=[ongoing])],
        ),
        ListOffsetsResponse(throttle_time_ms=0, topics=[offsets(name="t", partitions=[one])]),
        AlterPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=41, error_message=None, responses=[]
        ),
        ListGroupsResponse(throttle_time_ms=0, error_code=15, groups=[]),
        ApiVersionsResponse(
            error_code=0,
            api_keys=[ApiVersionsResponse.ApiVersion(api_key=3, min_version=0, max_version=12)],
            throttle_time_ms=0,
            finalized_features_epoch=77,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(
                    name="metadata.version", max_version_level=21, min_version_level=21
                )
            ],
        ),
    ]


@pytest.mark.parametrize("message", answers(), ids=lambda one: type(one).__name__)
def test_answers_mean_the_same(message: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(message)
    for version in versions(message):
        data = memoryview(b"head" + written(made_encoder, message, version) + b"more")
        flexible = message.flexible_version_q(version)
        found, end = decoder(kind._struct, version, flexible, flexible, kind)(data, 4)
        expected, expected_end = made_decoder(kind._struct, version, flexible, flexible, kind)(data, 4)
        assert (end, type(found)) == (expected_end, kind)
        assert shown(found) == shown(expected)
        monkeypatch.setattr(small_messages, "SMALL", 0)
        assert decoder(kind._struct, version, flexible, flexible, kind)(data, 4)[1] == end
        monkeypatch.undo()


def shown(value: Any) -> Any:
    """All that a message says."""
    if isinstance(value, list):
        return [shown(one) for one in value]
    fields = getattr(getattr(value, "_struct", None), "fields", None)
    return value if fields is None else {name: shown(getattr(value, name)) for name in fields}
