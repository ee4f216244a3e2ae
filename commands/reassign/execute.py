"""`kctl reassign execute` and `cancel`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import open_for_change
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, Size, flag, option
from commands.cli.render import Outcome
from commands.reassign.plan import DISK_SIZES, batch_options, printed_plan
from kctl.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion
    from kctl.model import TopicPartition


@command("execute", status=CHANGE_STATUS)
@changes(timeout=3600)
@click.argument("plan", type=GIVEN_PATH)
@printed_plan
@option("--throttle BYTES", "Limit of bytes per second, in and out, of each broker involved.", type=Size())
@DISK_SIZES
@batch_options
def execute(
    frame: Frame,
    how: How,
    plan: Path,
    printed: str | None,
    throttle: int | None,
    disk_sizes: Path | None,
    max_batch_bytes: int,
    max_batch_data: int | None,
    max_batch_moves: int | None,
) -> Outcome:
    """Execute a plan batch by batch, then remove its throttle.

    If the plan names log directories, kctl first moves these replicas between the disks of their brokers. This needs
    --bootstrap-server; --throttle limits these copies as well.

    With --no-wait, kctl requests only the first batch. `kctl journal resume` continues, and `kctl reassign verify`
    removes the throttle once all replicas are in place.

    $ kctl reassign execute drain-2.json --throttle 50MiB
    $ kctl reassign execute even.json --throttle 50MiB --disk-sizes log-dirs.json --yes --timeout 6h
    $ kctl reassign execute even.001.json --no-wait --reason OPS-812
    """
    from commands.reassign.rows import disk_move_row, move_row
    from kctl.cluster.moves import cut, moves_of
    from kctl.operations.reassignment.disk_moves import disk_moves
    from kctl.operations.reassignment.execution import Execution, plan_execution
    from kctl.operations.reassignment.plan_files import read_plan
    from kctl.operations.reassignment.replica_sizes import partition_sizes, read_disk_sizes

    file = read_plan(plan, printed, frame.note)
    if max_batch_data is not None and disk_sizes is None:
        raise BadValue(
            "--max-batch-data needs --disk-sizes", "give --disk-sizes with what kafka-log-dirs prints"
        )
    sizes = partition_sizes(read_disk_sizes(disk_sizes)) if disk_sizes else None
    with open_for_change(frame) as cluster:
        state = read_for(cluster, file.targets, how.version, log_dirs=file.log_dirs)
        origins = {tp: replicas for tp in file.targets if (replicas := state.replicas(tp))}
        moves = list(moves_of(file.targets, origins, sizes))
        batches = cut(
            {move.partition: move.target for move in moves},
            {move.partition: move.data for move in moves},
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
            log_dirs=file.log_dirs,
        )
        change = plan_execution(cluster, execution, state)
        rows = [move_row(move) for move in moves]
        rows += [disk_move_row(move) for move in disk_moves(file.log_dirs, state)]
        return carry_out(frame, how, cluster, change, rows)


def read_for(
    cluster: Cluster,
    targets: Iterable[TopicPartition],
    version: KafkaVersion | None,
    *,
    all_topics: bool = False,
    log_dirs: Iterable[tuple[TopicPartition, int]] = (),
) -> ClusterState:
    """The state of a plan's topics, or of all, with the configurations of throttles.

    And the log directories of the brokers with these replicas. Of all topics without a plan, whether some may be hidden.
    """
    from kctl.changes.kinds.throttles import KEYS
    from kctl.cluster.visibility import with_hidden_topics
    from kctl.operations.configs import MIN_ISR

    topics = sorted({tp.topic for tp in targets})
    state = cluster.read_state(
        None if all_topics else topics,
        configs=("topics", "brokers"),
        config_keys=(*KEYS, MIN_ISR),
        kafka_version=version,
        log_dirs_of={broker for _, broker in log_dirs},
        visibility=all_topics and not topics,
    )
    return with_hidden_topics(cluster, topics, state) if all_topics else state


@command("cancel", status=CHANGE_STATUS)
@changes(timeout=600)
@click.argument("plan", type=GIVEN_PATH)
@printed_plan
@flag("--move-controller", "Replace a request that never ends and elect another controller.")
def cancel(frame: Frame, how: How, plan: Path, printed: str | None, move_controller: bool) -> Outcome:
    """Cancel the moves of a plan, restore the original replicas and remove its throttle.

    With --bootstrap-server, brokers cancel running moves at once, and replicas being moved to another disk stay on their
    old disk. With --zookeeper, kctl waits until the controller has removed the request, then requests the original
    replicas. A request with a dead target never ends: --move-controller replaces it, if all original brokers are alive.

    $ kctl reassign cancel drain-2.json
    $ kctl reassign cancel drain-2.json --timeout 10m
    $ kctl reassign cancel drain-2.json --move-controller --reason "broker 4 is gone for good"
    """
    from kctl.changes.journal import Journal
    from kctl.operations.reassignment.cancellation import plan_cancellation
    from kctl.operations.reassignment.plan_files import read_plan
    from kctl.operations.reassignment.verification import entries_of

    file = read_plan(plan, printed, frame.note)
    with open_for_change(frame) as cluster:
        change = plan_cancellation(
            cluster,
            file,
            origins_known(frame, plan, file.identity),
            entries=entries_of(Journal().entries(frame.report), file.identity),
            version=how.version,
            move_controller=move_controller,
            wait_seconds=how.timeout if how.wait and not how.dry_run else 0,
            progress=frame.progress(),
        )
        return carry_out(frame, how, cluster, change)


def origins_known(frame: Frame, plan: Path, identity: str) -> dict[TopicPartition, tuple[int, ...]]:
    """The original replicas of a plan's partitions, from the rollback file beside it and the journal."""
    from kctl.changes.journal import Journal
    from kctl.changes.kinds.reassignments import Reassign
    from kctl.operations.reassignment.plan_files import file_names, read_plan
    from kctl.operations.reassignment.verification import entries_of

    origins: dict[TopicPartition, tuple[int, ...]] = {}
    rollback = file_names(plan, 0).rollback
    if rollback.exists():
        origins |= read_plan(rollback).targets
    for entry in entries_of(Journal().entries(frame.report), identity):
        for stage in entry.stages:
            if isinstance(stage.intent, Reassign):
                origins |= stage.intent.origins
    return origins
