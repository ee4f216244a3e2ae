"""The quorum of a KRaft cluster: its voters, its features, brokers that are registered."""

from collections.abc import Collection, Mapping
from typing import ClassVar

from kctl.changes.kinds.codecs import TEXTS
from kctl.cluster.intent import Intent, IntentCodec, Waited
from kctl.cluster.state import ClusterState
from kctl.errors import Refused

BROKER_ID_NOT_REGISTERED = 102  # an error of the controller


def _waited(is_so: bool, missing: str, state: ClusterState) -> Waited:
    if is_so and state.quorum is not None and state.quorum.has_majority:
        return Waited(1, 1)
    return Waited(0, 1, (missing if not is_so else "no majority of the voters answers",))


class AddVoter(Intent, frozen=True, kw_only=True):
    """Let an observer of the KRaft quorum vote. `listeners`: HOST:PORT by name. Inverse: remove it again."""

    kind: ClassVar[str] = "add-voter"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"listeners": TEXTS}
    does: ClassVar[str] = "add node {node_id} to the voters"
    node_id: int
    directory_id: str
    listeners: Mapping[str, str]

    def inverse(self) -> Intent:
        return RemoveVoter(node_id=self.node_id, directory_id=self.directory_id, listeners=self.listeners)

    def how_far(self, state: ClusterState) -> Waited:
        """The node votes, and a majority answers."""
        member = state.quorum.member(self.node_id) if state.quorum else None
        votes = member is not None and member.directory_id == self.directory_id and member.is_voter
        return _waited(votes, f"node {self.node_id} does not vote yet", state)


class RemoveVoter(Intent, frozen=True, kw_only=True):
    """Take a node out of the voters; it goes on as an observer. Inverse: add it again, where it listened."""

    kind: ClassVar[str] = "remove-voter"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"listeners": TEXTS}
    does: ClassVar[str] = "remove node {node_id} from the voters"
    node_id: int
    directory_id: str
    listeners: Mapping[str, str]

    def inverse(self) -> Intent:
        if not self.listeners:
            raise Refused(
                f"the former listener of node {self.node_id} is unknown",
                f"add it with `kctl quorum add {self.node_id} --endpoint LISTENER://HOST:PORT`",
            )
        return AddVoter(node_id=self.node_id, directory_id=self.directory_id, listeners=self.listeners)

    def how_far(self, state: ClusterState) -> Waited:
        """The node does not vote any more, and the rest has a leader and a majority."""
        gone = state.quorum is not None and self.node_id not in state.quorum.voters
        return _waited(gone, f"node {self.node_id} still votes", state)


class UpdateFeatures(Intent, frozen=True, kw_only=True):
    """Set levels of features, all of them or none. Inverse: the previous levels, where no level is one-way."""

    kind: ClassVar[str] = "update-features"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"levels": TEXTS, "previous_levels": TEXTS}
    final: ClassVar[str] = (
        "what the new level writes stands in the metadata log, and older code cannot read it"
    )
    levels: Mapping[str, int]
    previous_levels: Mapping[str, int]
    is_downgrade: bool
    is_reversible: bool

    def __str__(self) -> str:
        return f"set {', '.join(f'{name} to {level}' for name, level in sorted(self.levels.items()))}"

    def inverse(self) -> Intent:
        if not self.is_reversible:
            return Intent.inverse(self)
        return UpdateFeatures(
            levels=self.previous_levels,
            previous_levels=self.levels,
            is_downgrade=not self.is_downgrade,
            is_reversible=True,
        )

    def how_far(self, state: ClusterState) -> Waited:
        """Every level is the requested one."""
        missing = tuple(
            f"{name} is {state.features.get(name, 0)}"
            for name, level in self.levels.items()
            if state.features.get(name, 0) != level
        )
        return Waited(len(self.levels) - len(missing), len(self.levels), missing)


class UnregisterBroker(Intent, frozen=True, kw_only=True):
    """Take a broker that is gone for good out of a KRaft cluster. No inverse."""

    kind: ClassVar[str] = "unregister-broker"
    does: ClassVar[str] = "unregister broker {broker_id}"
    final: ClassVar[str] = "a broker registers by itself when it is started"
    broker_id: int

    def topics_concerned(self) -> set[str] | None:
        return None  # any topic may have a replica there

    def is_shown_written(self, state: ClusterState) -> bool:
        """Never: before 4.0 a broker that is dead is not listed, registered or not."""
        return False

    def is_refused_when_done(self, codes: Collection[int]) -> bool:
        return codes == {BROKER_ID_NOT_REGISTERED}

    def how_far(self, state: ClusterState) -> Waited:
        """Done when the broker is no longer listed. Before 4.0 a dead broker is never listed."""
        if state.is_alive(self.broker_id):
            return Waited(0, 1, failed=f"broker {self.broker_id} is alive: it has registered again")
        is_gone = self.broker_id not in state.brokers
        return Waited(int(is_gone), 1, () if is_gone else (f"broker {self.broker_id} is still registered",))
