"""A reassignment plan in files: the plan in Kafka's own JSON, the rollback, and the batches.

`PLAN.rollback.json` is written first, then `PLAN.json`, then `PLAN.001.json` and so on; nothing that exists is
overwritten. A plan is known by its identity, the SHA-256 of its canonical partitions: the same moves have the
same identity, whatever the file is called and however it is laid out.

Source of the form: core/src/main/scala/kafka/admin/ReassignPartitionsCommand.scala @ 2.8.2
"""

import codecs
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from formats import bounded_json
from formats.values import Struct, field
from kctl.cluster.disks import ReplicaDirs
from kctl.errors import BadValue, KctlError, Refused, UnreadableFile, file_error, reason_of
from kctl.files import LARGEST_TABLE, read_whole
from kctl.model import Json, TopicPartition

Replicas = tuple[int, ...]
NOWHERE: ReplicaDirs = {}
ANY = "any"  # the broker chooses the log directory
NEW = partial(tuple.__new__, TopicPartition)
LARGEST_BROKER_ID = 2**31 - 1
FEW, LEAST_ENTRY = 100_000, 12
"""Lists and objects that any plan may hold, and bytes for each where there are more: an entry has two in forty bytes."""
PLAN_KEYS = frozenset(("version", "partitions"))
ENTRY_KEYS = frozenset(("topic", "partition", "replicas", "log_dirs"))
SHOWN_KEYS = 5
CORRECT = "correct the file: a plan is what `kctl reassign plan` or Kafka's own tool writes"


class PlanFile(Struct, frozen=True, kw_only=True, dict=True):
    """The targets of a plan, and its file."""

    path: Path
    targets: Mapping[TopicPartition, Replicas]
    log_dirs: ReplicaDirs = field(default_factory=dict)  # of the replicas for which the plan names one

    @cached_property
    def identity(self) -> str:
        """The plan's identity, 64 hexadecimal digits."""
        return identity_of(self.targets, self.log_dirs)


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


def plan_json(targets: Mapping[TopicPartition, Replicas], log_dirs: ReplicaDirs = NOWHERE) -> bytes:
    """The plan as Kafka's own tool reads it, a partition a line, by topic and number."""
    rows = []
    for tp, replicas in sorted(targets.items()):
        row: dict[str, Json] = {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        if paths := _paths(tp, replicas, log_dirs):
            row["log_dirs"] = list(paths)
        rows.append(json.dumps(row, separators=(",", ":")))
    return ('{"version":1,"partitions":[' + ",".join(f"\n{row}" for row in rows) + "\n]}\n").encode()


def _paths(tp: TopicPartition, replicas: Replicas, log_dirs: ReplicaDirs) -> list[str]:
    """The directory of each replica; empty if none is named."""
    paths = [log_dirs.get((tp, broker), ANY) for broker in replicas] if log_dirs else []
    return [] if set(paths) <= {ANY} else paths


def identity_of(targets: Mapping[TopicPartition, Replicas], log_dirs: ReplicaDirs = NOWHERE) -> str:
    """The SHA-256 of the partitions by topic and number, as compact JSON with sorted keys."""
    from hashlib import sha256

    def of_paths(tp: TopicPartition, replicas: Replicas) -> str:
        paths = _paths(tp, replicas, log_dirs)
        return f'"log_dirs":{json.dumps(paths, separators=(",", ":"))},' if paths else ""

    names = {tp.topic: json.dumps(tp.topic) for tp in targets}
    rows = [
        f'{{{of_paths(tp, replicas)}"partition":{tp.partition},"replicas":[{",".join(map(str, replicas))}],"topic":{names[tp.topic]}}}'
        for tp, replicas in sorted(targets.items())
    ]
    return sha256(f"[{','.join(rows)}]".encode()).hexdigest()


def write_plan(
    plan: Path,
    targets: Mapping[TopicPartition, Replicas],
    origins: Mapping[TopicPartition, Replicas],
    batches: Sequence[Mapping[TopicPartition, Replicas]],
    *,
    log_dirs: ReplicaDirs = NOWHERE,
    previous_log_dirs: ReplicaDirs = NOWHERE,
) -> PlanNames:
    """Write all files of a plan. Raises Refused if one exists, before any is written."""
    names = file_names(plan, len(batches))
    stem = plan.name.removesuffix(".json")
    numbered = [p for p in plan.parent.glob(f"{stem}.*.json") if p.name[len(stem) + 1 : -5].isdigit()]
    for path in (names.plan, names.rollback, *sorted(numbered)):
        if path.exists():
            raise Refused(f"{path} exists; nothing was written", "choose another name with --to")
    contents = [(names.rollback, origins), (names.plan, targets), *zip(names.batches, batches, strict=True)]
    written: list[Path] = []
    try:
        for path, moves in contents:
            written.append(path)
            _write_new(path, plan_json(moves, previous_log_dirs if path == names.rollback else log_dirs))
    except OSError as error:
        if not isinstance(error, FileExistsError):
            for path in written:  # half a plan would block the next attempt
                path.unlink(missing_ok=True)
        raise file_error(written[-1], error, KctlError, "no plan was written") from error
    return names


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# --- reading ------------------------------------------------------------------------------------------


def read_plan(
    path: Path, printed: str | None = None, note: Callable[[str], None] = lambda text: None
) -> PlanFile:
    """The plan of a file: ours, one of its batches, or any that Kafka's tool would accept.

    `printed` chooses from what `kafka-reassign-partitions` printed: `current` or `proposed`. `note` gets a sentence for
    what is unusual in a plan that can be carried out. Raises UnreadableFile for other files, BadValue for a plan that must
    not be carried out: a partition twice, no replicas, a broker twice.
    """
    try:
        text = _text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(path, error) from error
    text = _chosen(path, text, printed)
    if text.count("[") + text.count("{") > max(FEW, len(text) // LEAST_ENTRY):
        raise UnreadableFile(f"{path} is not a plan: it is mostly empty lists and objects", CORRECT)
    try:
        values = bounded_json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(path, text, error) from error
    if isinstance(values, dict) and isinstance(values.get("topics"), list) and "partitions" not in values:
        topics = [str(topic.get("topic")) for topic in values["topics"] if isinstance(topic, dict)]
        raise BadValue(
            f"{path} is a list of topics to move, as `kafka-reassign-partitions --generate` takes it, not a plan",
            f"`kctl reassign plan --topics {','.join(topics[:5]) or 'TOPIC'} --to PLAN.json` makes a plan for them",
        )
    rows = values.get("partitions") if isinstance(values, dict) else None
    if not isinstance(rows, list):
        raise UnreadableFile(f"{path} is not a plan: it has no list `partitions`", CORRECT)
    if values.get("version", 1) != 1:
        raise BadValue(
            f"{path}: version {values['version']!r} of a plan is unknown; there is 1", "write version 1"
        )
    if "version" not in values:
        note(f"{path}: the plan names no version; it is read as version 1")
    if unread := _unread(values, rows):
        note(f"{path}: keys that plans do not have are not read: {', '.join(unread)}")
    plain = _plain_entries(rows)
    if plain is not None:
        return PlanFile(path=path, targets=plain)
    targets: dict[TopicPartition, Replicas] = {}
    log_dirs: dict[tuple[TopicPartition, int], str] = {}
    for number, row in enumerate(rows, 1):
        tp, replicas = _entry(path, number, row)
        if tp in targets:
            raise BadValue(
                f"{path}: {tp} is in it twice, the second time as entry {number}", "remove one of the two"
            )
        targets[tp] = replicas
        for broker, log_dir in zip(replicas, _log_dirs(path, number, row), strict=False):
            if log_dir != ANY:
                log_dirs[tp, broker] = log_dir
    return PlanFile(path=path, targets=targets, log_dirs=log_dirs)


def _unread(values: Mapping[str, Json], rows: list[Any]) -> list[str]:
    """The keys of a plan and of its entries that say nothing to Kafka's tool, the first few of them quoted."""
    of_entries = dict.fromkeys(
        key for row in rows if isinstance(row, dict) and len(row) > 2 for key in row if key not in ENTRY_KEYS
    )
    keys = [repr(key) for key in values if key not in PLAN_KEYS] + [
        f"{key!r} of entries" for key in of_entries
    ]
    return keys[:SHOWN_KEYS] + ([f"and {len(keys) - SHOWN_KEYS:,} more"] if len(keys) > SHOWN_KEYS else [])


def _text(path: Path) -> str:
    """The text of a file; UTF-16, which PowerShell writes, has a mark at its beginning, as UTF-8 may have."""
    data = read_whole(path, LARGEST_TABLE, follow=True)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


class PrintedPlan(NamedTuple):
    """A plan in the output of `kafka-reassign-partitions`: the heading above its line."""

    name: str
    heading: str
    words: str


PRINTED = (
    PrintedPlan("current", "Current partition replica assignment", "the present assignment (--current)"),
    PrintedPlan("proposed", "Proposed partition reassignment configuration", "the proposed one (--proposed)"),
)


def _chosen(path: Path, text: str, printed: str | None) -> str:
    """The text of the plan that was chosen from the output of Kafka's tool; of other files the whole text."""
    plans = {plan: text.partition(plan.heading)[2].lstrip() for plan in PRINTED if plan.heading in text}
    if not plans and printed is None:
        return text
    if not plans:
        raise BadValue(
            f"{path} is not the output of `kafka-reassign-partitions`: --{printed} chooses one of its plans",
            f"leave --{printed} out",
        )
    words = f"{path} is the output of `kafka-reassign-partitions`; it holds {' and '.join(plan.words for plan in plans)}"
    chosen = next((below for plan, below in plans.items() if plan.name == printed), None)
    if chosen is None:
        raise BadValue(words, f"say which is meant: {' or '.join(f'--{plan.name}' for plan in plans)}")
    return chosen.partition("\n")[0] if chosen.startswith("{") else chosen


def _not_json(path: Path, text: str, error: Exception) -> KctlError:
    """The error for a text that is no JSON: a mistake, with its place."""
    if not isinstance(error, json.JSONDecodeError):
        return UnreadableFile(f"{path} is not JSON: {reason_of(error)}", CORRECT)
    line = text.split("\n")[error.lineno - 1]
    start = max(0, error.colno - 41)
    shown = line[start : start + 80].rstrip()
    mark = " " * (error.colno - 1 - start) + "^"
    not_json = UnreadableFile(f"{path} is not JSON: {reason_of(error)}", CORRECT)
    not_json.shown = (shown, mark)
    return not_json


def _plain_entries(rows: list[Any]) -> dict[TopicPartition, Replicas] | None:
    """The targets of a plan without errors or unusual entries; None if an entry must be examined.

    The entries are checked column by column, which for 10,000 of them is four times as fast as one by one.
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
        raise BadValue(f"{where} is {row!r}, not an object", CORRECT)
    topic, partition, replicas = row.get("topic"), row.get("partition"), row.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise BadValue(f"{where} has no topic", CORRECT)
    if not _is_id(partition):
        raise BadValue(f"{where} ({topic}): partition is {partition!r}", CORRECT)
    assert isinstance(partition, int)
    tp = TopicPartition(topic, partition)
    if not isinstance(replicas, list) or not all(_is_id(b) for b in replicas):
        raise BadValue(f"{where} ({tp}): replicas are {replicas!r}, not a list of broker ids", CORRECT)
    brokers = tuple(b for b in replicas if isinstance(b, int))
    if not brokers:
        raise BadValue(
            f"{where} ({tp}) has no replicas: carried out, it would lose the partition",
            "name the brokers that are to hold it",
        )
    if len(set(brokers)) < len(brokers):
        raise BadValue(f"{where} ({tp}) names a broker twice: {list(brokers)}", "name each broker once")
    return tp, brokers


def _log_dirs(path: Path, number: int, row: Mapping[str, Json]) -> list[str]:
    """The directory of each replica of an entry, as Kafka's tool checks them; empty if it has none."""
    paths = row.get("log_dirs") or []
    where = f"{path}: entry {number} ({row['topic']}-{row['partition']})"
    if not isinstance(paths, list) or not all(isinstance(log_dir, str) for log_dir in paths):
        raise BadValue(f"{where}: log_dirs are {paths!r}, not a list of paths")
    replicas = row["replicas"]
    if paths and len(paths) != len(replicas if isinstance(replicas, list) else ()):
        raise BadValue(f"{where} has {len(paths)} log_dirs, and not one a replica")
    log_dirs = [str(log_dir) for log_dir in paths]
    if relative := [log_dir for log_dir in log_dirs if log_dir != ANY and not log_dir.startswith("/")]:
        raise BadValue(f"{where}: log directory {relative[0]!r} is not an absolute path, nor `any`")
    return log_dirs


def _is_id(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_BROKER_ID
