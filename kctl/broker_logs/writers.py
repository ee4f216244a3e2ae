"""Which broker wrote each line of a log that several brokers write to.

A line is the broker's that its identity names. What names none and belongs to the start of a process is that of the
line of the same thread that does: the configuration that is printed with it, its registration, or its end. Other
lines have no broker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formats.values import replace
from kctl.broker_logs.blocks import Block, Shape
from kctl.broker_logs.shapes import Shapes, message_of, writer_of

CONFIGURATION = b"KafkaConfig values:"
CONFIGURED_ID = re.compile(rb"^\s*(?:broker|node)\.id = (\d+)\s*$", re.MULTILINE)
OVERRIDDEN_ID = re.compile(rb"Property broker\.id is overridden to (\d+)")
REGISTERED = re.compile(rb"Registered broker (\d+) at path ")
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
UNREGISTERED = re.compile(rb"App info kafka\.server for (\d+) unregistered")
# How many blocks are held until a start has its broker.
MOST_HELD = 3


def attributed(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks with the broker of each record."""
    shapes = Shapes()
    held: list[Block] = []
    starts: list[tuple[list[int | None], int]] = []
    # What the process of that start says as it fails, before its broker is known.
    failed: list[tuple[list[int | None], int]] = []
    configured: int | None = None
    # Brokers that start and have not said yet that they have started, or could not.
    opening: list[int] = []
    failing_start: int | None = None
    failing: int | None = None
    unregistered: int | None = None
    before: Block | None = None
    for block in blocks:
        brokers: list[int | None] = []
        block.brokers, block.shapes = brokers, shapes.parse(block)
        for index, shape in enumerate(block.shapes):
            if shape.writer is not None and shape.id not in TELLING:
                brokers.append(writer_of(shape, block, index))
                configured = unregistered = None
                continue
            if not shape.is_record:
                brokers.append(brokers[-1] if brokers else None)
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
            brokers.append(broker_id)
            if broker_id is None and len(starts) == 1 and shape.id in STOPS and shape.logger == SERVER:
                failed.append((brokers, len(brokers) - 1))
            if shape.id == STARTS and shape.logger == SERVER:
                failing_start = None
                broker_id = configured if broker_id is None else broker_id
                brokers[-1] = broker_id
                if broker_id is None:
                    starts.append((brokers, index))
                elif broker_id not in opening:
                    opening.append(broker_id)
            elif named is not None:
                for of_block, place in (*starts, *failed) if len(starts) == 1 else ():
                    of_block[place] = named
                starts.clear()
                failed.clear()
            if broker_id in opening and shape.id in (STARTED_WELL, STOPPED):
                opening.remove(broker_id)
            # Until 0.11 the configuration is printed right before.
            configured = None if is_own else named
        block.before = before
        before = replace(block, before=None)
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
