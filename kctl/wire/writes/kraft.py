"""Requests that only KRaft clusters accept: voters of the quorum, levels of features, registrations of brokers.

Source: clients/src/main/resources/common/message/{AddRaftVoter,RemoveRaftVoter,UpdateFeatures,UnregisterBroker}Request.json
@ 4.3.0 (KIP-853, KIP-584, KIP-631)
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from formats.values import Struct
from kctl.changes.kinds.quorum import AddVoter, RemoveVoter
from kctl.changes.kinds.quorum import UnregisterBroker as Unregister
from kctl.changes.kinds.quorum import UpdateFeatures as UpdateLevels
from kctl.cluster.interface import Conflict, NoQuorum
from kctl.cluster.requests import needs
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V4_0
from kctl.errors import KctlError
from kctl.model import Json
from kctl.operations.kraft.unregistering import is_unregistered, refuse_used
from kctl.operations.kraft.voters import refuse_minority
from kctl.wire.adapter import Wire, parse_id
from kctl.wire.protocol.messages import (
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from kctl.wire.writes.requests import Line, Request, RequestItem, ask, line, milliseconds

UPGRADE, SAFE_DOWNGRADE = 1, 2
VALIDATES = 1  # the first version of UpdateFeatures with validate_only


def _item(wire: Wire, message: Any, what: str) -> RequestItem:
    answer = ask(wire, message)
    return RequestItem(what, answer.error_code, answer.error_message)


class KnownVoters(Struct, frozen=True):
    """The voters that a request was computed from."""

    voters: tuple[int, ...]


def _voters(state: ClusterState) -> tuple[int, ...]:
    return tuple(sorted(state.quorum.voters)) if state.quorum else ()


class VoterRequest(Request, frozen=True, kw_only=True):
    """A voter that comes or goes."""

    expected: KnownVoters
    node_id: int
    directory_id: str
    listeners: Mapping[str, str]
    cluster_id: str | None

    def refuse_other_state(self, state: ClusterState) -> None:
        if (now := _voters(state)) != self.expected.voters:
            raise Conflict(
                f"the voters are {list(now)}, not {list(self.expected.voters)} as read; nothing was written"
            )

    def is_vote(self, state: ClusterState) -> bool:
        """Whether the node votes, with this directory."""
        member = state.quorum.member(self.node_id) if state.quorum else None
        return member is not None and member.is_voter and member.directory_id == self.directory_id


class AddRaftVoter(VoterRequest, frozen=True, kw_only=True):
    """A voter that comes."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        listeners = []
        for name, address in self.listeners.items():
            host, _, port = address.rpartition(":")
            listeners.append(AddRaftVoterRequest.Listener(name=name, host=host, port=int(port)))
        message = AddRaftVoterRequest(
            cluster_id=self.cluster_id,
            timeout_ms=milliseconds(wire),
            voter_id=self.node_id,
            voter_directory_id=parse_id(self.directory_id),
            listeners=listeners,
            ack_when_committed=True,
        )
        yield _item(wire, message, f"node {self.node_id}")

    def is_shown(self, state: ClusterState) -> bool:
        return self.is_vote(state)


class RemoveRaftVoter(VoterRequest, frozen=True, kw_only=True):
    """A voter that goes."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        message = RemoveRaftVoterRequest(
            cluster_id=self.cluster_id,
            voter_id=self.node_id,
            voter_directory_id=parse_id(self.directory_id),
        )
        yield _item(wire, message, f"node {self.node_id}")

    def is_shown(self, state: ClusterState) -> bool:
        return state.quorum is not None and not self.is_vote(state)


class KnownLevels(Struct, frozen=True):
    """The levels that a request was computed from; None for a feature without one."""

    levels: Mapping[str, int | None]


class UpdateFeatures(Request, frozen=True, kw_only=True):
    """The levels of features."""

    is_validated: ClassVar[bool] = True
    expected: KnownLevels
    levels: Mapping[str, int]
    is_downgrade: bool

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        if (wire.version_of(UpdateFeaturesRequest) or 0) < VALIDATES:
            raise KctlError(f"{needs('UpdateFeatures')}; nothing was written", "upgrade the brokers first")
        kind = SAFE_DOWNGRADE if self.is_downgrade else UPGRADE
        updates = [
            UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level in self.levels.items()
        ]
        message = UpdateFeaturesRequest(
            timeout_ms=milliseconds(wire),
            feature_updates=updates,
            validate_only=validate_only,
            min_version=VALIDATES,
        )
        answer = ask(wire, message)
        yield RequestItem(", ".join(self.levels), answer.error_code, answer.error_message)
        for result in answer.results or ():
            yield RequestItem(str(result.feature), result.error_code, result.error_message)

    def refuse_other_state(self, state: ClusterState) -> None:
        for name, level in self.expected.levels.items():
            present = state.features.get(name, 0)
            if present != level:
                raise Conflict(f"{name} is {present}, not {level} as it was read; nothing was written")

    def is_shown(self, state: ClusterState) -> bool:
        return all(state.features.get(name, 0) == level for name, level in self.levels.items())

    def lines_of(self, field: str, value: Json) -> Iterator[Line]:
        if field != "levels":
            yield from super().lines_of(field, value)
            return
        for name, level in self.levels.items():
            yield line(name, self.expected.levels.get(name), level)


class UnusedBroker(Struct, frozen=True):
    """A broker that nothing needed when a request was computed."""

    unused: int


class UnregisterBroker(Request, frozen=True, kw_only=True):
    """The registration of a broker that is gone."""

    expected: UnusedBroker
    broker_id: int

    def topics(self) -> None:
        """Any topic may have a replica there."""

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        yield _item(wire, UnregisterBrokerRequest(broker_id=self.broker_id), f"broker {self.broker_id}")

    def refuse_other_state(self, state: ClusterState) -> None:
        refuse_used(state, self.expected.unused)

    def is_shown(self, state: ClusterState) -> bool:
        return is_unregistered(self.broker_id, state)

    def can_be_told(self, state: ClusterState) -> bool:
        """Before 4.0 a broker that is not alive looks as if it were not registered."""
        return state.kafka_version >= V4_0


# --- requests of intents ------------------------------------------------------------------------------


def change_voters(fresh: ClusterState, intent: AddVoter | RemoveVoter, _: ClusterState) -> list[Request]:
    """The voter, with the present voters."""
    if fresh.quorum is None:
        raise NoQuorum("the cluster has no KRaft quorum now; nothing was written")
    refuse_minority(fresh.quorum, intent)
    request: type[VoterRequest] = AddRaftVoter if isinstance(intent, AddVoter) else RemoveRaftVoter
    return [
        request(
            about=f"node {intent.node_id}",
            expected=KnownVoters(_voters(fresh)),
            node_id=intent.node_id,
            directory_id=intent.directory_id,
            listeners=dict(intent.listeners),
            cluster_id=fresh.cluster_id,
        )
    ]


def update_features(fresh: ClusterState, intent: UpdateLevels, _: ClusterState) -> list[Request]:
    """The levels, and those that are in force."""
    return [
        UpdateFeatures(
            about=", ".join(sorted(intent.levels)),
            expected=KnownLevels(dict(intent.previous_levels)),
            levels=dict(intent.levels),
            is_downgrade=intent.is_downgrade,
        )
    ]


def unregister_broker(fresh: ClusterState, intent: Unregister, _: ClusterState) -> list[Request]:
    """The broker, where nothing needs it."""
    refuse_used(fresh, intent.broker_id)
    id = intent.broker_id
    return [UnregisterBroker(about=f"broker {id}", expected=UnusedBroker(id), broker_id=id)]
