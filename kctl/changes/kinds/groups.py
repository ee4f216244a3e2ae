"""Groups: their offsets, their members, the groups themselves."""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, TypedDict

from msgspec import convert

from formats.words import counted
from kctl.changes.kinds.codecs import NAMES
from kctl.cluster.intent import Intent, IntentCodec
from kctl.errors import Refused
from kctl.model import Json, TopicPartition

NO_OFFSET = -1


class GroupOffset(NamedTuple):
    """An offset that a group committed; of a share group where it begins to read."""

    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None


GroupOffsets = Mapping[TopicPartition, GroupOffset | None]  # None: there is none


def offset_rows(offsets: GroupOffsets) -> list[Json]:
    """Offsets by topic and number, as a list of objects."""
    return [
        {"topic": tp.topic, "partition": tp.partition, **(at or GroupOffset(NO_OFFSET))._asdict()}
        for tp, at in sorted(offsets.items())
    ]


class OffsetRow(TypedDict):
    """A row of `offset_rows`."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str | None


def offsets_from(rows: Any) -> dict[TopicPartition, GroupOffset | None]:
    """The inverse of `offset_rows`; TypeError or ValueError for anything else."""
    return {
        TopicPartition(row["topic"], row["partition"]): (
            None
            if row["offset"] == NO_OFFSET
            else GroupOffset(row["offset"], row["leader_epoch"], row["metadata"])
        )
        for row in convert(rows, list[OffsetRow])
    }


OFFSETS = IntentCodec(offset_rows, offsets_from)


class SetGroupOffsets(Intent, frozen=True, kw_only=True):
    """Put a group's offsets where they are to be. Refused where `previous` is not the current value. Inverse: exchanged."""

    kind: ClassVar[str] = "set-group-offsets"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"offsets": OFFSETS, "previous": OFFSETS}
    group: str
    is_share: bool = False
    offsets: GroupOffsets
    previous: GroupOffsets

    def __str__(self) -> str:
        verb = "set" if any(self.offsets.values()) else "delete"
        return f"{verb} the offsets of group {self.group} in {counted(len(self.offsets), 'partition')}"

    def inverse(self) -> Intent:
        return SetGroupOffsets(
            group=self.group, is_share=self.is_share, offsets=self.previous, previous=self.offsets
        )


class DeleteGroup(Intent, frozen=True, kw_only=True):
    """Delete a group that has no members. Inverse: its offsets, which make it again."""

    kind: ClassVar[str] = "delete-group"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"previous": OFFSETS}
    does: ClassVar[str] = "delete group {group} with its offsets in {previous:partition}"
    group: str
    is_share: bool = False
    previous: GroupOffsets

    def inverse(self) -> Intent:
        if not self.previous:
            raise Refused(
                f"group {self.group} had no offsets: a consumer that joins creates it again",
                "there is nothing to undo",
            )
        return SetGroupOffsets(
            group=self.group,
            is_share=self.is_share,
            offsets=self.previous,
            previous=dict.fromkeys(self.previous),
        )


class RemoveMembers(Intent, frozen=True, kw_only=True):
    """Take members out of a group. No inverse."""

    kind: ClassVar[str] = "remove-members"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"members": NAMES}
    does: ClassVar[str] = "remove {members:member} from group {group}"
    final: ClassVar[str] = "a consumer that still runs joins again by itself"
    group: str
    members: tuple[str, ...]
