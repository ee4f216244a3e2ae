"""Reassignment: throttle list, set, clear."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.byte_sizes import Size
from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import connect, open_for_change, pinned
from commands.frame import Frame, command
from commands.path_types import GIVEN_PATH
from commands.reassign import origins_known, read_for
from commands.render import Outcome

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState

ACTIONS = ("list", "set", "clear")


@command(
    "throttle",
    examples="""
    kctl reassign throttle list
    kctl reassign throttle list --snapshot znodes.jsonl
    kctl reassign throttle set drain-2.json 100MiB --yes
    kctl reassign throttle clear drain-2.json --yes
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("plan", required=False, type=GIVEN_PATH)
@click.argument("rate", required=False, type=Size())
@click.option("--unused", is_flag=True, help="With clear: every throttle that no running move needs.")
@click.option(
    "--snapshot",
    type=GIVEN_PATH,
    metavar="FILE",
    envvar="KCTL_SNAPSHOT",
    help="With list: read this export in place of a live ZooKeeper.",
)
def throttle(
    frame: Frame,
    how: How,
    action: str,
    plan: Path | None,
    rate: int | None,
    unused: bool,
    snapshot: Path | None,
) -> Outcome:
    """List the throttles that are set; set or clear those of a plan.

    A plan's throttle is what its execution set, as the journal tells, else what is set on its partitions. The
    throttles of other plans are left as they are.
    """
    from kctl.errors import BadValue

    if action == "list":
        return _list(frame, how, snapshot)
    if snapshot is not None:
        raise BadValue("a snapshot cannot be changed")
    if plan is None and not (action == "clear" and unused):
        raise BadValue(f"throttle {action} needs the PLAN")
    if (rate is None) == (action == "set"):
        raise BadValue("throttle set needs PLAN and RATE, and the others no RATE")
    with open_for_change(frame) as cluster:
        if plan is None:
            return _clear_unused(frame, how, cluster)
        return (
            _set(frame, how, cluster, plan, rate) if rate is not None else _clear(frame, how, cluster, plan)
        )


def _list(frame: Frame, how: How, snapshot: Path | None) -> Outcome:
    from commands.connecting import At
    from kctl.changes.journal import Journal
    from kctl.cluster.throttles import throttles_set
    from kctl.cluster.verification import owners
    from kctl.rows.reassign import THROTTLE

    at = At(snapshot=snapshot, allow_stale=False, timeout=how.timeout, kafka_version=how.kafka_version)
    with at.open(frame) if snapshot else connect(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), partition_states=False)
    plans = owners(Journal().entries(frame.report)) if snapshot is None else {}
    rows = (
        THROTTLE(
            entity_type=one.entity_type,
            entity_name=one.entity_name,
            key=one.key,
            value=one.value,
            plan=plans.get((one.entity_type, one.entity_name, one.key)),
            is_used=one.is_used,
        )
        for one in throttles_set(state)
    )
    return Outcome(rows, nothing="no throttle is set")


def _read(cluster: Cluster, how: How) -> ClusterState:
    return read_for(cluster, (), pinned(how.kafka_version), all_topics=True)


def _set(frame: Frame, how: How, cluster: Cluster, plan: Path, rate: int) -> Outcome:
    """The rate on every broker of the plan, and the lists where the plan runs without a throttle."""
    from kctl.changes.intents import intent_to_json
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.moves import moves_of
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.throttles import (
        brokers_of,
        check_rate,
        clearing,
        list_changes,
        rate_changes,
        throttled_replicas,
    )

    file = read_plan(plan)
    state = _read(cluster, how)
    check_rate(rate, state.kafka_version)
    known = origins_known(frame, plan)
    origins = {tp: known.get(tp) or state.replicas(tp) or () for tp in file.targets}
    lists = throttled_replicas(moves_of(file.targets, origins))
    brokers = brokers_of(lists)
    intents = [*list_changes(lists, state), *rate_changes(brokers, rate, state)]
    clear = intent_to_json(clearing(lists, state))
    stages = tuple(
        Stage(intent=intent, writes=cluster.writes_for(intent, state) if number == 0 else ())
        for number, intent in enumerate(intents)
    )
    made = Plan(
        title=f"throttle {plan.name} to {rate:,} bytes a second on {len(brokers)} brokers",
        stages=stages,
        details={"plan": file.identity, "throttle": clear, "rate": rate},
    )
    return carry_out(frame, how, cluster, made)


def _clear(frame: Frame, how: How, cluster: Cluster, plan: Path) -> Outcome:
    from kctl.changes.journal import Journal
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.throttles import left_over
    from kctl.cluster.verification import entries_of, throttle_of

    file = read_plan(plan)
    state = _read(cluster, how)
    clear = throttle_of(file.targets, entries_of(Journal().entries(frame.report), file.identity), state)
    title = f"clear the throttle of {plan.name}"
    if not left_over(clear, state):
        return carry_out(frame, how, cluster, Plan(title=title, stages=()))
    moving = [str(tp) for tp in file.targets if state.is_reassigning(tp)]
    warnings = (
        (f"{len(moving)} partitions of it are still moving, from then on unthrottled",) if moving else ()
    )
    stage = Stage(intent=clear, writes=cluster.writes_for(clear, state))
    return carry_out(frame, how, cluster, Plan(title=title, stages=(stage,), warnings=warnings))


def _clear_unused(frame: Frame, how: How, cluster: Cluster) -> Outcome:
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.throttles import left_over, unused_throttles

    state = _read(cluster, how)
    clear = unused_throttles(state)
    title = "clear the throttles that no running move needs"
    if not left_over(clear, state):
        return carry_out(frame, how, cluster, Plan(title=title, stages=()))
    stage = Stage(intent=clear, writes=cluster.writes_for(clear, state))
    return carry_out(frame, how, cluster, Plan(title=title, stages=(stage,)))
