"""Totals of losses in words: a bound where more may be gone, and offsets of which compaction may have taken some."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.replica.loss.words import CAUSES, lost_sentence


def loss(topic: str = "orders", start: int = 0, end: int | None = 10, **more: Any) -> dict[str, Any]:
    return {
        "topic": topic, "partition": 0, "from_offset": start, "to_offset": end, "class": "committed",
        "cause": "unclean_election", "records": None, "recoverable_from": [], "recoverable_from_tier": [], **more,
    }  # fmt: skip


WHOLE = {"records": 10, "recoverable_from": [{"moment": None, "broker_id": 1}]}


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([loss()], "10 committed offsets are gone from the cluster; no copy in this evidence holds them."),
        ([loss(is_at_least=True)], "At least 10 committed offsets are gone"),
        ([loss(**WHOLE, is_at_least=True)], "At least 10 committed records are gone from the cluster; all 10 are still on"),
        ([loss(is_compacted=True)], "10 committed offsets of a compacted topic are gone"),
        ([loss(is_compacted=True, **WHOLE)], "10 committed records are gone"),
        ([loss(is_compacted=True, end=1)], "1 committed offset of a compacted topic is gone"),
        ([loss(is_compacted=True), loss("clicks")], "20 committed offsets (10 of compacted topics) are gone"),
        (
            [loss(is_compacted=True, **{"class": "unknown"})],
            "10 offsets of a compacted topic are gone",
        ),
    ],
)  # fmt: skip
def test_what_a_total_says(losses: list[dict[str, Any]], words: str) -> None:
    assert words in lost_sentence(losses)


def test_the_words_of_a_cause_hold_with_and_without_zookeeper() -> None:
    assert not [words for words in CAUSES.values() if "ZooKeeper" in words]
