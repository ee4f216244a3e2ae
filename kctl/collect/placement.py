"""Where in the folder of a copy each thing goes: `broker-ID/data[-N]`, `broker-ID/logs[-N]`, `broker-ID/server.properties`.

Copies of several moments keep them: `moments/NAME/broker-ID/...`. What belongs to no known broker is below `unknown-N`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from formats.log_dir.file_names import REMOTE_INDEX_CACHE, parse_partition_folder
from formats.values import Struct, field, replace
from kctl.collect.transport import Source
from kctl.evidence.model import FoundEvidence
from kctl.evidence.names import UNSAFE

ALWAYS = frozenset({"__cluster_metadata"})
"""Topics that are copied whatever was chosen: they say which brokers hold what."""
PROPERTIES = re.compile(r"(?:server|broker|controller|kafka|reconfig-server)\.properties", re.ASCII)
SETTING = re.compile(rb"^\s*(?:broker|node)\.id\s*[=:]\s*(\d{1,9})\s*$", re.MULTILINE)


class Choice(Struct, frozen=True):
    """What of a source is wanted; empty stands for all. `since_ms` is for broker logs, and for records that brokers give."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[int] = frozenset()
    since_ms: int | None = None

    def wants(self, folder: str) -> bool:
        """Whether a partition folder of this name is copied."""
        parsed = parse_partition_folder(folder)
        if parsed is None or parsed.topic in ALWAYS:
            return True
        return (not self.topics or parsed.topic in self.topics) and (
            not self.partitions or parsed.partition in self.partitions
        )

    @property
    def is_all(self) -> bool:
        """Whether every partition is wanted."""
        return not self.topics and not self.partitions


class PlannedLogDir(Struct):
    """A log directory: its folder at the source, its place in the copy, and the partition folders to be copied."""

    folder: Path
    place: str
    broker_id: int | None
    files: tuple[str, ...]
    partitions: list[str]


class PlannedFiles(Struct):
    """Files of one folder, and their place in the copy. `is_tree`: with all folders below."""

    folder: Path
    place: str
    names: list[str]
    broker_id: int | None = None
    is_tree: bool = False


class Plan(Struct):
    """All that is copied from one source."""

    log_dirs: list[PlannedLogDir] = field(default_factory=list)
    log_files: list[PlannedFiles] = field(default_factory=list)
    properties: list[PlannedFiles] = field(default_factory=list)
    exports: list[PlannedFiles] = field(default_factory=list)
    trees: list[PlannedFiles] = field(default_factory=list)

    @property
    def broker_ids(self) -> list[int]:
        """The brokers whose files these are, ascending."""
        ids = {log_dir.broker_id for log_dir in self.log_dirs}
        ids |= {part.broker_id for part in (*self.log_files, *self.properties)}
        return sorted(broker_id for broker_id in ids if broker_id is not None)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to copy."""
        return not (self.log_dirs or self.log_files or self.properties or self.exports or self.trees)


class Places(Struct):
    """Gives names out, each once."""

    used: set[str] = field(default_factory=set)

    def new(self, wanted: str) -> str:
        """The wanted place, with `-2`, `-3`, ... where it is taken."""
        number, place = 1, wanted
        while place in self.used:
            number += 1
            place = _numbered(wanted, number)
        self.used.add(place)
        return place


def _numbered(place: str, number: int) -> str:
    folder, slash, name = place.rpartition("/")
    stem, dot, suffix = name.partition(".")
    return f"{folder}{slash}{stem}-{number}{dot}{suffix}"


def plan_of(
    source: Source, evidence: FoundEvidence, choice: Choice, places: Places, properties: Collection[Path] = ()
) -> Plan:
    """What of the evidence at a source is copied, and where to. `properties` are files of brokers' settings."""
    plan = Plan()
    evidence = _of_root(evidence, source.root)
    below: dict[Path, tuple[str, int | None]] = {}  # where what lies near a log directory belongs
    unknown: dict[Path, str] = {}

    def owner(broker_id: int | None, moment: str | None, near: Path) -> str:
        above = f"moments/{_as_name(moment)}/" if moment else ""
        if broker_id is not None:
            return f"{above}broker-{broker_id}"
        if near not in unknown:
            unknown[near] = places.new(f"{above}unknown-1")
        return unknown[near]

    partitions: dict[Path, list[str]] = {log_dir.path: [] for log_dir in evidence.log_dirs}
    for replica in evidence.replicas:
        partitions[replica.log_dir.path].append(replica.folder.name)
    for folder, log_dir in evidence.loose_folders:
        partitions[log_dir.path].append(folder.name)
    for log_dir in evidence.log_dirs:
        place = places.new(f"{owner(log_dir.broker_id, log_dir.moment, log_dir.path.parent)}/data")
        wanted = [name for name in sorted(partitions[log_dir.path]) if choice.wants(name)]
        plan.log_dirs.append(
            PlannedLogDir(
                log_dir.path, place, log_dir.broker_id, log_dir.files if log_dir.is_whole else (), wanted
            )
        )
        below.setdefault(log_dir.path.parent, (place.rpartition("/")[0], log_dir.broker_id))
    by_folder: dict[tuple[Path, int | None, str | None], list[str]] = {}
    for log in evidence.broker_logs:
        by_folder.setdefault((log.path.parent, log.broker_id, log.moment), []).append(log.path.name)
    for (folder, broker_id, moment), names in sorted(by_folder.items(), key=lambda item: str(item[0])):
        place = places.new(f"{owner(broker_id, moment, folder.parent)}/logs")
        plan.log_files.append(PlannedFiles(folder, place, sorted(names), broker_id))
        below.setdefault(folder.parent, (place.rpartition("/")[0], broker_id))
    for path in sorted(properties):
        plan.properties.append(_properties_of(path, plan, below, places))
    for export in evidence.znode_exports:
        moment = f"moments/{_as_name(export.moment)}/" if export.moment else ""
        place = places.new(f"{moment}{export.path.name}")
        plan.exports.append(PlannedFiles(export.path.parent, place, [export.path.name]))
    for tier in evidence.tiers:
        moment = f"moments/{_as_name(tier.moment)}/" if tier.moment else ""
        place = places.new(f"{moment}tier") + f"/{tier.path.name}"
        plan.trees.append(PlannedFiles(tier.path, place, [], is_tree=True))
    for path, _ in evidence.files:
        plan.exports.append(PlannedFiles(path.parent, places.new(f"files/{path.name}"), [path.name]))
    return plan


def _of_root(evidence: FoundEvidence, root: Path) -> FoundEvidence:
    """What of the evidence was found below one of the paths given."""
    return replace(
        evidence,
        log_dirs=tuple(log_dir for log_dir in evidence.log_dirs if log_dir.root.path == root),
        replicas=tuple(replica for replica in evidence.replicas if replica.log_dir.root.path == root),
        loose_folders=tuple(loose for loose in evidence.loose_folders if loose[1].root.path == root),
        broker_logs=tuple(log for log in evidence.broker_logs if log.root.path == root),
        tiers=tuple(tier for tier in evidence.tiers if tier.root.path == root),
        znode_exports=tuple(export for export in evidence.znode_exports if export.root.path == root),
        files=tuple(file for file in evidence.files if file[1].path == root),
    )


def _as_name(moment: str) -> str:
    """The name of a moment as that of a folder."""
    return UNSAFE.sub("-", moment).strip(".") or "moment"


def _properties_of(
    path: Path, plan: Plan, below: dict[Path, tuple[str, int | None]], places: Places
) -> PlannedFiles:
    """A file of settings, beside what else there is of the broker whose id it has, or of the one that lies near it."""
    from kctl.evidence.identity import named_broker_id
    from kctl.files import read_whole

    try:
        ids = set(SETTING.findall(read_whole(path)))
    except OSError:
        ids = set()
    broker_id = int(ids.pop()) if len(ids) == 1 else named_broker_id(path.parent, path.parent)
    place = f"broker-{broker_id}"
    if broker_id is None:
        near = next((below[folder] for folder in path.parents if folder in below), None)
        place, broker_id = near or (places.new("unknown-1"), None)
    return PlannedFiles(path.parent, places.new(f"{place}/server.properties"), [path.name], broker_id)


def settings_files(
    roots: Collection[Path], log_dirs: Collection[Path], most: int = 100_000
) -> Iterator[Path]:
    """Files of brokers' settings below these folders, but for what is in log directories."""
    import os

    seen = 0
    stack = list(roots)
    while stack and seen < most:
        folder = stack.pop()
        if folder.is_file():
            if PROPERTIES.fullmatch(folder.name):
                yield folder
            continue
        if folder in log_dirs or folder.name == REMOTE_INDEX_CACHE:
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        stack.append(Path(entry.path))
                    elif PROPERTIES.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)
        except OSError:
            continue


LOG_DIRS = re.compile(r"^\s*(?:log\.dirs|log\.dir|metadata\.log\.dir)\s*[=:]\s*(\S.*?)\s*$", re.MULTILINE)


def log_dirs_of_settings(path: Path) -> list[str]:
    """The log directories that a file of settings names; none for any other file."""
    from kctl.files import read_text

    if not PROPERTIES.fullmatch(path.name):
        return []
    try:
        text = read_text(path, follow=True)
    except (OSError, UnicodeDecodeError):
        return []
    named = (part.strip() for match in LOG_DIRS.finditer(text) for part in match[1].split(","))
    return list(dict.fromkeys(name for name in named if name.startswith("/")))
