"""Join audits made on each broker, for disks that no other machine can read.

Replicas are compared by their rows of `batches`. There are no records to decode: if the bytes of two batches differ
and the topic is compacted, the verdict is open. All batches of a partition are in memory at once, so a partition with
very many is not compared.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from formats import bounded_json
from formats.arrays import Ints
from kctl.audit.tables import TABLES, Tables, TableWriter, damaged
from kctl.errors import KctlError
from kctl.judging.divergence import judge_divergence
from kctl.judging.judgement import Judgement, JudgementSubject, MissingEvidence, Question, Verdict
from kctl.model import StoredRow, TopicPartition
from kctl.replica.comparison.pairs import DIVERGED, BatchColumns, BatchDifference, batch_differences
from kctl.rows import row_type
from kctl.rows.replica import DIVERGENCE, LINEAGE, VERDICT
from kctl.scan.parquet import WrittenPart

Key = tuple[str, int, str | None]
NOT_ROW_BY_ROW = ("lineages", "divergences", "verdicts", "batches")
"""Tables of comparisons, which are made anew, and the one that `join_batches` copies."""
COLUMNS = ("base_offset", "last_offset", "partition_leader_epoch", "crc")
MOST_BATCHES = 2_000_000
"""Batches of all copies of a partition that is compared: they take 64 MB, and half as much again to be sorted."""
MOST_COPIES = 200_000
"""Copies of partitions that the audits may hold together."""
ROWS_AT_ONCE = 1 << 14


class RowGroup(NamedTuple):
    """A row group of a part, and the partitions that it may hold: None if it has no statistics."""

    part: Path
    number: int
    topics: tuple[str, str] | None
    partitions: tuple[int, int] | None

    def may_hold(self, topic: str, partition: int) -> bool:
        """Whether a batch of the partition can be in it."""
        return (self.topics is None or self.topics[0] <= topic <= self.topics[1]) and (
            self.partitions is None or self.partitions[0] <= partition <= self.partitions[1]
        )


def joined_rows(folders: list[Path]) -> Iterator[StoredRow | Judgement]:
    """The rows of every audit's tables but those of comparisons, each with its audit as `evidence`.

    The audit of one broker cannot judge whether copies agree or records are lost: those judgements are left out.
    """
    for folder in folders:
        tables = Tables(folder)
        for name in TABLES:
            if name == "judgements":
                yield from _judgements_of_one(tables)
            elif name not in NOT_ROW_BY_ROW:
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
                JudgementSubject(row["topic"], row["partition"], row["broker_id"], row["moment"]),
                row["reason"],
                tuple(MissingEvidence(**missing) for missing in bounded_json.loads(row["missing"])),
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


def compared_rows(folders: list[Path]) -> Iterator[StoredRow | Judgement]:
    """Lineages, divergences and a verdict of each partition that two brokers hold; a judgement of each partition."""
    parts = [part for folder in folders for part in Tables(folder).parts("batches")]
    if not parts:
        raise KctlError("no table `batches` in the audits", "run `kctl audit run` on each broker")
    try:
        copies = _copies(parts)
        groups = [group for part in parts for group in _groups(part)]
        brokers = {broker for copies_of_partition in copies.values() for broker in copies_of_partition}
        for key in sorted(copies, key=str):
            verdict, reason = "unknown", ""
            batches_count = sum(copies[key].values())
            if batches_count > MOST_BATCHES:
                reason = f"the copies have {batches_count:,} batches, more than the {MOST_BATCHES:,} that are compared"
            elif len(copies[key]) > 1:
                for item in _partition_rows(groups, key, copies[key]):
                    yield item
                    if item["kind"] == VERDICT.kind:
                        verdict, reason = item["verdict"], item["reason"]
            topic, partition, moment = key
            where = TopicPartition(topic, partition)
            yield judge_divergence(where, moment, copies[key], (), brokers, verdict, reason)
    except (OSError, pa.ArrowException) as error:
        raise damaged(", ".join(str(folder / "batches") for folder in folders), error) from error


def _groups(part: Path) -> Iterator[RowGroup]:
    metadata = pq.read_metadata(part)
    columns = [metadata.schema.names.index(name) for name in ("topic", "partition")]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        column_statistics = [group.column(column).statistics for column in columns]
        topics, partitions = (
            (statistics.min, statistics.max) if statistics and statistics.has_min_max else None
            for statistics in column_statistics
        )
        yield RowGroup(part, number, topics, partitions)


def _copies(parts: list[Path]) -> dict[Key, dict[int, int]]:
    """The partitions, and how many batches each broker's copy has."""
    names = ["topic", "partition", "moment", "broker_id"]
    counts: Counter[tuple[Any, ...]] = Counter()
    for batch in chain.from_iterable(_read(part, None, names) for part in parts):
        counted = pa.Table.from_batches([batch]).group_by(names).aggregate([([], "count_all")]).to_pydict()
        for topic, *where, amount in zip(*counted.values(), strict=True):
            counts[topic and intern(topic), *where] += amount
        if len(counts) > MOST_COPIES:
            raise KctlError(
                f"the audits hold more than {MOST_COPIES:,} copies of partitions",
                "compare the replicas with `kctl replica compare`, some topics at a time",
            )
    copies: dict[Key, dict[int, int]] = defaultdict(dict)
    for (topic, partition, moment, broker), amount in counts.items():
        if topic is not None and partition is not None and broker is not None:
            copies[topic, partition, moment][broker] = amount
    return copies


def _read(part: Path, groups: list[int] | None, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """These columns of a part or of its row groups: a dataset would hold many times as much at once."""
    with pq.ParquetFile(part) as file:
        yield from file.iter_batches(ROWS_AT_ONCE, row_groups=groups, columns=columns, use_threads=False)
    pa.default_memory_pool().release_unused()


def _partition_rows(groups: list[RowGroup], key: Key, amounts: dict[int, int]) -> Iterator[StoredRow]:
    topic, partition, moment = key
    copies = _columns_by_broker([group for group in groups if group.may_hold(topic, partition)], key, amounts)
    for broker, columns in copies.items():
        yield _lineage(key, broker, columns)
    reached = {broker: np.maximum.accumulate(columns.last_offset) for broker, columns in copies.items()}
    diverged = False
    for first, second in combinations(copies, 2):
        for start, end in _ranges(copies[first], copies[second]):
            diverged = True
            epochs = [_epochs(copies[broker], reached[broker], start, end) for broker in (first, second)]
            yield DIVERGENCE(
                topic=topic,
                partition=partition,
                moment=moment,
                broker_ids=[first, second],
                from_offset=start,
                to_offset=end,
                epochs=epochs,
            )
    yield _verdict(key, copies, diverged)


def _columns_by_broker(groups: list[RowGroup], key: Key, amounts: dict[int, int]) -> dict[int, BatchColumns]:
    """The batches of each broker's copy, in order of their base offset; -1 where a value is unknown."""
    columns_by_broker = {
        broker: np.empty((len(COLUMNS), amounts[broker]), np.int64) for broker in sorted(amounts)
    }
    filled = dict.fromkeys(columns_by_broker, 0)
    names = ["topic", "partition", "moment", "broker_id", *COLUMNS]
    for batch in chain.from_iterable(_read(group.part, [group.number], names) for group in groups):
        for name, value in zip(names[:3], key, strict=True):
            column = batch.column(name)
            batch = batch.filter(pc.is_null(column) if value is None else pc.equal(column, value))
        batch = batch.filter(pc.is_valid(batch.column("broker_id")))
        brokers, *columns = (
            column.fill_null(-1).to_numpy(zero_copy_only=False) for column in batch.columns[3:]
        )
        for broker in np.intersect1d(brokers, list(columns_by_broker)).tolist():
            is_of_broker = brokers == broker
            start, filled[broker] = filled[broker], filled[broker] + int(is_of_broker.sum())
            for column, values in zip(columns_by_broker[broker], columns, strict=True):
                column[start : filled[broker]] = values[is_of_broker]
    return {broker: _in_order(columns[:, : filled[broker]]) for broker, columns in columns_by_broker.items()}


def _in_order(columns: Ints) -> BatchColumns:
    if (columns[0, 1:] < columns[0, :-1]).any():
        order = np.argsort(columns[0], kind="stable")
        for column in columns:
            column[:] = column[order]
    return BatchColumns(*columns)


def _ranges(first: BatchColumns, second: BatchColumns) -> Iterator[tuple[int, int]]:
    """Maximal ranges in which both hold other records."""
    current: tuple[int, int] | None = None
    for difference in batch_differences(first, second):
        if difference.kind in DIVERGED:
            start, end = _span(difference, first, second)
            if current and start <= current[1]:
                current = current[0], max(current[1], end)
            elif start < end:
                if current:
                    yield current
                current = start, end
    if current:
        yield current


def _span(difference: BatchDifference, first: BatchColumns, second: BatchColumns) -> tuple[int, int]:
    ends = [
        int(side.last_offset[at]) + 1
        for side, at in ((first, difference.first), (second, difference.second))
        if at >= 0
    ]
    return difference.offset, min(max(ends, default=difference.offset), first.end, second.end)


def _epochs(columns: BatchColumns, reached: Any, start: int, end: int) -> list[int]:
    """The leader epochs between two offsets; `reached` are the last offsets, of each the greatest so far."""
    part = slice(np.searchsorted(reached, start), np.searchsorted(columns.base_offset, end))
    inside = columns.last_offset[part] >= start
    return sorted({int(epoch) for epoch in columns.leader_epoch[part][inside] if epoch >= 0})


def _lineage(key: Key, broker: int, columns: BatchColumns) -> StoredRow:
    reached = np.maximum.accumulate(columns.leader_epoch)
    begins = np.append(True, reached[1:] > reached[:-1]) & (reached >= 0)
    epochs = np.stack((reached[begins], columns.base_offset[begins]), axis=1).tolist()
    start = int(columns.base_offset[0]) if len(columns) else 0
    return LINEAGE(
        topic=key[0], partition=key[1], moment=key[2], broker_id=broker, epochs=epochs, rebuilt=epochs,
        log_start_offset=start, local_log_start_offset=start, log_end_offset=columns.end, folder="",
    )  # fmt: skip


def _verdict(key: Key, copies: dict[int, BatchColumns], diverged: bool) -> StoredRow:
    longest = max(columns.end for columns in copies.values())
    behind = [broker for broker, columns in copies.items() if columns.end < longest]
    verdict = "diverged" if diverged else "behind" if behind else "equal"
    reasons = {
        "diverged": "batches differ at the same offsets; the records themselves are not in the tables",
        "behind": "shorter copies agree with the longest as far as they go",
        "equal": "the same batches, by offsets, epochs and CRC, on the shared range",
    }
    best = None if diverged else next(broker for broker, columns in copies.items() if columns.end == longest)
    return VERDICT(
        topic=key[0], partition=key[1], moment=key[2], verdict=verdict, best_source=best, reason=reasons[verdict],
        broker_ids=list(copies), branches=[], behind=behind,
    )  # fmt: skip
