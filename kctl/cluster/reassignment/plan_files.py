"""A reassignment plan in files: the whole in Kafka's own JSON, the way back, and the batches.

`PLAN.rollback.json` is written first, then `PLAN.json`, then `PLAN.001.json` and so on; nothing that exists is
overwritten. A plan is known by its identity, the SHA-256 of its canonical partitions: the same moves have the
same identity, whatever the file is called and however it is laid out.

Source of the form: core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from kctl.errors import BadValue, KctlError, Refused, UnreadableFile, reason_of
from kctl.files import LARGEST_TABLE, read_text
from kctl.model import Json, TopicPartition

Replicas = tuple[int, ...]
NEW = partial(tuple.__new__, TopicPartition)
LARGEST_BROKER_ID = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """The targets of a plan, and where they were read."""

    path: Path
    targets: Mapping[TopicPartition, Replicas]
    notes: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> str:
        """The plan's identity, 64 hexadecimal digits."""
        return identity_of(self.targets)


class PlanNames(NamedTuple):
    """The files of a plan."""

    plan: Path
    rollback: Path
    batches: tuple[Path, ...]


def file_names(plan: Path, batches: int) -> PlanNames:
    """`drain.json`, `drain.rollback.json`, `drain.001.json` ..."""
    stem = plan.name.removesuffix(".json")
    return PlanNames(
        plan,
        plan.with_name(f"{stem}.rollback.json"),
        tuple(plan.with_name(f"{stem}.{number:03d}.json") for number in range(1, batches + 1)),
    )


def plan_json(targets: Mapping[TopicPartition, Replicas]) -> bytes:
    """The plan as Kafka's own tool reads it, a partition a line, by topic and number."""
    rows = [
        json.dumps(
            {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}, separators=(",", ":")
        )
        for tp, replicas in sorted(targets.items())
    ]
    return ('{"version":1,"partitions":[' + ",".join(f"\n{row}" for row in rows) + "\n]}\n").encode()


def identity_of(targets: Mapping[TopicPartition, Replicas]) -> str:
    """The SHA-256 of the partitions by topic and number, as compact JSON with sorted keys."""
    from hashlib import sha256

    names = {tp.topic: json.dumps(tp.topic) for tp in targets}
    rows = [
        f'{{"partition":{tp.partition},"replicas":[{",".join(map(str, replicas))}],"topic":{names[tp.topic]}}}'
        for tp, replicas in sorted(targets.items())
    ]
    return sha256(f"[{','.join(rows)}]".encode()).hexdigest()


def write_plan(
    plan: Path,
    targets: Mapping[TopicPartition, Replicas],
    origins: Mapping[TopicPartition, Replicas],
    batches: Sequence[Mapping[TopicPartition, Replicas]],
) -> PlanNames:
    """Write all files of a plan. Raises Refused where one exists, before any is written."""
    names = file_names(plan, len(batches))
    stem = plan.name.removesuffix(".json")
    numbered = [p for p in plan.parent.glob(f"{stem}.*.json") if p.name[len(stem) + 1 : -5].isdigit()]
    for path in (names.plan, names.rollback, *sorted(numbered)):
        if path.exists():
            raise Refused(f"{path} exists; nothing was written", "give another name with --to")
    contents = [(names.rollback, origins), (names.plan, targets), *zip(names.batches, batches, strict=True)]
    written: list[Path] = []
    try:
        for path, moves in contents:
            written.append(path)
            _write_new(path, plan_json(moves))
    except OSError as error:
        if not isinstance(error, FileExistsError):
            for path in written:  # half a plan would be in the way of the next try
                path.unlink(missing_ok=True)
        raise KctlError(f"{written[-1]}: {reason_of(error)}", "no plan was written") from error
    return names


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# --- reading ------------------------------------------------------------------------------------------


def read_plan(path: Path) -> PlanFile:
    """The plan of a file: ours, one of its batches, or any that Kafka's tool would take.

    Raises UnreadableFile for a file that is none, BadValue for a plan that must not be carried out: a
    partition twice, no replicas, a broker twice.
    """
    try:
        text = read_text(path, LARGEST_TABLE, follow=True)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"{path}: {reason_of(error)}") from error
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error
    rows = values.get("partitions") if isinstance(values, dict) else None
    if not isinstance(rows, list):
        raise UnreadableFile(f"{path} is no plan: it has no list `partitions`")
    if values.get("version", 1) != 1:
        raise BadValue(f"{path}: version {values['version']!r} of a plan is unknown; there is 1")
    plain = _plain_entries(rows)
    if plain is not None:
        return PlanFile(path=path, targets=plain)
    targets: dict[TopicPartition, Replicas] = {}
    for number, row in enumerate(rows, 1):
        tp, replicas = _entry(path, number, row)
        if tp in targets:
            raise BadValue(f"{path}: {tp} is in it twice, the second time as entry {number}")
        targets[tp] = replicas
    moves_disks = sum(any(d != "any" for d in row.get("log_dirs") or ()) for row in rows)
    notes = (f"{path}: log_dirs of {moves_disks} entries are left out",) if moves_disks else ()
    return PlanFile(path=path, targets=targets, notes=notes)


def _plain_entries(rows: list[Any]) -> dict[TopicPartition, Replicas] | None:
    """The targets of a plan in which nothing is wrong or unusual; None where an entry must be looked at.

    The entries are looked at column by column, which for 10,000 of them is four times as quick as one by one.
    """
    try:
        if set(map(len, rows)) != {3}:
            return None
        topics, partitions, lists = zip(*map(itemgetter("topic", "partition", "replicas"), rows), strict=True)
        brokers = list(chain.from_iterable(lists))
    except (TypeError, KeyError):
        return None
    columns = ((topics, str), (partitions, int), (lists, list), (brokers, int))
    if any(set(map(type, column)) != {kind} for column, kind in columns):
        return None
    numbers = {*partitions, *brokers}
    if min(numbers) < 0 or max(numbers) > LARGEST_BROKER_ID or not all(topics):
        return None
    replicas = list(map(tuple, lists))
    if not all(ids and len(set(ids)) == len(ids) for ids in set(replicas)):
        return None
    targets = dict(zip(map(NEW, zip(topics, partitions, strict=True)), replicas, strict=True))
    return targets if len(targets) == len(rows) else None


def _entry(path: Path, number: int, row: Json) -> tuple[TopicPartition, Replicas]:
    where = f"{path}: entry {number}"
    if not isinstance(row, dict):
        raise BadValue(f"{where} is {row!r}, not an object")
    topic, partition, replicas = row.get("topic"), row.get("partition"), row.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise BadValue(f"{where} has no topic")
    if not _is_id(partition):
        raise BadValue(f"{where} ({topic}): partition is {partition!r}")
    assert isinstance(partition, int)
    tp = TopicPartition(topic, partition)
    if not isinstance(replicas, list) or not all(_is_id(b) for b in replicas):
        raise BadValue(f"{where} ({tp}): replicas are {replicas!r}, not a list of broker ids")
    brokers = tuple(b for b in replicas if isinstance(b, int))
    if not brokers:
        raise BadValue(f"{where} ({tp}) has no replicas: carried out, it would lose the partition")
    if len(set(brokers)) < len(brokers):
        raise BadValue(f"{where} ({tp}) names a broker twice: {list(brokers)}")
    return tp, brokers


def _is_id(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_BROKER_ID
