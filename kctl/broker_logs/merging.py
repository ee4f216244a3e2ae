"""Logs of several sources in one order of time: as events, or as lines with the broker and the file of each.

The order inside a source is kept even where its clock steps back: records are ordered by the greatest time
so far in their source, equal times by the rank of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formats.arrays import Ints
from formats.values import Struct, field, replace
from formats.words import counted
from kctl.broker_logs.clocks.offsets import estimate_offsets
from kctl.broker_logs.overlap import without_copies
from kctl.broker_logs.sources import Sources, find_sources
from kctl.findings import Finding, Place
from kctl.findings.manifest import CLOCK_MEASURED
from kctl.text_logs.blocks import NO_BROKER, Block, Filter, Reading, Shape, linked
from kctl.text_logs.log_files import LogFile, LogSource
from kctl.text_logs.shapes import Shapes, is_of_kafka
from kctl.text_logs.zones import UNKNOWN, Zone, detect_zones, shown_offset

if TYPE_CHECKING:
    from kctl.broker_logs.events import Event
    from kctl.broker_logs.writers import KnownLines

Slice = tuple[Block, int, int]


class BrokerRuns(NamedTuple):
    """Runs of bytes of the blocks: the slice of each, where it starts in its block's data, where it ends, and the broker
    that wrote it, `NO_BROKER` where its block does not say that."""

    owners: list[int]
    firsts: list[int]
    lasts: list[int]
    brokers: list[int]


class Released:
    """Records that come next, in order: each is one of a slice of some block."""

    __slots__ = ("_order", "_owners", "slices")

    def __init__(self, slices: list[Slice]) -> None:
        """The slices in the order of their sources; sorting is stable, so that a source's own order stays."""
        self.slices = slices
        if len(slices) == 1:
            self._order = np.arange(slices[0][2] - slices[0][1])
            self._owners = np.zeros(len(self._order), np.int64)
            return
        keys = np.concatenate([block.keys[low:high] for block, low, high in slices])
        self._order = np.argsort(keys, kind="stable")
        sizes = [high - low for _, low, high in slices]
        self._owners = np.repeat(np.arange(len(slices)), sizes)[self._order]

    def __len__(self) -> int:
        return len(self._order)

    def runs(self) -> Iterator[tuple[Block, int, int]]:
        """Runs of records of one block that follow each other: the block, the first, the one after the last."""
        if not len(self._order):
            return
        edges = np.concatenate(([0], _changes(self._owners) + 1, [len(self._owners)]))
        place = [low for _, low, _ in self.slices]
        for which, length in zip(self._owners[edges[:-1]].tolist(), np.diff(edges).tolist(), strict=True):
            low = place[which]
            place[which] = low + length
            yield self.slices[which][0], low, low + length

    def pieces(self) -> BrokerRuns:
        """The same as runs of bytes that one broker wrote."""
        if not len(self._order):
            return BrokerRuns([], [], [], [])
        starts = np.concatenate([block.starts[low:high] for block, low, high in self.slices])[self._order]
        ends = np.concatenate([block.ends[low:high] for block, low, high in self.slices])[self._order]
        is_break = (self._owners[1:] != self._owners[:-1]) | (starts[1:] != ends[:-1])
        brokers = None
        if any(block.brokers is not None for block, _, _ in self.slices):
            brokers = np.concatenate([_brokers(*part) for part in self.slices])[self._order]
            is_break |= brokers[1:] != brokers[:-1]
        breaks = np.flatnonzero(is_break)
        begins = np.concatenate(([0], breaks + 1))
        lasts = ends[np.concatenate((breaks, [len(ends) - 1]))].tolist()
        ids = [NO_BROKER] * len(begins) if brokers is None else brokers[begins].tolist()
        return BrokerRuns(self._owners[begins].tolist(), starts[begins].tolist(), lasts, ids)


def _brokers(block: Block, low: int, high: int) -> Ints:
    return np.full(high - low, NO_BROKER) if block.brokers is None else block.brokers[low:high]


def _changes(values: Ints) -> Ints:
    return np.flatnonzero(values[1:] != values[:-1])


class _Head:
    """The block of a source that the merge stands in, and how far."""

    __slots__ = ("block", "blocks", "place", "shift")

    def __init__(self, blocks: Iterator[Block], shift: int) -> None:
        self.blocks = blocks
        self.shift = shift
        self.block: Block | None = None
        self.place = 0
        self.refill()

    def refill(self) -> None:
        self.block = next(self.blocks, None)
        self.place = 0
        if self.block is not None and self.shift:
            self.block.keys = self.block.keys + self.shift
            self.block.last_key += self.shift
            self.block.shift = self.shift

    def take(self, bound: int, side: str) -> Slice | None:
        """The records up to the bound."""
        if self.block is None:
            return None
        keys = self.block.keys
        low = self.place
        self.place = low + int(np.searchsorted(keys[low:], bound, "right" if side == "right" else "left"))
        return (self.block, low, self.place) if self.place > low else None


def merged(sources: Sequence[Iterator[Block]], shifts: Sequence[int] = ()) -> Iterator[Released]:
    """The records of all sources in order. `shifts` are added to the keys of each source to mend its clock.

    At any time one block of each source is held. Up to the smallest last key of all blocks nothing can come
    that is not there yet: those records are sorted at once. At that key itself the sources after the one whose
    block ends there have to wait, since it may have more of the same key.
    """
    heads = [_Head(blocks, shifts[n] if shifts else 0) for n, blocks in enumerate(sources)]
    while True:
        standing = [(head.block.last_key, rank) for rank, head in enumerate(heads) if head.block is not None]
        if not standing:
            return
        bound, first = min(standing)
        taken = (head.take(bound, "right" if rank <= first else "left") for rank, head in enumerate(heads))
        slices = [part for part in taken if part is not None]
        if slices:
            yield Released(slices)
        heads[first].refill()


class Merge(Struct, dict=True):
    """Everything needed to read sources in one order of time."""

    sources: Sources
    zones: dict[int | None, Zone]
    shifts: dict[int | None, int] = field(default_factory=dict)
    """Milliseconds added to the times of a broker when ordering, to mend its clock."""
    reading: Reading = field(default_factory=Reading)
    doubtful: frozenset[int] = frozenset()
    """Brokers whose times cannot be put beside those of the others."""
    ahead: dict[int, int] = field(default_factory=dict)
    """Milliseconds that brokers' clocks are ahead, by which their times are corrected."""
    tells_brokers: bool = True
    """Whether the broker of each record is asked for, or its bytes alone."""

    shapes: Shapes = field(default_factory=Shapes)
    """The shapes of the lines that were met."""

    @cached_property
    def _known(self) -> KnownLines:
        from kctl.broker_logs.writers import KnownLines

        return KnownLines()

    def _blocks(
        self, rank: int, source: LogSource, keep: Filter | None, *, is_linked: bool
    ) -> Iterator[Block]:
        """The blocks of a source, without copies."""
        zone = self.zones.get(source.broker_id)
        brokers = self.sources.brokers
        blocks = without_copies(self.sources.sources, rank, zone, self.reading)
        is_shared = source.broker_id is None and bool(self.tells_brokers or brokers)
        if is_shared:
            from kctl.broker_logs.writers import attributed

            blocks = attributed(blocks, self._known)
        if is_linked:
            blocks = linked(blocks)
        if is_shared and brokers:
            from kctl.broker_logs.filters import broker_filter

            blocks = map(broker_filter(brokers), blocks)
        return map(keep, blocks) if keep else blocks

    def released(self, keep: Filter | None = None, *, is_linked: bool = False) -> Iterator[Released]:
        """Records in order, some thousand at a time, those that `keep` leaves in their blocks; `is_linked`: each block
        with the last records before it."""
        blocks = [
            self._blocks(rank, source, keep, is_linked=is_linked)
            for rank, source in enumerate(self.sources.sources)
        ]
        shifts = [self.shifts.get(source.broker_id, 0) for source in self.sources.sources]
        return merged(blocks, shifts if any(shifts) else ())

    def events(self, keep: Filter | None = None, templates: frozenset[str] | None = None) -> Iterator[Event]:
        """Events in order; with `templates` only those of these."""
        from kctl.broker_logs.events import Event

        parsed: dict[int, tuple[Block, list[Shape]]] = {}
        for released in self.released(keep, is_linked=True):
            for block, low, high in released.runs():
                known = parsed.get(block.source)
                if known is None or known[0] is not block:
                    known = parsed[block.source] = block, self.shapes.parse(block)
                of_block = known[1]
                for index in range(low, high):
                    shape = of_block[index]
                    if templates is None or shape.id in templates:
                        yield Event(block, index, shape)
                if high == len(block.starts):
                    del parsed[block.source]  # the last block of a source is not held to the end of all


def prepare(
    sources: Sources,
    zones: dict[int, Zone] | None = None,
    default_zone: Zone | None = None,
    *,
    mends_clocks: bool = True,
) -> Merge:
    """A merge of sources, with the zone of each broker as given, as its start-up lines say, or as it is told by
    what brokers sent each other; that also tells of clocks that are off, which `mends_clocks` corrects."""
    detected = detect_zones(list(sources.files), zones or {}, default_zone, sources.findings)
    estimate = estimate_offsets(sources.sources, detected)
    if not mends_clocks:
        estimate.ahead.clear()
    sources.findings.extend(estimate.findings())
    if mends_clocks and not estimate.ahead:
        estimate.ahead.update(measured_offsets(sources))
        sources.findings.extend(map(_measured_finding, estimate.ahead, estimate.ahead.values()))
    for broker_id, offset in estimate.offsets.items():
        detected[broker_id] = Zone(shown_offset(offset), offsets=[offset], source="estimated")
    for broker_id, ahead in estimate.ahead.items():
        detected[broker_id] = replace(detected.get(broker_id, UNKNOWN), ahead=ahead)
    return Merge(sources, detected, doubtful=frozenset(estimate.doubtful), ahead=estimate.ahead)


LEAST_MEASURED = 2000  # milliseconds: less is what a slow connection explains


def measured_offsets(sources: Sources) -> dict[int, int]:
    """How far clocks of brokers are ahead of the middle one, as measured when their files were copied.

    Nothing unless every broker was measured: the clock of the copying machine may be off itself.
    """
    measured = dict(sources.evidence.clock_offsets) if sources.evidence else {}
    brokers = {source.broker_id for source in sources.sources}
    if len(brokers) < 2 or not all(broker_id in measured for broker_id in brokers):
        return {}
    middle = sorted(measured[broker_id] for broker_id in brokers if broker_id is not None)[len(brokers) // 2]
    offsets = {
        broker_id: measured[broker_id] - middle for broker_id in sorted(b for b in brokers if b is not None)
    }
    return {broker_id: offset for broker_id, offset in offsets.items() if abs(offset) > LEAST_MEASURED}


def _measured_finding(broker_id: int, ahead: int) -> Finding:
    side = "ahead of" if ahead > 0 else "behind"
    place = Place(broker_id=broker_id)
    return CLOCK_MEASURED.at(place, broker=broker_id, seconds=abs(ahead) / 1000, side=side)


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
    sources = paths if isinstance(paths, Sources) else find_sources(paths, brokers=brokers)
    return prepare(sources, zones).events(keep)


# --- what is said of the records ------------------------------------------------------------------------


class Count(Struct):
    """How the records of a run of the merge were understood."""

    events: int = 0
    continuations: int = 0
    other: int = 0
    unknown: int = 0
    # The first lines of Kafka's own classes that have no template.
    unknown_at: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Count one more."""
        if event.event is not None:
            self.events += 1
        elif not event.shape.is_record:
            self.continuations += 1
        elif is_of_kafka(event.logger, event.level):
            self.unknown += 1
            if len(self.unknown_at) < 20:
                self.unknown_at.append(f"{event.file}:{event.line}")
        else:
            self.other += 1

    def sentence(self, reading: Reading) -> str:
        """The count in words, lines without a template with the places of the first of them."""
        text = (
            f"{counted(self.events, 'event')}, {counted(self.continuations, 'run')} of lines without a head, "
            f"{counted(self.other, 'line')} of other loggers or below INFO, {self.unknown} unknown{left_out(reading)}"
        )
        return f"{text}: {', '.join(self.unknown_at)}" if self.unknown_at else text


COLORS = (36, 32, 35, 33, 34, 96, 92, 95, 93, 94)
WRONG = re.compile(rb"^(\[[^\]\n]*\] (?:ERROR|FATAL).*)$", re.MULTILINE)
WARNED = re.compile(rb"^(\[[^\]\n]*\] WARN.*)$", re.MULTILINE)
WRITTEN = 1 << 18


class _MarksOf(dict[int, bytes]):
    """The end of a line with the mark of the next one, by the broker that wrote it: `1<TAB>broker-1/logs/server.log<TAB>`;
    aligned and coloured on a terminal."""

    def __init__(self, file: LogFile, width: int | None, color: bytes) -> None:
        self.file = file
        self.width = width
        self.color = color

    def __missing__(self, broker: int) -> bytes:
        broker_id = self.file.broker_id if broker == NO_BROKER else broker
        shown = "-" if broker_id is None else str(broker_id)
        name = self.file.file.replace("\n", "\\n").replace("\t", "\\t")
        if self.width is None:
            text = ""
        elif begin := self.color.decode():
            color = COLORS[(broker_id or 0) % len(COLORS)]
            text = f"{begin}{color}m{shown:>3} {name.ljust(self.width)}{begin}0m "
        else:
            text = f"{shown}\t{name}\t"
        self[broker] = mark = f"\n{text}".encode("utf-8", "backslashreplace")
        return mark


class Marks:
    """Writes runs of records, each line after its mark."""

    def __init__(self, sources: Sources | None, color: str = "") -> None:
        """No `sources`: lines as they are. `color`: how a colour sequence begins."""
        self._color = color.encode()
        self._width = None if sources is None else max((len(file.file) for file in sources.files), default=0)
        self._marks: dict[int, _MarksOf] = {}
        self.records = 0

    def written(self, released: Iterable[Released]) -> Iterator[bytes]:
        """The bytes of the records, some hundred kilobytes at a time."""
        is_bare = self._width is None and not self._color
        texts: list[bytes | memoryview] = []
        size = 0
        for group in released:
            self.records += len(group)
            pieces = group.pieces()
            size += sum(pieces.lasts) - sum(pieces.firsts)
            texts += _bare(group.slices, pieces) if is_bare else self._dressed(group.slices, pieces)
            if size >= WRITTEN:
                yield b"".join(texts) if is_bare else _joined(texts)
                texts, size = [], 0
        yield b"".join(texts) if is_bare else _joined(texts)

    def _dressed(self, slices: list[Slice], pieces: BrokerRuns) -> Iterator[bytes]:
        """Lines with their marks and colours, each after a line end."""
        data = [block.data for block, _, _ in slices]
        marks = [self._marks_of(block.file) for block, _, _ in slices]
        color = self._color
        for which, first, last, broker in zip(*pieces, strict=True):
            text, mark = data[which], marks[which][broker]
            if color:
                text = WRONG.sub(rb"%b31;1m\1%b0m" % (color, color), text[first:last])
                text = WARNED.sub(rb"%b33m\1%b0m" % (color, color), text)
                first, last = 0, len(text)
            if first and text.endswith(b"\n", first, last):
                # The line end before the first of them becomes its mark as all others do.
                yield text[first - 1 : last - 1].replace(b"\n", mark)
            else:
                yield mark + text[first:last].removesuffix(b"\n").replace(b"\n", mark)

    def _marks_of(self, file: LogFile) -> _MarksOf:
        known = self._marks.get(id(file))
        if known is None:
            known = self._marks[id(file)] = _MarksOf(file, self._width, self._color)
        return known

    def sentence(self, reading: Reading) -> str:
        """How much it was."""
        return f"{counted(self.records, 'record')} of {counted(reading.lines, 'line')}{left_out(reading)}"


def _bare(slices: list[Slice], pieces: BrokerRuns) -> Iterator[memoryview]:
    views = [memoryview(block.data) for block, _, _ in slices]
    return (views[which][first:last] for which, first, last in zip(*pieces[:3], strict=True))


def _joined(lines: list[bytes | memoryview]) -> bytes:
    """Lines that each stand after a line end, each before one."""
    return b"".join((lines[0][1:], *lines[1:], b"\n")) if lines else b""


def left_out(reading: Reading) -> str:
    """Which lines were left out, as the end of a sentence."""
    return f", {counted(reading.duplicates, 'duplicate')} left out" if reading.duplicates else ""
