"""A cluster over Kafka's Admin protocol: the second backend of `kctl.cluster.interface`."""

import contextlib
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kctl.changes.intents import Intent
from kctl.changes.plan import Write
from kctl.changes.waiting import config_types_of, topics_of
from kctl.cluster.interface import Oddity
from kctl.cluster.old_groups import OldGroup
from kctl.cluster.state import ClusterState, Replicas
from kctl.cluster.stuck import moving_targets
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError, NotFinished
from kctl.model import TopicPartition
from kctl.wire.adapter import NoAnswer, Wire
from kctl.wire.expectations import (
    config_types_touched,
    content,
    is_done,
    item_count,
    name_of,
    refuse_other_state,
    topics_touched,
)
from kctl.wire.reading import read_cluster
from kctl.wire.sending import Item, can_be_validated, send
from kctl.wire.transactions import is_open
from kctl.wire.writes import TRANSLATIONS

if TYPE_CHECKING:
    from kctl.cluster.disk_sizes import ReplicaSize

PARTITIONS_IN_A_REQUEST = 2000
LAGGING = 2.0  # seconds that brokers may be behind a controller that keeps its state in ZooKeeper
SETTLING = 5.0  # seconds in which the fate of a lost request is found out


class AdminCluster:
    """See `kctl.cluster.interface.Cluster`."""

    backend = "admin"

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.location = wire.location
        self._moving: dict[TopicPartition, Replicas] = {}  # as seen last

    def read_state(
        self,
        topics: Collection[str] | None = None,
        *,
        partition_states: bool = True,
        configs: Collection[str] = (),
        kafka_version: KafkaVersion | None = None,
    ) -> ClusterState:
        """The cluster now, from a broker that has seen all that was committed before."""
        end = time.monotonic() + LAGGING
        while True:
            state = read_cluster(
                self.wire,
                topics,
                partition_states=partition_states,
                configs=configs,
                kafka_version=kafka_version,
            )
            if state.quorum is not None or not self._has_just_ended(state) or time.monotonic() > end:
                self._moving = moving_targets(state)
                return state
            time.sleep(0.05)

    def _has_just_ended(self, state: ClusterState) -> bool:
        """Whether the list says that a move is over which the metadata, sent out after it, still shows."""
        return any(
            not state.is_reassigning(tp)
            and (replicas := state.replicas(tp)) is not None
            and set(replicas) > set(target)
            for tp, target in self._moving.items()
        )

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        """The requests of an intent, each with what it expects to find; the controller was asked where it can be."""
        fresh = self.read_state(
            topics_of(intent), configs=config_types_of(intent), kafka_version=state.kafka_version
        )
        writes = tuple(TRANSLATIONS[intent.kind](fresh, intent, state))
        if len(writes) == 1 and can_be_validated(writes[0]):
            for item in send(self.wire, writes[0], validate_only=True):
                raise item.error()
        return writes

    def commit(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, after what they expect was read again.

        Raises Conflict where it is not so any more, Refused where the first of them was refused, NotFinished
        where a part of it was done and another not.
        """
        state = self._state_of(writes)
        for write in writes:
            refuse_other_state(write, state)
        for number, write in enumerate(writes):
            try:
                failed = send(self.wire, write)
            except NoAnswer as lost:
                self._find_out(write, lost, number, len(writes))
                continue
            if failed:
                self._say_what_failed(write, failed, number, len(writes))
        self._settle(writes)

    def _say_what_failed(self, write: Write, failed: Sequence[Item], number: int, count: int) -> None:
        items = item_count(write)
        if number == 0 and len(failed) >= items:
            more = f"; so {len(failed) - 1} more" if len(failed) > 1 else ""
            raise failed[0].error(f"nothing was written{more}")
        reasons = "; ".join(item.reason for item in failed[:5])
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        done = f"{number} of {count} requests and {items - len(failed)} of {items} items of the next were carried out"
        raise NotFinished(f"{done}, not: {reasons}{more}", "the journal has it: undo or resume it")

    def _find_out(self, write: Write, lost: NoAnswer, number: int, count: int) -> None:
        """Look whether a request without an answer was carried out. Raises what holds where it was not."""
        end = time.monotonic() + SETTLING
        while True:
            with contextlib.suppress(KctlError):
                if self._is_done(write, self._state_of([write])):
                    return
            if time.monotonic() > end:
                break
            time.sleep(0.2)
        raise NotFinished(
            f"{lost}; {number} of {count} requests were carried out, of the next nothing is to be seen, "
            "and it may still be carried out",
            "`kctl journal resume` looks and goes on",
        )

    def _settle(self, writes: Sequence[Write]) -> None:
        """With ZooKeeper: until the controller shows what it has acknowledged; in KRaft every read waits for it."""
        if not writes or self._state_of(()).quorum is not None:
            return
        end = time.monotonic() + SETTLING
        while time.monotonic() < end:
            state = self._state_of(writes)
            if all(self._is_done(write, state) or name_of(write) == "CreateTopics" for write in writes):
                return
            time.sleep(0.05)

    def _is_done(self, write: Write, state: ClusterState) -> bool:
        if name_of(write) == "WriteTxnMarkers":
            return not is_open(self.wire, content(write))
        return is_done(write, state)

    def _state_of(self, writes: Sequence[Write]) -> ClusterState:
        return self.read_state(topics_touched(writes), configs=config_types_touched(writes))

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether requests that were sent before have been carried out, as far as reading can tell."""
        state = self._state_of(writes)
        return all(self._is_done(write, state) for write in writes)

    def request_partitions_fitting(
        self, partitions: Sequence[tuple[TopicPartition, Replicas]], kind: str
    ) -> int:
        """How many partitions, from the front, go in one request."""
        return min(len(partitions), PARTITIONS_IN_A_REQUEST)

    def replica_sizes(self, topics: Collection[str] | None = None) -> "list[ReplicaSize]":
        """The size of every replica, of these topics or all, on every broker that answers."""
        from kctl.wire.log_dirs import read_replica_sizes

        return read_replica_sizes(self.wire, topics)

    def read_oddities(self, state: ClusterState, now: int) -> Sequence[Oddity]:
        """None: brokers keep them to themselves."""
        return ()

    def read_old_groups(self) -> Sequence[OldGroup]:
        """None: such groups live in ZooKeeper alone."""
        return ()

    def close(self) -> None:
        """End the connections."""
        self.wire.close()

    def __enter__(self) -> "AdminCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
