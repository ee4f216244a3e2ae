"""Which log directories of the evidence are those of one broker, and of which nobody knows it.

`server.properties` tells, or the folder of a broker above them (`broker-3`). Without either each id is a broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from kctl.evidence.identity import named_broker_id
from kctl.evidence.model import FoundEvidence, LogDir
from kctl.evidence.names import broker_id_of
from kctl.evidence.settings import settings_in

NUMBER = re.compile(r"\d+\Z", re.ASCII)


class BrokerDirs(NamedTuple):
    """The log directories of one broker. `doubt` says why others may belong to it, where that changes its start."""

    broker_id: int | None
    moment: str | None
    log_dirs: list[LogDir]
    doubt: str | None


def brokers_in(evidence: FoundEvidence) -> Iterator[BrokerDirs]:
    """The log directories of the evidence by broker and moment."""
    firsts = _firsts_of_folders(evidence)
    configured = [settings for settings in settings_in(evidence) if settings.listed_dirs]
    for settings in configured:
        if settings.lists_all_together:
            firsts |= {log_dir.path: settings.log_dirs[0] for log_dir in settings.log_dirs}
    settled = {log_dir.path for settings in configured for log_dir in settings.log_dirs} | set(firsts)
    by_broker: dict[tuple[int | None, str | None], list[LogDir]] = {}
    for log_dir in evidence.log_dirs:
        first = firsts.get(log_dir.path, log_dir)
        by_broker.setdefault((first.broker_id, log_dir.moment), []).append(log_dir)
    doubts = _doubts([log_dir for log_dir in evidence.log_dirs if log_dir.path not in settled])
    for (broker_id, moment), log_dirs in by_broker.items():
        doubt = next((doubts[log_dir.path] for log_dir in log_dirs if log_dir.path in doubts), None)
        yield BrokerDirs(broker_id, moment, log_dirs, doubt)


def _firsts_of_folders(evidence: FoundEvidence) -> dict[Path, LogDir]:
    """Of directories of several ids below the folder of a broker, the first that has the id which the folder names."""
    below: dict[tuple[Path, str | None], list[LogDir]] = {}
    for log_dir in evidence.log_dirs:
        parents = (above for above in log_dir.path.parents if above.is_relative_to(log_dir.root.path))
        folder = next((above for above in parents if _named(above) is not None), None)
        if folder is not None:
            below.setdefault((folder, log_dir.moment), []).append(log_dir)
    firsts: dict[Path, LogDir] = {}
    for (folder, _), log_dirs in below.items():
        first = next((log_dir for log_dir in log_dirs if log_dir.broker_id == _named(folder)), None)
        if first is not None:
            firsts |= {log_dir.path: first for log_dir in log_dirs}
    return firsts


def _named(folder: Path) -> int | None:
    return broker_id_of(folder.name, folder.parent.name)


def _doubts(log_dirs: list[LogDir]) -> dict[Path, str]:
    """Directories of several identities, beside each other or named together, whose names do not tell several brokers."""
    doubts: dict[Path, str] = {}
    marked = sorted((d for d in log_dirs if d.is_marked and d.is_whole), key=lambda d: d.path)
    beside = [list(same) for _, same in groupby(marked, lambda log_dir: log_dir.path.parent)]
    given = [log_dir for log_dir in marked if log_dir.path == log_dir.root.path]
    for together in (*beside, given):
        first = next(iter(together), None)
        other = next((d for d in together if first is not None and _identity(d) != _identity(first)), None)
        if first is None or other is None or _are_named_by_broker(together):
            continue
        is_one_cluster = first.cluster_id == other.cluster_id
        pair = " and ".join(f"{d.path.name} of {_who(d, is_one_cluster)}" for d in (first, other))
        words = f"{pair} may be of one broker, and one that has both in `log.dirs` does not start"
        doubts |= {log_dir.path: words for log_dir in together}
    return doubts


def _identity(log_dir: LogDir) -> tuple[int | None, str | None]:
    return log_dir.broker_id, log_dir.cluster_id


def _who(log_dir: LogDir, is_one_cluster: bool) -> str:
    cluster = "" if is_one_cluster else f" of cluster {log_dir.cluster_id}"
    return f"{'a broker' if log_dir.broker_id is None else f'broker {log_dir.broker_id}'}{cluster}"


def _are_named_by_broker(log_dirs: list[LogDir]) -> bool:
    """Whether names end with the ids of the brokers (kafka-logs-1, broker-1/data), but for one name without a number."""
    numbers = [(_number(log_dir), log_dir.broker_id) for log_dir in log_dirs]
    are_own = all(number == broker_id for number, broker_id in numbers if number is not None)
    return are_own and sum(number is None for number, _ in numbers) <= 1


def _number(log_dir: LogDir) -> int | None:
    named, number = named_broker_id(log_dir.path, log_dir.root.path), NUMBER.search(log_dir.path.name)
    return named if named is not None or number is None else int(number[0])
