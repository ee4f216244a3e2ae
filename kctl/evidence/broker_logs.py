"""Whose a folder of broker logs is: by name, by what its lines say, by the log directories beside it."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kctl.evidence.identity import named_broker_id
from kctl.evidence.model import BrokerLog, BrokerLogKind, LogDir

LOOKED_AT = 1 << 18
# What a broker says of itself, 0.8 to 3.9; state-change lines of older brokers name it without brackets.
SPEAKERS = re.compile(
    rb"\[(?:Broker|Controller|KafkaServer|BrokerServer|ControllerServer|QuorumController|BrokerLifecycleManager|KafkaRaftServer"
    rb"|ReplicaFetcherManager on broker|ReplicaManager broker|ReplicaAlterLogDirsManager on broker)[ =](?:id=)?(\d+)"
    rb"|\b(?:TRACE|DEBUG|INFO|WARN|ERROR) (?:Broker|Controller) (\d+) "
    rb"|\b(?:broker|node)\.id = (\d+)|\bProperty broker\.id is overridden to (\d+)|\[Kafka Server (\d+)\]"
)
# A line of Kafka's own layout by a class that only brokers and controllers have; clients and Connect have others.
BROKER_LINE = re.compile(
    rb"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] [A-Z]+ [^\n]*"
    rb" \((?:state\.change\.logger|kafka\.(?:controller|server|cluster|log|coordinator|zk|raft)\.[\w.$]+"
    rb"|org\.apache\.kafka\.(?:controller|image|raft|metadata|storage|server)\.[\w.$]+)(?::\d+)?\)[ \t\r]*$",
    re.MULTILINE,
)
SETTING = re.compile(rb"^\s*(?:broker|node)\.id\s*=\s*(\d+)\s*$", re.MULTILINE)


def is_broker_log(path: Path) -> bool:
    """Whether the start of a file holds lines that a broker or controller wrote."""
    return BROKER_LINE.search(_head(path)) is not None


def broker_id_of_logs(
    logs: Sequence[BrokerLog], log_dirs: Sequence[LogDir], given: Mapping[Path, int]
) -> dict[Path, int | None]:
    """Folder of broker logs to the id of the broker that wrote them."""
    by_folder: dict[Path, list[BrokerLog]] = {}
    for log in logs:
        by_folder.setdefault(log.path.parent, []).append(log)
    return {folder: _broker_id(folder, ones, log_dirs, given) for folder, ones in by_folder.items()}


def _broker_id(
    folder: Path, logs: list[BrokerLog], log_dirs: Sequence[LogDir], given: Mapping[Path, int]
) -> int | None:
    for above in (folder, *folder.parents):
        if above in given:
            return given[above]
    root = logs[0].root.path
    found = named_broker_id(folder, root)
    if found is None:
        found = _configured(folder)
    if found is None:
        found = _spoken(logs)
    if found is None:
        found = _beside(folder, root, log_dirs)
    return found


def _configured(folder: Path) -> int | None:
    """The id in a `server.properties` in the folder of the logs or beside it."""
    for path in (folder / "server.properties", folder.parent / "server.properties"):
        ids = set(SETTING.findall(_head(path)))
        if len(ids) == 1:
            return int(ids.pop())
    return None


def own_broker_id(log: BrokerLog) -> int | None:
    """The id that the lines of one log speak for: a folder of captured output may hold those of several brokers."""
    return _spoken([log])


def _spoken(logs: Iterable[BrokerLog]) -> int | None:
    """The id that most lines at the start of a log speak for; state-change logs first."""
    order = list(BrokerLogKind)
    for log in sorted(logs, key=lambda one: order.index(one.kind)):
        said = Counter(int(next(filter(None, groups))) for groups in SPEAKERS.findall(_head(log.path)))
        if said:
            return said.most_common(1)[0][0]
    return None


def _beside(folder: Path, root: Path, log_dirs: Sequence[LogDir]) -> int | None:
    """The one broker whose log directories lie below the nearest folder above that has any."""
    for above in (folder, *folder.parents):
        ids = {one.broker_id for one in log_dirs if one.path.is_relative_to(above)}
        if ids or above == root:
            return ids.pop() if len(ids) == 1 else None
    return None


def _head(path: Path) -> bytes:
    try:
        if path.is_symlink() or not path.is_file():
            return b""
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return file.read(LOOKED_AT)
    except (OSError, EOFError, ValueError):
        return b""
