"""Placement of new replicas is Kafka's own for the same draws."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.cluster.placement import Draws, draw, draws_for_added, place_replicas, rack_alternated
from kctl.errors import BadValue, KctlError, Refused
from tests.conftest import vectors

CASES = vectors("replica_assignment")["cases"]


def of(*ops: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["op"] in ops]


@pytest.mark.parametrize("case", of("kafka_rack_unaware", "kafka_rack_aware"))
def test_vectors(case: Any) -> None:
    given, expect = case["given"], case["expect"]
    racks = (
        {int(b): rack for b, rack in given["racks"].items()}
        if "racks" in given
        else dict.fromkeys(given["brokers"])
    )
    draws = Draws(given["start_index"], given["next_replica_shift"])

    def placed() -> Any:
        return place_replicas(
            racks,
            given["partitions"],
            given["replication_factor"],
            draws,
            first_partition_id=given.get("first_partition_id", 0),
        )

    if "error" in expect:
        with pytest.raises(KctlError):
            placed()
    else:
        assert {str(p): list(r) for p, r in placed().items()} == expect["assignment"]


@pytest.mark.parametrize("case", of("rack_alternated_brokers"))
def test_racks_alternate(case: Any) -> None:
    racks = {int(b): rack for b, rack in case["given"]["racks"].items()}
    assert rack_alternated(racks) == case["expect"]["brokers"]


@pytest.mark.parametrize(
    ("brokers", "first", "have", "want", "old", "expected"),
    [
        ([0, 1, 2, 3, 4], [1, 2], 5, 8, False, {5: (1, 4), 6: (2, 0), 7: (3, 1)}),
        ([100, 101, 102], [101, 102], 1, 4, False, {1: (102, 101), 2: (100, 102), 3: (101, 102)}),
        ([100, 101, 102], [101, 102], 1, 4, True, {1: (100, 102), 2: (101, 100), 3: (102, 100)}),
        ([10, 20, 30], [40, 10], 1, 3, False, {1: (20, 30), 2: (30, 10)}),
    ],
)
def test_added_partitions(
    brokers: list[int], first: list[int], have: int, want: int, old: bool, expected: object
) -> None:
    racks = dict.fromkeys(brokers)
    draws = draws_for_added(racks, first, by_broker_id=old)
    assert place_replicas(racks, want - have, len(first), draws, first_partition_id=have) == expected


def test_counts_are_refused() -> None:
    with pytest.raises(BadValue, match="0 partitions"):
        place_replicas({1: None}, 0, 1, Draws(0, 0))
    with pytest.raises(BadValue, match="replication factor 0"):
        place_replicas({1: None}, 1, 0, Draws(0, 0))
    with pytest.raises(Refused, match="larger than the 1 available"):
        place_replicas({1: None}, 1, 2, Draws(0, 0))
    with pytest.raises(Refused, match="brokers 2 have no rack"):
        place_replicas({1: "a", 2: None}, 1, 2, Draws(0, 0))


@given(
    st.dictionaries(st.integers(0, 99), st.sampled_from("abcd"), min_size=1, max_size=12),
    st.integers(1, 40),
    st.data(),
    st.booleans(),
)
def test_replicas_differ_and_spread_over_racks(
    racks: dict[int, str], partitions: int, data: st.DataObject, aware: bool
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    draws = draw(len(racks), Random(data.draw(st.integers(0, 9))))
    chosen = place_replicas(racks if aware else dict.fromkeys(racks), partitions, factor, draws)
    assert list(chosen) == list(range(partitions))
    for replicas in chosen.values():
        assert len(set(replicas)) == factor
        if aware:
            assert len({racks[b] for b in replicas}) == min(factor, len(set(racks.values())))
