"""Which lost records are written again, in which order, and how they are found in the present log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands.replica.recover import _unproven
from formats.log.record_batch import Record
from kctl.changes import kept_records as kept
from kctl.changes.kept_records import LostRecord
from kctl.errors import KctlError, Refused
from kctl.model import OffsetRange, TopicPartition
from kctl.replica.loss.recovery import LostBatch, TransactionOutcome
from kctl.replica.recovery.comparison import Fate, PartitionComparison, RangeFate
from kctl.replica.recovery.lost_ranges import LostRange, exported_ranges, is_exported
from kctl.replica.recovery.marks import PresentRecord, marked, written_so_far
from kctl.wire.recovering import planning
from kctl.wire.recovering.planning import PlannedPartition, Recovery, RecoveryOptions
from tests.conftest import recording, rows

LEDGER = TopicPartition("ledger", 0)


def record(offset: int, key: str | None = "k", *, timestamp: int = 1000, value: str | None = None) -> Record:
    return Record(
        offset, timestamp, key and key.encode(), (value or f"v{offset}").encode(), ((b"h", None), (b"h", b""))
    )


def batch(*records: Record, epoch: int = 1, outcome: TransactionOutcome | None = None) -> LostBatch:
    return LostBatch(epoch, 0, list(records), outcome)


def lost(*batches: LostBatch, start: int = 10, end: int = 20) -> LostRange:
    return LostRange(LEDGER, start, end, 3, "committed", False, None, (), lambda: iter(batches))


def compared(
    ranges: Sequence[LostRange], present: Sequence[PresentRecord], *, leaves_out_replaced: bool = False
) -> list[RangeFate]:
    comparison = PartitionComparison(
        LEDGER, ranges, [lambda: iter(present)], leaves_out_replaced=leaves_out_replaced
    )
    return comparison.compare()


def fates(ranges: Sequence[LostRange], *present: PresentRecord, **how: bool) -> list[list[Fate]]:
    return [[Fate(fate) for fate in found.fates] for found in compared(ranges, present, **how)]


def own(found: Record) -> PresentRecord:
    return PresentRecord(found, has_own_timestamp=True)


def test_what_the_cluster_has_is_not_written() -> None:
    first, second, third = record(10), record(11), record(12)
    sent_again = own(first._replace(offset=99))
    recovered = own(marked(LEDGER, LostRecord(second, 1), "i")._replace(offset=100))
    assert fates([lost(batch(first, second, third))], sent_again, recovered) == [
        [Fate.THERE, Fate.THERE, Fate.WRITTEN]
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"value": b"other"},
        {"key": b"other"},
        {"key": None},
        {"timestamp": 1001},
        {"headers": ()},
        {"headers": ((b"h", b""), (b"h", None))},
    ],
)
def test_a_record_that_differs_in_anything_is_another(change: dict[str, object]) -> None:
    present = own(record(10)._replace(offset=99)._replace(**change))  # type: ignore[arg-type]
    assert fates([lost(batch(record(10)))], present) == [[Fate.WRITTEN]]


def test_a_timestamp_of_the_broker_proves_nothing() -> None:
    present = PresentRecord(record(10)._replace(offset=99), has_own_timestamp=False)
    assert fates([lost(batch(record(10)))], present) == [[Fate.WRITTEN]]
    mark = PresentRecord(marked(LEDGER, LostRecord(record(10), 1), "i")._replace(timestamp=7), False)
    assert fates([lost(batch(record(10)))], mark) == [[Fate.THERE]]


def test_a_record_lost_twice_and_sent_again_once_is_written_once() -> None:
    twice = [record(10, value="same"), record(11, value="same")]
    assert fates([lost(batch(*twice))], own(twice[0]._replace(offset=99))) == [[Fate.THERE, Fate.WRITTEN]]


def test_a_mark_of_another_epoch_or_partition_is_of_another_record() -> None:
    other_epoch = own(marked(LEDGER, LostRecord(record(10), 2), "i"))
    other_partition = own(marked(TopicPartition("ledger", 1), LostRecord(record(10), 1), "i"))
    other_content = own(marked(LEDGER, LostRecord(record(10, value="x"), 1), "i"))
    for present in (other_epoch, other_partition, other_content):
        assert fates([lost(batch(record(10)))], present) == [[Fate.WRITTEN]]


def test_records_of_transactions_that_were_not_committed_are_left_out() -> None:
    batches = [
        batch(record(10), outcome=TransactionOutcome.ABORTED),
        batch(record(11), outcome=TransactionOutcome.OPEN),
        batch(record(12), outcome=TransactionOutcome.COMMITTED),
    ]
    (found,) = compared([lost(*batches)], [])
    assert found.left_out == {"aborted_transaction": 1, "unfinished_transaction": 1}
    assert [each.record.offset for each in found.to_write()] == [12]


def test_of_a_compacted_topic_replaced_records_are_left_out() -> None:
    batches = batch(record(10, "a"), record(11, "b"), record(12, "a"), record(13, "c"), record(14, None))
    later = own(record(50, "c", value="newer"))
    assert fates([lost(batches)], later, leaves_out_replaced=True) == [
        [Fate.REPLACED, Fate.WRITTEN, Fate.WRITTEN, Fate.REPLACED, Fate.WRITTEN]
    ]
    (found,) = compared([lost(batches)], [later, later])
    assert found.count(Fate.WRITTEN) == 5 and found.keys_with_later_records == 1


def test_two_losses_of_one_record_write_it_once() -> None:
    ranges = [lost(batch(record(10), record(11))), lost(batch(record(11), record(12)), start=11)]
    assert fates(ranges) == [[Fate.WRITTEN, Fate.WRITTEN], [Fate.REPEATED, Fate.WRITTEN]]
    other_epoch = [lost(batch(record(10))), lost(batch(record(10, value="x"), epoch=2))]
    assert fates(other_epoch) == [[Fate.WRITTEN], [Fate.WRITTEN]]


def test_pieces_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [record(offset, f"k{offset % 3}") for offset in range(10, 20)]
    present = [own(each._replace(offset=90 + n)) for n, each in enumerate(records[::2])]
    present.append(own(record(200, "k1", value="later")))
    whole = compared([lost(batch(*records))], present)
    monkeypatch.setattr("kctl.replica.recovery.comparison.AT_ONCE", 3)
    (found,) = compared([lost(batch(*records))], present)
    (at_once,) = whole
    assert found.fates == at_once.fates and found.count(Fate.THERE) == 5
    # The twin of a record that was lost later is later; `k0` of 19 has none, and of 13 it has that of 16.
    assert found.keys_with_later_records == at_once.keys_with_later_records == 3


def test_a_record_that_was_sent_again_replaces_only_what_was_lost_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [record(10, "a"), record(11, "a"), record(12, "a")]
    there = own(records[1]._replace(offset=90))
    monkeypatch.setattr("kctl.replica.recovery.comparison.AT_ONCE", 2)
    assert fates([lost(batch(*records))], there, leaves_out_replaced=True) == [
        [Fate.REPLACED, Fate.THERE, Fate.WRITTEN]
    ]


def test_kept_records_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCTL_JOURNAL", str(tmp_path))
    monkeypatch.setattr(kept, "IN_A_BATCH", 1000)
    records = [
        LostRecord(record(offset), epoch, codec) for epoch, codec in ((1, 0), (2, 1)) for offset in range(9)
    ]
    with kept.KeptRecords(kept.kept_folder(), LEDGER) as file:
        for each in records:
            file.add(each)
        name, digest = file.keep()
    kept.check_kept(name, digest)
    batches = list(kept.kept_batches(name))
    assert len(batches) > 4 and [
        (each.record._replace(sequence=-1), *each[1:]) for of_batch in batches for each in of_batch
    ] == [tuple(each) for each in records]
    kept.note_written(name, [OffsetRange(5, 9)])
    assert kept.noted_offsets(name) == [(5, 9)]
    path = kept.kept_folder() / name
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Refused, match="is not what the journal says"):
        kept.check_kept(name, digest)
    kept.forget(name)
    assert list(kept.kept_folder().iterdir()) == []
    with pytest.raises(Refused, match="cannot be read"):
        kept.check_kept(name, digest)


def test_what_was_written_is_found_again() -> None:
    records = [LostRecord(record(offset), 1) for offset in range(10, 14)]

    def present(*places: tuple[int, int]) -> Iterator[PresentRecord]:
        for offset, at in places:
            yield own(record(500))
            yield own(marked(LEDGER, LostRecord(record(offset), 1), "i")._replace(offset=at))

    assert written_so_far(LEDGER, records, present()) == (0, [])
    assert written_so_far(LEDGER, records, present((10, 70), (11, 71))) == (2, [(70, 72)])
    assert written_so_far(LEDGER, records, present((9, 60), (10, 70), (11, 80))) == (2, [(70, 71), (80, 81)])
    assert written_so_far(LEDGER, records, present((11, 70))) == (0, [])


def test_an_exported_folder_holds_the_same_records(tmp_path: Path) -> None:
    folder = tmp_path / "lost"
    rows("replica", "loss", recording("incidents/unclean-2.8"), "--export", folder)
    assert is_exported(folder) and not is_exported(tmp_path)
    found = [
        (r.partition.partition, r.from_offset, r.to_offset, r.lost_in_epoch) for r in exported_ranges(folder)
    ]
    assert found == [(0, 40, 70, 3), (1, 40, 50, 3), (2, 40, 60, 3)]
    (segment,) = folder.glob("*/ledger-1/*.log")
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(KctlError, match="is damaged at position"):
        list(exported_ranges(folder))


def test_what_no_copy_holds_is_not_proved_to_be_there() -> None:
    """A loss of which copies hold nothing has no record that could be missing in the cluster."""
    whole, unreadable = RangeFate(lost(batch(record(10)))), RangeFate(lost(), unreadable=2)
    in_part = RangeFate(lost(start=30, end=40)._replace(is_whole=False))
    planned = [PlannedPartition(LEDGER, LEDGER, [whole, unreadable, in_part], 0)]
    assert list(_unproven(planned)) == [
        "ledger-0 [10, 20), 2 unreadable records",
        "ledger-0 [30, 40), which copies hold in part or not at all",
    ]


def test_records_that_brokers_would_delete_again_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """They delete by the records' own times, which are those of the loss."""
    fate = RangeFate(lost(batch(record(10))), fates=bytearray([Fate.WRITTEN]))
    (written,) = fate.to_write()
    recovery = Recovery.__new__(Recovery)
    recovery._options, recovery._topics, recovery._by_partition = RecoveryOptions(), [], {}
    recovery._cluster = SimpleNamespace(wire=None)  # type: ignore[assignment]
    recovery.state = SimpleNamespace(topics={"ledger"}, config=lambda kind, name: {})  # type: ignore[assignment]
    age_ms = time.time_ns() // 1_000_000 - written.record.timestamp
    for retention, is_warned in ((age_ms - 60_000, True), (age_ms + 60_000, False), (-1, False)):
        told = [("ledger", [SimpleNamespace(key="retention.ms", value=str(retention))])]
        monkeypatch.setattr(planning, "in_force", lambda *_, told=told: told)
        warnings = list(recovery.warnings([PlannedPartition(LEDGER, LEDGER, [fate], 0)]))
        assert any("brokers delete them again" in warning for warning in warnings) == is_warned, retention


def test_a_topic_that_is_made_for_them_keeps_them() -> None:
    recovery = Recovery.__new__(Recovery)
    recovery._topics, recovery._by_partition = ["ledger"], {LEDGER: []}  # type: ignore[assignment]
    recovery.state = SimpleNamespace(topics={}, live_brokers=(1, 2))  # type: ignore[assignment]
    made = recovery._new_topic("again")
    assert (made.partitions, made.replication_factor, made.configs) == (1, 2, {"retention.ms": "-1"})
