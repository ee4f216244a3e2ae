"""How a leadership began: what the controller was doing when it decided."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from formats.broker_logs.objects import topic_partition
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import NO_LEADER, Leadership
from kctl.model import TopicPartition

PARTITION = re.compile(r"\[[\w.-]+, ?\d{1,19}\]|[\w.-]+-\d{1,19}")
CONTEXT = re.compile(r"(\w+)\[(\d{1,19})")
# How long before a leadership (and after, for lines printed once it stands) its cause may be said.
BEFORE = {
    "preferred": 60_000,
    "reassignment": 60_000,
    "controlled_shutdown": 120_000,
    "failure": 60_000,
    "unclean": 10_000,
}
AFTER = {
    "preferred": 2_000,
    "reassignment": 2_000,
    "controlled_shutdown": 500,
    "failure": 500,
    "unclean": 30_000,
}
# No mark counts for longer than this.
LONGEST = 120_000
MOST = 5_000
BY_PARTITION = {
    "E18": "preferred", "E19": "preferred", "E25": "reassignment", "E26": "reassignment", "E27": "reassignment",
    "E28": "reassignment", "C28": "reassignment", "C29": "reassignment", "E24": "reassignment", "E14": "unclean",
    "L09": "unclean", "Q08": "unclean", "Q21": "reassignment",
}  # fmt: skip

# Lines of controllers that each stand for one unclean election.
ANNOUNCING = frozenset(("E14", "Q05"))

# What brokers of a KRaft cluster print; the lines of its controllers begin with Q.
KRAFT = frozenset(("U09", "U10", "U16", "L12", "L13"))


class Mark(NamedTuple):
    """Something that may be the cause of a leadership."""

    kind: str
    time_ms: int
    leader: int | None
    """The leader that it must have, where the line says so."""
    proof: dict[str, object]
    leader_epoch: int | None = None
    """The epoch that it must have, where the line says so."""
    logged_ms: int | None = None


class Announced(NamedTuple):
    """A line that announces an election from outside the ISR, without a leadership that it made unclean."""

    topic_partition: TopicPartition
    leader: int | None
    leader_epoch: int | None
    proof: dict[str, object]
    is_back: bool
    """Whether a leadership tells of it: the last of the ISR came back."""


class Causes:
    """What controllers said they were doing, and brokers that they stop; by partition and by broker, the latest of each."""

    def __init__(self, doubtful: frozenset[int] = frozenset()) -> None:
        self._partitions: dict[TopicPartition, list[Mark]] = {}
        # Brokers whose lines may stand at a wrong place among those of the others.
        self._doubtful = doubtful
        self._brokers: dict[int, list[Mark]] = {}
        self._starts: dict[int, list[int]] = {}
        self._last_leader: dict[TopicPartition, int] = {}
        # Since when the cluster has KRaft controllers.
        self._kraft_since: int | None = None
        # Epochs whose leader the controller elected from the ISR or the eligible leader replicas.
        self._eligible: set[tuple[TopicPartition, int | None]] = set()
        # Epochs that an unclean election began.
        self._unclean_epochs: set[tuple[TopicPartition, int | None]] = set()
        # Warnings that a leadership has been decided by, each of which speaks of one.
        self._spent: set[tuple[object, object]] = set()
        # Warnings about a leader that turned out to be the last of the ISR.
        self._back: set[tuple[object, object]] = set()
        # Brokers whose server.log is among the logs, and since when each change of an ISR that they made is seen.
        self.servers: dict[int, int] = {}

    def note(self, event: Event, time_ms: int) -> None:
        """Remember what a line says about causes."""
        if self._kraft_since is None and is_of_kraft(event):
            self._kraft_since = time_ms
        if event.broker_id is not None and event.source.kind in ("server", "stdout"):
            self.servers.setdefault(event.broker_id, time_ms)
        name = event.event or ""
        kind = BY_PARTITION.get(name)
        if kind is not None:
            partition = event.topic_partition
            if partition is not None:
                leader = (
                    event.broker_id if name == "L09" else event.number("leader") if name == "E14" else None
                )
                self._mark(partition, kind, time_ms, leader, event)
        elif name in ("E21", "E22"):
            election_type = str(event.fields.get("type", "PREFERRED")).upper()
            kind = "unclean" if election_type == "UNCLEAN" else "preferred"
            for partition in partitions_in(str(event.fields.get("partitions", ""))):
                self._mark(partition, kind, time_ms, None, event)
        elif name == "Q05":
            self._note_election(event, time_ms)
        else:
            self._note_brokers(name, event, time_ms)

    def _note_election(self, event: Event, time_ms: int) -> None:
        changes, partition = event.fields.get("changes"), event.topic_partition
        leader = _elected_uncleanly(changes)
        epoch = changes.get("leader_epoch") if isinstance(changes, dict) else None
        if partition is None:
            return
        if leader is not None:
            self._mark(partition, "unclean", time_ms, leader, event, epoch[1] if epoch else None)
        elif epoch:
            self._eligible.add((partition, epoch[1]))

    def _note_brokers(self, name: str, event: Event, time_ms: int) -> None:
        fields = event.fields
        ids: object = None
        kind = "failure"
        if name in ("U11", "U16") and event.broker_id is not None:
            self._starts.setdefault(event.broker_id, []).append(time_ms)
        elif name == "E11":
            ids = fields.get("broker_ids")
        elif name == "E12":
            ids = fields.get("deleted")
        elif name == "U15":
            ids, kind = [event.broker_id], "controlled_shutdown"
        elif name in ("E13", "Q10"):
            ids = [event.number("broker_id")]
            kind = "controlled_shutdown" if name == "E13" else "failure"
        elif name in ("Q15", "Q16") and "shut" in event.message:
            ids, kind = [event.number("broker_id")], "controlled_shutdown"
        elif name == "Q11":
            context = CONTEXT.match(str(fields.get("context", "")))
            if context:
                ids = [int(context[2])]
                kind = "controlled_shutdown" if "Shutdown" in context[1] else "failure"
        for broker_id in ids if isinstance(ids, list) else ():
            if isinstance(broker_id, int):
                _append(self._brokers.setdefault(broker_id, []), Mark(kind, time_ms, None, event.proof()))

    def _mark(
        self,
        partition: TopicPartition,
        kind: str,
        time_ms: int,
        leader: int | None,
        event: Event,
        leader_epoch: int | None = None,
    ) -> None:
        marks = self._partitions.setdefault(partition, [])
        _append(marks, Mark(kind, time_ms, leader, event.proof(), leader_epoch, event.logged_ms))

    def decide(self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None) -> None:
        """Say how a leadership began, given the one before it (None where the logs do not have it).

        `known_isr` is the last ISR that held a broker: until 1.0 a partition without a leader prints none.
        """
        after.how, after.cause = self._how(before, after, known_isr)
        if after.leader is not None and after.leader >= 0:
            self._last_leader[after.topic_partition] = after.leader

    def _how(
        self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None
    ) -> tuple[str, str]:
        if after.leader is None:
            return "unknown", after.cause
        marks = self._near(after)
        if after.leader == NO_LEADER:
            return "none", self._why_none(before, after)
        unclean = self._unclean(before, after, marks, known_isr)
        if unclean:
            self._unclean_epochs.add((after.topic_partition, after.leader_epoch))
            return "unclean", unclean
        if after.from_state == "NewPartition" or (before is None and after.leader_epoch == 0):
            return "creation", ""
        if before is None or before.leader is None:
            kinds = [mark.kind for mark in marks if mark.kind != "unclean"]
            return (
                (kinds[-1], "")
                if kinds and after.from_state
                else ("unknown", "the epoch before it is not in these logs")
            )
        if before.leader == after.leader:
            return self._same_leader(before, after, marks)
        return self._new_leader(before, after, marks)

    def announced(self) -> Iterator[Announced]:
        """What announces an unclean election and made no leadership one, once every leadership is decided."""
        for partition, marks in self._partitions.items():
            for mark in marks:
                place, epoch = _place(mark), (partition, mark.leader_epoch)
                is_back = place in self._back
                # Each controller tells of each epoch, again whenever it starts.
                is_told = place in self._spent or epoch in self._unclean_epochs or epoch in self._eligible
                if mark.proof["event"] in ANNOUNCING and (is_back or not is_told):
                    yield Announced(partition, mark.leader, mark.leader_epoch, mark.proof, is_back)

    def _near(self, leadership: Leadership) -> list[Mark]:
        marks = self._partitions.get(leadership.topic_partition, [])
        return [
            mark
            for mark in _near(marks, leadership)
            if mark.leader in (None, leadership.leader)
            and mark.leader_epoch in (None, leadership.leader_epoch)
        ]

    def _of_broker(self, broker_id: int, leadership: Leadership) -> list[Mark]:
        return [
            mark
            for mark in _near(self._brokers.get(broker_id, []), leadership)
            if self._is_news(broker_id, mark, leadership)
        ]

    def _is_news(self, broker_id: int, mark: Mark, leadership: Leadership) -> bool:
        """Whether a mark is not over: a broker that stops by its own words may have started again since."""
        is_own = mark.proof["event"] == "U15"
        return not is_own or not any(
            mark.time_ms < start <= leadership.from_ms for start in self._starts.get(broker_id, ())
        )

    def _why_none(self, before: Leadership | None, after: Leadership) -> str:
        if before is None or before.leader is None or before.leader < 0:
            return "no replica of the ISR was alive"
        gone = self._of_broker(before.leader, after)
        if gone:
            after.proofs.append(gone[-1].proof)
        done = "was shut down" if gone and gone[-1].kind == "controlled_shutdown" else "failed"
        return f"broker {before.leader} {done} and no other replica was in the ISR"

    def _unclean(
        self,
        before: Leadership | None,
        after: Leadership,
        marks: list[Mark],
        known_isr: tuple[int, ...] | None,
    ) -> str:
        """Why the election was unclean; nothing where it was not."""
        unclean_marks = [mark for mark in marks if mark.kind == "unclean"]
        outside = is_outside(before, after, known_isr)
        announcements = [
            mark
            for mark in unclean_marks
            if mark.proof["event"] in (*ANNOUNCING, "L09") and _place(mark) not in self._spent
        ]
        announcements = _of_one_election(announcements, after.from_ms)
        self._spent.update(map(_place, announcements))
        if (after.topic_partition, after.leader_epoch) in self._eligible:
            # A recovery state that an election before left behind is said again with every leader.
            return ""
        # A recovery state stays until the ISR changes: a leader that stays too says it again with each of its epochs.
        is_same_leader = before is not None and (before.leader, before.leader_epoch) == (
            after.leader,
            after.leader_epoch - 1,
        )
        if is_same_leader:
            announcements = [mark for mark in announcements if mark.proof["event"] != "L09"]
        decided = [mark for mark in announcements if mark.proof["event"] != "E14"]
        if announcements and not decided and self._is_back(before, after, known_isr):
            self._back.update(map(_place, announcements))
            after.proofs.append(announcements[0].proof)
            return ""
        if announcements:
            announcements = decided or announcements
            of_epoch = [mark for mark in announcements if mark.leader_epoch == after.leader_epoch]
            if (proof := (of_epoch or announcements)[0].proof) not in after.proofs:
                after.proofs.append(proof)
            return "the logs say so"
        if after.recovery_state == "RECOVERING" and not is_same_leader:
            return "its state was set to RECOVERING"
        if not outside or after.from_state in ("NewPartition", "OnlinePartition"):
            return ""
        if self._kraft_since is not None and after.from_ms >= self._kraft_since:
            # The controller and the new leader say so; from 4.0 replicas outside the ISR may be eligible too (KIP-966).
            return ""
        if any(proof["event"] == "E15" for proof in after.proofs):
            # Until 1.0 the line that selects a leader comes with a warning where the election is unclean.
            return ""
        assert before is not None
        if not unclean_marks and not self._isr_is_known(before):
            return ""
        # Under a leader, which ISR was the last one is told by the order of times; without one it stays as decided.
        if self._doubtful and not (before.leader == NO_LEADER and before.isr and known_isr == before.isr):
            return ""
        if unclean_marks:
            after.proofs.append(unclean_marks[-1].proof)
        return f"broker {after.leader} was not in the ISR [{','.join(map(str, known_isr or ()))}]"

    def _is_back(
        self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None
    ) -> bool:
        """Whether a member of the last ISR leads again. Until 1.0 a partition without a leader has an empty ISR: the
        controller warns of lost data whoever comes back."""
        is_decided = before is not None and before.leader == NO_LEADER and self._isr_is_known(before)
        return is_decided and not self._doubtful and after.leader in (known_isr or ())

    def _isr_is_known(self, before: Leadership) -> bool:
        """Whether the last ISR in the logs was the last: decided without a leader, or by one whose log is here."""
        if before.leader == NO_LEADER:
            last = self._last_leader.get(before.topic_partition, NO_LEADER)
            return bool(before.isr) or self.servers.get(last, before.from_ms) < before.from_ms
        return before.leader in self.servers

    def _same_leader(self, before: Leadership, after: Leadership, marks: list[Mark]) -> tuple[str, str]:
        if any(mark.kind == "reassignment" for mark in marks):
            return "reassignment", ""
        for broker_id in sorted(set(before.last_isr or ()) - set(after.isr or ())):
            gone = self._of_broker(broker_id, after)
            if gone:
                after.proofs.append(gone[-1].proof)
                done = "shut down" if gone[-1].kind == "controlled_shutdown" else "failed"
                return "isr_change", f"broker {broker_id} {done} and left the ISR"
        return "isr_change", ""

    def _new_leader(self, before: Leadership, after: Leadership, marks: list[Mark]) -> tuple[str, str]:
        assert before.leader is not None
        if before.leader < 0 or after.from_state == "OfflinePartition":
            known = before.last_isr
            if known and after.leader not in known:
                shown = ",".join(map(str, known))
                return (
                    "failure",
                    f"broker {after.leader} is not in the last ISR that these logs show [{shown}]",
                )
            back = (
                f"broker {after.leader} was back" if before.leader < 0 else f"broker {before.leader} failed"
            )
            return "failure", back
        reasons = [mark for mark in marks if mark.kind in ("preferred", "reassignment")]
        # What happened to the broker before it led is over.
        since = after.from_ms - LONGEST if before.began_before else before.from_ms - AFTER["failure"]
        reasons += [mark for mark in self._of_broker(before.leader, after) if mark.time_ms >= since]
        if before.leader not in (after.isr or ()):
            # A leader that asked to be replaced leaves the ISR; one that lost a preferred election stays.
            reasons = [mark for mark in reasons if mark.kind != "preferred"] or reasons
        elif any(mark.kind in ("preferred", "reassignment") for mark in reasons):
            reasons = [mark for mark in reasons if mark.kind in ("preferred", "reassignment")]
        if reasons:
            # A broker that stops hands over first, and is gone a moment later.
            by_then = [mark for mark in reasons if mark.time_ms <= after.from_ms]
            best = max(by_then or reasons, key=lambda mark: mark.time_ms)
            after.proofs.append(best.proof)
            words = {
                "failure": f"broker {before.leader} failed",
                "controlled_shutdown": f"broker {before.leader} shut down",
            }
            return best.kind, words.get(best.kind, "")
        replicas = after.replicas or before.replicas
        if replicas and replicas[0] == after.leader and before.leader in (after.isr or ()):
            return "preferred", "the first replica leads again"
        return "unknown", ""


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


def _place(mark: Mark) -> tuple[object, object]:
    return mark.proof["file"], mark.proof["line"]


def _of_one_election(marks: list[Mark], time_ms: int) -> list[Mark]:
    """Of several warnings the nearest and its copies: one that was logged at another time is about another election."""
    warned = [mark for mark in marks if mark.proof["event"] == "E14"]
    if not warned:
        return marks
    nearest = min(warned, key=lambda mark: abs(mark.time_ms - time_ms))
    return [mark for mark in marks if mark not in warned or mark.logged_ms == nearest.logged_ms]


def _append(marks: list[Mark], mark: Mark) -> None:
    """Add a mark, unless it says again what the last one said a moment before."""
    last = marks[-1] if marks else None
    # Of a line that a controller prints once, each counts.
    is_said_once = mark.proof["event"] == "E14"
    if (
        last
        and not is_said_once
        and last.kind == mark.kind
        and last.leader == mark.leader
        and mark.time_ms - last.time_ms < 100
    ):
        return
    if last and mark.time_ms < last.time_ms:
        mark = mark._replace(time_ms=last.time_ms)
    marks.append(mark)
    if len(marks) > MOST:
        del marks[: MOST // 2]


def _near(marks: list[Mark], leadership: Leadership) -> list[Mark]:
    """The marks from the time that a leadership began, and from before it ended."""
    ended = (
        leadership.from_ms + LONGEST
        if leadership.to_ms is None
        else max(leadership.to_ms, leadership.from_ms + 1)
    )
    low = bisect_left(marks, leadership.from_ms - LONGEST, key=lambda mark: mark.time_ms)
    near = []
    for mark in marks[low:]:
        if mark.time_ms > leadership.from_ms + LONGEST:
            break
        latest = min(leadership.from_ms + AFTER[mark.kind], ended)
        if leadership.from_ms - BEFORE[mark.kind] <= mark.time_ms <= latest:
            near.append(mark)
    return near


def is_outside(
    before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None
) -> bool | None:
    """Whether the new leader was not in the last ISR; None where that is not known."""
    if before is None or before.leader is None or not known_isr or after.leader is None:
        return None
    return after.leader not in known_isr and (after.isr is None or after.isr == (after.leader,))


def partitions_in(text: str) -> list[TopicPartition]:
    """The partitions that a printed list names, in either spelling."""
    partitions = (topic_partition(match) for match in PARTITION.findall(text))
    return [TopicPartition(*pair) for pair in partitions if pair]
