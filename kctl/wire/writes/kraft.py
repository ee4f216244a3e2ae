"""Requests that only KRaft clusters accept: voters of the quorum, levels of features, registrations of brokers.

Source: clients/src/main/resources/common/message/{AddRaftVoter,RemoveRaftVoter,UpdateFeatures,UnregisterBroker}Request.json
@ 4.3.0 (KIP-853, KIP-584, KIP-631)
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kctl.changes.kinds.quorum import AddVoter, RemoveVoter, UnregisterBroker, UpdateFeatures
from kctl.cluster.intent import Write
from kctl.cluster.interface import Conflict, NoQuorum
from kctl.cluster.requests import needs
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V4_0
from kctl.errors import KctlError
from kctl.model import Json
from kctl.operations.kraft.unregistering import is_unregistered, refuse_used
from kctl.operations.kraft.voters import refuse_minority
from kctl.wire.adapter import Wire, parse_id
from kctl.wire.writes.planning import Translation, request
from kctl.wire.writes.requests import RequestItem, Sender, ask, milliseconds

ADD, REMOVE, UPDATE, UNREGISTER = "AddRaftVoter", "RemoveRaftVoter", "UpdateFeatures", "UnregisterBroker"
OF_ANY_TOPIC = frozenset({UNREGISTER})  # any topic may have a replica there
SHOWN_SINCE = {UNREGISTER: V4_0}  # before, a broker that is not alive looks as if it were not registered
UPGRADE, SAFE_DOWNGRADE = 1, 2
VALIDATES = 1  # the first version of UpdateFeatures with validate_only


# --- requests of intents ----------------------------------------------------------------------------------


def _vote(fresh: ClusterState, intent: AddVoter | RemoveVoter, _: ClusterState) -> list[Write]:
    """The voter, with the present voters."""
    if fresh.quorum is None:
        raise NoQuorum("the cluster has no KRaft quorum now; nothing was written")
    refuse_minority(fresh.quorum, intent)
    after: dict[str, Json] = {
        "node_id": intent.node_id,
        "directory_id": intent.directory_id,
        "listeners": dict(intent.listeners),
        "cluster_id": fresh.cluster_id,
    }
    name = ADD if isinstance(intent, AddVoter) else REMOVE
    return [request(name, f"node {intent.node_id}", after, {"voters": _voters(fresh)})]


def _update(fresh: ClusterState, intent: UpdateFeatures, _: ClusterState) -> list[Write]:
    """The levels, and those that are in force."""
    after: dict[str, Json] = {"levels": dict(intent.levels), "is_downgrade": intent.is_downgrade}
    before: Json = {"levels": dict(intent.previous_levels)}
    return [request(UPDATE, ", ".join(sorted(intent.levels)), after, before)]


def _unregister(fresh: ClusterState, intent: UnregisterBroker, _: ClusterState) -> list[Write]:
    """The broker, where nothing needs it."""
    refuse_used(fresh, intent.broker_id)
    return [
        request(
            UNREGISTER,
            f"broker {intent.broker_id}",
            {"broker_id": intent.broker_id},
            {"unused": intent.broker_id},
        )
    ]


TRANSLATIONS: dict[str, Translation] = {
    "add-voter": _vote,
    "remove-voter": _vote,
    "update-features": _update,
    "unregister-broker": _unregister,
}


def _voters(state: ClusterState) -> list[Json]:
    return [*sorted(state.quorum.voters)] if state.quorum else []


def refuse_other_state(before: Mapping[str, Any], after: Mapping[str, Any], state: ClusterState) -> None:
    """Raise Conflict if voters or levels differ from those that a write was computed from, Refused for a broker in use."""
    if "voters" in before and before["voters"] != _voters(state):
        raise Conflict(
            f"the voters are {_voters(state)}, not {before['voters']} as read; nothing was written"
        )
    if "unused" in before:
        refuse_used(state, before["unused"])
    for name, level in before.get("levels", {}).items():
        present = state.features.get(name, 0)
        if present != level:
            raise Conflict(f"{name} is {present}, not {level} as it was read; nothing was written")


# --- sending --------------------------------------------------------------------------------------------


def _add(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import AddRaftVoterRequest

    listeners = []
    for name, address in after["listeners"].items():
        host, _, port = address.rpartition(":")
        listeners.append(AddRaftVoterRequest.Listener(name=name, host=host, port=int(port)))
    message = AddRaftVoterRequest(
        cluster_id=after["cluster_id"],
        timeout_ms=milliseconds(wire),
        voter_id=after["node_id"],
        voter_directory_id=parse_id(after["directory_id"]),
        listeners=listeners,
        ack_when_committed=True,
    )
    yield _item(wire, message, f"node {after['node_id']}")


def _remove(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import RemoveRaftVoterRequest

    message = RemoveRaftVoterRequest(
        cluster_id=after["cluster_id"],
        voter_id=after["node_id"],
        voter_directory_id=parse_id(after["directory_id"]),
    )
    yield _item(wire, message, f"node {after['node_id']}")


def _unregister_broker(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import UnregisterBrokerRequest

    yield _item(wire, UnregisterBrokerRequest(broker_id=after["broker_id"]), f"broker {after['broker_id']}")


def _item(wire: Wire, message: Any, what: str) -> RequestItem:
    answer = ask(wire, message)
    return RequestItem(what, answer.error_code, answer.error_message)


def _update_features(wire: Wire, after: Mapping[str, Any], validate_only: bool) -> Iterator[RequestItem]:
    from kctl.wire.protocol.messages import UpdateFeaturesRequest

    if (wire.version_of(UpdateFeaturesRequest) or 0) < VALIDATES:
        raise KctlError(f"{needs('UpdateFeatures')}; nothing was written", "upgrade the brokers first")
    kind = SAFE_DOWNGRADE if after["is_downgrade"] else UPGRADE
    updates = [
        UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level in after["levels"].items()
    ]
    message = UpdateFeaturesRequest(
        timeout_ms=milliseconds(wire),
        feature_updates=updates,
        validate_only=validate_only,
        min_version=VALIDATES,
    )
    answer = ask(wire, message)
    yield RequestItem(", ".join(after["levels"]), answer.error_code, answer.error_message)
    for result in answer.results or ():
        yield RequestItem(str(result.feature), result.error_code, result.error_message)


SENDERS: dict[str, Sender] = {
    ADD: _add,
    REMOVE: _remove,
    UPDATE: _update_features,
    UNREGISTER: _unregister_broker,
}


# --- has it been done? ----------------------------------------------------------------------------------


def _votes(after: Mapping[str, Any], state: ClusterState) -> bool:
    member = state.quorum.member(after["node_id"]) if state.quorum else None
    return member is not None and member.is_voter and member.directory_id == after["directory_id"]


CHECKS: dict[str, Callable[[Mapping[str, Any], ClusterState], bool]] = {
    ADD: _votes,
    REMOVE: lambda after, state: state.quorum is not None and not _votes(after, state),
    UPDATE: lambda after, state: all(
        state.features.get(n, 0) == level for n, level in after["levels"].items()
    ),
    UNREGISTER: lambda after, state: is_unregistered(after["broker_id"], state),
}
