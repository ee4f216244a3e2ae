"""Owner and mode of the files of a log directory, held against those of their neighbours.

A broker runs as one user and opens each file for reading and writing. A copy often loses owners: then all files have
one, and nothing is said.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from formats.values import replace
from kctl.evidence.model import FoundEvidence, LogDir, encodable
from kctl.findings import Finding
from kctl.findings import directories as codes


class Access(NamedTuple):
    """What decides who may open a file: its owner, and whether the owner may read and write it."""

    uid: int
    gid: int
    is_open: bool

    @property
    def who(self) -> str:
        """The owner in words."""
        return f"uid {self.uid}, gid {self.gid}"


class Owned(NamedTuple):
    """A file or partition folder of a log directory."""

    path: str
    access: Access
    mode: int


def owner_findings(evidence: FoundEvidence) -> Iterator[Finding]:
    """For each log directory, a finding for every owner that few of its files have, and one for files not open to theirs."""
    for log_dir in evidence.log_dirs:
        if not log_dir.is_whole or not log_dir.is_marked:
            continue
        by_access: dict[Access, list[Owned]] = defaultdict(list)
        for owned in _owned(log_dir):
            by_access[owned.access].append(owned)
        if len(by_access) < 2:
            continue
        owners = Counter[tuple[int, int]]()
        for access, files in by_access.items():
            owners[access.uid, access.gid] += len(files)
        usual = owners.most_common(1)[0][0]
        is_usually_open = 2 * sum(len(f) for a, f in by_access.items() if a.is_open) > owners.total()
        for access, files in sorted(by_access.items()):
            is_strange = (access.uid, access.gid) != usual
            if not is_strange and (access.is_open or not is_usually_open):
                continue
            first = min(files)
            place = evidence.place_of(log_dir.path / first.path, log_dir.root)
            place = replace(place, broker_id=log_dir.broker_id, moment=log_dir.moment)
            names = encodable(first.path)
            if is_strange:
                yield codes.OTHER_OWNER.at(
                    place, severity=None, count=len(files), owner=access.who, usual=Access(*usual, True).who, name=names,
                    total=owners.total(),
                )  # fmt: skip
            else:
                yield codes.NOT_OPEN_TO_OWNER.at(
                    place, count=len(files), total=owners.total(), mode=f"{first.mode:04o}", name=names
                )


def has_owners(log_dir: LogDir) -> bool:
    """Whether files of the directory have different owners, or modes of their own: a copy seldom keeps either."""
    return len({owned.access for owned in _owned(log_dir)}) > 1


def _owned(log_dir: LogDir) -> Iterator[Owned]:
    """The files that Kafka opens: those of the directory itself, partition folders and the files in them."""
    for entry in _entries(os.fspath(log_dir.path)):
        if entry.is_file(follow_symlinks=False):
            yield _owned_entry(entry.name, entry)
        elif entry.is_dir(follow_symlinks=False) and "-" in entry.name:
            yield _owned_entry(entry.name, entry)
            for below in _entries(entry.path):
                if below.is_file(follow_symlinks=False):
                    yield _owned_entry(os.path.join(entry.name, below.name), below)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []  # a finding of the evidence


def _owned_entry(path: str, entry: os.DirEntry[str]) -> Owned:
    status = entry.stat(follow_symlinks=False)
    wanted = stat.S_IRWXU if stat.S_ISDIR(status.st_mode) else stat.S_IRUSR | stat.S_IWUSR
    access = Access(status.st_uid, status.st_gid, status.st_mode & wanted == wanted)
    return Owned(path, access, stat.S_IMODE(status.st_mode))
