"""`kctl znode`: tree, show, export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.leaving import json_chunks
from commands.cli.options import GIVEN_PATH, flag, option
from commands.cli.render import Outcome, Page, Row, table
from kctl.errors import BadValue, KctlError
from kctl.rows.znodes import EXPORT, ZNODE, ZNODE_CONTENT

if TYPE_CHECKING:
    from kctl.zookeeper.store import Znode, ZnodeReader

STATUS = "0 done · 2 wrong usage · 3 no such znode, no connection · 4 the file exists"
EXPLAINED_STATUS = (
    "0 Kafka can read it · 2 wrong usage · 3 no such znode, no connection · 5 Kafka cannot read it"
)


def reader_of(frame: Frame, cluster: Any) -> ZnodeReader:
    """The znodes of a cluster. Raises KctlError for a cluster without ZooKeeper."""
    from kctl.zookeeper.cluster import RecordedCluster, ZookeeperCluster

    if isinstance(cluster, ZookeeperCluster):
        return cluster.store
    if isinstance(cluster, RecordedCluster):
        return cluster.reader
    raise KctlError(f"{cluster.location} has no znodes", "give --zookeeper or --snapshot")


def clean(path: str) -> str:
    """The path with one slash at the start and none at the end."""
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts) or "\0" in path:
        raise BadValue(f"{path!r} is not a znode path", "write it as /brokers/topics")
    return "/" + "/".join(parts)


def stat_values(path: str, node: Znode) -> dict[str, object]:
    """The keys that every row of a znode has."""
    from formats.znodes.catalogue import kind_of_znode

    match = kind_of_znode(path)
    stat = node.stat
    return {
        "path": path,
        "what": match[0].name if match else None,
        "size_in_bytes": len(node.data),
        "version": stat.version,
        "num_children": stat.num_children,
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "ctime": stat.ctime,
        "mtime": stat.mtime,
        "ephemeral_owner": f"0x{stat.ephemeral_owner & 2**64 - 1:x}" if stat.ephemeral_owner else None,
    }


@command("tree", paged=True, status=STATUS)
@reads
@click.argument("path", default="/")
@option("--depth N", "Maximum number of levels below PATH.", type=click.IntRange(0))
def tree(frame: Frame, at: At, path: str, depth: int | None) -> Outcome:
    """List znodes with sizes, ages and ephemeral owners.

    $ kctl znode tree
    $ kctl znode tree /brokers/topics --depth 1
    """
    from kctl.zookeeper.store import walk

    root = clean(path)
    deepest = None if depth is None else root.rstrip("/").count("/") + depth
    with at.open(frame) as cluster:
        reader = reader_of(frame, cluster)
        if reader.get(root) is None:
            raise KctlError(f"no znode {root} at {reader.location}", "`kctl znode tree` lists the znodes")
        listed = []
        for name, node in walk(reader, root):
            level = name.rstrip("/").count("/")
            if deepest is not None and level > deepest:
                break  # level by level: all later ones are deeper
            listed.append(ZNODE(**stat_values(name, node)))
    listed.sort(key=lambda row: str(row["path"]).replace("/", "\0"))  # a path right before those below it
    return Outcome(listed, text=tree_text)


def tree_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Paths indented by depth, sizes and ages to the right."""
    import time

    now = time.time() * 1000
    shown = []
    for row in rows:
        path = str(row["path"])
        depth = path.rstrip("/").count("/")
        ctime, mtime = row["ctime"], row["mtime"]
        assert isinstance(ctime, int) and isinstance(mtime, int)
        shown.append(
            {
                "znode": "  " * max(depth - 1, 0) + ("/" + path.rsplit("/", 1)[1]),
                "bytes": row["size_in_bytes"],
                "version": row["version"],
                "age": age(now - ctime),
                "changed": age(now - mtime),
                "session": row["ephemeral_owner"],
                "": row["what"],
            }
        )
    yield from table(shown, page)


def age(milliseconds: float) -> str:
    """`3 d`, `5 h`, `12 min`, `4 s`."""
    seconds = max(milliseconds / 1000, 0)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


@command("show", paged=True, status=EXPLAINED_STATUS)
@reads
@click.argument("path", nargs=-1, required=True)
@flag("--show-secrets", "Show credentials and passwords.")
def show(frame: Frame, at: At, path: tuple[str, ...], show_secrets: bool) -> Outcome:
    """Explain znodes: purpose, writer and content.

    $ kctl znode show /controller
    $ kctl znode show /brokers/topics/orders/partitions/0/state
    """
    rows = []
    with at.open(frame) as cluster:
        reader = reader_of(frame, cluster)
        names = list(map(clean, path))
        for name, node in zip(names, reader.get_many(names), strict=True):
            if node is None:
                frame.fail(f"no znode {name} at {reader.location}", "`kctl znode tree` lists the znodes")
            else:
                rows.append(explained(name, node, show_secrets=show_secrets))
    if any(row["problem"] for row in rows):
        frame.raise_status(5)
    return Outcome(rows, text=show_text)


def explained(path: str, node: Znode, *, show_secrets: bool) -> Row:
    """The row of a znode with its content explained."""
    import base64

    from formats.errors import FormatError
    from formats.secrets import redact
    from formats.znodes.catalogue import kind_of_znode

    content = node.data if show_secrets else redact(path, node.data)
    match = kind_of_znode(path)
    says: list[str] = []
    problem = None
    if match:
        try:
            says = match[0].words(match[1], node.data)
        except FormatError as error:
            problem = error.what
    try:
        text, encoded = content.decode("utf-8"), None
    except UnicodeDecodeError:
        text, encoded = None, base64.b64encode(content).decode()
    return ZNODE_CONTENT(
        **stat_values(path, node),
        written_by=match[0].written_by if match else None,
        since=match[0].since if match else None,
        meaning=match[0].what if match else None,
        says=says,
        problem=problem,
        data=text,
        data_base64=encoded,
        is_redacted=content != node.data,
    )


def show_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A paragraph for each znode."""
    from formats.znodes.catalogue import moment

    for row in rows:
        yield page.style(str(row["path"]), "bold") + (f"   {row['what']}" if row["what"] else "")
        if row["meaning"]:
            yield f"  {row['meaning']} Written by {row['written_by']}; since Kafka {row['since']}."
        assert isinstance(row["says"], list)
        yield from (f"  {line}" for line in row["says"])
        if row["problem"]:
            yield page.style(f"  Kafka cannot read it: {row['problem']}", "error")
        ctime, mtime = row["ctime"], row["mtime"]
        assert isinstance(ctime, int) and isinstance(mtime, int)
        about = f"version {row['version']}, created {moment(ctime)}, changed {moment(mtime)}"
        if row["ephemeral_owner"]:
            about += f", deleted with session {row['ephemeral_owner']}"
        yield page.style(f"  {about}", "dim")
        if row["data"]:
            yield f"  {row['data']}"


@command("export", status=STATUS)
@reads
@click.argument("file", type=GIVEN_PATH)
@flag("--show-secrets", "Show credentials and passwords.")
def export(frame: Frame, at: At, file: Path, show_secrets: bool) -> Outcome:
    """Export all znodes to a file.

    FILE is for --snapshot of the commands that read a cluster; `-` is standard output.

    $ kctl znode export znodes.jsonl
    $ kctl topic describe --snapshot znodes.jsonl
    """
    from kctl.zookeeper.connection import Ensemble
    from kctl.zookeeper.export import export_lines, export_to

    with at.open(frame) as cluster:
        reader = reader_of(frame, cluster)
        acls = reader.acl_many if isinstance(reader, Ensemble) else None
        lines = export_lines(reader, show_secrets=show_secrets, acls=acls)
        if str(file) == "-":
            written = list(json_chunks(lines))
            return Outcome(encoded=lambda form: written)
        done = export_to(file, lines)
    row = EXPORT(file=str(file), znodes=done.znodes, bytes=done.bytes, redacted=done.redacted)
    return Outcome([row], text=export_text)


def export_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """One sentence."""
    for row in rows:
        redacted = f", secrets of {row['redacted']} redacted" if row["redacted"] else ""
        yield f"{row['znodes']:,} znodes, {row['bytes']:,} bytes in {row['file']}{redacted}"
