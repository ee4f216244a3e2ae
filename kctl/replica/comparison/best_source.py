"""Which replica to trust, and what each other replica would drop under it.

Branches are never merged by offset. If the branch with the newest epoch is not the one with the highest high
watermark, the first has what was written since the election and the second what was committed before it: an
operator must choose.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Mapping
from typing import NamedTuple

from formats.values import Struct, replace
from kctl.copies.lineage import Lineage, Relation, compare_lineages
from kctl.replication.epochs import assign
from kctl.replication.truncation import Algorithm, ReplicaState, out_of_range, truncate


class Choice(enum.StrEnum):
    """Whether one branch is clearly the one to take."""

    SINGLE_BRANCH = "single_branch"
    SAME_BRANCH = "same_branch"
    OPERATOR_MUST_CHOOSE = "operator_must_choose"


class Branch(Struct, frozen=True):
    """Replicas that do not contradict each other, and the longest of them."""

    replicas: tuple[int, ...]
    longest: int
    log_end_offset: int
    last_epoch: int
    highest_high_watermark: int


class BestSource(Struct, frozen=True):
    """The branches, the longest replica of the newest branch and that of the branch with the highest high watermark."""

    branches: tuple[Branch, ...]
    current_lineage: int
    most_committed: int
    choice: Choice


class Rejoin(NamedTuple):
    """The offsets that a replica drops when it follows a leader; `truncate_to` is None where it drops none."""

    truncate_to: int | None
    offsets_dropped: int
    full_truncation: bool
    below_own_high_watermark: bool


def best_source(
    replicas: Mapping[int, Lineage], contradictions: Container[tuple[int, int]] | None = None
) -> BestSource | None:
    """The branches of a partition's replicas and the best of them; None without replicas.

    `contradictions` are the pairs (ascending ids) whose records differ, if records were compared; without them the
    epochs decide.
    """
    groups: list[list[int]] = []
    for broker_id in sorted(
        replicas, key=lambda b: (-replicas[b].last_epoch, -replicas[b].log_end_offset, b)
    ):
        fitting = (
            g for g in groups if not any(_contradict(replicas, contradictions, broker_id, m) for m in g)
        )
        group = next(fitting, None)
        if group is None:
            groups.append([broker_id])
        else:
            group.append(broker_id)
    if not groups:
        return None
    branches = sorted((_branch(replicas, group) for group in groups), key=lambda b: b.replicas)
    current = max(branches, key=lambda b: (b.last_epoch, b.highest_high_watermark))
    committed = max(branches, key=lambda b: (b.highest_high_watermark, b is current))
    if len(branches) == 1:
        choice = Choice.SINGLE_BRANCH
    else:
        choice = Choice.SAME_BRANCH if current is committed else Choice.OPERATOR_MUST_CHOOSE
    return BestSource(tuple(branches), current.longest, committed.longest, choice)


def _contradict(
    replicas: Mapping[int, Lineage], contradictions: Container[tuple[int, int]] | None, a: int, b: int
) -> bool:
    if contradictions is not None:
        return (min(a, b), max(a, b)) in contradictions
    return compare_lineages(replicas[a], replicas[b]).relation is Relation.DIVERGED


def _branch(replicas: Mapping[int, Lineage], members: list[int]) -> Branch:
    ordered = tuple(sorted(members))
    longest = min(ordered, key=lambda b: (-replicas[b].log_end_offset, replicas[b].log_start_offset, b))
    return Branch(
        ordered,
        longest,
        replicas[longest].log_end_offset,
        max(replicas[b].last_epoch for b in ordered),
        max(replicas[b].committed_end for b in ordered),
    )


def rejoin_table(
    replicas: Mapping[int, Lineage],
    leader: int,
    algorithm: Algorithm = Algorithm.FETCH,
    new_leader_epoch: int | None = None,
) -> dict[int, Rejoin]:
    """What each other replica would drop if this one became the next leader.

    The election writes an entry at the leader's log end (2.0.1 and later); without `new_leader_epoch` it is one
    above the highest known. For tiered topics whose follower ends below the leader's local log start, see the
    follower's rebuild instead.
    """
    if new_leader_epoch is None:
        new_leader_epoch = 1 + max(epoch for r in replicas.values() for epoch, _ in ((-1, 0), *r.recorded))
    chosen = replicas[leader].state()
    chosen = replace(chosen, epochs=assign(chosen.epochs, new_leader_epoch, chosen.log_end_offset))
    return {
        broker_id: _rejoin(replica.state(), chosen, algorithm)
        for broker_id, replica in sorted(replicas.items())
        if broker_id != leader
    }


def _rejoin(follower: ReplicaState, leader: ReplicaState, algorithm: Algorithm) -> Rejoin:
    offsets_held = follower.log_end_offset - follower.log_start_offset
    if follower.log_end_offset < leader.log_start_offset:
        return Rejoin(leader.log_start_offset, offsets_held, True, False)
    after = truncate(follower, leader, algorithm).follower
    if algorithm is Algorithm.HIGH_WATERMARK:
        step = out_of_range(after.log_end_offset, leader.log_start_offset, leader.log_end_offset)
        if step.action == "truncate_to_leader_end":
            after = after.cut_to(leader.log_end_offset)
    cut = after.log_end_offset
    if cut >= follower.log_end_offset:
        return Rejoin(None, 0, False, False)
    dropped = follower.log_end_offset - max(cut, follower.log_start_offset)
    return Rejoin(cut, dropped, False, cut < follower.high_watermark)
