"""A cluster over Kafka's Admin protocol: the second backend of `kctl.cluster.interface`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Unpack

from kctl.cluster.interface import Cluster, Oddity, Visibility
from kctl.cluster.moves import moving_targets
from kctl.cluster.state import Problem
from kctl.wire.reading import read_cluster, read_log_dirs, read_supported_features

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kctl.cluster.disks import BrokerLogDir
    from kctl.cluster.intent import Intent, Write
    from kctl.cluster.interface import Scope
    from kctl.cluster.moves import ReplicaSize
    from kctl.cluster.state import ClusterState, Endpoint, Quorum, Replicas
    from kctl.errors import KctlError
    from kctl.model import TopicPartition
    from kctl.wire.adapter import Wire
    from kctl.wire.writes.commit import WireCommit

PARTITIONS_IN_A_REQUEST = 2000
LAGGING = 2.0  # seconds that brokers may be behind a controller that keeps its state in ZooKeeper


class AdminCluster(Cluster):
    """See `kctl.cluster.interface.Cluster`."""

    backend = "admin"

    def __init__(self, wire: Wire, *, needs_controller: bool = True) -> None:
        """Without an active controller a read raises, or warns if not `needs_controller`."""
        self.wire = wire
        self._needs_controller = needs_controller
        self.location = wire.location
        self.principal = wire.principal
        self._moving: dict[TopicPartition, Replicas] = {}  # in the last read
        self._commits: WireCommit | None = None
        self.has_written = False  # since the last exact read
        self._exact_from: int | None = None  # the broker that has shown all earlier writes

    def read_state(self, topics: Collection[str] | None = None, **scope: Unpack[Scope]) -> ClusterState:
        """The cluster now, from a broker that has seen all that was committed before; see the interface."""
        end = time.monotonic() + LAGGING
        has_other = self._exact_from is not None and self._exact_from != self.wire.node
        is_exact = not scope.get("recent") or self.has_written or has_other
        while True:
            state = read_cluster(
                self.wire, topics, is_exact=is_exact, needs_controller=self._needs_controller, **scope
            )
            if is_exact:
                self.has_written, self._exact_from = False, self.wire.node
            if state.quorum is not None or not self._has_just_ended(state) or time.monotonic() > end:
                self._moving = moving_targets(state)
                return state
            time.sleep(0.05)

    def _has_just_ended(self, state: ClusterState) -> bool:
        """Whether a move is no longer listed, but still in the metadata, which is propagated later."""
        return any(
            not state.is_reassigning(tp)
            and (replicas := state.replicas(tp)) is not None
            and set(replicas) > set(target)
            for tp, target in self._moving.items()
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The requests of an intent, each with what it expects; validated by the controller where possible."""
        from kctl.wire.writes.commit import writes_for

        return writes_for(self, intent, state)

    def commit(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, after reading again what they expect. Raises as `WireCommit.carry_out` does."""
        from kctl.wire.writes.commit import WireCommit

        self._commits = self._commits or WireCommit(self)
        self._commits.carry_out(writes)

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that earlier requests have been carried out."""
        from kctl.wire.writes.commit import WireCommit

        return WireCommit(self).is_written(writes)

    def is_begun(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that any item of earlier requests has been carried out."""
        from kctl.wire.writes.commit import WireCommit

        return WireCommit(self).is_begun(writes)

    def dead_brokers_told(self, writes: Sequence[Write]) -> set[int]:
        """See the interface."""
        from kctl.wire.writes.table import request_of

        return {broker for write in writes for broker in request_of(write).dead_brokers()}

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, go in one request."""
        return min(len(partitions), PARTITIONS_IN_A_REQUEST)

    def taken_back_by(self, intent: Intent, begun_ms: int) -> tuple[Intent, ...] | None:
        from kctl.wire.writes.tokens import taken_back_by

        return taken_back_by(self.wire, intent, begun_ms)

    def scram_users(self, problems: list[Problem]) -> dict[str, dict[str, int]]:
        from kctl.wire.users import read_users

        return read_users(self.wire)

    def config_keys(self, entity_type: str, entity_name: str) -> Collection[str] | None:
        """See the interface; quotas are not described."""
        from kctl.changes.kinds.throttles import RATES
        from kctl.wire.answers.configs import KINDS
        from kctl.wire.configs import keys_known

        if entity_type not in KINDS:
            return None
        known = keys_known(self.wire, entity_type, entity_name)
        return {*known, *RATES} if entity_type == "brokers" else known

    def replica_sizes(self, topics: Collection[str] | None = None) -> list[ReplicaSize]:
        """The size of every replica, of these topics or all, on every broker that answers, without future replicas.

        The lag in the answers says nothing about a move: it is counted from the replica's own high watermark.
        """
        from kctl.cluster.moves import ReplicaSize

        return [
            ReplicaSize(replica.partition, log_dir.broker_id, replica.size_in_bytes)
            for log_dir in read_log_dirs(self.wire, self.wire.nodes, topics)
            for replica in log_dir.replicas
            if not replica.is_future
        ]

    def read_log_dirs(
        self, brokers: Collection[int], topics: Collection[str] | None = None
    ) -> list[BrokerLogDir]:
        """See the interface."""
        return read_log_dirs(self.wire, brokers, topics)

    def visibility(self) -> Visibility:
        """See the interface."""
        from kctl.wire.hidden import visibility_of

        return visibility_of(self.wire)

    def controllers(self, quorum: Quorum) -> dict[int, Endpoint]:
        """See the interface."""
        from kctl.wire.quorum import controllers

        return controllers(self.wire, quorum)

    def supported_features(self) -> tuple[dict[str, tuple[int, int]], list[KctlError]]:
        """See the interface."""
        return read_supported_features(self.wire)

    def log_ends(self, state: ClusterState) -> Mapping[TopicPartition, int]:
        """See the interface; records above the high watermark count."""
        from kctl.wire.replicas.fetching import LATEST, list_offsets

        leaders = [
            (partition_state.leader, tp)
            for tp, partition_state in state.partition_states.items()
            if partition_state.leader >= 0
        ]
        ends = list_offsets(self.wire, leaders, LATEST)
        return {tp: end for (_, tp), end in ends.items() if isinstance(end, int)}

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """Log directories that have failed, offsets of groups that no consumer can read on from."""
        from kctl.wire.group_offsets import troubled_offsets
        from kctl.wire.hidden import why_groups_may_be_hidden

        findings, unread = troubled_offsets(self.wire, state, now)
        groups = [
            Oddity("group-offset", f"{finding.place.topic}-{finding.place.partition}", finding.message)
            for finding in findings
        ]
        hidden = why_groups_may_be_hidden(self.wire)
        groups += [Oddity("group-offset-unread", "groups", why) for why in (*unread, hidden) if why]
        silent = {problem.silent_broker for problem in state.problems}
        answering = [broker for broker in state.live_brokers if broker not in silent]
        return [
            Oddity(
                "failed-disk",
                f"log directory {log_dir.path} of broker {log_dir.broker_id}",
                log_dir.error or "",
                broker_id=log_dir.broker_id,
            )
            for log_dir in read_log_dirs(self.wire, answering, ())
            if log_dir.state == "failed"
        ] + groups

    def close(self) -> None:
        """End the connections."""
        self.wire.close()
