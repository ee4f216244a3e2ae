"""One partition on a few brokers as values that change step by step, under the rules of one version.

A record is a name; its position in the list is its offset. Brokers keep their log, high watermark and epochs; a power
failure loses what was not flushed, and any crash the high watermark that was not checkpointed. Fetches are whole
rounds: request, answer, append. Truncation happens at the role change, as in the brokers.
"""

from __future__ import annotations

from collections.abc import Sequence

from formats.values import Struct, field
from kctl.replication.epochs import Entries, assign
from kctl.replication.high_watermark import (
    FetchOrder,
    RemoteReplica,
    follower_high_watermark,
    initial_high_watermark,
    leader_high_watermark,
    may_join_isr,
)
from kctl.replication.rules import ReplicationRules
from kctl.replication.truncation import Algorithm, FollowerTruncation, ReplicaState, out_of_range, truncate

LONG_AGO_MS = -(10**12)


class SimulatedReplica(Struct):
    """One broker's copy. `checkpointed` is the high watermark on disk; all below `flushed` is on disk."""

    log: list[str] = field(default_factory=list)
    written_in: list[int] = field(default_factory=list)
    high_watermark: int = 0
    epochs: Entries = ()
    checkpointed: int = 0
    flushed: int = 0
    up: bool = True
    halted: bool = False

    @property
    def log_end_offset(self) -> int:
        return len(self.log)

    def state(self) -> ReplicaState:
        """The replica as the truncation rules use it."""
        return ReplicaState(self.epochs, len(self.log), self.high_watermark)

    def cut(self, remaining: ReplicaState) -> None:
        """Truncate to what remains."""
        del self.log[remaining.log_end_offset :], self.written_in[remaining.log_end_offset :]
        self.epochs, self.high_watermark = remaining.epochs, remaining.high_watermark
        self.flushed = min(self.flushed, len(self.log))
        self.checkpointed = min(self.checkpointed, len(self.log))


class SimulatedFetch(Struct, frozen=True):
    """How a fetch ended: `action` is "" for data, else what the follower did after OFFSET_OUT_OF_RANGE."""

    records: tuple[str, ...] = ()
    action: str = ""
    truncate_to: int | None = None


class SimulatedPartition(Struct):
    """The replicas, the leader and its epoch, and the ISR as stored; `remote` is what the leader knows."""

    rules: ReplicationRules
    replicas: dict[int, SimulatedReplica]
    leader: int = -1
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    unclean_enabled: bool = False
    remote: dict[int, int] = field(default_factory=dict)
    epoch_start_offset: int = 0

    def become_leader(self, broker_id: int, leader_epoch: int) -> None:
        """A broker leads in a new epoch and cuts nothing; from 2.0.1 on the epoch is recorded at once."""
        replica = self.replicas[broker_id]
        replica.up = True
        self.leader, self.leader_epoch = broker_id, leader_epoch
        self.remote = {}
        self.epoch_start_offset = replica.log_end_offset
        if self.rules.has_epochs and self.rules.entry_at_election:
            replica.epochs = assign(replica.epochs, leader_epoch, replica.log_end_offset, self.rules.assign)

    def become_follower(self, broker_id: int) -> FollowerTruncation:
        """A broker follows the present leader and truncates by its version's rule."""
        replica, leader = self.replicas[broker_id], self.replicas[self.leader]
        replica.up = True
        truncation = truncate(replica.state(), leader.state(), self.rules.algorithm, self.rules.answers)
        replica.cut(truncation.follower)
        return truncation

    def append(self, names: Sequence[str]) -> None:
        leader = self.replicas[self.leader]
        self._append(leader, names, [self.leader_epoch] * len(names))
        self.advance()

    def fetch(self, broker_id: int, limit: int | None = None) -> SimulatedFetch:
        """One FETCH round: the leader learns the follower's log end, the follower the high watermark."""
        follower, leader = self.replicas[broker_id], self.replicas[self.leader]
        offset, before = follower.log_end_offset, leader.high_watermark
        if offset > leader.log_end_offset and self.rules.algorithm in (
            Algorithm.HIGH_WATERMARK,
            Algorithm.KIP_101,
        ):
            return self._out_of_range(follower, leader)
        self.remote[broker_id] = offset
        self._admit(broker_id)
        self.advance()
        shown = before if self.rules.fetch_order is FetchOrder.READ_THEN_UPDATE else leader.high_watermark
        end = leader.log_end_offset if limit is None else min(offset + limit, leader.log_end_offset)
        if (
            end == offset
        ):  # nothing to send: the request is parked and answered with the newest high watermark
            shown = leader.high_watermark
        records = tuple(leader.log[offset:end])
        self._append(follower, records, leader.written_in[offset:end])
        follower.high_watermark = follower_high_watermark(
            log_end_offset=follower.log_end_offset, leader_high_watermark=shown, log_start_offset=0
        )
        return SimulatedFetch(records)

    def advance(self) -> None:
        """Move the leader's high watermark as far as its rule allows."""
        leader = self.replicas[self.leader]
        followers = [
            RemoteReplica(b, self.remote.get(b, -1), LONG_AGO_MS) for b in self.replicas if b != self.leader
        ]
        leader.high_watermark = leader_high_watermark(
            leader_log_end_offset=leader.log_end_offset,
            current=leader.high_watermark,
            isr=self.isr,
            replicas=followers,
            basis=self.rules.basis,
        )

    def stop(self, broker_id: int, *, power: bool = False) -> None:
        """A broker's process ends; in a power failure its disk loses what was not flushed."""
        replica = self.replicas[broker_id]
        replica.up = False
        if power:
            flushed = max(replica.flushed, 0)
            replica.cut(
                ReplicaState(
                    tuple(e for e in replica.epochs if e[1] < max(flushed, 1)),
                    flushed,
                    min(replica.high_watermark, flushed),
                )
            )

    def load(self, broker_id: int) -> None:
        """A broker's process starts and reads its disk."""
        replica = self.replicas[broker_id]
        replica.up, replica.halted = True, False
        replica.high_watermark = initial_high_watermark(
            checkpointed=replica.checkpointed,
            log_end_offset=replica.log_end_offset,
            log_start_offset=0,
            floor_at_log_start=True,
        )

    def _append(self, replica: SimulatedReplica, names: Sequence[str], epochs: Sequence[int]) -> None:
        for name, epoch in zip(names, epochs, strict=True):
            if self.rules.has_epochs:
                replica.epochs = assign(replica.epochs, epoch, replica.log_end_offset, self.rules.assign)
            replica.log.append(name)
            replica.written_in.append(epoch)

    def _admit(self, broker_id: int) -> None:
        leader = self.replicas[self.leader]
        if broker_id not in self.isr and may_join_isr(
            follower_log_end_offset=self.remote[broker_id],
            leader_high_watermark=leader.high_watermark,
            leader_epoch_start_offset=self.epoch_start_offset,
            rule=self.rules.admission,
        ):
            self.isr = (*self.isr, broker_id)

    def _out_of_range(self, follower: SimulatedReplica, leader: SimulatedReplica) -> SimulatedFetch:
        if self.rules.halts_when_ahead and not self.unclean_enabled:
            follower.halted = True
            follower.up = False
            return SimulatedFetch(action="broker_halts", truncate_to=None)
        step = out_of_range(follower.log_end_offset, 0, leader.log_end_offset)
        if step.truncate_to is not None:
            follower.cut(follower.state().cut_to(step.truncate_to))
        return SimulatedFetch(action=step.action, truncate_to=step.truncate_to)
