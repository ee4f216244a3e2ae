"""Lost records written out: as a segment file, and as JSON lines, ready to be produced again.

Producer ids, epochs and sequences are left out, because a broker would refuse or drop them; offsets and leader
epochs are kept for reference. Markers of transactions are no records and are left out, and so are the records of
aborted transactions, which nobody was meant to read. A record of a transaction that was still open is marked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

from formats.errors import FormatError
from formats.record_batch import Record, write_batch
from formats.records import records_of
from kctl.errors import Refused, UnreadableFile, reason_of
from kctl.evidence.model import Evidence
from kctl.replica.loss import Loss
from kctl.replica.lost_batches import batches_between
from kctl.replica.lost_parts import LostPart
from kctl.replica.lost_transactions import Outcome, transaction_outcomes
from kctl.replica.record_ranges import LIMIT, entries


def check_target(folder: Path, evidence: Evidence) -> None:
    """Refuse a folder that is, holds or lies in evidence: nothing is ever written beside it."""
    target = folder.resolve()
    for root in evidence.roots:
        if target == root.path or target.is_relative_to(root.path) or root.path.is_relative_to(target):
            raise Refused(f"{folder} is part of the evidence", "give a folder outside of it")


def export_loss(loss: Loss, folder: Path) -> str | None:
    """Write what copies still hold of a loss below the folder; the segment's path, None where nothing is held.

    Raises `Refused` where a file is there already, and `UnreadableFile` where one cannot be written.
    """
    if loss.to_offset is None or not loss.parts:
        return None
    epoch = "unknown" if loss.drop.leader_epoch is None else str(loss.drop.leader_epoch)
    target = folder / f"lost-in-epoch-{epoch}" / str(loss.partition)
    segment = target / f"{loss.from_offset:020d}.log"
    try:
        target.mkdir(parents=True, exist_ok=True)
        with segment.open("xb") as log, segment.with_suffix(".jsonl").open("x", encoding="utf-8") as lines:
            for batch_epoch, records, outcome in _lost_records(loss):
                log.write(write_batch(records, partition_leader_epoch=max(batch_epoch, 0)))
                for record in records:
                    lines.write(_line(loss, record, outcome) + "\n")
    except FileExistsError as error:
        raise Refused(f"{error.filename} is there already", "give a new folder") from error
    except OSError as error:
        for half in (segment, segment.with_suffix(".jsonl")):
            half.unlink(missing_ok=True)
        raise UnreadableFile(f"{target}: {reason_of(error)}", "what was begun there is removed") from error
    return str(segment)


Lost = tuple[int, list[Record], Outcome | None]


def _lost_records(loss: Loss) -> Iterator[Lost]:
    """The lost records batch by batch with leader epoch and transaction, each offset once, from the fullest copies."""
    at, end = loss.from_offset, loss.to_offset
    assert end is not None
    while at < end:
        part = _best(loss.parts, at)
        if part is None:
            following = [p.from_offset for p in loss.parts if p.from_offset > at]
            if not following:
                return
            at = min(following)
            continue
        until = min(part.to_offset, end)
        yield from _records_of(part, at, until)
        at = until


def _best(parts: list[LostPart], offset: int) -> LostPart | None:
    holding = [p for p in parts if p.from_offset <= offset < p.to_offset]
    return max(holding, key=lambda p: p.to_offset, default=None)


def _records_of(part: LostPart, start: int, end: int) -> Iterator[Lost]:
    outcomes: dict[int, Outcome] | None = None
    for log, batches in batches_between(part.held.copy, start, end):
        for row in range(len(batches)):
            for entry in entries(log, batches, [row]):
                if entry.batch is not None and entry.batch.is_control:
                    continue
                outcome = None
                if entry.batch is not None and entry.batch.is_transactional:
                    if outcomes is None:
                        outcomes = transaction_outcomes(part.held.copy, start, end)
                    outcome = outcomes.get(entry.base_offset, Outcome.OPEN)
                    if outcome is Outcome.ABORTED:
                        continue
                try:
                    found = [r for r in records_of(entry, limit=LIMIT) if start <= r.offset < end]
                except FormatError:
                    continue  # the loss says how many records its headers promise
                if found:
                    yield int(batches.leader_epoch[row]), found, outcome


def _line(loss: Loss, record: Record, outcome: Outcome | None) -> str:
    row: dict[str, object] = {
        "topic": loss.partition.topic,
        "partition": loss.partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": [{**_named("key", key), **_named("value", value)} for key, value in record.headers],
    }
    if outcome is Outcome.OPEN:
        row["transaction"] = str(outcome)
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _named(name: str, data: bytes | None) -> dict[str, object]:
    """Bytes as `NAME` where they are UTF-8, else as `NAME_base64`; absent as null."""
    if data is None:
        return {name: None}
    try:
        return {name: bytes(data).decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}
