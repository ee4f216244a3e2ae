"""Partitions of a cluster that are read piece by piece: never more than two segments on disk, the same findings."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from kctl.cluster.state import ClusterState, PartitionState, Topic
from kctl.cluster.versions import KafkaVersion
from kctl.errors import KctlError
from kctl.evidence.discover import discover
from kctl.evidence.model import FoundEvidence
from kctl.evidence.replica_copies import every_copy
from kctl.internal_topics.reading import entries
from kctl.model import TopicPartition
from kctl.replica.epoch_rows import show_rows
from kctl.tier.metadata.log import METADATA_TOPIC, ValueChunk, find_metadata, values_of
from kctl.wire.replicas import copying
from kctl.wire.replicas.fetching import (
    CONSUMER,
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    OFFSET_OUT_OF_RANGE,
    Fetched,
    FetchPosition,
)
from tests.conftest import recording
from tests.kctl.replica.test_compare import batch

TP = TopicPartition("ledger", 0)
BATCHES = [(n * 3, n * 3 + 3, batch(n * 3, n * 3 + 3, "x" * 50, n // 40)) for n in range(120)]


class FakeLeader:
    """A fetcher over one log in memory; what lies before `start` is gone, which only a Fetch says."""

    def __init__(self) -> None:
        self.start = self.told_start = 0
        self.asked: list[int] = []
        self.fails_at: int | None = None
        self.local_start: int | None = None  # of a tiered topic

    def fetch(self, wanted: Sequence[FetchPosition], size: int) -> list[Fetched | KctlError]:
        (one,) = wanted
        self.asked.append(one.offset)
        if self.fails_at is not None and one.offset >= self.fails_at:
            return [KctlError("broker 1 does not answer Fetch")]
        if one.offset < self.start:
            return [Fetched(b"", -1, -1, OFFSET_OUT_OF_RANGE)]
        data = b"".join(data for _, end, data in BATCHES if end > one.offset)
        return [Fetched(data[:1000], 360, self.start)]

    def offsets(self, _: Any, wanted: Any, place: int, *, replica_id: int = -2) -> Any:
        assert place in (EARLIEST, EARLIEST_LOCAL) or replica_id == CONSUMER
        if place == EARLIEST_LOCAL and self.local_start is not None:
            return dict.fromkeys(wanted, self.local_start)
        told = dict.fromkeys(wanted, 360 if place == LATEST else self.told_start)
        self.told_start = self.start
        return told


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> FakeLeader:
    fake = FakeLeader()
    monkeypatch.setattr(copying, "Fetcher", lambda wire, ids: fake)
    monkeypatch.setattr(copying, "list_offsets", fake.offsets)
    monkeypatch.setattr(
        copying, "local_starts", lambda wire, wanted: fake.offsets(wire, wanted, EARLIEST_LOCAL)
    )
    monkeypatch.setattr(copying, "SEGMENT", 2000)
    monkeypatch.setattr(copying, "ROOM", 0)
    return fake


STATE = ClusterState(
    cluster_id="c",
    kafka_version=KafkaVersion(4, 3),
    brokers={},
    controller=None,
    topic_names=("ledger",),
    topics={"ledger": Topic(name="ledger", partitions={0: (1,)})},
    partition_states={TP: PartitionState(1, 0, (1,))},
    configs={},
)


def arriving(folder: Path, failures: list[Exception]) -> FoundEvidence:
    found = copying.arriving_segments(None, STATE, [TP], folder, failures.append)  # type: ignore[arg-type]
    return discover([folder / "broker-1"]).with_arriving(found)


def watched(evidence: FoundEvidence, most: list[int]) -> Iterator[Path]:
    """The segments, and how many are on disk with each."""
    (replica,) = evidence.replicas
    assert replica.arriving is not None
    for path in replica.arriving():
        most.append(len(list(replica.folder.glob("*.log"))))
        yield path


def test_two_segments_are_there_at_most(leader: FakeLeader, tmp_path: Path) -> None:
    evidence, most = arriving(tmp_path, []), list[int]()
    assert leader.asked == [], "nothing is read before it is wanted"
    data = b"".join(path.read_bytes() for path in watched(evidence, most))
    assert data == b"".join(data for _, _, data in BATCHES)
    assert len(most) > 5 and max(most) == 2
    assert list(tmp_path.rglob("*.log")) == []


def test_reading_may_stop_early(leader: FakeLeader, tmp_path: Path) -> None:
    evidence = arriving(tmp_path, [])
    segments = watched(evidence, [])
    next(segments)
    segments.close()
    del segments
    assert list(tmp_path.rglob("*.log")) == []


def test_epochs_are_those_of_a_copy(leader: FakeLeader, tmp_path: Path) -> None:
    copied, streamed = tmp_path / "copied", tmp_path / "streamed"
    copied.mkdir()
    assert copying.copy_partitions(None, STATE, [TP], copied) == []  # type: ignore[arg-type]
    (expected,) = show_rows(every_copy(discover([copied / "broker-1"])))
    (row,) = show_rows(every_copy(arriving(streamed, [])))
    assert row == expected
    assert (row["epochs"], row["log_end_offset"], row["high_watermark"]) == (
        [[0, 0], [1, 120], [2, 240]],
        360,
        360,
    )


def test_entries_can_be_read_again(leader: FakeLeader, tmp_path: Path) -> None:
    (replica,) = arriving(tmp_path, []).replicas
    for _ in range(2):
        found = list(entries(replica.folder, [], arriving=replica.arriving))
        assert [entry.last_offset for entry in found] == [end - 1 for _, end, _ in BATCHES]


def test_what_retention_takes_before_it_is_read_is_left_out(leader: FakeLeader, tmp_path: Path) -> None:
    failures: list[Exception] = []
    (replica,) = (evidence := arriving(tmp_path, failures)).replicas
    leader.start = leader.told_start = 30
    found = list(entries(replica.folder, [], arriving=replica.arriving))
    assert failures == [] and evidence.replicas and found[0].batch is not None
    assert (found[0].batch.base_offset, found[-1].last_offset) == (30, 359)


def test_a_tiered_log_is_read_from_where_the_leader_has_it(leader: FakeLeader, tmp_path: Path) -> None:
    leader.local_start, failures = 120, list[Exception]()
    (row,) = show_rows(every_copy(arriving(tmp_path, failures)))
    assert failures == [] and leader.asked[0] == 120
    assert (row["epochs"], row["local_log_start_offset"], row["log_end_offset"]) == (
        [[1, 120], [2, 240]],
        120,
        360,
    )


def test_a_leader_that_goes_away_is_reported(leader: FakeLeader, tmp_path: Path) -> None:
    failures: list[Exception] = []
    (replica,) = arriving(tmp_path, failures).replicas
    leader.fails_at = 100
    found = list(entries(replica.folder, [], arriving=replica.arriving))
    assert [str(one) for one in failures] == ["ledger-0: broker 1 does not answer Fetch"]
    assert 90 < found[-1].last_offset < 150


def test_a_full_disk_is_no_end_of_the_log(
    leader: FakeLeader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what lies behind would look as if the leader did not have it."""
    write, written = copying._Copy._write, list[int]()

    def until_full(one: copying._Copy, data: bytes | memoryview, base_offset: int) -> None:
        written.append(base_offset)
        if len(written) > 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(one, data, base_offset)

    monkeypatch.setattr(copying._Copy, "_write", until_full)
    with pytest.raises(KctlError, match="no space left on device"):
        list(show_rows(every_copy(arriving(tmp_path, []))))
    assert list(tmp_path.rglob("*.log")) == []


def numbered(chunk: ValueChunk) -> list[tuple[int, object]]:
    return [(int(chunk.offsets[row]), record) for row, record in chunk.records(lambda finding: None)]


def test_metadata_of_a_tier_comes_as_from_files(tmp_path: Path) -> None:
    log = find_metadata(discover([recording("tier/a-healthy")]))
    assert log.replicas
    for number, (replica, *_) in log.replicas.items():
        folder = tmp_path / "broker-1" / f"{METADATA_TOPIC}-{number}"
        folder.mkdir(parents=True)

        def one_by_one(files: tuple[Path, ...] = replica.files, folder: Path = folder) -> Iterator[Path]:
            for path in files:
                yield Path(copy(path, folder))
                (folder / path.name).unlink()

        (tmp_path / "broker-1" / "replication-offset-checkpoint").write_text("0\n0\n")
        streamed = find_metadata(discover([tmp_path / "broker-1"]).with_arriving({folder: one_by_one}))
        expected = [item for chunk in values_of(replica, lambda _: None) for item in numbered(chunk)]
        assert [item for chunk in streamed.chunks(number) for item in numbered(chunk)] == expected
