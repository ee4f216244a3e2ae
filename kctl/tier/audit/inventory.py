"""A tier's objects by segment: their layout, and objects that belong to no segment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, islice

from formats.tier.object_names import LAYOUTS, LOCAL_TIERED_STORAGE, ObjectKind, ObjectLayout, ObjectName
from formats.values import Struct, field
from kctl.tier.stores import StoredObject

# So many keys decide on the layout of a tier.
SAMPLE = 1000


class SegmentObjects(Struct):
    """The objects of one segment by kind; `others` have an unknown suffix or are duplicates."""

    by_kind: dict[ObjectKind, tuple[ObjectName, StoredObject]] = field(default_factory=dict)
    others: list[tuple[ObjectName, StoredObject]] = field(default_factory=list)

    def all(self) -> list[tuple[ObjectName, StoredObject]]:
        return [*self.by_kind.values(), *self.others]

    @property
    def size_in_bytes(self) -> int:
        return sum(stored.size_in_bytes or 0 for _, stored in self.all())


class Inventory(Struct):
    """The objects of a tier by segment."""

    layout: ObjectLayout
    # By topic id and segment id.
    segments: dict[tuple[str, str], SegmentObjects] = field(default_factory=dict)
    unknown: list[StoredObject] = field(default_factory=list)
    objects: int = 0
    size_in_bytes: int = 0
    ids: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # segment id -> keys of `segments`

    def of(self, topic_id: str, segment_id: str) -> SegmentObjects:
        """The objects of a segment; empty without any."""
        return self.segments.get((topic_id, segment_id)) or SegmentObjects()


def detect_layout(keys: Iterable[str]) -> ObjectLayout:
    """The layout that most of the keys have; LocalTieredStorage's where none has any."""
    votes: Counter[str] = Counter()
    for key in keys:
        for name, layout in LAYOUTS.items():
            parsed = layout.parse(key)
            if parsed is not None and parsed.kind is not None:
                votes[name] += 1
    return LAYOUTS[votes.most_common(1)[0][0]] if votes else LOCAL_TIERED_STORAGE


def take_inventory(objects: Iterable[StoredObject], layout: ObjectLayout | None = None) -> Inventory:
    """The objects by segment. Without a layout it is detected from the first keys."""
    listed = iter(objects)
    first: list[StoredObject] = []
    if layout is None:
        first = list(islice(listed, SAMPLE))
        layout = detect_layout(stored.key for stored in first)
    inventory = Inventory(layout)
    for stored in chain(first, listed):
        inventory.objects += 1
        inventory.size_in_bytes += stored.size_in_bytes or 0
        name = layout.parse(stored.key)
        if name is None or stored.size_in_bytes is None:
            inventory.unknown.append(stored)
            continue
        key = (name.topic_id, name.remote_log_segment_id)
        segment_objects = inventory.segments.get(key)
        if segment_objects is None:
            segment_objects = inventory.segments[key] = SegmentObjects()
            inventory.ids.setdefault(name.remote_log_segment_id, []).append(key)
        if name.kind is None or name.kind in segment_objects.by_kind:
            segment_objects.others.append((name, stored))
        else:
            segment_objects.by_kind[name.kind] = (name, stored)
    return inventory
