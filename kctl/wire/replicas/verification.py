"""Every replica of every partition compared while the cluster runs, up to the high watermark that all share.

Followers store what the leader sent, so that the bytes of whole batches must be equal; the CRC of one side is
checked as well. Where bytes differ, that part is compared as evidence is (`kctl.wire.replicas.spool`). Many partitions
are read at once, each broker asked once a round; the next round is on its way while one is compared, unless the rate
is bounded. How far a verification has come is in a file that is replaced whole, so that one that is cut off leaves the
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
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused, file_error
from kctl.files import LARGEST_TABLE, read_whole
from kctl.findings import Finding, Place
from kctl.findings import live as say
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
    foremost,
    list_offsets,
    local_starts,
)
from kctl.wire.replicas.fronts import Front, agree, fronts
from kctl.wire.replicas.spool import ComparedPart, Spool

WORST = ("equal", "unknown", "hole", "damaged", "diverged")


class Verified(Struct, kw_only=True):
    """A partition, how far it is compared, and what was found."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    leader: int
    is_compacted: bool
    from_offset: int = 0
    to_offset: int = 0
    ends_at_watermark: bool = True  # the leader's; else where the shortest log ended
    offset: int = 0  # the next one to compare
    ends: dict[int, int] = field(default_factory=dict)
    compared: list[int] = field(default_factory=list)  # replicas that are still in it
    size_in_bytes: int = 0
    batches: int = 0
    verdict: str = "equal"
    reason: str = "the same batches, byte for byte, on the shared range"
    best_source: int | None = None
    branches: list[list[int]] = field(default_factory=list)
    divergences: list[Divergence] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    waits_until: float = 0.0  # for a replica that is behind; 0 while none is
    looks_at: float = 0.0  # whether it has come on
    ahead: int = -1  # where the round that is on its way begins; -1 where it is not in it

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to compare."""
        return self.offset >= self.to_offset or len(self.compared) < 2

    @property
    def place(self) -> Place:
        """Where findings about it are."""
        return Place(topic=self.partition.topic, partition=self.partition.partition)

    def drop(self, broker_id: int, reason: str) -> None:
        """Go on without a replica."""
        self.compared.remove(broker_id)
        where = replace(self.place, broker_id=broker_id, base_offset=self.offset)
        self.findings.append(
            say.REPLICA_UNREACHABLE.at(
                where, broker_id=broker_id, partition=self.partition, start=self.offset, reason=reason
            )
        )
        self.worsen("unknown", "not every replica could be compared")

    def worsen(self, verdict: str, reason: str) -> None:
        """Take a verdict that is worse than the present one."""
        if WORST.index(verdict) > WORST.index(self.verdict):
            self.verdict, self.reason = verdict, reason


COMPACTED = ("__consumer_offsets", "__transaction_state")  # whatever their configuration says


def bounded(
    wire: Wire, state: ClusterState, partitions: Sequence[TopicPartition], begin: Mapping[TopicPartition, int]
) -> list[Verified]:
    """The partitions, to be compared from where all replicas have them up to the leader's high watermark.

    Where that is not to be had they end with the shortest log, whose last part may not be committed. Those in `begin`
    are compared from that offset on, unless it lies behind the end: what was compared up to there is gone.
    """
    found = [_with_replicas(state, tp) for tp in partitions]
    wanted = [(b, one.partition) for one in found for b in one.compared]
    starts = local_starts(wire, wanted)
    ends = list_offsets(wire, wanted, LATEST)
    # Of a partition that is being moved the leader may be one of those that are added, and not compared.
    leaders = [(one.leader, one.partition) for one in found if state.is_alive(one.leader)]
    watermarks = list_offsets(wire, leaders, LATEST, replica_id=CONSUMER)
    for one in found:
        first = []
        for broker_id in list(one.compared):
            start, end = starts[broker_id, one.partition], ends[broker_id, one.partition]
            if isinstance(start, KctlError) or isinstance(end, KctlError):
                one.drop(broker_id, str(start if isinstance(start, KctlError) else end))
            else:
                first.append(start)
                one.ends[broker_id] = end
        until = watermarks.get((one.leader, one.partition))
        if until is None:
            one.worsen("unknown", "no leader reports what is committed")
        one.ends_at_watermark = isinstance(until, int)
        one.to_offset = until if isinstance(until, int) else min(one.ends.values(), default=0)
        resumed = begin.get(one.partition, 0)
        one.from_offset = max([*first, resumed if resumed <= one.to_offset else 0], default=0)
        one.offset = one.from_offset
    return found


def _with_replicas(state: ClusterState, tp: TopicPartition) -> Verified:
    """The leader first; without brokers that are not alive."""
    known = state.partition_states.get(tp)
    leader = known.leader if known else -1
    replicas = state.topics[tp.topic].origin_replicas(tp.partition)
    policy = state.config("topics", tp.topic).get("cleanup.policy", "")
    one = Verified(
        partition=tp,
        replicas=replicas,
        leader=leader,
        is_compacted="compact" in policy or tp.topic in COMPACTED,
        compared=sorted(replicas, key=lambda broker_id: broker_id != leader),
    )
    for broker_id in [b for b in replicas if not state.is_alive(b)]:
        one.drop(broker_id, "the broker is not alive")
    return one


FEWEST_AT_ONCE, MOST_AT_ONCE = 32, 1024  # partitions; more of them the less they hold
LEAST, MOST = 1 << 20, 8 << 20  # bytes of a partition in a round
SLICE = 0.25  # seconds in which a round of a bounded rate is read
SMALLEST = 64 << 10  # bytes of a partition in such a round, at least
CATCHING_UP = 5.0  # seconds in which a follower's high watermark may come up to the leader's
LOOK = 0.1  # seconds before the first look at it; each later one comes after a longer time
BEFORE = -1  # a high watermark that is not told: it lies before what was asked for, as after a restart
OTHER_BYTES = "replica-other-bytes-same-records"
Window = tuple[Verified, dict[int, Fetched | KctlError]]  # a partition, and what each broker answered


class Options(Struct, frozen=True, kw_only=True):
    """What to compare. `max_rate` is bytes a second of all replicas; `begin` where to start, by partition."""

    max_rate: int | None = None
    begin: Mapping[TopicPartition, int] = field(default_factory=dict)


class Round(NamedTuple):
    """What was asked of the brokers at once, and what they will answer."""

    partitions: tuple[Verified, ...]
    wanted: tuple[FetchPosition, ...]
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
        """Each partition once it is compared, in the order given. Who stops early ends the connections."""
        self._progress.start("compare", len(partitions), "partitions")
        unfinished = deque(bounded(self._wire, self._state, partitions, self._options.begin))
        with ThreadPoolExecutor(1) as reader:
            try:
                yield from self._results(reader, unfinished)
            except BaseException:  # Ctrl-C: else what is on its way is waited for, which may be a quota
                self._wire.close()
                raise

    def _results(self, reader: ThreadPoolExecutor, unfinished: deque[Verified]) -> Iterator[Verified]:
        following = None
        while unfinished:
            while unfinished and unfinished[0].is_over:
                yield unfinished.popleft()
                self._progress.advance(1)
            now, following = following or self._ask(reader, unfinished), None
            if now is not None:
                following = self._round(reader, now, unfinished)
                self._keep_rate()

    # --- a round --------------------------------------------------------------------------------------

    def _ask(self, reader: ThreadPoolExecutor, unfinished: Iterable[Verified]) -> Round | None:
        """Ask for the next bytes of some partitions; None where none has any to come, or all of them have to wait."""
        now = time.monotonic()
        left = (one for one in unfinished if not one.is_over)
        ready = list(islice((one for one in left if one.looks_at <= now), self._at_once))
        if not ready:
            looks_at = [one.looks_at for one in unfinished if not one.is_over]
            time.sleep(max(0.0, min(looks_at, default=now) - now))
            return None
        for one in ready:
            one.ahead = one.offset
        return self._asked(reader, ready)

    def _asked(self, reader: ThreadPoolExecutor, ready: Sequence[Verified]) -> Round:
        wanted = tuple(FetchPosition(b, one.partition, one.ahead) for one in ready for b in one.compared)
        size = max(LEAST, min(MOST, A_ROUND // len(ready)))
        if self._options.max_rate:
            size = max(SMALLEST, min(size, int(self._options.max_rate * SLICE) // len(wanted)))
        return Round(tuple(ready), wanted, reader.submit(self._fetcher.fetch, wanted, size))

    def _round(self, reader: ThreadPoolExecutor, now: Round, unfinished: Iterable[Verified]) -> Round | None:
        """Compare what was asked for; the round that is on its way then."""
        answers = dict(zip(((w.node, w.partition) for w in now.wanted), now.answers.result(), strict=True))
        windows: list[Window] = []
        for one in now.partitions:
            if one.ahead == one.offset and not one.is_over:  # else it has come elsewhere meanwhile
                windows.append((one, {b: answers[b, one.partition] for b in one.compared}))
            one.ahead = -1
        windows = self._still_there(windows)
        found = fronts(_bytes(window) for _, window in windows)
        following = None
        if not self._options.max_rate:
            self._choose_how_many(answers.values())
            compared = [(one, front) for (one, _), front in zip(windows, found, strict=True)]
            following = self._ask_ahead(reader, compared, unfinished)
        first = foremost(now.wanted)
        for (one, window), front, is_right in zip(windows, found, agree(found), strict=True):
            self._window(
                one, window, front if is_right else None, {b for b in window if (b, one.partition) in first}
            )
        return following

    def _still_there(self, windows: Sequence[Window]) -> list[Window]:
        """Those whose offset nobody has deleted meanwhile; retention may be faster."""
        moved = self._moved_on([(one, _out_of_range(answers)) for one, answers in windows])
        return [(one, answers) for one, answers in windows if one.partition not in moved]

    def _moved_on(self, some: Sequence[tuple[Verified, Sequence[int]]]) -> set[TopicPartition]:
        """Partitions that go on where the log of one of the brokers named begins now: an error does not say where."""
        asked = [(broker_id, one.partition) for one, brokers in some for broker_id in brokers]
        starts = local_starts(self._wire, asked) if asked else {}
        moved = set()
        for one, brokers in some:
            found = [starts[broker_id, one.partition] for broker_id in brokers]
            later = [start for start in found if isinstance(start, int) and start > one.offset]
            if later:
                one.offset = max(later)
                moved.add(one.partition)
        return moved

    def _choose_how_many(self, answers: Collection[Fetched | KctlError]) -> None:
        """Fewer partitions in a round where it is full or many were left out, more where those of one do not fill it."""
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
    ) -> Round | None:
        """Ask for what follows if all that was read is equal; what is in no round now joins, unless it has to wait."""
        here = {one.partition for one, _ in compared}
        now, ready = time.monotonic(), []
        for one, front in compared:
            if front is not None and one.offset < front.next_offset < one.to_offset:
                one.ahead = front.next_offset
                ready.append(one)
        for one in unfinished:
            if len(ready) >= self._at_once:
                break
            if not one.is_over and one.looks_at <= now and one.partition not in here:
                one.ahead = one.offset
                ready.append(one)
        return self._asked(reader, ready) if ready else None

    def _window(
        self, one: Verified, answers: Mapping[int, Fetched | KctlError], front: Front | None, first: set[int]
    ) -> None:
        """Take a partition's answers. `front` is what they agree on; `first` are the brokers asked for it before others."""
        fetched: dict[int, Fetched] = {}
        for broker_id, answer in answers.items():
            if isinstance(answer, KctlError):
                one.drop(broker_id, answer.message)
            elif answer.error_code == OFFSET_OUT_OF_RANGE:
                fetched[broker_id] = answer._replace(data=b"", high_watermark=BEFORE)
            elif answer.error:
                one.drop(broker_id, answer.error)
            else:
                fetched[broker_id] = answer
                self.bytes_read += len(answer.data)
                one.size_in_bytes += len(answer.data)
        if one.is_over:
            return
        empty = [b for b, answer in fetched.items() if not answer.data]
        if empty:
            self._nothing_from(one, fetched, empty, first)
            return
        one.looks_at = one.waits_until = 0.0
        if len(fetched) < len(answers):
            (rest,) = fronts([_bytes(fetched)])
            front = rest if agree([rest])[0] else None
        if front is None or front.next_offset <= one.offset:
            self._in_detail(one)
            return
        one.offset = front.next_offset
        one.batches += len(front.positions)

    def _nothing_from(
        self, one: Verified, fetched: Mapping[int, Fetched], empty: Sequence[int], first: set[int]
    ) -> None:
        """Some gave no bytes: not that far yet, left out of a full answer, or with nothing at the offset."""
        behind = {b: fetched[b].high_watermark for b in empty if fetched[b].high_watermark <= one.offset}
        now = time.monotonic()
        if not behind:
            one.looks_at = one.waits_until = 0.0
            if not first.isdisjoint(empty):
                self._in_detail(one)
        elif now < (one.waits_until or now + CATCHING_UP):
            one.waits_until = one.waits_until or now + CATCHING_UP
            waited = now + CATCHING_UP - one.waits_until
            one.looks_at = now + max(LOOK, waited / 2)
        else:
            one.looks_at = one.waits_until = 0.0
            self._leave_behind(one, behind)

    def _leave_behind(self, one: Verified, behind: Mapping[int, int]) -> None:
        if not one.ends_at_watermark and set(behind) >= set(one.compared) and BEFORE not in behind.values():
            one.to_offset = one.offset  # so this is all that is committed
            return
        for broker_id, watermark in behind.items():
            if watermark == BEFORE:
                one.drop(broker_id, error_name(OFFSET_OUT_OF_RANGE))
                continue
            where = replace(one.place, broker_id=broker_id, base_offset=watermark)
            one.findings.append(
                say.REPLICA_BEHIND.at(
                    where,
                    broker_id=broker_id,
                    partition=one.partition,
                    high_watermark=watermark,
                    leader=one.to_offset,
                )
            )
            one.compared.remove(broker_id)

    def _in_detail(self, one: Verified) -> None:
        """Compare the part from here on as evidence is compared."""
        part = Spool(self._fetcher, one.partition, one.offset, one.to_offset).compare(
            one.compared, is_compacted=one.is_compacted
        )
        self.bytes_read += part.size_in_bytes
        one.size_in_bytes += part.size_in_bytes
        if part.end <= one.offset and self._moved_on([(one, one.compared)]):
            return
        one.divergences += part.divergences
        # Each broker cleans for itself, so that on a compacted topic other bytes are no news.
        one.findings += [f for f in part.findings if not (one.is_compacted and f.code == OTHER_BYTES)]
        self._judge(one, part)
        if part.end <= one.offset:
            one.worsen("unknown", f"nothing more could be read at offset {one.offset}")
            one.compared.clear()
        one.offset = part.end

    def _judge(self, one: Verified, part: ComparedPart) -> None:
        damaged = {f.place.broker_id for f in part.findings if f.code == "replica-damaged-copy"}
        if damaged >= set(one.compared):
            where = replace(one.place, base_offset=one.offset)
            one.findings.append(
                say.ALL_DAMAGED.at(where, count=len(damaged), partition=one.partition, start=one.offset)
            )
        if part.verdict != "equal":
            one.worsen(part.verdict, part.reason)
            one.best_source, one.branches = part.best_source, [list(b) for b in part.branches]

    def _keep_rate(self) -> None:
        if self._options.max_rate:
            ahead = self.bytes_read / self._options.max_rate - (time.monotonic() - self._begun)
            if ahead > 0:
                time.sleep(ahead)


def _out_of_range(answers: Mapping[int, Fetched | KctlError]) -> list[int]:
    """Brokers to whose replica an offset does not belong."""
    return [
        b for b, one in answers.items() if isinstance(one, Fetched) and one.error_code == OFFSET_OUT_OF_RANGE
    ]


def _bytes(answers: Mapping[int, Fetched | KctlError]) -> list[bytes | memoryview]:
    """What each of them gave; nothing where one gave none."""
    found = [answer.data for answer in answers.values() if isinstance(answer, Fetched)]
    return found if len(found) == len(answers) else []


EVERY = 1.0  # seconds between two states on disk: what a run that is killed compares again


class Progressed:
    """The offsets up to which partitions were equal. Raises Refused for the file of another cluster.

    Close it, or use it as a context manager: the last state is on disk then.
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
                f"{self._path} does not hold the progress of a verification ({error})",
                "name the file of an earlier run, or a new one",
            ) from error
        if cluster_id != self._cluster_id:
            raise Refused(
                f"{self._path} is about cluster {cluster_id}, this is {self._cluster_id}",
                "name another file for this cluster",
            )

    def offsets(self, state: ClusterState) -> dict[TopicPartition, int]:
        """Where to go on; a topic that was made again since begins again."""
        found = {}
        for tp in state.partitions():
            id, offset = self._done.get(str(tp), (None, 0))
            if offset and id == state.topics[tp.topic].topic_id:
                found[tp] = offset
        return found

    def remember(self, partition: TopicPartition, topic_id: str | None, offset: int) -> None:
        """Note a partition; on disk within a second of the next one's, or when it is closed."""
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
        """Put what is not there yet on disk."""
        if not self._is_written:
            self._write()

    def __enter__(self) -> "Progressed":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
