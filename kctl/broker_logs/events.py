"""Records of brokers' logs as events: what was said, by whom, about which partition, with its fields by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from formats.log_objects import INTEGER, numbers, object_of, topic_partition
from formats.log_templates import Template
from kctl.broker_logs.blocks import BEFORE_ALL, Block, Filter, Reading
from kctl.broker_logs.marking import left_out
from kctl.broker_logs.merging import Released, merged
from kctl.broker_logs.overlap import without_copies
from kctl.broker_logs.shapes import Shape, Shapes, message_of
from kctl.broker_logs.sources import LogFile, Sources
from kctl.broker_logs.zones import Zone, detect_zones, iso, shown_offset
from kctl.model import TopicPartition

MOST_TEXT = 1 << 20
LINES_OF_A_START = 20
PAUSE = 1000


class Event:
    """One record of a log. Fields are taken apart when they are asked for."""

    __slots__ = ("_block", "_fields", "_index", "shape")

    def __init__(self, block: Block, index: int, shape: Shape) -> None:
        self._block = block
        self._index = index
        self.shape = shape
        self._fields: dict[str, object] | None = None

    @property
    def time_ms(self) -> int | None:
        """UTC milliseconds, see `Block.time_of`; None for lines before the first record of a file."""
        return self._block.time_of(self._index)

    @property
    def logged_ms(self) -> int | None:
        """UTC milliseconds as the line says."""
        time = self._block.places[2][self._index]
        return None if time == BEFORE_ALL else time

    @property
    def order_ms(self) -> int:
        """What the merge ordered it by: the greatest time so far in its source."""
        return self._block.places[3][self._index]

    @property
    def paused_ms(self) -> int | None:
        """The time of the last record before a pause, a few records back; that of the one before where there is none.

        A process that starts prints some lines before it says so; before it there was none for a while.
        """
        times = [self._block.time_of(at) for at in range(max(0, self._index - LINES_OF_A_START), self._index)]
        known = [time for time in times if time is not None]
        for before, after in zip(reversed(known), reversed([*known[1:], self.time_ms or 0]), strict=True):
            if after - before >= PAUSE:
                return before
        return known[-1] if known else None

    @property
    def time(self) -> str | None:
        """UTC, ISO 8601 with milliseconds."""
        time = self.time_ms
        return None if time is None else iso(time)

    @property
    def logged_time(self) -> str | None:
        """ISO 8601, as the line says."""
        time = self.logged_ms
        return None if time is None else iso(time)

    @property
    def source(self) -> LogFile:
        """The file it is from."""
        return self._block.file

    @property
    def broker_id(self) -> int | None:
        """The broker that wrote it: as the line says, else as its file does."""
        for name, _, start, end in self.shape.speaker:
            if name != "controller_epoch" and self.shape.message != (-1, -1):
                first = self._block.places[0][self._index]
                return int(self._block.data[first + start : first + end])
        return self._block.file.broker_id

    @property
    def file(self) -> str:
        """The file it is from, as rows name it."""
        return self._block.file.file

    @property
    def line(self) -> int:
        """The number of its first line, from 1."""
        return self._block.line_of(self._index)

    @property
    def level(self) -> str:
        """The level as printed."""
        return self.shape.level

    @property
    def logger(self) -> str | None:
        """The logger; None where the line is cut off."""
        return self.shape.logger

    @property
    def event(self) -> str | None:
        """The id of its template; None for a line without one."""
        return self.shape.id

    @property
    def template(self) -> Template | None:
        """Its template."""
        return self.shape.template

    @property
    def record(self) -> bytes:
        """Its bytes as they stand in the file."""
        return self._block.record(self._index)

    @property
    def message(self) -> str:
        """The message with its identity, without what follows it."""
        record = self.record
        if self.shape.message == (-1, -1):
            return decoded(message_of(record, self.shape, self._block))
        start, end = self.shape.message
        return decoded(record[start:end])

    @property
    def text(self) -> str:
        """The message, then what follows it, such as a stack trace."""
        record = self.record
        if not self.shape.is_record:
            return decoded(record.rstrip(b"\r\n")[:MOST_TEXT])
        start, end = self.shape.message
        if end < 0:
            return self.message
        message = decoded(record[start:end])
        if record.find(b"\n", end) in (-1, len(record) - 1):  # one line, as most are
            return message
        more = record[end:].partition(b"\n")[2].rstrip(b"\r\n")
        return message if not more else f"{message}\n{decoded(more[:MOST_TEXT])}"

    @property
    def fields(self) -> dict[str, object]:
        """What the template names, by type; `topic` and `partition` also where only the identity has them."""
        if self._fields is None:
            self._fields = self._taken_apart()
        return self._fields

    def _taken_apart(self) -> dict[str, object]:
        shape = self.shape
        if shape.template is None:
            return {}
        record = message_of(self.record, shape, self._block)
        # One decoding for all fields; bytes and characters lie at the same places in ASCII only.
        line = record.decode("ascii") if record.isascii() else None
        found: dict[str, object] = {}
        if shape.partition:
            start, end = shape.partition
            _add_partition(found, record[start:end].decode("latin-1"))
        for spans in (shape.speaker, shape.spans):
            for name, kind, start, end in spans:
                text = line[start:end] if line is not None else decoded(record[start:end])
                if kind == "i":
                    found[name] = int(text)
                elif kind == "tp":
                    _add_partition(found, text)
                elif kind == "s":
                    found[name] = object_of(name, text)
                else:
                    convert = CONVERTED.get(kind)
                    found[name] = text if convert is None else convert(text)
        if "topic" not in found:
            state = found.get("state")
            if isinstance(state, dict) and "topic_name" in state:
                found["topic"], found["partition"] = state["topic_name"], state.get("partition_index")
        return found

    @property
    def topic_partition(self) -> TopicPartition | None:
        """The partition that it is about, where it is about one."""
        topic, partition = self.fields.get("topic"), self.fields.get("partition")
        if isinstance(topic, str) and isinstance(partition, int):
            return TopicPartition(topic, partition)
        return None

    def number(self, name: str) -> int | None:
        """A field that is an integer."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def state_key(self) -> bytes:
        """The partition, its state and who sent it, as printed: equal for lines that repeat the same."""
        block = self._block
        start = block.places[0][self._index]
        data = block.data
        return b"|".join([data[start + a : start + b] for a, b in self.shape.state])

    def proof(self) -> dict[str, object]:
        """What to point at: file, line, broker, template and the sentence."""
        return {
            "file": self.file,
            "line": self.line,
            "broker_id": self.broker_id,
            "event": self.event,
            "text": self.message[:1000],
        }


def decoded(text: bytes) -> str:
    r"""Text of a log; bytes that are no UTF-8 as \xNN."""
    return text.decode("utf-8", "backslashreplace")


def _add_partition(found: dict[str, object], text: str) -> None:
    one = topic_partition(text)
    if one:
        found["topic"], found["partition"] = one


def _optional(text: str) -> int | None:
    number = INTEGER.search(text)
    return int(number[0]) if number else None


# Kinds of fields and what their text becomes; others stay text.
CONVERTED: dict[str, Callable[[str], object]] = {
    "L": numbers,
    "b": lambda text: text == "true",
    "opt": _optional,
    "tid": lambda text: None if text == "None" else text.removeprefix("Some(").removesuffix(")"),
    "um": bool,
}


@dataclass(slots=True)
class Count:
    """How the records of a run of the merge were understood."""

    events: int = 0
    continuations: int = 0
    other: int = 0
    unknown: int = 0
    # The first lines of state-change and controller logs that have no template.
    unknown_at: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Count one more."""
        if event.event is not None:
            self.events += 1
        elif not event.shape.is_record:
            self.continuations += 1
        elif is_known_logger(event.logger):
            self.unknown += 1
            if len(self.unknown_at) < 20:
                self.unknown_at.append(f"{event.file}:{event.line}")
        else:
            self.other += 1

    def sentence(self, reading: Reading) -> str:
        """The count in words, lines without a template with the places of the first of them."""
        text = (
            f"{self.events} events, {self.continuations} runs of lines without a head, "
            f"{self.other} lines of other loggers, {self.unknown} unknown{left_out(reading)}"
        )
        return f"{text}: {', '.join(self.unknown_at)}" if self.unknown_at else text


def is_known_logger(logger: str | None) -> bool:
    """Whether every line of this logger should have a template."""
    return logger is not None and (logger == "state.change.logger" or logger.startswith("kafka.controller."))


@dataclass
class Merge:
    """Everything needed to read sources in one order of time."""

    sources: Sources
    zones: dict[int | None, Zone]
    shifts: dict[int | None, int] = field(default_factory=dict)
    """Milliseconds added to the times of a broker when ordering, to mend its clock."""
    reading: Reading = field(default_factory=Reading)
    doubtful: frozenset[int] = frozenset()
    """Brokers whose times cannot be put beside those of the others."""

    @cached_property
    def blocks(self) -> list[Iterator[Block]]:
        """The blocks of each source, without copies."""
        return [
            without_copies(self.sources.sources, rank, self.zones.get(one.broker_id), self.reading)
            for rank, one in enumerate(self.sources.sources)
        ]

    def released(self, keep: Filter | None = None) -> Iterator[Released]:
        """Records in order, some thousand at a time, those that `keep` leaves in their blocks."""
        blocks = [map(keep, one) for one in self.blocks] if keep else self.blocks
        shifts = [self.shifts.get(one.broker_id, 0) for one in self.sources.sources]
        return merged(blocks, shifts if any(shifts) else ())

    def events(self, keep: Filter | None = None, wanted: frozenset[str] | None = None) -> Iterator[Event]:
        """Events in order; with `wanted` only those of these templates."""
        shapes = Shapes()
        parsed: dict[int, tuple[Block, list[Shape]]] = {}
        for released in self.released(keep):
            for block, low, high in released.runs():
                known = parsed.get(block.source)
                if known is None or known[0] is not block:
                    known = parsed[block.source] = block, shapes.parse(block)
                of_block = known[1]
                for index in range(low, high):
                    shape = of_block[index]
                    if wanted is None or shape.id in wanted:
                        yield Event(block, index, shape)


def prepare(
    sources: Sources, zones: dict[int, Zone] | None = None, default_zone: Zone | None = None
) -> Merge:
    """A merge of sources, with the zone of each broker as given, as its start-up lines say, or as it is told by
    what brokers sent each other."""
    from kctl.broker_logs.clock_offsets import estimate_offsets

    detected = detect_zones(list(sources.files), zones or {}, default_zone, sources.findings)
    estimate = estimate_offsets(sources.sources, detected)
    sources.findings.extend(estimate.findings())
    for broker_id, offset in estimate.offsets.items():
        detected[broker_id] = Zone(shown_offset(offset), offsets=[offset], source="estimated")
    return Merge(sources, detected, doubtful=frozenset(estimate.doubtful))


def read_events(
    paths: Sequence[str] | Sources,
    *,
    brokers: Sequence[str] = (),
    zones: dict[int, Zone] | None = None,
    keep: Filter | None = None,
) -> Iterator[Event]:
    """The events of the logs below paths, in one order of time.

    `paths` are files, folders, evidence folders or `-`; or sources that were found before, whose `failures`
    and `findings` the caller looks at. Times are UTC.
    """
    from kctl.broker_logs.sources import find_sources

    sources = paths if isinstance(paths, Sources) else find_sources(paths, brokers=brokers)
    return prepare(sources, zones).events(keep)
