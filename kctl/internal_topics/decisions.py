"""What the controllers of a KRaft cluster decided about partitions: each leadership and each ISR in the metadata log.

An election is clean where the leader comes from the ISR, or from the eligible leader replicas where the ISR is empty
(KIP-966). An unclean one leaves the partition in the state RECOVERING, which the log notes where it is new; a leader
that comes with a finished reassignment is neither. Before metadata version 3.2 (level 3) there is no such state.

Source: metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 3.9.0-rc3;
server-common/src/main/java/org/apache/kafka/server/common/MetadataVersion.java @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError
from formats.log_dir.file_names import QUORUM_STATE, FolderKind
from formats.log_dir.state_files import parse_quorum_state
from formats.values import Struct, field
from formats.znodes.cluster import NO_LEADER
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence, Replica
from kctl.files import read_lenient
from kctl.internal_topics.cluster_image import (
    CLUSTER_METADATA,
    ClusterImage,
    LoggedRecord,
    PartitionImage,
    read_image,
    snapshots,
)
from kctl.internal_topics.reading import Unreadable, segments
from kctl.model import TopicPartition

RECOVERING = 1
LAST_KNOWN = "the last known leader"
ASSIGNED = ("replicas", "adding_replicas", "removing_replicas")
HAS_RECOVERY_STATE = 3  # the metadata version from which on unclean elections set it


class Decision(NamedTuple):
    """A state of a partition that a record of the metadata log sets, and how its leadership began."""

    topic_partition: TopicPartition
    topic_id: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    """Brokers outside the ISR that hold all that is committed (KIP-966): each may be elected as cleanly."""
    last_known: tuple[int, ...]
    """The last leader, if nobody is in the ISR: it is elected if nobody is eligible, also where unclean elections are off."""
    replicas: tuple[int, ...]
    how: str
    """As in rows of leaders; `unknown` for the state that a snapshot begins with."""
    cause: str
    time_ms: int
    offset: int | None
    """Of the record; None in a snapshot."""
    file: str
    """The folder of the log, as rows name it."""
    writer: int | None = None
    """The node that wrote the record; None where the log does not say who led the quorum."""

    def proof(self) -> dict[str, object]:
        """The record as proof, with the keys of a log line's proof, and its offset."""
        members = ",".join(map(str, self.isr))
        at = "" if self.offset is None else f"offset {self.offset}: "
        eligible = f", eligible [{','.join(map(str, self.eligible))}]" if self.eligible else ""
        return {
            "file": self.file,
            "line": None,
            "broker_id": self.writer,
            "event": None,
            "text": f"{at}leader {self.leader}, leader epoch {self.leader_epoch}, ISR [{members}]{eligible}",
            "offset": self.offset,
        }


class Decided(Struct):
    """The history of partitions in a metadata log."""

    file: str = ""
    """The folder of the log, as rows name it."""
    decisions: list[Decision] = field(default_factory=list)
    """In the order of the log."""
    removed: dict[str, int] = field(default_factory=dict)
    """When each topic that is gone was removed, by topic id; milliseconds."""
    removed_by: dict[str, int | None] = field(default_factory=dict)
    """The node that wrote that."""
    image: ClusterImage = field(default_factory=ClusterImage)
    """The cluster at the end of the log."""
    trouble: list[Unreadable] = field(default_factory=list)

    def correct(self, ahead: Mapping[int, int]) -> None:
        """Correct the times by how many milliseconds the clocks of the nodes that wrote them are ahead."""
        self.decisions = corrected(self.decisions, ahead)
        writers = {topic_id: -1 if writer is None else writer for topic_id, writer in self.removed_by.items()}
        self.removed = {
            topic_id: time_ms - ahead.get(writers.get(topic_id, -1), 0)
            for topic_id, time_ms in self.removed.items()
        }


def corrected(decisions: Iterable[Decision], ahead: Mapping[int, int]) -> list[Decision]:
    """Decisions with times of a clock that is right."""
    return [
        decision._replace(time_ms=decision.time_ms - ahead[decision.writer])
        if decision.writer is not None and decision.writer in ahead
        else decision
        for decision in decisions
    ]


# Records are read one by one; a larger log would take longer than everything else.
MOST_BYTES = 256 << 20


def metadata_logs(evidence: FoundEvidence) -> dict[str | None, list[Replica]]:
    """The copies of the metadata log at each moment, by moment, that which reaches furthest first; none very large."""
    ranked: dict[str | None, list[tuple[tuple[int, int], Replica]]] = {}
    for replica in evidence.replicas:
        if replica.topic != CLUSTER_METADATA or replica.kind is not FolderKind.LIVE:
            continue
        rank, size = _reach(replica.folder)
        if size <= MOST_BYTES:
            ranked.setdefault(replica.moment, []).append((rank, replica))
    return {
        moment: [
            replica for _, replica in sorted(copies, key=lambda ranked_copy: ranked_copy[0], reverse=True)
        ]
        for moment, copies in ranked.items()
    }


def _reach(folder: Path) -> tuple[tuple[int, int], int]:
    """The rank of a copy of the log, and the bytes of its segments."""
    try:
        paths, snapshot_files = segments(folder), snapshots(folder)
        sizes = [path.stat().st_size for path in paths]
    except OSError:  # an error when it is read, which it is without a better copy
        return (-2, 0), 0
    last = (
        (int(paths[-1].stem), sizes[-1])
        if paths
        else (snapshot_files[-1][0], 0)
        if snapshot_files
        else (-1, 0)
    )
    return last, sum(sizes)


def voters_in(evidence: FoundEvidence, moment: str | None) -> tuple[int, ...]:
    """The voters that a `quorum-state` of the moment names; none where its version has them in the log alone (KIP-853)."""
    for replica in evidence.replicas:
        if replica.topic == CLUSTER_METADATA and replica.moment == moment:
            try:
                state = parse_quorum_state(read_lenient(replica.folder / QUORUM_STATE))
            except (OSError, FormatError):
                continue
            if state.current_voters:
                return state.current_voters
    return ()


def decided_in(evidence: FoundEvidence, report: Callable[[KctlError], None]) -> Decided | None:
    """The decisions in the metadata log of the last moment; None without one. `report` is called with errors."""
    logs = metadata_logs(evidence)
    for moment in (*reversed(evidence.moments), None):
        if moment in logs:
            try:
                return read_decisions(evidence, logs[moment])
            except KctlError as error:
                report(error)
    return None


def read_decisions(evidence: FoundEvidence, copies: Iterable[Replica]) -> Decided:
    """The decisions in a metadata log; those since the newest snapshot if something before it cannot be read.

    The first of the copies is read, and where it is not whole the next ones, for a whole one that reaches as far.
    `KctlError` where none can be read.
    """
    best, error = None, None
    for replica in copies:
        file = evidence.place_of(replica.folder, replica.log_dir.root).file or ""
        try:
            decided = _read(replica.folder, file, whole_log=True)
            if decided.trouble:
                decided = _read(replica.folder, file, whole_log=False)
        except KctlError as raised:
            error = error or raised
            continue
        if not decided.trouble and (best is None or decided.image.end_offset >= best.image.end_offset):
            return decided
        best = best or decided
    if best is None:
        raise error or KctlError(f"no copy of {CLUSTER_METADATA}", "name a controller's log directory")
    return best


def _read(folder: Path, file: str, *, whole_log: bool) -> Decided:
    decided = Decided(file)
    last_decisions: dict[tuple[str, int], Decision] = {}

    def watch(image: ClusterImage, logged: LoggedRecord) -> None:
        record = logged.record
        if record.type == "REMOVE_TOPIC_RECORD":
            decided.removed[record.values["topic_id"]] = logged.time_ms
            decided.removed_by[record.values["topic_id"]] = logged.writer
        elif record.type == "CLEAR_ELR_RECORD":
            for topic_id, name in image.names.items():
                for number in (
                    image.partitions.get(topic_id, {}) if record.values["topic_name"] in ("", name) else ()
                ):
                    note(image, logged, topic_id, number)
        elif record.type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            note(image, logged, record.values["topic_id"], record.values["partition_id"])

    def note(image: ClusterImage, logged: LoggedRecord, topic_id: str, number: int) -> None:
        partition, name = image.partitions.get(topic_id, {}).get(number), image.names.get(topic_id)
        before = last_decisions.get((topic_id, number))
        if partition is None or name is None:
            return
        how, cause = _how(image, before, partition, logged)
        decision = Decision(
            TopicPartition(name, number), topic_id, partition.leader, partition.leader_epoch,
            partition.partition_epoch, tuple(partition.isr), tuple(partition.eligible_leader_replicas),
            tuple(partition.last_known_elr), tuple(partition.replicas), how, cause, logged.time_ms, logged.offset, file,
            logged.writer,
        )  # fmt: skip
        last_decisions[topic_id, number] = decision
        decided.decisions.append(decision)

    decided.image, decided.trouble = read_image(folder, watch=watch, whole_log=whole_log)
    return decided


def _how(
    image: ClusterImage, before: Decision | None, after: PartitionImage, logged: LoggedRecord
) -> tuple[str, str]:
    """How the leadership that a record decides began, and the cause in words; as before where none begins."""
    if before is None:
        return ("creation", "") if after.leader_epoch == 0 else ("unknown", "")
    if after.leader_epoch == before.leader_epoch:
        return before.how, before.cause
    has_left = before.leader not in after.isr and before.leader != NO_LEADER
    broker = image.brokers.get(before.leader)
    is_shut_down = broker is not None and broker.in_controlled_shutdown
    is_moved = any(logged.record.values.get(name) is not None for name in ASSIGNED)
    if after.leader == NO_LEADER:
        how_it_ended = "was shut down" if is_shut_down else "failed"
        why_none = "no other replica could be elected"
        return (
            "none",
            f"broker {before.leader} {how_it_ended} and {why_none}"
            if before.leader != NO_LEADER
            else why_none,
        )
    if _is_unclean(image, before, after, is_moved):
        return "unclean", _why_unclean(before, after)
    if before.leader == after.leader:
        return "reassignment" if is_moved else "isr_change", ""
    if before.leader == NO_LEADER:
        return "failure", f"broker {after.leader} was back"
    if is_moved:
        return "reassignment", ""
    if has_left or is_shut_down:
        return (
            ("controlled_shutdown", f"broker {before.leader} shut down")
            if is_shut_down
            else ("failure", f"broker {before.leader} failed")
        )
    return ("preferred", "") if after.replicas[:1] == [after.leader] else ("unknown", "")


def _is_unclean(image: ClusterImage, before: Decision, after: PartitionImage, is_moved: bool) -> bool:
    if after.leader in (*before.isr, *before.eligible):
        return False
    if image.features.get("metadata.version", 0) >= HAS_RECOVERY_STATE:
        return after.leader_recovery_state == RECOVERING
    return not is_moved


def _why_unclean(before: Decision, after: PartitionImage) -> str:
    isr = ",".join(map(str, before.isr))
    if after.leader in before.last_known and not before.isr and not before.eligible:
        return f"nobody was in the ISR or eligible, and broker {after.leader} was {LAST_KNOWN}"
    return f"broker {after.leader} was neither in the ISR [{isr}] nor eligible"
