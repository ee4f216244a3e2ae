"""The planner: complete, minimal, even, rack-aware, deterministic; held against an exact flow on small clusters."""

from collections import Counter, deque
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kctl.cluster.placement import draw, place_replicas
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition
from kctl.operations.reassignment.planner import ReassignmentGoal, Situation, plan_placement
from tests.conftest import examples

Replicas = tuple[int, ...]


def moves_needed(before: Mapping[TopicPartition, Replicas], after: Mapping[TopicPartition, Replicas]) -> int:
    """Replicas that are new on their broker."""
    return sum(len(set(replicas) - set(before[tp])) for tp, replicas in after.items())


def tp(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def situation(lists: dict[str, Replicas], racks: dict[int, str | None] | None = None) -> Situation:
    replicas = {tp(name): value for name, value in lists.items()}
    brokers = racks or dict.fromkeys(b for value in lists.values() for b in value)
    return Situation(replicas=replicas, racks=brokers)


def after(now: Situation, planned: dict[TopicPartition, Replicas]) -> dict[TopicPartition, Replicas]:
    return {**now.replicas, **planned}


def heads(replicas: dict[TopicPartition, Replicas], brokers: set[int]) -> int:
    count = Counter(dict.fromkeys(brokers, 0))
    count.update(r[0] for r in replicas.values() if r[0] in brokers)
    return max(count.values()) - min(count.values())


# --- examples ------------------------------------------------------------------------------------------


def test_a_drain_moves_only_what_the_broker_holds() -> None:
    now = situation({"a-0": (1, 2), "a-1": (2, 3), "a-2": (3, 1), "b-0": (2, 1)}, dict.fromkeys((1, 2, 3, 4)))
    planned = plan_placement(now, ReassignmentGoal(drain=frozenset({2})))
    assert sorted(map(str, planned)) == ["a-0", "a-1", "b-0"]
    assert moves_needed(now.replicas, planned) == 3
    assert all(2 not in replicas for replicas in planned.values())
    assert Counter(b for r in after(now, planned).values() for b in r) == {1: 3, 3: 3, 4: 2}


def test_a_replacement_keeps_every_place() -> None:
    now = situation({"a-0": (1, 2), "a-1": (2, 3), "a-2": (3, 1)}, dict.fromkeys((1, 3, 4)))
    assert plan_placement(now, ReassignmentGoal(replace={2: 4})) == {tp("a-0"): (1, 4), tp("a-1"): (4, 3)}


def test_a_replacement_that_has_the_partition_already_uses_another_broker() -> None:
    now = situation({"a-0": (1, 2)}, dict.fromkeys((1, 2, 3)))
    assert plan_placement(now, ReassignmentGoal(replace={1: 2})) == {tp("a-0"): (3, 2)}


def test_the_replication_factor_grows_into_other_racks() -> None:
    now = situation({"a-0": (1,), "a-1": (2,)}, {1: "x", 2: "x", 3: "y"})
    planned = plan_placement(now, ReassignmentGoal(replication_factor=2))
    assert planned == {tp("a-0"): (1, 3), tp("a-1"): (2, 3)}


def test_shrinking_takes_replicas_where_racks_repeat_and_keeps_the_leader() -> None:
    now = situation({"a-0": (1, 2, 3)}, {1: "x", 2: "y", 3: "x"})
    assert plan_placement(now, ReassignmentGoal(replication_factor=2)) == {tp("a-0"): (1, 2)}


def test_an_added_broker_gets_its_share_and_nothing_else_moves() -> None:
    racks = dict.fromkeys((1, 2, 3))
    lists = place_replicas(racks, 30, 2, draw(3, Random(1)))
    now = Situation(
        replicas={TopicPartition("t", p): r for p, r in lists.items()}, racks=dict.fromkeys((1, 2, 3, 4))
    )
    planned = plan_placement(now, ReassignmentGoal(add=frozenset({4})))
    assert moves_needed(now.replicas, planned) == 15
    load = Counter(b for r in after(now, planned).values() for b in r)
    assert load[4] == 15
    assert max(load.values()) - min(load.values()) <= 1
    assert heads(after(now, planned), {1, 2, 3, 4}) <= 1


def test_racks_of_unequal_size_do_not_end_in_a_dead_end() -> None:
    now = situation({f"a-{i}": (1, 2) for i in range(12)}, {1: "x", 2: "x", 3: "x", 4: "y"})
    planned = plan_placement(now, ReassignmentGoal(brokers=frozenset({1, 2, 3, 4})))
    load = Counter(b for r in after(now, planned).values() for b in r)
    assert load == {1: 4, 2: 4, 3: 4, 4: 12}


def test_sizes_decide_where_counts_do_not() -> None:
    lists = {"a-0": (1,), "a-1": (2,), "b-0": (3,), "b-1": (3,)}
    now = situation(lists)
    sized = Situation(
        replicas=now.replicas, racks=now.racks, sizes={tp("a-0"): 900, tp("a-1"): 100, tp("b-0"): 500}
    )
    planned = plan_placement(sized, ReassignmentGoal(drain=frozenset({3})))
    assert planned[tp("b-0")] == (2,)
    assert planned[tp("b-1")] == (1,)


@pytest.mark.parametrize(
    ("goal", "error", "text"),
    [
        (ReassignmentGoal(brokers=frozenset({1, 9})), Refused, "brokers 9 are not alive; alive are 1, 2, 3"),
        (ReassignmentGoal(drain=frozenset({2, 3})), Refused, "a-0 needs 2 brokers and may only use 1"),
        (ReassignmentGoal(replication_factor=4), Refused, "needs 4 brokers"),
        (ReassignmentGoal(replication_factor=0), BadValue, "larger than 0"),
        (ReassignmentGoal(drain=frozenset({7})), BadValue, "no broker 7 is alive or holds a replica"),
        (ReassignmentGoal(topics=frozenset({"zz"}), drain=frozenset({1})), KctlError, "no topic zz"),
    ],
)
def test_what_cannot_be_is_said(goal: ReassignmentGoal, error: type[KctlError], text: str) -> None:
    now = situation({"a-0": (1, 2), "a-1": (2, 3)})
    with pytest.raises(error, match=text):
        plan_placement(now, goal)


def test_a_move_that_would_never_end_is_refused() -> None:
    now = situation({"a-0": (1, 5), "a-1": (2, 1)}, dict.fromkeys((1, 2, 3)))
    with pytest.raises(Refused, match=r"brokers 5, which are not alive.*--drain 1,5"):
        plan_placement(now, ReassignmentGoal(drain=frozenset({1})))
    assert set(plan_placement(now, ReassignmentGoal(drain=frozenset({1, 5})))[tp("a-0")]) == {2, 3}


def test_brokers_without_a_rack_are_named() -> None:
    now = situation({"a-0": (1, 2)}, {1: "x", 2: None, 3: "y"})
    with pytest.raises(Refused, match="brokers 2 have no rack"):
        plan_placement(now, ReassignmentGoal(drain=frozenset({1})))
    assert plan_placement(now, ReassignmentGoal(drain=frozenset({1}), rack_aware=False)) == {
        tp("a-0"): (2, 3)
    }


# --- properties over random clusters ---------------------------------------------------------------------


@st.composite
def clusters(draw_: st.DrawFn) -> Situation:
    brokers = draw_(st.lists(st.integers(0, 20), min_size=2, max_size=8, unique=True))
    aware = draw_(st.booleans())
    racks: dict[int, str | None] = {
        b: draw_(st.sampled_from("xyz")) if aware else None for b in sorted(brokers)
    }
    replicas = {}
    for topic in draw_(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)):
        for partition in range(draw_(st.integers(1, 8))):
            size = draw_(st.integers(1, min(4, len(brokers))))
            order = draw_(st.permutations(sorted(brokers)))
            replicas[TopicPartition(topic, partition)] = tuple(order[:size])
    return Situation(replicas=replicas, racks=racks)


def check_plan(now: Situation, planned: dict[TopicPartition, Replicas], allowed: set[int]) -> None:
    for partition, replicas in planned.items():
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) - set(now.replicas[partition]) <= allowed
    assert list(planned) == sorted(planned)


def racks_of(now: Situation, replicas: Replicas) -> int:
    return len({now.racks[b] for b in replicas if now.racks.get(b) is not None})


def shuffled(now: Situation) -> Situation:
    items = list(now.replicas.items())
    Random(5).shuffle(items)
    brokers = list(now.racks.items())
    Random(6).shuffle(brokers)
    return Situation(replicas=dict(items), racks=dict(brokers), sizes=now.sizes)


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(clusters(), st.data())
def test_a_drain_is_complete_and_minimal(now: Situation, data: st.DataObject) -> None:
    drained = set(
        data.draw(st.lists(st.sampled_from(sorted(now.racks)), min_size=1, max_size=2, unique=True))
    )
    allowed = set(now.racks) - drained
    assume(all(len(r) <= len(allowed) for r in now.replicas.values()))
    goal = ReassignmentGoal(drain=frozenset(drained))
    planned = plan_placement(now, goal)
    check_plan(now, planned, allowed)
    assert plan_placement(shuffled(now), goal) == planned
    result = after(now, planned)
    assert not any(drained & set(r) for r in result.values())
    assert {p for p, r in now.replicas.items() if drained & set(r)} == set(planned)
    assert moves_needed(now.replicas, planned) == sum(len(drained & set(r)) for r in now.replicas.values())
    reachable = len({now.racks[b] for b in allowed})
    for partition, replicas in planned.items():
        assert len(replicas) == len(now.replicas[partition])
        if None not in now.racks.values():
            kept = tuple(b for b in now.replicas[partition] if b in allowed)
            gone = len(replicas) - len(kept)
            assert racks_of(now, replicas) >= min(len(replicas), reachable, racks_of(now, kept) + gone)
    assert plan_placement(Situation(replicas=result, racks=now.racks), goal) == {}


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(clusters(), st.data())
def test_evening_out_is_complete_even_and_minimal(now: Situation, data: st.DataObject) -> None:
    allowed = set(data.draw(st.lists(st.sampled_from(sorted(now.racks)), min_size=1, unique=True)))
    assume(all(len(r) <= len(allowed) for r in now.replicas.values()))
    planned = plan_placement(now, ReassignmentGoal(brokers=frozenset(allowed)))
    check_plan(now, planned, allowed)
    result = after(now, planned)
    assert plan_placement(shuffled(now), ReassignmentGoal(brokers=frozenset(allowed))) == planned
    reachable = len({now.racks[b] for b in allowed})
    load = Counter(dict.fromkeys(allowed, 0))
    for replicas in result.values():
        assert set(replicas) <= allowed
        load.update(replicas)
        if None not in now.racks.values():
            assert racks_of(now, replicas) >= min(len(replicas), reachable)
    total = sum(load.values())
    exact = cheapest(now, allowed, -(-total // len(allowed)), total // len(allowed))
    if exact is not None:  # racks leave room for evenness
        assert max(load.values()) - min(load.values()) <= 1
        assert moves_needed(now.replicas, planned) == exact
    elif None in now.racks.values():
        pytest.fail("without racks an even placement always exists")
    spread = heads(result, allowed)
    # What is left uneven, no order of the lists could mend: a partition with one replica has one head.
    assert spread <= max(1, heads(dict(now.replicas), allowed)) or not can_lead_evenly(
        result, allowed, spread - 1
    )


def can_lead_evenly(replicas: dict[TopicPartition, Replicas], brokers: set[int], spread: int) -> bool:
    """Whether heads can be chosen so that no two brokers differ by more than the spread, by an independent flow."""
    for least in range(len(replicas) // len(brokers) + 1):
        flow = Flow()
        for partition, members in replicas.items():
            flow.edge("source", partition, 1, 0)
            for broker in members:
                flow.edge(partition, broker, 1, 0)
        for broker in sorted(brokers):
            flow.edge(broker, "sink", least, -1)
            flow.edge(broker, "sink", spread, 0)
        if flow.run("source", "sink") == (len(replicas), -least * len(brokers)):
            return True
    return False


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(clusters(), st.integers(1, 4))
def test_the_replication_factor_becomes_what_was_asked_for(now: Situation, factor: int) -> None:
    assume(factor <= len(now.racks))
    planned = plan_placement(now, ReassignmentGoal(replication_factor=factor))
    check_plan(now, planned, set(now.racks))
    for partition, replicas in after(now, planned).items():
        before = now.replicas[partition]
        assert len(replicas) == factor
        if len(before) <= factor:
            assert set(before) <= set(replicas)
        else:
            assert set(replicas) <= set(before)
    assert moves_needed(now.replicas, planned) == sum(max(0, factor - len(r)) for r in now.replicas.values())


def cheapest(now: Situation, allowed: set[int], most: int, least: int) -> int | None:
    """The fewest new replicas of any placement with every broker between the bounds, by an independent flow.

    Racks are bounded as in the planner: one a rack where a partition has no more replicas than there are
    racks, else at least one in each.
    """
    racks = {b: now.racks[b] if None not in now.racks.values() else b for b in allowed}
    aware = None not in now.racks.values()
    names = sorted({str(r) for r in racks.values()})
    flow = Flow()
    need = 0
    for partition, replicas in now.replicas.items():
        factor = len(replicas)
        need += factor
        flow.edge("source", partition, factor, 0)
        extra = (partition, "extra")
        flow.edge(partition, extra, max(0, factor - len(names)) if aware else factor, 0)
        for name in names:
            one = (partition, name)
            if aware:
                flow.edge(partition, one, 1, -10_000 if factor >= len(names) else 0)
            flow.edge(extra, one, factor, 0)
            for broker in sorted(allowed):
                if str(racks[broker]) == name:
                    flow.edge(one, broker, 1, 0 if broker in replicas else 1)
    for broker in sorted(allowed):
        flow.edge(broker, "sink", least, -1_000_000)
        flow.edge(broker, "sink", most - least, 0)
    sent, cost = flow.run("source", "sink")
    cost += 1_000_000 * least * len(allowed)
    if aware:
        cost += 10_000 * sum(len(names) for r in now.replicas.values() if len(r) >= len(names))
    return cost if sent == need and cost < 10_000 else None


class Flow:
    """A flow of least cost by shortest augmenting paths (Bellman-Ford with a queue)."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = []
        self.out: dict[object, list[tuple[int, object]]] = {}

    def edge(self, source: object, target: object, capacity: int, cost: int) -> None:
        self.out.setdefault(source, []).append((len(self.edges), target))
        self.edges.append([capacity, cost])
        self.out.setdefault(target, []).append((len(self.edges), source))
        self.edges.append([0, -cost])

    def run(self, source: object, sink: object) -> tuple[int, int]:
        sent = total = 0
        while True:
            cost: dict[object, int] = {source: 0}
            came: dict[object, tuple[object, int]] = {}
            queue = deque([source])
            while queue:
                node = queue.popleft()
                for edge, target in self.out.get(node, ()):
                    if self.edges[edge][0] and cost[node] + self.edges[edge][1] < cost.get(target, 1 << 60):
                        cost[target] = cost[node] + self.edges[edge][1]
                        came[target] = node, edge
                        if target not in queue:
                            queue.append(target)
            if sink not in came:
                return sent, total
            node = sink
            while node != source:
                node, edge = came[node]
                self.edges[edge][0] -= 1
                self.edges[edge ^ 1][0] += 1
            sent += 1
            total += cost[sink]
