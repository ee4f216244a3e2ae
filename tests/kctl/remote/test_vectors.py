"""Every case of the vector files about tiered storage; an unknown `op` fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from formats.messages.remote_log_metadata import (
    PartitionDeleteState,
    SegmentMetadata,
    SegmentMetadataUpdate,
    SegmentState,
    TopicIdPartition,
)
from kctl.replication.epochs import end_offset_for, entries_of, epoch_for_offset
from kctl.tier.metadata.partitioner import (
    metadata_partition,
    metadata_partition_by_name,
    murmur2,
    objects_hash,
)
from kctl.tier.metadata.remote_log_metadata_cache import (
    Applied,
    MetadataCache,
    Overwrite,
    deletion_may_follow,
    may_follow,
)
from kctl.tier.rules.copy_task import (
    copy_candidates,
    copy_plan,
    highest_copied_offset,
    log_start_offset_on_leader,
)
from kctl.tier.rules.fetch import Sender, offset_answer, remote_read
from kctl.tier.rules.follower import ReplicaView, build_state, common_end, follow, target_epoch
from kctl.tier.rules.lineage import outside_lineage, without_empty_epochs
from tests.conftest import vectors

TIP = TopicIdPartition("A" * 21 + "Q", "foo", 0)


def segment(id: str, start: int, end: int, epochs: Any, size: int = 0) -> SegmentMetadata:
    return SegmentMetadata(
        TIP, id, start, end, 1, -1, 0, entries_of(epochs), size, None, SegmentState.COPY_SEGMENT_STARTED
    )


def update(id: str, state: str) -> SegmentMetadataUpdate:
    return SegmentMetadataUpdate(TIP, id, 1, 1, None, SegmentState[state])


def played(events: Any, cache: MetadataCache | None = None) -> tuple[MetadataCache, list[str]]:
    cache = cache or MetadataCache()
    results = []
    for what, *rest in events:
        results.append(str(cache.add(segment(*rest)) if what == "add" else cache.update(update(*rest))))
    return cache, results


def id_of(found: SegmentMetadata | None) -> str | None:
    return found.remote_log_segment_id if found else None


def remote_segment_lookup(given: Any, expect: Any) -> None:
    cache, results = played(
        given["events"], MetadataCache(Overwrite(given.get("overwrite_rule", Overwrite.COVERED)))
    )
    assert results == expect.get("event_results", results)
    assert "ok" in results or "event_results" in expect
    for one in expect.get("segment_for", []):
        assert id_of(cache.segment_for(one["leader_epoch"], one["offset"])) == one["segment"], one
    for one in expect.get("highest_offset", []):
        assert cache.highest_offset(one["leader_epoch"]) == one["offset"], one
    for one in expect.get("segments_listed", []):
        if one["leader_epoch"] is None:
            assert {id_of(s) for s in cache.all_listed()} == set(one["segments"])
        else:
            assert [id_of(s) for s in cache.listed(one["leader_epoch"])] == one["segments"], one


def state_transitions(given: Any, expect: Any) -> None:
    of_segment = "COPY_SEGMENT_STARTED" in given["states"]
    states = SegmentState if of_segment else PartitionDeleteState
    assert {s.name: int(s) for s in states} == given["ids"]
    legal: Callable[[Any, Any], bool] = may_follow if of_segment else deletion_may_follow
    found = {
        (a, b.name) for a in given["states"] for b in states if legal(None if a is None else states[a], b)
    }
    assert found == {tuple(pair) for pair in expect["valid"]}


def _sized(given: Any) -> MetadataCache:
    cache = MetadataCache()
    for one in given["segments"]:
        start = one["epochs"][0][1]
        cache.add(segment(one["id"], start, start + 99, one["epochs"], one["size"]))
        cache.update(update(one["id"], "COPY_SEGMENT_FINISHED"))
    return cache


def remote_log_size(given: Any, expect: Any) -> None:
    assert _sized(given).size_of_epoch(given["leader_epoch"]) == expect["bytes"]


def remote_log_size_by_epoch(given: Any, expect: Any) -> None:
    cache = _sized(given)
    assert {str(e): cache.size_of_epoch(e) for e in cache.epochs} == expect["bytes"]


def drop_empty_epochs(given: Any, expect: Any) -> None:
    assert without_empty_epochs(entries_of(given["entries"])) == entries_of(expect["entries"])


def segment_in_lineage(given: Any, expect: Any) -> None:
    one = given["segment"]
    why = outside_lineage(
        segment("s", one["start"], one["end"], one["epochs"]),
        entries_of(given["leader_epochs"]),
        given["log_end_offset"],
    )
    assert (why is None) == expect["within"], why


def remote_read_(given: Any, expect: Any) -> None:
    read = remote_read(played(given["events"])[0], entries_of(given["leader_epochs"]), given["offset"])
    assert (read.leader_epoch, id_of(read.segment), read.error) == (
        expect["leader_epoch"],
        expect["segment"],
        expect["error"],
    )


def highest_copied(given: Any, expect: Any) -> None:
    copied = {int(e): o for e, o in given["highest_copied_by_epoch"].items()}
    found = highest_copied_offset(
        entries_of(given["leader_epochs"]),
        given["log_end_offset"],
        copied.get,
        clamp=given["clamp_to_epoch_end"],
    )
    assert (*found, found.offset + 1) == (expect["offset"], expect["leader_epoch"], expect["next_offset"])


def candidates(given: Any, expect: Any) -> None:
    found = copy_candidates(given["segment_base_offsets"], given["from_offset"], given["last_stable_offset"])
    assert [list(pair) for pair in found] == expect["segments"]


def copying(given: Any, expect: Any) -> None:
    copied = {int(e): o for e, o in given["highest_copied_by_epoch"].items()}
    plan = copy_plan(
        entries_of(given["leader_epochs"]),
        given["log_end_offset"],
        copied.get,
        given["segment_base_offsets"],
        given["last_stable_offset"],
        given["log_start_offset"],
        clamp=given["clamp_to_epoch_end"],
    )
    assert (plan.highest_copied.offset, plan.from_offset) == (expect["highest_copied"], expect["from_offset"])
    assert [(c.start_offset, c.end_offset) for c in plan.copies] == [
        (c["start"], c["end"]) for c in expect["copied"]
    ]
    for copy, wanted in zip(plan.copies, expect["copied"], strict=True):
        assert copy.segment_leader_epochs == entries_of(wanted["segment_epochs"])
        if "index_epochs" in wanted:
            assert copy.leader_epoch_index == entries_of(wanted["index_epochs"])


def log_start_offset(given: Any, expect: Any) -> None:
    cache = MetadataCache()
    for one in given["segments"]:
        cache.add(segment(one["id"], one["start"], one["end"], one["epochs"]))
        cache.update(update(one["id"], "COPY_SEGMENT_FINISHED"))
    found = log_start_offset_on_leader(entries_of(given["leader_epochs"]), cache, given["local_log_start"])
    assert found == expect["log_start_offset"]


def partition_of(given: Any, expect: Any) -> None:
    h = objects_hash(given["topic_id"], given["partition"])
    assert (h ^ 0x80000000) - 0x80000000 == expect["objects_hash"]
    assert murmur2(h.to_bytes(4, "big")) & 0x7FFFFFFF == expect["murmur2_positive"]
    for count, wanted in expect["metadata_partition"].items():
        assert metadata_partition(given["topic_id"], given["partition"], int(count)) == wanted


def partition_by_name(given: Any, expect: Any) -> None:
    assert (murmur2(given["text"].encode()) ^ 0x80000000) - 0x80000000 == expect["murmur2_of_text"]
    for count, wanted in expect["metadata_partition"].items():
        assert metadata_partition_by_name(given["topic"], given["partition"], int(count)) == wanted


def hashed(given: Any, expect: Any) -> None:
    assert (murmur2(given["text"].encode()) ^ 0x80000000) - 0x80000000 == expect["murmur2"]


def view(one: Any) -> ReplicaView:
    entries = entries_of(one.get("epochs", []))
    end = one.get("leo", len(one["log"]) if "log" in one else 0)
    if one.get("log"):
        end = one["log"][-1]["offset"] + 1
    start = one.get("log_start", 0)
    return ReplicaView(entries, start, one.get("local_log_start", start), end)


def tiered_target_epoch(given: Any, expect: Any) -> None:
    found = target_epoch(
        ReplicaView(entries_of(given["leader_epochs"]), 0, given["local_log_start"], given["log_end_offset"])
    )
    assert {"offset": found.earliest_local_offset, "leader_epoch": found.earliest_local_epoch} == expect[
        "earliest_local"
    ]
    assert found.request_leader_epoch == expect["request_leader_epoch"]
    assert found.answer is not None and found.answer._asdict() == expect["answer"]
    assert {"leader_epoch": found.leader_epoch, "offset": found.offset} == expect["target"]


def tiered_offset_class(given: Any, expect: Any) -> None:
    found = offset_answer(
        given["fetch_offset"],
        log_start_offset=given["log_start"],
        local_log_start_offset=given["local_log_start"],
        sender=Sender(given["sender"]),
    )
    assert str(found) == expect["answer"]


def offset_constraints(given: Any, expect: Any) -> None:
    from kctl.tier.rules.fetch import offsets_hold

    found = offsets_hold(given["Lx"], given["Ly"], given["Lz"], given["Rx"], given["Ry"])
    assert found == expect["holds"]


def tiered_follower_reset(given: Any, expect: Any) -> None:
    leader, follower = view(given["leader"]), view(given["follower"])
    plan = follow(leader, follower, MetadataCache(), lambda _: None)
    assert str(plan.answer) == "OFFSET_MOVED_TO_TIERED_STORAGE"
    if "after_out_of_range" in expect:
        assert plan.fetch_offset == expect["after_out_of_range"]["fetch_from"]
    # In Kafka's test the tier serves the offset before the leader's local start, so that this is where it goes on.
    after = expect.get("after_error") or expect["after_moved"]
    assert plan.built is not None and plan.built.target.offset + 1 == after["local_log_start"] == after["leo"]


def _built(leader: ReplicaView, cache: MetadataCache, index: Any, expect: Any) -> None:
    """`build_state` as the list of requests and actions."""
    state = build_state(leader, cache, index)
    target, found = state.target, []
    found.append(
        {
            "request": "ListOffsets",
            "timestamp": -4,
            "answer": {"offset": target.earliest_local_offset, "leader_epoch": target.earliest_local_epoch},
        }
    )
    if target.answer is not None:
        found.append(
            {
                "request": "OffsetsForLeaderEpoch",
                "leader_epoch": target.request_leader_epoch,
                "answer": target.answer._asdict(),
            }
        )
    found.append(
        {
            "request": "remote segment metadata",
            "leader_epoch": target.leader_epoch,
            "offset": target.offset,
            "answer": id_of(state.segment),
        }
    )
    found.append(
        {
            "action": "truncate fully",
            "start_at": state.start_offset,
            "log_start": state.log_start_offset,
            "local_log_start": state.start_offset,
        }
    )
    assert state.entries is not None
    found.append(
        {"action": "load leader epochs from segment index", "epochs": [list(e) for e in state.entries]}
    )
    found.append({"request": "ListOffsets", "timestamp": -1, "answer": {"offset": leader.log_end_offset}})
    assert found == expect["build_state"]
    assert state.entries == entries_of(expect["epochs_after_build"])
    assert state.start_offset == expect["fetch_from"]


def _consumer(leader: ReplicaView, cache: MetadataCache, fetches: Any) -> None:
    for one in fetches:
        read = remote_read(cache, leader.entries, one["offset"])
        if one["offset"] < leader.local_log_start_offset:
            assert id_of(read.segment) == one["remote_segment"], one
        assert epoch_for_offset(leader.entries, one["offset"]) == one["offset_owner_epoch"]
        if "position_check" in one:
            answer = end_offset_for(leader.entries, leader.log_end_offset, one["leader_epoch"])
            assert answer._asdict() == one["position_check"]["answer"]
            valid = -1 not in answer and answer.end_offset >= one["offset"]
            assert valid == one["position_check"]["valid"]


def scenario_1(given: Any, kafka: Any, cache: MetadataCache, index: Any) -> None:
    leader, follower = view(given["leader"]), view(given["follower"])
    plan = follow(leader, follower, cache, index)
    assert str(plan.answer) == kafka["first_fetch"]["answer"]
    assert plan.fetch_offset == kafka["first_fetch"]["fetch_offset"]
    assert plan.scenarios == (1,)
    _built(leader, cache, index, kafka)


def scenario_2(given: Any, kafka: Any, cache: MetadataCache, index: Any) -> None:
    leader, follower = view(given["leader_step_2"]), view(given["follower"])
    first = follow(view(given["leader_step_1"]), follower, MetadataCache(), index)
    assert (first.truncate_to, str(first.answer)) == (kafka["step_1"]["truncate_to"], "read_local")
    plan = follow(leader, follower, cache, index)
    assert (plan.fetch_offset, str(plan.answer)) == (4, kafka["step_2"]["fetch"]["answer"])
    assert plan.scenarios == (2,)
    _built(leader, cache, index, kafka["step_2"])


def scenario_3_and_4(given: Any, kafka: Any, cache: MetadataCache, index: Any) -> None:
    clean = "step_3" not in given
    before = played([e for e in given["metadata_events"] if e[1] in ("seg-0-1" if clean else "seg-0-2",)])[0]
    leader = view(given["step_2"]["B"])
    returning = view(given["step_1"]["A"])
    cut = (kafka["step_3"]["A_rounds_fetch"] if clean else kafka["if_A_returns"]["rounds_fetch"])[0]
    plan = follow(leader, returning, before, index)
    assert plan.truncate_to == cut["truncate_to"] == common_end(leader, returning.entries, 9)
    assert plan.scenarios == (3, 4)
    wanted = kafka["step_4"]["copy_plan"] if clean else kafka["copy_plan"]
    bases = kafka["step_4"]["uploaded"]["needs_local_segment_base_offsets"] if clean else [0, 2]
    end = 3 if clean else leader.log_end_offset
    copies = copy_plan(leader.entries, end, before.highest_offset, bases, end, 0)
    assert (copies.highest_copied.offset, copies.from_offset) == (
        wanted["highest_copied"],
        wanted["from_offset"],
    )
    last = copies.copies[0]
    segment_epochs = (kafka["step_4"]["uploaded"] if clean else wanted["copied"][0])["segment_epochs"]
    assert last.segment_leader_epochs == entries_of(segment_epochs)
    if not clean:
        unclamped = copy_plan(leader.entries, end, before.highest_offset, bases, end, 0, clamp=False)
        assert unclamped.from_offset == wanted["without_clamp_3_6"]["from_offset"] and not unclamped.copies
    key = "consumer_fetches_after_local_delete_below_2" if clean else "consumer_fetches_at_step_3"
    _consumer(ReplicaView(leader.entries, 0, 2, 3), cache, kafka[key])


def scenario_5(given: Any, kafka: Any, cache: MetadataCache, index: Any) -> None:
    leader = view(given["step_4"]["A"])
    plan = follow(leader, view(given["step_4"]["B"]), cache, index)
    assert plan.scenarios == (5,)
    _built(leader, cache, index, kafka)
    _consumer(leader, cache, kafka["consumer_fetches_at_step_4"])
    kept = view(given["step_3"]["B"])
    assert (
        common_end(leader, kept.entries, kept.log_end_offset)
        == kafka["if_B_had_kept_its_data"]["truncate_to"]
    )
    of_a, of_b = (
        played([e for e in given["metadata_events"] if e[1] in names])[0]
        for names in (("seg-0-3-a", "seg-0-3-b"), ("seg-0-3-a",))
    )
    wanted = kafka["copy_plans"]
    b = copy_plan(kept.entries, 5, of_b.highest_offset, [0, 4], 5, 0)
    a = copy_plan(leader.entries, 7, of_a.highest_offset, [0, 4, 6], 7, 0)
    for plan_, key in ((b, "step_2_B"), (a, "step_3_A")):
        assert (plan_.highest_copied.offset, plan_.from_offset) == (
            wanted[key]["highest_copied"],
            wanted[key]["from_offset"],
        )
        assert [(c.start_offset, c.end_offset, c.segment_leader_epochs) for c in plan_.copies] == [
            (c["start"], c["end"], entries_of(c["segment_epochs"])) for c in wanted[key]["copied"]
        ]


def _scenario(given: Any) -> Callable[..., None]:
    if "leader" in given:
        return scenario_1
    if "leader_step_1" in given:
        return scenario_2
    return scenario_5 if "step_4" in given else scenario_3_and_4


def tiered_story(given: Any, expect: Any) -> None:
    cache, _ = played(given["metadata_events"])
    index = {one["id"]: entries_of(one["leader_epoch_index"]) for one in given["remote_segments"]}
    for one in given["remote_segments"]:
        assert cache.segments[one["id"]].segment_leader_epochs == entries_of(one["metadata_epochs_in_kafka"])
    _scenario(given)(given, expect["kafka"], cache, lambda s: index[s.remote_log_segment_id])


OPS: dict[str, Callable[[Any, Any], None]] = {
    "remote_segment_lookup": remote_segment_lookup,
    "state_transitions": state_transitions,
    "remote_log_size": remote_log_size,
    "remote_log_size_by_epoch": remote_log_size_by_epoch,
    "drop_empty_epochs": drop_empty_epochs,
    "segment_in_lineage": segment_in_lineage,
    "remote_read": remote_read_,
    "highest_copied_offset": highest_copied,
    "copy_candidates": candidates,
    "copy_plan": copying,
    "log_start_offset_on_leader": log_start_offset,
    "metadata_partition": partition_of,
    "metadata_partition_text": partition_by_name,
    "murmur2": hashed,
    "tiered_target_epoch": tiered_target_epoch,
    "tiered_offset_class": tiered_offset_class,
    "offset_constraints": offset_constraints,
    "tiered_follower_reset": tiered_follower_reset,
    "tiered_scenario": tiered_story,
}
FILES = (
    "tiered_fetch_by_epoch",
    "tiered_new_leader_copy",
    "tiered_follower_scenarios",
    "remote_metadata_partition",
)
CASES = [(name, case) for name in FILES for case in vectors(name)["cases"]]


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda v: v["id"] if isinstance(v, dict) else v)
def test_case(name: str, case: Any) -> None:
    OPS[case["op"]](case["given"], case["expect"])


def test_an_update_to_the_first_state_or_a_first_record_with_a_later_one_is_refused() -> None:
    cache, _ = played([["add", "s", 0, 9, [[0, 0]]]])
    assert cache.update(update("s", "COPY_SEGMENT_STARTED")) is Applied.NOT_ALLOWED
    later = segment("t", 0, 9, [[0, 0]])._replace(state=SegmentState.COPY_SEGMENT_FINISHED)
    assert cache.add(later) is Applied.NOT_ALLOWED
    assert [s.remote_log_segment_id for s in cache.all_listed()] == ["s"]
