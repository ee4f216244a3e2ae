"""Where the logs of replicas begin and end, as brokers tell it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.wire.replicas import fetching
from kctl.wire.replicas.fetching import LATEST, UNKNOWN_TOPIC_OR_PARTITION, list_offsets

NOT_LEADER = 6
WANTED = [(node, TopicPartition("t", p)) for node in (1, 2) for p in (0, 1)]


class Brokers:
    """Brokers that tell an offset, but of some partitions an error for so many times."""

    location = "here:9092"

    def __init__(self, errors: dict[tuple[int, int], list[int]]) -> None:
        self.errors = errors
        self.asked: list[list[tuple[int, int]]] = []

    def version_of(self, request: object) -> int:
        return 7

    def pause(self, seconds: float) -> None:
        pass

    def send_all(self, requests: list[tuple[int, Any]]) -> list[Any]:
        self.asked.append([(n, p.partition_index) for n, r in requests for p in r.topics[0].partitions])
        return [self._answer(node, request) for node, request in requests]

    def _answer(self, node: int, request: Any) -> Any:
        parts = []
        for p in request.topics[0].partitions:
            left = self.errors.get((node, p.partition_index), [])
            code = left.pop(0) if left else 0
            parts.append(
                SimpleNamespace(partition_index=p.partition_index, error_code=code, offset=10 * node)
            )
        return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=parts)])


def test_who_has_not_heard_of_a_partition_is_asked_again() -> None:
    """One broker was read from, and another one applies the topic's creation half a second later."""
    brokers = Brokers({(2, 1): [UNKNOWN_TOPIC_OR_PARTITION] * 2, (1, 0): [UNKNOWN_TOPIC_OR_PARTITION]})
    found = list_offsets(brokers, WANTED, LATEST)  # type: ignore[arg-type]
    assert found == {(node, tp): 10 * node for node, tp in WANTED}
    assert brokers.asked == [[(1, 0), (1, 1), (2, 0), (2, 1)], [(1, 0), (2, 1)], [(2, 1)]]


def test_another_error_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers({(2, 0): [NOT_LEADER]})
    found = list_offsets(brokers, WANTED, LATEST)  # type: ignore[arg-type]
    answer = found[2, TopicPartition("t", 0)]
    assert isinstance(answer, KctlError) and answer.message == "broker 2 answered NOT_LEADER_OR_FOLLOWER"
    monkeypatch.setattr(fetching, "HEARING", 0.0)
    never = Brokers({(1, 1): [UNKNOWN_TOPIC_OR_PARTITION] * 9})
    assert isinstance(list_offsets(never, WANTED, LATEST)[1, TopicPartition("t", 1)], KctlError)  # type: ignore[arg-type]
    assert len(never.asked) == 1
