"""Write a change: read again what the plan was computed from, send each request, check its answer.

What a write expects, and whether it has been carried out, follows from its JSON alone, so that a journal
entry is enough.
"""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from formats.values import replace
from kctl.changes.faults import reach
from kctl.changes.intents import Several
from kctl.cluster.disks import places
from kctl.cluster.intent import Intent, Write
from kctl.cluster.interface import Conflict, refuse_changed
from kctl.cluster.state import UNTOLD, ClusterState, Replicas
from kctl.errors import KctlError, NotFinished, Refused, without_reassurance
from kctl.model import TopicPartition, counted
from kctl.wire.adapter import NoAnswer, Wire
from kctl.wire.writes import kraft
from kctl.wire.writes.planning import TRANSLATIONS, content, item_count, name_of
from kctl.wire.writes.requests import Quantifier, RequestItem, WireCluster, can_be_validated
from kctl.wire.writes.sending import own_request, own_translation, send

SETTLING = 5.0  # seconds to find out whether a lost request was carried out
# Seconds that brokers have to apply a throttle; those not in force then are reported after the write.
IN_FORCE = 2.0
MOVES, DISKS = "AlterPartitionReassignments", "AlterReplicaLogDirs"
LOOK = "`kctl journal resume` looks and goes on"


def topics_touched(writes: Sequence[Write]) -> set[str] | None:
    """The topics that the writes change; None for all."""
    if any(name_of(write) in kraft.OF_ANY_TOPIC for write in writes):
        return None
    topics: set[str] = set()
    for write in writes:
        after = content(write)
        if "topic" in after:
            topics.add(str(after["topic"]))
        topics |= {str(row["topic"]) for row in after.get("partitions", ())}
        if after.get("entity_type") == "topics":
            topics.add(str(after["entity_name"]))
    return topics


def log_dirs_touched(writes: Sequence[Write]) -> set[int]:
    """The brokers that move replicas between log directories."""
    return {int(content(write)["broker_id"]) for write in writes if name_of(write) == DISKS}


def config_types_touched(writes: Sequence[Write]) -> set[str]:
    """The entity types whose configurations the writes change."""
    return {str(kind) for write in writes if (kind := content(write).get("entity_type")) is not None}


def refuse_other_state(write: Write, state: ClusterState) -> None:
    """Raise Conflict if the state that the write was computed from has changed."""
    if write.before is None:
        return
    before, after = json.loads(write.before), content(write)
    if "configs" in before:
        entity = after["entity_type"], after["entity_name"]
        refuse_changed(*entity, before["configs"], state.config(*entity))
    if "topic_id" in before:
        _refuse_other_topic(after["topic"], before, state)
    for row in before.get("partitions", ()):
        _refuse_other_partition(row, state)
    _refuse_other_places(before, after, state)
    kraft.refuse_other_state(before, after, state)
    for row in before.get("leaderless", ()):
        tp = TopicPartition(row["topic"], row["partition"])
        partition_state = state.partition_states.get(tp)
        if partition_state is None or state.is_alive(partition_state.leader):
            raise Conflict(f"{tp} has a leader by now; nothing was written")


def refuse_other_answers(wire: Wire, writes: Sequence[Write]) -> None:
    """Raise Conflict if the answers that a write was computed from have changed."""
    for write in writes:
        if (own := own_request(write)) is not None:
            own.refuse_changed(wire, json.loads(write.before or b"{}"), content(write))


def _refuse_other_topic(name: str, before: Mapping[str, Any], state: ClusterState) -> None:
    topic = state.topics.get(name)
    _refuse_hidden(name, state)
    if topic is None or topic.topic_id != before["topic_id"]:
        gone = "is gone" if topic is None else "was deleted and created again"
        raise Conflict(f"topic {name} {gone} since it was read; nothing was written")
    count = before.get("count")
    if count is not None and len(topic.partitions) != count:
        raise Conflict(f"topic {name} was changed by somebody else; nothing was written")


def _refuse_other_partition(row: Mapping[str, Any], state: ClusterState) -> None:
    tp = TopicPartition(row["topic"], row["partition"])
    present = state.replicas(tp)
    _refuse_hidden(tp.topic, state)
    if present is None:
        raise Conflict(f"{tp} is gone since it was read; nothing was written")
    topic = state.topics[tp.topic]
    adding = topic.adding_replicas.get(tp.partition, ())
    removing = topic.removing_replicas.get(tp.partition, ())
    if (adding, removing) != (tuple(row["adding"]), tuple(row["removing"])):
        raise Conflict(f"{tp} is being moved by somebody else; nothing was written")
    if present != tuple(row["replicas"]):
        raise Conflict(
            f"{tp} is on {list(present)}, not on {row['replicas']} as it was read; nothing was written"
        )


def _refuse_hidden(topic: str, state: ClusterState) -> None:
    if (why := state.why_unseen(topic)) is not None:
        raise Refused(
            f"topic {topic} cannot be seen ({why}); nothing was written",
            "kctl compares a topic before it changes it: run it as a user that may describe it",
        )


def _refuse_other_places(before: Mapping[str, Any], after: Mapping[str, Any], state: ClusterState) -> None:
    placed = places(state.log_dirs) if "log_dirs" in before else {}
    for row in before.get("log_dirs", ()):
        tp = TopicPartition(row["topic"], row["partition"])
        place = placed.get((tp, after["broker_id"]))
        if (present := place and place.target) != row["log_dir"]:
            raise Conflict(
                f"{tp} is in {present} of broker {after['broker_id']}, not in {row['log_dir']} as it was read; "
                "nothing was written"
            )


# --- has it been done? --------------------------------------------------------------------------------


def is_done(write: Write, state: ClusterState) -> bool:
    """Whether the cluster shows what the write asks for."""
    name = name_of(write)
    return (CHECKS.get(name) or kraft.CHECKS[name])(content(write), state)


def can_tell(write: Write, state: ClusterState) -> bool:
    """Whether the cluster shows if the write was done: a value that brokers do not return looks as it did before."""
    if state.kafka_version < kraft.SHOWN_SINCE.get(name_of(write), state.kafka_version):
        return False
    before, after = json.loads(write.before or b"{}").get("configs", {}), content(write)
    if after.get("is_to_come") or after.get("at_controller"):
        return False
    if "entity_type" not in after:  # of a new topic `configs` are a mapping
        return True
    return not any(
        before.get(config["key"]) == UNTOLD
        and state.is_untold(state.config(after["entity_type"], after["entity_name"]).get(config["key"]))
        for config in after.get("configs", ())
    )


def _created(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    assignments = {int(p): tuple(ids) for p, ids in after["assignments"].items()}
    return topic is not None and dict(topic.partitions) == assignments


def _deleted(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    if state.why_unseen(after["topic"]) is not None:
        return False
    return topic is None or (after["topic_id"] is not None and topic.topic_id != after["topic_id"])


def _grown(after: Mapping[str, Any], state: ClusterState) -> bool:
    topic = state.topics.get(after["topic"])
    first = int(after["count"]) - len(after["assignments"])
    assignments = {p: tuple(ids) for p, ids in enumerate(after["assignments"], first)}
    return topic is not None and all(topic.partitions.get(p) == ids for p, ids in assignments.items())


def _configured(after: Mapping[str, Any], state: ClusterState) -> bool:
    if after.get("at_controller"):
        return False  # of a dead broker, whose configuration no broker returns
    of = (after["entity_type"], after["entity_name"])
    if state.why_unread(*of) is not None:
        return False
    present = state.config(*of)
    for config in after["configs"]:
        key, operation, value = config["key"], config["operation"], config.get("value")
        current = present.get(key)
        items = set((current or "").split(","))
        named = set((value or "").split(","))
        if not {
            "SET": current in (value, UNTOLD),
            "DELETE": current is None,
            "APPEND": named <= items,
            "SUBTRACT": not named & items,
        }[operation]:
            return False
    return True


def _reassigned(after: Mapping[str, Any], state: ClusterState) -> bool:
    return all(_goes_to(row, state) for row in after["partitions"])


def _goes_to(row: Mapping[str, Any], state: ClusterState) -> bool:
    tp = TopicPartition(row["topic"], row["partition"])
    topic = state.topics.get(tp.topic)
    if topic is None:
        return False
    if row["replicas"] is None:
        return not topic.is_reassigning(tp.partition)
    target: Replicas = tuple(row["replicas"])
    if topic.is_reassigning(tp.partition):
        return set(topic.target_replicas(tp.partition)) == set(target)
    return topic.partitions.get(tp.partition) == target


def _moved(after: Mapping[str, Any], state: ClusterState) -> bool:
    """Whether each replica is being moved; the log directory of a future replica is not visible."""
    placed = places(state.log_dirs)
    rows = after["partitions"] if not after.get("is_to_come") else ()
    placed_rows = [
        (placed.get((TopicPartition(row["topic"], row["partition"]), after["broker_id"])), row)
        for row in rows
    ]
    return all(place is not None and place.target == row["log_dir"] for place, row in placed_rows)


def _elected(after: Mapping[str, Any], state: ClusterState) -> bool:
    for row in after["partitions"]:
        partition_state = state.partition_states.get(TopicPartition(row["topic"], row["partition"]))
        if partition_state is None or partition_state.leader != row.get("preferred", row.get("to")):
            return False
    return True


CHECKS = {
    "CreateTopics": _created,
    "DeleteTopics": _deleted,
    "CreatePartitions": _grown,
    "IncrementalAlterConfigs": _configured,
    "AlterClientQuotas": _configured,
    "AlterPartitionReassignments": _reassigned,
    DISKS: _moved,
    "ElectLeaders": _elected,
}


def writes_for(cluster: WireCluster, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
    """See `kctl.cluster.interface.Cluster`; a single request is validated by the controller where it can be."""
    fresh = cluster.read_state(
        intent.topics_concerned(),
        configs=intent.config_types(),
        log_dirs_of=intent.brokers_of_disks(),
        kafka_version=state.kafka_version,
        recent=True,  # it is read again before anything is sent
    )
    if (own := own_translation(intent)) is not None:
        return tuple(own(cluster.wire, intent))
    translate = TRANSLATIONS.get(intent.kind) or kraft.TRANSLATIONS[intent.kind]
    writes = tuple(translate(fresh, intent, state))
    refuse_other_answers(cluster.wire, writes)
    # Those of one intent that depend on each other are not valid before the first of them is carried out.
    validated = writes if len(writes) == 1 or isinstance(intent, Several) else ()
    for write in filter(can_be_validated, validated):
        for item in send(cluster.wire, write, validate_only=True):
            error = item.error()
            error.items = (item.refused(name_of(write)),)
            raise error
    return writes


class WireCommit:
    """Carries out lists of writes on a cluster."""

    def __init__(self, cluster: WireCluster) -> None:
        self._cluster = cluster
        self._sent = 0  # requests that were answered

    def carry_out(self, writes: Sequence[Write]) -> None:
        """Send the requests in order, after reading again what they expect.

        Raises Conflict if that has changed, Refused if the first of them was refused, NotFinished
        if only a part was done, or that is unknown. After any other error nothing was done.
        """
        state = self._state_of(writes)
        for write in writes:
            refuse_other_state(write, state)
        refuse_other_answers(self._cluster.wire, writes)
        done = 0
        try:
            for number, write in enumerate(writes):
                if name_of(write) == DISKS or (name_of(write) == MOVES and state.quorum is None):
                    self._await_rates(writes[:number])
                self._send(write, number, len(writes))
                done += 1
            self._settle(writes)
        except KctlError as error:
            if isinstance(error, NotFinished) or not done:
                raise
            words = (
                f"{done} of {counted(len(writes), 'request')} {'was' if done == 1 else 'were'} carried out"
            )
            raise _unfinished(f"{words}: {without_reassurance(error.message)}", LOOK) from error

    def _send(self, write: Write, number: int, count: int) -> None:
        self._cluster.has_written = True
        reach(f"asking:{self._sent + 1}")
        try:
            failed = send(self._cluster.wire, write)
        except NoAnswer as lost:
            return self._find_out(write, lost, number, count)
        if failed:
            self._say_what_failed(write, failed, number, count)
        self._sent += 1
        reach(f"sent:{self._sent}")

    def _await_rates(self, writes: Sequence[Write]) -> None:
        """Wait until brokers report throttles in force that were written before their moves.

        With ZooKeeper each broker reads them by itself, the lists first, and learns the moves from the controller.
        In KRaft all of these are in one log, except moves between disks, which are requested from the broker. Brokers of 2.4
        do not return rates.
        """
        rates = [write for write in writes if content(write).get("entity_type") == "brokers"]
        end = time.monotonic() + IN_FORCE
        while rates and time.monotonic() < end:
            state = self._state_of(rates)
            rates = [rate for rate in rates if can_tell(rate, state) and not is_done(rate, state)]
            if rates:
                time.sleep(0.02)

    def _say_what_failed(self, write: Write, failed: Sequence[RequestItem], number: int, count: int) -> None:
        items = item_count(write)
        refused = tuple(item.refused(name_of(write)) for item in failed)
        if number == 0 and len(failed) >= items:
            more = f"; so {len(failed) - 1} more" if len(failed) > 1 else ""
            error = failed[0].error(f"nothing was written{more}")
            error.items = refused
            raise error
        reasons = "; ".join(item.reason for item in failed[:5])
        more = f" and {len(failed) - 5} more" if len(failed) > 5 else ""
        done = f"{number} of {counted(count, 'request')} and {items - len(failed)} of {items} items of the next were carried out"
        unfinished = _unfinished(f"{done}, not: {reasons}{more}", LOOK)
        unfinished.items = refused
        raise unfinished

    def _find_out(self, write: Write, lost: NoAnswer, number: int, count: int) -> None:
        """Find out whether a request without an answer was carried out. Raises NotFinished if that is not visible."""
        end = time.monotonic() + SETTLING
        seen, is_begun = "what of the next was is not known", False
        while True:
            with contextlib.suppress(KctlError):
                if self._is_done(write, self._state_of([write])):
                    return
                is_begun = self.is_begun([write])
                part = "only a part" if is_begun else "nothing"
                seen = f"of the next {part} is to be seen, and it may still be carried out"
            if time.monotonic() > end:
                break
            time.sleep(0.2)
        unfinished = NotFinished(
            f"{lost}; {number} of {counted(count, 'request')} were carried out, {seen}", LOOK
        )
        unfinished.is_begun = number > 0 or is_begun
        raise unfinished

    def _settle(self, writes: Sequence[Write]) -> None:
        """Wait until the cluster shows what it has acknowledged. Raises NotFinished if a move is not visible.

        A topic with a dead broker may never be complete with ZooKeeper. In KRaft a read waits for the metadata, but
        a broker reports its metadata offset a moment before its answers reflect it.
        """
        if not writes:
            return
        end = time.monotonic() + SETTLING
        while True:
            state = self._state_of(writes)
            if all(
                self._is_done(write, state)
                or (state.quorum is None and name_of(write) == "CreateTopics")
                or content(write).get("at_controller")
                for write in _lasting(writes)
            ):
                return
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        telling = [w for w in _lasting(writes) if name_of(w) == MOVES or own_request(w) is not None]
        for write in telling:
            if not self._is_done(write, state):
                raise _unfinished(
                    "it was acknowledged, but is not to be seen: not yet, or somebody else has changed it",
                    "`kctl reassign status` shows the moves" if name_of(write) == MOVES else LOOK,
                )

    def _is_done(self, write: Write, state: ClusterState, of: Quantifier = all) -> bool:
        if (own := own_request(write)) is not None:
            return own.is_done(self._cluster.wire, content(write), of)
        return of(is_done(item, state) for item in (_items(write) if of is any else [write]))

    def _state_of(self, writes: Sequence[Write]) -> ClusterState:
        return self._cluster.read_state(
            topics_touched(writes),
            configs=config_types_touched(writes),
            log_dirs_of=log_dirs_touched(writes),
        )

    def is_written(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that earlier requests have been carried out."""
        state = self._state_of(writes)
        return all(can_tell(write, state) and self._is_done(write, state) for write in writes)

    def is_begun(self, writes: Sequence[Write]) -> bool:
        """Whether the cluster shows that any item of earlier requests has been carried out."""
        state = self._state_of(writes)
        return any(can_tell(write, state) and self._is_done(write, state, any) for write in writes)


def _unfinished(message: str, hint: str) -> NotFinished:
    """The error of a change of which a part is carried out."""
    error = NotFinished(message, hint)
    error.is_begun = True
    return error


def _items(write: Write) -> list[Write]:
    """A request for each partition of a request; other requests are carried out whole."""
    after = content(write)
    rows = after.get("partitions")
    if not rows:
        return [write]
    return [replace(write, after=json.dumps({**after, "partitions": [row]}).encode()) for row in rows]


def _lasting(writes: Sequence[Write]) -> list[Write]:
    """Those that stay visible: the last of several about the same partitions (cancel, then the order)."""
    moves = [write for write in writes if name_of(write) == MOVES]
    return [write for write in writes if write not in moves[:-1]]
