"""Why retention keeps what its settings say that it deletes."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from formats.log.record_batch import CONTROL, DELETE_HORIZON, Record, write_batch
from formats.log_dir.index_files import TimeIndexEntry, write_index
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from kctl.audit.compaction import behind, stood_still
from kctl.audit.retention import retention_findings, setting
from kctl.audit.tombstones import kept_tombstones
from kctl.evidence.discover import discover

HOUR = 3_600_000
NOW = 1_700_000_000_000
WEEK = 7 * 24 * HOUR


def evidence(
    folder: Path,
    times: list[int],
    topic: Mapping[str, str],
    broker: str = "",
    high_watermark: int | None = None,
    first: int = 0,
) -> Path:
    """A broker with a partition of one segment a time, whose files were written at NOW, and an export of znodes."""
    data = folder / "broker-1" / "data"
    partition = data / "orders-0"
    partition.mkdir(parents=True)
    (data / "meta.properties").write_text("version=0\nbroker.id=1\n")
    if broker:
        (folder / "broker-1" / "server.properties").write_text(broker)
    if high_watermark is not None:
        (data / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {high_watermark}\n")
    for base, time in enumerate(times, first):
        log = partition / f"{base:020d}.log"
        log.write_bytes(write_batch([Record(base, time, None, b"v")]))
        log.with_suffix(".timeindex").write_bytes(write_index([TimeIndexEntry(time, 0)]))
        os.utime(log, ns=(NOW * 1_000_000,) * 2)
    config = json.dumps({"version": 1, "config": dict(topic)})
    state = json.dumps({"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]})
    nodes = {
        "/brokers/topics/orders": '{"version":1,"partitions":{"0":[1]}}',
        "/brokers/topics/orders/partitions/0/state": state,
        "/config/topics/orders": config,
    }
    (folder / "znodes.jsonl").write_text("".join(znode(path, text) for path, text in nodes.items()))
    return folder


def znode(path: str, text: str) -> str:
    """A line of an export."""
    row = {
        "path": path,
        "data": b64encode(text.encode()).decode(),
        "data_text": text,
        "version": 0,
        "cversion": 0,
    }
    zxids = {"czxid": 1, "mzxid": 1, "pzxid": 1, "ctime": NOW, "mtime": NOW, "ephemeralOwner": 0}
    return json.dumps(row | zxids | {"numChildren": 0, "dataLength": len(text), "acl": []}) + "\n"


def said(folder: Path) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in retention_findings(discover([folder]))]


def codes(folder: Path) -> list[str]:
    return [code for code, _ in said(folder)]


OLD = NOW - 2 * WEEK
RETAINED = {"retention.ms": str(WEEK)}


@pytest.mark.parametrize(
    ("times", "topic", "broker", "expected"),
    [
        ([NOW - HOUR, NOW], RETAINED, "", []),
        ([OLD, NOW], RETAINED, "", ["retention-overdue"]),
        ([OLD], RETAINED, "", []),  # the active segment; nothing shows that the broker ran later
        ([NOW - WEEK - HOUR // 2, NOW], RETAINED, "", []),  # the next check deletes it
        ([NOW * 1000, OLD, NOW], RETAINED, "", ["retention-blocked"]),
        ([NOW - HOUR, OLD, NOW], RETAINED, "", ["retention-blocked"]),
        ([OLD, NOW], {}, "", []),  # what the broker's file says nobody knows
        ([OLD, NOW], {}, "broker.id=1\n", ["retention-overdue"]),
        ([OLD, NOW], {}, "log.retention.hours=1000\n", []),
        ([OLD, NOW], {"cleanup.policy": "compact", **RETAINED}, "", []),
        ([OLD, NOW], {"retention.ms": "-1", "retention.bytes": "-1"}, "", ["retention-unlimited"]),
        ([OLD, NOW], {"retention.ms": "-1", "retention.bytes": "1000"}, "", []),
        ([OLD, NOW], {"retention.ms": "no number"}, "", []),
    ],
)
def test_what_stays_past_its_retention_is_told(
    tmp_path: Path, times: list[int], topic: dict[str, str], broker: str, expected: list[str]
) -> None:
    assert codes(evidence(tmp_path, times, topic, broker)) == expected


def test_the_reason_is_the_one_that_the_evidence_shows(tmp_path: Path) -> None:
    ((_, blocked),) = said(evidence(tmp_path / "a", [NOW * 1000, OLD, NOW], RETAINED))
    assert "the segment from offset 0" in blocked and "had not come when the copy was taken" in blocked
    ((_, low),) = said(evidence(tmp_path / "b", [OLD, NOW], RETAINED, high_watermark=0))
    assert "the high watermark is 0" in low
    ((_, tiered),) = said(evidence(tmp_path / "c", [OLD, NOW], {**RETAINED, "remote.storage.enable": "true"}))
    assert "copied to the tier" in tiered


@pytest.mark.parametrize(
    ("first", "size", "oldest", "is_told"),
    [
        (5, 100, NOW - HOUR, True),
        (0, 100, NOW - HOUR, False),  # nothing was deleted yet
        (5, 10_000, NOW - HOUR, False),  # it was not by size
        (5, -1, NOW - HOUR, False),
    ],
)
def test_retention_by_size_that_deletes_before_time_does(
    tmp_path: Path, first: int, size: int, oldest: int, is_told: bool
) -> None:
    folder = evidence(tmp_path, [oldest, NOW], {**RETAINED, "retention.bytes": str(size)}, first=first)
    assert codes(folder) == (["retention-by-size-first"] if is_told else [])


def test_where_a_setting_is_from() -> None:
    assert setting("retention.ms", {"retention.ms": "5"}, {}, is_known=False) == (5, "set on the topic")
    of_broker = {"log.retention.minutes": "2", "log.retention.hours": "9"}
    assert setting("retention.ms", {}, of_broker, is_known=True) == (
        120_000,
        "log.retention.minutes of the broker",
    )
    assert setting("retention.ms", {}, {"log.retention.hours": "-1"}, is_known=True) == (
        -1,
        "log.retention.hours of the broker",
    )
    assert setting("retention.bytes", {}, {}, is_known=True) == (-1, "the default")
    assert setting("retention.ms", {}, {}, is_known=False) is None


# --- compaction ---------------------------------------------------------------------------------------------


def compacted(folder: Path, times: list[int], cleaned: int, open_since: int | None = None) -> Path:
    """A broker that compacted orders-0 up to an offset."""
    evidence(folder, times, {"cleanup.policy": "compact"})
    data = folder / "broker-1" / "data"
    (data / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {cleaned}\n")
    if open_since is not None:
        entry = ProducerEntry(7, 0, 0, open_since, 0, NOW, 0, open_since)
        (data / "orders-0" / f"{len(times):020d}.snapshot").write_bytes(write_snapshot([entry]))
    return folder


@pytest.mark.parametrize(
    ("times", "cleaned", "open_since", "severities"),
    [
        ([OLD, OLD, OLD, NOW], 3, None, []),
        ([OLD, OLD, OLD, NOW], 2, None, []),  # less than half of it
        ([OLD, OLD, OLD, NOW], 0, None, ["info"]),
        ([NOW, NOW, NOW, NOW], 0, None, []),  # as much as has come since the last cleaning
        ([OLD, OLD, OLD, NOW], 0, 0, ["warning"]),
        ([OLD, OLD, OLD, NOW], 0, 3, ["info"]),  # begins behind what could be compacted
    ],
)
def test_a_cleaner_that_is_behind_is_told_with_what_holds_it(
    tmp_path: Path, times: list[int], cleaned: int, open_since: int | None, severities: list[str]
) -> None:
    findings = list(behind(discover([compacted(tmp_path, times, cleaned, open_since)])))
    assert [finding.severity for finding in findings] == severities
    if severities == ["warning"]:
        assert "open since offset 0" in findings[0].message


def test_logs_of_the_broker_say_whether_its_cleaner_died(tmp_path: Path) -> None:
    folder = compacted(tmp_path, [OLD, OLD, OLD, NOW], 0)
    logs = folder / "broker-1" / "logs"
    logs.mkdir()
    (logs / "log-cleaner.log").write_text(
        "[2023-11-01 00:00:00,000] INFO Starting the log cleaner (kafka.log.LogCleaner)\n"
    )
    assert not list(behind(discover([folder])))


@pytest.mark.parametrize(
    ("cleaned", "minutes", "topic", "open_since", "why"),
    [
        ((1, 1), 90, {}, None, "the logs do not say why"),
        ((1, 1), 90, {}, 2, "open since offset 2"),
        ((1, 3), 90, {}, None, None),  # it went on
        ((1, 1), 20, {}, None, None),  # it may be about to
        ((3, 3), 90, {}, None, None),  # there was little to do
        ((1, 1), 90, {"min.cleanable.dirty.ratio": "0.9"}, None, None),
        ((1, 1), 90, {"min.compaction.lag.ms": "7200000"}, None, None),
    ],
)
def test_a_cleaner_that_stands_still_between_two_moments(
    tmp_path: Path,
    cleaned: tuple[int, int],
    minutes: int,
    topic: dict[str, str],
    open_since: int | None,
    why: str | None,
) -> None:
    then = NOW - minutes * 60_000
    for name, times, point in (
        ("one", [OLD, OLD, OLD, OLD, then], cleaned[0]),
        ("two", [OLD] * 5 + [NOW, NOW], cleaned[1]),
    ):
        folder = compacted(tmp_path / "moments" / name, times, point, open_since)
        config = json.dumps({"version": 1, "config": {"cleanup.policy": "compact", **topic}})
        zxid = 1 if name == "one" else 2
        rows = [json.loads(row) for row in (folder / "znodes.jsonl").read_text().splitlines()]
        rows[-1] = json.loads(znode("/config/topics/orders", config)) | {"mzxid": zxid}
        (folder / "znodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    findings = list(stood_still(discover([tmp_path])))
    assert [finding.code for finding in findings] == ["compaction-stands-still"] * (why is not None)
    assert why is None or why in findings[0].message
    assert [finding.severity for finding in findings] == ["info" if open_since is None else "warning"] * len(
        findings
    )


@pytest.mark.parametrize(
    ("horizon", "cleaned", "open_since", "why"),
    [
        (NOW + HOUR, 2, None, "`delete.retention.ms` (86400000) keeps them until 2023-11-14T23:13:20"),
        (NOW - HOUR, 2, 2, "no further than the first unstable offset: a transaction is open since offset 2"),
        (
            NOW - HOUR,
            2,
            None,
            "more than 50% of the bytes in closed segments lie behind its checkpoint; 69 of 211 do",
        ),
        (None, 2, None, "69 of 207 do"),  # written before 3.1
        (NOW - HOUR, 1, None, "138 of 211 bytes in closed segments wait for the cleaner"),
        (NOW - HOUR, 0, None, None),  # the cleaner has not met it
    ],
)
def test_tombstones_that_a_cleaner_keeps(
    tmp_path: Path, horizon: int | None, cleaned: int, open_since: int | None, why: str | None
) -> None:
    folder = compacted(tmp_path, [OLD, OLD, OLD, NOW], cleaned, open_since)
    first = folder / "broker-1" / "data" / "orders-0" / f"{0:020d}.log"
    flags = (
        {}
        if horizon is None
        else {"attributes": DELETE_HORIZON, "base_timestamp": horizon, "max_timestamp": OLD}
    )
    first.write_bytes(write_batch([Record(0, OLD, b"k", None)], **flags))
    findings = list(kept_tombstones(discover([folder])))
    assert [finding.severity for finding in findings] == ["info"] * (why is not None)
    if why is not None:
        assert "keeps 1 tombstone of more than two days" in findings[0].message
        assert "first at offset 0" in findings[0].message
        assert why in findings[0].message


def test_values_young_tombstones_and_markers_are_none_that_are_kept(tmp_path: Path) -> None:
    folder = compacted(tmp_path, [OLD, NOW - HOUR, OLD, NOW], 3)
    partition = folder / "broker-1" / "data" / "orders-0"
    (partition / f"{1:020d}.log").write_bytes(write_batch([Record(1, NOW - HOUR, b"k", None)]))
    (partition / f"{2:020d}.log").write_bytes(write_batch([Record(2, OLD, b"", None)], attributes=CONTROL))
    assert not list(kept_tombstones(discover([folder])))
