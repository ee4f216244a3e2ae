"""Reassignment: verify, status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.changing import How, carry_out, typed_command
from commands.connecting import At, reads, refuse_other_cluster
from commands.frame import Frame, command
from commands.live_sizes import live_sizes
from commands.reassign import read_for
from commands.render import Outcome

if TYPE_CHECKING:
    from kctl.changes.intents import ClearThrottle
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState

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
@click.argument("plan", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--keep-throttle", is_flag=True, help="Only look: leave the plan's throttle even where all is done."
)
def verify(frame: Frame, at: At, plan: Path, keep_throttle: bool) -> Outcome:
    """Say of each partition of a plan whether it is in place and in sync.

    Once all are, the throttle of this plan is taken away, with an entry in the journal, and of no other plan.
    """
    from commands.reassign_rows import standing_row, standing_text
    from kctl.changes.journal import Journal
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.verification import DONE, entries_of, standings, throttle_of

    file = read_plan(plan)
    entries = entries_of(Journal().entries(frame.report), file.identity)
    with at.open(frame) as cluster:
        state = read_for(cluster, file.targets, at.version, all_topics=True)
        found = list(standings(file.targets, state, entries))
        if any(one.state != DONE for one in found):
            frame.raise_status(5)
            finished = False
        else:
            finished = True
        clear = throttle_of(file.targets, entries, state)
        settle_throttle(
            frame, at, cluster, state, clear, file.identity, finished=finished and not keep_throttle
        )
    return Outcome([standing_row(one) for one in found], text=standing_text)


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
@click.argument("plan", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--disk-sizes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What kafka-log-dirs prints, or a folder of log directories, for the bytes left.",
)
def status(frame: Frame, at: At, plan: Path | None, disk_sizes: Path | None) -> Outcome:
    """Show what is moving, how far it is and what it waits for; with a PLAN, of all its partitions."""
    from commands.reassign_rows import standing_row, standing_text
    from kctl.changes.journal import Journal
    from kctl.cluster.disk_sizes import read_disk_sizes
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.stuck import explain, moving_targets
    from kctl.cluster.verification import DONE, by_replica, entries_of, standings

    sizes = by_replica(read_disk_sizes(disk_sizes)) if disk_sizes else None
    file = read_plan(plan) if plan else None
    with at.open(frame) as cluster:
        targets = file.targets if file else None
        names = None if targets is None else {tp.topic for tp in targets}
        state = cluster.read_state(names, configs=("topics", "brokers"), kafka_version=at.version)
        if sizes is None and (known := live_sizes(cluster, names)) is not None:
            sizes = by_replica(known)
    entries = list(Journal().entries(frame.report)) if at.snapshot is None else []
    own = entries_of(entries, file.identity) if file else entries
    found = list(standings(targets if targets is not None else moving_targets(state), state, own, sizes))
    if any(one.state != DONE for one in found):
        frame.raise_status(5)
    for reason in explain(state):
        frame.note(reason)
        frame.raise_status(5)
    return Outcome([standing_row(one, state) for one in found], text=standing_text)
