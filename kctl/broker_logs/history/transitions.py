"""How a leadership began: from the state before it to its own, by the rules of Kafka's controllers.

What a state holds decides first: leader, ISR, recovery state, replicas, and whether the partition was offline. A change
that no line shows may lie between two states; their versions tell, as each write of a state adds one. Then the
controller's words decide, of those that lie between the two states. If words of more than one kind do, the nearest is
only likely.

- An offline partition gets a live member of its ISR as its leader; one from outside leaves the state RECOVERING (3.2).
- A leader that shuts down leaves the ISR as it hands over. One that a reassignment or a preferred election replaces stays.
- A reassignment that keeps the leader raises the epoch alone; a replica that goes offline is taken out of the ISR.

Source: core/src/main/scala/kafka/controller/{PartitionStateMachine, ReplicaStateMachine, KafkaController}.scala @ 0.8.1.1
to 3.9.0-rc3; metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kctl.broker_logs.events import Event
from kctl.broker_logs.history.leaderships import LIKELY, NO_LEADER, NOT_RETURNED, SURE, Leadership
from kctl.broker_logs.history.words import ANNOUNCING, Word, Words
from kctl.internal_topics.decisions import LAST_KNOWN
from kctl.model import TopicPartition

# Brokers' clocks differ by as much, and a controller prints a decision some milliseconds after it made it.
SLACK = 500
# A warning about an election is printed beside it, but may come later in a log of another broker.
WARNED_WITHIN = 10_000
OFFLINE = "OfflinePartition"
ONLINE = "OnlinePartition"
# Lines with which a reassignment raises an epoch.
BUMPS = frozenset(("C28", "C29", "E24"))

How = tuple[str, str]


class Announced(NamedTuple):
    """A line that announces an election from outside the ISR, without a leadership that it made unclean."""

    topic_partition: TopicPartition
    leader: int | None
    leader_epoch: int | None
    proof: dict[str, object]
    is_back: bool
    """Whether a leadership explains it: the last member of the ISR came back."""


class Transitions:
    """Decides one leadership after the other, each partition's in order of epochs."""

    def __init__(self, doubtful: frozenset[int] = frozenset()) -> None:
        self.words = Words()
        # Brokers whose lines may stand at a wrong place among those of the others.
        self._doubtful = doubtful
        self._last_leader: dict[TopicPartition, int] = {}
        # Whether the state of a partition was RECOVERING at the end of the last leadership; missing: not known.
        self._is_recovering: dict[TopicPartition, bool] = {}
        # Epochs that an unclean election began.
        self._unclean_epochs: set[tuple[TopicPartition, int | None]] = set()
        # Warnings that a leadership has been decided by, each of which speaks of one.
        self._spent: set[tuple[object, object]] = set()
        # Warnings about a leader that turned out to be the last of the ISR.
        self._back: set[tuple[object, object]] = set()

    def note(self, event: Event, time_ms: int) -> None:
        """Remember what a line says about causes."""
        self.words.note(event, time_ms)

    def decide(self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None) -> None:
        """Say how a leadership began, given the one before it (None where the logs do not have it).

        `known_isr` is the last ISR that held a broker: until 1.0 a partition without a leader prints none.
        """
        if before is None:
            self._is_recovering.pop(after.topic_partition, None)
        if after.leader is None:
            after.how = "unknown"
            self._is_recovering.pop(after.topic_partition, None)
            return
        after.how, after.cause = self._how(before, after, known_isr)
        if after.how == "unclean":
            self._unclean_epochs.add((after.topic_partition, after.leader_epoch))
        self._date_by_fencing(before, after)
        self._note_recovery(after)
        if after.leader >= 0:
            self._last_leader[after.topic_partition] = after.leader

    def _note_recovery(self, after: Leadership) -> None:
        """Remember the recovery state at the end of a leadership: a change of the ISR ends it."""
        partition = after.topic_partition
        if after.isr_changes or after.recovery_state == "RECOVERED":
            self._is_recovering[partition] = False
        elif after.recovery_state == "RECOVERING":
            self._is_recovering[partition] = True
        elif any(proof["event"] == "L03" for proof in after.proofs):
            self._is_recovering[partition] = False  # the leader says otherwise as it starts

    def _date_by_fencing(self, before: Leadership | None, after: Leadership) -> None:
        """Date a leadership by the fencing or shutdown of the leader before: a KRaft controller takes the lead and the place in
        the ISR from a broker by the same write.

        Brokers may hear of it much later: while no majority of controllers answers, or when they start.
        """
        if self.words.kraft_since is None or after.is_decided:
            return
        if before is not None and before.leader not in (None, NO_LEADER, after.leader):
            since = max([before.from_ms, *(change.time_ms - SLACK for change in before.isr_changes)])
            after.from_ms = self._fenced_at(before.leader, since, after.from_ms)
        changes = after.isr_changes
        for at, change in enumerate(changes):
            isr = (changes[at - 1].isr if at else after.isr) or ()
            gone = set(isr) - set(change.isr)
            if len(gone) != 1 or len(change.isr) >= len(isr) or change.offset is not None:
                continue
            first = at  # what a broker heard of at once was not written at once
            while first and changes[first - 1].time_ms >= change.time_ms - SLACK:
                first -= 1
            since = changes[first - 1].time_ms if first else after.from_ms
            fenced_ms = self._fenced_at(gone.pop(), since, change.time_ms)
            for heard in range(first, at + 1):
                changes[heard] = changes[heard]._replace(time_ms=min(changes[heard].time_ms, fenced_ms))

    def _fenced_at(self, broker_id: int | None, since_ms: int, seen_ms: int) -> int:
        """When a broker was fenced last between two times, or let shut down; the later of them where no line says so."""
        words = [] if broker_id is None else self.words.of_broker(broker_id, since_ms, seen_ms)
        written = (
            word.time_ms for word in words if word.proof["event"] == "Q10" or _is_shutdown_allowed(word)
        )
        return max(written, default=seen_ms)

    def _how(self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None) -> How:
        words = self._words(before, after)
        if after.leader == NO_LEADER:
            return "none", self._why_none(before, after)
        is_told = after.rank != NOT_RETURNED
        if is_told and after.recovery_state is None and any(word.kind == "recovering" for word in words):
            after.recovery_state = "RECOVERING"
        unclean = self._why_unclean(before, after, words, known_isr)
        if unclean:
            return "unclean", unclean
        if after.from_state == "NewPartition" or (before is None and after.leader_epoch == 0):
            return "creation", ""
        if before is None or before.leader is None:
            return self._after_unknown(after)
        if before.leader == after.leader:
            return self._same_leader(before, after, words)
        return self._new_leader(before, after, words)

    def _words(self, before: Leadership | None, after: Leadership) -> list[Word]:
        """The words about the partition between the state before and this one, or as this one begins."""
        since = after.from_ms - WARNED_WITHIN if before is None else before.from_ms - SLACK
        until = after.from_ms + WARNED_WITHIN
        until = until if after.to_ms is None else min(until, max(after.to_ms, after.from_ms + SLACK))
        return [
            word
            for word in self.words.about(after.topic_partition, since, until)
            if word.leader in (None, after.leader)
            and word.leader_epoch in (None, after.leader_epoch)
            and self._is_near(word, after)
        ]

    def _is_near(self, word: Word, after: Leadership) -> bool:
        if word.kind == "unclean":
            return word.time_ms >= after.from_ms - WARNED_WITHIN
        if word.kind == "recovering":
            return word.time_ms >= after.from_ms - SLACK
        return word.time_ms <= after.from_ms + SLACK

    def _words_of_broker(self, broker_id: int, before: Leadership, after: Leadership) -> list[Word]:
        """The words about a broker's end between two states; in the first it is leader or in the ISR."""
        return self.words.of_broker(broker_id, before.from_ms - SLACK, after.from_ms + SLACK)

    def announced(self) -> Iterator[Announced]:
        """The lines that announce an unclean election after which no leadership is unclean; complete once all are decided."""
        for partition, words in self.words.of_partition.items():
            for word in words:
                epoch = partition, word.leader_epoch
                is_back = word.place in self._back
                # Each controller tells of each epoch, again whenever it starts.
                is_told = (
                    word.place in self._spent or epoch in self._unclean_epochs or epoch in self.words.eligible
                )
                if word.proof["event"] in ANNOUNCING and (is_back or not is_told):
                    yield Announced(partition, word.leader, word.leader_epoch, word.proof, is_back)

    def _is_being_deleted(self, after: Leadership) -> bool:
        """Whether its topic is being deleted, which takes all replicas offline and moves none."""
        deletion = self.words.deletions.get(after.topic_partition.topic)
        if deletion is None or not 0 <= after.from_ms - deletion.time_ms + SLACK <= WARNED_WITHIN:
            return False
        after.proofs.append(deletion.proof)
        return True

    def _why_none(self, before: Leadership | None, after: Leadership) -> str:
        if self._is_being_deleted(after):
            return "the topic was being deleted"
        if before is None or before.leader is None or before.leader < 0:
            return "no replica of the ISR was alive"
        gone = self._words_of_broker(before.leader, before, after)
        if gone:
            after.proofs.append(gone[-1].proof)
        done = "was shut down" if gone and gone[-1].kind == "controlled_shutdown" else "failed"
        return f"broker {before.leader} {done} and no other replica was in the ISR"

    # --- unclean elections --------------------------------------------------------------------------------

    def _why_unclean(
        self,
        before: Leadership | None,
        after: Leadership,
        words: list[Word],
        known_isr: tuple[int, ...] | None,
    ) -> str:
        """Why the election was unclean; nothing where it was not."""
        said = [word for word in words if word.kind == "unclean"]
        announcements = [
            word for word in said if word.proof["event"] in ANNOUNCING and word.place not in self._spent
        ]
        announcements = _of_one_election(announcements, after.from_ms)
        self._spent.update(word.place for word in announcements)
        if (after.topic_partition, after.leader_epoch) in self.words.eligible:
            return ""
        decided = [word for word in announcements if word.proof["event"] != "E14"]
        if announcements and not decided and self._leads_again(before, after, known_isr):
            self._back.update(word.place for word in announcements)
            after.proofs.append(announcements[0].proof)
            return ""
        if announcements:
            of_epoch = [word for word in announcements if word.leader_epoch == after.leader_epoch]
            if (proof := (of_epoch or decided or announcements)[0].proof) not in after.proofs:
                after.proofs.append(proof)
            if (after.topic_partition, after.leader_epoch) in self.words.last_known:
                return f"nobody was in the ISR or eligible, and broker {after.leader} was {LAST_KNOWN}"
            return "the logs say so"
        if after.recovery_state == "RECOVERING":
            was_recovering = self._is_recovering.get(after.topic_partition)
            if was_recovering is False:
                after.proofs += [word.proof for word in words if word.kind == "recovering"][:1]
                return "its state was set to RECOVERING"
            if was_recovering is None and (before is None or before.leader != after.leader):
                after.strength = LIKELY
                return "its state is RECOVERING, and which it was before is not in these logs"
        if (
            before is None
            or after.from_state in ("NewPartition", ONLINE)
            or not self._is_outside(before, after, known_isr)
        ):
            return ""
        if said:
            after.proofs.append(said[-1].proof)
        return f"broker {after.leader} was not in the ISR [{','.join(map(str, known_isr or ()))}]"

    def _is_outside(self, before: Leadership, after: Leadership, known_isr: tuple[int, ...] | None) -> bool:
        """Whether the leader was not in the ISR before, where that is known and decides."""
        if before.leader is None or not known_isr or after.leader in known_isr:
            return False
        if after.isr is not None and after.isr != (after.leader,):
            return False
        if self.words.kraft_since is not None and after.from_ms >= self.words.kraft_since:
            # The controller and the new leader say so; from 4.0 replicas outside the ISR may be eligible too (KIP-966).
            return False
        if any(proof["event"] == "E15" for proof in after.proofs):
            # Until 1.0 the line that selects a leader comes with a warning where the election is unclean.
            return False
        # Under a leader, which ISR was the last one is told by the order of times; without one it stays as decided.
        if self._doubtful and not (before.leader == NO_LEADER and before.isr and known_isr == before.isr):
            return False
        return self._isr_is_known(before, after)

    def _leads_again(
        self, before: Leadership | None, after: Leadership, known_isr: tuple[int, ...] | None
    ) -> bool:
        """Whether a member of the last ISR leads again. Until 1.0 a partition without a leader has an empty ISR: the
        controller warns of lost data whoever comes back."""
        is_decided = before is not None and before.leader == NO_LEADER and self._isr_is_known(before, after)
        return is_decided and not self._doubtful and after.leader in (known_isr or ())

    def _isr_is_known(self, before: Leadership, after: Leadership) -> bool:
        """Whether the last ISR in the logs was the last: nothing was written between the two states, or it was decided
        without a leader, or by one whose log is here."""
        is_stated = before.isr or before.leader != NO_LEADER
        if is_stated and before.last_version is not None and after.first_version is not None:
            return after.first_version == before.last_version + 1
        if before.leader == NO_LEADER:
            last = self._last_leader.get(before.topic_partition, NO_LEADER)
            return bool(before.isr) or self.words.servers.get(last, before.from_ms) < before.from_ms
        return before.leader in self.words.servers

    # --- clean ones ---------------------------------------------------------------------------------------

    @staticmethod
    def _after_unknown(after: Leadership) -> How:
        """How a leadership began whose predecessor is not in the logs."""
        is_clean = after.recovery_state == "RECOVERED" or len(after.isr or ()) > 1
        if after.from_state == OFFLINE and is_clean:
            return "failure", "the partition was offline"
        return "unknown", "the epoch before it is not in these logs"

    def _same_leader(self, before: Leadership, after: Leadership, words: list[Word]) -> How:
        lost = sorted(set(before.last_isr or ()) - set(after.isr or before.last_isr or ()))
        if after.begun_by in BUMPS or any(word.leader_epoch == after.leader_epoch for word in words):
            return "reassignment", ""
        if after.removed is not None:
            lost = [after.removed]
        if lost and after.replicas and not set(lost) & set(after.replicas):
            return "reassignment", f"broker {lost[0]} left the ISR as it is no replica any more"
        if after.from_state == OFFLINE:
            return "isr_change", f"broker {after.leader} was back and was elected again"
        for broker_id in lost:
            gone = self._words_of_broker(broker_id, before, after)
            if gone:
                after.proofs.append(gone[-1].proof)
                done = "shut down" if gone[-1].kind == "controlled_shutdown" else "failed"
                return "isr_change", f"broker {broker_id} {done} and left the ISR"
        moved = [word for word in words if word.kind == "reassignment"]
        if lost and self._is_being_deleted(after):
            return "isr_change", "the topic was being deleted"
        if lost:
            # A replica that a reassignment removes leaves the ISR as one does that goes offline.
            is_told = after.begun_by == "C20" and after.proofs[0]["broker_id"] in self.words.controllers
            after.strength = SURE if after.replicas or (is_told and not moved) else LIKELY
            return "isr_change", ""
        if before.last_isr and after.isr and set(before.last_isr) != set(after.isr):
            return "isr_change", ""
        if not moved:
            return "unknown", "its leader and its ISR stayed, and no line says why its state was written anew"
        after.strength = LIKELY
        after.proofs.append(moved[-1].proof)
        return "reassignment", ""

    def _new_leader(self, before: Leadership, after: Leadership, words: list[Word]) -> How:
        assert before.leader is not None and after.leader is not None
        if before.leader < 0 or after.from_state == OFFLINE:
            return "failure", self._back_or_failed(before, after)
        if after.isr is None:
            return self._by_words(before, after, words)
        if before.leader in after.isr:
            return self._handed_over(before, after, words)
        if after.from_state == ONLINE:
            gone = [
                word
                for word in self._words_of_broker(before.leader, before, after)
                if word.kind == "controlled_shutdown"
            ]
            after.proofs += [word.proof for word in gone[-1:]]
            return "controlled_shutdown", f"broker {before.leader} shut down"
        return self._by_words(before, after, words)

    def _back_or_failed(self, before: Leadership, after: Leadership) -> str:
        known = before.last_isr
        if known and after.leader not in known:
            shown = ",".join(map(str, known))
            return f"broker {after.leader} is not in the last ISR that these logs show [{shown}]"
        return (
            f"broker {after.leader} was back"
            if before.leader == NO_LEADER
            else f"broker {before.leader} failed"
        )

    @staticmethod
    def _handed_over(before: Leadership, after: Leadership, words: list[Word]) -> How:
        """How the lead moved from a leader that stays in the ISR: by a preferred election or a reassignment."""
        if after.replicas and before.leader not in after.replicas:
            return "reassignment", ""
        asked = [word for word in words if word.kind in ("preferred", "reassignment")]
        after.proofs += [word.proof for word in asked[-1:]]
        if after.replicas and after.replicas[0] == after.leader:
            return "preferred", "" if asked else "the first replica leads again"
        if len({word.kind for word in asked}) == 1:
            return asked[-1].kind, ""
        if asked:
            after.strength = LIKELY
            return asked[-1].kind, ""
        replicas = before.replicas
        if replicas and replicas[0] == after.leader:
            return "preferred", "the first replica leads again"
        return "unknown", f"broker {before.leader} stayed in the ISR, and no line says why it leads no more"

    def _by_words(self, before: Leadership, after: Leadership, words: list[Word]) -> How:
        """How a leadership began by the words about the former leader and the partition between the two states."""
        assert before.leader is not None
        gone = self._words_of_broker(before.leader, before, after)
        moved = [word for word in words if word.kind == "reassignment"]
        if after.isr is None:
            moved = [word for word in words if word.kind in ("preferred", "reassignment")]
        reasons = sorted([*gone, *moved], key=lambda word: word.time_ms)
        if not reasons:
            return "unknown", f"no line between the two states says what became of broker {before.leader}"
        # A broker that stops hands over first, and is gone a moment later.
        by_then = [word for word in reasons if word.time_ms <= after.from_ms] or reasons
        best = by_then[-1]
        if len({word.kind for word in by_then}) > 1:
            after.strength = LIKELY
        after.proofs.append(best.proof)
        done = {"failure": "failed", "controlled_shutdown": "shut down"}.get(best.kind)
        return best.kind, f"broker {before.leader} {done}" if done else ""


def _is_shutdown_allowed(word: Word) -> bool:
    """Whether a KRaft controller says that it lets a broker shut down, or which partitions that changes."""
    return word.kind == "controlled_shutdown" and str(word.proof["event"]).startswith("Q")


def _of_one_election(words: list[Word], time_ms: int) -> list[Word]:
    """Of several warnings the nearest and its copies: one that was logged at another time is about another election."""
    warned = [word for word in words if word.proof["event"] == "E14"]
    if not warned:
        return words
    nearest = min(warned, key=lambda word: abs(word.time_ms - time_ms))
    return [word for word in words if word not in warned or word.logged_ms == nearest.logged_ms]
