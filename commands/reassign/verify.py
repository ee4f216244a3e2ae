"""`kctl reassign verify` and `status`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli.changing import How, carry_out
from commands.cli.connecting import At, reads, refuse_other_cluster
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, Duration, flag, option
from commands.cli.render import Outcome
from commands.reassign.execute import read_for
from commands.reassign.plan import DISK_SIZES, printed_plan
from commands.topic import note_hidden, note_problems
from kctl.cluster.state import CONFIGS, MOVES
from kctl.errors import NotFinished

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from kctl.changes.kinds.throttles import ClearThrottle
    from kctl.cluster.disks import BrokerLogDir
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState, Problem
    from kctl.model import TopicPartition
    from kctl.operations.reassignment.verification import MoveStatus, Sizes

SAMPLE = option(
    "--sample",
    "Time between two measurements of replica sizes while something moves; 0 measures once.",
    type=Duration(),
    default="5s",
)
VERIFY_STATUS = (
    "0 everything is in place, in sync, and the plan's throttle is gone · 3 failed, or a topic is hidden · "
    "5 something is missing, or still throttled"
)


@command("verify", status=VERIFY_STATUS)
@reads
@click.argument("plan", type=GIVEN_PATH)
@printed_plan
@SAMPLE
@flag("--keep-throttle", "Keep the throttle of the plan even if it is finished.")
def verify(
    frame: Frame, at: At, plan: Path, printed: str | None, sample: float, keep_throttle: bool
) -> Outcome:
    """Check whether each partition of a plan is in place and in sync.

    With --bootstrap-server, the rows also show bytes copied and the rate. Once all partitions are done, kctl removes the
    throttle of this plan and records that in the journal.

    $ kctl reassign verify drain-2.json
    $ until kctl reassign verify drain-2.json; do sleep 10; done
    $ kctl reassign verify drain-2.json --keep-throttle --output jsonl
    """
    from commands.reassign.rows import move_status_lines, move_status_row, move_status_text
    from kctl.changes.journal import Journal
    from kctl.changes.kinds.throttles import is_anything_throttled
    from kctl.operations.reassignment.disk_moves import refuse_disks, with_disk_moves
    from kctl.operations.reassignment.plan_files import read_plan
    from kctl.operations.reassignment.verification import (
        DONE,
        IN_PROGRESS,
        entries_of,
        move_statuses,
        throttle_of,
        with_rates,
    )

    file = read_plan(plan, printed, frame.note)
    known = list(Journal().entries(frame.report))
    entries = entries_of(known, file.identity) if known else []
    with at.open(frame, needs_controller=True) as cluster:
        if file.log_dirs:
            refuse_disks(cluster.can)

        def read() -> ClusterState:
            return read_for(cluster, file.targets, at.version, all_topics=True, log_dirs=file.log_dirs)

        state = read()
        listed = list(move_statuses(file.targets, state, entries))
        listed = with_disk_moves(listed, file.log_dirs, state, entries)
        if state.can.ask_brokers and any(status.state == IN_PROGRESS for status in listed):
            look = _measured(cluster, state, {tp.topic for tp in file.targets}, sample)
            state = read()
            listed = with_rates(
                move_statuses(file.targets, state, entries, look.sizes), look.sizes, look.rates, state
            )
            listed = with_disk_moves(listed, file.log_dirs, state, entries, look.before, look.seconds)
        note_problems(frame, moves_unread(state))
        is_finished = all(status.state == DONE for status in listed)
        _raise_status(frame, listed)
        if entries or is_anything_throttled(state):
            clear = throttle_of(file.targets, entries, state)
            may_clear = is_finished and not keep_throttle
            settle_throttle(frame, at, cluster, state, clear, file.identity, finished=may_clear)
    return Outcome(
        (move_status_row(status) for status in listed),
        text=move_status_text,
        encoded=lambda form: move_status_lines(listed, form),
    )


def _raise_status(frame: Frame, listed: Sequence[MoveStatus]) -> None:
    """3 where a topic is hidden, 5 where something is not done."""
    from kctl.operations.reassignment.verification import DONE

    states = {status.state for status in listed}
    if None in states:
        frame.raise_status(3)
    if states - {DONE, None}:
        frame.raise_status(5)


class Look(NamedTuple):
    """The sizes of replicas, and the rate at which each has grown since another look, so many seconds before."""

    sizes: Sizes
    before: list[BrokerLogDir]
    seconds: float
    rates: dict[tuple[TopicPartition, int], float] | None


def _measured(cluster: Cluster, state: ClusterState, topics: Collection[str] | None, seconds: float) -> Look:
    """Two looks at the replicas of these topics (None: all), so far apart; one where that is 0."""
    from kctl.cluster.disks import replica_sizes
    from kctl.operations.reassignment.verification import copy_rates

    first, begun = cluster.read_log_dirs(state.live_brokers, topics) or [], time.monotonic()
    if not seconds:
        return Look(replica_sizes(first), first, 0.0, None)
    time.sleep(seconds)
    sizes, apart = (
        replica_sizes(cluster.read_log_dirs(state.live_brokers, topics) or ()),
        time.monotonic() - begun,
    )
    return Look(sizes, first, apart, copy_rates(replica_sizes(first), sizes, apart))


def settle_throttle(
    frame: Frame,
    at: At,
    cluster: Cluster,
    state: ClusterState,
    clear: ClearThrottle,
    plan_id: str,
    *,
    finished: bool,
) -> None:
    """Remove a plan's throttle if it is finished and the cluster may be changed; else note what is set (5)."""
    from kctl.changes.kinds.throttles import left_over, may_be_left, not_read
    from kctl.changes.plan import plan_of
    from kctl.cluster.visibility import with_hidden_topics

    state = with_hidden_topics(cluster, clear.throttled, state) if at.snapshot is None else state
    remaining = left_over(clear, state)
    if not remaining:
        if finished and (places := not_read(clear, state)):
            frame.report(may_be_left(places, state))
        return
    if not finished or at.snapshot is not None or frame.context.read_only:
        frame.raise_status(5)
        frame.note(f"still throttled: {', '.join(remaining[:4])}{' and more' if len(remaining) > 4 else ''}")
        return
    refuse_other_cluster(frame, cluster)
    title = f"clear the throttle of plan {plan_id[:12]}"
    change = plan_of([clear], cluster, state, title=title, details={"clears": plan_id})
    how = How(
        yes=True,
        dry_run=False,
        wait=True,
        timeout=at.timeout,
        reason="the plan is finished",
        kafka_version=at.kafka_version,
    )
    carry_out(frame, how, cluster, change)
    after = cluster.read_state(
        configs=("topics", "brokers"), partition_states=False, kafka_version=at.version
    )
    if still := left_over(clear, after):
        frame.report(
            NotFinished(
                f"still throttled: {', '.join(still)}",
                "`kctl reassign throttle clear --unused` clears throttles that no move needs",
            )
        )


def moves_unread(state: ClusterState) -> list[Problem]:
    """Why moves and throttles may be missing: copies between disks only a user sees that may describe the cluster."""
    return [
        problem
        for problem in state.problems
        if problem.right is not None or (problem.is_hidden and problem.place.startswith((MOVES, CONFIGS)))
    ]


@command(
    "status",
    every="",
    status="0 nothing is moving, or all of the plan is done · 3 failed · 5 something is moving, or stuck",
)
@reads
@click.argument("plan", required=False, type=GIVEN_PATH)
@printed_plan
@DISK_SIZES
@SAMPLE
def status(
    frame: Frame, at: At, plan: Path | None, printed: str | None, disk_sizes: Path | None, sample: float
) -> Outcome:
    """Show running moves, their progress and what they wait for.

    With PLAN, show all its partitions.

    $ kctl reassign status
    $ kctl reassign status drain-2.json --disk-sizes /mnt/brokers
    $ kctl reassign status --snapshot znodes.jsonl --output jsonl
    """
    from commands.reassign.rows import move_status_row, move_status_text
    from kctl.changes.journal import Journal
    from kctl.changes.kinds.throttles import KEYS
    from kctl.cluster.disks import replica_sizes
    from kctl.cluster.moves import by_replica, moving_targets
    from kctl.operations.reassignment.disk_moves import replicas_of, running_copies, with_disk_moves
    from kctl.operations.reassignment.plan_files import read_plan
    from kctl.operations.reassignment.verification import (
        IN_PROGRESS,
        entries_of,
        explain,
        move_statuses,
        with_rates,
    )

    given_sizes = None
    if disk_sizes:
        from kctl.operations.reassignment.replica_sizes import read_disk_sizes

        given_sizes = by_replica(read_disk_sizes(disk_sizes))
    file = read_plan(plan, printed, frame.note) if plan else None
    with at.open(frame, needs_controller=True) as cluster:
        names = None if file is None else {tp.topic for tp in file.targets}
        entries = list(Journal().entries(frame.report)) if at.snapshot is None else []
        own = entries_of(entries, file.identity) if file else entries

        def read() -> ClusterState:
            return cluster.read_state(
                names,
                configs=("topics", "brokers"),
                config_keys=KEYS,
                kafka_version=at.version,
                log_dirs_of=None,
                visibility=names is None,
            )

        def statuses_with(sizes: Sizes | None, look: Look | None = None) -> list[MoveStatus]:
            copies = running_copies(state.log_dirs)
            targets = file.targets if file else moving_targets(state) | replicas_of(copies, state)
            statuses = list(move_statuses(targets, state, own, sizes))
            if sizes is not None:
                statuses = with_rates(statuses, sizes, look and look.rates, state)
            log_dirs = file.log_dirs if file else copies
            return with_disk_moves(
                statuses, log_dirs, state, own, look and look.before, look.seconds if look else 0
            )

        state = read()
        listed = statuses_with(given_sizes)
        if given_sizes is None and state.can.ask_brokers and listed:
            if any(status.state == IN_PROGRESS for status in listed):
                look = _measured(cluster, state, names, sample)
                state = read()
            else:
                look = Look(replica_sizes(state.log_dirs), list(state.log_dirs), 0.0, None)
            listed = statuses_with(look.sizes, look)
    note_problems(frame, moves_unread(state))
    note_hidden(frame, state)
    _raise_status(frame, listed)
    for reason in explain(state):
        frame.note(reason)
        frame.raise_status(5)
    return Outcome(
        [move_status_row(status) for status in listed],
        text=move_status_text,
        nothing="no reassignment is under way",
    )
