"""The walk through the folders given: each folder is listed once, no file below it is opened, no link leads out.

Partition folders of a log directory are known by their names alone, so ten thousand of them cost one listing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from formats.log.other_systems import Foreign
from formats.log_dir.file_names import parse_partition_folder
from formats.values import Struct, field
from kctl.errors import KctlError, UnreadableFile, file_error, reason_of
from kctl.evidence.model import BrokerLogKind, Root, relative, shown
from kctl.evidence.names import (
    LOG_DIR_FILES,
    MAYBE_BROKER_LOG,
    OWN_FOLDERS,
    PARTITION_FILES,
    REMOTE_FILE,
    SEGMENT_FILE,
    TIER_FOLDER,
    ZNODES,
    broker_id_of,
    broker_log_kind,
    foreign_of,
)
from kctl.files import open_file, what_it_is
from kctl.findings import Finding, FindingType, Place
from kctl.findings import evidence as say
from kctl.stores.mirror import given_name, unlisted

BEFORE_A_BATCH = (
    64 << 20
)  # bytes; a larger file without a name of Kafka's is taken for a log without a search


class FoundLogDir(Struct):
    """A log directory before it is known whose it is."""

    path: Path
    root: Root
    is_marked: bool = True
    is_whole: bool = True
    files: tuple[str, ...] = ()
    partitions: list[str] = field(default_factory=list)


class Walked(Struct):
    """All that a walk came across."""

    roots: tuple[Root, ...] = ()
    log_dirs: dict[Path, FoundLogDir] = field(default_factory=dict)
    broker_logs: list[tuple[Path, Root, BrokerLogKind]] = field(default_factory=list)
    tiers: dict[Path, Root] = field(default_factory=dict)
    maybe_logs: list[tuple[Path, Root]] = field(default_factory=list)
    """Files whose names leave open whether they are a broker's logs."""
    znodes: list[tuple[Path, Root]] = field(default_factory=list)
    files: list[tuple[Path, Root]] = field(default_factory=list)
    others: list[tuple[Path, Root]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    failures: list[KctlError] = field(default_factory=list)
    of_other_systems: dict[tuple[Root, Foreign], list[Path]] = field(default_factory=dict)
    # Folders of a log directory that Kafka would not accept, unless other evidence turns out to lie in them.
    foreign: list[tuple[Path, Root]] = field(default_factory=list)
    # Folders named after a broker, and all below which something is.
    of_brokers: list[tuple[Path, Root, int]] = field(default_factory=list)
    filled: set[Path] = field(default_factory=set)

    def say(
        self, type_: FindingType, path: Path, root: Root, broker_id: int | None = None, **details: str | int
    ) -> None:
        """Add a finding about a path."""
        name = shown(root.given) if len(self.roots) > 1 else None
        place = Place(file=shown(relative(path, root)), evidence=name, broker_id=broker_id)
        self.findings.append(type_.at(place, severity=None, **details))

    def log_dir(self, path: Path, root: Root, *, is_whole: bool = True) -> FoundLogDir:
        """The log directory at a path, an unmarked one where none is known yet."""
        return self.log_dirs.setdefault(path, FoundLogDir(path, root, is_marked=False, is_whole=is_whole))


def walk(paths: Iterable[str | os.PathLike[str]]) -> Walked:
    """Everything below the paths; what cannot be listed becomes a finding, what was named and cannot a failure."""
    found = Walked()
    found.roots = tuple(_roots(paths, found))
    seen: set[Path] = set()
    for root in found.roots:
        if not root.is_folder:
            _named_file(root, found)
            continue
        stack = [root.path]
        while stack:
            folder = stack.pop()
            if folder not in seen:
                seen.add(folder)
                stack += _folder(folder, root, found)
    _judge_foreign(found)
    for (root, foreign), paths in found.of_other_systems.items():
        more = f" (the first of {len(paths):,} such files)" if len(paths) > 1 else ""
        found.say(
            say.OF_ANOTHER_SYSTEM, min(paths), root, what=foreign.what, system=foreign.system, more=more
        )
    for folder, root, broker_id in found.of_brokers:
        if folder not in found.filled:
            found.say(say.BROKER_FOLDER_EMPTY, folder, root, broker_id, broker=broker_id)
    return found


def _roots(paths: Iterable[str | os.PathLike[str]], found: Walked) -> Iterable[Root]:
    for one in paths:
        given = os.fspath(one)
        try:
            path = Path(os.path.realpath(given, strict=True))
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                os.scandir(path).close()
            elif not stat.S_ISREG(mode):
                raise UnreadableFile(
                    f"{given}: is {what_it_is(mode)}, not a file or folder", "name a file or a folder"
                )
            else:
                open_file(path).close()
        except (OSError, ValueError) as error:
            found.failures.append(file_error(given_name(given), error))
        except UnreadableFile as error:
            found.failures.append(error)
        else:
            if strange := unlisted(given):
                found.failures.append(strange)
            yield Root(given_name(given), path, stat.S_ISDIR(mode))


def _named_file(root: Root, found: Walked) -> None:
    kind = broker_log_kind(root.path.name)
    if kind:
        found.broker_logs.append((root.path, root, kind))
    elif ZNODES.fullmatch(root.path.name):
        found.znodes.append((root.path, root))
    elif _may_hold_batches(root.path):
        found.files.append((root.path, root))
    else:
        found.others.append((root.path, root))


def _may_hold_batches(path: Path) -> bool:
    """Whether a file has a name that brokers give, or a batch in it, or something that says whose it is."""
    from formats.log import records
    from kctl.dump.file_kinds import kind_by_name
    from kctl.scan.source import foreign_in, open_source

    if kind_by_name(path.name) or path.name in LOG_DIR_FILES or path.name in PARTITION_FILES:
        return True
    try:
        with closing(open_source(path, follow=True)) as source:
            if source.size > BEFORE_A_BATCH or foreign_in(source):
                return True
            return any(isinstance(item, records.LogEntry) for item in records.walk(source))
    except OSError:  # whoever reads it says why it cannot be read
        return True


def _folder(folder: Path, root: Root, found: Walked) -> list[Path]:
    """Sort one folder into what it is; the folders in it that have to be listed too."""
    listed = _listed(folder, root, found)
    files, folders = listed or ([], [])
    if files or listed is None:
        found.filled.update((folder, *folder.parents))
    broker_id = broker_id_of(folder.name, folder.parent.name)
    if broker_id is not None and folder != root.path:
        found.of_brokers.append((folder, root, broker_id))
    for name in files:
        kind = broker_log_kind(name)
        foreign = foreign_of(folder, name)
        if foreign:
            found.of_other_systems.setdefault((root, foreign), []).append(folder / name)
        elif kind:
            found.broker_logs.append((folder / name, root, kind))
        elif ZNODES.fullmatch(name):
            found.znodes.append((folder / name, root))
        elif MAYBE_BROKER_LOG.fullmatch(name) and not (
            SEGMENT_FILE.fullmatch(name) or REMOTE_FILE.fullmatch(name)
        ):
            found.maybe_logs.append((folder / name, root))
    if folder.name == TIER_FOLDER:
        found.tiers[folder] = root
        return []
    if not LOG_DIR_FILES.isdisjoint(files):
        return _log_dir(folder, root, files, folders, found)
    if any(SEGMENT_FILE.fullmatch(name) or name in PARTITION_FILES for name in files):
        above = found.log_dir(folder.parent, root, is_whole=folder != root.path)
        above.partitions.append(folder.name)
    elif any(REMOTE_FILE.fullmatch(name) for name in files):
        found.tiers[folder if folder == root.path else folder.parent] = root
    return [folder / name for name in folders]


def _log_dir(folder: Path, root: Root, files: list[str], folders: list[str], found: Walked) -> list[Path]:
    one = found.log_dir(folder, root)
    one.is_marked, one.files = True, tuple(files)
    deeper = []
    for name in folders:
        if parse_partition_folder(name):
            one.partitions.append(name)
        elif name not in OWN_FOLDERS:
            found.foreign.append((folder / name, root))
            deeper.append(folder / name)
    return deeper


def _listed(folder: Path, root: Root, found: Walked) -> tuple[list[str], list[str]] | None:
    """Names of the files and of the folders in a folder, links that stay inside counted as what they lead to."""
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    links.append(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                else:
                    files.append(entry.name)
    except FileNotFoundError:
        found.say(say.VANISHED, folder, root)
        return None
    except OSError as error:
        found.say(say.UNREADABLE, folder, root, reason=reason_of(error))
        return None
    files += [name for name in sorted(links) if _is_file_inside(folder / name, root, found)]
    return sorted(files), sorted(folders)


def _is_file_inside(path: Path, root: Root, found: Walked) -> bool:
    """Whether a link leads to a file below the folder given. Folders there are listed under their own names."""
    try:
        target = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        target_name = shown(os.readlink(path))
        found.say(say.LINK_NOT_FOLLOWED, path, root, target=target_name, reason=reason_of(error))
        return False
    if not any(target.is_relative_to(r.path) for r in found.roots):
        reason = "it is outside the folders given"
        found.say(say.LINK_NOT_FOLLOWED, path, root, target=shown(str(target)), reason=reason)
        return False
    return target.is_file()


def _judge_foreign(found: Walked) -> None:
    """Folders in a log directory that are no partitions are wrong, unless they are how the evidence was gathered."""
    holders = [log[0] for log in found.broker_logs] + [export[0] for export in found.znodes]
    holders += [*found.tiers, *found.log_dirs]
    for path, root in found.foreign:
        if not any(other.is_relative_to(path) for other in holders):
            found.say(say.FOREIGN_FOLDER, path, root, name=shown(path.name))
