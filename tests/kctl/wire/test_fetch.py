"""Batches found by hand in an answer to Fetch are those that the usual decoder finds."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.log.columns.headers import PADDING
from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.answers.fetch import QUICK_VERSIONS, BytesAnswer, PartitionBytes, TopicBytes, decoded
from kctl.wire.protocol.messages import FetchResponse, ListOffsetsResponse
from kctl.wire.replicas import fetching
from kctl.wire.replicas.fetching import LATEST, Fetched, Fetcher, FetchPosition, first_positions, list_offsets
from kctl.wire.replicas.fronts import begin_alike, padded, place

TOPIC = FetchResponse.FetchableTopicResponse
PARTITION = TOPIC.PartitionData
ABORTED = PARTITION.AbortedTransaction
VERSIONS = [version for version in QUICK_VERSIONS if version <= FetchResponse.MESSAGE.versions.last]
LONGS = st.integers(-1, 2**62)
PARTITIONS = st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 6]), LONGS, LONGS, st.none() | st.binary(max_size=400),
                       st.none() | st.lists(st.tuples(LONGS, LONGS), max_size=3))  # fmt: skip
TOPICS = st.lists(st.tuples(st.text(max_size=150), st.uuids(), st.lists(PARTITIONS, max_size=4)), max_size=3)


def answer(
    topics: list[tuple[str, uuid.UUID, list[tuple[int, int, int, int, bytes | None, object]]]],
) -> FetchResponse:
    listed = [
        TOPIC(
            topic=name,
            topic_id=id,
            partitions=[
                PARTITION(
                    partition_index=number,
                    error_code=error,
                    high_watermark=mark,
                    last_stable_offset=mark,
                    log_start_offset=start,
                    preferred_read_replica=-1,
                    records=records,
                    aborted_transactions=None
                    if aborted is None
                    else [ABORTED(producer_id=p, first_offset=o) for p, o in aborted],
                )
                for number, error, mark, start, records, aborted in partitions
            ],
        )
        for name, id, partitions in topics
    ]
    return FetchResponse(throttle_time_ms=4, error_code=0, session_id=0, responses=listed)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@settings(deadline=None, max_examples=30)
@given(topics=TOPICS)
def test_it_says_what_the_usual_decoder_says(version: int, topics: list[object]) -> None:
    data = bytes(answer(topics).encoded(version))  # type: ignore[arg-type]
    found, expected = decoded(memoryview(data), version), FetchResponse.decoded(data, version)
    assert (found.error_code, found.throttle_time_ms) == (0, 4)
    assert [one.topic_id if version >= 13 else one.topic for one in found.responses] == [
        one.topic_id if version >= 13 else one.topic for one in expected.responses
    ]
    listed = [[p for topic in said.responses for p in topic.partitions] for said in (found, expected)]
    for name in ("partition_index", "error_code", "high_watermark", "log_start_offset"):
        assert [getattr(p, name) for p in listed[0]] == [getattr(p, name) for p in listed[1]]
    assert [p.records if p.records is None else bytes(p.records) for p in listed[0]] == [
        p.records if p.records is None else bytes(p.records) for p in listed[1]
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_is_cut_off_is_an_error(version: int) -> None:
    data = bytes(answer([("t", uuid.uuid4(), [(0, 0, 5, 0, b"batch" * 9, [(1, 2)])])]).encoded(version))
    for size in range(len(data)):
        with pytest.raises(ValueError):
            decoded(memoryview(data)[:size], version)


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(VERSIONS))
def test_no_bytes_are_more_than_an_error(data: bytes, version: int) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(decoded(memoryview(data), version), BytesAnswer)


@given(st.binary(max_size=300), st.integers(0, 100), st.integers(0, 100), st.booleans())
def test_a_view_goes_on_behind_its_end(data: bytes, before: int, behind: int, is_array: bool) -> None:
    whole = bytes(before) + data + b"x" * behind
    view = memoryview(bytearray(whole) if is_array else whole)[before : before + len(data)]
    block = padded(view)
    assert bytes(block[: len(data)]) == data and len(block) == len(data) + PADDING
    assert place(view) == (before if data else 0)
    shared = np.shares_memory(block, np.frombuffer(view.obj, np.uint8)) if whole else False
    assert shared == (is_array and bool(data) and behind >= PADDING) or not data


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 60), st.integers(0, 5))
def test_the_front_is_compared_in_place(one: bytes, other: bytes, size: int, before: int) -> None:
    expected = min(len(one), len(other)) >= size and one[:size] == other[:size]
    ways = (bytes, memoryview, lambda data: memoryview(bytearray(bytes(before) + data))[before:])
    assert {begin_alike(a(one), b(other), size) for a in ways for b in ways} == {expected}
    assert begin_alike(one, bytearray(one) and memoryview(bytearray(one)), len(one))


class ThrottlingWire:
    """Two brokers; the second one gives nothing at first, as when a quota is used up."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: list[list[int]] = []

    def version_of(self, request: object) -> int:
        return 12

    def send_all(self, requests: list[tuple[int, object]]) -> list[BytesAnswer]:
        self.asked.append([node for node, _ in requests])
        return [self._answer(node) for node, _ in requests]

    def _answer(self, node: int) -> BytesAnswer:
        if node == 2 and self.times:
            self.times -= 1
            return BytesAnswer(0, [], 5)
        part = PartitionBytes(0, 0, 7, 0, memoryview(b"bytes of %d" % node))
        return BytesAnswer(0, [TopicBytes("t", None, [part])], 0)


def test_a_broker_that_asks_to_wait_is_asked_again() -> None:
    wire = ThrottlingWire(times=2)
    wanted = [FetchPosition(node, TopicPartition("t", 0), 0) for node in (1, 2)]
    found = Fetcher(wire, {"t": None}).fetch(wanted, 100)  # type: ignore[arg-type]
    assert [bytes(one.data) for one in found if isinstance(one, Fetched)] == [b"bytes of 1", b"bytes of 2"]
    assert wire.asked == [[1, 2], [2], [2]]


def test_what_an_answer_leaves_out_without_a_reason_is_an_error() -> None:
    wire = ThrottlingWire(times=0)
    (found,) = Fetcher(wire, {"t": None}).fetch([FetchPosition(1, TopicPartition("t", 3), 0)], 100)  # type: ignore[arg-type]
    assert isinstance(found, KctlError) and wire.asked == [[1]]


def test_a_broker_that_never_has_a_quota_left_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "STARVING", 0.0)
    wire = ThrottlingWire(times=1000)
    wanted = [FetchPosition(node, TopicPartition("t", 0), 0) for node in (1, 2)]
    one, other = Fetcher(wire, {"t": None}).fetch(wanted, 100)  # type: ignore[arg-type]
    assert isinstance(one, Fetched) and isinstance(other, KctlError)
    assert "broker 2" in str(other) and "quota" in str(other) and len(wire.asked) < 10


class CountingWire(ThrottlingWire):
    """It notes how many bytes are asked for at once."""

    most = 0

    def send_all(self, requests: list[tuple[int, Any]]) -> list[BytesAnswer]:
        self.most = max(self.most, sum(request.max_bytes for _, request in requests))
        return super().send_all(requests)


@pytest.mark.parametrize("brokers", [1, 3, 100])
def test_what_is_asked_for_at_once_is_bounded_however_many_brokers_there_are(brokers: int) -> None:
    wire = CountingWire(times=0)
    wanted = [FetchPosition(n, TopicPartition("t", p), 0) for n in range(brokers) for p in range(64)]
    Fetcher(wire, {"t": None}).fetch(wanted, 1 << 20)  # type: ignore[arg-type]
    assert wire.most == min(brokers * fetching.A_ROUND, fetching.OF_ALL // brokers * brokers)


class ForgetfulWire:
    """A broker that answers about one partition, whatever it is asked for."""

    def version_of(self, request: object) -> int:
        return 8

    def send_all(self, requests: list[tuple[int, object]]) -> list[Any]:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        part = kind.ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=7)
        return [ListOffsetsResponse(topics=[kind(name="t", partitions=[part])]) for _ in requests]


def test_an_offset_that_a_broker_leaves_out_is_an_error() -> None:
    wanted = [(1, TopicPartition("t", p)) for p in (0, 1)]
    found = list_offsets(ForgetfulWire(), wanted, LATEST)  # type: ignore[arg-type]
    assert found[wanted[0]] == 7 and isinstance(found[wanted[1]], KctlError)


def test_the_first_that_a_broker_is_asked_for_is_given_whatever_its_limits() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    wanted = [
        FetchPosition(1, two, 0),
        FetchPosition(1, one, 0),
        FetchPosition(2, one, 0),
        FetchPosition(2, two, 0),
    ]
    assert first_positions(wanted) == {(1, two), (2, one)} and first_positions([]) == set()
