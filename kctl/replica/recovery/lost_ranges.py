"""What is to be recovered: ranges of lost records, from evidence or from a folder that `replica loss --export` wrote."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from formats.log.records import DEFAULT_LIMIT, LogEntry, iterate_records, walk
from formats.whole_numbers import whole_number
from kctl.errors import BadValue, KctlError, file_error, reason_of
from kctl.model import TopicPartition
from kctl.replica.loss.partition import Loss
from kctl.replica.loss.recovery import LostBatch, TransactionOutcome, lost_batches
from kctl.scan.source import opened_source

EXPORTED = re.compile(r"lost-in-epoch-(\d+|unknown)")
SEGMENT = re.compile(r"\d{20}\.log")


class LostRange(NamedTuple):
    """Records that a partition lost, and how to read them; `batches` reads them anew each time."""

    partition: TopicPartition
    from_offset: int
    to_offset: int
    lost_in_epoch: int | None
    loss_class: str
    is_compacted: bool
    topic_id: str | None
    sources: tuple[Mapping[str, object], ...]  # {moment, broker_id}; of an export {file}
    batches: Callable[[], Iterator[LostBatch]]
    is_whole: bool = True  # whether copies hold every offset of it

    @property
    def offsets(self) -> int:
        """The number of offsets."""
        return self.to_offset - self.from_offset


def range_of(loss: Loss) -> LostRange | None:
    """What copies hold of a loss; None for one of unknown extent."""
    if loss.to_offset is None:
        return None
    sources = tuple({"moment": moment, "broker_id": broker} for moment, broker in loss.recoverable_from)
    return LostRange(
        loss.partition,
        loss.from_offset,
        loss.to_offset,
        loss.drop.leader_epoch,
        loss.loss_class,
        loss.is_compacted,
        loss.topic_id,
        sources,
        lambda: lost_batches(loss),
        _is_whole(loss),
    )


def _is_whole(loss: Loss) -> bool:
    """Whether copies hold every offset of a loss."""
    at = loss.from_offset
    for part in sorted(loss.parts, key=lambda part: part.from_offset):
        if part.from_offset <= at:
            at = max(at, part.to_offset)
    return loss.to_offset is not None and at >= loss.to_offset


def incident_of(ranges: Iterable[LostRange]) -> str:
    """A short name of the losses, the same for the same losses."""
    digest = sha256()
    for lost in sorted(
        ranges, key=lambda r: (r.partition, r.from_offset, r.to_offset, r.lost_in_epoch or -1)
    ):
        digest.update(f"{lost.partition}@{lost.from_offset}-{lost.to_offset}:{lost.lost_in_epoch}\n".encode())
    return digest.hexdigest()[:12]


# --- folders that were exported -------------------------------------------------------------------------


def is_exported(folder: Path) -> bool:
    """Whether `replica loss --export` wrote this folder."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return False
    return bool(names) and all(EXPORTED.fullmatch(name) for name in names)


def exported_ranges(folder: Path) -> Iterator[LostRange]:
    """The losses of an exported folder, by partition. Raises KctlError for a file that is none of them."""
    try:
        found = [
            (_partition(below.name), int(segment.stem), epoch, segment)
            for epoch in sorted(folder.iterdir())
            for below in sorted(epoch.iterdir())
            for segment in sorted(below.iterdir())
            if SEGMENT.fullmatch(segment.name)
        ]
    except OSError as error:
        raise file_error(folder, error, KctlError) from error
    for partition, start, epoch, segment in sorted(found, key=lambda item: item[:2]):
        end = start
        for batch in _exported_batches(segment, frozenset()):
            end = max(end, batch.records[-1].offset + 1)
        still_open = frozenset(_open_offsets(segment.with_suffix(".jsonl")))
        yield LostRange(
            partition,
            start,
            end,
            whole_number(epoch.name.rpartition("-")[2]),
            "unknown",
            False,
            None,
            ({"file": str(segment.relative_to(folder))},),
            lambda segment=segment, still_open=still_open: _exported_batches(segment, still_open),  # type: ignore[misc]
        )


def _partition(name: str) -> TopicPartition:
    topic, dash, number = name.rpartition("-")
    if not dash or whole_number(number) is None:
        raise BadValue(
            f"{name!r} is not the folder of a partition", "name what `kctl replica loss --export` wrote"
        )
    return TopicPartition(topic, int(number))


def _exported_batches(segment: Path, still_open: frozenset[int]) -> Iterator[LostBatch]:
    try:
        with opened_source(segment) as source:
            for entry in walk(source):
                if not isinstance(entry, LogEntry) or entry.batch is None:
                    raise KctlError(
                        f"{segment} is damaged at position {entry.position}",
                        "export it again with `kctl replica loss --export`",
                    )
                records = list(iterate_records(entry, limit=DEFAULT_LIMIT))
                for outcome in (None, TransactionOutcome.OPEN):
                    chosen = [r for r in records if (r.offset in still_open) is (outcome is not None)]
                    if chosen:
                        yield LostBatch(
                            entry.batch.partition_leader_epoch, entry.batch.codec, chosen, outcome
                        )
    except OSError as error:
        raise file_error(segment, error, KctlError) from error


def _open_offsets(lines: Path) -> Iterator[int]:
    """The offsets of records whose transaction was open."""
    try:
        with lines.open(encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row.get("transaction") == TransactionOutcome.OPEN:
                    yield int(row["offset"])
    except (OSError, ValueError, KeyError) as error:
        raise KctlError(
            f"{lines} cannot be read ({reason_of(error)})",
            "export it again with `kctl replica loss --export`",
        ) from error
