"""The plan of a recovery: which lost records go where, compared with what the cluster has.

Source: KIP-98 (idempotent producers), KIP-32 (timestamps), KIP-405 (logs whose start is in a tier)
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from formats.values import Struct
from formats.whole_numbers import whole_number
from formats.words import counted
from kctl.changes.kept_records import KeptRecords, kept_folder
from kctl.changes.kinds.records import RecoverRecords
from kctl.changes.plan import Plan, plan_of
from kctl.cluster.intent import Intent
from kctl.cluster.names import is_internal, unknown_topics
from kctl.cluster.state import ClusterState
from kctl.errors import BadValue, KctlError
from kctl.model import SILENT, Progress, Row, TopicPartition, command_line
from kctl.operations.topics import NewTopic, plan_creation
from kctl.replica.recovery.comparison import (
    UNCOMMITTED,
    Fate,
    PartitionComparison,
    Present,
    RangeFate,
)
from kctl.replica.recovery.lost_ranges import LostRange, incident_of
from kctl.rows.replica import RECOVERY
from kctl.times import iso
from kctl.wire.configs import in_force
from kctl.wire.replicas.present import place_of, present_records
from kctl.wire.writes.requests import WireCluster

INTERNAL = "internal_topic"
USUAL_REPLICAS = 3
RETENTION = "retention.ms"


class RecoveryOptions(Struct, frozen=True, kw_only=True):
    """What is recovered, and how."""

    into: str | None = None
    every: bool = False  # records too that a later record of their key replaced
    with_uncommitted: bool = False
    incident: str | None = None
    only_compares: bool = False  # a topic that does not exist has none of the records
    max_rate: int | None = None


class PlannedPartition(NamedTuple):
    """What becomes of the lost ranges of a partition; `begin_offset`: what the target held when it was compared."""

    source: TopicPartition
    target: TopicPartition
    ranges: list[RangeFate]
    begin_offset: int

    def rows(self) -> Iterator[Row]:
        """A row for each range."""
        for fate in self.ranges:
            yield recovery_row(fate, self.target.topic)

    def to_write(self) -> int:
        """How many records are to be written."""
        return sum(fate.count(Fate.WRITTEN) for fate in self.ranges)


def recovery_row(fate: RangeFate, into: str, left_out: Mapping[str, int] | None = None) -> Row:
    """The row of a lost range."""
    lost = fate.lost
    return RECOVERY(
        **lost.partition._asdict(),
        into_topic=into,
        from_offset=lost.from_offset,
        to_offset=lost.to_offset,
        **{"class": lost.loss_class},
        lost_in_epoch=lost.lost_in_epoch,
        records=fate.records + fate.unreadable,
        already_there=fate.count(Fate.THERE),
        to_write=0 if left_out else fate.count(Fate.WRITTEN),
        left_out=dict(left_out or fate.left_out),
        source=[dict(source) for source in lost.sources],
        keys_with_later_records=fate.keys_with_later_records,
    )


class Recovery:
    """Lost ranges, compared with a cluster."""

    def __init__(
        self,
        cluster: WireCluster,
        ranges: Sequence[LostRange],
        options: RecoveryOptions,
        progress: Progress = SILENT,
    ) -> None:
        self._cluster, self._options, self._progress = cluster, options, progress
        self._by_partition: dict[TopicPartition, list[LostRange]] = {}
        self.passed_over: list[Row] = []
        """The rows of ranges that are not recovered."""
        for lost in sorted(ranges, key=lambda r: (r.partition, r.from_offset)):
            if (reason := self._why_not(lost)) is None:
                self._by_partition.setdefault(lost.partition, []).append(lost)
            else:
                fate = _counted(lost)
                self.passed_over.append(
                    recovery_row(
                        fate, options.into or lost.partition.topic, {reason: fate.records + fate.unreadable}
                    )
                )
        self.incident = options.incident or incident_of(
            lost for of_partition in self._by_partition.values() for lost in of_partition
        )
        self._topics = sorted({partition.topic for partition in self._by_partition})
        if options.into is not None and len(self._topics) > 1:
            raise BadValue(
                f"--into {options.into} takes records of one topic, and {', '.join(self._topics)} lost some",
                "choose one with --topic",
            )
        wanted = [*self._topics, *([options.into] if options.into else [])]
        self.state: ClusterState = cluster.read_state(wanted, configs=["topics"], recent=True)
        self._require_targets()

    def _why_not(self, lost: LostRange) -> str | None:
        if is_internal(lost.partition.topic):
            return INTERNAL
        if lost.loss_class == UNCOMMITTED and not self._options.with_uncommitted:
            return UNCOMMITTED
        return None

    def _require_targets(self) -> None:
        """Raise KctlError where a topic or partition that records go to does not exist."""
        into = self._options.into
        if self._options.only_compares:
            return
        for topic in [into] if into else self._topics:
            if topic not in self.state.topics:
                if into:
                    continue  # it is created
                error = unknown_topics([topic], self.state.topic_names)
                raise KctlError(error.message, "create it again first, or give --into NEW-TOPIC")
            for partition in self._by_partition:
                if partition.partition not in self.state.topics[topic].partitions:
                    target = TopicPartition(topic, partition.partition)
                    raise KctlError(
                        f"{target} does not exist, and {partition} lost records",
                        f"add partitions with `{command_line('kctl topic alter', [topic])}`, or give --into another topic",
                    )

    def target_of(self, partition: TopicPartition) -> TopicPartition:
        """The partition that records of another one go to."""
        return TopicPartition(self._options.into or partition.topic, partition.partition)

    def partitions(self) -> Iterator[PlannedPartition]:
        """What becomes of the lost ranges of each partition, compared one partition after the other."""
        self._progress.start("compare with the cluster", len(self._by_partition), "partitions")
        for partition, lost in self._by_partition.items():
            yield self._compared(partition, lost)
            self._progress.advance(1)

    def _compared(self, partition: TopicPartition, lost: list[LostRange]) -> PlannedPartition:
        target, wire = self.target_of(partition), self._cluster.wire
        present: list[Present] = []
        begin_offset = 0
        for tp in dict.fromkeys((partition, target)):
            topic = self.state.topics.get(tp.topic)
            if topic is None or tp.partition not in topic.partitions:
                continue
            end = place_of(wire, tp).high_watermark
            start = self._search_from(partition, lost) if tp == partition else 0
            present.append(partial(present_records, wire, tp, start, end))
            if tp == target:
                begin_offset = end
        policy = self.state.config("topics", target.topic).get("cleanup.policy", "")
        is_compacted = "compact" in policy or any(of.is_compacted for of in lost)
        compared = PartitionComparison(
            partition, lost, present, leaves_out_replaced=is_compacted and not self._options.every
        )
        return PlannedPartition(partition, target, compared.compare(), begin_offset)

    def _search_from(self, partition: TopicPartition, lost: list[LostRange]) -> int:
        """Where in the present log records may lie that were sent again: behind the loss, in the topic that had it."""
        if self.is_other_topic(partition.topic, lost):
            return 0
        return min(of.from_offset for of in lost)

    def is_other_topic(self, topic: str, lost: Sequence[LostRange]) -> bool:
        """Whether the topic was created again since: its offsets say nothing about those of the loss."""
        present = self.state.topics.get(topic)
        id = present.topic_id if present else None
        return any(of.topic_id != id for of in lost if of.topic_id is not None and id is not None)

    def plan(
        self, planned: Sequence[PlannedPartition], files: Mapping[TopicPartition, tuple[str, str]]
    ) -> Plan:
        """The plan of writing what is not there; `files` are those that the records are kept in."""
        records = sum(partition.to_write() for partition in planned)
        chosen = [partition for partition in planned if partition.to_write()]
        title = f"recover {counted(records, 'record')} into {counted(len(chosen), 'partition')}"
        if not chosen:
            return Plan(title=title, stages=())
        intents: list[Intent] = [
            RecoverRecords(
                topic=partition.target.topic,
                partition=partition.target.partition,
                source_topic=partition.source.topic,
                records=partition.to_write(),
                file=files[partition.target][0],
                sha256=files[partition.target][1],
                begin_offset=partition.begin_offset,
                incident=self.incident,
                max_rate=self._options.max_rate,
            )
            for partition in chosen
        ]
        warnings = list(self.warnings(chosen))
        if (into := self._options.into) and into not in self.state.topics:
            creation = plan_creation(self._cluster, self._new_topic(into))
            intents = [*(stage.intent for stage in creation.stages), *intents]
            warnings += creation.warnings
        rows = [row for partition in planned for row in partition.rows()]
        return plan_of(
            intents,
            self._cluster,
            self.state,
            title=f"{title} (incident {self.incident})",
            warnings=warnings,
            details={"incident": self.incident, "forecast": rows},
        )

    def _new_topic(self, name: str) -> NewTopic:
        """A topic with as many partitions and replicas as that of the records."""
        (topic,) = self._topics
        present = self.state.topics.get(topic)
        partitions = max(partition.partition for partition in self._by_partition) + 1
        replicas = min(USUAL_REPLICAS, len(self.state.live_brokers))
        if present:
            partitions = max(partitions, len(present.partitions))
            replicas = max(map(len, present.partitions.values()))
        # Brokers delete by the records' own times, which are those of the loss.
        configs = {RETENTION: "-1"}
        return NewTopic(name=name, partitions=partitions, replication_factor=replicas, configs=configs)

    def warnings(self, chosen: Sequence[PlannedPartition]) -> Iterator[str]:
        """What consumers will see, and what brokers change."""
        keys = sum(fate.keys_with_later_records for partition in chosen for fate in partition.ranges)
        later = f"{counted(keys, 'key')} {'has' if keys == 1 else 'have'}" if keys else "no key has"
        yield (
            "recovered records come after the present end of each partition, so the order of a key is not kept: "
            f"{later} later records already"
        )
        for topic in sorted({partition.target.topic for partition in chosen}):
            config = self.state.config("topics", topic)
            if (kept_ms := self._kept_ms(topic)) is not None:
                oldest_ms = min(map(_oldest_ms, (of for of in chosen if of.target.topic == topic)))
                if oldest_ms < time.time_ns() // 1_000_000 - kept_ms:
                    yield (
                        f"the oldest of these records are of {iso(oldest_ms)}, and {RETENTION} of topic {topic} is "
                        f"{kept_ms:,}: brokers delete them again within minutes; set {RETENTION} higher first, or give "
                        "--into NEW-TOPIC"
                    )
            if config.get("message.timestamp.type") == "LogAppendTime":
                yield f"topic {topic} has message.timestamp.type=LogAppendTime: brokers replace the timestamps"
        for topic in self._topics:
            lost = [of for tp, ranges in self._by_partition.items() if tp.topic == topic for of in ranges]
            if self.is_other_topic(topic, lost):
                yield f"topic {topic} was created again since the loss: its whole logs are searched for the records"

    def _kept_ms(self, topic: str) -> int | None:
        """For how long brokers keep records of a topic; None for ever, and where they do not tell it."""
        if topic not in self.state.topics or _is_compacted_only(self.state.config("topics", topic)):
            return None
        for _, configs in in_force(self._cluster.wire, "topics", [topic], [RETENTION]):
            for config in () if isinstance(configs, KctlError) else configs:
                if config.key == RETENTION and config.value:
                    kept_ms = whole_number(config.value)
                    return kept_ms if kept_ms is not None and kept_ms >= 0 else None
        return None


def _is_compacted_only(config: Mapping[str, str]) -> bool:
    """Whether the topic keeps the last record of each key, and deletes none by its age."""
    return config.get("cleanup.policy", "delete") == "compact"


def _oldest_ms(planned: PlannedPartition) -> int:
    """The time of the oldest record to write; of one without a time, now."""
    now_ms = time.time_ns() // 1_000_000
    times = (record.record.timestamp for fate in planned.ranges for record in fate.to_write())
    return min((time_ms for time_ms in times if time_ms >= 0), default=now_ms)


def _counted(lost: LostRange) -> RangeFate:
    """The number of records of a range that is not compared."""
    fate = RangeFate(lost)
    for batch in lost.batches():
        fate.records += len(batch.records)
        fate.unreadable += batch.unreadable
    return fate


def keep_records(planned: PlannedPartition) -> tuple[str, str]:
    """Keep the records to write beside the journal; returns the file's name and digest. Raises KctlError."""
    with KeptRecords(kept_folder(), planned.target) as kept:
        for fate in planned.ranges:
            for lost in fate.to_write():
                kept.add(lost)
        return kept.keep()
