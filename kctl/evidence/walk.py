"""The walk through evidence folders: lists each folder once, opens no file below it, follows no link out of it.

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
from kctl.evidence.manifest import MANIFEST, is_manifest
from kctl.evidence.model import BrokerLogKind, LogLeft, Replica, Root, encodable, relative
from kctl.evidence.names import (
    LOG_DIR_FILES,
    MAYBE_BROKER_LOG,
    MAYBE_EXPORT,
    OWN_FOLDERS,
    PARTITION_FILES,
    REMOTE_FILE,
    SEGMENT_FILE,
    TIER_FOLDER,
    TOLD_CLUSTER,
    ZNODES,
    broker_id_of,
    broker_log_kind,
    foreign_of,
)
from kctl.files import open_file, what_it_is
from kctl.findings import Finding, FindingType, Place
from kctl.findings import evidence as codes
from kctl.findings.manifest import CUT_OFF
from kctl.stores.mirror import given_name, unlisted

BEFORE_A_BATCH = 64 << 20
"""Bytes; a larger file without a name of Kafka's counts as a log without a search."""


class FoundLogDir(Struct):
    """A log directory whose broker is not known yet."""

    path: Path
    root: Root
    is_marked: bool = True
    is_whole: bool = True
    files: tuple[str, ...] = ()
    partitions: list[str] = field(default_factory=list)


class Walked(Struct):
    """The files and folders that a walk found."""

    roots: tuple[Root, ...] = ()
    log_dirs: dict[Path, FoundLogDir] = field(default_factory=dict)
    broker_logs: list[tuple[Path, Root, BrokerLogKind]] = field(default_factory=list)
    tiers: dict[Path, Root] = field(default_factory=dict)
    maybe_logs: list[tuple[Path, Root]] = field(default_factory=list)
    """Files whose names leave open whether they are a broker's logs."""
    maybe_exports: list[tuple[Path, Root]] = field(default_factory=list)
    """Files that may be exports of logs, outside of log directories."""
    logs_left: list[LogLeft] = field(default_factory=list)
    znodes: list[tuple[Path, Root]] = field(default_factory=list)
    told: list[tuple[Path, Root]] = field(default_factory=list)
    manifests: dict[Path, list[Root]] = field(default_factory=dict)
    """Manifests of copies that `kctl collect` made, with the paths that they are below, or that lie in the copy."""
    files: list[tuple[Path, Root]] = field(default_factory=list)
    unnamed_files: list[tuple[Path, Root]] = field(default_factory=list)
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
        name = encodable(root.given_path) if len(self.roots) > 1 else None
        place = Place(file=encodable(relative(path, root)), evidence=name, broker_id=broker_id)
        self.findings.append(type_.at(place, severity=None, **details))

    def say_cut_off(self, replica: Replica, why: str) -> None:
        """Add a finding about a partition folder that was copied in part."""
        root = replica.log_dir.root
        name = encodable(root.given_path) if len(self.roots) > 1 else None
        place = Place(
            broker_id=replica.broker_id, topic=replica.topic, partition=replica.partition,
            file=encodable(relative(replica.folder, root)), evidence=name, moment=replica.moment,
        )  # fmt: skip
        partition = f"{replica.topic}-{replica.partition}"
        self.findings.append(CUT_OFF.at(place, severity=None, partition=partition, why=encodable(why)))

    def log_dir(self, path: Path, root: Root, *, is_whole: bool = True) -> FoundLogDir:
        """The log directory at a path, an unmarked one where none is known yet."""
        return self.log_dirs.setdefault(path, FoundLogDir(path, root, is_marked=False, is_whole=is_whole))


def walk(paths: Iterable[str | os.PathLike[str]]) -> Walked:
    """Everything below the paths: findings for folders that cannot be listed, failures for paths that cannot be opened."""
    walked = Walked()
    walked.roots = tuple(opened_roots(paths, walked.failures))
    listed: set[Path] = set()
    for root in walked.roots:
        if not root.is_folder:
            _named_file(root, walked)
            continue
        for folder in root.path.parents:
            if (folder / MANIFEST).is_file() and is_manifest(folder / MANIFEST):
                walked.manifests.setdefault(folder / MANIFEST, []).append(root)
        stack = [root.path]
        while stack:
            folder = stack.pop()
            if folder not in listed:
                listed.add(folder)
                stack += _folder(folder, root, walked)
    _judge_foreign(walked)
    for (root, foreign), paths in walked.of_other_systems.items():
        count = f" (the first of {len(paths):,} such files)" if len(paths) > 1 else ""
        walked.say(
            codes.OF_ANOTHER_SYSTEM, min(paths), root, what=foreign.what, system=foreign.system, more=count
        )
    for folder, root, broker_id in walked.of_brokers:
        if folder not in walked.filled:
            walked.say(codes.BROKER_FOLDER_EMPTY, folder, root, broker_id, broker=broker_id)
    return walked


def opened_roots(paths: Iterable[str | os.PathLike[str]], failures: list[KctlError]) -> Iterable[Root]:
    """The paths that can be opened; for each other one an error is added to `failures`."""
    for path_text in paths:
        text = os.fspath(path_text)
        try:
            path = Path(os.path.realpath(text, strict=True))
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                os.scandir(path).close()
            elif not stat.S_ISREG(mode):
                raise UnreadableFile(
                    f"{text}: is {what_it_is(mode)}, not a file or folder", "name a file or a folder"
                )
            else:
                open_file(path).close()
        except (OSError, ValueError) as error:
            failures.append(file_error(given_name(text), error))
        except UnreadableFile as error:
            failures.append(error)
        else:
            if strange := unlisted(text):
                failures.append(strange)
            yield Root(given_name(text), path, stat.S_ISDIR(mode))


def _named_file(root: Root, walked: Walked) -> None:
    kind = broker_log_kind(root.path.name)
    if kind:
        walked.broker_logs.append((root.path, root, kind))
    elif ZNODES.fullmatch(root.path.name):
        walked.znodes.append((root.path, root))
    elif _may_hold_batches(root.path):
        walked.files.append((root.path, root))
    else:
        walked.unnamed_files.append((root.path, root))


def _is_told(path: Path) -> bool:
    from kctl.evidence.told import is_told  # few copies have one

    return is_told(path)


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
    except OSError:  # reported when the file is read
        return True


def _folder(folder: Path, root: Root, walked: Walked) -> list[Path]:
    """Note what a folder is; returns the folders in it that have to be listed too."""
    listed = _listed(folder, root, walked)
    files, folders = listed or ([], [])
    if files or listed is None:
        walked.filled.update((folder, *folder.parents))
    broker_id = broker_id_of(folder.name, folder.parent.name)
    if broker_id is not None and folder != root.path:
        walked.of_brokers.append((folder, root, broker_id))
    for name in files:
        kind = broker_log_kind(name)
        foreign = foreign_of(folder, name)
        if foreign:
            walked.of_other_systems.setdefault((root, foreign), []).append(folder / name)
        elif kind:
            walked.broker_logs.append((folder / name, root, kind))
        elif ZNODES.fullmatch(name):
            walked.znodes.append((folder / name, root))
        elif (folder.name, name) == TOLD_CLUSTER and _is_told(folder / name):
            walked.told.append((folder / name, root))
        elif name == MANIFEST and is_manifest(folder / name):
            walked.manifests[folder / name] = [root]
        elif MAYBE_BROKER_LOG.fullmatch(name) and not (
            SEGMENT_FILE.fullmatch(name) or REMOTE_FILE.fullmatch(name)
        ):
            walked.maybe_logs.append((folder / name, root))
        elif MAYBE_EXPORT.fullmatch(name) and name not in LOG_DIR_FILES | PARTITION_FILES:
            walked.maybe_exports.append((folder / name, root))
    if folder.name == TIER_FOLDER:
        walked.tiers[folder] = root
        return []
    if not LOG_DIR_FILES.isdisjoint(files):
        return _log_dir(folder, root, files, folders, walked)
    if any(SEGMENT_FILE.fullmatch(name) or name in PARTITION_FILES for name in files):
        above = walked.log_dir(folder.parent, root, is_whole=folder != root.path)
        above.partitions.append(folder.name)
    elif any(REMOTE_FILE.fullmatch(name) for name in files):
        walked.tiers[folder if folder == root.path else folder.parent] = root
    return [folder / name for name in folders]


def _log_dir(folder: Path, root: Root, files: list[str], folders: list[str], walked: Walked) -> list[Path]:
    log_dir = walked.log_dir(folder, root)
    log_dir.is_marked, log_dir.files = True, tuple(files)
    deeper = []
    for name in folders:
        if parse_partition_folder(name):
            log_dir.partitions.append(name)
        elif name not in OWN_FOLDERS:
            walked.foreign.append((folder / name, root))
            deeper.append(folder / name)
    return deeper


def _listed(folder: Path, root: Root, walked: Walked) -> tuple[list[str], list[str]] | None:
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
        walked.say(codes.VANISHED, folder, root)
        return None
    except OSError as error:
        walked.say(codes.UNREADABLE, folder, root, reason=reason_of(error))
        return None
    files += [name for name in sorted(links) if _is_file_inside(folder / name, root, walked)]
    return sorted(files), sorted(folders)


def _is_file_inside(path: Path, root: Root, walked: Walked) -> bool:
    """Whether a link leads to a file below the folder given. Folders there are listed under their own names."""
    try:
        target = Path(os.path.realpath(path, strict=True))
    except OSError as error:
        target_name = encodable(os.readlink(path))
        walked.say(codes.LINK_NOT_FOLLOWED, path, root, target=target_name, reason=reason_of(error))
        return False
    if not any(target.is_relative_to(r.path) for r in walked.roots):
        reason = "it is outside the folders given"
        walked.say(codes.LINK_NOT_FOLLOWED, path, root, target=encodable(str(target)), reason=reason)
        return False
    return target.is_file()


def _judge_foreign(walked: Walked) -> None:
    """Add a finding for each folder in a log directory that is no partition and holds no other evidence."""
    holders = [log[0] for log in walked.broker_logs] + [export[0] for export in walked.znodes]
    holders += [*walked.tiers, *walked.log_dirs]
    for path, root in walked.foreign:
        if not any(evidence_path.is_relative_to(path) for evidence_path in holders):
            walked.say(codes.FOREIGN_FOLDER, path, root, name=encodable(path.name))
