"""Reassignment: verify, status."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.changing import Duration, How, carry_out, typed_command
from commands.connecting import At, reads, refuse_other_cluster
from commands.frame import Frame, command
from commands.live_sizes import live_sizes
from commands.path_types import GIVEN_PATH
from commands.reassign import read_for
from commands.render import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from kctl.changes.intents import ClearThrottle
    from kctl.cluster.copy_rates import Sizes
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.verification import Standing
    from kctl.model import TopicPartition

SAMPLE = click.option(
    "--sample",
    type=Duration(),
    default="5s",
    show_default=True,
    help="Time between two looks at the replicas' sizes while something moves; 0 for one look.",
)
VERIFY_STATUS = (
    "0 everything is in place, in sync, and the plan's throttle is gone · 3 could not · "
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
@click.option(
    "--keep-throttle", is_flag=True, help="Only look: leave the plan's throttle even where all is done."
)
def verify(frame: Frame, at: At, plan: Path, sample: float, keep_throttle: bool) -> Outcome:
    """Say of each partition of a plan whether it is in place and in sync.

    Brokers also tell how much is copied, and two looks how fast; ZooKeeper does not know.

    Once all are, the throttle of this plan is taken away, with an entry in the journal, and of no other plan.
    """
    from commands.reassign_rows import standing_row, standing_text
    from commands.standing_lines import standing_lines
    from kctl.changes.journal import Journal
    from kctl.cluster.copy_rates import with_rates
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.throttle_keys import is_anything_throttled
    from kctl.cluster.verification import DONE, IN_PROGRESS, entries_of, standings, throttle_of

    file = read_plan(plan)
    known = list(Journal().entries(frame.report))
    entries = entries_of(known, file.identity) if known else []
    with at.open(frame) as cluster:
        state = read_for(cluster, file.targets, at.version, all_topics=True)
        found = list(standings(file.targets, state, entries))
        if any(one.state == IN_PROGRESS for one in found):
            names = {tp.topic for tp in file.targets}
            sizes, rates = _looked_twice(cluster, names, sample)
            if sizes is not None:
                state = read_for(cluster, file.targets, at.version, all_topics=True)
                found = with_rates(standings(file.targets, state, entries, sizes), sizes, rates)
        if any(one.state != DONE for one in found):
            frame.raise_status(5)
            finished = False
        else:
            finished = True
        if entries or is_anything_throttled(state):
            clear = throttle_of(file.targets, entries, state)
            settle_throttle(
                frame, at, cluster, state, clear, file.identity, finished=finished and not keep_throttle
            )
    return Outcome(
        (standing_row(one, state) for one in found),
        text=standing_text,
        encoded=lambda form: standing_lines(found, state, form),
    )


def _looked_twice(
    cluster: Cluster, topics: Collection[str] | None, seconds: float
) -> tuple[Sizes | None, dict[tuple[TopicPartition, int], float] | None]:
    """The replicas' sizes, and how fast each has grown in so many seconds; None where the cluster cannot tell."""
    from kctl.cluster.copy_rates import copy_rates
    from kctl.cluster.verification import by_replica

    first, begun = live_sizes(cluster, topics), time.monotonic()
    if first is None or not seconds:
        return (None if first is None else by_replica(first)), None
    time.sleep(seconds)
    second = by_replica(live_sizes(cluster, topics) or ())
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
    """Take a plan's throttle away where it is finished and the cluster may be changed; else say what is set (5)."""
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.throttles import left_over
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
    made = Plan(
        title=f"clear the throttle of plan {plan_id[:12]}", stages=(stage,), details={"clears": plan_id}
    )
    how = How(
        yes=True,
        dry_run=False,
        wait=True,
        timeout=at.timeout,
        reason="the plan is finished",
        kafka_version=at.kafka_version,
        command=typed_command(),
    )
    carry_out(frame, how, cluster, made)
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
    status="0 nothing is moving, or all of the plan is done · 3 could not · 5 something is moving, or stuck",
)
@reads
@click.argument("plan", required=False, type=GIVEN_PATH)
@click.option(
    "--disk-sizes",
    type=GIVEN_PATH,
    metavar="FILE",
    help="What kafka-log-dirs prints, or a folder of log directories, for the bytes left.",
)
@SAMPLE
def status(frame: Frame, at: At, plan: Path | None, disk_sizes: Path | None, sample: float) -> Outcome:
    """Show what is moving, how far it is and what it waits for; with a PLAN, of all its partitions."""
    from commands.reassign_rows import standing_row, standing_text
    from kctl.changes.journal import Journal
    from kctl.cluster.copy_rates import with_rates
    from kctl.cluster.disk_sizes import read_disk_sizes
    from kctl.cluster.moving import moving_targets
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.stuck import explain
    from kctl.cluster.verification import DONE, IN_PROGRESS, by_replica, entries_of, standings

    given = by_replica(read_disk_sizes(disk_sizes)) if disk_sizes else None
    file = read_plan(plan) if plan else None
    with at.open(frame) as cluster:
        targets = file.targets if file else None
        names = None if targets is None else {tp.topic for tp in targets}
        entries = list(Journal().entries(frame.report)) if at.snapshot is None else []
        own = entries_of(entries, file.identity) if file else entries

        def look(sizes: Sizes | None) -> list[Standing]:
            return list(standings(moving_targets(state) if targets is None else targets, state, own, sizes))

        state = cluster.read_state(names, configs=("topics", "brokers"), kafka_version=at.version)
        found = look(given)
        if given is None and at.snapshot is None:
            is_moving = any(one.state == IN_PROGRESS for one in found)
            sizes, rates = _looked_twice(cluster, names, sample if is_moving else 0)
            if is_moving:
                state = cluster.read_state(names, configs=("topics", "brokers"), kafka_version=at.version)
            if sizes is not None:
                found = with_rates(look(sizes), sizes, rates)
    if any(one.state != DONE for one in found):
        frame.raise_status(5)
    for reason in explain(state):
        frame.note(reason)
        frame.raise_status(5)
    return Outcome([standing_row(one, state) for one in found], text=standing_text)
