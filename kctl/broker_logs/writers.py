"""Which broker wrote each line of a log that several brokers write to.

A line is the broker's that its identity names. What names none and belongs to the start of a process is that of the
line of the same thread that does, where that can be no other: the configuration that is printed with it, or its end.
Other lines have no broker.

Few lines say more than who wrote them. They are told by how they begin, and so are the writers: of most lines nothing
else is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from formats.arrays import Ints, Mask
from formats.broker_logs.layouts import KAFKA
from formats.broker_logs.line import HEAD_SIZE, IDENTITY, STATE_IDENTITY, WRITER
from formats.broker_logs.table import table_of_ids
from kctl.text_logs.blocks import BEFORE_ALL, NO_BROKER, Block, Shape
from kctl.text_logs.opening import CHUNK
from kctl.text_logs.shapes import Shapes, writer_of

CONFIGURATION = b"KafkaConfig values:"
CONFIGURED_ID = re.compile(rb"^\s*(?:broker|node)\.id = (\d{1,10})\s*$", re.MULTILINE)
# Brokers print dynamic settings after their start since the version that brought this one.
TOLD_AFTER = b"password.encoder.secret"
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
# Lines that say more than who wrote them, also where their identity names the broker, and those whose identity does not.
LOOKED_FOR = STARTED | STOPS | GIVEN_UP | {STARTS, GIVES_UP}
APP_INFO = "org.apache.kafka.common.utils.AppInfoParser"
UNREGISTERED = re.compile(rb"App info kafka\.server for (\d{1,10}) unregistered")
# How those lines begin, and all others whose text is looked at, in every version.
BEGINS = re.compile(
    rb"[\n\t]*(?:start(?:ing|ed) +\(|shutting d|shut down c|Shutdown b|Stopping s|Fatal e|Broker \d|KafkaConfig"
    rb"|Registered b|Property b|App info k)"
)
# A line behind its time: what only the logger tells to be an identity (part of the sentence in logs of others), or the
# identity and whether the sentence begins so.
LINE = re.compile(rb" [A-Z]+ (?:((?:Controller|Broker) )|(%b|)(%b)?)" % (IDENTITY.pattern, BEGINS.pattern))
# The level and an identity in brackets, and what follows that up to its sentence.
BRACKETS = re.compile(rb" [A-Z]+ (\[[A-Za-z/][^\]\n]*\])")
SENTENCE = re.compile(rb"(?:: |, | )?%b" % BEGINS.pattern)
STATE_CHANGE = b" (state.change.logger)\n"
# Bytes of a line behind its time that are looked at first, and of a sentence for `BEGINS` with what stands before it.
WIDTH, NEEDED = 40, 12
# In the place of a broker: more of the line has to be looked at; its beginning was too short to tell.
ELSE, CUT = -2, -3
# The broker is this less the number where the logger of state changes ends the line.
IF_STATE_CHANGE = -4
MOST_KNOWN = 20_000
# Bytes behind a block that are read before it is given out without the brokers of its starts.
MOST_HELD = CHUNK


class _Remembered(dict[bytes, int]):
    """The results of a function by text; forgotten when there are too many."""

    def __init__(self, say: Callable[[bytes], int]) -> None:
        self._say = say

    def __missing__(self, text: bytes) -> int:
        if len(self) >= MOST_KNOWN:
            self.clear()
        self[text] = answer = self._say(text)
        return answer


def _writer(text: bytes, *, is_whole: bool = False) -> int:
    """The broker that a line names as its writer, by how it goes on behind its time; `ELSE` where it may say more than
    that, `CUT` where that does not show in what is there of the line."""
    line = LINE.match(text)
    if line is None:
        return ELSE
    if line[1]:
        bare = STATE_IDENTITY.match(text, line.start(1))
        broker = int(bare[3]) if bare and bare[3] else NO_BROKER
        return ELSE if broker == NO_BROKER else IF_STATE_CHANGE - broker
    at, end = line.span(2)
    is_open = not line[2] and text.startswith((b"[", b"Partition [", b"Cleaner "), at)
    if not is_whole and (is_open or end + NEEDED > len(text)):
        return CUT
    return ELSE if line[3] else _writer_of_identity(text, at, line[2])


def _writer_of_identity(text: bytes, at: int, identity: bytes) -> int:
    if writer := WRITER.match(text, at):
        return int(writer[writer.lastindex or 0])
    return ELSE if identity.startswith((b"[Controller id", b"[Broker id")) else NO_BROKER


def _writer_in_brackets(text: bytes) -> int:
    """The broker that the level and the identity in brackets name; `CUT` for other text."""
    line = BRACKETS.fullmatch(text)
    return _writer_of_identity(text, line.start(1), line[1]) if line else CUT


class KnownLines:
    """What lines begin with, and whose they are: what was met is not looked at again, in all sources of a merge."""

    def __init__(self) -> None:
        self.shapes = Shapes(table_of_ids(LOOKED_FOR))
        self._begins = _Remembered(_writer)
        self._identities = _Remembered(_writer_in_brackets)
        self._sentences = _Remembered(lambda text: SENTENCE.match(text) is not None)

    def writers(self, data: bytes, starts: Ints) -> Ints:
        """The broker that each of the lines that start there names, `ELSE` or `IF_STATE_CHANGE`."""
        brokers = np.full(len(starts), CUT)
        last = len(data) - WIDTH - HEAD_SIZE
        count = int(np.searchsorted(starts, last, "right"))
        if count:
            begins = np.ndarray((last + HEAD_SIZE + 1,), f"S{WIDTH}", data, strides=(1,))
            texts: list[bytes] = begins[starts[:count] + HEAD_SIZE].tolist()
            brokers[:count] = np.fromiter(map(self._begins.__getitem__, texts), np.int64, count)
        cut = np.flatnonzero(brokers == CUT)
        brokers[cut] = self._of_longer(data, (starts[cut] + HEAD_SIZE).tolist())
        return brokers

    def _of_longer(self, data: bytes, places: list[int]) -> list[int]:
        """The same of lines that go on there behind their times, whose identities may be of any length."""
        find, identities, sentences = data.find, self._identities, self._sentences
        brokers = []
        for place in places:
            end = find(b"]", place) + 1
            broker = identities[data[place:end]]
            if broker == CUT:
                broker = _writer(data[place : find(b"\n", place)], is_whole=True)
            elif sentences[data[end : end + NEEDED + 2]]:
                broker = ELSE
            brokers.append(broker)
        return brokers


def _named(block: Block, known: KnownLines) -> tuple[Ints, list[int]]:
    """The broker that the identity of each record names, and the places of records that more is looked at of."""
    data, starts = block.data, block.starts
    # Of a copy of what was read before no record is left.
    if block.file.layout is KAFKA and len(starts):
        brokers = known.writers(data, starts)
        if len(bare := np.flatnonzero(brokers <= IF_STATE_CHANGE)):
            is_of_state_change = _end_with(block, starts[bare], STATE_CHANGE)
            brokers[bare] = np.where(is_of_state_change, IF_STATE_CHANGE - brokers[bare], ELSE)
        if block.times[0] == BEFORE_ALL:
            brokers[0] = ELSE
    else:
        brokers = np.full(len(starts), ELSE)
    others = np.flatnonzero(brokers == ELSE)
    brokers[others] = NO_BROKER
    return brokers, others.tolist()


def _end_with(block: Block, starts: Ints, text: bytes) -> Mask:
    """Whether the lines that start there end with a text."""
    width = len(text)
    ends = np.append(block.line_ends, len(block.data) - 1)[np.searchsorted(block.line_ends, starts)] + 1
    tails = np.ndarray((len(block.data) - width + 1,), f"S{width}", block.data, strides=(1,))
    is_so: Mask = tails[np.maximum(ends - width, 0)] == text
    return is_so


class _Starts:
    """The starts that name no broker, and the brokers whose starts they may be.

    A start is of a broker where nothing else is possible: one waits for a name when a process that has started tells
    one, or one broker waits for its start, of which older processes tell the configuration first. It is of none again
    where another process then tells its broker, whose start is nowhere else.
    """

    def __init__(self) -> None:
        self.opening: list[int] = []
        """Brokers that start and have not said yet that they have started, or could not."""
        self._coming: list[int] = []
        """Brokers that told their configuration before they start."""
        self._nameless: list[tuple[Ints, int]] = []
        self._taken = 0
        """How many of those are of processes that have told their broker since, or are over."""
        self._failed: list[tuple[Ints, int]] = []
        """What the process of the only such start says as it fails."""
        self._given: list[tuple[Ints, int]] = []
        """What got its broker, and is not known to be its own yet."""

    @property
    def is_waiting(self) -> bool:
        """Whether the broker of a start may still change."""
        return bool(self._nameless or self._given)

    @property
    def only_one(self) -> int | None:
        """The broker of the only process that starts."""
        return self.opening[0] if len(self.opening) == 1 and not self._nameless else None

    def begin(self, brokers: Ints, index: int) -> None:
        """This record says that a process starts, mostly not of which broker."""
        if brokers[index] == NO_BROKER and len(self._coming) == 1 and not self._nameless:
            brokers[index] = self._coming[0]
        if brokers[index] != NO_BROKER:
            self.end(int(brokers[index]))
            self.opening.append(int(brokers[index]))
        elif not self._coming:
            self._nameless.append((brokers, index))

    def configure(self, broker_id: int) -> None:
        """A process that will start tells its broker."""
        self.end(broker_id)
        self._coming.append(broker_id)

    def take(self, broker_id: int) -> None:
        """A process that has started tells its broker."""
        if broker_id in self.opening:
            return
        if self._nameless:
            if len(self._nameless) == 1:
                for brokers, index in (*self._nameless, *self._failed):
                    brokers[index] = broker_id
                    self._given.append((brokers, index))
            self._take_one()
        else:
            for brokers, index in self._given:
                brokers[index] = NO_BROKER
            self._given.clear()
            return
        self.opening.append(broker_id)

    def fail(self, brokers: Ints, index: int, *, is_over: bool) -> None:
        """This record says that a process fails, and not of which broker."""
        if len(self._nameless) == 1:
            self._failed.append((brokers, index))
        if is_over and self._nameless:
            self._take_one()

    def _take_one(self) -> None:
        self._taken += 1
        if self._taken == len(self._nameless):
            self._nameless.clear()
            self._failed.clear()
            self._taken = 0

    def end(self, broker_id: int) -> None:
        """A broker has started, or its process is over."""
        for those in (self.opening, self._coming):
            if broker_id in those:
                those.remove(broker_id)
        self._given = [(brokers, index) for brokers, index in self._given if brokers[index] != broker_id]

    def forget(self, brokers: Ints | None) -> None:
        """Nothing changes any longer in the block with these brokers."""
        for records in (self._nameless, self._failed, self._given):
            records[:] = [record for record in records if record[0] is not brokers]
        self._taken = min(self._taken, max(len(self._nameless) - 1, 0))


def attributed(blocks: Iterator[Block], known: KnownLines) -> Iterator[Block]:
    """The same blocks with the broker of each record."""
    shapes = known.shapes
    waiting: list[Block] = []
    size = 0
    starts = _Starts()
    failing_start: int | None = None
    failing: int | None = None
    unregistered: int | None = None
    for block in blocks:
        brokers, others = _named(block, known)
        block.brokers = brokers
        last = -1
        for index in others:
            if index > last + 1:  # lines between that only say who wrote them
                unregistered = None
            last, shape = index, shapes.at(block, index)
            if not shape.is_record:
                continue
            broker_id = writer_of(shape, block, index)
            is_of_server = shape.logger == SERVER
            if broker_id is None:
                broker_id, is_before = _named_in_text(shape, block, index)
                if broker_id is not None and is_before is not None:
                    (starts.configure if is_before else starts.take)(broker_id)
            elif shape.id in STARTED and is_of_server:
                starts.take(broker_id)
            if broker_id is None and shape.id in STOPS and is_of_server:
                broker_id = failing_start
                if unregistered is not None:
                    broker_id = unregistered
                    starts.take(broker_id)
                elif broker_id is None:
                    broker_id = failing_start = starts.only_one
                if broker_id is None:
                    starts.fail(brokers, index, is_over=shape.id == STOPPED)
            unregistered = None
            if shape.id == GIVES_UP:
                failing = broker_id
            elif broker_id is None and shape.id in GIVEN_UP:
                broker_id = failing
            elif broker_id is None and shape.logger == APP_INFO:
                unregistered = broker_id = _unregistered(shape, block, index)
            if broker_id is not None:
                brokers[index] = broker_id
            if shape.id == STARTS and is_of_server:
                failing_start = None
                starts.begin(brokers, index)
            elif broker_id is not None and shape.id in (STARTED_WELL, STOPPED):
                starts.end(broker_id)
        if last + 1 < len(brokers):
            unregistered = None
        waiting.append(block)
        size += len(block.data)
        while waiting and (size - len(waiting[0].data) >= MOST_HELD or not starts.is_waiting):
            starts.forget(waiting[0].brokers)
            size -= len(waiting[0].data)
            yield waiting.pop(0)
    yield from waiting


def _named_in_text(shape: Shape, block: Block, index: int) -> tuple[int | None, bool | None]:
    """The broker that a record names in its text; where that is the configuration that a process tells as it starts,
    whether it does so before it says that it starts."""
    message = block.record(index)
    start, end = shape.message
    text = message if start < 0 else message[start:end]
    if text.startswith(CONFIGURATION):
        named, is_before = CONFIGURED_ID.search(message), TOLD_AFTER not in message
        return (int(named[1]), is_before) if named else (None, None)
    if named := OVERRIDDEN_ID.match(text):
        return int(named[1]), True
    # A broker registers again where its session has expired.
    named = REGISTERED.match(text)
    return int(named[1]) if named else None, None


def _unregistered(shape: Shape, block: Block, index: int) -> int | None:
    """The broker id that a stopping process logs when it unregisters; a process that never started logs no other."""
    match = UNREGISTERED.search(block.record(index))
    return int(match[1]) if match else None
