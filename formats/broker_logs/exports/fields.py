"""Lines in objects of any shape: the field that holds one, or a level, a logger, a message and a time side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from formats.broker_logs.carrier_names import carrier_name
from formats.broker_logs.exports.carried import (
    AT,
    FAR,
    LEVELS,
    MOST_DEPTH,
    STAMP,
    CarriedLine,
    cut_at_head,
    has_head,
    of_stamp,
    utc_text,
)
from formats.broker_logs.exports.origins import (
    ORIGIN_KEYS,
    best_of_known,
    flattened,
    has_sign,
    name_of,
    of_pairs,
    origin_in,
    origin_of,
    parsed_object,
    rank_of,
    single,
)

CLASS = re.compile(r"(?:kafka|org\.apache\.kafka|io\.confluent)\.[\w.$]+|state\.change\.logger")
LEVEL = re.compile(LEVELS)
LEVEL_KEY = re.compile(r"level|severity|priority|(?:^|[._])(?:sev|lvl)$", re.IGNORECASE)
LOGGER_KEY = re.compile(r"logger|category|\bclass", re.IGNORECASE)
MESSAGE_KEY = re.compile(r"(?:^|[._@])(?:message|msg|body|text|line|log|event|original|raw)$", re.IGNORECASE)
ANY_MESSAGE_KEY = re.compile("message|msg", re.IGNORECASE)
WORD = re.compile(r"[\w.$]+")
TRACE_KEY = re.compile(r"stack_?trace|thrown|exception|throwable|exc_info", re.IGNORECASE)
TIME_KEY = re.compile(r"time|date|instant|^_?ts$|^@t$", re.IGNORECASE)


class _Places(NamedTuple):
    """The keys of the parts of a line in objects with the same keys, and values of the same types, of which none is an
    object but a time; without `message` the line has a head of its own, in `text`."""

    level: str | None = None
    logger: str | None = None
    message: str = ""
    time: str = ""
    traces: tuple[str, ...] = ()
    text: str = ""
    origins: tuple[str, ...] = ()
    """What may name the process, the best keys first."""
    texts: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


MOST_KINDS = 1000
"""Kinds of objects in one export of which it is remembered where the parts of lines stand."""
_LEVEL_NAMES = frozenset(LEVELS.split("|"))


class Fields:
    """Finds the lines in values of JSON; remembers which keys hold them, for lines that have no head of their own."""

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()
        self._places: dict[tuple[object, ...], _Places] = {}

    def lines(self, value: object, number: int) -> list[CarriedLine]:
        """The lines in one value."""
        if type(value) is dict:
            places = self._places.get(_kind(value))
            if places is not None and (line := self._known(value, places, number)) is not None:
                return [line]
        if not self.keys and not _may_hold_lines(value, 0):
            return []
        return list(self._lines(value, (), number, 0))

    def _known(self, value: dict[str, Any], places: _Places, number: int) -> CarriedLine | None:
        """The line of an object of a known kind; None where it has to be looked at whole."""
        origin = best_of_known(value, places.origins)
        if not places.message:
            text = value[places.text]
            if next(iter(self.keys)) != places.text or not has_head(text):
                return None
            return CarriedLine(number, text, name_of(origin), carried_at((value,), text, places.times))
        if any(has_head(value[key]) for key in places.texts):
            return None
        record = _record(value, places)
        if record is None:
            return None
        millis, local, text = record
        return CarriedLine(number, text, name_of(origin), millis if local is None else None)

    def _remember(self, value: dict[str, object], places: _Places) -> None:
        """Where the parts of the line stand in objects of this kind, if they have no objects in them."""
        is_flat = not any(
            isinstance(inner, (dict, list)) and key != places.time for key, inner in value.items()
        )
        if is_flat and len(self._places) < MOST_KINDS:
            texts = tuple(key for key, inner in value.items() if isinstance(inner, str))
            of_line = {places.level, places.logger, places.message, places.time, places.text, *places.traces}
            self._places[_kind(value)] = places._replace(
                origins=tuple(
                    sorted(
                        (k for k in texts if k not in of_line and rank_of(k) <= len(ORIGIN_KEYS)), key=rank_of
                    )
                ),
                texts=tuple(key for key in texts if key != places.time),
                times=tuple(key for key in value if has_sign(TIME_KEY, key) or key.isdecimal()),
            )

    def _lines(
        self, value: object, outer: tuple[Mapping[str, object], ...], number: int, depth: int
    ) -> Iterator[CarriedLine]:
        if depth > MOST_DEPTH:
            return
        if isinstance(value, list):
            if pairs := of_pairs(value):
                yield from self._lines(pairs, outer, number, depth + 1)
            elif _is_text(value):
                origin = origin_of(outer)
                for text in value:
                    mark, text = cut_at_head(text)
                    yield CarriedLine(number, text, origin or origin_in(mark))
            elif any(isinstance(item, str) for item in value):  # a row: a time and a text
                yield from self._in_object(
                    {str(i): item for i, item in enumerate(value)}, outer, number, depth
                )
            else:
                for item in value:
                    yield from self._lines(item, outer, number, depth + 1)
        elif isinstance(value, dict):
            yield from self._in_object(value, outer, number, depth)

    def _in_object(
        self, value: dict[str, object], outer: tuple[Mapping[str, object], ...], number: int, depth: int
    ) -> Iterator[CarriedLine]:
        if named := [key for key in value if carrier_name(key) is not None]:  # an object of hosts
            for key in named:
                inner = value[key]
                inner = inner.split("\n") if isinstance(inner, str) else inner
                yield from self._lines(inner, ({"host": key}, value, *outer), number, depth + 1)
            return
        line = self._line_of(value, (value, *outer), number)
        if line is not None:
            yield line
            return
        rows = _of_table(value)
        if rows is not None:
            yield from self._lines(rows, (value, *outer), number, depth + 1)
            return
        texts: set[str] = set()
        for inner in value.values():
            if isinstance(inner, str) and inner[:1] == "{":
                inner = parsed_object(inner)
            if not isinstance(inner, (dict, list)):
                continue
            # One event may be told twice, as fields and as its source.
            lines = [
                line
                for line in self._lines(inner, (value, *outer), number, depth + 1)
                if line.text not in texts
            ]
            yield from lines
            texts.update(line.text for line in lines)

    def _line_of(
        self, value: dict[str, object], around: tuple[Mapping[str, object], ...], number: int
    ) -> CarriedLine | None:
        texts = {
            key: text
            for key, item in value.items()
            if (text := _text(item)) is not None and not (text[:1] == "{" and parsed_object(text))
        }
        key = next((key for key in (*self.keys, *texts) if has_head(texts.get(key, ""))), None)
        if key is not None:
            self.keys[key] += 1
            if len(around) == 1:
                self._remember(value, _Places(text=key))
            text = texts[key]
            mark, text = cut_at_head(text)
            return CarriedLine(
                number, text, origin_of(around) or origin_in(mark), carried_at(around, texts[key])
            )
        flat = dict(flattened(value))
        if any(isinstance(text, str) and key not in texts and has_head(text) for key, text in flat.items()):
            return None  # it stands further inside
        if len(around) > 1 and not any(isinstance(text, str) and _is_class(text) for text in flat.values()):
            # OpenTelemetry's scope is the logger.
            flat |= {
                f"scope.{key}": text
                for key, text in flattened(around[1])
                if isinstance(text, str) and _is_class(text)
            }
        places = _places_in(flat)
        if places is not None and (record := _record(flat, places)):
            if len(around) == 1:
                self._remember(value, places)
            # A head is made of its fields; the broker's own time is that of the record.
            millis, local, text = record
            return CarriedLine(
                number, text, origin_of((flat, *around[1:])), millis if local is None else None
            )
        for key, text in texts.items():
            if key in self.keys and not parsed_object(text):
                return CarriedLine(number, text, origin_of(around), carried_at(around, text))
        return None


def _may_hold_lines(value: object, depth: int) -> bool:
    """Whether a level, a class of Kafka or a head stands anywhere, which is quicker than to look where: most JSON has none."""
    if isinstance(value, str):
        return (
            value[:1] == "{"
            or value.upper() in _LEVEL_NAMES
            or (value.count(":") > 1 and LEVEL.search(value) is not None)
            or _is_class(value)
        )
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return (
        depth > MOST_DEPTH
        or (len(value) > 20 and _text(value) is not None)
        or any(_may_hold_lines(item, depth + 1) for item in value)
    )


def _is_text(items: list[Any]) -> bool:
    """Whether a list is of lines, and no row of a table that has one."""
    if not items or not all(isinstance(item, str) for item in items):
        return False
    heads = sum(has_head(item[:FAR]) for item in items[:100])
    return heads > 1 or (len(items) > 2 and has_head(items[0][:FAR]) and AT.match(items[-1]) is not None)


def _text(value: object) -> str | None:
    """A text, which journald gives as a list of bytes where it is none of UTF-8."""
    value = single(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value or not all(type(n) is int and 0 <= n < 256 for n in value):
        return None
    return bytes(value).decode("utf-8", "backslashreplace")


def _of_table(value: dict[str, object]) -> list[object] | None:
    """The objects of an object with columns and rows."""
    columns, rows = value.get("columns") or value.get("fields"), value.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return None
    names = [
        str(column.get("name", i)) if isinstance(column, dict) else str(column)
        for i, column in enumerate(columns)
    ]
    return [dict(zip(names, row, strict=False)) if isinstance(row, list) else row for row in rows]


def _places_in(flat: dict[str, object]) -> _Places | None:
    """Where a level, a logger, a message and a time stand side by side; None where they do not."""
    texts = {key: text for key, text in flat.items() if isinstance(text, str)}
    level = next((k for k, t in texts.items() if has_sign(LEVEL_KEY, k) and t.upper() in _LEVEL_NAMES), None)
    logger = next((k for k, t in texts.items() if _is_class(t)), None)
    is_own = logger is not None
    if logger is None:
        logger = next((k for k, t in texts.items() if has_sign(LOGGER_KEY, k) and WORD.fullmatch(t)), None)
    others = [texts[key] for key in (level, logger) if key is not None]
    message = next((k for k, t in texts.items() if has_sign(MESSAGE_KEY, k) and t not in others), None)
    message = message or next((k for k in texts if has_sign(ANY_MESSAGE_KEY, k)), None)
    time = next((k for k, value in flat.items() if has_sign(TIME_KEY, k) and _instant(value)), None)
    if message is None or time is None or not (level or is_own):
        return None
    return _Places(level, logger, message, time, tuple(k for k in texts if has_sign(TRACE_KEY, k)))


@lru_cache(4096)
def _is_class(text: str) -> bool:
    return len(text) < 200 and CLASS.fullmatch(text) is not None


def _record(values: Mapping[str, Any], places: _Places) -> tuple[int | None, str | None, str] | None:
    """Time in UTC, or as the broker's clock shows it, and the line made of a level, a logger and a message.

    None where what stands in these places is none.
    """
    level = values[places.level].upper() if places.level else "UNKNOWN"
    logger = values[places.logger] if places.logger else ""
    is_word = not logger or _is_class(logger) or (places.level and WORD.fullmatch(logger))
    time = _instant(values[places.time])
    if time is None or not is_word or (places.level and level not in _LEVEL_NAMES):
        return None
    millis, local = time
    trace = next((values[key] for key in places.traces if "\n" in values[key]), "")
    head, _, more = values[places.message].partition("\n")
    shown = local or utc_text(millis)[:-1].replace("T", " ").replace(".", ",")
    rest = "".join(f"\n{part}" for part in (more, trace) if part)
    return millis, local, f"[{shown}] {level} {head}{f' ({logger})' if logger else ''}{rest}"


def _kind(value: Mapping[str, object]) -> tuple[object, ...]:
    """The same for objects with the same keys in the same order, and values of the same types."""
    return (*value, *map(type, value.values()))


def _instant(value: object) -> tuple[int | None, str | None] | None:
    """A time as UTC milliseconds, or as text where its zone is not said; None for what is no time."""
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        return (
            (seconds * 1000 + nanos // 1_000_000, None)
            if isinstance(seconds, int) and isinstance(nanos, int)
            else None
        )
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{10,19}(?:\.\d{1,9})?", value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, (int, float)):
        for scale in (1, 1_000, 1_000_000, 1_000_000_000):  # seconds, milliseconds, microseconds, nanoseconds
            if 1e9 * scale <= value < 1e10 * scale:
                return int(value * 1000 if scale == 1 else value // (scale // 1000)), None
        return None
    stamp = STAMP.search(value, 0, FAR) if isinstance(value, str) else None
    return of_stamp(stamp) if stamp else None


def carried_at(
    around: Iterable[Mapping[str, object]], text: str, keys: Sequence[str] | None = None
) -> int | None:
    """When a line was carried: of the times that are told of it the one nearest to it. `keys`: those that may be times."""
    for fields in around:
        for key in fields if keys is None else keys:
            value = single(fields[key])
            # Some columns have numbers for names.
            if value is text or not (keys is not None or has_sign(TIME_KEY, key) or key.isdecimal()):
                continue
            if (time := _instant(value)) and time[0] is not None:
                return time[0]
    return None


def keys_in_words(fields: Fields) -> str:
    return f"'{fields.keys.most_common(1)[0][0]}'" if fields.keys else "a level, a logger and a message"
