"""Reassignment: execute, cancel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.byte_sizes import Size
from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import open_for_change, pinned
from commands.frame import Frame, command
from commands.path_types import GIVEN_PATH
from commands.render import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion
    from kctl.model import TopicPartition


@command(
    "execute",
    examples="""
    kctl reassign execute drain-2.json --throttle 50MiB
    kctl reassign execute even.json --throttle 50MiB --disk-sizes log-dirs.json --yes --timeout 6h
    kctl reassign execute even.001.json --no-wait --reason OPS-812
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=3600)
@click.argument("plan", type=GIVEN_PATH)
@click.option(
    "--throttle", type=Size(), metavar="BYTES", help="Bytes a second, in and out, of each broker involved."
)
@click.option("--disk-sizes", type=GIVEN_PATH, metavar="FILE", help="For the estimate.")
@click.option("--max-batch-bytes", type=Size(), default="500000", show_default=True, help="Of one request.")
@click.option("--max-batch-data", type=Size(), help="Bytes that one batch moves; needs --disk-sizes.")
@click.option("--max-batch-moves", type=click.IntRange(1), metavar="N", help="Partitions in one batch.")
def execute(
    frame: Frame,
    how: How,
    plan: Path,
    throttle: int | None,
    disk_sizes: Path | None,
    max_batch_bytes: int,
    max_batch_data: int | None,
    max_batch_moves: int | None,
) -> Outcome:
    """Carry a plan out, batch after batch, and take its throttle away at the end.

    With --no-wait only the first batch is asked for; `kctl journal resume` goes on, and `kctl reassign verify`
    takes the throttle away once everything is in place.
    """
    from commands.reassign_rows import move_row
    from kctl.cluster.batches import cut
    from kctl.cluster.disk_sizes import partition_sizes, read_disk_sizes
    from kctl.cluster.moves import moves_of
    from kctl.cluster.plan_files import read_plan
    from kctl.cluster.reassignment import Execution, plan_execution
    from kctl.errors import BadValue

    file = read_plan(plan)
    for note in file.notes:
        frame.note(note)
    if max_batch_data is not None and disk_sizes is None:
        raise BadValue("--max-batch-data needs --disk-sizes")
    sizes = partition_sizes(read_disk_sizes(disk_sizes)) if disk_sizes else None
    with open_for_change(frame) as cluster:
        state = read_for(cluster, file.targets, pinned(how.kafka_version))
        origins = {tp: replicas for tp in file.targets if (replicas := state.replicas(tp))}
        moves = list(moves_of(file.targets, origins, sizes))
        data = {move.partition: move.data for move in moves}
        batches = cut(
            {move.partition: move.target for move in moves},
            lambda tp: data.get(tp, 0),
            most_bytes=max_batch_bytes,
            most_data=max_batch_data,
            most_moves=max_batch_moves,
        )
        execution = Execution(
            targets=file.targets,
            file=plan.name,
            plan_id=file.identity,
            batches=batches,
            throttle=throttle,
            sizes=sizes,
            clear_at_end=how.wait,
        )
        made = plan_execution(cluster, execution, state)
        return carry_out(frame, how, cluster, made, [move_row(move) for move in moves])


def read_for(
    cluster: Cluster,
    targets: Iterable[TopicPartition],
    version: KafkaVersion | None,
    *,
    all_topics: bool = False,
) -> ClusterState:
    """The state of a plan's topics, or of all, with the configurations that throttles are in."""
    names = None if all_topics else sorted({tp.topic for tp in targets})
    from kctl.cluster.throttle_keys import LISTS, RATES

    return cluster.read_state(
        names, configs=("topics", "brokers"), config_keys=(*LISTS, *RATES), kafka_version=version
    )


@command(
    "cancel",
    examples="""
    kctl reassign cancel drain-2.json
    kctl reassign cancel drain-2.json --timeout 10m
    kctl reassign cancel drain-2.json --move-controller --reason "broker 4 is gone for good"
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=600)
@click.argument("plan", type=GIVEN_PATH)
@click.option(
    "--move-controller",
    is_flag=True,
    help="Where the request never ends: replace it and make another broker controller.",
)
def cancel(frame: Frame, how: How, plan: Path, move_controller: bool) -> Outcome:
    """Take what is moving back to where it came from.

    Waits until the controller has taken the request away, then asks for the way back. A request with a dead
    target never goes; --move-controller is for that, and refused unless all brokers to go back to are alive.
    """
    from kctl.cluster.cancellation import plan_cancellation
    from kctl.cluster.plan_files import read_plan

    file = read_plan(plan)
    with open_for_change(frame) as cluster:
        made = plan_cancellation(
            cluster,
            file,
            origins_known(frame, plan),
            version=pinned(how.kafka_version),
            move_controller=move_controller,
            wait_seconds=how.timeout if how.wait and not how.dry_run else 0,
            progress=frame.progress(),
        )
        return carry_out(frame, how, cluster, made)


def origins_known(frame: Frame, plan: Path) -> dict[TopicPartition, tuple[int, ...]]:
    """Where the plan's partitions were, from the rollback file beside it and from the journal."""
    from kctl.changes.intents import Reassign
    from kctl.changes.journal import Journal
    from kctl.cluster.plan_files import file_names, read_plan
    from kctl.cluster.verification import entries_of

    found: dict[TopicPartition, tuple[int, ...]] = {}
    rollback = file_names(plan, 0).rollback
    if rollback.exists():
        found |= read_plan(rollback).targets
    for entry in entries_of(Journal().entries(frame.report), read_plan(plan).identity):
        for stage in entry.stages:
            if isinstance(stage.intent, Reassign):
                found |= stage.intent.origins
    return found
