"""What names the process that printed a line: the best of the fields, words and names around it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from formats import bounded_json
from formats.broker_logs.carrier_names import OF_KAFKA, carrier_name
from formats.broker_logs.date_formats import OTHER_DATE
from formats.broker_logs.exports.carried import LEVELS, MOST_KEYS, STAMP_EXPRESSION, SYSLOG_TIME

LONGEST_ORIGIN = 200
# What names the process that printed a line, best first.
ORIGIN_KEYS = tuple(
    re.compile(rf"(?:^|[._@]|_)(?:{names})$", re.IGNORECASE)
    for names in (
        r"pod\.?_?name|podname|pod|\w*kubernetes_pod",
        r"container\.?_?name|containername|container",
        r"log_?stream(?:_?name)?",
        r"host\.?_?name|source_host|host|node\.?_?name|computer|instance|system|hostname|program",
    )
)
# Any other field may name it, such as a column without a heading or the path of a file, where a number of Kafka's is in
# it: but for those that name what several processes share, or what one of them speaks of.
NO_ORIGIN = re.compile(
    r"namespace|cluster|project|topic|image|version|thread|logger|user|leader|peer|remote", re.IGNORECASE
)
# Of a mark before a line, what names no process.
NAMELESS = re.compile(
    rf"{STAMP_EXPRESSION}(?:[,.]\d{{1,9}})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?|{SYSLOG_TIME}|(?:{OTHER_DATE})(?:[ :]\d\d:\d\d:\d\d)?|<\d+>\d?|\bstd(?:out|err)\b(?: [FP]\b)?"
    rf"|\x1b\[[0-9;]*[mK]|\[\d+\]|(?<![\w.-])\d+(?![\w.-])|\b(?:{LEVELS}|info|warn|error|debug|notice)\b|[^\w.\-/]+"
)
NAMED = re.compile(r"\b(\w+)=\"?([\w./-]+)")
# Kafka's own logs in a folder, by their names.
LOG_NAME = re.compile(
    r"(?:^|/)(?:state-change|controller|server|log-cleaner|kafka-request|kafka-authorizer|kafkaServer)(?:[._-][\w.-]*)?\.(?:log|out)\S*$"
)
NOBODY = "-"
"""What stands for the process of lines that name none, among others that do."""
PAIRS = (("field", "value"), ("key", "value"), ("name", "value"), ("Field", "Value"), ("Key", "Value"), ("k", "v"))  # fmt: skip


def parsed_object(text: str) -> object:
    if not text.startswith("{"):
        return None
    try:
        return bounded_json.loads(text)
    except (ValueError, RecursionError):
        return None


def of_pairs(items: list[object]) -> dict[str, object] | None:
    """A list of names and values as an object."""
    for name, held in PAIRS:
        if items and all(
            isinstance(item, dict) and isinstance(item.get(name), str) and held in item for item in items
        ):
            pairs = {str(item[name]): item[held] for item in items if isinstance(item, dict)}
            return {key: single(value) for key, value in pairs.items()}
    return None


def single(value: object) -> object:
    """The value of OpenTelemetry's `{"stringValue": …}` and of a list of one text, and any other as it is."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)).endswith("Value"):
        return next(iter(value.values()))
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) else value


def trace_of(items: list[object]) -> str:
    """The lines of a stack trace that log4j 2 wrote as objects; empty for any other list."""
    if not all(isinstance(item, dict) and "class" in item and "method" in item for item in items):
        return ""
    return "".join(
        f"\n\tat {item['class']}.{item['method']}({item.get('file', 'Unknown Source')}:{item.get('line', '')})"
        for item in items
        if isinstance(item, dict)
    )


def flattened(value: Mapping[str, object], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Keys with points between the names of nested objects, and their values that are no objects."""
    for key, inner in itertools.islice(value.items(), MOST_KEYS):
        inner = single(inner)
        if isinstance(inner, list) and (trace := trace_of(inner)):
            inner = trace
        if isinstance(inner, list) and len(inner) <= MOST_KEYS and (pairs := of_pairs(inner)):
            inner = pairs
        if isinstance(inner, dict) and depth < 4 and "epochSecond" not in inner:
            yield from flattened(inner, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", inner


@lru_cache(4096)
def has_sign(expression: re.Pattern[str], key: str) -> bool:
    return expression.search(key) is not None


Process = tuple[tuple[int, int], str]
"""What may name a process, behind its order: the least is the best."""
_NOBODY: Process = ((3, 0), "")


def origin_of(around: Iterable[Mapping[str, object]]) -> str:
    """What names the process that printed a line, in the objects around it."""
    return name_of(min((_best(flattened(fields)) for fields in around), default=_NOBODY, key=_order)[1])


def _best(values: Iterable[tuple[str, object]]) -> Process:
    named = (
        _process(key, value) for key, value in values if isinstance(value, str) and _may_name(key, value)
    )
    return min(named, default=_NOBODY, key=_order)


def best_of_known(values: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The same of texts in these places, which are in the order of their ranks."""
    order, name = _NOBODY
    for key in keys:
        value = values[key]
        if _may_name(key, value) and (process := _process(key, value))[0] < order:
            order, name = process
            if order[0] == 0:
                break
    return name


def _order(process: Process) -> tuple[int, int]:
    return process[0]


def _may_name(key: str, value: str) -> bool:
    is_short = 0 < len(value) <= LONGEST_ORIGIN
    return (is_short and (rank_of(key) < len(ORIGIN_KEYS) or OF_KAFKA.search(value) is not None)) or value[
        :1
    ] == "{"


@lru_cache(4096)
def _process(key: str, value: str) -> Process:
    """Pods first; then what has the number of one of Kafka's before what has none, as a container has that is called
    `kafka` on each host."""
    if value.startswith("{"):  # labels in one cell
        labels = parsed_object(value)
        return _best(flattened(labels if isinstance(labels, dict) else dict(NAMED.findall(value))))
    rank = rank_of(key)
    value = value.strip()
    is_numbered = carrier_name(value) is not None
    if rank > len(ORIGIN_KEYS) or (rank == len(ORIGIN_KEYS) and (not is_numbered or " " in value)):
        return _NOBODY
    return (0 if rank == 0 else 1 if is_numbered else 2, rank), place_of(value)


@lru_cache(4096)
def rank_of(key: str) -> int:
    if NO_ORIGIN.search(key):
        return len(ORIGIN_KEYS) + 1
    return next((rank for rank, keys in enumerate(ORIGIN_KEYS) if keys.search(key)), len(ORIGIN_KEYS))


def place_of(name: str) -> str:
    """The folder of one of Kafka's own logs, all of which a process writes; any other name as it is."""
    return LOG_NAME.sub("", name)


def process_of(text: str) -> str:
    """What names the process in what a syslog daemon puts before a line, its host first: the host and what has a number
    of Kafka's beside it."""
    host, _, rest = text.partition(" ")
    pairs = dict(NAMED.findall(rest)) if "=" in rest else {}
    named = [name for name in (*pairs.values(), *rest.split()) if carrier_name(name) is not None]
    return name_of(f"{host} {named[0]}" if named else host)


@lru_cache(4096)
def name_of(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f]", "?", text)[:LONGEST_ORIGIN]


def origin_in(mark: str) -> str:
    """What names a process in the mark of a line."""
    if not mark:
        return ""
    pairs: dict[str, object] = dict(NAMED.findall(mark))
    return origin_of((pairs,)) or name_of(" ".join(NAMELESS.sub(" ", NAMED.sub(" ", mark)).split()))
