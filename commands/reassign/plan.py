"""`kctl reassign plan`; and the options of batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.cli import completing
from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, PARTITION, TOPICS, Brokers, Size, flag, option
from commands.cli.render import Outcome
from commands.topic import note_hidden, note_problems
from formats.whole_numbers import whole_number
from kctl.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from kctl.operations.reassignment.planner import ReassignmentGoal

PLAN_STATUS = (
    "0 planned, or nothing to move · 2 wrong usage · 3 unknown topic, no connection · "
    "4 refused: not possible, or a file exists"
)
DISK_SIZES = option(
    "--disk-sizes FILE",
    "Sizes of replicas: output of kafka-log-dirs, or a folder of log directories.",
    type=GIVEN_PATH,
)
BATCHES = (
    option("--max-batch-bytes", "Maximum size of a batch's request.", type=Size(), default="500000"),
    option("--max-batch-data", "Maximum bytes moved by a batch; needs --disk-sizes.", type=Size()),
    option("--max-batch-moves N", "Maximum partitions in a batch.", type=click.IntRange(1)),
)


def _of_brokers(name: str, does: str) -> Callable[..., Any]:
    return option(f"{name} IDS", does, type=Brokers(), shell_complete=completing.brokers)


def batch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the limits of a batch."""
    for limit in reversed(BATCHES):
        function = limit(function)
    return function


def printed_plan(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a plan from what Kafka's tool printed."""
    for name, words in (("proposed", "the proposed plan"), ("current", "the present assignment")):
        choose = flag(
            f"--{name}", f"PLAN is what kafka-reassign-partitions printed: take {words}.", into="printed",
            flag_value=name, default=None,
        )  # fmt: skip
        function = choose(function)
    return function


@command("plan", status=PLAN_STATUS)
@reads
@TOPICS
@PARTITION
@_of_brokers("--brokers", "Spread all replicas evenly over these brokers.")
@_of_brokers("--add", "Move a fair share of replicas to these brokers.")
@_of_brokers("--drain", "Move all replicas off these brokers.")
@option("--replace OLD=NEW...", "Replace broker OLD with NEW; repeatable.")
@option("--replication-factor N", "Set the replication factor (can also lower it).", type=int)
@option("--balance-disks BROKER", "Even out the bytes of BROKER's log directories.", type=click.IntRange(0))
@option(
    "--log-dir BROKER=DIR",
    "Move BROKER's replicas, or only those of --topics and --partition, to its log directory DIR.",
)
@DISK_SIZES
@flag("--disable-rack-aware", "Ignore racks when placing replicas.")
@flag("--like-kafka", "Place all replicas with the algorithm of Kafka's tool.")
@option("--seed N", "With --like-kafka: seed of the random start.", type=int)
@batch_options
@option("--to FILE", "Write the plan to FILE.", required=True, type=GIVEN_PATH)
def plan(frame: Frame, at: At, to: Path, **options: Any) -> Outcome:
    """Plan replica moves, as few as possible, and write the plan to files.

    PLAN.json is the whole plan in the format of Kafka's tool, PLAN.rollback.json undoes it, and PLAN.001.json
    and so on are its batches. Nothing in the cluster changes.

    $ kctl reassign plan --drain 2 --to drain-2.json
    $ kctl reassign plan --brokers 1,2,3,4 --to even.json --disk-sizes log-dirs.json
    $ kctl reassign plan --topics orders,payments --replication-factor 3 --to rf3.json
    $ kctl reassign plan --replace 2=5 --to replace.json --snapshot znodes.jsonl
    $ kctl reassign plan --balance-disks 2 --to disks-2.json
    $ kctl reassign plan --topics orders --partition 0 --log-dir 2=/data-2/kafka --to orders-0.json
    """
    from commands.reassign.rows import plan_rows, plan_text
    from kctl.changes.kinds.throttles import refuse_unseen
    from kctl.cluster.visibility import refuse_partial
    from kctl.operations.reassignment.plan_files import write_plan
    from kctl.operations.reassignment.planner import plan as plan_moves
    from kctl.operations.reassignment.planner import plan_like_kafka
    from kctl.operations.reassignment.replica_sizes import partition_sizes, read_disk_sizes

    if options["partitions"] and not options["log_dir"]:
        raise BadValue("--partition goes with --log-dir only", "give --log-dir, or leave --partition out")
    if options["balance_disks"] is not None or options["log_dir"]:
        return _plan_disks(frame, at, to, options)
    goal = _goal(options)
    disk_sizes = options["disk_sizes"]
    sizes = partition_sizes(read_disk_sizes(disk_sizes)) if disk_sizes else None
    with at.open(frame, needs_controller=True) as cluster:
        state = cluster.read_state(kafka_version=at.version, visibility=goal.topics is None)
        refuse_unseen(cluster, goal.topics, state)
        if sizes is None and (known := cluster.replica_sizes(goal.topics)) is not None:
            sizes = partition_sizes(known)
        if (leaving := goal.drain | frozenset(goal.replace)) and goal.topics is None:
            refuse_partial(
                cluster, state, leaving, "draining a broker" if goal.drain else "replacing a broker"
            )
    note_problems(frame, state.problems)
    note_hidden(frame, state)
    if options["like_kafka"]:
        planned = plan_like_kafka(state, goal, seed=options["seed"], sizes=sizes)
    else:
        planned = plan_moves(state, goal, sizes)
    for note in planned.notes:
        frame.note(note)
    batches = planned.batches(
        most_bytes=options["max_batch_bytes"],
        most_data=options["max_batch_data"],
        most_moves=options["max_batch_moves"],
    )
    names = write_plan(to, planned.targets, planned.origins, batches)
    return Outcome(plan_rows(planned, names, batches), text=plan_text)


def _goal(options: dict[str, Any]) -> ReassignmentGoal:
    from kctl.operations.reassignment.planner import ReassignmentGoal

    goals = _goals(options)
    if not goals and options["replication_factor"] is None:
        raise BadValue(
            "nothing to plan",
            "give --brokers, --add, --drain, --replace, --replication-factor, --balance-disks or --log-dir",
        )
    if options["max_batch_data"] is not None and options["disk_sizes"] is None:
        raise BadValue(
            "--max-batch-data needs --disk-sizes", "give --disk-sizes with what kafka-log-dirs prints"
        )
    if options["like_kafka"] and not options["brokers"]:
        raise BadValue("--like-kafka needs --brokers", "name the brokers with --brokers")
    return ReassignmentGoal(
        brokers=options["brokers"] or frozenset(),
        add=options["add"] or frozenset(),
        drain=options["drain"] or frozenset(),
        replace=_pairs(options["replace"]),
        replication_factor=options["replication_factor"],
        topics=options["topics"],
        rack_aware=not options["disable_rack_aware"],
    )


def _goals(options: dict[str, Any]) -> list[str]:
    """The options given of which there can be one."""
    names = ("balance_disks", "log_dir", "brokers", "add", "drain", "replace")
    goals = [name.replace("_", "-") for name in names if options[name] not in (None, frozenset(), ())]
    if len(goals) > 1:
        raise BadValue(f"--{goals[0]} and --{goals[1]} exclude each other", "give one of them")
    return goals


def _plan_disks(frame: Frame, at: At, to: Path, options: dict[str, Any]) -> Outcome:
    """A plan of moves between the disks of one broker."""
    from commands.reassign.rows import disk_plan_rows, plan_text
    from kctl.changes.kinds.throttles import refuse_unseen
    from kctl.cluster.moves import cut
    from kctl.operations.reassignment.disk_balance import plan_balance, plan_to_log_dir
    from kctl.operations.reassignment.disk_moves import refuse_disks
    from kctl.operations.reassignment.plan_files import write_plan

    _goals(options)
    path = ""
    if (broker := options["balance_disks"]) is None:
        name, equals, path = options["log_dir"].partition("=")
        broker = whole_number(name)
        if not equals or broker is None or not path.startswith("/"):
            raise BadValue(
                f"--log-dir {options['log_dir']!r} is not BROKER=DIR with an absolute path",
                "write it as 3=/data/kafka-2",
            )
    with at.open(frame, needs_controller=True) as cluster:
        refuse_disks(cluster.can)
        state = cluster.read_state(kafka_version=at.version, log_dirs_of=[broker])
        topics = options["topics"]
        refuse_unseen(cluster, topics, state)
    planned = (
        plan_to_log_dir(state, broker, path, topics, options["partitions"])
        if path
        else plan_balance(state, broker, topics)
    )
    batches = cut(
        planned.replicas,
        {move.partition: move.size_in_bytes or 0 for move in planned.moves},
        most_bytes=options["max_batch_bytes"],
        most_data=options["max_batch_data"],
        most_moves=options["max_batch_moves"],
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
    pairs: dict[int, int] = {}
    for text in texts:
        old, new = map(whole_number, text.partition("=")[::2])
        if old is None or new is None or old == new:
            raise BadValue(f"--replace {text!r} is not OLD=NEW", "write it as 3=7")
        pairs[old] = new
    return pairs
