"""`kctl reassign plan`; and the options of batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, PARTITION, TOPICS, Brokers, Size
from commands.cli.render import Outcome
from commands.topic import note_problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from kctl.cluster.reassignment.planner import Goal

PLAN_STATUS = (
    "0 planned, or nothing to move · 2 wrong usage · 3 unknown topic, no connection · "
    "4 refused: not possible, or a file exists"
)
DISK_SIZES = click.option(
    "--disk-sizes", type=GIVEN_PATH, metavar="FILE",
    help="Sizes of replicas: output of kafka-log-dirs, or a folder of log directories.",
)  # fmt: skip
BATCHES = (
    click.option(
        "--max-batch-bytes",
        type=Size(),
        default="500000",
        show_default=True,
        help="Maximum size of a batch's request.",
    ),
    click.option("--max-batch-data", type=Size(), help="Maximum bytes moved by a batch; needs --disk-sizes."),
    click.option(
        "--max-batch-moves", type=click.IntRange(1), metavar="N", help="Maximum partitions in a batch."
    ),
)


def batch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the limits of a batch."""
    for option in reversed(BATCHES):
        function = option(function)
    return function


@command(
    "plan",
    examples="""
    kctl reassign plan --drain 2 --to drain-2.json
    kctl reassign plan --brokers 1,2,3,4 --to even.json --disk-sizes log-dirs.json
    kctl reassign plan --topics orders,payments --replication-factor 3 --to rf3.json
    kctl reassign plan --replace 2=5 --to replace.json --snapshot znodes.jsonl
    kctl reassign plan --balance-disks 2 --to disks-2.json
    kctl reassign plan --topics orders --partition 0 --log-dir 2=/data-2/kafka --to orders-0.json
    """,
    status=PLAN_STATUS,
)
@reads
@TOPICS
@PARTITION
@click.option(
    "--brokers", type=Brokers(), metavar="IDS", help="Spread all replicas evenly over these brokers."
)
@click.option("--add", type=Brokers(), metavar="IDS", help="Move a fair share of replicas to these brokers.")
@click.option("--drain", type=Brokers(), metavar="IDS", help="Move all replicas off these brokers.")
@click.option("--replace", multiple=True, metavar="OLD=NEW", help="Replace broker OLD with NEW; repeatable.")
@click.option(
    "--replication-factor", type=int, metavar="N", help="Set the replication factor (can also lower it)."
)
@click.option(
    "--balance-disks",
    type=click.IntRange(0),
    metavar="BROKER",
    help="Even out the bytes of BROKER's log directories.",
)
@click.option(
    "--log-dir",
    metavar="BROKER=DIR",
    help="Move BROKER's replicas to its log directory DIR; with --topics and --partition these.",
)
@DISK_SIZES
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks when placing replicas.")
@click.option("--like-kafka", is_flag=True, help="Place all replicas with the algorithm of Kafka's tool.")
@click.option("--seed", type=int, metavar="N", help="With --like-kafka: seed of the random start.")
@batch_options
@click.option("--to", required=True, type=GIVEN_PATH, metavar="FILE", help="Write the plan to FILE.")
def plan(frame: Frame, at: At, to: Path, **given: Any) -> Outcome:
    """Plan replica moves, as few as possible, and write the plan to files.

    PLAN.json is the whole plan in the format of Kafka's tool, PLAN.rollback.json undoes it, and PLAN.001.json
    and so on are its batches. Nothing in the cluster changes.
    """
    from commands.reassign.rows import plan_rows, plan_text
    from kctl.cluster.reassignment.plan_files import write_plan
    from kctl.cluster.reassignment.planner import plan as plan_moves
    from kctl.cluster.reassignment.planner import plan_like_kafka
    from kctl.cluster.reassignment.replica_sizes import partition_sizes, read_disk_sizes
    from kctl.errors import BadValue

    if given["partitions"] and not given["log_dir"]:
        raise BadValue("--partition goes with --log-dir only", "give --log-dir, or leave --partition out")
    if given["balance_disks"] is not None or given["log_dir"]:
        return _plan_disks(frame, at, to, given)
    goal = _goal(given)
    disk_sizes = given["disk_sizes"]
    sizes = partition_sizes(read_disk_sizes(disk_sizes)) if disk_sizes else None
    with at.open(frame, needs_controller=True) as cluster:
        state = cluster.read_state(kafka_version=at.version)
        if sizes is None and (known := cluster.replica_sizes(goal.topics)) is not None:
            sizes = partition_sizes(known)
    note_problems(frame, state)
    if given["like_kafka"]:
        planned = plan_like_kafka(state, goal, seed=given["seed"], sizes=sizes)
    else:
        planned = plan_moves(state, goal, sizes)
    for note in planned.notes:
        frame.note(note)
    batches = planned.batches(
        most_bytes=given["max_batch_bytes"],
        most_data=given["max_batch_data"],
        most_moves=given["max_batch_moves"],
    )
    names = write_plan(to, planned.targets, planned.origins, batches)
    return Outcome(plan_rows(planned, names, batches), text=plan_text)


def _goal(given: dict[str, Any]) -> Goal:
    from kctl.cluster.reassignment.planner import Goal
    from kctl.errors import BadValue

    goals = _goals(given)
    if not goals and given["replication_factor"] is None:
        raise BadValue(
            "nothing to plan",
            "give --brokers, --add, --drain, --replace, --replication-factor, --balance-disks or --log-dir",
        )
    if given["max_batch_data"] is not None and given["disk_sizes"] is None:
        raise BadValue(
            "--max-batch-data needs --disk-sizes", "give --disk-sizes with what kafka-log-dirs prints"
        )
    if given["like_kafka"] and not given["brokers"]:
        raise BadValue("--like-kafka needs --brokers", "name the brokers with --brokers")
    return Goal(
        brokers=given["brokers"] or frozenset(),
        add=given["add"] or frozenset(),
        drain=given["drain"] or frozenset(),
        replace=_pairs(given["replace"]),
        replication_factor=given["replication_factor"],
        topics=given["topics"],
        rack_aware=not given["disable_rack_aware"],
    )


def _goals(given: dict[str, Any]) -> list[str]:
    """The options given of which there can be one."""
    from kctl.errors import BadValue

    names = ("balance_disks", "log_dir", "brokers", "add", "drain", "replace")
    goals = [name.replace("_", "-") for name in names if given[name] not in (None, frozenset(), ())]
    if len(goals) > 1:
        raise BadValue(f"--{goals[0]} and --{goals[1]} exclude each other", "give one of them")
    return goals


def _plan_disks(frame: Frame, at: At, to: Path, given: dict[str, Any]) -> Outcome:
    """A plan of moves between the disks of one broker."""
    from commands.reassign.rows import disk_plan_rows, plan_text
    from kctl.cluster.names import unknown_topics
    from kctl.cluster.reassignment.disk_balance import plan_balance, plan_to_log_dir
    from kctl.cluster.reassignment.disk_moves import refuse_backend
    from kctl.cluster.reassignment.moves import cut
    from kctl.cluster.reassignment.plan_files import write_plan
    from kctl.errors import BadValue

    _goals(given)
    path = ""
    if (broker := given["balance_disks"]) is None:
        name, equals, path = given["log_dir"].partition("=")
        if not equals or not name.isdigit() or not path.startswith("/"):
            raise BadValue(
                f"--log-dir {given['log_dir']!r} is not BROKER=DIR with an absolute path",
                "write it as 3=/data/kafka-2",
            )
        broker = int(name)
    with at.open(frame, needs_controller=True) as cluster:
        refuse_backend(cluster.backend)
        state = cluster.read_state(kafka_version=at.version, log_dirs_of=[broker])
    topics = given["topics"]
    if missing := sorted(set(topics or ()) - set(state.topics)):
        raise unknown_topics(missing, state.topic_names)
    planned = (
        plan_to_log_dir(state, broker, path, topics, given["partitions"])
        if path
        else plan_balance(state, broker, topics)
    )
    sizes = {move.partition: move.size_in_bytes or 0 for move in planned.moves}
    batches = cut(
        planned.replicas,
        lambda tp: sizes[tp],
        most_bytes=given["max_batch_bytes"],
        most_data=given["max_batch_data"],
        most_moves=given["max_batch_moves"],
    )
    names = write_plan(
        to,
        planned.replicas,
        planned.replicas,
        batches,
        log_dirs=planned.log_dirs,
        previous_log_dirs=planned.previous_log_dirs,
    )
    return Outcome(disk_plan_rows(planned, names, batches), text=plan_text)


def _pairs(texts: tuple[str, ...]) -> dict[int, int]:
    from kctl.errors import BadValue

    pairs: dict[int, int] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals or not old.isdigit() or not new.isdigit() or old == new:
            raise BadValue(f"--replace {text!r} is not OLD=NEW", "write it as 3=7")
        pairs[int(old)] = int(new)
    return pairs
