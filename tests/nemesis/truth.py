"""What happened, read past kctl: segments, ZooKeeper's transaction log, and the dump of a metadata log.

Sources: org.apache.zookeeper.server.persistence.{FileTxnLog,FileHeader} and src/zookeeper.jute @ release-3.8.4;
clients/src/main/java/org/apache/kafka/common/record/{DefaultRecordBatch,DefaultRecord,LegacyRecord}.java @ 3.9.0
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.nemesis.story import Fencing, State, Term, Transactional

CONTROL, TRANSACTIONAL, COMPRESSION, GZIP = 0x20, 0x10, 0x07, 1  # in the attributes of a batch
STATE = re.compile(r".*/brokers/topics/([^/]+)/partitions/(\d+)/state")
TOPIC = re.compile(r".*/brokers/topics/([^/]+)")
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


class Batch(NamedTuple):
    """A batch or a message of a log; what its format does not have is None, or -1 for times."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    records: int
    first_timestamp: int = -1
    max_timestamp: int = -1
    epoch: int | None = None
    producer: tuple[int, int] | None = None  # id and epoch, of a transaction
    is_marker: bool = False


def batches(data: bytes) -> Iterator[Batch]:
    """The batches that are whole, in order; of magic 0 and 1 the messages, uncompressed."""
    for at, end in whole_entries(data):
        (offset,) = struct.unpack_from(">q", data, at)
        magic = data[at + 16]
        if magic < 2:
            (time,) = struct.unpack_from(">q", data, at + 18) if magic else (-1,)
            yield Batch(at, end - at, offset, offset, 1, time, time)
            continue
        (epoch,) = struct.unpack_from(">i", data, at + 12)
        attributes, delta, first, newest, producer, term = struct.unpack_from(">hiqqqh", data, at + 21)
        (count,) = struct.unpack_from(">i", data, at + 57)
        yield Batch(
            at, end - at, offset, offset + delta, count, first, newest, epoch,
            (producer, term) if attributes & TRANSACTIONAL else None, bool(attributes & CONTROL),
        )  # fmt: skip


def stored(data: bytes) -> Iterator[Stored]:
    """The records of log bytes, markers of transactions among them; uncompressed, or by gzip since magic 2."""
    for at, end in whole_entries(data):
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
        records = data[place:end]
        if attributes & COMPRESSION == GZIP:
            records = gzip.decompress(records)
        yield from _records(records, count, offset)


def _records(data: bytes, count: int, offset: int) -> Iterator[Stored]:
    place = 0
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


def batches_of(folder: Path) -> list[Batch]:
    """The batches of a partition's folder."""
    return [batch for path in sorted(folder.glob("*.log")) for batch in batches(path.read_bytes())]


def checkpoint(folder: Path, name: str) -> int | None:
    """What a checkpoint beside a partition's folder has for it."""
    try:
        lines = (folder.parent / name).read_text().splitlines()[2:]
    except OSError:
        return None
    values = [int(line.split()[2]) for line in lines if "-".join(line.split()[:2]) == folder.name]
    return values[0] if values else None


def recorded_epochs(folder: Path) -> list[list[int]] | None:
    """What leader-epoch-checkpoint of a folder has."""
    try:
        lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    except OSError:
        return None
    return [[int(number) for number in line.split()] for line in lines]


CUT = re.compile(
    r"partition=([\w.-]+-\d+), dir=[^]]+\] Truncating to offset (\d+)|Truncating log ([\w.-]+-\d+) to offset (\d+)"
)


def cuts_of(logs: Path) -> set[tuple[str, int]]:
    """Partitions and the offsets that a broker says it cut them to."""
    texts = (path.read_text(errors="replace") for path in logs.glob("server.log*"))
    return {
        (match[1] or match[3], int(match[2] or match[4])) for text in texts for match in CUT.finditer(text)
    }


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
    ids: dict[str, str | None] = {}
    for write in zookeeper_writes(folder):
        if write.data and (topic := TOPIC.fullmatch(write.path)):
            ids[topic[1]] = json.loads(write.data).get("topic_id") or ids.get(topic[1])
        elif topic := TOPIC.fullmatch(write.path):
            ids.pop(topic[1], None)
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
        states.append(
            State(
                write.time,
                state["leader_epoch"],
                leader,
                isr,
                unclean,
                controller_epoch=state.get("controller_epoch"),
            )
        )
        for of_life in states:  # brokers that know ids give one to a topic that has none
            of_life.topic_id = ids.get(found[1])
    return history


def zookeeper_controllers(folder: Path) -> list[Term]:
    """The controllers: who created `/controller` last as the epoch was counted up."""
    terms: list[Term] = []
    broker = None
    for write in zookeeper_writes(folder):
        name = write.path.rpartition("/")[2]
        if name == "controller" and write.data:
            broker = json.loads(write.data)["brokerid"]
        elif name == "controller_epoch" and write.data and int(write.data) > 0 and broker is not None:
            terms.append(Term(write.time, int(write.data), broker))
    return terms


# --- KRaft --------------------------------------------------------------------------------------------

BATCH = re.compile(r"^baseOffset: .* CreateTime: (\d+) ")
EPOCH = re.compile(r" partitionLeaderEpoch: (\d+) ")
LEADER_CHANGE = re.compile(r'LeaderChange: .*"leaderId":(\d+)')
LEADER_LINE = re.compile(r"^\| offset: (\d+) .* controlType: LEADER_CHANGE")
RECORD = re.compile(r"^\| offset: .* payload: ?(\{.*\})$")


def kraft_history(
    dump: Iterable[str], skew: Mapping[int, float] | None = None
) -> dict[str, list[list[State]]]:
    """The same from lines that Kafka's DumpLogSegments prints with --cluster-metadata-decoder.

    `skew` are the seconds that clocks are ahead, of the nodes that wrote it.
    """
    history: dict[str, list[list[State]]] = {}
    names: dict[str, str] = {}
    eligible: dict[str, list[int]] = {}
    for time, kind, data in _records_of(dump, skew):
        if kind == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        elif kind == "PARTITION_RECORD":
            partition = f"{names[data['topicId']]}-{data['partitionId']}"
            first = State(time, data["leaderEpoch"], data["leader"], data["isr"], topic_id=data["topicId"])
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
                states.append(State(time, last.epoch, last.leader, isr, topic_id=last.topic_id))
            else:
                unclean = leader >= 0 and leader not in may_lead
                states.append(State(time, last.epoch + 1, leader, isr, unclean, topic_id=last.topic_id))
    return history


def kraft_fencings(dump: Iterable[str], skew: Mapping[int, float] | None = None) -> list[Fencing]:
    """When brokers were fenced and unfenced, from the same lines."""
    found: list[Fencing] = []
    for time, kind, data in _records_of(dump, skew):
        broker: Any = data.get("brokerId", data.get("id"))
        is_fenced = None
        if kind == "REGISTER_BROKER_RECORD":
            is_fenced = data["fenced"]
        elif kind in ("FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"):
            is_fenced = kind.startswith("FENCE")
        elif kind == "BROKER_REGISTRATION_CHANGE_RECORD" and data.get("fenced"):
            is_fenced = data["fenced"] > 0
        if is_fenced is not None:
            found.append(Fencing(time, broker, is_fenced))
    return found


def _records_of(
    dump: Iterable[str], skew: Mapping[int, float] | None
) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """Time, type and fields of each record."""
    time = ahead = 0.0
    for line in dump:
        if batch := BATCH.match(line):
            time = int(batch[1]) - ahead
        elif change := LEADER_CHANGE.search(line):
            ahead = (skew or {}).get(int(change[1]), 0) * 1000
        elif record := RECORD.match(line.rstrip()):
            said = json.loads(record[1])
            yield time, said["type"], said["data"]


def with_leaders(dump: Iterable[str], log: bytes) -> Iterator[str]:
    """The same lines, with the leader in each line of a control record that a tool of up to 3.9 leaves it out of."""
    leaders: dict[int, int] = {}
    position = 0
    while position + 61 <= len(log):
        offset, length = struct.unpack_from(">qi", log, position)
        if struct.unpack_from(">h", log, position + 21)[0] & 0x20:
            # The record behind the header: length, attributes, two deltas, the key's length and version, its type.
            at = log.find(b"\x00\x00\x00\x02", position + 61, position + 12 + length)
            if at >= 0:
                leaders[offset] = struct.unpack_from(">i", log, at + 7)[0]
        position += 12 + length
    for line in dump:
        lacks = LEADER_LINE.match(line)
        if lacks and "LeaderChange" not in line and int(lacks[1]) in leaders:
            line += f' LeaderChange: {{"leaderId":{leaders[int(lacks[1])]}}}'
        yield line


def quorum_leaders(dump: Iterable[str], skew: Mapping[int, float] | None = None) -> list[Term]:
    """Who led the metadata quorum, from the same lines."""
    terms: list[Term] = []
    time = epoch = 0
    for line in dump:
        if batch := BATCH.match(line):
            time = int(batch[1])
            found = EPOCH.search(line)
            epoch = int(found[1]) if found else epoch
        elif change := LEADER_CHANGE.search(line):
            leader = int(change[1])
            terms.append(Term(time - (skew or {}).get(leader, 0) * 1000, epoch, leader))
    return terms


# --- transactions -------------------------------------------------------------------------------------

ENTRY = re.compile(r"^\| offset: (\d+) .*(?:key: )transactional_id::(\S+) payload: ?(.*)$")
VALUES = re.compile(
    r"producerId:(-?\d+),producerEpoch:(-?\d+),state=(\w+),partitions=\[(.*)\],"
    r"txnLastUpdateTimestamp=(\d+),txnTimeoutMs=(\d+)"
)
DUMPING = re.compile(r"^Dumping .*/__transaction_state-(\d+)/")


def transactional_ids(dump: Iterable[str]) -> list[Transactional]:
    """The newest entry of each id, from lines that DumpLogSegments prints with --transaction-log-decoder."""
    newest: dict[str, Transactional] = {}
    partition = -1
    for line in dump:
        if file := DUMPING.match(line):
            partition = int(file[1])
        entry = ENTRY.match(line.rstrip())
        if not entry:
            continue
        values = VALUES.search(entry[3])
        if not values:
            newest.pop(entry[2], None)  # a tombstone
            continue
        partitions = [name.strip() for name in values[4].split(",") if name.strip()]
        newest[entry[2]] = Transactional(
            entry[2], int(values[1]), int(values[2]), values[3], sorted(partitions),
            int(values[6]), int(values[5]), partition, int(entry[1]),
        )  # fmt: skip
    return list(newest.values())
