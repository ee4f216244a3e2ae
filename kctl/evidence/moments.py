"""Copies of one broker from several moments: told apart by name, ordered by what is in them.

`moments/NAME/` names a moment; else, where one broker id has the same partition twice, the folder above the
broker's does. File times say nothing: a copy has the time of the copying.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from formats.log_dir.file_names import parse_partition_folder
from kctl.evidence.identity import read_identity
from kctl.evidence.names import broker_id_of
from kctl.evidence.walk import FoundLogDir

Broker = int | None
METADATA_LOG = "__cluster_metadata-0"


def moment_folders(
    log_dirs: Mapping[Path, FoundLogDir], brokers: Mapping[Path, Broker], moment_names: Mapping[Path, str]
) -> dict[Path, str]:
    """Folder to the moment that everything below it is from. Empty where there is one moment only."""
    folders = dict(moment_names)
    for path in log_dirs:
        _note_moments_folder(path, folders)
    by_broker: dict[int, list[FoundLogDir]] = defaultdict(list)
    for path, log_dir in log_dirs.items():
        broker_id = brokers[path]
        if broker_id is not None:
            by_broker[broker_id].append(log_dir)
    for same in by_broker.values():
        _tell_apart(same, folders)
    used = {moment_of(path, folders) for path in log_dirs}
    return folders if moment_names or len(used) > 1 else {}


def moment_of(path: Path, folders: Mapping[Path, str]) -> str | None:
    """The moment of the nearest folder at or above a path."""
    return next((folders[folder] for folder in (path, *path.parents) if folder in folders), None)


def _note_moments_folder(path: Path, folders: dict[Path, str]) -> None:
    for folder in (path, *path.parents):
        if folder.parent.name == "moments":
            folders.setdefault(folder, folder.name)
            return


def live_partitions(log_dir: FoundLogDir) -> set[str]:
    """Names of the partition folders that may be in one log directory of a broker only."""
    return {name for name in log_dir.partitions if (p := parse_partition_folder(name)) and p.kind == "live"}


def colliding(log_dirs: Iterable[FoundLogDir]) -> list[tuple[FoundLogDir, FoundLogDir, set[str]]]:
    """Pairs of log directories with the partitions that both hold."""
    with_partitions = [(log_dir, live_partitions(log_dir)) for log_dir in log_dirs]
    pairs = ((a, b, of_a & of_b) for (a, of_a), (b, of_b) in combinations(with_partitions, 2))
    return [pair for pair in pairs if pair[2]]


def _tell_apart(same: list[FoundLogDir], folders: dict[Path, str]) -> None:
    """Name moments for log directories of one broker that hold the same partitions."""
    pairs = [
        (a, b)
        for a, b, partitions in colliding(same)
        if moment_of(a.path, folders) == moment_of(b.path, folders) and _is_the_same_dir(a, b, partitions)
    ]
    unnamed = [log_dir for log_dir in same if moment_of(log_dir.path, folders) is None]
    if not pairs and not (len(unnamed) < len(same) and unnamed and colliding(same)):
        return
    chains = {log_dir.path: _chain(log_dir.path) for log_dir in unnamed or same}
    pairs = [(a, b) for a, b in pairs if a.path in chains and b.path in chains]
    chain_pairs = [(chains[a.path], chains[b.path]) for a, b in pairs]
    level = _telling_level(chain_pairs)
    alike = any(
        a[level : level + 1] and a[level].name == b[level].name for a, b in chain_pairs if level < len(b)
    )
    for chain in chains.values():
        if level < len(chain):
            above = _differing_name(
                chain[level],
                [folder_chain[level] for folder_chain in chains.values() if level < len(folder_chain)],
            )
            folders.setdefault(chain[level], f"{above}/{chain[level].name}" if alike else chain[level].name)


def _is_the_same_dir(a: FoundLogDir, b: FoundLogDir, partitions: set[str]) -> bool:
    """Whether two folders are copies of one, not two log directories that share a partition by mistake."""
    if _broker_folder(a.path) != _broker_folder(b.path) or _broker_folder(a.path) is None:
        return True
    if a.path.parent == b.path.parent and partitions == {METADATA_LOG}:
        ids = {read_identity(log_dir.path).directory_id for log_dir in (a, b)}
        if len(ids - {None}) > 1:
            return False
    return 2 * len(partitions) > min(len(live_partitions(a)), len(live_partitions(b)))


def _broker_folder(path: Path) -> Path | None:
    ids = (
        folder
        for folder in (path, *path.parents)
        if broker_id_of(folder.name, folder.parent.name) is not None
    )
    return next(ids, None)


def _chain(path: Path) -> list[Path]:
    """Folders that may name the moment, best first: above the broker's folder and up, then below it."""
    broker = _broker_folder(path)
    if broker is None:
        return [path, *path.parents][:-1]
    below = [folder for folder in (path, *path.parents) if folder.is_relative_to(broker) and folder != broker]
    return [*list(broker.parents)[:-1], *reversed(below)]


def _telling_level(pairs: list[tuple[list[Path], list[Path]]]) -> int:
    """The first level of the chains whose names tell every pair apart, else whose folders do."""
    longest = min((min(len(a), len(b)) for a, b in pairs), default=1)
    for level in range(longest):
        if all(a[level].name != b[level].name for a, b in pairs):
            return level
    for level in range(longest):
        if all(a[level] != b[level] for a, b in pairs):
            return level
    return 0


def _differing_name(folder: Path, folders: list[Path]) -> str:
    """The name of the nearest folder above at which the folders, which have one name, differ."""
    for height, above in enumerate(folder.parents):
        if (
            len({candidate.parents[height].name for candidate in folders if height < len(candidate.parents)})
            > 1
        ):
            return above.name
    return folder.parent.name
