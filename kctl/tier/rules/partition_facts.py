"""One tiered partition: its tier by the metadata, its local logs, its topic's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formats.values import Struct
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence
from kctl.model import TopicPartition
from kctl.tier.metadata.fold import folded
from kctl.tier.metadata.log import Say, find_metadata
from kctl.tier.metadata.partition_tier import PartitionTier, partition_tiers
from kctl.tier.metadata.selection import NOW, MetadataAsOf
from kctl.tier.rules.local_logs import LocalLogs, LocalPartition, read_local_logs


class TieredPartition(Struct, frozen=True):
    """A tiered partition: the tier of the existing topic (else of the newest id), and its local logs."""

    tier: PartitionTier
    local: LocalPartition | None
    config: Mapping[str, str]
    newest: int  # ms, of the evidence


def tiered_partitions(
    evidence: FoundEvidence, say: Say, as_of: MetadataAsOf = NOW
) -> Iterator[TieredPartition]:
    fold = folded(find_metadata(evidence, say).chunks(), say, as_of, keep_deleted=True)
    local = read_local_logs(evidence)
    by_name: dict[TopicPartition, list[PartitionTier]] = {}
    for where, tier in partition_tiers(fold).items():
        by_name.setdefault(TopicPartition(where.topic, where.partition), []).append(tier)
    newest = as_of.time if as_of.time is not None else max(fold.newest, local.newest)
    for name, tiers in by_name.items():
        chosen = _current(tiers, local)
        local_partition = (
            local.partitions.get(name)
            if local.topic_ids.get(name.topic) in (None, chosen.where.topic_id)
            else None
        )
        yield TieredPartition(chosen, local_partition, local.config(name.topic), newest)


def _current(tiers: list[PartitionTier], local: LocalLogs) -> PartitionTier:
    known = local.topic_ids.get(tiers[0].where.topic)
    existing = [tier for tier in tiers if tier.where.topic_id == known]
    newest = max(
        tiers,
        key=lambda tier: max((segment.metadata.event_timestamp for segment in tier.segments), default=-1),
    )
    return existing[0] if existing else newest


def tiered_partition(
    evidence: FoundEvidence, say: Say, topic: str, partition: int, as_of: MetadataAsOf = NOW
) -> TieredPartition:
    """One tiered partition; `KctlError` if no metadata record names it."""
    for candidate in tiered_partitions(evidence, say, as_of):
        if (candidate.tier.where.topic, candidate.tier.where.partition) == (topic, partition):
            return candidate
    raise KctlError(
        f"no metadata record names {topic}-{partition}",
        "is it tiered, and is the partition of __remote_log_metadata that holds it in the evidence?",
    )
