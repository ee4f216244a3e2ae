"""What the metadata and the leader's log say of each other, finding by finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from formats.messages.remote_log_metadata import (
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from kctl.findings import Finding
from kctl.model import TopicPartition
from kctl.replication.epochs import Entries
from kctl.tier.audit.metadata_checks import GIVEN_UP_MS, TierExtent, against_local, unfinished
from kctl.tier.metadata.partition_tier import PartitionTier, partition_tiers, unserved
from kctl.tier.rules.local_logs import LocalLog, LocalPartition
from tests.kctl.remote.test_fold import TIP, fold_of

STARTED, FINISHED, DELETING, DELETED = SegmentState
NOW = 10_000_000
Epochs = tuple[tuple[int, int], ...]


@dataclass
class Log:
    """A leader's log as the checks look at it."""

    epochs: Entries = ((0, 0),)
    log_end_offset: int = 100
    first_base_offset: int = 40
    checkpointed_log_start: int | None = 0
    broker_id: int = 1
    segments: list[Any] = field(default_factory=list)


def id_of(name: str) -> str:
    return name.ljust(21, "A") + "A"


def copy(name: str, start: int, end: int, epochs: Epochs = ((0, 0),), **more: Any) -> list[Any]:
    """A copy that was started and finished at a time, its newest record as old."""
    time = more.pop("time", NOW)
    moved = tuple((epoch, max(first, start)) for epoch, first in epochs)
    made = SegmentMetadata(
        TIP, id_of(name), start, end, 1, time, time, moved, more.pop("size", 100), None, STARTED
    )
    return [made, *steps(name, FINISHED, time=time)]


def steps(name: str, *states: SegmentState, time: int = NOW) -> list[Any]:
    return [SegmentMetadataUpdate(TIP, id_of(name), 1, time, None, state) for state in states]


def tier_of(*records: Any) -> PartitionTier:
    fold, found = fold_of(*records, keep_deleted=True)
    assert not found
    return partition_tiers(fold)[TopicIdPartition(*TIP)]


def held(
    tier: PartitionTier,
    log: Log,
    config: dict[str, str] | None = None,
    told: int | None = None,
    now: int = NOW,
) -> tuple[TierExtent, list[Finding]]:
    local = LocalPartition(TopicPartition("orders", 0), {log.broker_id: cast("LocalLog", log)}, told)
    judged, found = against_local(tier, local, config or {}, now)
    assert judged is not None
    return judged, found


def said(found: list[Finding]) -> list[tuple[str, str, str | None]]:
    names = [one.place.remote_log_segment_id for one in found]
    return [
        (one.code, str(one.severity), name and name.rstrip("A"))
        for one, name in zip(found, names, strict=True)
    ]


def test_a_whole_tier_says_nothing() -> None:
    tier = tier_of(*copy("a", 0, 19), *copy("b", 20, 39), *copy("c", 40, 59))
    judged, found = held(tier, Log())
    assert not found and not judged.gaps
    assert (judged.log_start_offset, judged.local_log_start_offset) == (0, 40)


def test_offsets_that_no_segment_serves_are_a_gap() -> None:
    tier = tier_of(*copy("a", 0, 9), *copy("b", 15, 39))
    judged, found = held(tier, Log())
    assert said(found) == [("remote-gap", "error", None)]
    assert judged.gaps == ((10, 15),) and "[10, 15) of epoch 0" in found[0].message


def test_a_gap_is_looked_for_epoch_by_epoch() -> None:
    # Offsets [10, 20) are held, but by a segment of another epoch than the leader's.
    tier = tier_of(*copy("a", 0, 9), *copy("b", 10, 19, ((1, 10),)), *copy("c", 20, 39, ((2, 20),)))
    judged, found = held(tier, Log(epochs=((0, 0), (2, 20))))
    assert ("remote-gap", "error", None) in said(found) and judged.gaps == ((10, 20),)
    assert ("remote-segment-outside-lineage", "warning", "b") in said(found)


def test_local_segments_deleted_before_they_were_copied() -> None:
    judged, found = held(tier_of(*copy("a", 0, 19)), Log())
    assert said(found) == [("remote-local-deleted-before-copy", "error", None)]
    assert judged.gaps == ((20, 40),)


def test_a_segment_whose_end_the_leader_does_not_reach_is_outside_the_lineage() -> None:
    tier = tier_of(*copy("a", 0, 39), *copy("b", 40, 120))
    judged, found = held(tier, Log())
    assert said(found) == [("remote-segment-outside-lineage", "warning", "b")]
    assert judged.outside == {id_of("b")}


def test_an_absent_leader_leaves_open_what_lies_behind_the_end() -> None:
    tier = tier_of(*copy("a", 0, 39), *copy("b", 40, 120))
    _, found = held(tier, Log(), told=2)
    assert said(found) == [("remote-leader-absent", "info", None)]


def test_epochs_older_than_the_leaders_first_are_deleted_as_unreferenced() -> None:
    tier = tier_of(*copy("a", 0, 19, ((0, 0),)), *copy("b", 20, 39, ((1, 20),)))
    _, found = held(tier, Log(epochs=((1, 20),), checkpointed_log_start=20))
    assert said(found) == [("remote-segment-unreferenced", "info", "a")]


def test_a_shorter_copy_of_the_same_start_hides_the_longer_one_from_everybody() -> None:
    tier = tier_of(*copy("a", 0, 39), *copy("b", 0, 19))
    _, found = held(tier, Log())
    assert ("remote-segment-hidden", "warning", "a") in said(found)
    assert "retention does not see it" in next(f.message for f in found if f.code == "remote-segment-hidden")
    assert ("remote-gap", "error", None) in said(found)


def test_a_later_copy_that_covers_the_earlier_is_an_overlap_and_no_more() -> None:
    tier = tier_of(*copy("a", 0, 39), *copy("b", 0, 59))
    _, found = held(tier, Log())
    assert said(found) == [("remote-segments-overlap", "info", "a")]


def test_a_copy_inside_a_longer_one_hides_its_rest() -> None:
    tier = tier_of(*copy("a", 0, 39), *copy("b", 10, 19))
    judged, found = held(tier, Log())
    assert ("remote-segment-hidden", "warning", "a") in said(found)
    assert judged.gaps == ((20, 40),)


def test_a_checkpoint_older_than_the_deletions_is_stale_and_no_gap() -> None:
    tier = tier_of(*copy("a", 0, 19), *copy("b", 20, 39), *steps("a", DELETING, DELETED))
    judged, found = held(tier, Log(checkpointed_log_start=0))
    assert said(found) == [("remote-log-start-stale", "info", None)]
    assert judged.log_start_offset == 20


def test_a_log_start_that_no_deletion_accounts_for_is_a_gap() -> None:
    _, found = held(tier_of(*copy("b", 20, 39)), Log(checkpointed_log_start=0))
    assert said(found) == [("remote-gap", "error", None)]
    assert "[0, 20)" in found[0].message


def test_brokers_up_to_3_6_do_not_write_the_log_start_of_a_tiered_log() -> None:
    judged, found = held(tier_of(*copy("b", 20, 39)), Log(checkpointed_log_start=None))
    assert not found and judged.log_start_offset == 20


def test_segments_below_the_log_start_wait_for_the_next_run() -> None:
    tier = tier_of(*copy("a", 0, 19), *copy("b", 20, 39))
    _, found = held(tier, Log(epochs=((0, 30),), checkpointed_log_start=30))
    assert said(found) == [("remote-log-start-passed", "info", "a")]


def test_retention_that_is_due_and_retention_that_is_overdue() -> None:
    tier = tier_of(*copy("a", 0, 19, time=1000), *copy("b", 20, 39, time=5000))
    settings = {"retention.ms": "2000"}
    for now, expected in (
        (2999, []),
        (3001, [("remote-retention-due", "info", "a")]),
        (
            3001 + GIVEN_UP_MS,
            [("remote-retention-overdue", "warning", "a"), ("remote-retention-due", "info", "b")],
        ),
    ):
        assert said(held(tier, Log(), settings, now=now)[1]) == expected
    assert not held(tier, Log(), {}, now=NOW)[1], "the broker's default is not in the evidence"


def test_retention_by_size_leaves_the_limit_standing() -> None:
    tier = tier_of(*copy("a", 0, 19, size=100), *copy("b", 20, 39, size=100))
    assert not held(tier, Log(), {"retention.bytes": "101"})[1]
    found = held(tier, Log(), {"retention.bytes": "100"})[1]
    assert said(found) == [("remote-retention-due", "info", "a")]


def test_copies_and_deletions_without_an_end() -> None:
    started = copy("a", 0, 19)[:1]
    for records, objects, expected in (
        (started, {}, [("remote-copy-unfinished", "info", "a")]),
        ([*started, *copy("b", 0, 19)], {id_of("a"): 7}, [("remote-copy-failed", "warning", "a")]),
        ([*started, *copy("b", 20, 39)], {}, [("remote-copy-failed", "warning", "a")]),
        ([*copy("a", 0, 19), *steps("a", DELETING)], {}, [("remote-deletion-unfinished", "info", "a")]),
        # Copies and deletions go on side by side: the one does not end the other.
        (
            [*copy("b", 20, 39), *started, *steps("b", DELETING, DELETED)],
            {},
            [("remote-copy-unfinished", "info", "a")],
        ),
        # A topic's deletion begins all of its segments before it ends the first.
        (
            [
                *copy("a", 0, 19),
                *copy("b", 20, 39),
                *steps("b", DELETING),
                *steps("a", DELETING),
                *steps("b", DELETED),
            ],
            {},
            [("remote-deletion-unfinished", "info", "a")],
        ),
        (
            [*copy("a", 0, 19), *copy("b", 20, 39), *steps("a", DELETING), *steps("b", DELETING, DELETED)],
            {},
            [("remote-deletion-interrupted", "warning", "a")],
        ),
        (
            [*copy("a", 0, 19), *steps("a", DELETING), *copy("b", 20, 39)],
            {},
            [("remote-deletion-interrupted", "warning", "a")],
        ),
    ):
        assert said(list(unfinished(tier_of(*records), NOW, objects))) == expected
    (old,) = unfinished(tier_of(*started), NOW + GIVEN_UP_MS, {id_of("a"): 7})
    assert old.code == "remote-copy-failed" and "7 bytes of it lie in the tier" in old.message


def test_ranges_that_nothing_serves_are_cut_at_epochs() -> None:
    tier = tier_of(*copy("a", 5, 9), *copy("b", 12, 20, ((0, 12), (1, 15))))
    assert list(unserved(tier.cache, ((0, 0), (1, 15)), 0, 30)) == [(0, 5, 0), (10, 12, 0), (21, 30, 1)]
    assert list(unserved(tier.cache, ((0, 3),), 0, 5)) == [(0, 3, None), (3, 5, 0)]


def test_a_step_behind_the_end_of_a_deletion_is_left_out() -> None:
    """As brokers do, which know nothing of the segment any more."""
    records = [*copy("a", 0, 9), *copy("b", 10, 19)[:1], *steps("b", DELETING, DELETED, FINISHED)]
    fold, found = fold_of(*records, keep_deleted=True)
    assert [finding.code for finding in found] == ["remote-metadata-update-unknown"]
    (tier,) = partition_tiers(fold).values()
    assert [one.remote_log_segment_id for one in tier.cache.all_listed()] == [id_of("a")]
    assert tier.cache.segment_for(0, 3) and not tier.cache.segment_for(0, 12)
