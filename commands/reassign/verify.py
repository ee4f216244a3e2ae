"""`kctl reassign verify` and `status`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.changing import How, carry_out
from commands.cli.connecting import At, reads, refuse_other_cluster
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, Duration
from commands.cli.render import Outcome
from commands.reassign.execute import read_for
from commands.reassign.plan import DISK_SIZES

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.changes.intents import ClearThrottle
    from kctl.cluster.interface import Cluster
    from kctl.cluster.reassignment.verification import Sizes, Standing
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition

SAMPLE = click.option(
    "--sample", type=Duration(), default="5s", show_default=True,
    help="Time between two measurements of replica sizes while something moves; 0 measures once.",
)  # fmt: skip
VERIFY_STATUS = (
    "0 everything is in place, in sync, and the plan's throttle is gone · 3 failed · "
    "5 something is missing, or still throttled"
)


@command(
    "verify",
    examples="""
    kctl reassign verify drain-2.json
    until kctl reassign verify drain-2.json; do sleep 10; done
    kctl reassign verify drain-2.json --keep-throttle --output jsonl
    """,
    status=VERIFY_STATUS,
)
@reads
@click.argument("plan", type=GIVEN_PATH)
@SAMPLE
@click.option("--keep-throttle", is_flag=True, help="Keep the throttle of the plan even if it is finished.")
def verify(frame: Frame, at: At, plan: Path, sample: float, keep_throttle: bool) -> Outcome:
    """Check whether each partition of a plan is in place and in sync.

    Over Kafka's protocol the rows also have the bytes copied and the rate; ZooKeeper does not have them. Once all
    partitions are done, the throttle of this plan is removed, with an entry in the journal.
    """
    from commands.reassign.rows import standing_lines, standing_row, standing_text
    from kctl.changes.journal import Journal
    from kctl.cluster.reassignment.plan_files import read_plan
    from kctl.cluster.reassignment.throttles import is_anything_throttled
    from kctl.cluster.reassignment.verification import (
        DONE,
        IN_PROGRESS,
        entries_of,
        standings,
        throttle_of,
        with_rates,
    )

    file = read_plan(plan)
    known = list(Journal().entries(frame.report))
    entries = entries_of(known, file.identity) if known else []
    with at.open(frame, needs_controller=True) as cluster:
        state = read_for(cluster, file.targets, at.version, all_topics=True)
        listed = list(standings(file.targets, state, entries))
        if any(standing.state == IN_PROGRESS for standing in listed):
            sizes, rates = _measured(cluster, {tp.topic for tp in file.targets}, sample)
            if sizes is not None:
                state = read_for(cluster, file.targets, at.version, all_topics=True)
                listed = with_rates(standings(file.targets, state, entries, sizes), sizes, rates, state)
        is_finished = all(standing.state == DONE for standing in listed)
        if not is_finished:
            frame.raise_status(5)
        if entries or is_anything_throttled(state):
            clear = throttle_of(file.targets, entries, state)
            may_clear = is_finished and not keep_throttle
            settle_throttle(frame, at, cluster, state, clear, file.identity, finished=may_clear)
    return Outcome(
        (standing_row(standing) for standing in listed),
        text=standing_text,
        encoded=lambda form: standing_lines(listed, form),
    )


def _measured(
    cluster: Cluster, topics: Collection[str] | None, seconds: float
) -> tuple[Sizes | None, dict[tuple[TopicPartition, int], float] | None]:
    """The sizes of replicas, and the rate at which each has grown; None where the cluster has no sizes."""

    from kctl.cluster.reassignment.moves import by_replica
    from kctl.cluster.reassignment.verification import copy_rates

    first, begun = cluster.replica_sizes(topics), time.monotonic()
    if first is None or not seconds:
        return (None if first is None else by_replica(first)), None
    time.sleep(seconds)
    second = by_replica(cluster.replica_sizes(topics) or ())
    return second, copy_rates(by_replica(first), second, time.monotonic() - begun)


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
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.reassignment.throttles import left_over
    from kctl.errors import NotFinished

    left = left_over(clear, state)
    if not left:
        return
    if not finished or at.snapshot is not None or frame.context.read_only:
        frame.raise_status(5)
        frame.note(f"still throttled: {', '.join(left[:4])}{' and more' if len(left) > 4 else ''}")
        return
    refuse_other_cluster(frame, cluster)
    stage = Stage(intent=clear, writes=cluster.writes_for(clear, state))
    change = Plan(
        title=f"clear the throttle of plan {plan_id[:12]}", stages=(stage,), details={"clears": plan_id}
    )
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
        frame.report(NotFinished(f"still throttled: {', '.join(still)}"))


@command(
    "status",
    examples="""
    kctl reassign status
    kctl reassign status drain-2.json --disk-sizes /mnt/brokers
    kctl reassign status --snapshot znodes.jsonl --output jsonl
    """,
    status="0 nothing is moving, or all of the plan is done · 3 failed · 5 something is moving, or stuck",
)
@reads
@click.argument("plan", required=False, type=GIVEN_PATH)
@DISK_SIZES
@SAMPLE
def status(frame: Frame, at: At, plan: Path | None, disk_sizes: Path | None, sample: float) -> Outcome:
    """Show running moves, their progress and what they wait for.

    With PLAN, show all its partitions.
    """
    from commands.reassign.rows import standing_row, standing_text
    from kctl.changes.journal import Journal
    from kctl.cluster.reassignment.moves import by_replica, moving_targets
    from kctl.cluster.reassignment.plan_files import read_plan
    from kctl.cluster.reassignment.replica_sizes import read_disk_sizes
    from kctl.cluster.reassignment.verification import (
        DONE,
        IN_PROGRESS,
        entries_of,
        explain,
        standings,
        with_rates,
    )

    given = by_replica(read_disk_sizes(disk_sizes)) if disk_sizes else None
    file = read_plan(plan) if plan else None
    with at.open(frame, needs_controller=True) as cluster:
        targets = file.targets if file else None
        names = None if targets is None else {tp.topic for tp in targets}
        entries = list(Journal().entries(frame.report)) if at.snapshot is None else []
        own = entries_of(entries, file.identity) if file else entries

        def measure(sizes: Sizes | None) -> list[Standing]:
            return list(standings(moving_targets(state) if targets is None else targets, state, own, sizes))

        state = cluster.read_state(names, configs=("topics", "brokers"), kafka_version=at.version)
        listed = measure(given) if given is None else with_rates(measure(given), given, None, state)
        if given is None and at.snapshot is None:
            is_moving = any(standing.state == IN_PROGRESS for standing in listed)
            sizes, rates = _measured(cluster, names, sample if is_moving else 0)
            if is_moving:
                state = cluster.read_state(names, configs=("topics", "brokers"), kafka_version=at.version)
            if sizes is not None:
                listed = with_rates(measure(sizes), sizes, rates, state)
    if any(standing.state != DONE for standing in listed):
        frame.raise_status(5)
    for reason in explain(state):
        frame.note(reason)
        frame.raise_status(5)
    return Outcome([standing_row(standing) for standing in listed], text=standing_text)
