"""Znode exports: a file with every znode of a cluster as one JSON object a line.

Paths may hold the cluster's chroot (`/kafka/brokers/ids`) or not; what comes back is always as the broker
sees it. An export may be gzipped.
"""

from __future__ import annotations

import base64
import gzip
import re
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec

from formats.values import Struct
from kctl.errors import UnreadableFile, file_error, reason_of
from kctl.files import open_file

# Kafka's own top-level znodes that every cluster has (`K:zk/ZkData.scala @ 3.9.0`, PersistentZkPaths).
LANDMARKS = ("/brokers/ids", "/brokers/topics", "/config/topics", "/controller_epoch", "/cluster/id")

LONGEST_LINE = 16 << 20  # bytes; a znode has less than one MiB unless `jute.maxbuffer` was raised
LARGEST_EXPORT = 192 << 20  # bytes in memory: a cluster of 200,000 partitions fits
ZNODE_SIZE = 300  # bytes of one in memory, without its path and data


class ExportedZnode(Struct, frozen=True):
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
    below_root = {}
    for name in list(exported):
        znode = exported.pop(name)
        if name == root or name.startswith(f"{root}/"):
            inside = name[len(root) :] or "/"
            below_root[inside] = ExportedZnode(
                inside, *(getattr(znode, f) for f in ExportedZnode.__struct_fields__[1:])
            )
    return below_root


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
        return error.message.removeprefix(f"{path}: ")
    return None


def _lines(path: Path) -> Iterator[tuple[str, ExportedZnode]]:
    try:
        with open_file(path, follow=True) as packed:
            file = gzip.GzipFile(fileobj=packed) if path.suffix == ".gz" else packed
            size = 0
            for number in count(1):
                line = file.readline(LONGEST_LINE + 1)
                if not line:
                    return
                if len(line) > LONGEST_LINE:
                    raise UnreadableFile(
                        f"{path}: line {number} has more than {LONGEST_LINE:,} bytes",
                        "it is not an export of znodes: give a file that `kctl znode export` wrote",
                    )
                size += ZNODE_SIZE
                if line.strip():
                    znode = _znode(line, path, number)
                    size += len(znode.path) + len(znode.data or b"")
                    yield znode.path, znode
                if size > LARGEST_EXPORT:
                    raise UnreadableFile(
                        f"{path}: up to line {number} it needs {LARGEST_EXPORT >> 20} MiB",
                        "it may hold more than Kafka's znodes: export below Kafka's chroot only",
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise file_error(path, error) from error


class _Row(msgspec.Struct):
    """A line; what else stands in it is passed over, however deep."""

    path: str
    data: str | None = None
    version: int = 0
    czxid: int = 0
    mzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    ephemeral_owner: int = msgspec.field(default=0, name="ephemeralOwner")
    pzxid: int = 0
    cversion: int = 0


_decoder = msgspec.json.Decoder(_Row)


def _znode(line: bytes, path: Path, number: int) -> ExportedZnode:
    try:
        name, data, *numbers = msgspec.structs.astuple(_decoder.decode(line))
        if NO_PATH.search(name):
            raise ValueError("not a znode path")
        return ExportedZnode(name, None if data is None else base64.b64decode(data, validate=True), *numbers)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UnreadableFile(
            f"{path}: no znode at line {number} ({reason_of(error)})",
            "export it again with `kctl znode export`, or remove the line",
        ) from error


# What ZooKeeper lets no path hold (`PathUtils.validatePath @ 3.8`): empty names, `.` and `..`, control characters,
# lone surrogates and characters without a meaning of their own.
NO_PATH = re.compile(
    r"\A(?!/)|//|(?<=.)/\Z|/\.{1,2}(/|\Z)|[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]", re.DOTALL
)
