"""Reassignment: plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.byte_sizes import Size
from commands.connecting import At, reads
from commands.frame import Frame, command
from commands.lists import Brokers, Names
from commands.live_sizes import live_sizes
from commands.path_types import GIVEN_PATH
from commands.render import Outcome
from commands.topic import note_problems

if TYPE_CHECKING:
    from kctl.cluster.goals import Goal
    from kctl.cluster.planned import Planned
    from kctl.cluster.state import ClusterState
    from kctl.model import TopicPartition

PLAN_STATUS = (
    "0 planned, or nothing to move · 2 wrong usage · 3 unknown topic, no connection · "
    "4 refused: it cannot be, or a file exists"
)


@command(
    "plan",
    examples="""
    kctl reassign plan --drain 2 --to drain-2.json
    kctl reassign plan --brokers 1,2,3,4 --to even.json --disk-sizes log-dirs.json
    kctl reassign plan --topics orders,payments --replication-factor 3 --to rf3.json
    kctl reassign plan --replace 2=5 --to replace.json --snapshot znodes.jsonl
    """,
    status=PLAN_STATUS,
)
@reads
@click.option("--topics", type=Names(), metavar="A,B", help="Only these topics.")
@click.option("--brokers", type=Brokers(), metavar="IDS", help="Have all replicas on these brokers, evenly.")
@click.option("--add", type=Brokers(), metavar="IDS", help="Give these brokers their share of the replicas.")
@click.option("--drain", type=Brokers(), metavar="IDS", help="Move everything off these brokers.")
@click.option(
    "--replace", multiple=True, metavar="OLD=NEW", help="Put one broker in another's place; may be repeated."
)
@click.option(
    "--replication-factor", type=int, metavar="N", help="Have so many replicas; the only way to have fewer."
)
@click.option(
    "--disk-sizes",
    type=GIVEN_PATH,
    metavar="FILE",
    help="What kafka-log-dirs prints, or a folder of log directories.",
)
@click.option("--disable-rack-aware", is_flag=True, help="Place replicas as if no broker had a rack.")
@click.option("--like-kafka", is_flag=True, help="Place everything anew with Kafka's own algorithm.")
@click.option("--seed", type=int, metavar="N", help="With --like-kafka: draw the same numbers each time.")
@click.option("--max-batch-bytes", type=Size(), default="500000", show_default=True, help="Of one request.")
@click.option("--max-batch-data", type=Size(), help="Bytes that one batch moves; needs --disk-sizes.")
@click.option("--max-batch-moves", type=click.IntRange(1), metavar="N", help="Partitions in one batch.")
@click.option("--to", required=True, type=GIVEN_PATH, metavar="FILE", help="The file of the plan.")
def plan(frame: Frame, at: At, to: Path, **given: Any) -> Outcome:
    """Plan where replicas go, with the fewest moves, and write the plan into files.

    PLAN.rollback.json is the way back, PLAN.json the whole plan in the form of Kafka's own tool, PLAN.001.json
    and so on its batches. Nothing in the cluster changes.
    """
    from commands.reassign_rows import plan_rows, plan_text
    from kctl.cluster.disk_sizes import partition_sizes, read_disk_sizes
    from kctl.cluster.plan_files import write_plan

    goal = _goal(given)
    sizes = None
    if isinstance(given["disk_sizes"], Path):
        sizes = partition_sizes(read_disk_sizes(given["disk_sizes"]))
    with at.open(frame) as cluster:
        state = cluster.read_state(kafka_version=at.version)
        if sizes is None and (known := live_sizes(cluster, goal.topics)) is not None:
            sizes = partition_sizes(known)
    note_problems(frame, state)
    planned = _planned(state, goal, sizes, given)
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
    from kctl.cluster.goals import Goal
    from kctl.errors import BadValue

    wanted = [n for n in ("brokers", "add", "drain", "replace") if given[n]]
    if len(wanted) > 1:
        raise BadValue(f"--{wanted[0]} and --{wanted[1]} are plans of their own")
    if not wanted and given["replication_factor"] is None:
        raise BadValue("nothing to plan", "give --brokers, --add, --drain, --replace or --replication-factor")
    if given["max_batch_data"] is not None and given["disk_sizes"] is None:
        raise BadValue("--max-batch-data needs --disk-sizes")
    if given["like_kafka"] and not given["brokers"]:
        raise BadValue("--like-kafka needs --brokers")
    return Goal(
        brokers=given["brokers"] or frozenset(),
        add=given["add"] or frozenset(),
        drain=given["drain"] or frozenset(),
        replace=_pairs(given["replace"]),
        replication_factor=given["replication_factor"],
        topics=given["topics"],
        rack_aware=not given["disable_rack_aware"],
    )


def _pairs(texts: tuple[str, ...]) -> dict[int, int]:
    from kctl.errors import BadValue

    found: dict[int, int] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not equals or not old.isdigit() or not new.isdigit() or old == new:
            raise BadValue(f"--replace {text!r} is not OLD=NEW")
        found[int(old)] = int(new)
    return found


def _planned(
    state: ClusterState, goal: Goal, sizes: dict[TopicPartition, int] | None, given: dict[str, Any]
) -> Planned:
    from kctl.cluster.planned import plan, plan_like_kafka

    if given["like_kafka"]:
        seed = given["seed"]
        return plan_like_kafka(state, goal, seed=seed if isinstance(seed, int) else None, sizes=sizes)
    return plan(state, goal, sizes)
