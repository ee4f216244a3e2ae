"""The groups of old consumers (up to 1.x), who kept everything about themselves in ZooKeeper."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kctl.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class OldMember:
    """A registered consumer. `subscription`: streams by topic, or by the pattern where `pattern` is not static."""

    member_id: str
    subscription: Mapping[str, int]
    pattern: str = "static"
    registered_at: int | None = None  # milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class OldGroup:
    """A group: who is registered, which thread owns what, how far each partition is."""

    name: str
    members: tuple[OldMember, ...] = ()
    owners: Mapping[TopicPartition, str] = field(default_factory=dict)
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
