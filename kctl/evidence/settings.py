"""The settings of brokers that the evidence holds: `server.properties` of 0.8.2 to 4.3 beside log directories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from formats.errors import FormatError
from formats.log_dir.meta_properties import parse_properties
from formats.values import Struct
from kctl.evidence.model import FoundEvidence, LackingDir, LogDir, Root
from kctl.files import read_lenient

VOTER = re.compile(r"\s*(\d{1,10})@[^,\s]+\s*")
LARGEST = 1 << 20


class Settings(Struct, frozen=True):
    """A `server.properties` in the evidence, and the log directories beside and below it."""

    path: Path
    root: Root
    values: dict[str, str]
    log_dirs: tuple[LogDir, ...]

    @property
    def node_id(self) -> tuple[str, str] | None:
        """The key and value of the configured id; None without one, or where the broker chooses it."""
        for key in ("node.id", "broker.id"):
            value = self.values.get(key, "").strip()
            if value.isascii() and value.isdigit():
                return key, value
        return None

    @property
    def lists_all_together(self) -> bool:
        """Whether it lists each of its log directories, beside each other and of one moment, as those of one broker."""
        names = [log_dir.path.name for log_dir in self.log_dirs]
        places = {(log_dir.path.parent, log_dir.moment) for log_dir in self.log_dirs}
        return len(places) == 1 and set(names) <= {Path(path).name for path in self.listed_dirs}

    @property
    def voters(self) -> frozenset[int] | None:
        """The node ids of `controller.quorum.voters`; None without any."""
        text = self.values.get("controller.quorum.voters", "")
        voters = [VOTER.fullmatch(part) for part in text.split(",")]
        return frozenset(int(voter[1]) for voter in voters if voter) if all(voters) else None

    @property
    def listed_dirs(self) -> list[str]:
        """The directories of `log.dirs`, or of `log.dir`, in order, each once."""
        text = self.values.get("log.dirs", "").strip() or self.values.get("log.dir", "").strip()
        return list(dict.fromkeys(part.strip().rstrip("/") for part in text.split(",") if part.strip()))

    @property
    def metadata_dir(self) -> str:
        """The directory of the metadata log: that of the setting, else the first one listed; "" without either."""
        return self.values.get("metadata.log.dir", "").strip().rstrip("/") or next(iter(self.listed_dirs), "")

    @property
    def lacking_dirs(self) -> list[str]:
        """Listed directories that are no log directory here; all of them where only their number tells that some lack."""
        listed = self.listed_dirs
        listed_names = {Path(path).name for path in listed}
        names = {log_dir.path.name for log_dir in self.log_dirs}
        if listed_names & names and len(listed_names) == len(listed):
            return [path for path in listed if Path(path).name not in names]
        # The copies have other names than the directories.
        metadata = Path(self.values.get("metadata.log.dir", "").strip()).name
        there = len(self.log_dirs) - (bool(metadata) and metadata not in listed_names)
        return listed if 0 < there < len(listed) else []

    def is_there(self, listed: str) -> bool:
        """Whether a folder of a listed directory's name is beside the log directories: one that holds nothing yet."""
        return any((log_dir.path.parent / Path(listed).name).is_dir() for log_dir in self.log_dirs)


def settings_in(evidence: FoundEvidence) -> Iterator[Settings]:
    """Every `server.properties` that stands in the folder of a broker's log directories, or one or two folders above.

    Directories of several brokers have one where it lists all of them: a disk of another broker was mounted.
    """
    folders: dict[Path, list[LogDir]] = {}
    for log_dir in evidence.log_dirs:
        if log_dir.is_whole and log_dir.is_marked:
            above = [log_dir.path, *log_dir.path.parents[:2]]
            inside = [folder for folder in above if folder.is_relative_to(log_dir.root.path)]
            for folder in inside:
                folders.setdefault(folder, []).append(log_dir)
    for folder, log_dirs in folders.items():
        is_shared = len({(log_dir.broker_id, log_dir.moment) for log_dir in log_dirs}) > 1
        for path in _properties_files(folder):
            try:
                values = parse_properties(read_lenient(path, LARGEST))
            except (OSError, FormatError):
                continue
            settings = Settings(path, log_dirs[0].root, values, tuple(log_dirs))
            if not is_shared or settings.lists_all_together:  # else whose the file is nobody knows
                yield settings


def _properties_files(folder: Path) -> list[Path]:
    candidates = (folder / below / "server.properties" for below in ("", "config", "conf"))
    return [path for path in candidates if path.is_file() and not path.is_symlink()]


def lacking_dirs(evidence: FoundEvidence) -> tuple[LackingDir, ...]:
    """The directories that brokers' `log.dirs` list and the evidence has no copy of; empty folders beside are copies."""
    return tuple(
        LackingDir(log_dir.broker_id, log_dir.moment, path)
        for settings in settings_in(evidence)
        for log_dir in settings.log_dirs[:1]
        for path in settings.lacking_dirs
        if not settings.is_there(path)
    )
