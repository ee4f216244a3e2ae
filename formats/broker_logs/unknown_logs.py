"""What a log may be that none of the layouts reads: the log of another system, or of a layout like one that is known."""

from __future__ import annotations

import re
from collections import Counter
from itertools import takewhile
from typing import NamedTuple

from formats.broker_logs.layouts import CARRIERS, DIRECTIVE, KAFKA, LOOKED_AT, PATTERNS


class System(NamedTuple):
    """A system that speaks Kafka's protocol and writes logs of its own."""

    name: str
    mark: re.Pattern[bytes]
    """What a line of its log holds, and none of Kafka's."""
    word: bytes
    """Each such line holds it: to look for it is quicker than for the mark; empty where the mark is as quick."""
    is_kafka: bool
    """Whether it is made of Kafka's code, so that most lines are Kafka's own."""


SYSTEMS = (
    System("Redpanda", re.compile(rb"^(?:TRACE|DEBUG|INFO|WARN|ERROR) +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \[shard +\d+(?::\w+)?\] ", re.MULTILINE), b"[shard ", False),
    System("AutoMQ", re.compile(rb"\((?:com\.automq|kafka\.automq|kafka\.log\.streamaspect|org\.apache\.kafka\.controller\.stream)\.[\w.$]+\)"), b"", True),
)  # fmt: skip


def other_system(head: bytes) -> System | None:
    """The system whose log starts like this, where it is not Kafka itself."""
    return next((system for system in SYSTEMS if system.word in head and system.mark.search(head)), None)


def nearest(head: bytes) -> str:
    """The name of the known layout whose example looks most like the first hundred lines."""
    from difflib import SequenceMatcher

    def commonprefix(texts: tuple[str, str]) -> str:
        return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*texts, strict=False)))

    def look(text: str) -> str:
        return re.sub(r"[a-z]+", "a", re.sub(r"\d", "0", text[:80]))

    lines = [
        look(line.decode("latin-1")) for line in head.split(b"\n", LOOKED_AT)[:LOOKED_AT] if line.strip()
    ]
    examples = [(carrier.name, carrier.example) for carrier in CARRIERS]
    examples.append((KAFKA.name, "[2026-11-21 13:18:27,173] INFO a message (kafka.server.KafkaServer)"))
    words = {
        "d": "2026-11-21 13:18:27,173",
        "p": "INFO",
        "r": "1",
        "t": "main",
        "c": "kafka.X",
        "m": "a message",
        "n": "",
    }
    examples.extend(
        (p, DIRECTIVE.sub(lambda found: "13:18:27.173" if found["options"] == "{HH:mm:ss.SSS}" else words.get(found["name"], ""), p))
        for p in PATTERNS
    )  # fmt: skip

    looks = Counter(lines)
    begin_alike = {
        name: sum(count * len(commonprefix((look(example), line))) for line, count in looks.items())
        for name, example in examples
    }
    most = max(begin_alike.values())
    # The rest of the lines decides between equals alone: to compare it takes far longer.
    equals = [(name, look(example)) for name, example in examples if begin_alike[name] == most]

    def alike(named: tuple[str, str]) -> float:
        return sum(count * SequenceMatcher(None, named[1], line).ratio() for line, count in looks.items())

    return max(equals, key=alike)[0] if len(equals) > 1 else equals[0][0]
