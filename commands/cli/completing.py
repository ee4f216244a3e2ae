"""Names that a shell proposes: topics, groups, brokers, principals of the cluster that the line names, topics of its evidence.

Whoever presses Tab waits at most `LONGEST` seconds for a cluster; its names, or that it gave none, are kept for a
minute in the user's cache folder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from kctl.errors import KctlError

if TYPE_CHECKING:
    from pathlib import Path

    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import ClusterState
    from kctl.settings import Context
    from kctl.wire.adapter import Wire

LONGEST = 2.0  # seconds
FRESH = 60.0  # seconds
MOST = 1000
MOST_FOLDERS = 2000
# Group ids may hold anything; a shell gets only what it needs not quote.
PLAIN = r"[\w.:@/+=-]+"


def topics(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Topics of the paths given so far, where the command has paths; else those of the cluster."""
    if path_options := {"paths", "sources"} & set(ctx.params):
        # Where an option lacks its value, as it does now, click has left the arguments unparsed.
        paths = ctx.params[path_options.pop()] or tuple(filter(os.path.isdir, ctx.args))
        return _told_from_options(param, begun, _of_folders(paths))
    return _told_from_options(param, begun, _of_cluster(ctx, "topics", _topics))


def groups(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Groups of the cluster."""
    return _told_from_options(param, begun, _of_cluster(ctx, "groups", _groups))


def principals(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Principals that rules or credentials of the cluster name."""
    return _told_from_options(param, begun, _of_cluster(ctx, "principals", _principals))


def users(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Users of the cluster with credentials."""
    return _told_from_options(param, begun, _of_cluster(ctx, "users", _users))


def resources(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Kinds of resources; behind one the names of the cluster's topics, groups or users' principals."""
    listers = {"topic": topics, "group": groups, "user": principals}
    kind, colon, name = begun.partition(":")
    if colon:
        named = listers[kind](ctx, param, name) if kind in listers else []
        return [f"{kind}:{one}" for one in named]
    kinds = [*(f"{kind}:" for kind in listers), "transactional_id:", "delegation_token:", "cluster"]
    return _begun(begun, kinds)


def tokens(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Ids of the delegation tokens that the user may see."""
    return _begun(begun, _of_cluster(ctx, "tokens", _tokens))


def brokers(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Ids of the cluster's brokers; after a comma those that are not in the list yet."""
    before, comma, last = begun.rpartition(",")
    listed = before.split(",")
    known = _of_cluster(ctx, "brokers", _brokers)
    return [before + comma + name for name in _begun(last, known) if name not in listed]


def entities(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Names of the kind of entity that the line gave, where the cluster lists them."""
    lister = {"topics": topics, "brokers": brokers, "broker-loggers": brokers, "groups": groups}
    kind = ctx.params.get("entity_type")
    return lister[kind](ctx, param, begun) if kind in lister else []


def journal_entries(ctx: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Ids of the journal's changes, the last first."""
    from kctl.changes.journal_folder import journal_folder

    try:
        names = sorted((path.stem for path in journal_folder().glob("*.json")), reverse=True)
    except (OSError, RuntimeError):  # nobody knows the user's home
        return []
    return _begun(begun, names)


def _begun(begun: str, names: list[str]) -> list[str]:
    return list(
        islice((name for name in names if name.startswith(begun) and re.fullmatch(PLAIN, name)), MOST)
    )


def _told_from_options(param: click.Parameter, begun: str, names: list[str]) -> list[str]:
    """The names that begin so; as an argument one with `-` only where one was begun, which is behind `--`."""
    if isinstance(param, click.Argument) and not begun:
        names = [name for name in names if not name.startswith("-")]
    return _begun(begun, names)


def _of_folders(paths: tuple[str, ...]) -> list[str]:
    """Topics of the partition folders below the paths, or below the working folder; of a large tree only some."""
    from formats.log_dir.file_names import parse_partition_folder

    def folders() -> Iterator[str]:
        until = time.monotonic() + LONGEST
        for path in paths or (".",):
            for folder, _, files in os.walk(path):
                if time.monotonic() > until:
                    return
                if any(name.endswith(".log") and name[:-4].isdigit() for name in files):
                    yield os.path.basename(os.path.abspath(folder))

    partition_folders = (parse_partition_folder(name) for name in islice(folders(), MOST_FOLDERS))
    return sorted({folder.topic for folder in partition_folders if folder})


def _of_cluster(ctx: click.Context, kind: str, ask: Callable[[Context], list[str]]) -> list[str]:
    """Names of the cluster, from the cache where it is fresh, else asked for; the last ones known where none come."""
    from hashlib import sha256

    from kctl.settings import read_context

    settings: dict[str, Any] = {}
    at: click.Context | None = ctx
    while at is not None:
        for name in ("context", "zookeeper", "bootstrap_server", "command_config"):
            if at.params.get(name):
                settings.setdefault(name, at.params[name])
        at = at.parent
    try:
        context = read_context(settings, warn=lambda _: None)
    except (KctlError, RuntimeError):  # the command will say so
        return []
    # Completion must not prompt, and a command that prints a password may do so.
    context = context._replace(sasl_password_command=None, tls_key_password_command=None)
    cluster = f"{context.zookeeper} {context.bootstrap_server}"
    file = _cache() / f"{kind}-{sha256(cluster.encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.json"
    names, age = _read_names(file)
    if age > FRESH:
        answer = _within(LONGEST, lambda: ask(context))
        names = names if answer is None else answer
        _write_names(file, names)
    return names


def _cache() -> Path:
    """The folder of names. XDG_CACHE_HOME is to be absolute: the working folder may be evidence."""
    from pathlib import Path

    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return Path(os.path.expanduser(folder if folder.is_absolute() else "~/.cache")) / "kctl" / "names"


def _within(seconds: float, ask: Callable[[], list[str]]) -> list[str] | None:
    """The answer; None where it fails or takes longer: then the thread ends with the process."""
    from threading import Thread

    answers: list[list[str]] = []

    def answer() -> None:
        try:
            answers.append(ask())
        except Exception:  # of a library too: a shell that completes shows no errors
            return

    thread = Thread(target=answer, daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def _read_names(path: Path) -> tuple[list[str], float]:
    """The names of a file of the cache, and how many seconds old it is."""
    import msgspec

    from kctl.files import read_whole

    try:
        names = msgspec.json.decode(read_whole(path), type=list[str])
        return names, abs(time.time() - path.stat().st_mtime)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return [], float("inf")


def _write_names(path: Path, names: list[str]) -> None:
    import tempfile
    from pathlib import Path

    import msgspec

    if not path.is_absolute():  # nobody knows the user's home
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            aside = Path(folder) / path.name
            aside.write_bytes(msgspec.json.encode(names))
            aside.chmod(0o600)
            os.replace(aside, path)
    except OSError:  # no room: it is asked again
        return


def _topics(context: Context) -> list[str]:
    return sorted(_state(context).topic_names)


def _brokers(context: Context) -> list[str]:
    return [str(broker_id) for broker_id in sorted(_state(context).brokers)]


def _state(context: Context) -> ClusterState:
    """The names of a cluster. Raises KctlError."""
    with _cluster(context) as cluster:
        return cluster.read_state((), partition_states=False, recent=True)


def _principals(context: Context) -> list[str]:
    from kctl.access_sources.live import view_of

    named = {f"User:{name}" for name in _users(context)}
    with (
        suppress(KctlError),
        _cluster(context) as cluster,
    ):  # without an authorizer there are users all the same
        named |= {acl.principal for acl in view_of(cluster, rules_only=True).acls}
    return sorted(named)


def _users(context: Context) -> list[str]:
    with suppress(KctlError), _cluster(context) as cluster:
        return sorted(cluster.scram_users([]))
    return []


def _tokens(context: Context) -> list[str]:
    from kctl.access_sources.live import tokens_of

    with _cluster(context) as cluster:
        return [token.token_id for token in tokens_of(cluster, [])]


def _cluster(context: Context) -> Cluster:
    """The cluster of a line. Raises KctlError."""
    if context.bootstrap_server:
        from kctl.wire.cluster import AdminCluster

        return AdminCluster(_wire(context), needs_controller=False)
    from kctl.zookeeper import connection
    from kctl.zookeeper.cluster import ZookeeperCluster

    ensemble = connection.Ensemble(connection.access_from(context, timeout=LONGEST, read_only=True))
    return ZookeeperCluster(ensemble)


def _groups(context: Context) -> list[str]:
    from kctl.wire.groups import list_groups

    with _wire(context) as wire:
        return [group.group for group in list_groups(wire)[0]]


def _wire(context: Context) -> Wire:
    from kctl.wire import adapter

    return adapter.Wire(adapter.access_from(context, context.bootstrap_server or "", LONGEST))
