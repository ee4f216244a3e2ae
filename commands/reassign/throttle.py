"""`kctl reassign throttle`: list, set, clear."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, connect, open_for_change
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, SNAPSHOT, Size, flag
from commands.cli.render import Outcome
from commands.reassign.execute import origins_known, read_for
from commands.reassign.plan import printed_plan
from commands.topic import note_hidden, note_problems
from formats.words import counted
from kctl.errors import BadValue, Refused

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.changes.kinds.throttles import ClearThrottle
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.operations.reassignment.plan_files import PlanFile

ACTIONS = ("list", "set", "clear")


@command("throttle", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("plan", required=False, type=GIVEN_PATH)
@click.argument("rate", required=False, type=Size())
@printed_plan
@flag("--unused", "With clear: remove all throttles that no running move needs.")
@SNAPSHOT
def throttle(
    frame: Frame,
    how: How,
    action: str,
    plan: Path | None,
    rate: int | None,
    printed: str | None,
    unused: bool,
    snapshot: Path | None,
) -> Outcome:
    """List throttles; set or clear those of a plan.

    The throttle of a plan is the one that the journal records for its execution, or else the one set on its
    partitions. Throttles of other plans are not changed. Only `list` takes --snapshot.

    $ kctl reassign throttle list
    $ kctl reassign throttle list --snapshot znodes.jsonl
    $ kctl reassign throttle set drain-2.json 100MiB --yes
    $ kctl reassign throttle clear drain-2.json --yes
    """
    from kctl.operations.reassignment.plan_files import read_plan

    if action == "list":
        return _list(frame, how, snapshot)
    if snapshot is not None:
        raise BadValue(
            "a snapshot cannot be changed", "name the cluster with --zookeeper or --bootstrap-server"
        )
    if plan is None and not (action == "clear" and unused):
        raise BadValue(f"throttle {action} needs PLAN", "name the plan whose throttles these are")
    if (rate is None) == (action == "set"):
        raise BadValue(
            "throttle set needs PLAN and RATE; clear takes no RATE",
            "give both for set, and only the plan for clear",
        )
    file = read_plan(plan, printed, frame.note) if plan else None
    with open_for_change(frame) as cluster:
        if file is None:
            return _clear_unused(frame, how, cluster)
        return _clear(frame, how, cluster, file) if rate is None else _set(frame, how, cluster, file, rate)


def _list(frame: Frame, how: How, snapshot: Path | None) -> Outcome:
    from kctl.changes.journal import Journal
    from kctl.changes.kinds.throttles import throttles_set, with_slowed_disks
    from kctl.operations.reassignment.verification import brokers_to_clear, owners
    from kctl.rows.reassign import THROTTLE

    at = At(snapshot, allow_stale=False, timeout=how.timeout, kafka_version=how.kafka_version)
    with at.open(frame) if snapshot else connect(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), partition_states=False, visibility=True)
        state = with_slowed_disks(cluster, state)
    note_problems(frame, state.problems)
    note_hidden(frame, state)
    entries = [] if snapshot else list(Journal().entries(frame.report))
    own = [entry for entry in entries if entry.cluster_id == state.cluster_id]
    _note_untold(frame, state, "list", brokers_to_clear(own))
    plans = owners(entries)
    rows = (
        THROTTLE.of(limit, plan=plans.get((limit.entity_type, limit.entity_name, limit.key)))
        for limit in throttles_set(state)
    )
    return Outcome(rows, nothing="no throttle is set")


def _note_untold(frame: Frame, state: ClusterState, action: str, known: Collection[int] = ()) -> None:
    """Report each broker, of the cluster or `known` from elsewhere, whose throttle is unknown."""
    from kctl.changes.kinds.throttles import brokers_that_cannot_report

    for broker in brokers_that_cannot_report(state, known):
        frame.fail(
            f"broker {broker} is not alive, and only the broker itself can report its throttle",
            f"start it, and {action} the throttles again",
        )


def _read(cluster: Cluster, how: How, file: PlanFile | None = None) -> ClusterState:
    return read_for(cluster, file.targets if file else (), how.version, all_topics=True)


def _set(frame: Frame, how: How, cluster: Cluster, file: PlanFile, rate: int) -> Outcome:
    """Set the rate on every broker of the plan, and the lists of throttled replicas if they are missing."""
    from kctl.changes.intents import intent_to_json
    from kctl.changes.kinds.throttles import (
        brokers_of,
        check_rate,
        clearing,
        list_changes,
        rate_changes,
        throttled_replicas,
    )
    from kctl.changes.plan import plan_of
    from kctl.cluster.moves import moves_of
    from kctl.cluster.names import refuse_hidden

    state = _read(cluster, how, file)
    refuse_hidden({tp.topic for tp in file.targets}, state)
    check_rate(rate, state.kafka_version)
    known = origins_known(frame, file.path, file.identity)
    origins = {tp: known.get(tp) or state.replicas(tp) or () for tp in file.targets}
    lists = throttled_replicas(moves_of(file.targets, origins))
    brokers = brokers_of(lists)
    intents = [*list_changes(lists, state), *rate_changes(brokers, rate, state)]
    clear = intent_to_json(clearing(lists, state))
    title = f"throttle {file.path.name} to {rate:,} bytes a second on {counted(len(brokers), 'broker')}"
    details = {"plan": file.identity, "throttle": clear, "rate": rate}
    return carry_out(frame, how, cluster, plan_of(intents, cluster, state, title=title, details=details))


def _clear(frame: Frame, how: How, cluster: Cluster, file: PlanFile) -> Outcome:
    from kctl.changes.journal import Journal
    from kctl.operations.reassignment.verification import entries_of, throttle_of

    state = _read(cluster, how, file)
    clear = throttle_of(file.targets, entries_of(Journal().entries(frame.report), file.identity), state)
    moving = [str(tp) for tp in file.targets if state.is_reassigning(tp)]
    warnings = (
        (f"{len(moving)} of its partitions are still moving, unthrottled from then on",) if moving else ()
    )
    return _carry_out(frame, how, cluster, state, clear, f"clear the throttle of {file.path.name}", warnings)


def _clear_unused(frame: Frame, how: How, cluster: Cluster) -> Outcome:
    from kctl.changes.kinds.throttles import (
        EVERYTHING,
        LISTS,
        split,
        unused_throttles,
        with_slowed_disks,
    )
    from kctl.cluster.visibility import grant_all

    state = with_slowed_disks(cluster, _read(cluster, how))
    if state.hidden:
        raise Refused(
            f"which throttles are in use is unknown ({state.hidden}); nothing was written", grant_all(state)
        )
    if denied := [problem for problem in state.problems if problem.silent_broker is None]:
        raise Refused(
            f"which throttles are in use is unknown ({denied[0].place}: {denied[0].reason}); nothing was written",
            denied[0].hint,
        )
    kept = [
        f"{key} of topic {name}"
        for (kind, name), config in sorted(state.configs.items())
        for key in (LISTS if kind == "topics" else ())
        if EVERYTHING in split(config.values.get(key))
    ]
    if kept:
        frame.note(f"{', '.join(kept)} stays: `*` covers all replicas, and no plan sets it; unset it by hand")
    _note_untold(frame, state, "clear")
    title = "clear the throttles that no running move needs"
    return _carry_out(frame, how, cluster, state, unused_throttles(state), title)


def _carry_out(
    frame: Frame,
    how: How,
    cluster: Cluster,
    state: ClusterState,
    clear: ClearThrottle,
    title: str,
    warnings: tuple[str, ...] = (),
) -> Outcome:
    from kctl.changes.kinds.throttles import left_over, may_be_left, not_read, rates_of_dead
    from kctl.changes.plan import Plan, plan_of
    from kctl.cluster.visibility import with_hidden_topics

    state = with_hidden_topics(cluster, clear.throttled, state)
    if not left_over(clear, state) and not (state.quorum is not None and rates_of_dead(clear, state)):
        if places := not_read(clear, state):
            raise may_be_left(places, state)
        return carry_out(frame, how, cluster, Plan(title=title, stages=()))
    return carry_out(frame, how, cluster, plan_of([clear], cluster, state, title=title, warnings=warnings))
