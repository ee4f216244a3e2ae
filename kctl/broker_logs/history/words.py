"""What controllers and brokers say in words about why leaderships change: by partition, and by the broker it is about."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from formats.broker_logs.objects import topic_partition
from kctl.broker_logs.events import Event
from kctl.model import TopicPartition

PARTITION = re.compile(r"\[[\w.-]+, ?\d{1,19}\]|[\w.-]+-\d{1,19}")
CONTEXT = re.compile(r"(\w+)\[(\d{1,19})")
MOST = 5_000
# How far the time of a line and a count of microseconds to it may lie apart.
ROUNDED_MS = 20
BY_PARTITION = {
    "E18": "preferred", "E19": "preferred", "E25": "reassignment", "E26": "reassignment", "E27": "reassignment",
    "E28": "reassignment", "C28": "reassignment", "C29": "reassignment", "E24": "reassignment", "E14": "unclean",
    "L09": "recovering", "Q08": "unclean", "Q21": "reassignment",
}  # fmt: skip
# How brokers ended by what a controller says, and the field with their ids.
ENDS = {
    "E11": ("failure", "broker_ids"), "E12": ("failure", "deleted"), "E13": ("controlled_shutdown", "broker_id"),
    "Q10": ("failure", "broker_id"),
}  # fmt: skip
STARTS = ("U11", "U16")
# A request of the controller failed, as it did not lead any more perhaps (to 3.2, to 3.5, since).
RENOUNCED = ("M14", "M27", "X412")
RENOUNCES = re.compile(r"Renouncing leadership|Reverting to last committed")
# Lines of controllers that each stand for one unclean election.
ANNOUNCING = frozenset(("E14", "Q05"))
# What brokers of a KRaft cluster print; the lines of its controllers begin with Q.
KRAFT = frozenset(("U09", "U10", "U16", "L12", "L13"))


class Word(NamedTuple):
    """What a line says of the cause of a leadership."""

    kind: str
    time_ms: int
    leader: int | None
    """The leader that the leadership must have, where the line says so."""
    proof: dict[str, object]
    leader_epoch: int | None = None
    """The epoch that it must have, where the line says so."""
    logged_ms: int | None = None

    @property
    def place(self) -> tuple[object, object]:
        """The file and the line."""
        return self.proof["file"], self.proof["line"]


class Words:
    """The words by partition and by broker, each in order of time, the latest of each."""

    def __init__(self) -> None:
        self.of_partition: dict[TopicPartition, list[Word]] = {}
        self._of_broker: dict[int, list[Word]] = {}
        # Replicas that controllers took for offline, each with the epoch of the controller.
        self.offline: dict[TopicPartition, list[Word]] = {}
        self._starts: dict[int, list[int]] = {}
        # When a controller began to delete a topic last, and the line that says so.
        self.deletions: dict[str, Word] = {}
        # Since when the cluster has KRaft controllers.
        self.kraft_since: int | None = None
        # Epochs whose leader the controller elected from the ISR or the eligible leader replicas.
        self.eligible: set[tuple[TopicPartition, int | None]] = set()
        # Epochs that one of the last known leaders began, where nobody was in the ISR or eligible.
        self.last_known: set[tuple[TopicPartition, int | None]] = set()
        # Brokers whose server.log is among the logs, and since when each change of an ISR that they made is seen.
        self.servers: dict[int, int] = {}
        # Brokers whose lines as controllers are among the logs, so that what they are asked for is seen.
        self.controllers: set[int | None] = set()

    def note(self, event: Event, time_ms: int) -> None:
        """Remember what a line says about causes."""
        if self.kraft_since is None and is_of_kraft(event):
            self.kraft_since = time_ms
        if event.broker_id is not None and event.source.kind in ("server", "stdout"):
            self.servers.setdefault(event.broker_id, time_ms)
        name, partition = event.event or "", event.topic_partition
        if name[:1] == "E":
            self.controllers.add(event.broker_id)
        kind = BY_PARTITION.get(name)
        if kind is not None and partition is not None:
            leader = event.broker_id if name == "L09" else event.number("leader") if name == "E14" else None
            epoch = event.number("leader_epoch") if name == "E24" else None
            self._add(partition, kind, time_ms, leader, event, epoch)
        elif name == "E30" and "started" in str(event.fields.get("what", "")):
            self.deletions[str(event.fields.get("topic", ""))] = Word(
                "deletion", time_ms, None, event.proof()
            )
        elif name == "L03" and partition is not None:
            self._note_start(event, partition)
        elif name in ("E21", "E22"):
            election_type = str(event.fields.get("type", "PREFERRED")).upper()
            kind = "unclean" if election_type == "UNCLEAN" else "preferred"
            for named in partitions_in(str(event.fields.get("partitions", ""))):
                self._add(named, kind, time_ms, None, event)
        elif name == "C19" and partition is not None:
            if event.fields.get("to_state") == "OfflineReplica":
                replica, term = event.number("replica"), event.number("controller_epoch")
                word = Word("offline", time_ms, replica, event.proof(), term)
                self.offline.setdefault(partition, []).append(word)
        elif name == "Q05" and partition is not None:
            self._note_election(event, partition, time_ms)
        else:
            self._note_brokers(name, event, time_ms)

    def _note_start(self, event: Event, partition: TopicPartition) -> None:
        """Note that a leader begins with its own log as the truth, which it logs before the epoch that it leads in."""
        words = self.of_partition.get(partition, [])
        for at in range(len(words) - 1, max(len(words) - 8, 0) - 1, -1):
            word = words[at]
            if (word.kind, word.leader, word.leader_epoch) == ("recovering", event.broker_id, None):
                words[at] = word._replace(leader_epoch=event.number("leader_epoch"))
                return

    def _note_election(self, event: Event, partition: TopicPartition, time_ms: int) -> None:
        changes = event.fields.get("changes")
        leader = _elected_uncleanly(changes)
        epoch = changes.get("leader_epoch") if isinstance(changes, dict) else None
        if leader is not None:
            self._add(partition, "unclean", time_ms, leader, event, epoch[1] if epoch else None)
            assert isinstance(changes, dict)
            if epoch and leader in (changes.get("last_known_elr") or ((), ()))[0]:
                self.last_known.add((partition, epoch[1]))
        elif epoch:
            self.eligible.add((partition, epoch[1]))

    def _note_brokers(self, name: str, event: Event, time_ms: int) -> None:
        ids: object
        if name in STARTS and event.broker_id is not None:
            self._starts.setdefault(event.broker_id, []).append(time_ms)
            return
        if (since_ms := unfenced_since(event, time_ms)) is not None:
            for words in self._of_broker.values():
                while words and words[-1].time_ms >= since_ms and is_fencing(words[-1].proof, event.file):
                    words.pop()
            return
        if name in ENDS:
            kind, key = ENDS[name]
            ids = event.fields.get(key)
        elif name == "U15":
            kind, ids = "controlled_shutdown", event.broker_id
        elif name in ("Q15", "Q16") and "shut" in event.message:
            kind, ids = "controlled_shutdown", event.number("broker_id")
        elif name == "Q11" and (context := CONTEXT.match(str(event.fields.get("context", "")))):
            kind, ids = "controlled_shutdown" if "Shutdown" in context[1] else "failure", int(context[2])
        else:
            return
        for broker_id in ids if isinstance(ids, list) else [ids]:
            if isinstance(broker_id, int):
                word = Word(kind, time_ms, None, event.proof())
                _append(self._of_broker.setdefault(broker_id, []), word)

    def _add(
        self,
        partition: TopicPartition,
        kind: str,
        time_ms: int,
        leader: int | None,
        event: Event,
        leader_epoch: int | None = None,
    ) -> None:
        words = self.of_partition.setdefault(partition, [])
        _append(words, Word(kind, time_ms, leader, event.proof(), leader_epoch, event.logged_ms))

    def about(self, partition: TopicPartition, since_ms: int, until_ms: int) -> Iterator[Word]:
        """What was said of a partition between two times, both of them included."""
        return _words_between(self.of_partition.get(partition, []), since_ms, until_ms)

    def of_broker(self, broker_id: int, since_ms: int, until_ms: int) -> list[Word]:
        """The words about a broker's end; its own count only if it has not started again since."""
        return [
            word
            for word in _words_between(self._of_broker.get(broker_id, []), since_ms, until_ms)
            if word.proof["event"] != "U15"
            or not any(word.time_ms < start <= until_ms for start in self._starts.get(broker_id, ()))
        ]


def unfenced_since(event: Event, time_ms: int) -> int | None:
    """The time from which fencings do not count, since the controller that logged them had lost the lead; else None."""
    micros = event.number("micros") if event.event in RENOUNCED else None
    what = str(event.fields.get("operation") or event.fields.get("what") or "")
    has_renounced = RENOUNCES.search(event.message)  # else it failed before it fenced anybody
    if micros is None or not what.startswith("maybeFence") or has_renounced is None:
        return None
    return time_ms - micros // 1000 - ROUNDED_MS


def is_fencing(proof: dict[str, object], file: str) -> bool:
    """Whether a broker's fencing is told by a line of this file."""
    return proof["event"] in ("Q10", "Q11") and proof["file"] == file


def is_of_kraft(event: Event) -> bool:
    """Whether only a cluster with KRaft controllers prints it."""
    name = event.event or ""
    return name in KRAFT or (name[:1] == "Q" and name not in ("Q23",))


def _elected_uncleanly(changes: object) -> int | None:
    """The new leader of a change that was elected from outside the ISR and the eligible leader replicas."""
    leader = changes.get("leader") if isinstance(changes, dict) else None
    if not isinstance(changes, dict) or not leader or not isinstance(leader[1], int) or leader[1] < 0:
        return None
    # The recovery state alone does not tell: it may have been RECOVERING before.
    eligible = [*(changes.get("isr") or ((), ()))[0], *(changes.get("elr") or ((), ()))[0]]
    return None if leader[1] in eligible else leader[1]


def _is_of_another_file(word: Word, last: Word) -> bool:
    return word.proof["event"] in ("Q10", "Q11") and word.proof["file"] != last.proof["file"]


def _append(words: list[Word], word: Word) -> None:
    """Add a word, unless it repeats the last one a moment later."""
    last = words[-1] if words else None
    # Of a line that a controller prints once, each counts; of a fencing, which may be taken back, that of each file.
    is_said_once = word.proof["event"] == "E14" or (last is not None and _is_of_another_file(word, last))
    is_same = last is not None and (last.kind, last.leader) == (word.kind, word.leader)
    if last is not None and is_same and not is_said_once and word.time_ms - last.time_ms < 100:
        return
    words.append(
        word if last is None or word.time_ms >= last.time_ms else word._replace(time_ms=last.time_ms)
    )
    if len(words) > MOST:
        del words[: MOST // 2]


def _words_between(words: list[Word], since_ms: int, until_ms: int) -> Iterator[Word]:
    for word in words[bisect_left(words, since_ms, key=lambda word: word.time_ms) :]:
        if word.time_ms > until_ms:
            return
        yield word


def partitions_in(text: str) -> list[TopicPartition]:
    """The partitions that a printed list names, in either spelling."""
    partitions = (topic_partition(match) for match in PARTITION.findall(text))
    return [TopicPartition(*pair) for pair in partitions if pair]
