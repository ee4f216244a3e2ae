"""Rows of `replica loss`, against the records that producers sent and that copies hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.nemesis.statements import UNBOUNDED, Copies, Row, Statement, partition_of, ranges, text
from tests.nemesis.story import IDS, Sent, Story
from tests.nemesis.truth import Batch, Stored

NO_STARTS: Mapping[str, int] = {}


def judge_loss(
    story: Story,
    found: list[Row],
    kept: dict[str, dict[int, Stored]],
    has_copy: Callable[[str, int, str], bool],
    starts: Mapping[str, int] = NO_STARTS,
) -> list[Statement]:
    """Rows of `replica loss` against the leaders' logs at the end.

    `kept` holds these by partition; `has_copy` says whether a copy in the evidence has a value at an offset. What lies
    below `starts` the leaders deleted.
    """
    said: list[Statement] = []
    for partition, log in sorted(kept.items()):
        losses = [row for row in found if row["kind"] == "loss" and partition_of(row) == partition]
        is_sound = any(
            row["verdict"] == "sound"
            for row in found
            if row["kind"] == "judgement" and row["question"] == "loss" and partition_of(row) == partition
        )
        end = max(log, default=-1) + 1
        held = story.held.get(partition, {})
        acknowledged = [s for s in story.sent if s.partition == partition and s.offset is not None]
        answered: dict[int | None, set[str]] = {}
        for sent in acknowledged:
            answered.setdefault(sent.offset, set()).add(sent.value)
        is_compacted = partition.rpartition("-")[0] in story.compacted
        # An administrator asked for it; brokers that were down may have done it late.
        deletions = story.of("delete-records")
        asked = (f.detail["offset"] for f in deletions if f.detail["partition"] == partition)
        deleted_to = max(asked, default=0)

        def claims(offset: int, losses: list[Row] = losses) -> list[Row]:
            return [r for r in losses if r["from_offset"] <= offset < (r["to_offset"] or UNBOUNDED)]

        lost = {}
        for sent in acknowledged:
            offset = sent.offset
            assert offset is not None
            if offset < max(starts.get(partition, 0), deleted_to):
                continue
            if offset in log:
                if text(log[offset].value) != sent.value:
                    lost[offset] = sent
            elif offset >= end or not is_compacted:
                lost[offset] = sent
        shown = {o: s for o, s in lost.items() if has_copy(partition, o, s.value)}
        unclaimed = [offset for offset in shown if not claims(offset)]
        said.append(
            Statement(
                not unclaimed,
                f"loss {partition}: {ranges(unclaimed)} are lost, a copy holds them, and no range claims them",
            )
        )
        unbounded = [
            offset
            for offset, sent in lost.items()
            if sent.acks == "all" and not claims(offset) and has_trace(story, sent)
        ]
        is_total = bool(losses) and not any(row.get("is_at_least") for row in losses)
        said.append(
            Statement(
                not (is_total and unbounded),
                f"loss {partition}: {ranges(unbounded)} are lost beside what is told, which is not called the least",
            )
        )
        understated = [
            offset
            for offset, sent in shown.items()
            if sent.acks == "all"
            and claims(offset)
            and {r["class"] for r in claims(offset)} == {"uncommitted"}
        ]
        said.append(
            Statement(
                not understated,
                f"loss {partition}: {ranges(understated)} were acknowledged with acks=all and are called uncommitted",
            )
        )
        untouched = [
            sent.offset
            for sent in acknowledged
            if sent.offset in log
            and text(log[sent.offset].value) == sent.value
            and {*held.get(sent.offset, ()), *answered[sent.offset]} <= {sent.value}
            and any(r["to_offset"] is not None and not _is_of_lines(r) for r in claims(sent.offset))
        ]
        said.append(
            Statement(
                not untouched,
                f"loss {partition}: {ranges(o for o in untouched if o is not None)} are claimed, and the leader has "
                f"what was acknowledged there; nobody held anything else",
            )
        )
        # What only a leader had is no loss of anything committed: a row of class uncommitted is all that is due.
        gone = [
            offset
            for offset, sent in lost.items()
            if any(r["class"] != "uncommitted" for r in claims(offset))
            or (sent.acks == "all" and (offset in shown or has_trace(story, sent)))
        ]
        said.append(
            Statement(
                not (is_sound and gone),
                f"loss {partition}: called sound, and {ranges(gone)} are lost"
                + "".join(f" ({lost[o].value[:16]} acks={lost[o].acks})" for o in gone[:2]),
            )
        )
    return said


def has_trace(story: Story, sent: Sent) -> bool:
    """Whether a log that had a record was neither cut nor wiped afterwards: Kafka itself dropped it there."""
    held = story.held.get(sent.partition, {}).get(sent.offset or 0, {}).get(sent.value, set())
    leader = story.leader(sent.partition, sent.time)
    holders = held | ({leader} if leader is not None else set())
    destroyed = {
        fault.broker
        for fault in story.of("power-loss", "wipe")
        if fault.time > sent.time and fault.detail.get("partition") in (None, sent.partition)
    }
    return bool(holders - destroyed)


# --- every key of a loss ------------------------------------------------------------------------------

NO_POWER_LOSS = 2_000.0  # ms between an act and the state that shows it
BEFORE_EPOCHS = ("0.9", "0.10.2")


class Lost(NamedTuple):
    """What a copy holds in the range of a loss and the leader at the end does not."""

    offsets: set[int]
    batches: list[Batch]

    def extent(self) -> tuple[int, int | None, int | None]:
        """Records, and the first and the last timestamp of their batches."""
        times = [batch.max_timestamp for batch in self.batches if batch.max_timestamp >= 0]
        return len(self.offsets), min(times, default=None), max(times, default=None)


def lost_records(
    copies: Copies, story: Story, row: Row, log: Mapping[int, Stored]
) -> dict[tuple[str, int], Lost]:
    """By moment and broker, from the bytes of all copies of the topic that has the name at the end."""
    partition = partition_of(row)
    span = range(row["from_offset"], row["to_offset"] or UNBOUNDED)
    found = {}
    for moment in story.moments:
        if moment.time < story.created(row["topic"]):
            continue
        for broker in IDS:
            held = copies.of(moment.name, partition, broker) or {}
            other = {
                offset for offset, record in held.items() if offset in span and log.get(offset) != record
            }
            if other:
                found[moment.name, broker] = Lost(
                    other,
                    [
                        batch
                        for batch in copies.batches(moment.name, partition, broker)
                        if other & set(range(batch.base_offset, batch.last_offset + 1))
                    ],
                )
    return found


def judge_loss_keys(
    story: Story, found: list[Row], kept: Mapping[str, Mapping[int, Stored]], copies: Copies
) -> list[Statement]:
    """The keys of each loss beside its range and class."""
    said: list[Statement] = []
    for row in found:
        if row["kind"] != "loss" or partition_of(row) not in kept:
            continue
        partition = partition_of(row)
        log = kept[partition]
        where = f"loss {partition} [{row['from_offset']}, {row['to_offset']})"
        said += _of_states(story, row, where)
        said += _of_topic(story, row, where)
        said += _of_cause(story, row, where)
        lost = {} if row["is_compacted"] else lost_records(copies, story, row, log)
        said += _of_bytes(row, log, lost, where)
    return said


def _of_states(story: Story, row: Row, where: str) -> list[Statement]:
    """Who wrote and who dropped, in which epochs, after which ISR."""
    states = story.history[partition_of(row)]
    leaders = {state.epoch: state.leader for state in states if state.leader >= 0}
    said = []
    for epoch, broker in (("lost_in_epoch", "dropped_by"), ("written_in_epoch", "written_by")):
        if row[epoch] is not None:
            right = row[epoch] in leaders and row[broker] in (None, leaders[row[epoch]])
            was = leaders.get(row[epoch])
            said.append(
                Statement(right, f"{where}: says {epoch} {row[epoch]}, {broker} {row[broker]}, it led {was}")
            )
    if row["isr_before"] is not None and row["lost_in_epoch"] is not None:
        before = [state.isr for state in states if state.epoch < row["lost_in_epoch"] and state.isr]
        said.append(
            Statement(
                bool(before) and sorted(row["isr_before"]) == sorted(before[-1]),
                f"{where}: says isr_before {row['isr_before']}, it was {before[-2:]}",
            )
        )
    return said


def _of_topic(story: Story, row: Row, where: str) -> list[Statement]:
    """Which topic of the name it is, what it is like, and how sure its cause is."""
    partition = partition_of(row)
    ids = {state.topic_id for state in story.history[partition]} - {None}
    truth = {
        "topic_id": {None, *ids} if ids else {row["topic_id"]},
        "incarnation": {None, len(story.before.get(partition, ())) + 1},
        "is_compacted": {row["topic"] in story.compacted},
        "strength": {None} if row["cause"] == "unknown" else {"sure", "likely"},
    }
    return [
        Statement(row[key] in values, f"{where}: says {key} {row[key]}, it is {values}")
        for key, values in truth.items()
    ]


def _of_cause(story: Story, row: Row, where: str) -> list[Statement]:
    """The cause, by what was done and by how the leader was elected that dropped the records."""
    partition, cause, epoch = partition_of(row), row["cause"], row["lost_in_epoch"]
    states = story.history[partition]
    begun = {state.epoch: state for state in reversed(states)}
    until = begun[epoch].time if epoch in begun else UNBOUNDED

    # A leader whose host loses power may lead again in the same epoch.
    over = min((s.time for s in states if epoch is not None and s.epoch > epoch), default=UNBOUNDED)

    def done(*kinds: str, broker: int | None = None, within: bool = False) -> bool:
        acts = story.of(*kinds, broker=broker)
        return any(
            act.time < (over if within else until) + NO_POWER_LOSS
            and act.detail.get("partition") in (None, partition)
            for act in acts
        )

    unclean = begun[epoch].is_unclean if epoch in begun else any(state.is_unclean for state in states)
    allowed = {
        "unclean_election": unclean,
        "power_failure_tail": done("power-loss") or done("power-loss", broker=row["dropped_by"], within=True),
        "disk_lost": done("wipe", "disk-lost", broker=row["dropped_by"]),
        "zombie_leader": done("pause", "cut"),
        "high_watermark_truncation": story.version in BEFORE_EPOCHS,
        "handover": done("term", "reassign", "election") and not unclean,
        "unknown": True,
    }
    said = [
        Statement(allowed[cause], f"{where}: says {cause} in epoch {epoch}, and nothing of that was done")
    ]
    if epoch in begun and unclean and not done("power-loss", "wipe"):
        said.append(
            Statement(cause == "unclean_election", f"{where}: says {cause}, epoch {epoch} was unclean")
        )
    return said


def _is_of_lines(row: Row) -> bool:
    """Whether lines in which a broker cut its log tell of the records, and no copy holds them."""
    kinds = {proof["kind"] for proof in row.get("evidence", ())}
    # Copies among the proofs may be of other offsets that the same election dropped.
    is_in_copies = "copy" in kinds and row["records"] is not None
    return bool(kinds & {"truncation", "zombie"}) and not is_in_copies


def _of_bytes(
    row: Row, log: Mapping[int, Stored], lost: Mapping[tuple[str, int], Lost], where: str
) -> list[Statement]:
    """What the bytes say: replaced or missing, where they still are, when they were written."""
    said = []
    for key, is_there in (("replaced", True), ("missing", False)):
        offsets = {offset for start, end in row[key] for offset in range(start, end)}
        # What replaced a record of a compacted topic may be gone as well.
        wrong = {offset for offset in offsets if (offset in log) != is_there}
        wrong = set() if is_there and row["is_compacted"] else wrong
        said.append(Statement(not wrong, f"{where}: says {key} {ranges(offsets)}, not so {ranges(wrong)}"))
        outside = {o for o in offsets if not row["from_offset"] <= o < (row["to_offset"] or UNBOUNDED)}
        said.append(Statement(not outside, f"{where}: {key} {ranges(outside)} are not of it"))
    for place in row["recoverable_from"] if lost or not row["is_compacted"] else ():
        right = (place["moment"], place["broker_id"]) in lost
        said.append(Statement(right, f"{where}: {place} holds nothing that was lost"))
    epochs = {batch.epoch for copy in lost.values() for batch in copy.batches}
    # What lines alone tell of were other records than those that copies hold of these offsets, from another time.
    is_others = _is_of_lines(row) and row["written_in_epoch"] not in epochs
    if row["to_offset"] is None or not lost or is_others:
        return said
    is_named = bool(row["recoverable_from"] or row["recoverable_from_tier"])
    said.append(Statement(is_named, f"{where}: {set(lost)} hold it, not said"))
    extents = [copy.extent() for copy in lost.values()]
    for place, key in enumerate(("records", "first_timestamp", "last_timestamp")):
        values = sorted({extent[place] for extent in extents if extent[place] is not None})
        said.append(
            Statement(
                row[key] is None or row[key] in values,
                f"{where}: says {key} {row[key]}, copies have {values}",
            )
        )
    if row["written_in_epoch"] is not None and epochs - {None}:
        said.append(
            Statement(
                row["written_in_epoch"] in epochs,
                f"{where}: says written_in_epoch {row['written_in_epoch']}, its batches have {epochs}",
            )
        )
    return said
