"""Records of brokers' logs as events: what was said, by whom, about which partition, with its fields by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from formats.broker_logs.objects import INTEGER, numbers, object_of, topic_partition
from formats.broker_logs.template import Template
from kctl.model import TopicPartition
from kctl.text_logs.blocks import BEFORE_ALL, REMEMBERED, Block, Earlier, Shape
from kctl.text_logs.log_files import LogFile
from kctl.text_logs.shapes import writer_of
from kctl.times import iso

MOST_TEXT = 1 << 20


class Event:
    """One record of a log. Fields are taken apart when they are asked for."""

    __slots__ = ("_block", "_broker_id", "_fields", "_index", "event", "shape")

    def __init__(self, block: Block, index: int, shape: Shape) -> None:
        self._block = block
        self._index = index
        self.shape = shape
        self.event = shape.id
        """The id of its template; None for a line without one."""
        self._fields: dict[str, object] | None = None
        # -1: not asked for yet
        self._broker_id: int | None = -1

    @property
    def time_ms(self) -> int | None:
        """UTC milliseconds, see `Block.time_of`; None for lines before the first record of a file."""
        return self._block.time_of(self._index)

    @property
    def logged_ms(self) -> int | None:
        """UTC milliseconds as the line says."""
        time = self._block.places[2][self._index]
        return None if time == BEFORE_ALL else time

    def earlier(self) -> Iterator[Earlier]:
        """The records before it in its source, the last first, some dozens back."""
        block = self._block
        for index in range(self._index - 1, max(-1, self._index - 1 - REMEMBERED), -1):
            yield block.earlier(index)
        if self._index < REMEMBERED and block.before is not None:
            before = block.before
            yield from map(before.earlier, reversed(range(len(before.starts))))

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
        """The broker that wrote it: as the line says, else as the lines around it or its file do; None: unknown."""
        if self._broker_id == -1:
            own = writer_of(self.shape, self._block, self._index)
            self._broker_id = self._block.broker_at(self._index) if own is None else own
        return self._broker_id

    @property
    def broker_by_name(self) -> str | None:
        """The container or host that printed the line, if only its name tells the broker."""
        name = self._block.file.broker_by_name
        is_told = name is None or writer_of(self.shape, self._block, self._index) is not None
        return None if is_told else name

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
        """The logger, with its package where it is one of Kafka's; None where the line is cut off."""
        return self.shape.logger

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
        start, end = self.shape.message
        return decoded(self.record[start:end])

    @property
    def text(self) -> str:
        """The message, then what follows it, such as a stack trace."""
        record = self.record
        if not self.shape.is_record:
            return decoded(record.rstrip(b"\r\n")[:MOST_TEXT])
        start, end = self.shape.message
        message = decoded(record[start:end])
        if record.find(b"\n", end) in (-1, len(record) - 1):  # one line, as most are
            return message
        more = record[end:].partition(b"\n")[2].rstrip(b"\r\n").replace(b"\r\n", b"\n")
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
        record = self.record
        # One decoding for all fields; bytes and characters lie at the same places in ASCII only.
        line = record.decode("ascii") if record.isascii() else None
        fields: dict[str, object] = {}
        if shape.partition:
            start, end = shape.partition
            _add_partition(fields, record[start:end].decode("latin-1"))
        for spans in (shape.speaker, shape.spans):
            for name, kind, start, end in spans:
                text = line[start:end] if line is not None else decoded(record[start:end])
                if kind == "i":
                    fields[name] = int(text)
                elif kind == "tp":
                    _add_partition(fields, text)
                elif kind == "s":
                    fields[name] = object_of(name, text)
                else:
                    convert = CONVERTED.get(kind)
                    fields[name] = text if convert is None else convert(text)
        if "topic" not in fields:
            state = fields.get("state")
            if isinstance(state, dict) and "topic_name" in state:
                fields["topic"], fields["partition"] = state["topic_name"], state.get("partition_index")
        return fields

    @property
    def topic_partition(self) -> TopicPartition | None:
        """The partition that it is about, where it is about one."""
        topic, partition = self.fields.get("topic"), self.fields.get("partition")
        if isinstance(topic, str) and isinstance(partition, int):
            return TopicPartition(topic, partition)
        return None

    def number(self, name: str) -> int | None:
        """A field that is an integer."""
        if self._fields is None:  # of one field the rest need not be taken apart
            for of_span, kind, start, end in self.shape.spans:
                if of_span == name and kind == "i":
                    return int(self.record[start:end])
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


def _add_partition(fields: dict[str, object], text: str) -> None:
    partition = topic_partition(text)
    if partition:
        fields["topic"], fields["partition"] = partition


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
