"""Folders of another machine as a source of a copy: listed by find and stat, read by tar.

Names and sizes come first, into empty files of this machine that stand for those there (`shadow`), with the bytes of the
few files that say whose they are: what evidence is in them is then found as in any folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from formats.log_dir.file_names import META_PROPERTIES, parse_partition_folder
from formats.words import counted
from kctl.collect.shell import Output, Shell, quoted
from kctl.collect.tar_stream import BadTar, Member, TarStream
from kctl.collect.transport import FILE, FOLDER, Content, Entry, Gone, SourceLost, Unsettled
from kctl.errors import KctlError
from kctl.evidence.names import (
    LOG_DIR_FILES,
    MAYBE_BROKER_LOG,
    MAYBE_EXPORT,
    SEGMENT_FILE,
    broker_log_kind,
    trouble_with_name,
)
from kctl.files import what_it_is
from kctl.stores.mirror import place_file

STAT = "-exec stat -c '%f %s %Y %u %g %n' {} +"
UNNAMEABLE = "-name '*[[:cntrl:]]*' -prune -o"
HEAD, BLOCK = 1 << 18, 1 << 16
MOST_HEADS = 400
"""Logs whose beginnings are looked at to find out whose they are."""
AT_ONCE = 400  # files of one tar
LARGEST_SEGMENT = (1 << 31) + (64 << 20)
MOST_GROWTH = 64 << 20
LARGEST_LISTING = 4 << 30
MISSING = "o such file"  # of a complaint: deleted between two looks


class RemoteSource:
    """A folder, or a file, of another machine. `root` is its shadow."""

    def __init__(self, shell: Shell, path: str, root: Path) -> None:
        self.root = root
        self.shown = f"{shell.shown}{path}"
        self.clock_offset_ms: int | None = None
        self.command: str | None = " ".join(shell.command)
        self._shell, self._path = shell, path.rstrip("/") or "/"
        self._tar: str | None = None
        self._sizes: dict[str, int] = {}
        self.left_out: list[str] = []
        self.unread: list[str] = []

    def shown_path(self, path: Path) -> str:
        """The path there, with the machine before it."""
        return f"{self._shell.shown}{self._there(path)}"

    def _there(self, path: Path) -> str:
        below = os.path.relpath(path, self.root)
        if below == ".":
            return self._path
        return os.path.normpath(f"{self._path}/{below}")

    def size_of(self, folder: Path, names: Collection[str] | None) -> int:
        """The bytes of files of a folder, by the first listing."""
        if names is None:
            return self._sizes.get(self._there(folder), 0)
        return sum((folder / name).stat().st_size for name in names if (folder / name).is_file())

    # --- listing ---

    def listing(self, folder: Path) -> list[Entry]:
        """The entries of a folder as they are now. Raises SourceLost, PermissionError."""
        there = quoted(self._there(folder))
        script = f"test -d {there} || {{ test -e / && exit 0; }}; cd {there} || exit 3; exec find . {UNNAMEABLE} ! -name . -prune {STAT}"
        entries = []
        with self._shell.output(script) as output:
            for line in _lines(output):
                entry = _entry(line)
                if entry is not None and entry.name.startswith("./") and "/" not in entry.name[2:]:
                    entries.append(entry._replace(name=entry.name[2:]))
            complaint = output.end(allowed=(0, 1, 3))  # a file that was deleted meanwhile
        if complaint and not entries and MISSING not in complaint:
            raise PermissionError(errno.EACCES, complaint)
        return entries

    def shadow(self) -> None:
        """List everything below and place empty files for it. Raises SourceLost, KctlError where nothing is there."""
        there = quoted(self._path)
        script = f"exec find {there} {UNNAMEABLE} {STAT}"
        with tempfile.TemporaryFile() as listed:
            self._spool(script, listed)
            log_dirs = {
                os.path.dirname(entry.name)
                for entry in _entries_of(listed)
                if os.path.basename(entry.name) in LOG_DIR_FILES
            }
            self._place(_entries_of(listed), log_dirs)
        unnamed = len(
            self._shell.answer(f"find {there} -name '*[[:cntrl:]]*' -prune -exec printf x \\;; exit 0")
        )
        if unnamed:
            self.left_out.append(f"{counted(unnamed, 'name')} with control characters")
        if not self.root.exists():
            raise KctlError(
                f"{self.shown}: nothing is there, or it may not be read", "check the path and the user"
            )
        self._fill(log_dirs)

    def _spool(self, script: str, listed: BinaryIO) -> None:
        with self._shell.output(script) as output:
            size = 0
            while piece := output.read(1 << 16):
                listed.write(piece)
                size += len(piece)
                if size > LARGEST_LISTING:
                    raise SourceLost(f"{self.shown}: its listing has more than {LARGEST_LISTING >> 30} GiB")
            complaint = output.end(allowed=(0, 1))
            if not size:
                raise KctlError(
                    f"{self.shown}: {complaint or 'nothing is there'}", "check the path and the user"
                )
            if complaint:
                (self.left_out if MISSING in complaint else self.unread).append(complaint)

    def _place(self, entries: Iterable[Entry], log_dirs: set[str]) -> None:
        """Folders and files of the shadow; of partitions of a log directory the folders alone."""
        for entry in entries:
            if entry.name != self._path and not entry.name.startswith(self._path.rstrip("/") + "/"):
                continue
            names = entry.name[len(self._path) :].strip("/").split("/") if entry.name != self._path else []
            if any(trouble_with_name(name) for name in names):
                continue
            path = self.root.joinpath(*names)
            above = entry.name.rpartition("/")[0]
            self._sizes[above] = self._sizes.get(above, 0) + (entry.size if entry.kind == FILE else 0)
            grand, _, name = above.rpartition("/")
            is_in_partition = grand in log_dirs and parse_partition_folder(name) is not None
            with suppress(OSError):
                if entry.kind == FOLDER:
                    path.mkdir(parents=True, exist_ok=True, mode=0o700)
                elif entry.kind == FILE and not is_in_partition:
                    place_file(path, entry.size, entry.mtime_ns)

    def _fill(self, log_dirs: set[str]) -> None:
        """The bytes of the files that say whose they are, and the beginnings of logs."""
        heads: list[tuple[Path, int]] = []
        for folder, _, names in (
            os.walk(self.root) if self.root.is_dir() else [(str(self.root.parent), [], [self.root.name])]
        ):
            chosen = [name for name in names if name == META_PROPERTIES or name.endswith(".properties")]
            small = [n for n in chosen if (Path(folder) / n).stat().st_size <= 1 << 20]
            if small:
                self._fill_whole(Path(folder), small)
            if self._there(Path(folder)) not in log_dirs:
                heads += [
                    (Path(folder) / name, (Path(folder) / name).stat().st_size)
                    for name in names
                    if _may_be_log(name)
                ]
        # Names of logs first, then what may be one.
        heads.sort(key=lambda head: (broker_log_kind(head[0].name) is None, str(head[0])))
        for path, size in heads[:MOST_HEADS]:
            self._fill_head(path, size)

    def _fill_whole(self, folder: Path, names: Sequence[str]) -> None:
        entries = [Entry(name, FILE, (folder / name).stat().st_size) for name in names]
        for content in self.contents(folder, entries):
            if not isinstance(content, Gone):
                data = b"".join(map(bytes, content.pieces()))
                _overwrite(folder / content.entry.name, data)

    def _fill_head(self, path: Path, size: int) -> None:
        count = -(-min(size, HEAD) // BLOCK)
        if not count:
            return
        script = f"exec dd if={quoted(self._there(path))} bs={BLOCK} count={count}"
        with suppress(SourceLost):
            data = self._shell.answer(script, HEAD)
            _overwrite(path, data)

    # --- reading ---

    def contents(
        self, folder: Path, entries: Sequence[Entry], *, settled: bool = False
    ) -> Iterator[Content | Gone]:
        """The files in the order given, through one tar for many of them. Raises SourceLost, Unsettled."""
        if settled and any(entry.name.endswith(".swap") for entry in entries):
            raise Unsettled
        for start in range(0, len(entries), AT_ONCE):
            part = entries[start : start + AT_ONCE]
            read: set[str] = set()
            for content in self._read(folder, part):
                read.add(content.entry.name)
                yield content
            gone = [entry for entry in part if entry.name not in read]
            # The broker may have marked them for deletion meanwhile.
            marked = [
                entry._replace(name=f"{entry.name}.deleted")
                for entry in gone
                if SEGMENT_FILE.fullmatch(entry.name)
            ]
            names = {entry.name + ".deleted": entry for entry in gone}
            found: set[str] = set()
            if marked:
                for content in self._read(folder, marked):
                    original = names[content.entry.name]
                    found.add(original.name)
                    content.entry = content.entry._replace(name=original.name)
                    content.is_renamed = True
                    yield content
            yield from self._unread(folder, [entry for entry in gone if entry.name not in found])

    def _unread(self, folder: Path, entries: Sequence[Entry]) -> Iterator[Gone]:
        """Files that tar did not give: those that are still there could not be read."""
        still: set[str] = set()
        if entries:
            with suppress(PermissionError):
                still = {entry.name for entry in self.listing(folder) if entry.kind == FILE}
        for entry in entries:
            if entry.name in still:
                yield Gone(entry, "tar could not read it there", is_there=True)
            else:
                yield Gone(entry, "deleted before it was read")

    def _read(self, folder: Path, entries: Sequence[Entry]) -> Iterator[RemoteContent]:
        if not entries:
            return
        wanted = {entry.name: entry for entry in entries}
        words = " ".join(quoted(f"./{entry.name}") for entry in entries)
        script = (
            "i=; command -v ionice >/dev/null 2>&1 && i='ionice -c 2 -n 7'; "
            f"cd {quoted(self._there(folder))} && exec $i {self._tar_command()} {words}"
        )
        with self._shell.output(script) as output:
            tar = TarStream(output.read)
            try:
                for member in tar.members():
                    name = member.name.removeprefix("./")
                    entry = wanted.pop(name, None)
                    if entry is None or not member.is_regular:
                        continue  # not asked for, or no regular file any more
                    yield RemoteContent(entry, member, tar)
            except BadTar as error:
                complaint = output.complaint()
                if not _is_only_missing(error, complaint, wanted, entries):
                    raise SourceLost(f"{self.shown}: {complaint or error.message}") from error
            else:
                output.end(allowed=(0, 1, 2))  # a file changed, or was deleted before

    def _tar_command(self) -> str:
        """`tar -c`, with what GNU's can beside that: holes, and access times that stay."""
        if self._tar is None:
            try:
                version = self._shell.answer("tar --version 2>&1", 1 << 16)
            except SourceLost:
                version = b""
            is_gnu = b"GNU tar" in version
            self._tar = "tar -cf - --format=gnu -S --atime-preserve=system" if is_gnu else "tar -cf -"
        return self._tar


class RemoteContent:
    """A member of a tar that was asked for."""

    def __init__(self, entry: Entry, member: Member, tar: TarStream) -> None:
        self.entry = entry
        self.is_renamed = False
        self._member, self._tar = member, tar
        bound = max(entry.size + MOST_GROWTH, LARGEST_SEGMENT if entry.name.endswith(".log") else 0)
        # No more than it had when it was listed where it has become impossibly large.
        self._most = member.size if member.size <= bound else entry.size
        self._taken = 0

    def pieces(self) -> Iterator[memoryview | int]:
        """The bytes up to the size that it had as tar opened it."""
        position = 0
        data = self._tar.data()
        left = b""
        for offset, length in self._member.runs:
            if offset > position:
                yield min(offset, self._most) - position
                position = min(offset, self._most)
            while length and position < self._most:
                piece = left or next(data, b"")
                if not piece:
                    raise SourceLost("the tar ends in the midst of a file")
                left = piece[min(length, self._most - position) :]
                piece = piece[: len(piece) - len(left)]
                length -= len(piece)
                position += len(piece)
                yield memoryview(piece)
                if position >= self._most:
                    return
        if position < self._most:
            yield self._most - position

    def what_happened(self) -> str | None:
        """Whether it grew since it was listed, or was renamed."""
        notes = ["renamed to .deleted before it was read"] if self.is_renamed else []
        if self._member.size > self._most:
            notes.append(f"taken up to {self._most} of {self._member.size} bytes")
        elif self._member.size > self.entry.size:
            notes.append("grew before it was read")
        elif self._member.size < self.entry.size:
            notes.append("cut before it was read")
        return "; ".join(notes) or None


def _is_only_missing(
    error: BadTar, complaint: str, wanted: dict[str, Entry], entries: Sequence[Entry]
) -> bool:
    """Whether tar wrote nothing since not one of the files is there any more: some then write no end either."""
    return error.message == "the tar is cut off" and len(wanted) == len(entries) and MISSING in complaint


def _may_be_log(name: str) -> bool:
    return bool(
        broker_log_kind(name) or MAYBE_BROKER_LOG.fullmatch(name) or MAYBE_EXPORT.fullmatch(name)
    ) and not (SEGMENT_FILE.fullmatch(name) or name.endswith(".properties"))


def _overwrite(path: Path, data: bytes) -> None:
    os.chmod(path, 0o600)
    with path.open("r+b") as file:
        file.write(data)
        if len(data) < HEAD:
            file.truncate(len(data))


def _lines(output: Output) -> Iterator[bytes]:
    rest, size = b"", 0
    while piece := output.read(1 << 16):
        size += len(piece)
        if size > LARGEST_LISTING:
            raise SourceLost("the listing of a folder is too long")
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > 1 << 16:
            raise SourceLost("the listing of a folder has a line that is too long")
        yield from lines
    if rest:
        yield rest


def _entries_of(listed: BinaryIO) -> Iterator[Entry]:
    listed.seek(0)
    while line := listed.readline(1 << 16):
        entry = _entry(line.rstrip(b"\n"))
        if entry is not None:
            yield entry


def _entry(line: bytes) -> Entry | None:
    """A line of the listing; None for one that is none."""
    words = line.split(b" ", 5)
    try:
        mode = int(words[0], 16)
        size, mtime, uid, gid = (int(word) for word in words[1:5])
        name = words[5].decode("utf-8", "surrogateescape")
    except (ValueError, IndexError):
        return None
    if not (0 <= size < 1 << 62 and abs(mtime) < 1 << 33 and 0 <= uid < 1 << 32 and 0 <= gid < 1 << 32):
        return None
    kind = FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else what_it_is(mode)
    return Entry(name, kind, size, mtime * 1_000_000_000, stat.S_IMODE(mode), uid, gid)
