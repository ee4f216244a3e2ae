"""All znodes of a cluster in one file, one JSON object a line, as in recordings of incidents.

Secrets are redacted unless asked for. The file is readable by its owner only, and an existing one is refused.
"""

import base64
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from formats.secrets import redact
from kctl.errors import KctlError, Refused, file_error
from kctl.zookeeper.store import Acl, Znode, ZnodeReader, walk

# Paths that ZooKeeper itself owns; without a chroot they are beside Kafka's.
NOT_KAFKA = "/zookeeper"
Acls = Callable[[Sequence[str]], list[list[Acl]]]
AT_ONCE = 1000  # znodes whose access lists are read together


class Exported(NamedTuple):
    """The numbers of an export."""

    znodes: int
    bytes: int
    redacted: int


def export_lines(
    reader: ZnodeReader, *, show_secrets: bool = False, acls: Acls | None = None
) -> Iterator[bytes]:
    """A line for each znode, parents first."""
    nodes = ((p, node) for p, node in walk(reader) if p != NOT_KAFKA and not p.startswith(NOT_KAFKA + "/"))
    while batch := list(islice(nodes, AT_ONCE)):
        lists = acls([path for path, _ in batch]) if acls else [None] * len(batch)
        for (path, node), acl in zip(batch, lists, strict=True):
            content = node.data if show_secrets else redact(path, node.data)
            yield json.dumps(_row(path, node, content, acl), ensure_ascii=True).encode() + b"\n"


def _row(path: str, node: Znode, content: bytes, acl: list[Acl] | None) -> dict[str, object]:
    stat = node.stat
    row: dict[str, object] = {"path": path, "data": base64.b64encode(content).decode()}
    try:
        row["data_text"] = content.decode("utf-8")
    except UnicodeDecodeError:
        row["data_text"] = None
    row |= {
        "version": stat.version,
        "cversion": stat.cversion,
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime": stat.ctime,
        "mtime": stat.mtime,
        "ephemeralOwner": stat.ephemeral_owner,
        "numChildren": stat.num_children,
        "dataLength": stat.data_length,
    }
    if content != node.data:
        row["redacted"] = True
    if acl is not None:
        row["acl"] = [{"perms": entry.permissions, "scheme": entry.scheme, "id": entry.id} for entry in acl]
    return row


def export_to(path: Path, lines: Iterator[bytes]) -> Exported:
    """Write an export. Raises Refused for an existing file, KctlError if it cannot be written."""
    znodes = size = redacted = 0
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise Refused(
            f"{path} already exists", "choose another name: an export is never overwritten"
        ) from None
    except OSError as error:
        raise file_error(path, error, KctlError) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            for line in lines:
                file.write(line)
                znodes, size = znodes + 1, size + len(line)
                redacted += b'"redacted": true' in line
    except BaseException as error:
        path.unlink(missing_ok=True)  # half an export would look complete
        if isinstance(error, OSError):
            raise file_error(path, error, KctlError) from error
        raise
    return Exported(znodes, size, redacted)
