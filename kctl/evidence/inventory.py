"""What evidence holds, file by file: for people who do not know what they have.

Each file is looked at once, at its start alone, and forgotten: a million of them take no more memory than a folder's names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from formats.log_dir.file_names import parse_partition_folder
from formats.values import Struct, field
from kctl.errors import reason_of
from kctl.evidence.broker_logs import ids_in_heads
from kctl.evidence.contents import Contents, contents_of
from kctl.evidence.discover import MOST_LOOKED_AT
from kctl.evidence.identity import named_broker_id, read_identity
from kctl.evidence.model import Root, encodable, relative
from kctl.evidence.names import (
    LOG_DIR_FILES,
    MAYBE_BROKER_LOG,
    MAYBE_EXPORT,
    PARTITION_FILES,
    SEGMENT_FILE,
    TIER_FOLDER,
    broker_log_kind,
    foreign_of,
    is_read_beside_logs,
)
from kctl.files import what_it_is
from kctl.model import Row
from kctl.rows.audit import EVIDENCE_FILE, EVIDENCE_GROUP, INVENTORY
from kctl.stores.mirror import mirror_of

GROUPS = ("log-dirs", "logs", "settings", "tier", "znodes", "other")
AT_ONCE = 10_000
"""Names of a folder that are put in order and logs of a folder that tell its broker."""


class _Folder(Struct):
    """A folder of the walk."""

    path: Path
    broker_id: int | None = None
    """Of the log directory that it is in."""
    partition: tuple[str, int] | None = None
    is_in_tier: bool = False


class _Sums(Struct):
    """The sums of one group."""

    files: int = 0
    folders: int = 0
    bytes: int = 0
    looked_at: int = 0
    understood: int = 0
    lines: int = 0
    lines_understood: int = 0


class Inventory(Struct):
    """Goes through evidence and adds up what it gave; `broker_folders` are the ids that were given."""

    roots: tuple[Root, ...]
    broker_folders: Mapping[Path, int]
    sums: dict[tuple[int | None, str], _Sums] = field(default_factory=dict)
    brokers: set[int] = field(default_factory=set)
    """Those of which files hold something, also of files with lines of several."""
    not_looked_at: int = 0
    """Files, links and folders that were not or could not be read."""

    def rows(self) -> Iterator[Row]:
        """A row a file; then one for each group of each broker; then the totals."""
        for root in self.roots:
            for row in self._files_of(root):
                self._add(row)
                yield row
        for (broker_id, group), sums in sorted(self.sums.items(), key=_group_order):
            yield EVIDENCE_GROUP.of(sums, broker_id=broker_id, group=group)
        total = {
            name: sum(getattr(sums, name) for sums in self.sums.values())
            for name in ("files", "bytes", "looked_at", "understood")
        }
        self.brokers |= {broker_id for broker_id, _ in self.sums if broker_id is not None}
        yield INVENTORY(**total, not_looked_at=self.not_looked_at, brokers=sorted(self.brokers))

    def _add(self, row: Row) -> None:
        broker_id, group = row["broker_id"], str(row["group"])
        sums = self.sums.setdefault((broker_id if isinstance(broker_id, int) else None, group), _Sums())
        sums.files += 1
        sums.bytes += _number(row["size_in_bytes"])
        sums.looked_at += _number(row["looked_at"])
        sums.understood += _number(row["understood"])
        sums.lines += _number(row["lines"])
        sums.lines_understood += _number(row["lines_understood"])
        self.not_looked_at += row["what"] in ("unreadable", "link", "special")

    def _row(
        self, path: Path, root: Root, size: int | None, contents: Contents, folder: _Folder, **more: object
    ) -> Row:
        topic, partition = folder.partition or (None, None)
        return (
            EVIDENCE_FILE(
                file=encodable(relative(path, root)),
                group=contents.group,
                what=contents.what,
                broker_id=folder.broker_id,
                topic=topic,
                partition=partition,
                size_in_bytes=size,
                looked_at=contents.looked_at,
                understood=contents.understood,
                lines=contents.lines,
                lines_understood=contents.lines_understood,
                is_read=contents.group != "other",
                note=contents.note,
                evidence=encodable(root.given_path) if len(self.roots) > 1 else None,
            )
            | more
        )

    def _files_of(self, root: Root) -> Iterator[Row]:
        if not root.is_folder:
            folder = _Folder(root.path.parent, self._given(root.path))
            yield from self._rows_of([root.path.name], folder, root, _Exports())
            return
        exports = _Exports()
        stack = [_Folder(root.path)]
        while stack:
            folder = stack.pop()
            try:
                below = self._look_into(folder, root)
            except OSError as error:
                unread = Contents("other", "unreadable", note=reason_of(error))
                yield self._row(folder.path, root, None, unread, folder)
                continue
            for names in _names_in(folder.path):
                yield from self._rows_of(names, folder, root, exports)
            stack.extend(reversed(below))
        for path, row, ids in exports.rows:
            if exports.log_folders and not is_read_beside_logs(path, root.path, ids, exports.log_folders):
                whose = "of several brokers" if ids else "that does not say its broker"
                row |= {
                    "is_read": False,
                    "group": "other",
                    "note": f"a log {whose}; name the file to read it",
                }
            yield row

    def _look_into(self, folder: _Folder, root: Root) -> list[_Folder]:
        """Set what the folder is; gives those in it."""
        is_log_dir, folders = False, []
        has_files = False
        with os.scandir(folder.path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    is_log_dir |= entry.name in LOG_DIR_FILES
                    has_files |= (
                        SEGMENT_FILE.fullmatch(entry.name) is not None or entry.name in PARTITION_FILES
                    )
        if is_log_dir:
            stored = read_identity(folder.path).broker_id
            folder.broker_id = folder.broker_id if stored is None else stored
        if folder.broker_id is None:
            folder.broker_id = named_broker_id(folder.path, root.path)
        if (given := self._given(folder.path)) is not None:
            folder.broker_id = given
        parsed = parse_partition_folder(folder.path.name) if has_files else None
        if parsed is not None and not is_log_dir:
            folder.partition = parsed.topic, parsed.partition
            self.sums.setdefault((folder.broker_id, "log-dirs"), _Sums()).folders += 1
        is_in_tier = folder.is_in_tier or folder.path.name == TIER_FOLDER
        return [_Folder(folder.path / name, folder.broker_id, None, is_in_tier) for name in sorted(folders)]

    def _given(self, path: Path) -> int | None:
        return next(
            (self.broker_folders[above] for above in (path, *path.parents) if above in self.broker_folders),
            None,
        )

    def _rows_of(self, names: Iterable[str], folder: _Folder, root: Root, exports: _Exports) -> Iterator[Row]:
        """The rows of files in one folder; logs wait for the end, since one of them may tell the broker of all."""
        logs: list[tuple[Row, set[int]]] = []
        for name in names:
            path = folder.path / name
            row, contents = self._row_of_file(path, folder, root, exports)
            if contents.log is None:
                yield row
                continue
            ids = ids_in_heads([contents.log])
            if len(contents.brokers | ids) > 1:
                whose = f"lines of brokers {', '.join(map(str, sorted(contents.brokers | ids)))}"
                row["note"] = f"{row['note']}; {whose}" if row["note"] else whose
                self.brokers |= contents.brokers | ids
            is_export = (
                broker_log_kind(name) is None and not MAYBE_BROKER_LOG.fullmatch(name) and root.is_folder
            )
            if is_export:
                row |= {"broker_id": self._broker_of(ids | contents.brokers, set(), folder, root)}
                exports.rows.append((path, row, ids))
            else:
                exports.log_folders.add(path.parent)
                logs.append((row, ids | contents.brokers))
        together = set().union(*(ids for _, ids in logs))
        for row, ids in logs:
            yield row | {"broker_id": self._broker_of(ids, together, folder, root)}

    def _broker_of(self, ids: set[int], together: set[int], folder: _Folder, root: Root) -> int | None:
        given = self._given(folder.path)
        if given is not None:
            return given
        if len(ids) == 1:
            return next(iter(ids))
        if ids or len(together) > 1:
            return None
        if together:
            return next(iter(together))
        named = named_broker_id(folder.path, root.path)
        return folder.broker_id if named is None else named

    def _row_of_file(
        self, path: Path, folder: _Folder, root: Root, exports: _Exports
    ) -> tuple[Row, Contents]:
        contents, size = Contents("other", "unreadable"), None
        try:
            status = path.stat(follow_symlinks=not root.is_folder)
            size = status.st_size
            if stat.S_ISLNK(status.st_mode):
                target = encodable(os.readlink(path))
                contents = Contents("other", "link", note=f"leads to {target}")
            elif not stat.S_ISREG(status.st_mode):
                contents = Contents("other", "special", note=what_it_is(status.st_mode))
            elif (foreign := foreign_of(folder.path, path.name)) is not None:
                contents = Contents("other", "other-system", note=f"{foreign.what} of {foreign.system}")
            else:
                is_left = not exports.may_look(path.name, is_of_log_dir=folder.partition is not None)
                contents = contents_of(
                    path,
                    size,
                    is_in_tier=folder.is_in_tier,
                    is_looked_at=not (is_left or mirror_of(str(root.path))),
                )
                if is_left:
                    contents = contents._replace(note=f"more than {MOST_LOOKED_AT:,} such files")
        except OSError as error:
            contents = contents._replace(note=reason_of(error))
        return self._row(path, root, size, contents, folder), contents


class _Exports(Struct):
    """Files below a folder that hold logs under names that logs do not have, with the brokers that their lines name."""

    rows: list[tuple[Path, Row, set[int]]] = field(default_factory=list)
    log_folders: set[Path] = field(default_factory=set)
    """The folders of files with a log's name."""
    looked_at: int = 0

    def may_look(self, name: str, *, is_of_log_dir: bool) -> bool:
        """Whether one more file of this name is looked into: no more than commands do."""
        is_maybe = (
            not is_of_log_dir and broker_log_kind(name) is None and MAYBE_EXPORT.fullmatch(name) is not None
        )
        self.looked_at += is_maybe and name not in LOG_DIR_FILES | PARTITION_FILES
        return not is_maybe or self.looked_at <= MOST_LOOKED_AT


def _names_in(folder: Path) -> Iterator[list[str]]:
    """Names of the files in a folder, in order where they are not too many."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
            if len(names) >= AT_ONCE:
                yield sorted(names)
                names = []
    yield sorted(names)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _group_order(item: tuple[tuple[int | None, str], _Sums]) -> tuple[bool, int, int]:
    (broker_id, group), _ = item
    return broker_id is None, broker_id or 0, GROUPS.index(group)
