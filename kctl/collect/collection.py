"""A copy of sources into one folder: planned, read in an order that fits running brokers, written with a manifest.

Of each log directory come the checkpoints first, then each partition: what is derived from the log, the segments oldest
first and the active one last, the epochs once more; at the end the checkpoints once more.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

from formats.log.hashed_contents import ContentHash
from formats.log_dir.checkpoints import MalformedCheckpoint, parse_leader_epochs
from formats.log_dir.file_names import LEADER_EPOCHS, OFFSET_CHECKPOINTS
from formats.values import Struct, field
from formats.words import counted
from kctl.collect.headers_only import (
    AS,
    HashedLog,
    Kept,
    NotKnown,
    Positions,
    RedactedExport,
    RedactedLog,
    Rewritten,
    digests_of,
    is_hashed,
    log_of_index,
    nothing,
    source_of,
    without_contents,
)
from kctl.collect.placement import Choice, Plan, PlannedFiles, PlannedLogDir
from kctl.collect.reading_order import in_reading_order
from kctl.collect.settings_file import without_secrets
from kctl.collect.transport import (
    FILE,
    FOLDER,
    Content,
    Entry,
    Gone,
    ReadFailed,
    Source,
    SourceLost,
    Unsettled,
)
from kctl.collect.writing import Target, Throttle, Written
from kctl.errors import reason_of
from kctl.evidence.manifest import (
    DroppedLine,
    FileLine,
    LeftOutLine,
    ManifestWriter,
    PlannedLine,
    SourceLine,
    WholeLine,
    lines_of,
)
from kctl.evidence.model import encodable
from kctl.evidence.names import SEGMENT_FILE, ZNODES, trouble_with_name
from kctl.files import read_whole
from kctl.model import REORDERING, SILENT, Progress

NOT_COPIED = frozenset({".lock"})  # empty, and says nothing
LARGEST_BESIDE = 64 << 20
"""Bytes of a file directly in a log directory: the checkpoints of a million partitions have less."""
LARGEST_SETTINGS = 1 << 20
ATTEMPTS = 12
"""Listings of a partition folder whose segments are replaced while they are opened."""
BETWEEN_ATTEMPTS = 0.02  # seconds: renaming the files of some segments takes a broker less
AFTER = ".after"
MOST_NAMED = 3
"""Names that could not be read and are told one by one; the manifest has all."""


Treatment = Callable[[str, Content], Content | str]
"""The form in which a file of a place is written; words where it is left out. Raises ReadFailed."""


class Earlier(Struct):
    """What an earlier run has copied: of each path its source's size and time, as one number."""

    files: dict[str, int] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, manifest: Path) -> Earlier:
        """What the manifest of an earlier run says."""
        earlier = cls()
        for line, _ in lines_of(manifest, may_be_torn=True):
            if isinstance(line, FileLine):
                size = line.size if line.source_size is None else line.source_size
                earlier.files[line.path] = hash((size, line.mtime_ns, line.size))
            elif isinstance(line, DroppedLine):
                earlier.files.pop(line.path, None)
            elif isinstance(line, WholeLine):
                earlier.whole.add(line.path)
        return earlier

    def has(self, place: str, entry: Entry, target: Target) -> bool:
        """Whether a file was copied as it is now."""
        known = self.files.get(place)
        if known is None:
            return False
        size = target.size_at(place)
        return size is not None and known == hash((entry.size, entry.mtime_ns, size))


class Collected(Struct):
    """How the copy of one source went."""

    source: str
    broker_ids: list[int]
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    clock_offset_ms: int | None = None
    incomplete: str | None = None
    left_out: int = 0
    unread: list[str] = field(default_factory=list)
    """The first names that could not be read, with the reason."""
    unread_count: int = 0
    is_lost: bool = False
    """Whether the source broke off."""


class Collection(Struct):
    """One run: the target, its manifest, and what limits the run."""

    target: Target
    manifest: ManifestWriter
    throttle: Throttle = field(default_factory=Throttle)
    progress: Progress = SILENT
    earlier: Earlier = field(default_factory=Earlier)
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    content_hash: ContentHash | None = None
    """What replaces contents of records; None where they are copied as they are."""

    def run(self, source: Source, plan: Plan, choice: Choice) -> Collected:
        """Copy one source. One that breaks off leaves what was copied until then; the manifest says so."""
        begun, begun_ms = time.monotonic(), self.now_ms()
        done = Collected(source.shown, plan.broker_ids, clock_offset_ms=source.clock_offset_ms)
        for log_dir in plan.log_dirs:
            for name in log_dir.partitions:
                if trouble_with_name(name) is None:
                    self.manifest.add(PlannedLine(f"{log_dir.place}/{name}"))
        self.manifest.flush()
        copying = _Copying(self, source, choice, done)
        for words in source.left_out:
            self.manifest.add(LeftOutLine("", source.shown, "a name, or several", words))
            done.left_out += 1
        for words in source.unread:
            copying.leave_unread("", source.shown, "a name, or several", words)
        try:
            for log_dir in plan.log_dirs:
                copying.log_dir(log_dir)
            for part in plan.log_files:
                copying.logs(part)
            for part in plan.properties:
                copying.settings(part)
            for part in (*plan.exports, *plan.trees):
                copying.others(part)
        except SourceLost as error:
            done.incomplete, done.is_lost = error.message, True
        return self.ended(done, begun, begun_ms, choice, source.command)

    def lacks(self, done: Collected, path: str, source: str, what: str, why: str) -> None:
        """Note what is there, and may not or cannot be read: the copy of the source is incomplete."""
        self.manifest.add(LeftOutLine(path, source, what, why, unread=True))
        done.left_out += 1
        done.unread_count += 1
        if len(done.unread) < MOST_NAMED:
            done.unread.append(f"{source}: {why}")

    def leaves_out(self, done: Collected, path: str, source: str, what: str, why: str) -> None:
        """Note what is not copied, though the copy of the source is complete."""
        self.manifest.add(LeftOutLine(path, source, what, why))
        done.left_out += 1

    def ended(
        self, done: Collected, begun: float, begun_ms: int, choice: Choice, command: str | None
    ) -> Collected:
        """Note how the copy of a source ended; `begun` is of the monotonic clock."""
        if done.unread_count and done.incomplete is None:
            done.incomplete = (
                f"{counted(done.unread_count, 'name')} could not be read, such as {done.unread[0]}"
            )
        done.seconds = time.monotonic() - begun
        self.manifest.add(
            SourceLine(
                done.source, done.broker_ids, begun_ms, self.now_ms(), done.files, done.bytes,
                done.clock_offset_ms, done.incomplete, command,
                sorted(choice.topics) or None, sorted(choice.partitions) or None, choice.since_ms,
            )
        )  # fmt: skip
        self.manifest.flush()
        return done

    def unreached(self, shown: str, why: str, choice: Choice) -> Collected:
        """Note a source of which nothing could be read."""
        now = self.now_ms()
        line = SourceLine(shown, [], now, now, 0, 0, incomplete=why)
        line.topics, line.partitions = sorted(choice.topics) or None, sorted(choice.partitions) or None
        self.manifest.add(line)
        return Collected(shown, [], incomplete=why)


class _Copying(Struct):
    """The copy of one source under way."""

    run: Collection
    source: Source
    choice: Choice
    done: Collected
    _positions: dict[str, Positions] = field(default_factory=dict)
    """Of logs of the partition under way, by their places."""

    # --- log directories ---

    def log_dir(self, planned: PlannedLogDir) -> None:
        """Checkpoints, partitions, checkpoints once more."""
        first: set[str] = set()
        entries = self._listing(planned.folder, planned.place)
        beside = [entry for entry in entries if entry.name in planned.files and entry.kind == FILE]
        wanted = [e for e in beside if e.name not in NOT_COPIED and e.size <= LARGEST_BESIDE]
        for entry in beside:
            if entry.size > LARGEST_BESIDE:
                self._leave_out(planned.folder, planned.place, entry.name, FILE, "no file of a log directory")
        for entry, _ in self._files(planned.folder, planned.place, in_reading_order(wanted)):
            first.add(entry.name)
        partitions = set(planned.partitions)
        for entry in sorted(entries):
            if entry.name in partitions and entry.kind == FOLDER:
                self._partition(planned, entry.name)
                partitions.discard(entry.name)
            elif entry.kind == FOLDER and planned.files and not self._is_known(planned, entry.name):
                self._empty_folder(planned, entry.name)
            elif entry.kind not in (FILE, FOLDER) and planned.files:
                self._leave_out(planned.folder, planned.place, entry.name, entry.kind, f"it is {entry.kind}")
        for name in sorted(partitions):
            if trouble_with_name(name) is None:  # deleted since it was planned
                self._leave_out(planned.folder, planned.place, name, FOLDER, "deleted before it was read")
                self.run.manifest.add(WholeLine(f"{planned.place}/{name}"))
        self._once_more(planned, first)

    def _is_known(self, planned: PlannedLogDir, name: str) -> bool:
        from formats.log_dir.file_names import parse_partition_folder

        return parse_partition_folder(name) is not None  # not chosen

    def _empty_folder(self, planned: PlannedLogDir, name: str) -> None:
        """A folder that is no partition's: Kafka refuses to start over it, so that the copy has one of its name."""
        if trouble := trouble_with_name(name):
            self._leave_out(planned.folder, planned.place, name, FOLDER, trouble)
            return
        self.run.target.folder_at(f"{planned.place}/{name}")
        self._leave_out(planned.folder, planned.place, name, FOLDER, "no partition's: its files are left out")

    def _partition(self, planned: PlannedLogDir, name: str) -> None:
        place, folder = f"{planned.place}/{name}", planned.folder / name
        if trouble := trouble_with_name(name):
            self._leave_out(planned.folder, planned.place, name, FOLDER, trouble)
            return
        if place in self.run.earlier.whole:
            return
        self._positions.clear()
        copied: dict[str, Entry] = {}
        unread_before = self.done.unread_count
        for attempt in range(ATTEMPTS):
            entries = self._listing(folder, place)
            if self.done.unread_count > unread_before:
                break
            listed = {entry.name for entry in entries}
            for gone in (copied.keys() | self._of_earlier(place, attempt)) - listed:  # of a listing before
                self.run.target.remove(f"{place}/{gone}")
                self.run.manifest.add(DroppedLine(f"{place}/{gone}"))
                copied.pop(gone, None)
            wanted = [e for e in in_reading_order(entries) if not _is_same(copied.get(e.name), e)]
            vanished: list[Gone] = []
            is_last = attempt == ATTEMPTS - 1
            try:
                for entry, _ in self._files(folder, place, wanted, vanished, settled=not is_last):
                    copied[entry.name] = entry
            except Unsettled:
                time.sleep(BETWEEN_ATTEMPTS)
                continue
            if is_last or not any(
                SEGMENT_FILE.fullmatch(lost.entry.name) and not lost.is_there for lost in vanished
            ):
                for lost in vanished:
                    self._gone(folder, place, lost)
                for entry in entries:
                    if entry.kind != FILE:
                        self._leave_out(folder, place, entry.name, entry.kind, f"it is {entry.kind}")
                break
        self._epochs_once_more(folder, place, copied)
        if not copied:
            self.run.target.folder_at(place)
        if self.done.unread_count == unread_before:
            self.run.manifest.add(WholeLine(place))
        self.run.manifest.flush()

    def _of_earlier(self, place: str, attempt: int) -> set[str]:
        """Names in a partition folder that an earlier run left unfinished."""
        if attempt or not self.run.earlier.files:
            return set()
        prefix = f"{place}/"
        return {path.removeprefix(prefix) for path in self.run.earlier.files if path.startswith(prefix)}

    def _epochs_once_more(self, folder: Path, place: str, copied: Container[str]) -> None:
        """Read the epochs again, behind the batches that may have begun one."""
        if LEADER_EPOCHS not in copied:
            return
        again = [e for e in self._listing(folder, place) if e.name == LEADER_EPOCHS and e.kind == FILE]
        for content, data in self._read_again(folder, place, again):
            if _has_later_epochs(self.run.target.folder / place / LEADER_EPOCHS, data):
                note = "read once more behind the log, which has a later epoch"
                self._put(folder, f"{place}/{LEADER_EPOCHS}", content, data, note)

    def _once_more(self, planned: PlannedLogDir, first: set[str]) -> None:
        """The checkpoints again: where they went on meanwhile, a second file says up to where."""
        again = [
            entry
            for entry in self._listing(planned.folder, planned.place)
            if entry.name in OFFSET_CHECKPOINTS and entry.name in first and entry.kind == FILE
        ]
        above, _, name = planned.place.rpartition("/")
        for content, data in self._read_again(planned.folder, planned.place, again):
            where = f"{above}/checkpoints-after/{name}/{content.entry.name}{AFTER}"
            self._put(planned.folder, where, content, data, "as it was behind the logs")

    def _read_again(
        self, folder: Path, place: str, entries: Sequence[Entry]
    ) -> Iterator[tuple[Content, bytes]]:
        """Small files that are not as they were copied, with their bytes."""
        for content in self.source.contents(folder, entries):
            if isinstance(content, Gone):
                continue
            try:
                data = _whole(content, LARGEST_BESIDE)
            except ReadFailed:  # what was read first stays
                continue
            try:
                before = read_whole(self.run.target.folder / place / content.entry.name, LARGEST_BESIDE)
            except OSError:
                before = None
            if data != before:
                yield content, data

    def _put(self, folder: Path, place: str, content: Content, data: bytes, note: str | None) -> None:
        read_at = self.run.now_ms()
        written = self.run.target.write(place, data, content)
        self._note_file(folder, place, content, written, note, read_at)

    # --- other files ---

    def logs(self, planned: PlannedFiles) -> None:
        """Broker logs, those that were written to since the time asked."""
        since = self.choice.since_ms
        wanted = []
        for entry in sorted(self._listing(planned.folder, planned.place)):
            if entry.name in planned.names and entry.kind == FILE:
                if since is not None and entry.mtime_ns // 1_000_000 < since:
                    self._leave_out(
                        planned.folder, planned.place, entry.name, FILE, "not written to since --since"
                    )
                else:
                    wanted.append(entry)
        for _ in self._files(planned.folder, planned.place, wanted, treated=self._log_without_secrets):
            pass

    def settings(self, planned: PlannedFiles) -> None:
        """A broker's settings, without their secrets."""
        wanted = [e for e in self._listing(planned.folder, planned.place) if e.name in planned.names]
        for content in self.source.contents(planned.folder, wanted):
            if isinstance(content, Gone):
                self._gone(planned.folder, planned.place.rpartition("/")[0], content)
                continue
            read_at = self.run.now_ms()
            try:
                data = _whole(content, LARGEST_SETTINGS)
            except ReadFailed as error:
                failed = Gone(content.entry, str(error), is_there=True)
                self._gone(planned.folder, planned.place.rpartition("/")[0], failed)
                continue
            text = without_secrets(data.decode("utf-8", "surrogateescape"))
            shown = text.encode("utf-8", "surrogateescape")
            if self.run.earlier.has(planned.place, content.entry, self.run.target):
                continue
            written = self.run.target.write(planned.place, shown, content)
            note = "secrets redacted" if shown != data else None
            # By a digest of what was read short passwords could be tried out: none is given to others.
            digest = "" if self.run.content_hash is not None else hashlib.sha256(data).hexdigest()
            original = Written(len(data), digest) if shown != data else None
            self._note_file(planned.folder, planned.place, content, written, note, read_at, original)

    def others(self, planned: PlannedFiles) -> None:
        """Files that are copied as they are, in one folder or in a tree of them."""
        if planned.is_tree and self.run.content_hash is not None:
            above, _, name = planned.place.rpartition("/")
            self._leave_out(
                planned.folder.parent, above, name, FOLDER, "objects of a tier hold contents (--headers)"
            )
            return
        if planned.is_tree:
            self._tree(planned.folder, planned.place)
            return
        above, _, name = planned.place.rpartition("/")
        wanted = [
            e for e in self._listing(planned.folder, above) if e.name == planned.names[0] and e.kind == FILE
        ]
        treated = self._export_without_secrets if ZNODES.fullmatch(planned.names[0]) else self._treated
        for _ in self._files(
            planned.folder, above, wanted, renamed={planned.names[0]: name}, treated=treated
        ):
            pass

    def _tree(self, folder: Path, place: str) -> None:
        entries = sorted(self._listing(folder, place))
        files = [entry for entry in entries if entry.kind == FILE]
        self.run.target.folder_at(place)
        for _ in self._files(folder, place, files):
            pass
        for entry in entries:
            if entry.kind == FOLDER and trouble_with_name(entry.name) is None:
                self._tree(folder / entry.name, f"{place}/{entry.name}")
            elif entry.kind != FILE:
                self._leave_out(folder, place, entry.name, entry.kind, f"it is {entry.kind}")

    # --- one file ---

    def _files(
        self,
        folder: Path,
        place: str,
        entries: Sequence[Entry],
        vanished: list[Gone] | None = None,
        renamed: dict[str, str] | None = None,
        settled: bool = False,
        treated: Treatment | None = None,
    ) -> Iterator[tuple[Entry, Written]]:
        """Copy files of a folder in the order given; `vanished` gets those that are gone.

        `treated` gives the form in which a file is written, where contents are replaced.
        """
        names = renamed or {}
        treated = treated or self._treated
        held: dict[str, Kept] = {}
        wanted = []
        for entry in entries:
            target_name = names.get(entry.name, entry.name)
            where = f"{place}/{target_name}" if place else target_name
            if trouble := trouble_with_name(entry.name):
                self._leave_out(folder, place, entry.name, entry.kind, trouble)
            elif self.run.content_hash is None and self.run.earlier.has(where, entry, self.run.target):
                self.run.progress.advance(entry.size)
                yield entry, Written(entry.size, "")
            else:
                wanted.append(entry)
        for content in self.source.contents(folder, wanted, settled=settled):
            if isinstance(content, Gone):
                if vanished is None:
                    self._gone(folder, place, content)
                else:
                    vanished.append(content)
                continue
            name = names.get(content.entry.name, content.entry.name)
            where = f"{place}/{name}" if place else name
            try:
                shown = content if self.run.content_hash is None else treated(where, content)
            except ReadFailed as error:
                self._gone(folder, place, Gone(content.entry, str(error), is_there=True))
                continue
            if isinstance(shown, str):
                self._leave_out(folder, place, content.entry.name, FILE, shown)
            elif isinstance(shown, Kept):
                held[log_of_index(name)] = shown
            elif (written := self._write(folder, place, where, shown)) is not None:
                yield content.entry, written
                if isinstance(shown, HashedLog):
                    self._positions[where] = shown.positions
        for log, index in held.items():
            where = f"{place}/{index.entry.name}"
            if (positions := self._positions.get(f"{place}/{log}")) is not None:
                index.fit(positions)
            if (written := self._write(folder, place, where, index)) is not None:
                yield index.entry, written

    def _write(self, folder: Path, place: str, where: str, content: Content) -> Written | None:
        """Write a file and its line; None where it could not be read."""
        read_at = self.run.now_ms()
        took = nothing if isinstance(content, (Rewritten, Kept)) else self._took  # they told it as they read
        try:
            written = self.run.target.copy(where, content, took)
        except SourceLost:
            self.run.target.remove(where)
            raise
        except NotKnown as error:
            self.run.target.remove(where)
            self._leave_out(folder, where.rpartition("/")[0], content.entry.name, FILE, str(error))
            return None
        except ReadFailed as error:
            self.run.target.remove(where)
            self._gone(folder, place, Gone(content.entry, str(error), is_there=True))
            return None
        self._note_file(folder, where, content, written, content.what_happened(), read_at, source_of(content))
        return written

    def _treated(self, where: str, content: Content) -> Content | str:
        assert self.run.content_hash is not None
        return without_contents(where, content, self._took, self.run.content_hash)

    def _log_without_secrets(self, where: str, content: Content) -> Content:
        return RedactedLog(content, self._took)

    def _export_without_secrets(self, where: str, content: Content) -> Content:
        return RedactedExport(content, self._took)

    def _took(self, count: int) -> None:
        self.run.progress.advance(count)
        self.run.throttle.took(count)

    def _note_file(
        self,
        folder: Path,
        place: str,
        content: Content,
        written: Written,
        note: str | None,
        read_at: int,
        original: Written | None = None,
    ) -> None:
        """Add the line of a file; `original` is what was read where something else was written."""
        entry = content.entry
        other = original if original is not None and original.sha256 != written.sha256 else None
        plain, keyed = digests_of(other, self.run.content_hash)
        self.run.manifest.add(
            FileLine(
                place, encodable(self.source.shown_path(folder / entry.name)), written.size, written.sha256,
                entry.mode, entry.uid, entry.gid, entry.mtime_ns // 1_000_000, entry.mtime_ns, read_at, note,
                other and other.size, plain, AS if other and is_hashed(content) else None, keyed,
            )
        )  # fmt: skip
        self.done.files += 1
        self.done.bytes += written.size

    def _listing(self, folder: Path, place: str) -> list[Entry]:
        try:
            return self.source.listing(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):  # something else took its place meanwhile
                self._leave_out(folder.parent, place, folder.name, FOLDER, reason_of(error))
                return []
            shown = _printable(self.source.shown_path(folder))
            self.leave_unread(_printable(place), shown, FOLDER, reason_of(error))
            return []

    def _gone(self, folder: Path, place: str, gone: Gone) -> None:
        """Note a file that could not be opened or read."""
        if not gone.is_there:
            self._leave_out(folder, place, gone.entry.name, FILE, gone.reason)
            return
        shown = _printable(self.source.shown_path(folder / gone.entry.name))
        path = f"{place}/{gone.entry.name}" if place else gone.entry.name
        self.leave_unread(_printable(path), shown, FILE, gone.reason)

    def leave_unread(self, path: str, shown: str, what: str, why: str) -> None:
        """Note what is there, and may not or cannot be read: the copy of the source is incomplete."""
        self.run.lacks(self.done, path, shown, what, why)

    def _leave_out(self, folder: Path, place: str, name: str, what: str, why: str) -> None:
        shown = _printable(self.source.shown_path(folder / name))
        path = _printable(f"{place}/{name}" if place else name)
        self.run.leaves_out(self.done, path, shown, what, why)


def _is_same(copied: Entry | None, now: Entry) -> bool:
    """Whether a file was copied as it is now."""
    return copied is not None and (copied.size, copied.mtime_ns) == (now.size, now.mtime_ns)


def _printable(text: str) -> str:
    r"""A path that nobody vouches for as text of one line: \xNN for what commands a terminal."""
    return re.sub(
        rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{REORDERING}]",
        lambda match: f"\\x{ord(match[0]):02x}",
        encodable(text),
    )


def _whole(content: Content, limit: int) -> bytes:
    """All bytes of a small file, up to a limit."""
    data = bytearray()
    for piece in content.pieces():
        data += bytes(min(piece, limit + 1 - len(data))) if isinstance(piece, int) else piece
        if len(data) > limit:
            break
    return bytes(data[:limit])


def _has_later_epochs(path: Path, data: bytes) -> bool:
    """Whether the text of a leader-epoch checkpoint has a later epoch than the file that was copied first."""
    try:
        before = parse_leader_epochs(path.read_bytes().decode("utf-8", "replace"))
        after = parse_leader_epochs(data.decode("utf-8", "replace"))
    except (OSError, MalformedCheckpoint, ValueError):
        return False
    return bool(after) and (not before or after[-1].epoch > before[-1].epoch)


def amount(source: Source, plan: Plan) -> int:
    """The bytes that are to be copied, as far as a first look tells; nothing of it is kept."""
    total = 0
    for log_dir in plan.log_dirs:
        total += source.size_of(log_dir.folder, log_dir.files)
        total += sum(source.size_of(log_dir.folder / name, None) for name in log_dir.partitions)
    for part in (*plan.log_files, *plan.properties, *plan.exports):
        total += source.size_of(part.folder, part.names)
    for tree in plan.trees:
        total += sum(source.size_of(Path(folder), None) for folder, _, _ in os.walk(tree.folder))
    return total
