"""Rows of `transactions` and `replica explain`, against batches of the copies at the end and Kafka's own tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.nemesis.statements import Copies, Row, Statement, partition_of
from tests.nemesis.story import IDS, Story
from tests.nemesis.truth import Batch, Stored, batches_of, log_of


class Open(NamedTuple):
    """A transaction without a marker at the end of a log."""

    first: int
    last: int
    producer_epoch: int
    timestamp: int


def open_in(batches: list[Batch]) -> dict[int, Open]:
    """The transactions that are open at the end of a log, by producer id."""
    found: dict[int, Open] = {}
    for batch in batches:
        if batch.producer is None:
            continue
        producer, epoch = batch.producer
        if batch.is_marker:
            found.pop(producer, None)
        else:
            first = found[producer].first if producer in found else batch.base_offset
            found[producer] = Open(first, batch.last_offset, epoch, batch.max_timestamp)
    return found


def judge_open(story: Story, found: list[Row], copies: Copies) -> list[Statement]:
    """Rows of open transactions against the leaders' batches at the end, and what is known of their coordinators."""
    said = []
    hung = {fault.detail["producer"] for fault in story.of("open") if fault.detail["is_hung"]}
    known = {entry.producer_id: entry for entry in story.transactions}
    for partition in sorted(story.held):
        leader = story.leader(partition, story.settled)
        if leader is None or copies.path("after", partition, leader) is None:
            continue
        truth = open_in(copies.batches("after", partition, leader))
        rows = {
            row["producer_id"]: row
            for row in found
            if row["kind"] == "open_transaction" and partition_of(row) == partition
        }
        hanging = {
            producer
            for producer in truth
            if producer in hung or (producer in known and partition not in known[producer].partitions)
        }
        where = f"transactions {partition}"
        unsaid = hanging - rows.keys()
        said.append(Statement(not unsaid, f"{where}: of producers {unsaid} hang, and nothing says so"))
        for producer, row in rows.items():
            of = f"{where} of producer {producer}"
            is_open = truth.get(producer)
            if is_open is None:
                said.append(Statement(False, f"{of}: it is not open"))
                continue
            told = Open(row["first_offset"], row["last_offset"], row["producer_epoch"], row["last_timestamp"])
            said.append(Statement(told == is_open, f"{of}: says {told}, the batches {is_open}"))
            said.append(
                Statement(
                    row["hanging"] is None or row["hanging"] == (producer in hanging),
                    f"{of}: says hanging {row['hanging']} ({row['why']}), hung are {hanging}",
                )
            )
            name = known[producer].name if producer in known else None
            said.append(
                Statement(
                    row["transactional_id"] in (None, name),
                    f"{of}: says transactional id {row['transactional_id']}, it is {name}",
                )
            )
            said.append(
                Statement(
                    (row["abort_command"] is None) or bool(row["hanging"]),
                    f"{of}: says {row['abort_command']!r} of one that does not hang",
                )
            )
    return said


def judge_ids(story: Story, found: list[Row]) -> list[Statement]:
    """Rows of transactional ids against the newest entries that Kafka's own tool shows in the leaders' logs."""
    truth = {entry.name: entry for entry in story.transactions}
    rows = {row["transactional_id"]: row for row in found if row["kind"] == "transaction"}
    said = [
        Statement(
            rows.keys() == truth.keys(),
            f"transactions: ids {sorted(rows)}, the log has {sorted(truth)}",
        )
    ]
    for name in sorted(rows.keys() & truth.keys()):
        row, entry = rows[name], truth[name]
        values = {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "state": entry.state,
            "timeout_ms": entry.timeout_ms,
            "last_update_timestamp": entry.last_update,
            "partitions": entry.partitions,
            "log_partition": entry.log_partition,
            "log_offset": entry.log_offset,
        }
        wrong = {
            key: value
            for key, value in values.items()
            if (sorted(row[key]) if key == "partitions" else row[key]) != value
        }
        shown = {key: row[key] for key in wrong}
        said.append(Statement(not wrong, f"transactions {name}: says {shown}, the log has {wrong}"))
        started = row["start_timestamp"]
        said.append(
            Statement(
                started is None or started <= entry.last_update,
                f"transactions {name}: began at {started}, after {entry.last_update}",
            )
        )
    return said


# --- one offset ---------------------------------------------------------------------------------------


def judge_explanation(
    story: Story, found: list[Row], partition: str, offset: int, copies: Copies
) -> list[Statement]:
    """Rows about one offset against what the copies hold there and the states that were."""
    where = f"explain {partition} {offset}"
    states = story.history[partition]
    leaders = {state.epoch: state.leader for state in states if state.leader >= 0}
    said = []
    for row in (row for row in found if row["kind"] == "explanation"):
        what = f"{where}: {row['what']} {row['text']!r}"
        right = partition_of(row) == partition and row["offset"] == offset
        moment, broker, epoch = row["moment"], row["broker_id"], row["leader_epoch"]
        if row["what"] in ("copy", "absent"):
            # A folder that is being deleted lies beside the copy.
            is_aside = str(row.get("file")).endswith("-delete")
            held = log_of(copies.folder / row["file"]) if is_aside else copies.of(moment, partition, broker)
            right &= held is not None and (offset in held) == (row["what"] == "copy")
            if row["what"] == "copy" and epoch is not None:
                batches = (
                    batches_of(copies.folder / row["file"])
                    if is_aside
                    else copies.batches(moment, partition, broker)
                )
                of_batch = [
                    batch.epoch for batch in batches if batch.base_offset <= offset <= batch.last_offset
                ]
                right &= epoch in of_batch
        elif row["what"] in ("written", "lost") and epoch is not None:
            right &= epoch in leaders and broker in (None, leaders[epoch])
        elif row["what"] == "led" and broker is not None:
            # Where nobody leads at the end it is the one whose copy is taken.
            right &= broker in leaders.values() or story.leader(partition, story.moments[-1].time) is None
        ids = {state.topic_id for state in states} - {None}
        right &= row["topic_id"] is None or not ids or row["topic_id"] in ids
        said.append(Statement(right, f"{what}: of broker {broker} {moment} epoch {epoch}; leaders {leaders}"))
    told = {
        (row["moment"], row["broker_id"])
        for row in found
        if row["kind"] == "explanation" and row["what"] == "copy"
    }
    holding = {
        (moment.name, broker)
        for moment in story.moments
        if moment.time > story.created(partition.rpartition("-")[0])
        for broker in IDS
        if offset in (copies.of(moment.name, partition, broker) or {})
    }
    said.append(Statement(holding <= told, f"{where}: {sorted(holding - told)} hold it, not said"))
    return said


def offsets_to_explain(
    story: Story, losses: list[Row], kept: Mapping[str, Mapping[int, Stored]]
) -> list[tuple[str, int]]:
    """One lost offset and one that is there, of each partition."""
    chosen = []
    for partition, log in sorted(kept.items()):
        chosen += [
            (partition, row["from_offset"])
            for row in losses
            if row["kind"] == "loss" and partition_of(row) == partition
        ][:1]
        chosen += [(partition, sorted(log)[len(log) // 2])] if log else []
    return chosen
