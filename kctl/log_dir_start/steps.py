"""The steps of a start, as values in the order in which a broker does them."""

from __future__ import annotations

import enum

from formats.log_dir.file_names import PartitionFolder
from formats.values import Struct
from kctl.copies.spans import Span
from kctl.model import TopicPartition


class StepKind(enum.StrEnum):
    """What the broker does."""

    LOAD = "load"
    RECOVER = "recover"
    TRUNCATE = "truncate"
    REBUILD_INDEX = "rebuild_index"
    DELETE = "delete"
    RENAME = "rename"
    COMPLETE_SWAP = "complete_swap"
    RAISE_LOG_START = "raise_log_start"
    CUT_EPOCHS = "cut_epochs"
    DROP_SNAPSHOT = "drop_snapshot"
    CONTINUE_FUTURE = "continue_future"
    OFFLINE = "offline"


class StartStep(Struct, frozen=True):
    """One step. Offsets are [from_offset, to_offset)."""

    step: StepKind
    message: str
    file: str | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    records_cut: int | None = None
    bytes_cut: int | None = None
    is_damage_cut: bool = False  # of these, more than zeros and the start of a batch that was being written
    source: str = ""


class Destroyed(Struct, frozen=True):
    """Records that a step takes away. `only_copy` is None where no other copy is in the evidence."""

    records: int
    only_copy: bool | None
    missing: tuple[Span, ...] = ()  # offsets that no other copy holds
    committed: int | None = None  # of these, offsets below the highest high watermark that is known
    compared_with: tuple[int, ...] = ()


class PlacedStep(Struct, frozen=True):
    """A step, where it is done, and what it would destroy."""

    log_dir: str
    folder: str | None
    named: PartitionFolder | None
    step: StartStep
    destroyed: Destroyed | None = None

    @property
    def partition(self) -> TopicPartition | None:
        """The partition; None for a step of a directory."""
        return TopicPartition(self.named.topic, self.named.partition) if self.named else None
