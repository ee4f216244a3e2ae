"""Brokers' logs as a history: who led each partition and when, who was controller, which broker was up.

`timeline` reads events in order and keeps what they prove; its size goes with the number of leaderships, not
with that of lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any

from formats.values import Struct, field
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.controller_terms import (
    BEGINS,
    CONTROLLER_LINES,
    REJECTIONS,
    RESIGNS,
    ControllerTerm,
    Terms,
)
from kctl.broker_logs.history.gaps import fill_gaps
from kctl.broker_logs.history.isr_changes import CHANGES, REFUSED, IsrLines
from kctl.broker_logs.history.leaderships import (
    RANKS,
    Leadership,
    PartitionHistory,
    join_ends,
    shown_by,
    where_of,
)
from kctl.broker_logs.history.lives import CONTROLLER_STARTS, OWN, SEEN, SIGNALLED, BrokerState, Lives
from kctl.broker_logs.history.observations import FINDERS, observations
from kctl.broker_logs.history.quorum_members import CHANGES as METADATA_LOG_LINES
from kctl.broker_logs.history.quorum_members import QuorumMembers
from kctl.broker_logs.history.quorum_terms import QUORUM_LINES, QuorumTerms
from kctl.broker_logs.history.replica_events import REPLICA_LINES, ReplicaLines
from kctl.broker_logs.history.transitions import Announced, Transitions
from kctl.broker_logs.history.words import BY_PARTITION, RENOUNCED
from kctl.findings import Finding, Place
from kctl.findings import state_log as state_log_findings
from kctl.internal_topics.decisions import LAST_KNOWN
from kctl.model import TopicPartition

# Says the id of the cluster that a broker belongs to.
CLUSTER_ID = "U27"
# Lines after which the logs may be about another cluster.
TURNS = frozenset((CLUSTER_ID, *BEGINS))
# Templates that a history is made of; the others need not be looked at.
WANTED: frozenset[str] = frozenset().union(
    FINDERS, BY_PARTITION, OWN, SEEN, BEGINS, RESIGNS, REJECTIONS, CHANGES, REFUSED,
    REPLICA_LINES, CONTROLLER_LINES, QUORUM_LINES, METADATA_LOG_LINES, (*CONTROLLER_STARTS, SIGNALLED, CLUSTER_ID),
    ("C13", "C14", "C16", "C19", "E12", "E21", "E22", "E30", "K02", "Q11", "Q12", "Q13", "Q14", "Q15", "Q16", *RENOUNCED),
)  # fmt: skip
# Lines that say again and again what is known: each broker and each request repeats the state of a partition.
REPEATED = frozenset(("C01", "C02", "C04", "C05", "C06", "B01", "B02", "B36", "L06", "L08"))
# What a controller says of all partitions as it begins, whoever decided it.
RETOLD = frozenset(("C01", "C02", "C04", "C05", "C06", "C20", "Q02", "Q03", "Q04", "Q05", "Q06"))
RETOLD_WITHIN = 5_000
STARTING = frozenset(("U11", "U16", *CONTROLLER_STARTS))
SPEAKING = frozenset(("C03", "C07"))
MOST_SEEN = 100_000
STATE_CHANGES = "state.change.logger"
TOPIC_DELETED = "successfully completed"


class Timeline(Struct):
    """What the logs say, as values."""

    leaderships: dict[TopicPartition, list[Leadership]]
    """In order of epochs; where a topic was deleted and made again, those of the first come first."""
    controllers: list[ControllerTerm]
    brokers: list[BrokerState]
    of_lines: list[Finding]
    """What single lines show: cuts below the high watermark, and brokers that act as leaders without being it."""
    minimum_isr: dict[str, int]
    """min.insync.replicas by topic, where the logs say it; the brokers' default under `""`."""
    untraced: dict[int, str] = field(default_factory=dict)
    """Brokers whose state-change logs lack level TRACE, with the file in which each begins."""
    servers: frozenset[int] = frozenset()
    """Brokers whose server.log is among the logs, so that each change of an ISR that they made is seen."""
    quorum: list[dict[str, object]] = field(default_factory=list)
    """Rows of kind `leader` for the metadata quorum of KRaft."""
    members: list[dict[str, object]] = field(default_factory=list)
    """Rows of what the nodes of that quorum became, and did with the metadata log."""

    announced: list[Announced] = field(default_factory=list)
    """Lines that announce an unclean election and made no leadership one."""

    def of(self, partition: TopicPartition) -> list[Leadership]:
        """The leaderships of one partition; none where the logs do not name it."""
        return self.leaderships.get(partition, [])

    def minimum_isr_of(self, topic: str) -> int:
        """min.insync.replicas of a topic; 1 where the logs do not say."""
        return self.minimum_isr.get(topic, self.minimum_isr.get("", 1))

    def findings(self, min_isr: int | None = None) -> Iterator[Finding]:
        """Unclean elections, ISRs below the minimum, cuts below the high watermark, stale leaders and controllers."""
        for leaderships in self.leaderships.values():
            for number, leadership in enumerate(leaderships):
                if leadership.is_unclean:
                    yield _unclean_finding(leadership, leaderships[:number])
            yield from self._below_minimum(leaderships, min_isr)
        decided = {
            (partition, decided_one.leader_epoch)
            for partition, leaderships in self.leaderships.items()
            for decided_one in leaderships
            if decided_one.is_decided
        }
        for line in self.announced:
            if (line.topic_partition, line.leader_epoch) not in decided:
                yield _announced_finding(line)
        yield from self.of_lines
        for broker_id, file in sorted(self.untraced.items()):
            yield state_log_findings.LOG_LEVEL_TOO_HIGH.at(
                Place(broker_id=broker_id, file=file), broker=broker_id
            )
        for term in self.controllers:
            if term.rejections:
                first = term.rejections[0]
                yield state_log_findings.STALE_CONTROLLER.at(
                    Place(broker_id=_int(first["broker_id"]), file=str(first["file"])),
                    broker=first["broker_id"],
                    controller=term.broker_id,
                    epoch=term.controller_epoch,
                    known=first["latest_controller_epoch"],
                    line=first["line"],
                )

    def _below_minimum(self, leaderships: list[Leadership], min_isr: int | None) -> Iterator[Finding]:
        for leadership in leaderships:
            partition = leadership.topic_partition
            minimum = min_isr or self.minimum_isr_of(partition.topic)
            began = leadership.proofs[0] if leadership.proofs else {}
            changes = [(leadership.isr, began), *((c.isr, c._asdict()) for c in leadership.isr_changes)]
            for isr, proof in changes:
                if isr is not None and 0 < len(isr) < minimum:
                    yield state_log_findings.ISR_BELOW_MINIMUM.at(
                        Place(**shown_by(proof)).in_partition(partition),
                        partition=partition,
                        isr=",".join(map(str, isr)),
                        minimum=minimum,
                        where=where_of(proof),
                    )
                    break


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _unclean_finding(leadership: Leadership, before: list[Leadership]) -> Finding:
    isr = next((b.last_isr for b in reversed(before) if b.last_isr), None) or ()
    if leadership.leader in isr:
        isr = ()  # what an ISR before says is not what the controller went by
    proof = leadership.proofs[0] if leadership.proofs else {}
    return state_log_findings.UNCLEAN_LEADER_ELECTION.at(
        Place(leadership.leader, **shown_by(proof)).in_partition(leadership.topic_partition),
        leader=leadership.leader,
        partition=leadership.topic_partition,
        epoch=f"epoch {leadership.leader_epoch}",
        why=f"as {LAST_KNOWN}: nobody was in the ISR or eligible"
        if LAST_KNOWN in leadership.cause
        else outside(isr),
        where=where_of(proof),
    )


def outside(isr: Iterable[int]) -> str:
    """The clause that a new leader was not in this ISR."""
    return f"though it was not in the ISR [{','.join(map(str, isr))}]"


def _announced_finding(line: Announced) -> Finding:
    place = Place(line.leader, **shown_by(line.proof)).in_partition(line.topic_partition)
    who: dict[str, Any] = {
        "leader": line.leader,
        "partition": line.topic_partition,
        "where": where_of(line.proof),
    }
    if line.is_back:
        return state_log_findings.LAST_OF_ISR_ELECTED.at(place, **who)
    epoch = line.leader_epoch
    shown_epoch = "an epoch that these logs do not name" if epoch is None else f"epoch {epoch}"
    return state_log_findings.UNCLEAN_LEADER_ELECTION.at(place, epoch=shown_epoch, why=outside(()), **who)


class _Cluster(Struct):
    """What the logs say about one cluster, of those that followed each other on the same disks."""

    number: int
    transitions: Transitions
    members: QuorumMembers
    cluster_id: str | None = None
    histories: dict[TopicPartition, PartitionHistory] = field(default_factory=dict)
    terms: Terms = field(default_factory=Terms)
    quorum: QuorumTerms = field(default_factory=QuorumTerms)


class _Builder:
    def __init__(
        self,
        is_wanted: Callable[[TopicPartition], bool],
        doubtful: frozenset[int] = frozenset(),
        ahead: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self.is_wanted, self.doubtful, self.ahead = is_wanted, doubtful, ahead
        self.clusters: list[_Cluster] = []
        self.cluster = self._new_cluster()
        # The cluster that the logs in a folder are about now, and the last controller epoch of each that began there.
        self.of_folder: dict[str, _Cluster] = {}
        self.last_epochs: dict[tuple[int, str, int | None], int] = {}
        self.lives, self.lines, self.isr_lines = Lives(), ReplicaLines(), IsrLines()
        # The file in which each broker's state-change log begins, and the brokers of which it has level TRACE.
        self.state_changes: dict[int, str] = {}
        self.tracing: set[int] = set()
        # When each broker last started, or began to be the controller.
        self.began: dict[int | None, int] = {}
        # What repeated lines said, and the leadership that they were about.
        self.seen: dict[bytes, Leadership | None] = {}

    def _new_cluster(self) -> _Cluster:
        number = len(self.clusters) + 1
        self.clusters.append(_Cluster(number, Transitions(self.doubtful), QuorumMembers(number)))
        return self.clusters[-1]

    def _choose_cluster(self, event: Event, time_ms: int) -> None:
        """Turn to the cluster that a line is about: its disks may have been wiped and another one made on them."""
        folder = os.path.dirname(event.source.path)
        known = self.of_folder.get(folder, self.clusters[0])
        if event.event == CLUSTER_ID:
            known = self._with_id(str(event.fields.get("cluster_id")), known, time_ms)
        elif event.event in BEGINS:
            epoch = event.number(BEGINS[event.event])
            # Nodes of a KRaft quorum may know different epochs, but none of them goes back.
            speaker = folder, event.broker_id if event.event == "Q17" else None
            if epoch is not None:
                if epoch < self.last_epochs.get((known.number, *speaker), epoch):
                    known = self._next_cluster(known, time_ms)
                self.last_epochs[known.number, *speaker] = epoch
        if known is not self.cluster:
            self.seen.clear()
        self.of_folder[folder] = self.cluster = known

    def _with_id(self, cluster_id: str, known: _Cluster, time_ms: int) -> _Cluster:
        for cluster in self.clusters:
            if cluster.cluster_id == cluster_id:
                return cluster
        if known.cluster_id is not None:
            known = self._next_cluster(known, time_ms)
        known.cluster_id = cluster_id
        return known

    def _next_cluster(self, known: _Cluster, time_ms: int) -> _Cluster:
        """The cluster after one that ended, at the latest now."""
        for history in known.histories.values():
            history.end(time_ms)
        later = [cluster for cluster in self.clusters[known.number :] if cluster.cluster_id is None]
        return later[0] if later else self._new_cluster()

    def add(self, event: Event) -> None:
        """Take one event into account."""
        time_ms = event.time_ms
        if time_ms is None:
            return
        broker_id, name = event.broker_id, event.event
        if broker_id is not None:
            self.lives.seen(broker_id, time_ms)
            if event.logger == STATE_CHANGES:
                if broker_id not in self.state_changes:
                    self.state_changes[broker_id] = event.file
                if event.level == "TRACE":
                    self.tracing.add(broker_id)
        if name not in WANTED:
            return
        if name in BEGINS or name in STARTING:
            self.began[broker_id] = time_ms
        if name in TURNS or len(self.clusters) > 1:
            self._choose_cluster(event, time_ms)
        partition = event.topic_partition
        if self._is_known(event, time_ms) or self._is_of_earlier_topic(event, partition):
            return
        self.cluster.transitions.note(event, time_ms)
        self.cluster.terms.note(event, time_ms)
        self.lives.note(event, time_ms, self.cluster.number)
        if name in QUORUM_LINES or name in METADATA_LOG_LINES:
            self.cluster.quorum.note(event, time_ms)
            self.cluster.members.note(event, time_ms)
            return
        if partition is not None and not self.is_wanted(partition):
            return
        self._note_creation(event, partition, time_ms)
        for place, observation in observations(event):
            if self.is_wanted(place):
                leadership = self._history(place).observe(
                    observation, time_ms, is_retold=self._is_retold(event, time_ms)
                )
                if name in REPEATED and event.shape.state and leadership is not None:
                    self._remember(event, leadership)
        self.lines.note(event, partition)
        if partition is not None:
            self.isr_lines.note(event, self._history(partition), time_ms)

    def _is_retold(self, event: Event, time_ms: int) -> bool:
        """Whether the line is of a controller that just began its term, or that replays the metadata log as it starts."""
        name, began = event.event or "", self.began.get(event.broker_id)
        return name in RETOLD and began is not None and time_ms - began < RETOLD_WITHIN

    def _is_known(self, event: Event, time_ms: int) -> bool:
        """Whether a line only repeats what an earlier one proved at least as well."""
        name = event.event or ""
        if not event.shape.state:
            return False
        if name in SPEAKING:
            key = event.state_key()
            if key in self.seen:
                return True
            self.seen[key] = None
        elif name in REPEATED:
            known = self.seen.get(event.state_key())
            if known is not None and RANKS[name] >= known.rank:
                known.last_seen_ms = max(known.last_seen_ms, time_ms)
                return True
        return False

    def _remember(self, event: Event, leadership: Leadership) -> None:
        if len(self.seen) > MOST_SEEN:
            self.seen.clear()
        self.seen[event.state_key()] = leadership

    def _history(self, partition: TopicPartition) -> PartitionHistory:
        histories = self.cluster.histories
        known = histories.get(partition)
        if known is None:
            known = histories[partition] = PartitionHistory(
                partition, is_doubtful=bool(self.doubtful), cluster=self.cluster.number
            )
        return known

    def _note_creation(self, event: Event, partition: TopicPartition | None, time_ms: int) -> None:
        if event.event == "E30" and TOPIC_DELETED in str(event.fields.get("what", "")):
            for known, history in self.cluster.histories.items():
                if known.topic == event.fields.get("topic"):
                    history.end(time_ms)
        if partition is None:
            return
        states = event.fields.get("from_state"), event.fields.get("to_state")
        leader = event.number("leader")
        if event.event == "C14" and leader is not None:
            self._history(partition).announce(leader, str(states[0]), event, time_ms)
        elif event.event == "C16" and states[1] == "NonExistentPartition":
            self._history(partition).end(time_ms)
        elif event.event == "C13" and states[0] == "NonExistentPartition":
            if not self._history(partition).has_just_begun(time_ms):
                self._history(partition).begin_again()
                self.seen.clear()
        elif event.event in ("K02", "Q03", "Q04", "L03"):
            self._note_topic_id(event, partition)

    def _is_of_earlier_topic(self, event: Event, partition: TopicPartition | None) -> bool:
        """Whether a controller that starts replays a record of an earlier topic of this name."""
        history = None if partition is None else self.cluster.histories.get(partition)
        if history is None or len(history.topics) == 1:
            return False
        *earlier, present = (topic.topic_id for topic in history.topics)
        topic_id = event.fields.get("topic_id")
        return topic_id in earlier and topic_id not in (None, present)

    def _note_topic_id(self, event: Event, partition: TopicPartition) -> None:
        """Begin a new topic where the id is another: KRaft controllers log nothing else about a topic that is made again."""
        topic_id = event.fields.get("topic_id")
        if not isinstance(topic_id, str):
            return
        history = self._history(partition)
        known = history.topics[-1].topic_id
        if known is not None and known != topic_id:
            history.begin_again()
            self.seen.clear()
        history.topics[-1].topic_id = topic_id

    def finished(self) -> Timeline:
        """The timeline, with every leadership decided."""
        leaderships: dict[TopicPartition, list[Leadership]] = {}
        for cluster in self.clusters:
            for partition in sorted(cluster.histories):
                for incarnation in cluster.histories[partition].finished():
                    self._decide(cluster, incarnation)
                    leaderships.setdefault(partition, []).extend(incarnation)
        controllers = [term for cluster in self.clusters for term in cluster.terms.finished(cluster.number)]
        return Timeline(
            {partition: leaderships[partition] for partition in sorted(leaderships)},
            controllers,
            self.lives.finished(),
            [*self.lines.cuts.values(), *self.isr_lines.stale.values()],
            self.lines.minimum_isr,
            {id: file for id, file in self.state_changes.items() if id not in self.tracing},
            frozenset().union(*(cluster.transitions.words.servers for cluster in self.clusters)),
            [row for cluster in self.clusters for row in cluster.quorum.rows(cluster.number, self.ahead)],
            [row for cluster in self.clusters for row in cluster.members.rows],
            [
                line
                for cluster in self.clusters
                for line in cluster.transitions.announced()
                if self.is_wanted(line.topic_partition)
            ],
        )

    def _decide(self, cluster: _Cluster, leaderships: list[Leadership]) -> None:
        for leadership in leaderships:
            is_kraft = cluster.transitions.words.kraft_since is not None
            leadership.drop_announced(self.isr_lines.telling, is_kraft)
        fill_gaps(leaderships, cluster.transitions.words)
        before: Leadership | None = None
        known: tuple[int, ...] | None = None
        for leadership in leaderships:
            cluster.transitions.decide(before, leadership, known)
            known = leadership.last_isr or known if leadership.leader is not None else None
            before = leadership
        join_ends(leaderships)


def timeline(
    events: Iterable[Event],
    is_wanted: Callable[[TopicPartition], bool] = lambda partition: True,
    doubtful: frozenset[int] = frozenset(),
    ahead: Mapping[int, int] = MappingProxyType({}),
) -> Timeline:
    """The history that events prove; `is_wanted` leaves out partitions that nobody asks about.

    `doubtful` are brokers whose times cannot be put beside those of the others, see `Merge.doubtful`; `ahead` by how much
    those of brokers are corrected, see `Merge.ahead`.
    """
    builder = _Builder(is_wanted, doubtful, ahead)
    for event in events:
        builder.add(event)
    history = builder.finished()
    stated: Iterable[Leadership | ControllerTerm | BrokerState] = chain(
        chain.from_iterable(history.leaderships.values()), history.controllers, history.brokers
    )
    for row_of in stated if ahead else ():
        writer = row_of.proofs[0]["broker_id"] if row_of.proofs else None
        row_of.clock_offset_ms = ahead.get(writer) if isinstance(writer, int) else None
    return history
