"""Places of partitions decoded by hand are what the usual decoder says."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.wire.answers.metadata import QUICK_VERSIONS, Places, PlacesRequest, decoded, places
from kctl.wire.protocol.messages import MetadataResponse

TOPIC = MetadataResponse.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition
NUMBERS = st.integers(-(2**31), 2**31 - 1)
IDS = st.lists(st.integers(-1, 5), max_size=5) | st.lists(NUMBERS, max_size=3)
PARTITIONS = st.lists(
    st.tuples(NUMBERS, st.sampled_from([0, 5, 72]), st.integers(-1, 3), IDS, IDS, IDS),
    max_size=8,
    unique_by=lambda one: one[0],
)
TOPICS = st.lists(
    st.tuples(st.text(max_size=200), st.sampled_from([0, 3, 29]), st.booleans(), st.binary(min_size=16, max_size=16), PARTITIONS),
    max_size=5,
)  # fmt: skip


def answer(topics: list[tuple[str, int, bool, bytes, list[tuple[int, int, int, list[int], list[int], list[int]]]]],
           rack: str | None = None) -> MetadataResponse:  # fmt: skip
    listed = [
        TOPIC(
            error_code=error,
            name=name,
            topic_id=uuid.UUID(bytes=id),
            is_internal=internal,
            partitions=[
                PARTITION(
                    error_code=code,
                    partition_index=number,
                    leader_id=leader,
                    leader_epoch=leader + 1,
                    replica_nodes=replicas,
                    isr_nodes=isr,
                    offline_replicas=offline,
                )
                for number, code, leader, replicas, isr, offline in partitions
            ],
        )
        for name, error, internal, id, partitions in topics
    ]
    node = MetadataResponse.MetadataResponseBroker(node_id=7, host="kafka-7", port=9092, rack=rack)
    return MetadataResponse(
        throttle_time_ms=3,
        brokers=[node],
        cluster_id="c",
        controller_id=7,
        topics=listed,
        error_code=0,
    )


def both(data: bytes, version: int) -> tuple[Places, Places]:
    return decoded(data, version), places(MetadataResponse.decoded(data, version))


@pytest.mark.slow
@pytest.mark.parametrize("version", QUICK_VERSIONS)
@settings(deadline=None, max_examples=40)
@given(topics=TOPICS, rack=st.none() | st.text(max_size=20))
def test_it_says_what_the_usual_decoder_says(version: int, topics: list[object], rack: str | None) -> None:
    found, expected = both(bytes(answer(topics, rack).encoded(version)), version)  # type: ignore[arg-type]
    assert found == expected
    assert [list(one.partitions) for one in found.topics] == [sorted(one.partitions) for one in found.topics]


def test_partitions_that_are_alike_and_lists_that_are_long() -> None:
    alike = [(number, 0, 1, [1, 2, 3], [1, 3], []) for number in range(50)]
    long = [(number, 0, 1, list(range(number, number + 300)), list(range(200)), [1]) for number in range(3)]
    data = bytes(answer([("a", 0, False, b"i" * 16, alike), ("b", 0, False, bytes(16), long)]).encoded(12))
    found, expected = both(data, 12)
    assert found == expected
    assert found.topics[0].partitions[49] == (1, 2, 3) and found.topics[1].topic_id is None


@pytest.mark.parametrize("version", QUICK_VERSIONS)
def test_an_answer_that_is_cut_off_is_an_error(version: int) -> None:
    partitions = [(number, 0, 1, [1, 2], [1], []) for number in range(3)]
    data = bytes(answer([("orders", 0, False, b"i" * 16, partitions)]).encoded(version))
    for size in range(len(data)):
        with pytest.raises(ValueError):
            decoded(data[:size], version)


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(QUICK_VERSIONS))
def test_no_bytes_are_more_than_an_error(data: bytes, version: int) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(decoded(data, version), Places)


def test_older_forms_are_decoded_as_usual() -> None:
    for version, is_quick in ((8, False), (9, True), (13, True)):
        found = PlacesRequest.answered(memoryview(answer([]).encoded(version)), version)
        assert isinstance(found, Places) == is_quick and places(found).cluster_id == "c"
