"""What happened, read past kctl: segments, ZooKeeper's transaction log, and the dump of a metadata log.

Sources: org.apache.zookeeper.server.persistence.{FileTxnLog,FileHeader} and src/zookeeper.jute @ release-3.8.4;
clients/src/main/java/org/apache/kafka/common/record/{DefaultRecordBatch,DefaultRecord,LegacyRecord}.java @ 3.9.0
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.nemesis.story import State

CONTROL = 0x20  # in the attributes of a batch
STATE = re.compile(r".*/brokers/topics/([^/]+)/partitions/(\d+)/state")
CREATES, DELETE, SET_DATA, MULTI = (1, 15, 19, 21), 2, 5, 14


class Stored(NamedTuple):
    """A record of a segment; the value of a marker of a transaction names its producer and its time."""

    offset: int
    key: bytes | None
    value: bytes | None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at


def _bytes(data: bytes, at: int, length: int) -> tuple[bytes | None, int]:
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def whole_entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Position and end of each entry that is whole, up to the first that is not."""
    at = 0
    while at + 17 <= len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        if end < at + 26 or end > len(data):
            return
        yield at, end
        at = end


def stored(data: bytes) -> Iterator[Stored]:
    """The records of uncompressed log bytes, markers of transactions among them."""
    for at, _ in whole_entries(data):
        (offset,) = struct.unpack_from(">q", data, at)
        magic = data[at + 16]
        if magic < 2:
            place = at + (26 if magic else 18)
            key, place = _bytes(data, place + 4, struct.unpack_from(">i", data, place)[0])
            value, _ = _bytes(data, place + 4, struct.unpack_from(">i", data, place)[0])
            yield Stored(offset, key, value)
            continue
        attributes, _, _, time, producer, term = struct.unpack_from(">hiqqqh", data, at + 21)
        (count,) = struct.unpack_from(">i", data, at + 57)
        place = at + 61
        if attributes & CONTROL:
            marker = f"marker of producer {producer}:{term} at {time}"
            yield Stored(offset, None, marker.encode())
            continue
        for _ in range(count):
            length, start = _varint(data, place)
            place = start + length
            _, start = _varint(data, start + 1)  # past the attributes: the timestamp
            delta, start = _varint(data, start)
            length, start = _varint(data, start)
            key, start = _bytes(data, start, length)
            length, start = _varint(data, start)
            yield Stored(offset + delta, key, _bytes(data, start, length)[0])


def log_of(folder: Path) -> dict[int, Stored]:
    """The records of a partition's folder, by offset."""
    return {s.offset: s for path in sorted(folder.glob("*.log")) for s in stored(path.read_bytes())}


# --- ZooKeeper ----------------------------------------------------------------------------------------


class Write(NamedTuple):
    """A write of ZooKeeper's transaction log; `data` is None where the znode went."""

    time: int
    path: str
    data: bytes | None


def zookeeper_writes(folder: Path) -> Iterator[Write]:
    """Every create, set and delete, in order; `folder` is the server's dataDir."""
    logs = (folder / "version-2").glob("log.*")
    for path in sorted(logs, key=lambda path: int(path.name.removeprefix("log."), 16)):
        data = path.read_bytes()
        at = 16  # magic, version, database id
        while at + 12 <= len(data):
            (length,) = struct.unpack_from(">i", data, at + 8)
            if length <= 0 or at + 13 + length > len(data):
                break
            entry = data[at + 12 : at + 12 + length]
            _, _, _, time, kind = struct.unpack_from(">qiqqi", entry)
            yield from _writes(time, kind, entry[32:])
            at += 13 + length


def _writes(time: int, kind: int, body: bytes) -> Iterator[Write]:
    if kind == MULTI:
        at = 4
        for _ in range(struct.unpack_from(">i", body)[0]):
            kind, length = struct.unpack_from(">ii", body, at)
            yield from _writes(time, kind, body[at + 8 : at + 8 + length])
            at += 8 + length
    elif kind in (*CREATES, SET_DATA, DELETE):
        (length,) = struct.unpack_from(">i", body)
        path, at = body[4 : 4 + length].decode(), 4 + length
        data = None
        if kind != DELETE:
            data, _ = _bytes(body, at + 4, struct.unpack_from(">i", body, at)[0])
        yield Write(time, path, data)


def zookeeper_history(folder: Path) -> dict[str, list[list[State]]]:
    """The states of each partition, `TOPIC-N`: a list for each topic of the name, the present one last."""
    history: dict[str, list[list[State]]] = {}
    gone: set[str] = set()
    for write in zookeeper_writes(folder):
        found = STATE.fullmatch(write.path)
        if not found:
            continue
        partition = f"{found[1]}-{found[2]}"
        if not write.data:
            gone.add(partition)
            continue
        state = json.loads(write.data)
        lives = history.setdefault(partition, [[]])
        if partition in gone:
            gone.discard(partition)
            lives.append([])
        states = lives[-1]
        leader, isr = state["leader"], state["isr"]
        unclean = bool(states) and leader >= 0 and leader not in states[-1].isr
        states.append(State(write.time, state["leader_epoch"], leader, isr, unclean))
    return history


# --- KRaft --------------------------------------------------------------------------------------------

BATCH = re.compile(r"^baseOffset: .* CreateTime: (\d+) ")
RECORD = re.compile(r"^\| offset: .* payload: ?(\{.*\})$")


def kraft_history(dump: Iterable[str]) -> dict[str, list[list[State]]]:
    """The same from lines that Kafka's DumpLogSegments prints with --cluster-metadata-decoder."""
    history: dict[str, list[list[State]]] = {}
    names: dict[str, str] = {}
    eligible: dict[str, list[int]] = {}
    time = 0
    for line in dump:
        if batch := BATCH.match(line):
            time = int(batch[1])
        record = RECORD.match(line.rstrip())
        if not record:
            continue
        kind, data = (json.loads(record[1])[key] for key in ("type", "data"))
        if kind == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        elif kind == "PARTITION_RECORD":
            partition = f"{names[data['topicId']]}-{data['partitionId']}"
            first = State(time, data["leaderEpoch"], data["leader"], data["isr"])
            history.setdefault(partition, []).append([first])
            eligible.pop(partition, None)
        elif kind == "PARTITION_CHANGE_RECORD":
            partition = f"{names[data['topicId']]}-{data['partitionId']}"
            states = history[partition][-1]
            last = states[-1]
            may_lead = {*last.isr, *eligible.get(partition, ())}
            if data.get("eligibleLeaderReplicas") is not None:
                eligible[partition] = data["eligibleLeaderReplicas"]
            isr = last.isr if data.get("isr") is None else data["isr"]
            leader = data.get("leader", -2)
            if leader in (-2, None):
                states.append(State(time, last.epoch, last.leader, isr))
            else:
                unclean = leader >= 0 and leader not in may_lead
                states.append(State(time, last.epoch + 1, leader, isr, unclean))
    return history
