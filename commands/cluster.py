"""The cluster as a whole: describe, brokers, controller, health, predict."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from commands.cluster_rows import (
    broker_rows,
    brokers_text,
    cluster_row,
    controller_row,
    health_row,
    health_text,
    prediction_row,
    prediction_text,
    quorum_rows,
)
from commands.connecting import At, reads
from commands.frame import Frame, command
from commands.lists import Names, OrderedBrokers
from commands.render import Outcome
from commands.topic import READ_STATUS, note_problems

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster


@command(
    "describe",
    examples="""
    kctl cluster describe
    kctl cluster describe --snapshot znodes.jsonl --output json
    """,
    status=READ_STATUS,
)
@reads
def describe(frame: Frame, at: At) -> Outcome:
    """Describe the cluster: version, controller, counts; of KRaft the quorum and the features as well."""
    with at.open(frame) as cluster:
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version)
        backend = cluster.backend
    note_problems(frame, state)
    return Outcome([cluster_row(state, backend), *quorum_rows(state)])


@command(
    "brokers",
    examples="""
    kctl cluster brokers
    kctl cluster brokers --output jsonl
    """,
    status=READ_STATUS,
)
@reads
def brokers(frame: Frame, at: At) -> Outcome:
    """List the brokers, those that are dead and hold replicas as well, with what they hold and lead."""
    with at.open(frame) as cluster:
        state = cluster.read_state(kafka_version=at.version)
    note_problems(frame, state)
    return Outcome(broker_rows(state), text=brokers_text)


@command(
    "controller",
    examples="""
    kctl cluster controller
    kctl cluster controller --output jsonl
    """,
    status="0 there is a controller · 3 could not · 5 there is none, or it is not alive",
)
@reads
def controller(frame: Frame, at: At) -> Outcome:
    """Show who is controller, since when, and of which epoch."""
    with at.open(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=at.version)
    row = controller_row(state)
    if not row["is_alive"]:
        frame.raise_status(5)
    return Outcome([row])


@command(
    "health",
    examples="""
    kctl cluster health
    kctl cluster health --watch 10
    kctl cluster health --snapshot znodes.jsonl --output jsonl
    """,
    status="0 nothing is wrong · 3 could not · 5 a check found a warning or an error",
)
@reads
@click.option(
    "--watch", type=click.FloatRange(0), default=0, metavar="SECONDS", help="Look for a loop of controllers."
)
def health(frame: Frame, at: At, watch: float) -> Outcome:
    """Check everything that can be seen to be wrong, a row a check."""
    from kctl.cluster.health import Seen, check_health

    with at.open(frame) as cluster:
        growth = _epoch_growth(cluster, watch) if watch and at.snapshot is None else 0
        state = cluster.read_state(configs=("topics", "brokers"), kafka_version=at.version)
        now = int(time.time() * 1000)
        if at.snapshot is not None:
            now = max([b.registered_at or 0 for b in state.brokers.values()], default=0)
        oddities = cluster.read_oddities(state, now)
    found = list(check_health(Seen(state, oddities, now, growth)))
    if any(one.status in ("warning", "error") for one in found):
        frame.raise_status(5)
    return Outcome([health_row(one) for one in found], text=health_text)


def _epoch_growth(cluster: Cluster, seconds: float) -> int:
    """By how much the controller epoch grows in so many seconds."""
    first = cluster.read_state((), partition_states=False).controller
    time.sleep(seconds)
    last = cluster.read_state((), partition_states=False).controller
    if first is None or last is None or first.epoch is None or last.epoch is None:
        return 0
    return last.epoch - first.epoch


@command(
    "predict",
    examples="""
    kctl cluster predict --stop 3
    kctl cluster predict --stop 3,5 --how controlled --topics orders
    kctl cluster predict --stop 1,2 --unclean --snapshot znodes.jsonl
    """,
    status="0 nothing goes offline or under min ISR · 2 a broker is not alive · 3 could not · 5 something does",
)
@reads
@click.option("--stop", type=OrderedBrokers(), required=True, metavar="IDS", help="The brokers that stop.")
@click.option(
    "--how",
    type=click.Choice(("crash", "controlled")),
    default="crash",
    show_default=True,
    help="All at once, or shut down one after the other in the order given.",
)
@click.option("--topics", type=Names(), metavar="A,B", help="Only these topics.")
@click.option(
    "--unclean/--no-unclean",
    default=None,
    help="What unclean.leader.election.enable is in the brokers' own files.  [default: as the version has it]",
)
@click.option("--all", "everything", is_flag=True, help="Also partitions that nothing happens to.")
def predict(
    frame: Frame,
    at: At,
    stop: tuple[int, ...],
    how: str,
    topics: frozenset[str] | None,
    unclean: bool | None,
    everything: bool,
) -> Outcome:
    """Say which leader each partition would get if brokers stopped, and which would have none."""
    from kctl.cluster.prediction import predict as predicted
    from kctl.errors import KctlError

    with at.open(frame) as cluster:
        state = cluster.read_state(topics, configs=("topics", "brokers"), kafka_version=at.version)
    note_problems(frame, state)
    missing = sorted((topics or frozenset()) - set(state.topic_names))
    if missing:
        raise KctlError(f"no topic {', '.join(missing)}")
    found = list(predicted(state, stop, how=how, unclean=unclean))
    affected = [one for one in found if one.outcome != "unaffected"]
    if any(one.outcome in ("offline", "unclean") or one.is_under_min_isr for one in affected):
        frame.raise_status(5)
    return Outcome((prediction_row(one) for one in (found if everything else affected)), text=prediction_text)
