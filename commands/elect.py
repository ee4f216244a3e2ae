"""Elections: preferred, status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import At, open_for_change, pinned, reads
from commands.frame import Frame, command
from commands.lists import Names
from commands.render import Outcome, Row
from commands.topic import note_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kctl.cluster.elections import Candidate
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion


@command(
    "preferred",
    examples="""
    kctl elect preferred
    kctl elect preferred --topics orders,payments --yes
    kctl elect preferred --dry-run
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=120)
@click.option("--topics", type=Names(), metavar="A,B", help="Only these topics.")
def preferred(frame: Frame, how: How, topics: frozenset[str] | None) -> Outcome:
    """Make the first replica of each partition its leader, where it is alive, in sync and does not lead.

    A row says of each partition asked for, and of each that cannot be helped, how it ended.
    """
    from kctl.cluster.elections import WANTED, candidates, plan_preferred_election

    with open_for_change(frame) as cluster:
        state = _read(cluster, topics, pinned(how.kafka_version))
        found = candidates(state, topics)
        made = plan_preferred_election(cluster, state, found)
        wanted = [one for one in found if one.state == WANTED]
        hopeless = [one for one in found if one.state == "failed"]
        for one in hopeless[:5]:
            frame.note(f"{one.partition} is left as it is: {one.reason}")
        if how.dry_run or not wanted:
            return carry_out(frame, how, cluster, made, _rows([*wanted, *hopeless], state))
        outcome = carry_out(frame, how, cluster, made)
        after = _read(cluster, topics, pinned(how.kafka_version))
        ended = {one.partition: one for one in candidates(after, topics)}
        rows = list(
            _rows([ended[one.partition] for one in [*wanted, *hopeless] if one.partition in ended], after)
        )
        return Outcome([*rows, *outcome.rows], text=outcome.text)


@command(
    "status",
    examples="""
    kctl elect status
    kctl elect status --topics orders --all --output jsonl
    kctl elect status --snapshot znodes.jsonl
    """,
    status="0 every partition is led by its preferred leader · 3 could not · 5 some are not",
)
@reads
@click.option("--topics", type=Names(), metavar="A,B", help="Only these topics.")
@click.option("--all", "everything", is_flag=True, help="Also partitions that their preferred replica leads.")
def status(frame: Frame, at: At, topics: frozenset[str] | None, everything: bool) -> Outcome:
    """Show the partitions that another than their preferred replica leads, and what an election would do."""
    from kctl.cluster.elections import LED, candidates

    with at.open(frame) as cluster:
        state = _read(cluster, topics, at.version)
    note_problems(frame, state)
    found = candidates(state, topics)
    wrong = [one for one in found if one.state != LED]
    if wrong:
        frame.raise_status(5)
    if state.election is not None:
        frame.note("a preferred election is under way")
    rows = _rows(found if everything else wrong, state)
    return Outcome(rows, nothing="every partition is led by its preferred replica")


def _read(cluster: Cluster, topics: frozenset[str] | None, version: KafkaVersion | None) -> ClusterState:
    from kctl.errors import KctlError

    state = cluster.read_state(topics, kafka_version=version)
    missing = sorted((topics or frozenset()) - set(state.topic_names))
    if missing:
        raise KctlError(f"no topic {', '.join(missing)}", "`kctl topic list` lists them")
    return state


def _rows(found: Sequence[Candidate] | Iterable[Candidate], state: ClusterState) -> Iterator[Row]:
    from kctl.rows.cluster_wide import ELECTION

    waiting = set(state.election.partitions) if state.election else set()
    for one in found:
        replicas = state.replicas(one.partition) or ()
        present = state.partition_states.get(one.partition)
        yield ELECTION(
            topic=one.partition.topic,
            partition=one.partition.partition,
            state="in_progress" if one.partition in waiting and one.state == "not_started" else one.state,
            replicas=list(replicas),
            isr=list(present.isr) if present else [],
            leader=present.leader if present else None,
            preferred_leader=replicas[0] if replicas else None,
            reason=one.reason,
        )
