"""Find the evidence in folders. Nothing is configured; `--broker` and `--moment` tell what names do not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from formats.log_dir.file_names import META_PROPERTIES, parse_partition_folder
from formats.values import replace
from kctl.errors import BadValue, KctlError
from kctl.evidence.copies import CopyNotes, notes_of
from kctl.evidence.identity import Identity, named_broker_id, read_identity
from kctl.evidence.model import (
    BrokerLog,
    BrokerLogKind,
    FoundEvidence,
    LackingDir,
    LogDir,
    LogLeft,
    Replica,
    Tier,
    ToldCluster,
    ZnodeExport,
    encodable,
)
from kctl.evidence.moments import colliding, moment_folders, moment_of
from kctl.evidence.names import LOG_DIR_FILES, is_read_beside_logs
from kctl.evidence.order import ordered_moments
from kctl.evidence.walk import FoundLogDir, Walked, walk
from kctl.findings import evidence as codes
from kctl.findings import manifest as manifest_codes

MOST_LOOKED_AT = 2000
"""Files without the name of a log that are looked into for lines of one, each at its start alone."""
PathLike = str | os.PathLike[str]


def discover(
    paths: Sequence[PathLike], *, brokers: Sequence[str] = (), moments: Sequence[str] = ()
) -> FoundEvidence:
    """The evidence below the paths.

    `brokers` holds texts `ID=FOLDER`, `moments` texts `NAME=FOLDER`; folders that are not below the paths
    count as given too. `BadValue` where one of these has not that form.
    """
    broker_folders = given_broker_folders(brokers)
    moment_names = {folder: name for name, folder in _pairs(moments, "--moment", "NAME")}
    given_paths = [Path(os.path.realpath(path)) for path in paths]
    outside = [
        folder
        for folder in dict.fromkeys((*broker_folders, *moment_names))
        if not any(folder.is_relative_to(log_dir) for log_dir in given_paths)
    ]
    walked = walk([*paths, *map(str, outside)])
    identities = {path: read_identity(path) for path in walked.log_dirs}
    ids = {
        path: _broker_id(log_dir, identities[path], broker_folders, walked)
        for path, log_dir in walked.log_dirs.items()
    }
    folders = moment_folders(walked.log_dirs, ids, moment_names)
    log_dirs = [
        _log_dir(walked.log_dirs[path], ids[path], identities[path], folders)
        for path in sorted(walked.log_dirs)
    ]
    _add_findings(walked, log_dirs, identities)
    return _evidence(walked, log_dirs, folders, broker_folders, tuple(moment_names.values()))


def given_broker_folders(texts: Iterable[str]) -> dict[Path, int]:
    """The broker ids of texts `ID=FOLDER`, by folder; `BadValue` where one has not that form."""
    return {folder: int(name) for name, folder in _pairs(texts, "--broker", "ID")}


def _pairs(texts: Iterable[str], option: str, name_form: str) -> Iterable[tuple[str, Path]]:
    for text in texts:
        from formats.whole_numbers import whole_number  # most commands have no such option

        name, equals, folder = text.partition("=")
        if not equals or not name or not folder or (name_form == "ID" and whole_number(name) is None):
            raise BadValue(
                f"{option} {text!r} is not {name_form}=FOLDER",
                "write the name, an equals sign and the folder",
            )
        yield name, Path(os.path.realpath(folder))


def _broker_id(
    log_dir: FoundLogDir, identity: Identity, broker_folders: Mapping[Path, int], walked: Walked
) -> int | None:
    for folder in (log_dir.path, *log_dir.path.parents):
        if folder in broker_folders:
            return broker_folders[folder]
    named = named_broker_id(log_dir.path, log_dir.root.path)
    if identity.broker_id is not None:
        if named is not None and named != identity.broker_id:
            walked.say(
                codes.BROKER_DIFFERS, _within(log_dir), log_dir.root, stored=identity.broker_id, named=named
            )
        return identity.broker_id
    return named


def _within(log_dir: FoundLogDir) -> Path:
    """The log directory, or the folder given where only that part of it was."""
    return log_dir.path if log_dir.path.is_relative_to(log_dir.root.path) else log_dir.root.path


def _log_dir(
    log_dir: FoundLogDir, broker_id: int | None, identity: Identity, folders: Mapping[Path, str]
) -> LogDir:
    return LogDir(
        path=log_dir.path,
        root=log_dir.root,
        broker_id=broker_id,
        moment=moment_of(log_dir.path, folders),
        cluster_id=identity.cluster_id,
        directory_id=identity.directory_id,
        is_kraft=identity.is_kraft,
        # Of a folder whose partition was given alone nothing was listed.
        is_marked=log_dir.is_marked or any(os.path.exists(log_dir.path / name) for name in LOG_DIR_FILES),
        is_whole=log_dir.is_whole,
        is_clean=os.path.exists(log_dir.path / ".kafka_cleanshutdown"),
        files=log_dir.files,
    )


def _broker_logs(
    walked: Walked,
    log_dirs: list[LogDir],
    folders: Mapping[Path, str],
    broker_folders: Mapping[Path, int],
) -> list[BrokerLog]:
    if not (walked.broker_logs or walked.maybe_logs or walked.maybe_exports):
        return []
    from kctl.evidence.broker_logs import broker_id_of_logs, is_broker_log, own_broker_id

    broker_logs = [
        BrokerLog(path, root, kind, None, moment_of(path, folders))
        for path, root, kind in sorted(walked.broker_logs, key=lambda log_file: log_file[0])
    ]
    captured = [
        BrokerLog(path, root, BrokerLogKind.STDOUT, None, moment_of(path, folders))
        for path, root in sorted(walked.maybe_logs, key=lambda log_file: log_file[0])
        if is_broker_log(path)
    ]
    captured += _exports(walked, [*broker_logs, *captured], folders)
    ids = broker_id_of_logs([*broker_logs, *captured], log_dirs, broker_folders)
    broker_logs = [replace(log_file, broker_id=ids[log_file.path.parent]) for log_file in broker_logs]
    for log in captured:
        own_id = own_broker_id(log)
        broker_logs.append(replace(log, broker_id=ids[log.path.parent] if own_id is None else own_id))
    return broker_logs


def _exports(walked: Walked, logs: list[BrokerLog], folders: Mapping[Path, str]) -> list[BrokerLog]:
    """The logs of other names, by what they hold. Beside logs those of several brokers, or of no known one, are left."""
    from kctl.evidence.broker_logs import ids_in_heads, start_of_export

    roots = {log.root for log in logs}
    log_folders = {log.path.parent for log in logs}
    files = sorted(walked.maybe_exports)
    for root in dict.fromkeys(root for _, root in files[MOST_LOOKED_AT:]):
        count = sum(other == root for _, other in files[MOST_LOOKED_AT:])
        walked.say(codes.NOT_LOOKED_INTO, root.path, root, count=count, most=MOST_LOOKED_AT)
    exports: list[BrokerLog] = []
    for path, root in files[:MOST_LOOKED_AT]:
        head = start_of_export(path)
        if head is None:
            continue
        ids = ids_in_heads([head]) if root in roots else set()
        if root in roots and not is_read_beside_logs(path, root.path, ids, log_folders):
            walked.logs_left.append(LogLeft(path, root, frozenset(ids)))
        else:
            exports.append(BrokerLog(path, root, BrokerLogKind.STDOUT, None, moment_of(path, folders)))
    return exports


def _evidence(
    walked: Walked,
    log_dirs: list[LogDir],
    folders: Mapping[Path, str],
    broker_folders: Mapping[Path, int],
    given_moments: tuple[str, ...],
) -> FoundEvidence:
    replicas, loose_folders, cut_off = [], [], []
    notes = _notes(walked)
    log_dirs = [
        replace(d, is_marked=False, is_fetched=True) if d.path in notes.fetched else d for d in log_dirs
    ]
    for log_dir in log_dirs:
        for name in sorted(walked.log_dirs[log_dir.path].partitions):
            parsed = parse_partition_folder(name)
            folder = log_dir.path / name
            if parsed is None:
                loose_folders.append((folder, log_dir))
                continue
            replica = Replica(parsed.topic, parsed.partition, parsed.kind, folder, log_dir)
            if folder in notes.cut_off:
                cut_off.append(replica)
                walked.say_cut_off(replica, notes.cut_off[folder])
            else:
                replicas.append(replica)
        # Folders that the copy planned and did not begin.
        begun = {*walked.log_dirs[log_dir.path].partitions}
        for folder, why in notes.cut_off.items():
            parsed = parse_partition_folder(folder.name) if folder.parent == log_dir.path else None
            if parsed is not None and folder.name not in begun:
                replica = Replica(parsed.topic, parsed.partition, parsed.kind, folder, log_dir)
                cut_off.append(replica)
                walked.say_cut_off(replica, why)
    broker_logs = _broker_logs(walked, log_dirs, folders, broker_folders)
    return FoundEvidence(
        roots=walked.roots,
        log_dirs=tuple(log_dirs),
        replicas=tuple(replicas),
        broker_logs=tuple(broker_logs),
        tiers=tuple(Tier(p, r, moment_of(p, folders)) for p, r in sorted(walked.tiers.items())),
        znode_exports=tuple(
            ZnodeExport(p, r, moment_of(p, folders)) for p, r in sorted(dict(walked.znodes).items())
        ),
        files=tuple(walked.files),
        told=tuple(ToldCluster(p, r, moment_of(p, folders)) for p, r in sorted(dict(walked.told).items())),
        unnamed_files=tuple(walked.unnamed_files),
        logs_left=tuple(walked.logs_left),
        loose_folders=tuple(loose_folders),
        findings=tuple(walked.findings),
        failures=tuple(walked.failures),
        given_moments=given_moments,
        cut_off=tuple(cut_off),
        unreached=tuple(notes.unreached),
        unread=tuple(sorted(notes.unread.items())),
        begun_later=tuple(sorted(notes.begun_later.items())),
        hashed=tuple(notes.hashed),
        clock_offsets=tuple(sorted(notes.clock_offsets.items())),
        order_of=ordered_moments,
        lacking_of=_lacking_dirs,
    )


def _lacking_dirs(evidence: FoundEvidence) -> tuple[LackingDir, ...]:
    from kctl.evidence.settings import lacking_dirs  # most commands compare no copies

    return lacking_dirs(evidence)


def _notes(walked: Walked) -> CopyNotes:
    """What the manifests say; findings for those that cannot be read, and for what they left out."""
    notes = notes_of({path: [root.path for root in roots] for path, roots in walked.manifests.items()})
    for path, reason in notes.troubles.items():
        walked.say(manifest_codes.MANIFEST_BAD, path, walked.manifests[path][0], reason=reason)
    for path, (line, *_) in notes.left_out.items():
        walked.say(
            manifest_codes.LEFT_OUT, path, walked.manifests[path][0],
            count=notes.counts[path], what=encodable(line.what), name=encodable(line.source), why=encodable(line.why),
        )  # fmt: skip
    for path in notes.hashed:
        walked.say(manifest_codes.HASHED, path, walked.manifests[path][0])
    for source, why in notes.unreached.items():
        path, (root, *_) = next(iter(walked.manifests.items()))
        walked.say(manifest_codes.UNREACHED, path, root, source=encodable(source), why=encodable(why))
    return notes


def _add_findings(walked: Walked, log_dirs: list[LogDir], identities: Mapping[Path, Identity]) -> None:
    """Findings about the evidence as a whole."""
    clusters = sorted({log_dir.cluster_id for log_dir in log_dirs if log_dir.cluster_id})
    if len(clusters) > 1:
        root = walked.roots[0]
        walked.say(codes.SEVERAL_CLUSTERS, root.path, root, count=len(clusters), clusters=", ".join(clusters))
    for log_dir in log_dirs:
        path, root, identity = log_dir.path, log_dir.root, identities[log_dir.path]
        if not log_dir.is_whole:
            continue
        if identity.trouble:
            walked.say(codes.META_PROPERTIES_BAD, path / META_PROPERTIES, root, reason=identity.trouble)
        elif identity.unwritten_line is not None:
            line = identity.unwritten_line
            walked.say(codes.META_PROPERTIES_UNUSUAL, path / META_PROPERTIES, root, line=line)
        elif log_dir.broker_id is None and log_dir.is_marked:
            walked.say(codes.BROKER_UNKNOWN, path, root, what="log directory")
    for path, root in dict(walked.znodes).items():
        from kctl.evidence.znodes import trouble_with

        reason = trouble_with(path) if root.is_folder else None
        if reason is not None:
            walked.say(codes.ZNODES_BAD, path, root, reason=reason)
    by_broker: dict[tuple[int, str | None], list[LogDir]] = {}
    for log_dir in log_dirs:
        if log_dir.broker_id is not None:
            by_broker.setdefault((log_dir.broker_id, log_dir.moment), []).append(log_dir)
    for same_broker in by_broker.values():
        for a, b, partitions in colliding(walked.log_dirs[log_dir.path] for log_dir in same_broker):
            names = f"{a.path.name}, {b.path.name}"
            for name in sorted(partitions):
                walked.say(
                    codes.DUPLICATE_REPLICA, b.path / name, b.root, partition=name, count=2, folders=names
                )


def refuse_nothing(evidence: FoundEvidence) -> None:
    """Raise KctlError where folders were opened and hold nothing that kctl knows: silence would read as health."""
    known = (evidence.log_dirs, evidence.broker_logs, evidence.tiers, evidence.znode_exports, evidence.files)
    if evidence.roots and not any(known):
        for finding in evidence.findings:
            if finding.code == codes.OF_ANOTHER_SYSTEM.code:
                raise KctlError(f"{finding.place.file}: {finding.message}", "nothing was examined")
    if evidence.roots and not any((*known, evidence.findings)):
        raise KctlError(
            f"{', '.join(root.given_path for root in evidence.roots)}: no log directory, broker log, znode export or tier "
            "found here",
            "nothing was examined; name a folder that holds one",
        )
