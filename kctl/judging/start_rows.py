"""The rows of a forecast: the broker first, then what it would destroy that no other copy holds, then the other steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kctl.evidence.model import FoundEvidence
from kctl.judging.start import is_lost
from kctl.log_dir_start.forecast import BrokerStart
from kctl.log_dir_start.steps import PlacedStep
from kctl.model import Row
from kctl.rows.verify import START, START_STEP


def start_rows(start: BrokerStart, evidence: FoundEvidence, reason: str) -> Iterator[Row]:
    """The rows of one broker's start; `reason` is that of its judgement."""
    names = {str(log_dir.path): _shown(evidence, log_dir.path, start) for log_dir in start.log_dirs}
    yield START(
        broker_id=start.broker_id,
        kafka_version=start.kafka_version,
        starts=start.starts,
        reason=reason,
        fails_with=start.failure.words if start.failure else None,
        exception=start.failure.exception if start.failure else None,
        log_dirs_offline=[names[path] for path in start.offline],
        partitions=start.partitions,
        bytes_read=start.bytes_read,
        bytes_written=sum(room.recovery for room in start.rooms),
        bytes_free=min((room.free for room in start.rooms if room.free is not None), default=None),
        moment=start.moment,
    )
    for placed in sorted(start.steps, key=lambda step: not is_lost(step)):
        yield _step_row(placed, start, names)


def _step_row(placed: PlacedStep, start: BrokerStart, names: dict[str, str]) -> Row:
    step, named = placed.step, placed.named
    return START_STEP(
        log_dir=names[placed.log_dir],
        topic=named.topic if named else None,
        partition=named.partition if named else None,
        broker_id=start.broker_id,
        folder=placed.folder,
        step=str(step.step),
        file=step.file,
        from_offset=step.from_offset,
        to_offset=step.to_offset,
        records_cut=step.records_cut,
        bytes_cut=step.bytes_cut,
        only_copy=placed.destroyed.only_copy if placed.destroyed else None,
        message=step.message,
        source=step.source,
        moment=start.moment,
    )


def _shown(evidence: FoundEvidence, path: Path, start: BrokerStart) -> str:
    root = next(log_dir.root for log_dir in start.log_dirs if log_dir.path == path)
    place = evidence.place_of(path, root)
    return root.given_path if place.file in (None, ".") else str(place.file)
