"""Numbers at the bounds of their fields, under right checksums: every command reads them, none adds beyond them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from formats.binary.varint import write_unsigned
from formats.log.control_records import ControlType, write_marker
from formats.log.message_set import write_message, write_wrapper
from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, read_header, seal, write_batch
from formats.messages.cluster_metadata import RECORDS, MetadataRecord, write_metadata_record
from formats.messages.consumer_offsets import TYPES, write_versioned
from formats.messages.remote_log_metadata import MESSAGES, ApiKey, RecordLayout
from formats.messages.schema import Message, MessageField, Struct
from formats.messages.transaction_state import KEY, VALUE
from formats.messages.writing import write_message as write_schema
from tests.conftest import kctl, rows

LONG, INT, NOW = 2**63 - 1, 2**31 - 1, 1_700_000_000_000
TOPIC_ID = "W1mYKYRPRZqt8XjSxCjVnQ"


def batch(base: int, records: int = 1, time: int = NOW, **header: Any) -> bytes:
    return write_batch([Record(base + n, time, b"k", b"v") for n in range(records)], **header)


def abort(base: int, producer_id: int) -> bytes:
    key, value = write_marker(ControlType.ABORT, INT)
    return write_batch(
        [Record(base, NOW, key, value)],
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer_id,
        producer_epoch=0,
    )


def promising(base: int, count: int) -> bytes:
    """A batch of one record whose header counts more."""
    whole = batch(base)
    return seal(read_header(whole)._replace(records_count=count, last_offset_delta=count - 1), whole[61:])


BEYOND: dict[str, tuple[int, bytes]] = {
    "last offset of all": (LONG, batch(LONG)),
    "records beyond it": (LONG, batch(LONG, 3)),
    "promised records beyond it": (LONG - 1, promising(LONG - 1, INT)),
    "abort at it": (
        LONG - 1,
        batch(LONG - 1, attributes=TRANSACTIONAL, producer_id=7, producer_epoch=0, base_sequence=0)
        + abort(LONG, 7),
    ),
    "behind others": (LONG - 2, batch(LONG - 2) + batch(LONG - 1, 2)),
}
"""Offsets that no log has: its end would be more than 64 bits hold. Base offset of the file's name, and the log."""
WITHIN: dict[str, tuple[int, bytes]] = {
    "highest offset of a log": (LONG - 1, batch(LONG - 1, time=LONG)),
    "producer": (0, batch(0, producer_id=LONG, producer_epoch=32767, base_sequence=INT)),
    "times": (0, batch(0, time=LONG) + batch(1, time=-LONG - 1) + batch(2, attributes=8, max_timestamp=LONG)),
    "old message": (0, write_message(1, LONG, b"k", b"v", timestamp=LONG) + write_message(0, -1, b"k", b"v")),
    "old wrapper": (
        0,
        write_wrapper(1, [Record(LONG - 1, LONG, b"k", b"v"), Record(LONG, 0, b"k", b"v")], codec=1),
    ),
    "epochs": (0, batch(0, partition_leader_epoch=INT) + batch(1, partition_leader_epoch=-INT - 1)),
}


def two_brokers(folder: Path, base: int, log: bytes) -> Path:
    """Evidence of two replicas of orders-0 with this log."""
    for broker in (1, 2):
        place = folder / f"broker-{broker}" / "data" / "orders-0"
        place.mkdir(parents=True)
        place.with_name("meta.properties").write_text(
            f"version=0\nbroker.id={broker}\ncluster.id={TOPIC_ID}\n"
        )
        (place / f"{base:020d}.log").write_bytes(log)
        (place / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {base}\n")
    return folder


@pytest.mark.parametrize("name", [*BEYOND, *WITHIN])
def test_every_command_reads_a_log_of_extremes(name: str, tmp_path: Path) -> None:
    base, log = (BEYOND | WITHIN)[name]
    evidence = two_brokers(tmp_path / "evidence", base, log)
    one = evidence / "broker-1"
    file = one / "data" / "orders-0" / f"{base:020d}.log"
    offset = ("--topic", "orders", "--partition", 0, "--offset", LONG)
    for words in (
        ("segment", "dump", "--records", file), ("segment", "dump", "--records", "--from-offset", LONG, file),
        ("segment", "rebuild", one, "--to", tmp_path / "rebuilt"), ("segment", "rebuild", "--check", one),
        ("segment", "rebuild", "--check", "--rules", "0.8", one), ("epoch", "show", evidence),
        ("epoch", "end-offset", "--epoch", INT, evidence), ("epoch", "compare", evidence),
        ("epoch", "truncation", "--leader", one / "data", evidence / "broker-2" / "data"),
        ("replica", "compare", "--if-leader", 2, evidence), ("replica", "compare", "--compacted", "orders", evidence),
        ("replica", "loss", evidence), ("replica", "explain", *offset, evidence), ("transactions", "hanging", evidence),
        ("audit", "run", evidence, "--jobs", 1, "--out", tmp_path / "audit"),
    ):  # fmt: skip
        ran = rows(*words)
        assert ran.status in (0, 3, 5), (words, ran.err)
        assert ran.status != 3 or words[1] == "explain", (words, ran.err)
    assert kctl("segment", "dump", "--format", "kafka", "--records", file).status in (0, 5)
    names = {path.name for path in (tmp_path / "rebuilt").rglob("*.snapshot")}
    assert all(int(name[:20]) <= LONG for name in names), "a snapshot that no broker can load"
    lineages = pq.read_table(tmp_path / "audit" / "lineages").to_pylist()
    assert all(row["log_end_offset"] is not None for row in lineages)


@pytest.mark.parametrize("name", BEYOND)
def test_offsets_beyond_all_are_damage(name: str, tmp_path: Path) -> None:
    base, log = BEYOND[name]
    evidence = two_brokers(tmp_path, base, log)
    ran = rows("segment", "verify", "--jobs", 1, evidence)
    assert {f["broker_id"] for f in ran.of("finding") if f["code"] == "batch-base-offset-wrong"} == {1, 2}
    assert {row["verdict"] for row in ran.of("judgement") if row["topic"]} == {"damaged"}
    assert [f for f in ran.of("finding") if f["code"] in ("epoch-entry-beyond-end", "batch-offset-gap")] == []
    compared = rows("replica", "compare", evidence)
    assert [row["verdict"] for row in compared.of("verdict")] == ["damaged"]


def test_the_highest_offset_of_a_log_is_sound(tmp_path: Path) -> None:
    base, log = WITHIN["highest offset of a log"]
    ran = rows("segment", "verify", "--jobs", 1, two_brokers(tmp_path, base, log))
    assert [f["code"] for f in ran.of("finding") if f["severity"] == "error"] == []
    assert {row["next_offset"] for row in ran.of("file") if row["type"] == "log"} == {LONG}


def test_a_last_offset_is_the_same_wherever_it_is_printed(tmp_path: Path) -> None:
    base, log = BEYOND["records beyond it"]
    file = tmp_path / f"{base:020d}.log"
    file.write_bytes(log)
    (dumped,) = rows("segment", "dump", file).rows
    assert dumped["last_offset"] == -(2**63) + 1  # as Java's long has it
    assert b"lastOffset: -9223372036854775807 " in kctl("segment", "dump", "--format", "kafka", file).out
    found = rows("segment", "verify", file).of("finding")
    assert {f["last_offset"] for f in found if f["position"] == 0} == {-(2**63) + 1}


# --- records of internal topics -----------------------------------------------------------------------

BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
OTHERS: dict[str, list[Any]] = {
    "uint16": [0, 65535],
    "bool": [False, True],
    "float64": [float("nan"), float("inf"), -0.0, 1e308],
    "uuid": ["A" * 22, TOPIC_ID],
    "bytes": [b"", b"\xff" * 9, b"\0\1\0\0\0\1\0\1t\0\0\0\1\x7f\xff\xff\xff"],
    "string": ["orders", "", "t\x1b[31m", "x" * 250, "\u202eevil", "__consumer_offsets"],
}


def value_of(field: MessageField, rng: Random) -> Any:
    def one() -> Any:
        if isinstance(field.type, tuple):
            return values_of(field.type, rng)
        if field.type in BITS:
            most = 2 ** BITS[field.type] - 1
            return rng.choice([most, -most - 1, 0, -1, 1, most - 1, min(NOW, most)])
        return rng.choice(OTHERS[field.type])

    if field.nullable and rng.random() < 0.3:
        return None
    return [one() for _ in range(rng.randrange(4))] if field.array else one()


def values_of(fields: Struct, rng: Random) -> dict[str, Any]:
    return {field.name: value_of(field, rng) for field in fields}


def version_of(message: Message, rng: Random) -> int:
    return rng.randint(message.versions.first, min(message.versions.last, 9))


Made = Callable[[Random], tuple[bytes | None, bytes | None]]


def of_groups(rng: Random) -> tuple[bytes | None, bytes | None]:
    key, value = rng.choice([TYPES[0], *TYPES])
    first, second = (
        write_versioned(one, version, values_of(one.fields, rng))
        for one, version in ((key, version_of(key, rng)), (value, version_of(value, rng)))
    )
    return first, second


def of_transactions(rng: Random) -> tuple[bytes | None, bytes | None]:
    version = rng.randint(0, 1)
    values = values_of(VALUE.fields, rng) | {"transaction_status": rng.randrange(8)}
    key = write_schema(KEY, 0, {"transactional_id": rng.choice(OTHERS["string"])})
    return b"\0\0" + key, version.to_bytes(2, "big") + write_schema(VALUE, version, values)


def of_metadata(rng: Random) -> tuple[bytes | None, bytes | None]:
    often = ["TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLIENT_QUOTA_RECORD"]
    name = rng.choice([*RECORDS, *often, *often])
    message = RECORDS[name]
    values = values_of(message.fields, rng)
    return None, write_metadata_record(MetadataRecord(name, version_of(message, rng), values))


def of_a_tier(rng: Random) -> tuple[bytes | None, bytes | None]:
    key = rng.choice(list(ApiKey)[:3])
    message = MESSAGES[RecordLayout.WITH_CUSTOM_METADATA][key]
    values = values_of(message.fields, rng) | {"state": rng.randrange(4)}
    if "start_offset" in values:
        start, end = sorted(rng.choice([0, 1, LONG - 1, LONG]) for _ in range(2))
        epoch = {"leader_epoch": rng.choice([0, 1, INT]), "offset": start}
        values |= {"start_offset": start, "end_offset": end, "segment_leader_epochs": [epoch]}
    partition = values.get("remote_log_segment_id", values)["topic_id_partition"]
    partition |= {"topic": "orders", "topic_id": TOPIC_ID, "partition": 0}
    return None, b"".join(map(write_unsigned, (1, key, 0))) + write_schema(message, 0, values)


INTERNAL: dict[str, tuple[Made, tuple[tuple[object, ...], ...]]] = {
    "__consumer_offsets": (
        of_groups, (("offsets", "list"), ("offsets", "show", "orders"), ("offsets", "history", "orders")),
    ),
    "__transaction_state": (
        of_transactions, (("transactions", "list"), ("transactions", "show", "orders"), ("transactions", "hanging", "--all")),
    ),
    "__cluster_metadata": (of_metadata, (("metadata", "show"), ("replica", "loss"))),
    "__remote_log_metadata": (of_a_tier, (
        ("remote", "format"), ("remote", "segments", "--all"), ("remote", "plan"), ("remote", "audit"),
        ("remote", "lookup", "--topic", "orders", "--partition", 0, "--offset", LONG),
        ("remote", "follower", "--topic", "orders", "--partition", 0, "--broker", 2),
    )),
}  # fmt: skip


def written(make: Made, rng: Random, count: int = 25) -> Iterator[Record]:
    offset = 0
    while offset < count:
        try:
            key, value = make(rng)
        except Exception:  # a null where this version has none, and the like: not every choice can be written
            continue
        yield Record(offset, rng.choice([NOW + offset, NOW, LONG, -LONG - 1, -1]), key, value)
        offset += 1


@pytest.mark.parametrize("seed", [0, 4, 11])
@pytest.mark.parametrize("topic", INTERNAL)
def test_every_command_reads_records_of_extremes(topic: str, seed: int, tmp_path: Path) -> None:
    make, commands = INTERNAL[topic]
    evidence = two_brokers(tmp_path / "evidence", 0, batch(0) + batch(1))
    place = evidence / "broker-1" / "data" / f"{topic}-0"
    place.mkdir()
    log = b"".join(write_batch([record]) for record in written(make, Random(seed)))
    (place / f"{0:020d}.log").write_bytes(log)
    (place / f"{0:020d}.index").touch()  # a broker's folder, which lacks the file of epochs
    for words in (*commands, ("audit", "run", "--jobs", 1, "--out", tmp_path / "audit")):
        ran = rows(*words, evidence)
        assert ran.status in (0, 3, 5), (words, ran.err)
        assert words[0] != "audit" or ran.status != 3, ran.err
