"""Names of objects in tiered storage: a table of layouts, each with a key pattern and the kinds of its suffixes.

LocalTieredStorage (Kafka's own, in its test jar) has a folder for each partition; Aiven's plug-in has a manifest for
each segment and packs the indexes into one object. Other plug-ins are described by a small file.

Source: storage/src/test/.../storage/{RemoteTopicPartitionDirectory,RemoteLogSegmentFileset}.java @ 3.9.0-rc3;
Aiven-Open/tiered-storage-for-apache-kafka, ObjectKeyFactory.java
"""

from __future__ import annotations

import enum
import re
from functools import cached_property
from typing import Any, NamedTuple

from formats import bounded_toml
from formats.errors import FormatError
from formats.values import Struct, field


class ObjectKind(enum.StrEnum):
    """What an object of a segment holds."""

    LOG = "log"
    OFFSET_INDEX = "offset_index"
    TIME_INDEX = "time_index"
    TRANSACTION_INDEX = "transaction_index"
    LEADER_EPOCHS = "leader_epochs"
    PRODUCER_SNAPSHOT = "producer_snapshot"
    MANIFEST = "manifest"
    INDEXES = "indexes"  # several of the above, cut by the manifest


class ObjectName(NamedTuple):
    """The parts of an object's key; the kind is None if the layout does not have its suffix."""

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    remote_log_segment_id: str
    kind: ObjectKind | None
    suffix: str
    prefix: str = ""


_PARTS = {
    "topic": r"(?P<topic>[a-zA-Z0-9._-]+)",
    "topic_id": r"(?P<topic_id>[A-Za-z0-9_-]{22})",
    "partition": r"(?P<partition>\d{1,10})",
    "start_offset": r"(?P<start_offset>\d{1,20})",
    "segment_id": r"(?P<segment_id>[A-Za-z0-9_-]{22})",
    "suffix": r"(?P<suffix>\.[A-Za-z0-9_.-]+)",
}
_FIELD = re.compile(r"\{(\w+)(?::[0-9a-z]*)?\}")


class ObjectLayout(Struct, frozen=True, dict=True):
    """A pattern such as `{topic}-{partition}-{topic_id}/{start_offset:020}-{segment_id}{suffix}`."""

    name: str
    key: str
    suffixes: dict[str, ObjectKind]
    optional: frozenset[ObjectKind] = field(default_factory=frozenset)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The key as a regular expression, with any prefix."""
        pattern, position, named = "", 0, set()
        for match in _FIELD.finditer(self.key):
            name = match[1]
            pattern += re.escape(self.key[position : match.start()])
            pattern += f"(?P={name})" if name in named else _PARTS[name]
            named.add(name)
            position = match.end()
        return re.compile(rf"(?P<prefix>(?:.*/)?){pattern}{re.escape(self.key[position:])}", re.DOTALL)

    @property
    def required(self) -> frozenset[ObjectKind]:
        """The kinds of objects that every complete segment has."""
        return frozenset(self.suffixes.values()) - self.optional

    def parse(self, key: str) -> ObjectName | None:
        """The parts of a key; None if it is not of this layout."""
        match = self.pattern.fullmatch(key)
        if not match or int(match["start_offset"]) >= 1 << 63 or int(match["partition"]) >= 1 << 31:
            return None
        return ObjectName(
            match["topic"],
            match["topic_id"],
            int(match["partition"]),
            int(match["start_offset"]),
            match["segment_id"],
            self.suffixes.get(match["suffix"]),
            match["suffix"],
            match["prefix"],
        )

    def format(self, name: ObjectName, kind: ObjectKind) -> str:
        """The key of an object of a segment."""
        suffix = next(suffix for suffix, suffix_kind in self.suffixes.items() if suffix_kind is kind)
        return name.prefix + self.key.format(
            topic=name.topic,
            topic_id=name.topic_id,
            partition=name.partition,
            start_offset=name.start_offset,
            segment_id=name.remote_log_segment_id,
            suffix=suffix,
        )


LOCAL_TIERED_STORAGE = ObjectLayout(
    "local-tiered-storage",
    "{topic}-{partition}-{topic_id}/{start_offset:020}-{segment_id}{suffix}",
    {
        ".log": ObjectKind.LOG,
        ".index": ObjectKind.OFFSET_INDEX,
        ".timeindex": ObjectKind.TIME_INDEX,
        ".txnindex": ObjectKind.TRANSACTION_INDEX,
        ".leader_epoch_checkpoint": ObjectKind.LEADER_EPOCHS,
        ".snapshot": ObjectKind.PRODUCER_SNAPSHOT,
    },
    frozenset({ObjectKind.TRANSACTION_INDEX}),
)
AIVEN = ObjectLayout(
    "aiven",
    "{topic}-{topic_id}/{partition}/{start_offset:020}-{segment_id}{suffix}",
    {".log": ObjectKind.LOG, ".indexes": ObjectKind.INDEXES, ".rsm-manifest": ObjectKind.MANIFEST},
)
LAYOUTS = {layout.name: layout for layout in (LOCAL_TIERED_STORAGE, AIVEN)}


def parse_layout(text: str) -> ObjectLayout:
    """A layout from a TOML file: `name`, `key`, a table `suffixes` (suffix = kind) and a list `optional`. Raises FormatError."""
    try:
        table: dict[str, Any] = bounded_toml.loads(text)
        suffixes = {str(suffix): ObjectKind(kind) for suffix, kind in table["suffixes"].items()}
        optional = frozenset(ObjectKind(kind) for kind in table.get("optional", ()))
        layout = ObjectLayout(str(table.get("name", "custom")), str(table["key"]), suffixes, optional)
        names = {match[1] for match in _FIELD.finditer(layout.key)}
        missing = {"partition", "start_offset", "segment_id", "suffix", "topic", "topic_id"} ^ names
        if missing:
            raise ValueError(f"the key must name each of {', '.join(sorted(_PARTS))} once")
        _ = layout.pattern
    except (TypeError, KeyError, ValueError, AttributeError, re.error) as error:
        raise FormatError(f"not a layout: {error}", 0) from None
    return layout
