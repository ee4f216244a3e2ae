"""Znode exports: a file with every znode of a cluster as one JSON object a line.

Paths may hold the cluster's chroot (`/kafka/brokers/ids`) or not; what comes back is always as the broker
sees it. An export may be gzipped.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import UnreadableFile, reason_of

# Kafka's own top-level znodes that every cluster has (`K:zk/ZkData.scala @ 3.9.0`, PersistentZkPaths).
LANDMARKS = ("/brokers/ids", "/brokers/topics", "/config/topics", "/controller_epoch", "/cluster/id")


@dataclass(frozen=True, slots=True)
class ExportedZnode:
    """A znode as it was exported; times in milliseconds, `ephemeral_owner` 0 for a persistent one."""

    path: str
    data: bytes | None
    version: int = 0
    czxid: int = 0
    mzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    ephemeral_owner: int = 0
    pzxid: int = 0
    cversion: int = 0

    @property
    def zxid(self) -> int:
        """The last transaction that touched it."""
        return max(self.czxid, self.mzxid, self.pzxid)


def read_znodes(path: Path) -> dict[str, ExportedZnode]:
    """Every znode by its path below the chroot. `UnreadableFile` names the line that is no znode."""
    exported = dict(_lines(path))
    root = chroot_of(exported)
    if not root:
        return exported
    kept = {}
    for name, znode in exported.items():
        if name == root or name.startswith(f"{root}/"):
            inside = name[len(root) :] or "/"
            kept[inside] = ExportedZnode(inside, *(getattr(znode, f) for f in ExportedZnode.__slots__[1:]))
    return kept


def chroot_of(paths: dict[str, ExportedZnode]) -> str:
    """The chroot that the paths hold, empty where they hold none."""
    roots: dict[str, int] = {}
    for path in paths:
        for landmark in LANDMARKS:
            if path.endswith(landmark):
                root = path[: -len(landmark)]
                roots[root] = roots.get(root, 0) + 1
    return max(sorted(roots, key=len), key=lambda root: roots[root], default="")


def greatest_zxid(path: Path) -> int:
    """The newest transaction that an export knows of; 0 where it says nothing of them."""
    return max((znode.zxid for _, znode in _lines(path)), default=0)


def trouble_with(path: Path) -> str | None:
    """Why an export cannot be read; None where it can."""
    try:
        greatest_zxid(path)
    except UnreadableFile as error:
        return str(error).removeprefix(f"{path}: ")
    return None


def _lines(path: Path) -> Iterator[tuple[str, ExportedZnode]]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    znode = _znode(line, path, number)
                    yield znode.path, znode
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(f"{path}: {reason_of(error)}") from error


def _znode(line: bytes, path: Path, number: int) -> ExportedZnode:
    try:
        row = json.loads(line)
        name = row["path"]
        if not isinstance(name, str) or not name.startswith("/"):
            raise ValueError("path is no znode path")
        data = row.get("data")
        numbers = (_whole(row, key) for key in STAT)
        return ExportedZnode(name, None if data is None else base64.b64decode(data, validate=True), *numbers)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise UnreadableFile(f"{path}: no znode at line {number} ({error})") from error


STAT = ("version", "czxid", "mzxid", "ctime", "mtime", "ephemeralOwner", "pzxid", "cversion")


def _whole(row: dict[str, object], key: str) -> int:
    value = row.get(key, 0)
    if not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}")
    return value
