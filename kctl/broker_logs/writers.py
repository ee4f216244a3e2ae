"""Which broker wrote each line of a log that several brokers write to.

A line is the broker's that its identity names. What names none and belongs to the start of a process is that of the
line of the same thread that does: the configuration that is printed with it, its registration, or its end. Other
lines have no broker.

Few lines say more than who wrote them. They are told by how they begin, and so are the writers: of most lines nothing
else is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from formats.broker_logs.layouts import KAFKA
from formats.broker_logs.line import HEAD_SIZE, IDENTITY, STATE_IDENTITY, WRITER, Bools, Int64s
from kctl.broker_logs.blocks import BEFORE_ALL, NO_BROKER, Block, Shape
from kctl.broker_logs.shapes import Shapes, message_of, writer_of

CONFIGURATION = b"KafkaConfig values:"
CONFIGURED_ID = re.compile(rb"^\s*(?:broker|node)\.id = (\d{1,10})\s*$", re.MULTILINE)
OVERRIDDEN_ID = re.compile(rb"Property broker\.id is overridden to (\d{1,10})")
REGISTERED = re.compile(rb"Registered broker (\d{1,10}) at path ")
SERVER = "kafka.server.KafkaServer"
STARTS = "U11"
# Lines of the thread that starts a broker which say its id: it has started, or could not.
STARTED = frozenset(("U12", "U20"))
# Partitions on a disk that failed are given up, and the same thread then says, without its broker, what that leads to.
GIVES_UP, GIVEN_UP = "D02", frozenset(("R21", "D05"))
# A process that fails before it knows its id stops without it.
STARTED_WELL, STOPPED = "U12", "U14"
STOPS = frozenset(("U13", STOPPED, "U20"))
# Lines that say more than who wrote them, also where their identity names the broker.
TELLING = STARTED | STOPS | {STARTS, GIVES_UP}
APP_INFO = "org.apache.kafka.common.utils.AppInfoParser"
UNREGISTERED = re.compile(rb"App info kafka\.server for (\d{1,10}) unregistered")
# How those lines begin, and all others whose text is looked at; the first letter stands for either case.
BEGINS = re.compile(
    rb"[\n\t]*(?:[Ss]tart|[Ss]hut|[Ss]topping|[Ff]atal|[Bb]roker|KafkaCon|Register|Property|App info)"
)
LEVEL = re.compile(rb" [A-Z]+ ")
# What only the logger tells to be an identity: part of the sentence in logs of others.
BARE = re.compile(rb"(?:Controller|Broker) ")
STATE_CHANGE = b" (state.change.logger)\n"
# Bytes of a line behind its time that are looked at, as words of eight: of all lines, then of those whose identity is
# longer. `BEGINS` needs so many of the sentence.
WIDTHS, NEEDED = (40, 64, 120), 10
# In the place of a broker: more of the line has to be looked at; its beginning was too short to tell.
ELSE, CUT = -2, -3
# The broker is this less the number where the logger of state changes ends the line.
IF_STATE_CHANGE = -4
MOST_KNOWN = 20_000
# Beginnings that were seen have slots by a hash of their words.
SLOT_BITS = 12
FACTORS = np.array([0x9E3779B97F4A7C15 * (2 * n + 1) % 2**64 for n in range(WIDTHS[-1] // 8)], np.uint64)
# How many blocks are held until a start has its broker.
MOST_HELD = 2


class _Writers(dict[bytes, int]):
    """How a line goes on behind its time, to the broker that it names as its writer; `ELSE` where it may say more than
    that, `CUT` where `width` bytes do not tell. Of all lines of a block at once, most are found in a table."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._begins = np.zeros((1 << SLOT_BITS, width // 8), np.uint64)
        self._found = np.full(1 << SLOT_BITS, ELSE)
        self._rows = np.zeros(1 << SLOT_BITS, np.int64)

    def of(self, data: bytes, starts: Int64s) -> Int64s:
        """What the lines that start there say; `CUT` also of those too near to the end of the data."""
        said = np.full(len(starts), CUT)
        last = len(data) - self.width - HEAD_SIZE
        count = int(np.searchsorted(starts, last, "right"))
        if not count:
            return said
        windows = np.ndarray((last + HEAD_SIZE + 1,), f"V{self.width}", data, strides=(1,))
        begins = windows[starts[:count] + HEAD_SIZE].view(np.uint64).reshape(count, -1)
        slots = (begins @ FACTORS[: self.width // 8] >> np.uint64(64 - SLOT_BITS)).astype(np.int64)
        new = np.flatnonzero((self._begins[slots] != begins).any(axis=1))
        found: Int64s = self._found[slots]
        while len(new):
            # Of those with one slot the last takes it, for all that are like it.
            at = slots[new]
            self._begins[at], self._rows[at] = begins[new], new
            takers = new[self._rows[at] == new]
            texts: list[bytes] = begins[takers].view(f"S{self.width}").ravel().tolist()
            self._found[slots[takers]] = list(map(self.__getitem__, texts))
            found[new] = self._found[at]
            new = new[(self._begins[at] != begins[new]).any(axis=1)]
        said[:count] = found
        return said

    def __missing__(self, text: bytes) -> int:
        if len(self) >= MOST_KNOWN:
            self.clear()
        self[text] = found = self._writer(text)
        return found

    @staticmethod
    def _writer(text: bytes) -> int:
        level = LEVEL.match(text)
        if level is None:
            return ELSE
        message = text[level.end() :]
        if BARE.match(message):
            bare = STATE_IDENTITY.match(message)
            broker = int(bare[3]) if bare and bare[3] else NO_BROKER
            return ELSE if broker == NO_BROKER else IF_STATE_CHANGE - broker
        identity = IDENTITY.match(message)
        end = identity.end() if identity else 0
        is_cut = identity is None and message.startswith((b"[", b"Partition [", b"Cleaner "))
        if is_cut or end + NEEDED > len(message):
            return CUT
        if BEGINS.match(message, end):
            return ELSE
        if found := WRITER.match(message):
            return int(found[found.lastindex or 0])
        return ELSE if message.startswith((b"[Controller id", b"[Broker id")) else NO_BROKER


def _named(block: Block, writers: Sequence[_Writers]) -> tuple[Int64s, list[int]]:
    """The broker that the identity of each record names, and the places of records that more is looked at of."""
    data, starts = block.data, block.starts
    brokers = np.full(len(starts), CUT)
    # Of a copy of what was read before no record is left.
    if block.file.layout is KAFKA and len(starts):
        brokers = writers[0].of(data, starts)
        for wider in writers[1:]:
            if len(cut := np.flatnonzero(brokers == CUT)):
                brokers[cut] = wider.of(data, starts[cut])
        if len(bare := np.flatnonzero(brokers <= IF_STATE_CHANGE)):
            is_of_state_change = _end_with(block, starts[bare], STATE_CHANGE)
            brokers[bare] = np.where(is_of_state_change, IF_STATE_CHANGE - brokers[bare], ELSE)
        if block.times[0] == BEFORE_ALL:
            brokers[0] = ELSE
    others = np.flatnonzero((brokers == ELSE) | (brokers == CUT))
    brokers[others] = NO_BROKER
    return brokers, others.tolist()


def _end_with(block: Block, starts: Int64s, text: bytes) -> Bools:
    """Whether the lines that start there end with a text."""
    width = len(text)
    ends = np.append(block.line_ends, len(block.data) - 1)[np.searchsorted(block.line_ends, starts)] + 1
    tails = np.ndarray((len(block.data) - width + 1,), f"S{width}", block.data, strides=(1,))
    is_so: Bools = tails[np.maximum(ends - width, 0)] == text
    return is_so


class Known:
    """The lines that were met, whose writers need not be looked for again, of all sources of a merge."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.writers = [_Writers(width) for width in WIDTHS]


def attributed(blocks: Iterator[Block], known: Known) -> Iterator[Block]:
    """The same blocks with the broker of each record."""
    shapes = known.shapes
    held: list[Block] = []
    starts: list[tuple[Int64s, int]] = []
    # What the process of that start says as it fails, before its broker is known.
    failed: list[tuple[Int64s, int]] = []
    configured: int | None = None
    # Brokers that start and have not said yet that they have started, or could not.
    opening: list[int] = []
    failing_start: int | None = None
    failing: int | None = None
    unregistered: int | None = None
    before: Block | None = None
    for block in blocks:
        brokers, others = _named(block, known.writers)
        if block.file.layout is not KAFKA:
            block.shapes = shapes.parse(block)
        block.brokers = brokers
        last = -1
        for index in others:
            if index > last + 1:  # lines between that only say who wrote them
                configured = unregistered = None
            last, shape = index, shapes.at(block, index)
            if not shape.is_record:
                brokers[index] = brokers[index - 1] if index else NO_BROKER
                continue
            broker_id = writer_of(shape, block, index)
            is_own = broker_id is not None
            if broker_id is None:
                broker_id = _named_in_start(shape, block, index)
            if broker_id is None and shape.id in STOPS and shape.logger == SERVER:
                broker_id = failing_start if unregistered is None else unregistered
                if broker_id is None and len(opening) == 1 and not starts:
                    broker_id = failing_start = opening[0]
            named = broker_id if not is_own or shape.id in STARTED else None
            unregistered = None
            if shape.id == GIVES_UP:
                failing = broker_id
            elif broker_id is None and shape.id in GIVEN_UP:
                broker_id = failing
            elif broker_id is None and shape.logger == APP_INFO:
                unregistered = broker_id = _unregistered(shape, block, index)
            brokers[index] = NO_BROKER if broker_id is None else broker_id
            if broker_id is None and len(starts) == 1 and shape.id in STOPS and shape.logger == SERVER:
                failed.append((brokers, index))
            if shape.id == STARTS and shape.logger == SERVER:
                failing_start = None
                broker_id = configured if broker_id is None else broker_id
                if broker_id is None:
                    starts.append((brokers, index))
                else:
                    brokers[index] = broker_id
                    if broker_id not in opening:
                        opening.append(broker_id)
            elif named is not None and named not in opening:  # that start has its broker
                for of_block, place in (*starts, *failed) if len(starts) == 1 else ():
                    of_block[place] = named
                starts.clear()
                failed.clear()
            if broker_id in opening and shape.id in (STARTED_WELL, STOPPED):
                opening.remove(broker_id)
            # Until 0.11 the configuration is printed right before.
            configured = None if is_own else named
        if last + 1 < len(brokers):
            configured = unregistered = None
        block.before = before
        before = block.tail()
        held.append(block)
        if not starts or len(held) >= MOST_HELD:
            starts.clear()
            failed.clear()
            yield from held
            held = []
    yield from held


def _named_in_start(shape: Shape, block: Block, index: int) -> int | None:
    """The broker that a line of the thread which starts it names in its text."""
    message = message_of(block.record(index), shape, block)
    start, end = shape.message
    text = message if start < 0 else message[start:end]
    if text.startswith(CONFIGURATION):
        found = CONFIGURED_ID.search(message)
    else:
        found = REGISTERED.match(text) or OVERRIDDEN_ID.match(text)
    return int(found[1]) if found else None


def _unregistered(shape: Shape, block: Block, index: int) -> int | None:
    """The broker that a process which stops names last, before it says so without its id where it never had started."""
    found = UNREGISTERED.search(message_of(block.record(index), shape, block))
    return int(found[1]) if found else None
