"""Audits made on each broker, joined into one: for disks that no other machine can read.

Replicas are compared by what `batches` says of them. Records are not there to be decoded: where the bytes of two
batches differ and the topic is compacted, the verdict is left open.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from formats import bounded_json
from kctl.audit.tables import TABLES, Tables, TableWriter, damaged
from kctl.errors import KctlError
from kctl.judging.divergence import judge_divergence
from kctl.judging.judgement import Judgement, Missing, Question, Subject, Verdict
from kctl.model import TopicPartition
from kctl.replica.comparison.pairs import DIVERGED, BatchColumns, BatchDifference, batch_differences
from kctl.rows import row_type
from kctl.rows.replica import DIVERGENCE, LINEAGE, VERDICT
from kctl.scan.parquet import WrittenPart

Row = dict[str, Any]
Key = tuple[str, int, str | None]
COMPARED = ("lineages", "divergences", "verdicts")
COLUMNS = [
    "broker_id",
    "topic",
    "partition",
    "moment",
    "base_offset",
    "last_offset",
    "partition_leader_epoch",
    "crc",
]


def joined_rows(folders: list[Path]) -> Iterator[Row | Judgement]:
    """The rows of every audit's tables but those of comparisons, each with its audit as `evidence`.

    Whether copies agree and records are lost one broker's audit cannot tell: its judgements on that are left out.
    """
    for folder in folders:
        tables = Tables(folder)
        for name in TABLES:
            if name == "judgements":
                yield from _judgements_of_one(tables)
            elif name not in COMPARED:
                for row in tables.rows(name):
                    if "evidence" in row and row["evidence"] is None:
                        row["evidence"] = folder.name
                    yield {"kind": row_type(TABLES[name]).kind, **row}


def _judgements_of_one(tables: Tables) -> Iterator[Judgement]:
    for row in tables.rows("judgements"):
        if row["question"] not in (Question.DIVERGENCE, Question.LOSS):
            yield Judgement(
                Question(row["question"]),
                Verdict(row["verdict"]),
                Subject(row["topic"], row["partition"], row["broker_id"], row["moment"]),
                row["reason"],
                tuple(Missing(**missing) for missing in bounded_json.loads(row["missing"])),
            )


def join_batches(folders: list[Path], writer: TableWriter) -> None:
    """The Parquet files of every audit's `batches` into the joined one, as they are."""
    writer.workers.mkdir()
    for number, folder in enumerate(folders):
        for part in Tables(folder).parts("batches") if (folder / "batches").is_dir() else ():
            rows = pq.read_metadata(part).num_rows
            if rows:
                name = f"audit-{number:03}-{part.name}"
                shutil.copyfile(part, writer.workers / name)
                writer.take_in(WrittenPart(name, rows, part.stat().st_size))


def compared_rows(folders: list[Path]) -> Iterator[Row | Judgement]:
    """Lineages, divergences and a verdict of each partition that two brokers hold; a judgement of each partition."""
    sets = [Tables(folder).dataset("batches") for folder in folders if (folder / "batches").is_dir()]
    if not sets:
        raise KctlError("no table `batches` in the audits", "make them with `kctl audit run` on each broker")
    whole = ds.dataset(sets)
    seen: dict[Key, set[int]] = defaultdict(set)
    try:
        for batch in whole.to_batches(columns=["topic", "partition", "moment", "broker_id"]):
            for row in _distinct(batch.to_pydict()):
                seen[row[:3]].add(row[3])
        brokers = {broker for held in seen.values() for broker in held}
        for key in sorted(seen, key=str):
            verdict, reason = "unknown", ""
            if len(seen[key]) > 1:
                for item in _partition_rows(whole, key):
                    yield item
                    if item["kind"] == VERDICT.kind:
                        verdict, reason = item["verdict"], item["reason"]
            topic, partition, moment = key
            where = TopicPartition(topic, partition)
            yield judge_divergence(where, moment, seen[key], (), brokers, verdict, reason)
    except (OSError, pa.ArrowException) as error:
        raise damaged(", ".join(str(folder / "batches") for folder in folders), error) from error


def _distinct(columns: dict[str, list[Any]]) -> set[tuple[Any, ...]]:
    rows = set(
        zip(columns["topic"], columns["partition"], columns["moment"], columns["broker_id"], strict=True)
    )
    return {row for row in rows if row[0] is not None and row[1] is not None and row[3] is not None}


def _partition_rows(whole: ds.Dataset, key: Key) -> Iterator[Row]:
    topic, partition, moment = key
    where = (ds.field("topic") == topic) & (ds.field("partition") == partition)
    where &= ds.field("moment").is_null() if moment is None else ds.field("moment") == moment
    rows = whole.to_table(columns=COLUMNS, filter=where).to_pydict()
    copies = {broker: _columns(rows, broker) for broker in sorted(set(rows["broker_id"]) - {None})}
    for broker, columns in copies.items():
        yield _lineage(key, broker, columns)
    diverged = False
    for one, other in combinations(copies, 2):
        for start, end in _ranges(copies[one], copies[other]):
            diverged = True
            epochs = [_epochs(copies[broker], start, end) for broker in (one, other)]
            yield DIVERGENCE(
                topic=topic,
                partition=partition,
                moment=moment,
                broker_ids=[one, other],
                from_offset=start,
                to_offset=end,
                epochs=epochs,
            )
    yield _verdict(key, copies, diverged)


def _columns(rows: dict[str, list[Any]], broker: int) -> BatchColumns:
    mine = np.array([broker_id == broker for broker_id in rows["broker_id"]])

    def column(name: str) -> Any:
        return np.array([-1 if value is None else value for value in rows[name]], np.int64)[mine]

    order = np.argsort(column("base_offset"), kind="stable")
    names = ("base_offset", "last_offset", "partition_leader_epoch", "crc")
    return BatchColumns(*(column(name)[order] for name in names))


def _ranges(first: BatchColumns, second: BatchColumns) -> Iterator[tuple[int, int]]:
    """Maximal ranges in which both hold other records."""
    found: list[tuple[int, int]] = []
    for difference in batch_differences(first, second):
        if difference.kind in DIVERGED:
            start, end = _span(difference, first, second)
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            elif start < end:
                found.append((start, end))
    yield from found


def _span(one: BatchDifference, first: BatchColumns, second: BatchColumns) -> tuple[int, int]:
    ends = [
        int(side.last_offset[at]) + 1 for side, at in ((first, one.first), (second, one.second)) if at >= 0
    ]
    return one.offset, min(max(ends, default=one.offset), first.end, second.end)


def _epochs(columns: BatchColumns, start: int, end: int) -> list[int]:
    inside = (columns.last_offset >= start) & (columns.base_offset < end)
    return sorted({int(epoch) for epoch in columns.leader_epoch[inside] if epoch >= 0})


def _lineage(key: Key, broker: int, columns: BatchColumns) -> Row:
    epochs: list[list[int]] = []
    for epoch, base in zip(columns.leader_epoch.tolist(), columns.base_offset.tolist(), strict=True):
        if epoch >= 0 and (not epochs or epoch > epochs[-1][0]):
            epochs.append([epoch, base])
    start = int(columns.base_offset[0]) if len(columns) else 0
    return LINEAGE(
        topic=key[0], partition=key[1], moment=key[2], broker_id=broker, epochs=epochs, rebuilt=epochs,
        log_start_offset=start, local_log_start_offset=start, log_end_offset=columns.end, folder="",
    )  # fmt: skip


def _verdict(key: Key, copies: dict[int, BatchColumns], diverged: bool) -> Row:
    longest = max(columns.end for columns in copies.values())
    behind = [broker for broker, columns in copies.items() if columns.end < longest]
    said = "diverged" if diverged else "behind" if behind else "equal"
    reasons = {
        "diverged": "batches differ at the same offsets; the records themselves are not in the tables",
        "behind": "every shorter copy is the front of the longest",
        "equal": "the same batches, by offsets, epochs and CRC, on the shared range",
    }
    best = None if diverged else next(broker for broker, columns in copies.items() if columns.end == longest)
    return VERDICT(
        topic=key[0], partition=key[1], moment=key[2], verdict=said, best_source=best, reason=reasons[said],
        broker_ids=list(copies), branches=[], behind=behind,
    )  # fmt: skip
