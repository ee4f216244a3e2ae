"""What is said of a group's lag."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.changes.intents import GroupOffset
from kctl.model import TopicPartition
from kctl.wire import groups
from kctl.wire.groups import CLASSIC, SHARE, ConsumerGroup, lags_of, total_lag

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(("type", "told", "lag"), [(CLASSIC, None, 60), (SHARE, None, None), (SHARE, 3, 3)])
def test_the_lag_of_a_share_group_is_what_its_coordinator_tells(
    monkeypatch: pytest.MonkeyPatch, type: str, told: int | None, lag: int | None
) -> None:
    """Where it begins to read may be written long after it has read on."""
    at = GroupOffset(40, None)
    monkeypatch.setattr(groups, "_share_offsets", lambda *_: {TP: (at, told)})
    monkeypatch.setattr(groups, "read_committed", lambda *_: {TP: at})
    monkeypatch.setattr(groups, "watermarks", lambda *_: {TP: 100})
    nothing: Any = None
    group = ConsumerGroup(
        group="g", coordinator=1, type=type, state="Stable", protocol_type=None, protocol=None, members=()
    )
    (found,) = lags_of(nothing, group)
    assert (found.committed, found.high_watermark, found.lag) == (at, 100, lag)
    assert total_lag([found]) == lag
