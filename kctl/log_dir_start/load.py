"""What loading one partition folder does to it: Kafka's LogLoader (up to 2.8 `Log.loadSegments`), without writing.

Source: core/src/main/scala/kafka/log/{Log,LogLoader,UnifiedLog,LocalLog}.scala @ 0.8.2.2 to 3.9.0-rc3,
storage/src/main/java/org/apache/kafka/storage/internals/epoch/LeaderEpochFileCache.java @ 3.9.0-rc3
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from formats.errors import MalformedLine
from formats.log.columns.headers import Headers
from formats.log.records import DamageReason
from formats.log_dir.checkpoints import (
    EpochEntry,
    MalformedCheckpoint,
    Refusal,
    assigned_epochs,
    parse_leader_epochs,
)
from formats.log_dir.file_names import LEADER_EPOCHS, PARTITION_METADATA, parse_segment_file
from formats.log_dir.index_files import read_offset_index, read_time_index, read_transaction_index
from formats.log_dir.state_files import parse_partition_metadata
from formats.values import Struct, field
from kctl.files import read_padded, read_text, read_whole
from kctl.log_dir_start.failures import LoadFails, UnknownOutcome
from kctl.log_dir_start.producers import (
    ProducerLoader,
    Rebuilding,
    SnapshotFiles,
    between,
    load_for_recovery,
    rebuild,
    without_strays,
)
from kctl.log_dir_start.rules import IndexCheck, StartRules, Swap
from kctl.log_dir_start.segment import InvalidOffset, LoadedSegment, Recovered
from kctl.log_dir_start.steps import StartStep, StepKind
from kctl.scan.producer_state import ProducerReplay, read_marker_at
from kctl.scan.source import Source, opened_source

UNFINISHED = (DamageReason.ZEROS, DamageReason.TORN_TAIL)
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
INDEXES = (".index", ".timeindex", ".txnindex")
LONG = re.compile(r"[+-]?\d+\Z")
KRAFT_DELETE = ".checkpoint.deleted"
LOADER = "K:log/LogLoader.scala"


class PartitionTask(Struct, frozen=True):
    """A partition folder, and what the log directory's checkpoints say about it."""

    folder: Path
    rules: StartRules
    is_clean: bool = False
    recovery_point: int = 0
    log_start: int = 0
    is_deleted: bool = False  # the folder's name ends in -delete


class PartitionStart(Struct):
    """What loading a folder came to."""

    steps: list[StartStep] = field(default_factory=list)
    files: dict[str, int] = field(
        default_factory=dict
    )  # of the folder afterwards: name to size of the log files
    snapshots: tuple[int, ...] = ()
    epochs: list[EpochEntry] | None = None
    log_start: int | None = None
    log_end: int | None = None
    bytes_read: int = 0
    bytes_recovered: int = 0
    failure: LoadFails | None = None
    unknown: str | None = None


def load_partition(task: PartitionTask) -> PartitionStart:
    """What the broker does to the folder; what it would not survive is in `failure`. `OSError` where it cannot be read."""
    loader = _Loader(task)
    try:
        loader.load()
    except LoadFails as failure:
        loader.start.failure = failure
    except InvalidOffset as error:
        exception = "org.apache.kafka.common.errors.InvalidOffsetException"
        loader.start.failure = LoadFails(exception, str(error), "")
    except UnknownOutcome as outcome:
        loader.start.unknown = str(outcome)
    start = loader.start
    start.files = {name: size for name, (_, size) in loader.files.items()}
    start.snapshots = tuple(sorted(loader.snapshots.files))
    if not task.rules.has_snapshots:
        named = (parse_segment_file(name) for name in start.files)
        start.snapshots = tuple(sorted(f.base_offset for f in named if f and f.suffix == ".snapshot"))
    return start


class _Loader(Struct, dict=True):
    """One run."""

    task: PartitionTask
    start: PartitionStart = field(default_factory=PartitionStart)
    files: dict[str, tuple[Path, int]] = field(default_factory=dict)
    segments: list[LoadedSegment] = field(default_factory=list)  # ascending
    snapshots: SnapshotFiles = field(default_factory=lambda: SnapshotFiles({}))
    epochs: list[EpochEntry] | None = None

    @property
    def rules(self) -> StartRules:
        return self.task.rules

    def say(self, step: StepKind, message: str, **values: Any) -> None:
        """Add a step."""
        self.start.steps.append(StartStep(step, message, **values))

    def load(self) -> None:
        """Everything, in Kafka's order."""
        rules = self.rules
        self._list()
        if rules.has_epochs:
            self._read_epochs()
        swaps = self._remove_temporary()
        if rules.swap is Swap.RENAME:
            self._rename_swaps(swaps)
        elif rules.swap is Swap.REPLACE:
            self._replace_with_swaps(swaps)
        self._load_segments()
        if rules.swap is Swap.RECOVER:
            self._recover_swaps(swaps)
        end = self._end_of_deleted() if self.task.is_deleted and self.segments else self._recover_log()
        self._cut_epochs_from_end(end)
        first = self.segments[0].base_offset
        checkpoint = self.task.log_start if rules.has_log_start else 0
        start = max(checkpoint, first)
        self.start.log_start, self.start.log_end = start, end
        if self.epochs is not None:
            self._cut_epochs_from_start(checkpoint if rules.starts_epochs_at_checkpoint else start)
        if rules.has_snapshots:
            self._load_producers(start, end)
        if rules.index_check is IndexCheck.FATAL:
            self._check_every_index()
        if rules.has_topic_ids:
            self._read_topic_id()

    # --- what lies in the folder --------------------------------------------------------------------------

    def _list(self) -> None:
        import os
        import stat

        for name in sorted(os.listdir(self.task.folder)):
            path = self.task.folder / name
            status = path.stat()
            if stat.S_ISREG(status.st_mode):
                self.files[name] = (path, status.st_size)
        if self.rules.has_snapshots:
            found: dict[int, Path | None] = {}
            for name, (path, _) in self.files.items():
                if name.endswith(".snapshot"):
                    found[self._offset(name)] = path
            self.snapshots = SnapshotFiles(found)

    def _offset(self, name: str) -> int:
        text = name.partition(".")[0]
        if not LONG.match(text) or not -(1 << 63) <= int(text[:40]) < 1 << 63:
            words = f'For input string: "{text}"'
            raise LoadFails("java.lang.NumberFormatException", words, name)
        return int(text)

    def _read_epochs(self) -> None:
        path = self.task.folder / LEADER_EPOCHS
        words = f"Error while reading checkpoint file {path}"
        if LEADER_EPOCHS not in self.files:
            self.epochs = []
            return
        try:
            self.epochs = assigned_epochs(parse_leader_epochs(read_text(path)))
        except MalformedCheckpoint as error:
            is_number = error.refusal is Refusal.STARTUP_FAILS and not self.rules.bad_number_is_io
            if error.refusal is not Refusal.INVALID_EPOCH and not is_number:
                raise self._storage_error(words, LEADER_EPOCHS) from error
            raise LoadFails("java.lang.NumberFormatException", error.what, LEADER_EPOCHS) from error
        except UnicodeDecodeError as error:
            raise self._storage_error(words, LEADER_EPOCHS) from error
        except ValueError as error:
            raise LoadFails("java.lang.IllegalArgumentException", str(error), LEADER_EPOCHS) from error

    def _storage_error(self, words: str, file: str) -> LoadFails:
        if not self.rules.wraps_io:
            return LoadFails("java.io.IOException", words, file)
        return LoadFails("org.apache.kafka.common.errors.KafkaStorageException", words, file, is_storage=True)

    # --- files of interrupted work ------------------------------------------------------------------------

    def _remove_temporary(self) -> list[str]:
        """Delete what was about to be deleted and what was not finished; the swap files that are left."""
        cleaned, swaps = [], []
        for name in list(self.files):
            if name.endswith(DELETED) and not name.endswith(KRAFT_DELETE):
                self._delete(name, "a file that waits for its deletion")
            elif name.endswith(CLEANED):
                cleaned.append(name)
            elif name.endswith(SWAP):
                swaps.append(name)
        if self.rules.swap is not Swap.RENAME:
            swaps = self._swaps_up_to_2_8(swaps)
        if self.rules.cleaned_limits_swap:
            least = min(map(self._offset, cleaned), default=1 << 63)
            for name in [s for s in swaps if self._offset(s) >= least]:
                self._delete(
                    name, f"a swap file of a split that was not finished (cleaned files from {least} on)"
                )
                if self.rules.swap is Swap.RECOVER:
                    self._delete_indexes(self._offset(name), SWAP)
                swaps.remove(name)
        for name in cleaned:
            self._delete(name, "a file that the cleaner had not finished")
        return swaps

    def _swaps_up_to_2_8(self, swaps: list[str]) -> list[str]:
        """Delete the indexes beside the swap files; the logs among them."""
        logs = []
        for name in swaps:
            base = name.removesuffix(SWAP)
            if base.endswith(INDEXES) and not self.rules.swap_index_deletes_indexes:
                if base.endswith(".index") or self.rules.has_snapshots:  # from 0.11 any index
                    self._delete(name, "the index of a swap file, which is rebuilt")
            elif base.endswith(INDEXES):
                self._delete_indexes(self._offset(name), "")
            elif base.endswith(".log"):
                self._delete_indexes(self._offset(name), "")
                logs.append(name)
        return logs

    def _delete_indexes(self, base_offset: int, state: str) -> None:
        suffixes = INDEXES if self.rules.has_snapshots else (".index",)
        for suffix in suffixes:
            name = f"{base_offset:020d}{suffix}{state}"
            if name in self.files:
                self._delete(name, "an index beside a swap file")

    def _rename_swaps(self, swaps: list[str]) -> None:
        least, most = 1 << 63, -1
        for name in swaps:
            if name.removesuffix(SWAP).endswith(".log"):
                path, size = self.files[name]
                base = self._offset(name)
                index = self.files.get(f"{base:020d}.index{SWAP}")
                segment = LoadedSegment(
                    base, path, name, size, self.rules, index_path=index[0] if index else None
                )
                least, most = min(least, base), max(most, segment.read_next_offset())
                # Looking for the end makes an empty index, which is renamed as well.
                new = self.task.folder / f"{base:020d}.index"
                self.files.setdefault(f"{base:020d}.index{SWAP}", (new, 0))
        for name in [n for n in self.files if not n.endswith(SWAP)]:
            text = name.partition(".")[0]
            if LONG.match(text) and "." in name and least <= int(text[:40]) < most:
                self._delete(name, f"its records are in the swap files of offsets [{least}, {most})")
                if name.endswith(".snapshot"):
                    self.snapshots.delete(int(text))
        for name in sorted(n for n in self.files if n.endswith(SWAP)):
            self._rename(name, name.removesuffix(SWAP))

    def _replace_with_swaps(self, swaps: list[str]) -> None:
        for name in swaps:
            self._rename(name, name.removesuffix(SWAP))

    def _recover_swaps(self, swaps: list[str]) -> None:
        """Recover each swap file and put it in the place of the segments in its range."""
        for name in swaps:
            path, size = self.files[name]
            base = self._offset(name)
            segment = LoadedSegment(base, path, name.removesuffix(SWAP), size, self.rules)
            self._recover(segment, with_epochs=False, state=SWAP)
            end = segment.read_next_offset()
            old = between(self.segments, base, end)
            if self.rules.cleaned_limits_swap:
                old = [s for s in old if s.read_next_offset() > base]
            for replaced in old:
                self._delete_segment(replaced, f"its records are in the swap file of offsets [{base}, {end})")
            self.segments = sorted(
                [s for s in self.segments if s.base_offset != base] + [segment], key=lambda s: s.base_offset
            )
            self.files[name] = (path, segment.size)
            self._rename(name, segment.name)
            for suffix in self._indexes:
                if f"{base:020d}{suffix}{SWAP}" in self.files:
                    self._rename(f"{base:020d}{suffix}{SWAP}", f"{base:020d}{suffix}")
            self._make_indexes(base, path)

    def _delete(self, name: str, why: str) -> None:
        _, size = self.files.pop(name)
        self.say(StepKind.DELETE, f"deletes {name}: {why}", file=name, bytes_cut=size, source=LOADER)

    def _rename(self, name: str, new_name: str) -> None:
        self.files[new_name] = self.files.pop(name)
        if new_name.endswith(".snapshot"):
            self.snapshots.files[self._offset(new_name)] = self.files[new_name][0]
        self.say(StepKind.COMPLETE_SWAP, f"renames {name} to {new_name}", file=name, source=LOADER)

    # --- segments -----------------------------------------------------------------------------------------

    def _load_segments(self) -> None:
        for name in sorted(self.files):
            if name.endswith(self._indexes):
                log = f"{self._offset(name):020d}.log"
                if log not in self.files:
                    self._delete(name, "an index without its log")
            elif name.endswith(".log"):
                self._load_segment(name)
        self.segments.sort(key=lambda segment: segment.base_offset)

    def _load_segment(self, name: str) -> None:
        base = self._offset(name)
        whole_name = f"{base:020d}.log"
        # Of a name with fewer digits Kafka reads the number, and opens the file of 20 digits.
        path, size = self.files.setdefault(whole_name, (self.task.folder / whole_name, 0))
        index = self.files.get(f"{base:020d}.index")
        segment = LoadedSegment(
            base, path, whole_name, size, self.rules, index_path=index[0] if index else None
        )
        why = self._wrong_index(base)
        if why is not None:
            self._recover(segment, with_epochs=False, because=why)
        self._make_indexes(base, path)
        self.segments.append(segment)
        self.segments.sort(key=lambda loaded: loaded.base_offset)

    @property
    def _indexes(self) -> tuple[str, ...]:
        """The suffixes of the indexes that the version has, and looks for when it loads a log."""
        if self.rules.has_snapshots:
            return INDEXES
        return (".index", ".timeindex") if self.rules.has_time_index else (".index",)

    def _make_indexes(self, base: int, path: Path) -> None:
        for suffix in (".index", ".timeindex") if self.rules.has_time_index else (".index",):
            self.files.setdefault(f"{base:020d}{suffix}", (path, 0))

    def _wrong_index(self, base: int) -> str | None:
        """Why the segment's indexes are rebuilt when it is loaded; None where they are taken as they are."""
        if f"{base:020d}.index" not in self.files and self.rules.notices_missing_index:
            return "its offset index is missing"
        if self.rules.index_check is IndexCheck.REBUILD:
            for suffix in INDEXES[:2] if self.rules.has_time_index else INDEXES[:1]:
                name = f"{base:020d}{suffix}"
                if name in self.files and (why := self._corrupt_index(base, name)):
                    return why
        name = f"{base:020d}.txnindex"
        if name in self.files and self.rules.has_snapshots:
            return self._corrupt_transaction_index(base, name)
        return None

    def _corrupt_index(self, base: int, name: str, *, is_resized: bool = False) -> str | None:
        data = read_padded(self.files[name][0])
        if name.endswith(".timeindex"):
            times = read_time_index(data)
            is_back = bool(times) and times[-1].timestamp < times[0].timestamp
            is_wrong = is_back or (bool(times) and times[-1].relative_offset < 0)
            is_torn = len(data) % 12 != 0
        else:
            entries = read_offset_index(data)
            last = entries[-1].relative_offset if entries else 0
            is_wrong = bool(entries) and (last < 0 or (last == 0 and not self.rules.allows_index_of_base))
            is_torn = len(data) % 8 != 0 and not is_resized
        return f"{name} is corrupt" if is_wrong or is_torn else None

    def _corrupt_transaction_index(self, base: int, name: str) -> str | None:
        data = read_padded(self.files[name][0])
        entries = read_transaction_index(data)
        if any(entry.last_offset < base for entry in entries):
            return f"{name} is corrupt: an aborted transaction ends before the segment begins"
        if any(entry.version >> 8 > 0 for entry in entries):
            raise LoadFails(self.rules.kafka_exception, f"an entry of {name} has an unknown version", name)
        return None

    def _check_every_index(self) -> None:
        for segment in self.segments:
            name = segment.name.replace(".log", ".index")
            if (
                segment.index is None
                and name in self.files
                # The index of the active segment is resized to whole entries before.
                and (
                    why := self._corrupt_index(
                        segment.base_offset, name, is_resized=segment is self.segments[-1]
                    )
                )
            ):
                raise LoadFails(
                    "java.lang.IllegalArgumentException",
                    f"requirement failed: Corrupt index found, {why}",
                    name,
                )

    def _recover(
        self, segment: LoadedSegment, *, with_epochs: bool, because: str = "", state: str = ""
    ) -> Recovered:
        """Recover a segment and rebuild its indexes; steps say what is cut."""
        producers = None
        if self.rules.has_snapshots:
            producers = ProducerLoader(self.snapshots)
            log_start = self.task.log_start
            rebuilding = Rebuilding(self.segments, log_start, segment.base_offset, False)
            if self.rules.takes_snapshot_at_end:
                rebuild(producers, rebuilding, self._read_for_producers, takes_at_end=True)
            else:
                load_for_recovery(producers, rebuilding, self._read_for_producers)
            if self.rules.takes_snapshot_before_recovery:
                producers.take()
        before = segment.size
        self.start.bytes_read += before
        self.start.bytes_recovered += before
        why = f" because {because}" if because else ""
        self.say(
            StepKind.RECOVER,
            f"recovers segment {segment.base_offset}{why}: reads its {before} bytes and rebuilds its indexes",
            file=segment.name,
            from_offset=segment.base_offset,
            source=LOADER,
        )
        recovering = _Recovering(self, with_epochs and self.epochs is not None)
        recovered = segment.recover(recovering.feed)
        if recovering.has_aborted:
            self.files.setdefault(f"{segment.base_offset:020d}.txnindex{state}", (segment.path, 0))
        name = segment.name + state
        if name in self.files:
            self.files[name] = (segment.path, segment.size)
        if producers is not None:
            producers.map_end = max(recovered.next_offset, producers.map_end)
            producers.take()
        if recovered.truncated > 0:
            self._say_cut(segment, recovered, before)
        return recovered

    def _say_cut(self, segment: LoadedSegment, recovered: Recovered, before: int) -> None:
        records, end, damaged = _held(segment.path, recovered.valid_bytes, before)
        why = recovered.reason or "the last batch is cut short"
        self.say(
            StepKind.TRUNCATE,
            f"truncates segment {segment.base_offset} to offset {recovered.next_offset} at byte"
            f" {recovered.valid_bytes}: {why}",
            file=segment.name,
            from_offset=recovered.next_offset,
            to_offset=end,
            records_cut=records,
            bytes_cut=recovered.truncated,
            is_damage_cut=damaged,
            source=LOADER,
        )

    def assign_epochs(self, headers: Headers) -> None:
        """Note the epochs of batches as recovery does."""
        assert self.epochs is not None
        for epoch, offset in _epoch_starts(headers):
            latest = self.epochs[-1].epoch if self.epochs else None
            least = 0 if self.rules.recovers_epoch_0 else 1
            if epoch >= least and (latest is None or epoch > latest):
                self.epochs = assigned_epochs([*self.epochs, EpochEntry(epoch, offset)])

    def _recover_log(self) -> int:
        """Recover what may not have been flushed; the end of the log."""
        if not self.task.is_clean:
            self._recover_unflushed()
        end = self.segments[-1].read_next_offset() if self.segments else None
        if self.rules.end_below_start_deletes and end is not None and end < self.task.log_start:
            why = f"the log ends at {end}, below its log start {self.task.log_start} in log-start-offset-checkpoint"
            for segment in list(self.segments):
                self._delete_segment(segment, why, with_snapshot=True)
            if self.rules.end_below_start_clears_epochs:
                if self.epochs is not None:
                    self.epochs = []
                self.snapshots.files.clear()
            end = None
        if not self.segments:
            base = self.task.log_start if self.rules.end_below_start_deletes else 0
            name = f"{base:020d}.log"
            for suffix in (
                (".log", ".index", ".timeindex") if self.rules.has_time_index else (".log", ".index")
            ):
                self.files.setdefault(f"{base:020d}{suffix}", (self.task.folder / name, 0))
            self.segments.append(LoadedSegment(base, self.task.folder / name, name, 0, self.rules, index=[]))
            end = base
        assert end is not None
        return end

    def _end_of_deleted(self) -> int:
        return 0 if self.rules.deleted_log_ends_at_0 else self.segments[-1].read_next_offset()

    def _recover_unflushed(self) -> None:
        unflushed = between(self.segments, self.task.recovery_point, 1 << 63)
        for number, segment in enumerate(unflushed):
            try:
                truncated = self._recover(segment, with_epochs=True).truncated
            except InvalidOffset as error:
                truncated = self._empty(segment, error)
            if truncated > 0:
                for later in unflushed[number + 1 :]:
                    self._delete_segment(
                        later, f"it follows the truncated segment {segment.base_offset}", with_snapshot=True
                    )
                return

    def _empty(self, segment: LoadedSegment, error: InvalidOffset) -> int:
        """Kafka truncates a segment whose offsets go back to its own base offset: to nothing."""
        size = segment.size
        records, end, damaged = _held(segment.path, 0, size)
        segment.size, segment.index = 0, []
        self.files[segment.name] = (segment.path, 0)
        self.say(
            StepKind.TRUNCATE,
            f"empties segment {segment.base_offset}: its offsets go back ({error})",
            file=segment.name,
            from_offset=segment.base_offset,
            to_offset=end,
            records_cut=records,
            bytes_cut=size,
            is_damage_cut=damaged,
            source=LOADER,
        )
        return size

    def _delete_segment(self, segment: LoadedSegment, why: str, *, with_snapshot: bool = False) -> None:
        """Rename the segment's files to `.deleted`; they go a minute later. Without snapshot: a swap file replaces it."""
        records, end, damaged = _held(segment.path, 0, segment.size) if with_snapshot else _Held(None, None)
        self.segments.remove(segment)
        self.say(
            StepKind.DELETE,
            f"deletes segment {segment.base_offset}: {why}",
            file=segment.name,
            from_offset=segment.base_offset if with_snapshot else None,
            to_offset=end,
            records_cut=records,
            bytes_cut=segment.size,
            is_damage_cut=damaged,
            source=LOADER,
        )
        for suffix in (".log", *INDEXES):
            name = segment.name.replace(".log", suffix)
            if name in self.files:
                self.files[name + DELETED] = self.files.pop(name)
        if with_snapshot and self.rules.removes_stray_snapshots:
            self.snapshots.delete(segment.base_offset)

    # --- epochs, producers, topic id ------------------------------------------------------------------------

    def _cut_epochs_from_end(self, end: int) -> None:
        if self.epochs and self.epochs[-1].start_offset >= end:
            cut = [entry for entry in self.epochs if entry.start_offset >= end]
            self.epochs = self.epochs[: -len(cut)]
            self.say(
                StepKind.CUT_EPOCHS,
                f"drops {len(cut)} leader epochs that begin at or behind the log's end {end}",
                file=LEADER_EPOCHS,
                from_offset=end,
                source="S:LeaderEpochFileCache.java",
            )

    def _cut_epochs_from_start(self, start: int) -> None:
        assert self.epochs is not None
        below = [entry for entry in self.epochs if entry.start_offset <= start]
        if not below or (len(below) == 1 and below[0].start_offset == start):
            self.start.epochs = self.epochs
            return
        self.epochs = [EpochEntry(below[-1].epoch, start), *self.epochs[len(below) :]]
        self.start.epochs = self.epochs
        if len(below) > 1:
            self.say(
                StepKind.CUT_EPOCHS,
                f"drops {len(below) - 1} leader epochs that ended before the log's start {start}",
                file=LEADER_EPOCHS,
                to_offset=start,
                source="S:LeaderEpochFileCache.java",
            )

    def _read_for_producers(self, segment: LoadedSegment, start_offset: int) -> None:
        self.start.bytes_read += max(0, segment.size - segment.start_of(start_offset))
        segment.read_headers(start_offset)

    def _load_producers(self, log_start: int, log_end: int) -> None:
        before = set(self.snapshots.files)
        if self.rules.removes_stray_snapshots:
            kept = without_strays(self.snapshots.files, [s.base_offset for s in self.segments])
            for offset in before - kept:
                self.snapshots.delete(offset)
        producers = ProducerLoader(self.snapshots)
        task = Rebuilding(self.segments, log_start, log_end, self.task.is_clean)
        rebuild(producers, task, self._read_for_producers, takes_at_end=self.rules.takes_snapshot_at_end)
        for offset in sorted(before - set(self.snapshots.files)):
            name = f"{offset:020d}.snapshot"
            self.say(
                StepKind.DROP_SNAPSHOT,
                f"deletes {name}",
                file=name,
                from_offset=offset,
                source="S:ProducerStateManager.java",
            )

    def _read_topic_id(self) -> None:
        if PARTITION_METADATA not in self.files:
            return
        path = self.task.folder / PARTITION_METADATA
        if not self.files[PARTITION_METADATA][1]:
            raise LoadFails(
                "java.lang.NullPointerException", f"{PARTITION_METADATA} is empty", PARTITION_METADATA
            )
        words = f"Error while reading partition metadata file {path}"
        try:
            parse_partition_metadata(read_whole(path).decode("utf-8"))
        except (MalformedLine, UnicodeDecodeError) as error:
            if isinstance(error, MalformedLine) and error.what.endswith("is not a UUID"):
                raise LoadFails(
                    "java.lang.IllegalArgumentException", error.what, PARTITION_METADATA
                ) from error
            raise self._storage_error(words, PARTITION_METADATA) from error


class _Recovering(Struct, dict=True):
    """What follows the batches of a segment that is recovered: its epochs and its aborted transactions."""

    loader: _Loader
    with_epochs: bool
    has_aborted: bool = False
    last_aborted: int = -1
    replay: ProducerReplay = field(default_factory=ProducerReplay)

    def feed(self, headers: Headers, source: Source) -> None:
        """The next batches."""
        if self.with_epochs:
            self.loader.assign_epochs(headers)
        if not self.loader.rules.has_snapshots:
            return
        self.replay.feed(headers, lambda position, size: read_marker_at(source, position, size))
        for aborted in self.replay.take_aborted():
            if not aborted.has_beginning and not self.loader.segments:
                continue
            last = aborted.entry.last_offset
            if last <= self.last_aborted:
                words = (
                    f"The last offset of appended transactions must increase sequentially, but {last} is not greater"
                    f" than current last offset {self.last_aborted} of index"
                )
                raise LoadFails("java.lang.IllegalArgumentException", words, source.name)
            self.has_aborted, self.last_aborted = True, last


def _epoch_starts(headers: Headers) -> Iterator[tuple[int, int]]:
    """Epoch and base offset of each batch of magic 2 whose epoch differs from the one before."""
    before = None
    for epoch, offset, magic in zip(
        headers.partition_leader_epoch.tolist(),
        headers.base_offset.tolist(),
        headers.magic.tolist(),
        strict=True,
    ):
        if magic >= 2 and epoch != before:
            before = epoch
            yield epoch, offset


class _Held(NamedTuple):
    """How many records lie in bytes of a log, and the offset behind the last; None where they cannot be read."""

    records: int | None
    end: int | None
    damaged: bool = False  # more than zeros, or the start of a batch that was being written


def _held(path: Path, start: int, end: int) -> _Held:
    """What lies in bytes [start, end) of a log; damage is passed over."""
    from kctl.scan.runs import BatchRuns

    records, last, damaged = 0, None, False
    try:
        with opened_source(path) as source:
            for run in BatchRuns(source, start, min(end, source.size), crc=True):
                headers = run.headers[run.headers.crc_valid]
                damaged |= len(headers) < len(run.headers)
                damaged |= run.damage is not None and run.damage.reason not in UNFINISHED
                if len(headers):
                    records += int(headers.records_count.clip(1).sum())
                    last = max(last or 0, int(headers.last_offset.max()) + 1)
    except OSError:
        return _Held(None, None)
    return _Held(records, last, damaged)
