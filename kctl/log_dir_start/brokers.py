"""Which log directories of the evidence are those of one broker, and of which nobody knows it.

`server.properties` tells, or the folder of a broker above them (`broker-3`). Without either each id is a broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

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
    """Directories of several identities beside each other, whose names do not tell that each is another broker's."""
    doubts: dict[Path, str] = {}
    marked = sorted((d for d in log_dirs if d.is_marked and d.is_whole), key=lambda d: d.path)
    for _, beside in groupby(marked, lambda log_dir: log_dir.path.parent):
        together = list(beside)
        first = together[0]
        other = next((log_dir for log_dir in together if _identity(log_dir) != _identity(first)), None)
        if other is None or _are_named_by_broker(together):
            continue
        is_one_cluster = first.cluster_id == other.cluster_id
        pair = " and ".join(f"{d.path.name} of {_who(d, is_one_cluster)}" for d in (first, other))
        words = f"{pair} lie beside each other, and a broker that has both in `log.dirs` does not start"
        doubts |= {log_dir.path: words for log_dir in together}
    return doubts


def _identity(log_dir: LogDir) -> tuple[int | None, str | None]:
    return log_dir.broker_id, log_dir.cluster_id


def _who(log_dir: LogDir, is_one_cluster: bool) -> str:
    cluster = "" if is_one_cluster else f" of cluster {log_dir.cluster_id}"
    return f"{'a broker' if log_dir.broker_id is None else f'broker {log_dir.broker_id}'}{cluster}"


def _are_named_by_broker(log_dirs: list[LogDir]) -> bool:
    """Whether the names end with the ids of the brokers, but for one name without a number: kafka-logs, kafka-logs-1."""
    numbers = [(NUMBER.search(log_dir.path.name), log_dir.broker_id) for log_dir in log_dirs]
    are_own = all(int(number[0]) == broker_id for number, broker_id in numbers if number)
    return are_own and sum(number is None for number, _ in numbers) <= 1
