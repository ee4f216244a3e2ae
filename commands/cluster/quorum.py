"""`kctl quorum`: describe, add, remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import option
from commands.cli.render import Outcome, Page, Row, ids, table
from formats.whole_numbers import whole_number
from kctl.errors import BadValue, Refused
from kctl.rows.kraft import QUORUM, QUORUM_MEMBER

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState, Endpoint, Quorum, QuorumMember


def quorum_row(quorum: Quorum) -> Row:
    """The quorum in one row."""
    is_led = quorum.leader_id >= 0
    return QUORUM(
        leader_id=quorum.leader_id if is_led else None,
        leader_epoch=quorum.leader_epoch if is_led else None,
        high_watermark=quorum.high_watermark if is_led else None,
        voters=sorted(id for id in quorum.voters if id >= 0),
        has_majority=quorum.has_majority,
        dead_voters=sorted(id for id in quorum.dead_voters if id >= 0),
        replaced_voters=sorted(voter.node_id for voter, _ in quorum.replaced_voters),
        message=quorum.lost or "; ".join(map(_replaced, quorum.replaced_voters)) or None,
    )


def _replaced(pair: tuple[QuorumMember, QuorumMember]) -> str:
    from kctl.operations.kraft.voters import directory_gone

    number = pair[0].node_id
    return f"{directory_gone(*pair)}; `kctl quorum remove {number}`, then `kctl quorum add {number}`"


def member_rows(quorum: Quorum | None) -> Iterator[Row]:
    """The members, voters first; nothing for a cluster with ZooKeeper."""
    members = (
        sorted(quorum.members, key=lambda member: (not member.is_voter, member.node_id)) if quorum else []
    )
    newest = max((member.log_end_offset for member in members), default=0)
    latest = max((member.last_caught_up_at or 0 for member in members), default=0)
    for member in members:
        is_leader = quorum is not None and member.node_id == quorum.leader_id
        is_known = member.log_end_offset >= 0
        caught_up = member.last_caught_up_at
        yield QUORUM_MEMBER.of(
            member,
            node_id=member.node_id if member.node_id >= 0 else None,
            is_leader=is_leader,
            log_end_offset=member.log_end_offset if is_known else None,
            lag=newest - member.log_end_offset if is_known else None,
            last_caught_up_timestamp=caught_up,
            role="leader" if is_leader else "voter" if member.is_voter else "observer",
            last_fetch_timestamp=member.last_fetch_at,
            lag_time_ms=None if caught_up is None else latest - caught_up,
            endpoints=[
                f"{at.listener}{'://' if at.listener else ''}{at.host}:{at.port}" for at in member.endpoints
            ],
        )


def describe_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The quorum in a sentence, then a line for each member."""
    members = []
    for row in rows:
        if row["kind"] == "quorum":
            voters, dead = ids(row["voters"]), ids(row["dead_voters"])
            silent = f"; no answer from {dead}" if dead else ""
            sentence = f"leader {row['leader_id']}, epoch {row['leader_epoch']}, voters {voters}{silent}"
            if row["leader_id"] is None:
                sentence = str(row["message"] or "no active controller").partition(";")[0]
            style = (
                "good" if row["has_majority"] and not dead else "warning" if row["has_majority"] else "error"
            )
            yield page.style(sentence, style)
            if row["replaced_voters"]:
                yield str(row["message"])
        else:
            members.append(row)
    yield from members_text(members, page)


def members_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line for each member, with the keys that matter most."""
    yield from table(
        [
            {
                "node": "?" if row["node_id"] is None else row["node_id"],
                "address": ids(row["endpoints"]) if row["node_id"] is None else None,
                "role": row["role"],
                "log end": row["log_end_offset"],
                "lag": row["lag"],
                "behind": None
                if row["lag_time_ms"] is None
                else f"{float(str(row['lag_time_ms'])) / 1000:.1f} s",
                "directory": row["directory_id"],
                "": None if row["is_answering"] is not False else "does not answer",
            }
            for row in rows
        ],
        page,
    )


@command(
    "describe", status="0 all voters answer · 3 failed · 5 a voter does not answer, or there is no leader"
)
@reads
def describe(frame: Frame, at: At) -> Outcome:
    """Describe the quorum: leader, voters, observers and their lag.

    A voter counts as answering if it fetched from the leader in the last 2 s. Without a leader, the voters come from a
    broker's configuration and count as answering if they accept a connection.

    $ kctl quorum describe
    $ kctl quorum describe --output jsonl
    """
    from kctl.cluster.interface import no_quorum

    with at.open(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=at.version)
    if state.quorum is None:
        raise no_quorum(state)
    if not state.quorum.has_majority or state.quorum.dead_voters:
        frame.raise_status(5)
    return Outcome([quorum_row(state.quorum), *member_rows(state.quorum)], text=describe_text)


@command("add", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("nodes", nargs=-1, required=True, type=int, metavar="NODE...")
@option("--endpoint LISTENER://HOST:PORT", "Listener of the node.  [default: the listener the voters know]")
def add(frame: Frame, how: How, nodes: tuple[int, ...], endpoint: str | None) -> Outcome:
    """Add controllers to the voters.

    NODE must run as an observer and have caught up. kctl refuses if NODE does not accept a connection, because Kafka
    would record a dead address, and if no majority of the new voters would answer (KIP-853, Kafka 3.9).

    $ kctl quorum add 104
    $ kctl quorum add 104 --endpoint CONTROLLER://kafka-104:9093
    """
    from kctl.operations.kraft.voters import changeable_quorum, plan_adding

    if endpoint is not None and len(nodes) > 1:
        raise BadValue("--endpoint is where one node listens", "add the nodes one by one")
    with open_for_change(frame) as cluster:
        state = cluster.read_state((), partition_states=False, kafka_version=how.version)
        endpoints = _endpoints(cluster, changeable_quorum(state), nodes, endpoint)
        return carry_out(frame, how, cluster, plan_adding(cluster, state, nodes, endpoints))


def _endpoints(
    cluster: Cluster, quorum: Quorum, nodes: tuple[int, ...], address: str | None
) -> dict[int, Endpoint]:
    """Where the nodes that do not vote yet listen. Raises Refused where one does not take a connection."""
    from kctl.wire.quorum import listening

    endpoints = {nodes[0]: _parsed(address)} if address is not None else cluster.controllers(quorum)
    new_voters = {node: endpoints[node] for node in nodes if node in endpoints and node not in quorum.voters}
    up = listening(set(new_voters.values()), 3.0)
    for node, at in new_voters.items():
        if at not in up:
            raise Refused(
                f"node {node} does not accept connections at {at.host}:{at.port}; nothing was written",
                "check the address: Kafka would record it unchecked",
            )
    return new_voters


def _parsed(text: str) -> Endpoint:
    from kctl.cluster.state import Endpoint

    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    number = whole_number(port) or 0
    if not (listener and host and 0 < number < 65536):
        raise BadValue(
            f"{text!r} is not LISTENER://HOST:PORT", "write --endpoint CONTROLLER://kafka-104:9093"
        )
    return Endpoint(listener, host, number)


@command("remove", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("node", type=int, metavar="NODE")
def remove(frame: Frame, how: How, node: int) -> Outcome:
    """Remove a controller from the voters.

    A running controller continues as an observer. kctl refuses if no majority of the remaining voters answers: Kafka
    would accept the change and then commit nothing until enough voters are back (KIP-853, Kafka 3.9).

    $ kctl quorum remove 103
    $ kctl quorum remove 103 --dry-run
    """
    from kctl.operations.kraft.voters import plan_removing

    with open_for_change(frame) as cluster:
        state: ClusterState = cluster.read_state((), partition_states=False, kafka_version=how.version)
        return carry_out(frame, how, cluster, plan_removing(cluster, state, node))
