"""`kctl elect`: preferred, unclean, status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_brokers_for_change, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import TOPICS, flag, option
from commands.cli.render import Outcome, Row
from commands.topic import note_hidden, note_problems
from kctl.errors import KctlError
from kctl.rows.cluster_wide import CANDIDATE, ELECTION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.cluster.versions import KafkaVersion
    from kctl.operations.elections import ElectionCandidate
    from kctl.operations.unclean import UncleanCandidate


@command("preferred", status=CHANGE_STATUS)
@changes(timeout=120)
@TOPICS
def preferred(frame: Frame, how: How, topics: frozenset[str] | None) -> Outcome:
    """Elect the preferred leader of each partition.

    The preferred leader is the first replica; it must be alive and in sync. A row shows the result for each
    partition that had another leader.

    $ kctl elect preferred
    $ kctl elect preferred --topics orders,payments --yes
    $ kctl elect preferred --dry-run
    """
    from kctl.cluster.state import NO_LEADER
    from kctl.operations.elections import WANTED, candidates, plan_preferred_election

    with open_for_change(frame) as cluster:
        state = _read(cluster, topics, how.version)
        note_hidden(frame, state)
        chosen = candidates(state, topics)
        plan = plan_preferred_election(cluster, state, chosen)
        electable = [candidate for candidate in chosen if candidate.state == WANTED]
        hopeless = [candidate for candidate in chosen if candidate.state == "failed"]
        for candidate in hopeless[:5]:
            led = state.partition_states.get(candidate.partition)
            keeps = "keeps its leader" if led and led.leader != NO_LEADER else "stays without a leader"
            frame.note(f"{candidate.partition} {keeps}: {candidate.reason}")
        if how.dry_run or not electable:
            return carry_out(frame, how, cluster, plan, _rows([*electable, *hopeless], state))
        outcome = carry_out(frame, how, cluster, plan)
        if (after := _read_after(frame, cluster, topics, how.version)) is None:
            return outcome
        results = {candidate.partition: candidate for candidate in candidates(after, topics)}
        shown = [results[old.partition] for old in [*electable, *hopeless] if old.partition in results]
        return Outcome([*_rows(shown, after), *outcome.rows], text=outcome.text)


@command("unclean", status=CHANGE_STATUS)
@changes(timeout=120)
@click.argument(
    "partitions", nargs=-1, required=True, metavar="TOPIC[:PARTITION]...", shell_complete=completing.topics
)
@option("--to BROKER", "Elect this broker instead of the one that loses least.", type=int)
@flag("--accept-loss", "Accept that lost records cannot be restored.")
def unclean(
    frame: Frame, how: How, partitions: tuple[str, ...], to: int | None, accept_loss: bool
) -> Outcome:
    """Elect a leader outside the ISR, with a forecast of what is lost.

    Works only on partitions without a leader. A row for each replica shows its log end and how many records would be
    lost, at least and at most, if it became leader; kctl proposes the replica that loses least. After the election kctl
    asks the new leader for its log end.

    $ kctl elect unclean orders:3 --dry-run
    $ kctl elect unclean orders:3 --accept-loss
    $ kctl elect unclean orders --to 2 --accept-loss --yes
    """
    from kctl.cluster.names import partitions_named, topics_named
    from kctl.operations.unclean import is_leaderless, plan_unclean_election
    from kctl.wire.replicas.epochs import lost_records, read_candidates

    with open_brokers_for_change(frame) as cluster:
        topics = topics_named(partitions)
        state = _read(cluster, frozenset(topics), how.version)
        chosen = [tp for tp in partitions_named(partitions, state) if is_leaderless(tp, state)]
        candidates = read_candidates(cluster.wire, state, chosen, to)
        rows = [CANDIDATE.of(candidate) for candidate in candidates]
        plan = plan_unclean_election(cluster, state, candidates, rows, accepted=accept_loss)
        if how.dry_run or plan.is_empty or plan.needs:
            return carry_out(frame, how, cluster, plan, rows)
        outcome = carry_out(frame, how, cluster, plan, rows)
        if (after := _read_after(frame, cluster, frozenset(topics), how.version)) is None:
            return outcome
        lost = lost_records(cluster.wire, after, candidates)
        proposed = [candidate for candidate in candidates if candidate.is_proposed]
        results = [_elected_row(candidate, after, lost.get(candidate.partition)) for candidate in proposed]
        return Outcome([*list(outcome.rows)[:-1], *results, *list(outcome.rows)[-1:]], text=outcome.text)


def _read_after(
    frame: Frame, cluster: Cluster, topics: frozenset[str] | None, version: KafkaVersion | None
) -> ClusterState | None:
    """The state behind an election; None where it cannot be read, which is reported: what was written is said all the same."""
    try:
        return _read(cluster, topics, version)
    except KctlError as error:
        frame.report(error)
        return None


def _elected_row(candidate: UncleanCandidate, after: ClusterState, lost: int | None) -> Row:
    tp = candidate.partition
    replicas, now = after.replicas(tp) or (), after.partition_states.get(tp)
    leads = now is not None and now.leader == candidate.broker_id
    return ELECTION(
        **tp._asdict(),
        state="done" if leads else "failed",
        replicas=list(replicas),
        isr=list(now.isr) if now else [],
        leader=now.leader if now else None,
        preferred_leader=replicas[0] if replicas else None,
        reason=None if leads else f"broker {candidate.broker_id} does not lead it",
        lost_at_least=lost,
        lost_at_most=None if candidate.lost_at_most is None else lost,
    )


@command("status", status="0 every partition is led by its preferred leader · 3 failed · 5 some are not")
@reads
@TOPICS
@flag("--all", "Include partitions led by their preferred leader.", into="everything")
def status(frame: Frame, at: At, topics: frozenset[str] | None, everything: bool) -> Outcome:
    """Show partitions not led by their preferred leader, and what an election would do.

    $ kctl elect status
    $ kctl elect status --topics orders --all --output jsonl
    $ kctl elect status --snapshot znodes.jsonl
    """
    from kctl.operations.elections import LED, candidates

    with at.open(frame) as cluster:
        state = _read(cluster, topics, at.version)
    note_problems(frame, state.problems)
    note_hidden(frame, state)
    chosen = candidates(state, topics)
    wrong = [candidate for candidate in chosen if candidate.state != LED]
    if wrong:
        frame.raise_status(5)
    if state.election is not None:
        frame.note("a preferred election is in progress")
    rows = _rows(chosen if everything else wrong, state)
    return Outcome(rows, nothing="every partition is led by its preferred leader")


def _read(cluster: Cluster, topics: frozenset[str] | None, version: KafkaVersion | None) -> ClusterState:

    from kctl.cluster.names import refuse_absent

    state = cluster.read_state(topics, kafka_version=version, visibility=topics is None)
    refuse_absent(topics, state)
    return state


def _rows(chosen: Iterable[ElectionCandidate], state: ClusterState) -> Iterator[Row]:
    waiting = set(state.election.partitions) if state.election else set()
    for candidate in chosen:
        replicas = state.replicas(candidate.partition) or ()
        stored = state.partition_states.get(candidate.partition)
        is_waiting = candidate.partition in waiting and candidate.state == "not_started"
        yield ELECTION.of(
            candidate,
            state="in_progress" if is_waiting else candidate.state,
            replicas=list(replicas),
            isr=list(stored.isr) if stored else [],
            leader=stored.leader if stored else None,
            preferred_leader=replicas[0] if replicas else None,
            lost_at_least=None,
            lost_at_most=None,
        )
