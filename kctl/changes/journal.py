"""The journal: a folder with one JSON file a change, and a chain of digests over everything ever written to it.

A file is replaced whole (written beside, synced, renamed), after a line in `chain.jsonl` has sealed its new
content: each line holds the digest of the file and of the line before. A changed, removed or added file, or a
changed line, does not fit the chain any more. Everything has mode 0600.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from formats import bounded_json
from kctl.changes.journal_folder import journal_folder
from kctl.errors import KctlError, Refused, file_error, reason_of
from kctl.files import LARGEST_TABLE, open_file, read_text, read_whole

if TYPE_CHECKING:
    from kctl.changes.entry import Entry
    from kctl.model import Report

CHAIN = "chain.jsonl"
START = "0" * 64
# Bytes; a reassignment of 200,000 partitions takes two thirds of it.
LARGEST_ENTRY = 80 << 20
# Bytes of an entry that is laid out for people: a longer one is written several times as fast in one line.
LARGEST_LAID_OUT = 1 << 18


class Link(NamedTuple):
    """A line of the chain."""

    id: str
    sha256: str
    previous: str
    hash: str


class Broken(NamedTuple):
    """Something that does not fit the chain: which entry, and how."""

    id: str
    reason: str
    is_chain: bool = False  # of the chain itself, so that no entry is proven by it


def journalled() -> frozenset[str]:
    """The names of the journal's files."""
    try:
        return frozenset(name for name in os.listdir(journal_folder()) if name.endswith(".json"))
    except OSError:
        return frozenset()


class Journal:
    """The changes of one folder. Several kctl may use it at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or journal_folder()

    # --- reading ---

    def entries(self, report: Report) -> Iterator[Entry]:
        """All entries, oldest first; one that cannot be read is reported, and the rest goes on."""
        entries = []
        for path in self._files():
            try:
                entries.append(self._read(path))
            except KctlError as error:
                report(error)
        yield from sorted(entries, key=lambda entry: entry.time)

    def find(self, id: str) -> Entry:
        """The entry with this id, or the only one that it is the beginning or the end of."""
        return self._read(self._path_of(id))

    def _path_of(self, id: str) -> Path:
        names = [path.stem for path in self._files()]
        matching = [n for n in names if n == id] or [n for n in names if n.startswith(id) or n.endswith(id)]
        if not id or not matching:
            raise KctlError(f"no change {id!r} in {self.folder}", "see `kctl journal list`")
        if len(matching) > 1:
            raise KctlError(f"{id!r} matches {len(matching)} changes", "give more of its id")
        return self.folder / f"{matching[0]}.json"

    def find_sealed(self, id: str) -> Entry:
        """The entry as `find` gives it, for a command that writes what it says.

        Raises Refused where the chain does not hold, or the entry is not what was sealed under its id.
        """
        path = self._path_of(id)
        for problem in self.verify():
            if problem.id == path.stem or problem.is_chain:
                raise Refused(
                    f"the journal {self.folder} was changed by something other than kctl: {problem.id}: {problem.reason}",
                    "nothing was written; `kctl journal verify` lists what was changed, `kctl journal show` the entry",
                )
        return self._read(path)

    def _files(self) -> list[Path]:
        try:
            named = [self.folder / name for name in os.listdir(self.folder) if name.endswith(".json")]
            return sorted(path for path in named if path.is_file())
        except FileNotFoundError:  # nothing was changed yet
            return []
        except OSError as error:
            raise file_error(self.folder, error, KctlError) from error

    def _read(self, path: Path) -> Entry:
        from kctl.changes.entry import Entry  # dear to import, and most who look find no change

        try:
            entry = Entry.from_json(bounded_json.loads(read_text(path, LARGEST_ENTRY)))
            if entry.id != path.stem:
                raise ValueError(f"its own id is {entry.id}")
            return entry
        except OSError as error:
            raise file_error(path, error, KctlError) from error
        except (ValueError, KeyError, TypeError, AssertionError, AttributeError, RecursionError) as error:
            raise KctlError(
                f"{path} is not a journal entry ({reason_of(error)})",
                "move it out of the journal's folder; `kctl journal verify` lists what was changed there",
            ) from error

    # --- writing ---

    def write(self, entry: Entry) -> None:
        """Put the entry's present state on disk, sealed and synced, before this returns."""
        values, path = entry.to_json(), self.folder / f"{entry.id}.json"
        content = json.dumps(values, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        if len(content) <= min(LARGEST_LAID_OUT, LARGEST_ENTRY // 2):
            content = json.dumps(values, ensure_ascii=True, indent=1).encode() + b"\n"
        try:
            if len(content) > LARGEST_ENTRY:
                raise bounded_json.TooManyValues(
                    f"it takes {len(content):,} bytes, and an entry has at most {LARGEST_ENTRY:,}"
                )
            bounded_json.check(content.decode())
        except bounded_json.TooManyValues as error:  # nobody could undo it
            raise KctlError(
                f"the change is too large for the journal ({error}); nothing more was changed",
                "split it: `kctl reassign plan --max-batch-moves N` writes a file for each",
            ) from None
        try:
            with self._locked():
                self._complete()
                beside = path.with_suffix(".new")
                _write_synced(beside, content, os.O_TRUNC)  # a full disk shows before the line that seals it
                self._seal(entry.id, _sha256(content))
                beside.rename(path)
                _sync_folder(self.folder)
        except OSError as error:
            raise KctlError(
                f"the journal {path} cannot be written ({reason_of(error)}); nothing more was changed",
                "set KCTL_JOURNAL to another folder",
            ) from error

    @contextlib.contextmanager
    def exclusively(self, cluster_id: str | None, until: float) -> Iterator[None]:
        """Lock out every other kctl that uses this journal from writing to the cluster.

        Backends without compare-and-set need it between a read and the write that depends on it. Raises Refused if
        the lock is still held at `until`, a time of `time.monotonic`.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = _sha256((cluster_id or "").encode())[:16]
        descriptor = os.open(self.folder / f".writing-{name}", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            while not _is_taken(descriptor):
                if time.monotonic() > until:
                    raise Refused(
                        "another kctl is writing to this cluster now; nothing was written",
                        "wait until it has ended",
                    )
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _complete(self) -> None:
        """Put the file in its place that was sealed last and not renamed, since kctl was killed between the two."""
        data = self._chain()
        lines = data[: data.rfind(b"\n") + 1].splitlines()
        link = _parse_link(lines[-1]) if lines else None
        if link is None or "/" in link.id:
            return
        beside = self.folder / f"{link.id}.new"
        if beside.is_file() and _digest(beside) == link.sha256:
            beside.rename(beside.with_suffix(".json"))

    def _seal(self, id: str, digest: str) -> None:
        path = self.folder / CHAIN
        data = read_whole(path, LARGEST_TABLE) if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # a kctl was killed while it wrote the line
            os.truncate(path, len(whole))
        lines = whole.splitlines()
        previous = _parse_link(lines[-1]).hash if lines else START
        line = {"id": id, "sha256": digest, "previous": previous, "hash": _link_hash(id, digest, previous)}
        _write_synced(path, json.dumps(line).encode() + b"\n", os.O_APPEND)

    # --- verifying ---

    def _chain(self) -> bytes:
        path = self.folder / CHAIN
        try:
            return read_whole(path, LARGEST_TABLE) if path.exists() else b""
        except OSError as error:
            raise file_error(path, error, KctlError) from error

    def verify(self) -> list[Broken]:
        """Everything that does not fit the chain; empty for a sound journal."""
        broken: list[Broken] = []
        sealed: dict[str, list[str]] = {}
        previous, data = START, self._chain()
        lines = data.splitlines()
        if data and not data.endswith(b"\n"):
            lines.pop()
        for number, line in enumerate(lines, 1):
            link = _parse_link(line)
            if link.previous != previous or link.hash != _link_hash(link.id, link.sha256, link.previous):
                reason = f"line {number} of {CHAIN} does not follow from the one before"
                broken.append(Broken(link.id, reason, is_chain=True))
            previous = link.hash
            sealed.setdefault(link.id, []).append(link.sha256)
        # The last one may be sealed, and cut off before it was renamed.
        last = _parse_link(lines[-1]).id if lines else None
        files = {path.stem: path for path in self._files()}
        for id, digests in sealed.items():
            if id not in files:
                if len(digests) > 1 or id != last:
                    broken.append(Broken(id, "the file is gone"))
            elif _digest(files[id]) not in (digests[-2:] if id == last else digests[-1:]):
                broken.append(Broken(id, "the file is not what was sealed"))
        broken += [Broken(id, "the file was never sealed") for id in sorted(files.keys() - sealed.keys())]
        return broken


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _link_hash(id: str, digest: str, previous: str) -> str:
    return _sha256(f"{previous}\n{id}\n{digest}\n".encode(errors="surrogatepass"))


def _parse_link(line: bytes) -> Link:
    try:
        values = bounded_json.loads(line)
        return Link(str(values["id"]), str(values["sha256"]), str(values["previous"]), str(values["hash"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Link("?", "", "", "")


def _digest(path: Path) -> str:
    from hashlib import file_digest

    try:
        with open_file(path) as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {reason_of(error)}"


def _write_synced(path: Path, content: bytes, flags: int) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(content: bytes) -> str:
    from hashlib import sha256  # dear to import, and most who look find no change

    return sha256(content).hexdigest()
