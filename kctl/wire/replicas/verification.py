"""Compare every replica of every partition while the cluster runs, up to the shared high watermark.

Followers store what the leader sent, so the bytes of whole batches must be equal; the CRC of one side is
checked as well. Parts that differ are compared as evidence is (`kctl.wire.replicas.spool`). Many partitions
are read at once, with one request to each broker a round; the next round is fetched while one is compared, unless the rate
is bounded. The progress of a verification is in a file that is replaced whole, so that an interrupted run leaves the
last state.
"""

import json
import os
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from formats import bounded_json
from formats.values import Struct, field, replace
from kctl.cluster.state import NO_LEADER, ClusterState
from kctl.errors import KctlError, Refused, file_error, reason_of
from kctl.files import LARGEST_TABLE, read_whole
from kctl.findings import Finding, Place
from kctl.findings import live as live_findings
from kctl.model import SILENT, Progress, TopicPartition
from kctl.replica.comparison.partition import Divergence
from kctl.wire.adapter import Wire, error_name
from kctl.wire.replicas.fetching import (
    A_ROUND,
    CONSUMER,
    LATEST,
    OF_ALL,
    OFFSET_OUT_OF_RANGE,
    Fetched,
    Fetcher,
    FetchPosition,
    first_positions,
    list_offsets,
    local_starts,
)
from kctl.wire.replicas.fronts import Front, agree, fronts
from kctl.wire.replicas.spool import ComparedPart, Spool

WORST = ("equal", "unknown", "hole", "damaged", "diverged")


class Verified(Struct, kw_only=True):
    """A partition, how far it has been compared, and the result."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    leader: int
    is_compacted: bool
    from_offset: int = 0
    to_offset: int = 0
    ends_at_watermark: bool = True  # the leader's; else where the shortest log ended
    offset: int = 0  # the next one to compare
    ends: dict[int, int] = field(default_factory=dict)
    compared: list[int] = field(default_factory=list)  # replicas that are still compared
    size_in_bytes: int = 0
    batches: int = 0
    verdict: str = "equal"
    reason: str = "the same batches, byte for byte, on the shared range"
    best_source: int | None = None
    branches: list[list[int]] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    waits_until: float = 0.0  # for a replica that is behind; 0 if none is
    looks_at: float = 0.0  # when to look at it again
    ahead: int = -1  # where it begins in the round being fetched; -1 if it is not in that

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to compare."""
        return self.offset >= self.to_offset or len(self.compared) < 2

    @property
    def place(self) -> Place:
        """The place in findings about it."""
        return Place(topic=self.partition.topic, partition=self.partition.partition)

    def drop(self, broker_id: int, reason: str) -> None:
        """Compare no longer with a replica."""
        self.compared.remove(broker_id)
        where = replace(self.place, broker_id=broker_id, base_offset=self.offset)
        self.findings.append(
            live_findings.REPLICA_UNREACHABLE.at(
                where, broker_id=broker_id, partition=self.partition, start=self.offset, reason=reason
            )
        )
        self.worsen("unknown", "not every replica could be compared")

    def worsen(self, verdict: str, reason: str) -> None:
        """Replace the verdict if this one is worse."""
        if WORST.index(verdict) > WORST.index(self.verdict):
            self.verdict, self.reason = verdict, reason


COMPACTED = ("__consumer_offsets", "__transaction_state")  # whatever their configuration says


def with_bounds(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], begin: Mapping[TopicPartition, int]
) -> list[Verified]:
    """The partitions, to be compared from where all replicas have them up to the leader's high watermark.

    Without a leader they end with the shortest log, whose last part may not be committed. Those in `begin`
    are compared from that offset on, unless it lies behind the end: then what was compared before is gone.
    """
    results = [_with_replicas(state, tp) for tp in partitions]
    replicas = [(b, verified.partition) for verified in results for b in verified.compared]
    starts = local_starts(wire, replicas)
    ends = list_offsets(wire, replicas, LATEST)
    # Of a partition that is being moved the leader may be one of those that are added, and not compared.
    leaders = [
        (verified.leader, verified.partition) for verified in results if state.is_alive(verified.leader)
    ]
    watermarks = list_offsets(wire, leaders, LATEST, replica_id=CONSUMER)
    for verified in results:
        first = []
        for broker_id in list(verified.compared):
            start, end = starts[broker_id, verified.partition], ends[broker_id, verified.partition]
            if isinstance(start, KctlError) or isinstance(end, KctlError):
                verified.drop(broker_id, str(start if isinstance(start, KctlError) else end))
            else:
                first.append(start)
                verified.ends[broker_id] = end
        until = watermarks.get((verified.leader, verified.partition))
        if until is None:
            verified.worsen("unknown", "no leader reports what is committed")
        verified.ends_at_watermark = isinstance(until, int)
        verified.to_offset = until if isinstance(until, int) else min(verified.ends.values(), default=0)
        resumed = begin.get(verified.partition, 0)
        verified.from_offset = max([*first, resumed if resumed <= verified.to_offset else 0], default=0)
        verified.offset = verified.from_offset
    return results


def _with_replicas(state: ClusterState, tp: TopicPartition) -> Verified:
    """Compares the leader first, and live brokers only."""
    leader = state.leader(tp)
    leader = NO_LEADER if leader is None else leader
    replicas = state.topics[tp.topic].origin_replicas(tp.partition)
    policy = state.config("topics", tp.topic).get("cleanup.policy", "")
    verified = Verified(
        partition=tp,
        replicas=replicas,
        leader=leader,
        is_compacted="compact" in policy or tp.topic in COMPACTED,
        compared=sorted(replicas, key=lambda broker_id: broker_id != leader),
    )
    for broker_id in [b for b in replicas if not state.is_alive(b)]:
        verified.drop(broker_id, "the broker is not alive")
    return verified


FEWEST_AT_ONCE, MOST_AT_ONCE = 32, 1024  # partitions; more if each has fewer bytes
LEAST, MOST = 1 << 20, 8 << 20  # bytes of a partition in a round
SLICE = 0.25  # seconds in which a round of a bounded rate is read
SMALLEST = 64 << 10  # bytes of a partition in such a round, at least
CATCHING_UP = 5.0  # seconds in which a follower's high watermark may come up to the leader's
LOOK = 0.1  # seconds before the first look at it; each later one comes after a longer time
BEFORE = -1  # of an unknown high watermark: it lies before the fetched offset, as after a restart
OTHER_BYTES = "replica-other-bytes-same-records"
Window = tuple[Verified, dict[int, Fetched | KctlError]]  # a partition, and each broker's answer


class Options(Struct, frozen=True, kw_only=True):
    """What to compare. `max_rate` is bytes a second of all replicas; `begin` where to start, by partition."""

    max_rate: int | None = None
    begin: Mapping[TopicPartition, int] = field(default_factory=dict)


class FetchRound(NamedTuple):
    """One request to each broker, and the answers to come."""

    partitions: tuple[Verified, ...]
    positions: tuple[FetchPosition, ...]
    answers: Future[list[Fetched | KctlError]]


class ReplicaVerification:
    """One run over the partitions of a state, which holds the topics and their configurations."""

    def __init__(
        self, wire: Wire, state: ClusterState, options: Options, progress: Progress = SILENT
    ) -> None:
        self._wire = wire
        self._state = state
        self._options = options
        self._progress = progress
        self._fetcher = Fetcher(wire, {name: topic.topic_id for name, topic in state.topics.items()})
        self._begun = time.monotonic()
        self._at_once = FEWEST_AT_ONCE
        self.bytes_read = 0

    def results(self, partitions: Sequence[TopicPartition]) -> Iterator[Verified]:
        """Each partition once it is compared, in the given order. Stopping early closes the connections."""
        self._progress.start("compare", len(partitions), "partitions")
        unfinished = deque(with_bounds(self._wire, self._state, partitions, self._options.begin))
        with ThreadPoolExecutor(1) as reader:
            try:
                yield from self._results(reader, unfinished)
            except BaseException:  # Ctrl-C: otherwise the pool waits for the answers, which a quota may delay
                self._wire.close()
                raise

    def _results(self, reader: ThreadPoolExecutor, unfinished: deque[Verified]) -> Iterator[Verified]:
        following = None
        while unfinished:
            while unfinished and unfinished[0].is_over:
                yield unfinished.popleft()
                self._progress.advance(1)
            current, following = following or self._ask(reader, unfinished), None
            if current is not None:
                following = self._finish_round(reader, current, unfinished)
                self._keep_rate()

    # --- a round --------------------------------------------------------------------------------------

    def _ask(self, reader: ThreadPoolExecutor, unfinished: Iterable[Verified]) -> FetchRound | None:
        """Request the next bytes of some partitions; None if all are done or have to wait."""
        now = time.monotonic()
        remaining = (verified for verified in unfinished if not verified.is_over)
        ready = list(islice((verified for verified in remaining if verified.looks_at <= now), self._at_once))
        if not ready:
            looks_at = [verified.looks_at for verified in unfinished if not verified.is_over]
            time.sleep(max(0.0, min(looks_at, default=now) - now))
            return None
        for verified in ready:
            verified.ahead = verified.offset
        return self._start_round(reader, ready)

    def _start_round(self, reader: ThreadPoolExecutor, ready: Sequence[Verified]) -> FetchRound:
        positions = tuple(
            FetchPosition(b, verified.partition, verified.ahead)
            for verified in ready
            for b in verified.compared
        )
        size = max(LEAST, min(MOST, A_ROUND // len(ready)))
        if self._options.max_rate:
            size = max(SMALLEST, min(size, int(self._options.max_rate * SLICE) // len(positions)))
        return FetchRound(tuple(ready), positions, reader.submit(self._fetcher.fetch, positions, size))

    def _finish_round(
        self, reader: ThreadPoolExecutor, current: FetchRound, unfinished: Iterable[Verified]
    ) -> FetchRound | None:
        """Compare the answers of a round; returns the round that is fetched next."""
        answers = dict(
            zip(
                ((position.node, position.partition) for position in current.positions),
                current.answers.result(),
                strict=True,
            )
        )
        windows: list[Window] = []
        for verified in current.partitions:
            if (
                verified.ahead == verified.offset and not verified.is_over
            ):  # otherwise its offset has changed meanwhile
                windows.append((verified, {b: answers[b, verified.partition] for b in verified.compared}))
            verified.ahead = -1
        windows = self._without_moved(windows)
        window_fronts = fronts(_bytes(window) for _, window in windows)
        following = None
        if not self._options.max_rate:
            self._choose_how_many(answers.values())
            compared = [
                (verified, front) for (verified, _), front in zip(windows, window_fronts, strict=True)
            ]
            following = self._ask_ahead(reader, compared, unfinished)
        first = first_positions(current.positions)
        for (verified, window), front, is_right in zip(
            windows, window_fronts, agree(window_fronts), strict=True
        ):
            self._take_window(
                verified,
                window,
                front if is_right else None,
                {b for b in window if (b, verified.partition) in first},
            )
        return following

    def _without_moved(self, windows: Sequence[Window]) -> list[Window]:
        """Those whose offset retention has not deleted meanwhile."""
        moved = self._moved_on([(verified, _out_of_range(answers)) for verified, answers in windows])
        return [(verified, answers) for verified, answers in windows if verified.partition not in moved]

    def _moved_on(self, suspects: Sequence[tuple[Verified, Sequence[int]]]) -> set[TopicPartition]:
        """Partitions set to where the log of one of the suspects begins now: an error does not say where."""
        replicas = [
            (broker_id, verified.partition) for verified, brokers in suspects for broker_id in brokers
        ]
        starts = local_starts(self._wire, replicas) if replicas else {}
        moved = set()
        for verified, brokers in suspects:
            partition_starts = [starts[broker_id, verified.partition] for broker_id in brokers]
            later = [
                start for start in partition_starts if isinstance(start, int) and start > verified.offset
            ]
            if later:
                verified.offset = max(later)
                moved.add(verified.partition)
        return moved

    def _choose_how_many(self, answers: Collection[Fetched | KctlError]) -> None:
        """Fewer partitions a round if it is full or many came empty, more if it is not half full."""
        sizes = [len(answer.data) for answer in answers if isinstance(answer, Fetched)]
        if sizes.count(0) > len(sizes) // 2 or sum(sizes) > OF_ALL * 3 // 4:
            self._at_once = max(self._at_once // 2, FEWEST_AT_ONCE)
        elif sum(sizes) < A_ROUND // 2:
            self._at_once = min(2 * self._at_once, MOST_AT_ONCE)

    def _ask_ahead(
        self,
        reader: ThreadPoolExecutor,
        compared: Sequence[tuple[Verified, Front | None]],
        unfinished: Iterable[Verified],
    ) -> FetchRound | None:
        """Request what follows if all answers are equal; partitions in no round join, unless they have to wait."""
        in_round = {verified.partition for verified, _ in compared}
        now, ready = time.monotonic(), []
        for verified, front in compared:
            if front is not None and verified.offset < front.next_offset < verified.to_offset:
                verified.ahead = front.next_offset
                ready.append(verified)
        for verified in unfinished:
            if len(ready) >= self._at_once:
                break
            if not verified.is_over and verified.looks_at <= now and verified.partition not in in_round:
                verified.ahead = verified.offset
                ready.append(verified)
        return self._start_round(reader, ready) if ready else None

    def _take_window(
        self,
        verified: Verified,
        answers: Mapping[int, Fetched | KctlError],
        front: Front | None,
        first: set[int],
    ) -> None:
        """Compare a partition's answers. `front` is what they agree on; `first` the brokers asked for it first."""
        fetched: dict[int, Fetched] = {}
        for broker_id, answer in answers.items():
            if isinstance(answer, KctlError):
                verified.drop(broker_id, answer.message)
            elif answer.error_code == OFFSET_OUT_OF_RANGE:
                fetched[broker_id] = answer._replace(data=b"", high_watermark=BEFORE)
            elif answer.error:
                verified.drop(broker_id, answer.error)
            else:
                fetched[broker_id] = answer
                self.bytes_read += len(answer.data)
                verified.size_in_bytes += len(answer.data)
        if verified.is_over:
            return
        empty = [b for b, answer in fetched.items() if not answer.data]
        if empty:
            self._nothing_from(verified, fetched, empty, first)
            return
        verified.looks_at = verified.waits_until = 0.0
        if len(fetched) < len(answers):
            (rest,) = fronts([_bytes(fetched)])
            front = rest if agree([rest])[0] else None
        if front is None or front.next_offset <= verified.offset:
            self._in_detail(verified)
            return
        verified.offset = front.next_offset
        verified.batches += len(front.positions)

    def _nothing_from(
        self, verified: Verified, fetched: Mapping[int, Fetched], empty: Sequence[int], first: set[int]
    ) -> None:
        """Some brokers gave no bytes: they are behind, their answer was full, or they have nothing at the offset."""
        behind = {b: fetched[b].high_watermark for b in empty if fetched[b].high_watermark <= verified.offset}
        now = time.monotonic()
        if not behind:
            verified.looks_at = verified.waits_until = 0.0
            if not first.isdisjoint(empty):
                self._in_detail(verified)
        elif now < (verified.waits_until or now + CATCHING_UP):
            verified.waits_until = verified.waits_until or now + CATCHING_UP
            waited = now + CATCHING_UP - verified.waits_until
            verified.looks_at = now + max(LOOK, waited / 2)
        else:
            verified.looks_at = verified.waits_until = 0.0
            self._leave_behind(verified, behind)

    def _leave_behind(self, verified: Verified, behind: Mapping[int, int]) -> None:
        if (
            not verified.ends_at_watermark
            and set(behind) >= set(verified.compared)
            and BEFORE not in behind.values()
        ):
            verified.to_offset = verified.offset  # so all that is committed ends here
            return
        for broker_id, watermark in behind.items():
            if watermark == BEFORE:
                verified.drop(broker_id, error_name(OFFSET_OUT_OF_RANGE))
                continue
            where = replace(verified.place, broker_id=broker_id, base_offset=watermark)
            verified.findings.append(
                live_findings.REPLICA_BEHIND.at(
                    where,
                    broker_id=broker_id,
                    partition=verified.partition,
                    high_watermark=watermark,
                    leader=verified.to_offset,
                )
            )
            verified.compared.remove(broker_id)

    def _in_detail(self, verified: Verified) -> None:
        """Compare the part from this offset on as evidence is compared."""
        part = Spool(self._fetcher, verified.partition, verified.offset, verified.to_offset).compare(
            verified.compared, is_compacted=verified.is_compacted
        )
        self.bytes_read += part.size_in_bytes
        verified.size_in_bytes += part.size_in_bytes
        if part.end <= verified.offset and self._moved_on([(verified, verified.compared)]):
            return
        verified.divergences += part.divergences
        # Each broker cleans for itself, so that on a compacted topic other bytes are expected.
        verified.findings += [
            f for f in part.findings if not (verified.is_compacted and f.code == OTHER_BYTES)
        ]
        self._judge(verified, part)
        if part.end <= verified.offset:
            verified.worsen("unknown", f"nothing more could be read at offset {verified.offset}")
            verified.compared.clear()
        verified.offset = part.end

    def _judge(self, verified: Verified, part: ComparedPart) -> None:
        damaged = {f.place.broker_id for f in part.findings if f.code == "replica-damaged-copy"}
        if damaged >= set(verified.compared):
            where = replace(verified.place, base_offset=verified.offset)
            verified.findings.append(
                live_findings.ALL_DAMAGED.at(
                    where, count=len(damaged), partition=verified.partition, start=verified.offset
                )
            )
        if part.verdict != "equal":
            verified.worsen(part.verdict, part.reason)
            verified.best_source, verified.branches = part.best_source, [list(b) for b in part.branches]

    def _keep_rate(self) -> None:
        if self._options.max_rate:
            ahead = self.bytes_read / self._options.max_rate - (time.monotonic() - self._begun)
            if ahead > 0:
                time.sleep(ahead)


def _out_of_range(answers: Mapping[int, Fetched | KctlError]) -> list[int]:
    """Brokers whose replica does not have the offset."""
    return [
        b
        for b, answer in answers.items()
        if isinstance(answer, Fetched) and answer.error_code == OFFSET_OUT_OF_RANGE
    ]


def _bytes(answers: Mapping[int, Fetched | KctlError]) -> list[bytes | memoryview]:
    """The bytes from each broker; empty if one gave an error."""
    data = [answer.data for answer in answers.values() if isinstance(answer, Fetched)]
    return data if len(data) == len(answers) else []


EVERY = 1.0  # seconds between two states on disk: a killed run compares this much again


class VerificationProgress:
    """The offsets up to which partitions were equal, in a file. Raises Refused for another cluster's file.

    Close it, or use it as a context manager, to write the last state.
    """

    def __init__(self, path: Path, cluster_id: str | None) -> None:
        self._path = path
        self._cluster_id = cluster_id
        self._done: dict[str, tuple[str | None, int]] = {}
        self._written, self._is_written = 0.0, True
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            values = bounded_json.loads(read_whole(self._path, LARGEST_TABLE, follow=True))
            cluster_id = values["cluster_id"]
            self._done = {name: (id, int(offset)) for name, (id, offset) in values["partitions"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise KctlError(
                f"{self._path} does not hold the progress of a verification ({reason_of(error)})",
                "name the file of an earlier run, or a new one",
            ) from error
        if cluster_id != self._cluster_id:
            raise Refused(
                f"{self._path} is about cluster {cluster_id}, this is {self._cluster_id}",
                "name another file for this cluster",
            )

    def offsets(self, state: ClusterState) -> dict[TopicPartition, int]:
        """The offsets to go on from; a topic that was created again starts over."""
        offsets = {}
        for tp in state.partitions():
            id, offset = self._done.get(str(tp), (None, 0))
            if offset and id == state.topics[tp.topic].topic_id:
                offsets[tp] = offset
        return offsets

    def remember(self, partition: TopicPartition, topic_id: str | None, offset: int) -> None:
        """Note a partition; written within a second of the next one's, or when it is closed."""
        self._done[str(partition)] = (topic_id, offset)
        self._is_written = False
        if time.monotonic() - self._written >= EVERY:
            self._write()

    def _write(self) -> None:
        beside = self._path.with_name(self._path.name + ".new")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(json.dumps({"cluster_id": self._cluster_id, "partitions": self._done}))
                file.flush()
                os.fsync(file.fileno())
            beside.rename(self._path)
        except OSError as error:
            raise file_error(self._path, error, KctlError) from error
        self._written, self._is_written = time.monotonic(), True

    def close(self) -> None:
        """Write what is not on disk yet."""
        if not self._is_written:
            self._write()

    def __enter__(self) -> "VerificationProgress":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
