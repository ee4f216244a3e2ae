"""A replica's log: its sound batches as columns in order of offset, its epochs, damage and end.

Batches whose CRC is wrong are not part of the log: recovery would cut there. They are noted as damage with the
offsets that they may have held, so that other copies can be searched for these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from formats.arrays import Ints, Mask
from formats.log.records import DamageReason
from formats.log_dir.file_names import FileState
from formats.values import Struct, field, replace
from kctl.copies.lineage import Lineage, normalised
from kctl.copies.scanned import ScannedRun, scan_arriving, scan_folder
from kctl.errors import reason_of
from kctl.evidence.replica_copies import Copy
from kctl.findings import Finding
from kctl.findings import replica as codes
from kctl.log.folder import Folder, read_folder
from kctl.replication.epochs import Entries, epoch_for_offset, loaded, place
from kctl.scan.noted import HeaderColumns
from kctl.scan.outliers import rises, wrong_offsets

NO_END = 1 << 62
EMPTY = np.empty(0, np.int64)
HARMLESS_AT_END = frozenset({DamageReason.TORN_TAIL, DamageReason.ZEROS})


class SoundBatches(Struct, frozen=True):
    """Sound batches in order of offset, one element a batch. `first_offset` is the least that it can hold.

    For magic 2 that is the base offset; a compressed message of magic 0 or 1 has only its last offset.
    """

    first_offset: Ints
    last_offset: Ints
    leader_epoch: Ints
    crc: Ints
    position: Ints
    size_in_bytes: Ints
    segment: Ints  # index into ReplicaLog.files
    records: Ints  # -1 if only the records tell
    max_timestamp: Ints

    def __len__(self) -> int:
        return len(self.last_offset)

    def __getitem__(self, rows: slice | Mask | Ints) -> SoundBatches:
        return SoundBatches(*(getattr(self, name)[rows] for name in NAMES))


MOST_GAPS = 1000  # a cleaned log may have one between any two batches

NAMES = SoundBatches.__struct_fields__
NO_BATCHES = SoundBatches(*(EMPTY for _ in NAMES))


def joined(parts: Sequence[SoundBatches]) -> SoundBatches:
    whole = [part for part in parts if len(part)]
    if not whole:
        return NO_BATCHES
    if len(whole) == 1:
        return whole[0]
    return SoundBatches(*(np.concatenate([getattr(part, name) for part in whole]) for name in NAMES))


class DamagedRange(Struct):
    """Bytes that are no sound batch, and the offsets that they may have held; no end if it is the end of the log."""

    file: Path
    position: int
    size_in_bytes: int
    from_offset: int
    to_offset: int | None = None

    def overlaps(self, other: DamagedRange) -> bool:
        """Whether an offset may have been in both ranges."""
        ends = self.to_offset is None or other.from_offset < self.to_offset
        return ends and (other.to_offset is None or self.from_offset < other.to_offset)

    def finding(self, copy: Copy, others: str) -> Finding:
        """The finding about the damage; `others` says what other copies have there."""
        end = self.to_offset if self.to_offset is not None else self.from_offset
        bytes_of_it = replace(
            copy.place,
            file="/".join(filter(None, (copy.place.file, self.file.name))),
            position=self.position,
            size_in_bytes=self.size_in_bytes,
            base_offset=self.from_offset,
            last_offset=end - 1 if end > self.from_offset else None,
        )
        return codes.DAMAGED_COPY.at(bytes_of_it, broker_id=copy.broker_id, where=self.where, others=others)

    @property
    def where(self) -> str:
        """The offsets in words."""
        if self.to_offset is None:
            return f"from offset {self.from_offset} on"
        if self.to_offset <= self.from_offset:
            return f"before offset {self.from_offset}, between batches that follow each other"
        return f"at offsets [{self.from_offset}, {self.to_offset})"


class ReplicaLog(Struct):
    """One pass over a copy's segments; everything else is known once `batches` was read."""

    copy: Copy
    skip_below: int = 0  # segments with a lower base offset are not read
    files: list[Path] = field(default_factory=list)
    base_offset: int | None = None
    next_offset: int = 0
    rebuilt: list[tuple[int, int]] = field(default_factory=list)
    damage: list[DamagedRange] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    has_gaps_inside: bool = False
    """Whether a batch has fewer records than offsets, as compaction leaves it."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Offsets between two batches of a segment that no damage explains; the first `MOST_GAPS`."""
    missing_segments: list[tuple[int, int]] = field(default_factory=list)
    """Offsets between the end of a segment and the base offset of the next one that no damage explains."""
    bytes_read: int = 0
    newest_timestamp: int = -1
    _last_epoch: int = -1

    def batches(self, runs: Iterator[ScannedRun] | None = None) -> Iterator[SoundBatches]:
        """The sound batches, some thousands at a time; from `runs` if another process scanned them."""
        if self.copy.epochs_problem:
            self.problems.append(self.copy.epochs_problem)
        try:
            copy = self.copy
            if copy.replica.arriving is None:
                folder = read_folder(copy.folder)
                self._note_odd_files(folder)
                runs = runs or scan_folder(folder, self.skip_below, copy.noted)
            elif runs is None:
                runs = scan_arriving(copy.folder, self.skip_below, copy.replica.arriving, copy.noted)
            for run in runs:
                batches = self._take(run)
                if len(batches):
                    yield batches
        except OSError as error:
            self.problems.append(f"cannot be listed: {reason_of(error)}")

    def _note_odd_files(self, folder: Folder) -> None:
        """Note segments that are no regular files, since these are not read."""
        odd = sorted({*folder.links, *(path for path, _ in folder.odd)})
        self.problems += [f"{path.name} is not a regular file" for path in odd if path.suffix == ".log"]

    def _take(self, run: ScannedRun) -> SoundBatches:
        if run.begins:
            if self.base_offset is None:
                self.base_offset = self.next_offset = run.base_offset
            if run.base_offset > self.next_offset and not self._is_damaged(self.next_offset, run.base_offset):
                self.missing_segments.append((self.next_offset, run.base_offset))
            self.next_offset = max(self.next_offset, run.base_offset)
            self.files.append(run.path)
            self.bytes_read += run.size_in_bytes
        if run.error is not None:
            self.problems.append(run.error)
        if run.columns is None:
            return NO_BATCHES
        headers = run.columns
        sound = headers.crc_valid
        if not sound.all():
            self._note_unsound(run.path, headers)
            headers = headers[sound]
        headers = self._without_outliers(run, headers)
        batches = self._ordered(headers)
        self._learn(batches)
        for damage in run.damage:
            if run.ends and damage.reason in HARMLESS_AT_END:
                continue
            self.damage.append(
                DamagedRange(run.path, damage.position, damage.size_in_bytes, self.next_offset)
            )
        return batches

    def _note_unsound(self, path: Path, headers: HeaderColumns) -> None:
        before = self.next_offset
        for row in np.flatnonzero(~headers.crc_valid)[:1000].tolist():
            sound = headers.last_offset[:row][headers.crc_valid[:row]]
            start = int(sound[-1]) + 1 if len(sound) else before
            after = np.flatnonzero(headers.crc_valid[row:])
            end = int(headers.base_offset[row + int(after[0])]) if len(after) else None
            size, position = int(headers.size_in_bytes[row]), int(headers.position[row])
            last = self.damage[-1] if self.damage else None
            if last and last.file == path and last.position + last.size_in_bytes == position:
                last.size_in_bytes, last.to_offset = last.size_in_bytes + size, end
            else:
                self.damage.append(DamagedRange(path, position, size, start, end))

    def _without_outliers(self, run: ScannedRun, headers: HeaderColumns) -> HeaderColumns:
        """The columns without batches whose offset or epoch is an outlier: no CRC covers these two fields.

        Both rise through a log, so that a value above its successor's is wrong if the successor fits what came before.
        """
        if not len(headers):
            return headers
        before, following = self.next_offset - 1, run.next_base
        wrong = np.zeros(len(headers), bool)
        if headers.base_offset[0] <= before or not rises(headers, following):
            wrong = wrong_offsets(headers, before, before + 1, [] if following is None else [following])
        base, epoch, new = headers.base_offset, headers.partition_leader_epoch, headers.magic == 2
        led = np.concatenate(([self._last_epoch], epoch[:-1]))
        wrong[:-1] |= new[:-1] & new[1:] & (epoch[:-1] > epoch[1:]) & (epoch[1:] >= led[:-1])
        wrong |= headers.last_offset < base  # beyond 2^63 - 1
        if not wrong.any():
            return headers
        for row in np.flatnonzero(wrong)[:1000].tolist():
            position, size = int(headers.position[row]), int(headers.size_in_bytes[row])
            right = np.flatnonzero(~wrong[:row])
            start = int(headers.last_offset[right[-1]]) + 1 if len(right) else self.next_offset
            behind = np.flatnonzero(~wrong[row + 1 :])
            end = int(base[row + 1 + int(behind[0])]) if len(behind) else following
            self.damage.append(DamagedRange(run.path, position, size, start, end))
        return headers[~wrong]

    def _ordered(self, headers: HeaderColumns) -> SoundBatches:
        """The batches whose offsets rise, as columns; a batch that goes back is left out."""
        rising = np.maximum.accumulate(np.concatenate(([self.next_offset - 1], headers.last_offset)))
        good = (headers.last_offset > rising[:-1]) & (headers.base_offset > rising[:-1])
        if not good.all():
            headers = headers[good]
            rising = np.concatenate((rising[:1], headers.last_offset))
        old = headers.magic < 2
        first = np.where(old & (headers.records_count < 0), rising[:-1] + 1, headers.base_offset)
        return SoundBatches(
            first.astype(np.int64),
            headers.last_offset,
            np.where(old, -1, headers.partition_leader_epoch).astype(np.int64),
            headers.crc.astype(np.int64),
            headers.position,
            headers.size_in_bytes,
            np.full(len(headers), len(self.files) - 1, np.int64),
            headers.records_count.astype(np.int64),
            headers.max_timestamp,
        )

    def _is_damaged(self, start: int, end: int) -> bool:
        """Whether damage explains missing offsets; damage is noted in order of offset."""
        before = bisect_left(self.damage, end, key=lambda damage: damage.from_offset)
        last = self.damage[before - 1] if before else None
        return last is not None and (last.to_offset is None or last.to_offset > start)

    def _learn(self, batches: SoundBatches) -> None:
        if not len(batches):
            return
        span = batches.last_offset - batches.first_offset + 1
        self.has_gaps_inside |= bool(((batches.records >= 0) & (batches.records < span)).any())
        if len(self.gaps) < MOST_GAPS:
            before = np.concatenate(([self.next_offset], batches.last_offset[:-1] + 1))
            for row in np.flatnonzero(batches.first_offset > before)[:MOST_GAPS].tolist():
                start, end = int(before[row]), int(batches.first_offset[row])
                if not self._is_damaged(start, end):
                    self.gaps.append((start, end))
        self.newest_timestamp = max(self.newest_timestamp, int(batches.max_timestamp.max()))
        epochs = batches.leader_epoch
        changes = np.flatnonzero(epochs != np.concatenate(([self._last_epoch], epochs[:-1])))
        for row in changes.tolist():
            epoch = int(epochs[row])
            if epoch >= 0 and epoch > (self.rebuilt[-1][0] if self.rebuilt else -1):
                place(self.rebuilt, epoch, int(batches.first_offset[row]))
        self._last_epoch = int(epochs[-1])
        first = int(batches.first_offset[0])
        for damaged_range in reversed(self.damage):
            if damaged_range.to_offset is not None:
                break
            damaged_range.to_offset = first
        self.next_offset = int(batches.last_offset[-1]) + 1

    @property
    def looks_compacted(self) -> bool:
        """Whether offsets are missing inside of batches, or the cleaner has a checkpoint for it."""
        return self.has_gaps_inside or self.copy.checkpoint("cleaner") is not None

    @property
    def local_log_start_offset(self) -> int:
        """The first offset that can be on disk."""
        return max(self.copy.checkpoint("log_start") or 0, self.base_offset or 0)

    @property
    def kept_from(self) -> int:
        """The first offset that the broker keeps on disk.

        Where it was about to delete a segment while the directory was copied, that is behind it: it deletes from the
        front, and what the copy has before was copied earlier.
        """
        start = self.local_log_start_offset
        if not self.missing_segments or self.copy.replica.log_dir.is_clean:
            return start
        try:
            leftovers = read_folder(self.copy.folder).leftovers
        except OSError:
            return start
        leaving = [one.base_offset for one in leftovers if one.log and one.state is FileState.DELETED]
        ends = (
            end for begin, end in self.missing_segments if any(begin <= offset < end for offset in leaving)
        )
        return max((start, *ends))

    def lineage(self) -> Lineage:
        """The replica's lineage; if batches contradict the checkpoint, the batches count."""
        recorded = self.copy.recorded_epochs
        local = self.local_log_start_offset
        entries = tuple(self.rebuilt) if recorded is None or self._contradicts(recorded) else recorded
        return Lineage(
            self._log_start_offset(entries),
            max(self.next_offset, local),
            self.copy.checkpoint("high_watermark"),
            entries,
            local,
        )

    @property
    def lacks_first_epochs(self) -> bool:
        """Whether batches have epochs that end below the checkpoint's first entry, and the log start is unknown.

        Deleting records has the same effect until the log start is written: a minute later, or by a clean stop.
        """
        recorded = loaded(self.copy.recorded_epochs or ())
        if not recorded or self.copy.replica.log_dir.is_clean:
            return False
        ends = [start for _, start in self.rebuilt[1:]]
        older = zip(self.rebuilt, ends, strict=False)
        return any(epoch < recorded[0][0] and end > self.local_log_start_offset for (epoch, _), end in older)

    def _log_start_offset(self, entries: Entries) -> int:
        """The first offset that consumers are served; of a tiered topic below the offsets on disk."""
        local, checkpointed = self.local_log_start_offset, self.copy.checkpoint("log_start")
        is_tiered = checkpointed is not None and bool(entries) and checkpointed < (self.base_offset or 0)
        if is_tiered and checkpointed is not None and entries[0][1] < local:
            return checkpointed
        return local

    def _contradicts(self, recorded: Entries) -> bool:
        """Whether the first batch of an epoch has another epoch in the checkpoint."""
        start, end = self.local_log_start_offset, self.next_offset
        recorded_epochs = normalised(recorded, start, end)
        for index, (epoch, first) in enumerate(self.rebuilt):
            first = max(first, start)
            until = self.rebuilt[index + 1][1] if index + 1 < len(self.rebuilt) else end
            if until <= start:
                continue
            if epoch_for_offset(recorded_epochs, first) != epoch:
                return True
        return False


class Holder(Struct, frozen=True):
    """A copy whose log was read: it may hold records that the present leader lacks."""

    copy: Copy
    log: ReplicaLog
    lineage: Lineage
    is_doubtful: bool = False
    """Whether it may be of an earlier topic of the same name."""


def batches_between(copy: Copy, start: int, end: int) -> Iterator[tuple[ReplicaLog, SoundBatches]]:
    """The sound batches of a copy that may hold an offset of [start, end), each with its log."""
    log = ReplicaLog(copy, skip_below=_segment_base(copy, start))
    for batches in log.batches():
        low = int(batches.last_offset.searchsorted(start))
        high = int(batches.first_offset.searchsorted(end))
        if low < high:
            yield log, batches[low:high]
        if len(batches) and int(batches.last_offset[-1]) >= end:
            return


def _segment_base(copy: Copy, offset: int) -> int:
    """The base offset of the segment that an offset is in."""
    return max((base for base in _bases(copy) if base <= offset), default=0)


def first_segment(copy: Copy) -> int:
    """The base offset of the first segment; 0 without segments."""
    return min(_bases(copy), default=0)


def _bases(copy: Copy) -> list[int]:
    try:
        return [segment.base_offset for segment in read_folder(copy.folder).logs]
    except OSError:
        return []
