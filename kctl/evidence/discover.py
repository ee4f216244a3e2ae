"""What the folders given hold. Nothing has to be configured; `--broker` and `--moment` settle what names do not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from formats.log_dir.file_names import parse_partition_folder
from formats.values import replace
from kctl.errors import BadValue
from kctl.evidence.identity import Identity, named_broker_id, read_identity
from kctl.evidence.model import (
    BrokerLog,
    BrokerLogKind,
    FoundEvidence,
    LogDir,
    Replica,
    Tier,
    ZnodeExport,
)
from kctl.evidence.moments import colliding, moment_folders, moment_of
from kctl.evidence.names import LOG_DIR_FILES
from kctl.evidence.order import ordered_moments
from kctl.evidence.walk import FoundLogDir, Walked, walk
from kctl.findings import evidence as say

PathLike = str | os.PathLike[str]


def discover(
    paths: Sequence[PathLike], *, brokers: Sequence[str] = (), moments: Sequence[str] = ()
) -> FoundEvidence:
    """The evidence below the paths.

    `brokers` holds texts `ID=FOLDER`, `moments` texts `NAME=FOLDER`; folders that are not below the paths
    count as given too. `BadValue` where one of these has not that form.
    """
    broker_folders = {folder: int(name) for name, folder in _pairs(brokers, "--broker", "ID")}
    moment_names = {folder: name for name, folder in _pairs(moments, "--moment", "NAME")}
    given = [Path(os.path.realpath(path)) for path in paths]
    more = [
        folder
        for folder in dict.fromkeys((*broker_folders, *moment_names))
        if not any(folder.is_relative_to(one) for one in given)
    ]
    found = walk([*paths, *map(str, more)])
    identities = {path: read_identity(path) for path in found.log_dirs}
    ids = {
        path: _broker_id(one, identities[path], broker_folders, found) for path, one in found.log_dirs.items()
    }
    folders = moment_folders(found.log_dirs, ids, moment_names)
    log_dirs = [
        _log_dir(found.log_dirs[path], ids[path], identities[path], folders)
        for path in sorted(found.log_dirs)
    ]
    _say_what_is_odd(found, log_dirs, identities)
    return _evidence(found, log_dirs, folders, broker_folders, tuple(moment_names.values()))


def _pairs(texts: Iterable[str], option: str, what: str) -> Iterable[tuple[str, Path]]:
    for text in texts:
        from formats.whole_numbers import whole_number  # most commands have no such option

        name, equals, folder = text.partition("=")
        if not equals or not name or not folder or (what == "ID" and whole_number(name) is None):
            raise BadValue(
                f"{option} {text!r} is not {what}=FOLDER", "write the name, an equals sign and the folder"
            )
        yield name, Path(os.path.realpath(folder))


def _broker_id(one: FoundLogDir, identity: Identity, given: Mapping[Path, int], found: Walked) -> int | None:
    for folder in (one.path, *one.path.parents):
        if folder in given:
            return given[folder]
    named = named_broker_id(one.path, one.root.path)
    if identity.broker_id is not None:
        if named is not None and named != identity.broker_id:
            found.say(say.BROKER_DIFFERS, _within(one), one.root, stored=identity.broker_id, named=named)
        return identity.broker_id
    return named


def _within(one: FoundLogDir) -> Path:
    """The log directory, or the folder given where only that part of it was."""
    return one.path if one.path.is_relative_to(one.root.path) else one.root.path


def _log_dir(
    one: FoundLogDir, broker_id: int | None, identity: Identity, folders: Mapping[Path, str]
) -> LogDir:
    return LogDir(
        path=one.path,
        root=one.root,
        broker_id=broker_id,
        moment=moment_of(one.path, folders),
        cluster_id=identity.cluster_id,
        directory_id=identity.directory_id,
        is_kraft=identity.is_kraft,
        # Of a folder whose partition was given alone nothing was listed.
        is_marked=one.is_marked or any(os.path.exists(one.path / name) for name in LOG_DIR_FILES),
        is_whole=one.is_whole,
        is_clean=os.path.exists(one.path / ".kafka_cleanshutdown"),
        files=one.files,
    )


def _broker_logs(
    found: Walked,
    log_dirs: list[LogDir],
    folders: Mapping[Path, str],
    broker_folders: Mapping[Path, int],
) -> list[BrokerLog]:
    if not found.broker_logs and not found.maybe_logs:
        return []
    from kctl.evidence.broker_logs import broker_id_of_logs, is_broker_log, own_broker_id

    broker_logs = [
        BrokerLog(path, root, kind, None, moment_of(path, folders))
        for path, root, kind in sorted(found.broker_logs, key=lambda log_file: log_file[0])
    ]
    captured = [
        BrokerLog(path, root, BrokerLogKind.STDOUT, None, moment_of(path, folders))
        for path, root in sorted(found.maybe_logs, key=lambda log_file: log_file[0])
        if is_broker_log(path)
    ]
    ids = broker_id_of_logs([*broker_logs, *captured], log_dirs, broker_folders)
    broker_logs = [replace(log_file, broker_id=ids[log_file.path.parent]) for log_file in broker_logs]
    for one in captured:
        own = own_broker_id(one)
        broker_logs.append(replace(one, broker_id=ids[one.path.parent] if own is None else own))
    return broker_logs


def _evidence(
    found: Walked,
    log_dirs: list[LogDir],
    folders: Mapping[Path, str],
    broker_folders: Mapping[Path, int],
    given_moments: tuple[str, ...],
) -> FoundEvidence:
    replicas, loose = [], []
    for log_dir in log_dirs:
        for name in sorted(found.log_dirs[log_dir.path].partitions):
            parsed = parse_partition_folder(name)
            folder = log_dir.path / name
            if parsed is None:
                loose.append((folder, log_dir))
            else:
                replicas.append(Replica(parsed.topic, parsed.partition, parsed.kind, folder, log_dir))
    broker_logs = _broker_logs(found, log_dirs, folders, broker_folders)
    return FoundEvidence(
        roots=found.roots,
        log_dirs=tuple(log_dirs),
        replicas=tuple(replicas),
        broker_logs=tuple(broker_logs),
        tiers=tuple(Tier(p, r, moment_of(p, folders)) for p, r in sorted(found.tiers.items())),
        znode_exports=tuple(
            ZnodeExport(p, r, moment_of(p, folders)) for p, r in sorted(dict(found.znodes).items())
        ),
        files=tuple(found.files),
        others=tuple(found.others),
        loose_folders=tuple(loose),
        findings=tuple(found.findings),
        failures=tuple(found.failures),
        given_moments=given_moments,
        order_of=ordered_moments,
    )


def _say_what_is_odd(found: Walked, log_dirs: list[LogDir], identities: Mapping[Path, Identity]) -> None:
    """Findings about the evidence as a whole."""
    clusters = sorted({log_dir.cluster_id for log_dir in log_dirs if log_dir.cluster_id})
    if len(clusters) > 1:
        root = found.roots[0]
        found.say(say.SEVERAL_CLUSTERS, root.path, root, count=len(clusters), clusters=", ".join(clusters))
    for one in log_dirs:
        trouble = identities[one.path].trouble
        if trouble and one.is_whole:
            found.say(say.META_PROPERTIES_BAD, one.path / "meta.properties", one.root, reason=trouble)
        elif (line := identities[one.path].unwritten_line) is not None and one.is_whole:
            found.say(say.META_PROPERTIES_UNUSUAL, one.path / "meta.properties", one.root, line=line)
        elif one.broker_id is None and one.is_marked and one.is_whole:
            found.say(say.BROKER_UNKNOWN, one.path, one.root, what="log directory")
    for path, root in dict(found.znodes).items():
        from kctl.evidence.znodes import trouble_with

        reason = trouble_with(path) if root.is_folder else None
        if reason is not None:
            found.say(say.ZNODES_BAD, path, root, reason=reason)
    same: dict[tuple[int, str | None], list[LogDir]] = {}
    for one in log_dirs:
        if one.broker_id is not None:
            same.setdefault((one.broker_id, one.moment), []).append(one)
    for ones in same.values():
        for a, b, both in colliding(found.log_dirs[one.path] for one in ones):
            names = f"{a.path.name}, {b.path.name}"
            for name in sorted(both):
                found.say(
                    say.DUPLICATE_REPLICA, b.path / name, b.root, partition=name, count=2, folders=names
                )
