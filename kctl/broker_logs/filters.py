"""Which records are wanted: by topic, partition, time, level, template and expression, on whole blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from formats.arrays import Ints, Mask
from formats.broker_logs.table import every_table
from kctl.errors import BadValue
from kctl.text_logs.blocks import BEFORE_ALL, Block, Filter
from kctl.text_logs.shapes import Shapes

NAME = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
# What stands behind a topic's name: its partition in one of Kafka's spellings, or the end of the name.
BEHIND = re.compile(
    rb"(?:-(\d{1,19})|, ?(\d{1,19})\]|,Partition=(\d{1,19})|', partitionIndex=(\d{1,19}))(?![\w-]|\.\w)|(?![\w.-]|', part)|\.(?!\w)"
)
BEHIND_ID = re.compile(rb"(?::[\w.-]+-(\d{1,19})|:(\d{1,19})|, partition (\d{1,19})|)(?![\w-])")
WITH_ID = re.compile(rb"-\d{1,19} with topic (?:id|ID) (?:Some\()?([\w-]{22})")
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")


class TopicFilter:
    """Records that name a topic (and one of some partitions), in any spelling, or its id once it is known."""

    def __init__(self, topics: Iterable[str], partitions: frozenset[int] = frozenset()) -> None:
        self._names = [topic.encode("utf-8", "surrogateescape") for topic in topics]
        self._partitions = partitions
        self._ids: set[bytes] = set()

    def __call__(self, block: Block) -> Block:
        """The block with the records that name the topic."""
        hits: list[int] = []
        for name in self._names:
            hits += self._places(block.data, name, BEHIND)
        for topic_id in self._ids:
            hits += self._places(block.data, topic_id, BEHIND_ID)
        return block.only(_records_at(block, hits))

    def _places(self, data: bytes, name: bytes, behind: re.Pattern[bytes]) -> list[int]:
        out = []
        place = data.find(name)
        while place >= 0:
            end = place + len(name)
            match = behind.match(data, end)
            if match and (place == 0 or data[place - 1] not in NAME):
                self._learn(data, end, behind)
                number = match[match.lastindex] if match.lastindex else None
                if not self._partitions or (number is not None and int(number) in self._partitions):
                    out.append(place)
            place = data.find(name, end)
        return out

    def _learn(self, data: bytes, end: int, behind: re.Pattern[bytes]) -> None:
        """Remember the topic's id where it stands behind the name: KRaft lines may name nothing else."""
        if behind is BEHIND:
            match = WITH_ID.match(data, end)
            if match:
                self._ids.add(match[1])


def records_with(block: Block, words: Iterable[bytes]) -> Mask:
    """Which records hold one of some words."""
    hits: list[int] = []
    for word in words:
        place = block.data.find(word)
        while place >= 0:
            hits.append(place)
            place = block.data.find(word, place + 1)
    return _records_at(block, hits)


def _records_at(block: Block, places: Sequence[int]) -> Mask:
    keep = np.zeros(len(block.starts), np.bool_)
    if places:
        at = np.array(places, np.int64)
        index = np.searchsorted(block.starts, at, "right") - 1
        keep[index[(index >= 0) & (at < block.ends[index])]] = True
    return keep


def broker_filter(brokers: frozenset[int]) -> Filter:
    """Records of some brokers."""

    def wanted(block: Block) -> Block:
        return block.only(
            np.array([block.broker_at(i) in brokers for i in range(len(block.starts))], np.bool_)
        )

    return wanted


def time_filter(start: int | None, end: int | None) -> Filter:
    """Records from one time to another, both included (UTC milliseconds)."""

    def wanted(block: Block) -> Block:
        # Lines without a time go with the record that they follow.
        times: Ints = np.where(block.times == BEFORE_ALL, block.keys, block.times)
        keep = np.ones(len(times), np.bool_)
        if start is not None:
            keep &= times >= start
        if end is not None:
            keep &= times <= end
        return block.only(keep)

    return wanted


def expression_filter(expression: str) -> Filter:
    """Records in which a regular expression is found."""
    try:
        pattern = re.compile(expression.encode(), re.MULTILINE)
    except re.error as error:
        raise BadValue(
            f"--grep {expression!r}: {error}",
            "correct the regular expression; a backslash before a character makes it literal",
        ) from error

    def wanted(block: Block) -> Block:
        keep = [bool(pattern.search(block.record(i))) for i in range(len(block.starts))]
        return block.only(np.array(keep, np.bool_))

    return wanted


def shape_filter(events: Sequence[str], level: str | None) -> Filter:
    """Records of some templates, and of a level or a worse one."""
    wanted_ids = frozenset(events)
    unknown = sorted(wanted_ids - every_table().by_id.keys())
    if unknown:
        raise BadValue(f"--event {unknown[0]!r} is not a template", "ids are as C15 or L03")
    levels = frozenset(LEVELS[LEVELS.index(level) :]) if level else frozenset()
    shapes = Shapes()

    def wanted(block: Block) -> Block:
        keep = [
            (not wanted_ids or shape.id in wanted_ids) and (not levels or shape.level in levels)
            for shape in shapes.parse(block)
        ]
        return block.only(np.array(keep, np.bool_))

    return wanted


def all_of(filters: Sequence[Filter]) -> Filter | None:
    """Every filter, one after the other, the cheap ones first as they are given."""
    if not filters:
        return None

    def wanted(block: Block) -> Block:
        for keep in filters:
            if not len(block.starts):
                break
            block = keep(block)
        return block

    return wanted


def parse_partitions(text: str) -> frozenset[int]:
    """`0,3-5` as a set."""
    partitions: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        numbers = (first, last) if dash else (first, first)
        if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
            raise BadValue(
                f"--partitions {text!r} is not a list such as 0,3-5",
                "write numbers and ranges without spaces",
            )
        if int(numbers[1]) - int(numbers[0]) > 1_000_000:
            raise BadValue(f"--partitions {text!r} names more than a million partitions", "name fewer")
        partitions.update(range(int(numbers[0]), int(numbers[1]) + 1))
    return frozenset(partitions)
