"""How a change is written: what was read is read again, then each request is sent and its answer looked at."""

import contextlib
import time
from collections.abc import Sequence

from kctl.changes.faults import reach
from kctl.changes.intents import Intent
from kctl.changes.plan import Write
from kctl.changes.waiting import config_types_of, topics_of
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, NotFinished
from kctl.wire.adapter import NoAnswer
from kctl.wire.cluster import AdminCluster
from kctl.wire.expectations import (
    can_tell,
    config_types_touched,
    content,
    is_done,
    item_count,
    name_of,
    refuse_other_state,
    topics_touched,
)
from kctl.wire.sending import Item, can_be_validated, send
from kctl.wire.transactions import is_open
from kctl.wire.writes import TRANSLATIONS

SETTLING = 5.0  # seconds in which the fate of a lost request is found out
IN_FORCE = (
    2.0  # seconds that brokers have to take a throttle; what is not in force then is said behind the write
)
MOVES = "AlterPartitionReassignments"


def writes_for(cluster: AdminCluster, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
    """See `kctl.cluster.interface.Cluster`; a single request is validated by the controller where it can be."""
    fresh = cluster.read_state(
        topics_of(intent),
        configs=config_types_of(intent),
        kafka_version=state.kafka_version,
        recent=True,  # it is read again before anything is sent
    )
    writes = tuple(TRANSLATIONS[intent.kind](fresh, intent, state))
    if len(writes) == 1 and can_be_validated(writes[0]):
        for item in send(cluster.wire, writes[0], validate_only=True):
            raise item.error()
    return writes


class Commit:
    """The writes of a cluster, one list after the other."""

    def __init__(self, cluster: AdminCluster) -> None:
        self._cluster = cluster
        self._sent = 0  # requests that were answered

    def carry_out(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, after what they expect was read again.

        Raises Conflict where it is not so any more, Refused where the first of them was refused, NotFinished
        where a part of it was done and another not.
        """
        state = self._state_of(writes)
        for write in writes:
            refuse_other_state(write, state)
        for number, write in enumerate(writes):
            if name_of(write) == MOVES and state.quorum is None:
                self._await_rates(writes[:number])
            self._cluster.has_written = True
            try:
                failed = send(self._cluster.wire, write)
            except NoAnswer as lost:
                self._find_out(write, lost, number, len(writes))
                continue
            if failed:
                self._say_what_failed(write, failed, number, len(writes))
            self._sent += 1
            reach(f"sent:{self._sent}")
        self._settle(writes)

    def _await_rates(self, writes: Sequence[Write]) -> None:
        """Until brokers say that throttles are in force that were written before the moves which they are for.

        With ZooKeeper each broker hears of them by itself, of the lists first, and of the moves from the controller.
        In KRaft all of it is one log. Brokers of 2.4 keep rates to themselves.
        """
        rates = [write for write in writes if content(write).get("entity_type") == "brokers"]
        end = time.monotonic() + IN_FORCE
        while rates and time.monotonic() < end:
            state = self._state_of(rates)
            rates = [one for one in rates if can_tell(one, state) and not is_done(one, state)]
            if rates:
                time.sleep(0.02)

    def _say_what_failed(self, write: Write, failed: Sequence[Item], number: int, count: int) -> None:
        items = item_count(write)
        refused = tuple(item.refused(name_of(write)) for item in failed)
        if number == 0 and len(failed) >= items:
            more = f"; so {len(failed) - 1} more" if len(failed) > 1 else ""
            error = failed[0].error(f"nothing was written{more}")
            error.items = refused
            raise error
        reasons = "; ".join(item.reason for item in failed[:5])
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        done = f"{number} of {count} requests and {items - len(failed)} of {items} items of the next were carried out"
        unfinished = NotFinished(f"{done}, not: {reasons}{more}", "the journal has it: undo or resume it")
        unfinished.items = refused
        raise unfinished

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
        """Until the cluster shows what it has acknowledged. Raises NotFinished where a move has become another one.

        A topic with a dead broker may never come to be with ZooKeeper. In KRaft a read waits for the metadata, but
        a broker tells how far it is a moment before it answers accordingly.
        """
        if not writes:
            return
        end = time.monotonic() + SETTLING
        while True:
            state = self._state_of(writes)
            if all(
                self._is_done(write, state) or (state.quorum is None and name_of(write) == "CreateTopics")
                for write in _lasting(writes)
            ):
                return
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        moves = [write for write in _lasting(writes) if name_of(write) == MOVES]
        if not all(self._is_done(write, state) for write in moves):
            raise NotFinished(
                "it was carried out, and then changed by somebody else, or is not to be seen yet",
                "`kctl reassign status` shows what is moving where",
            )

    def _is_done(self, write: Write, state: ClusterState) -> bool:
        if name_of(write) == "WriteTxnMarkers":
            return not is_open(self._cluster.wire, content(write))
        return is_done(write, state)

    def _state_of(self, writes: Sequence[Write]) -> ClusterState:
        return self._cluster.read_state(topics_touched(writes), configs=config_types_touched(writes))

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether requests that were sent before have been carried out, as far as reading can tell."""
        state = self._state_of(writes)
        return all(can_tell(write, state) and self._is_done(write, state) for write in writes)


def _lasting(writes: Sequence[Write]) -> list[Write]:
    """Those that can be seen afterwards: of several about the same partitions (cancel, then the order) the last."""
    moves = [write for write in writes if name_of(write) == MOVES]
    return [write for write in writes if write not in moves[:-1]]
