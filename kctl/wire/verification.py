"""Every replica of every partition compared while the cluster runs, up to the high watermark that all share.

Followers store what the leader sent, so that the bytes of whole batches must be equal; the CRC of one side is
checked as well. Where bytes differ, that part is compared as evidence is (`kctl.wire.spool`). Many partitions are
read at once, each broker asked once a round; the next round is on its way while one is compared, unless the rate is
bounded.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from formats.columns.headers import Octets, Positions, check_crc, gather, walk
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError
from kctl.findings import Finding, Place
from kctl.findings import live as say
from kctl.model import SILENT, Progress, TopicPartition
from kctl.replica.compare import Divergence
from kctl.wire.adapter import Wire
from kctl.wire.fetched_bytes import begin_alike, padded
from kctl.wire.fetching import (
    CONSUMER,
    LATEST,
    OFFSET_OUT_OF_RANGE,
    Fetched,
    Fetcher,
    Wanted,
    list_offsets,
    local_starts,
)
from kctl.wire.spool import Part, Spool

AT_ONCE = 32  # partitions
A_ROUND = 32 << 20  # bytes of each broker, below what brokers give at once (fetch.max.bytes, 55 MiB)
LEAST, MOST = 1 << 20, 8 << 20  # bytes of a partition in a round
SLICE, SMALLEST = (
    0.25,
    64 << 10,
)  # seconds in which a round of a bounded rate is read; the least that is asked for
CATCHING_UP = 5.0  # seconds in which a follower's high watermark may come up to the leader's
OTHER_BYTES = "replica-other-bytes-same-records"
WORST = ("equal", "unknown", "hole", "damaged", "diverged")


@dataclass(kw_only=True)
class Verified:
    """A partition, how far it is compared, and what was found."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    leader: int
    is_compacted: bool
    from_offset: int = 0
    to_offset: int = 0
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
    waits_until: float = 0.0
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


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to compare. `max_rate` is bytes a second of all replicas; `begin` where to start, by partition."""

    max_rate: int | None = None
    begin: Mapping[TopicPartition, int] = field(default_factory=dict)


class Round(NamedTuple):
    """What was asked of the brokers at once, and what they will answer."""

    partitions: tuple[Verified, ...]
    wanted: tuple[Wanted, ...]
    answers: Future[list[Fetched | KctlError]]


class Front(NamedTuple):
    """The whole batches that every answer of a partition holds: the first answer, where they are and end, what is next."""

    data: Octets
    positions: Positions
    stop: int
    next_offset: int


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
        self.bytes_read = 0

    def results(self, partitions: Sequence[TopicPartition]) -> Iterator[Verified]:
        """Each partition once it is compared, in the order given."""
        self._progress.start("compare", len(partitions), "partitions")
        waiting = [self._prepared(tp) for tp in partitions]
        self._bounds(waiting)
        unfinished, following = deque(waiting), None
        with ThreadPoolExecutor(1) as reader:
            while unfinished:
                while unfinished and unfinished[0].is_over:
                    yield unfinished.popleft()
                    self._progress.advance(1)
                now, following = following or self._ask(reader, unfinished), None
                if now is not None:
                    following = self._round(reader, now, unfinished)
                    self._keep_rate()

    def _prepared(self, tp: TopicPartition) -> Verified:
        found = self._state.partition_states.get(tp)
        replicas = self._state.topics[tp.topic].origin_replicas(tp.partition)
        leader = found.leader if found else -1
        one = Verified(
            partition=tp,
            replicas=replicas,
            leader=leader,
            is_compacted="compact" in self._state.config("topics", tp.topic).get("cleanup.policy", "")
            or tp.topic in ("__consumer_offsets", "__transaction_state"),
            compared=[leader, *(b for b in replicas if b != leader)]
            if leader in replicas
            else list(replicas),
        )
        for broker_id in [b for b in one.compared if not self._state.is_alive(b)]:
            one.drop(broker_id, "the broker is not alive")
        return one

    def _bounds(self, partitions: Sequence[Verified]) -> None:
        """Where each partition's comparison begins, and the leader's high watermark, at which it ends."""
        wanted = [(b, one.partition) for one in partitions for b in one.compared]
        starts = local_starts(self._wire, wanted)
        ends = list_offsets(self._wire, wanted, LATEST)
        leaders = [(one.leader, one.partition) for one in partitions if one.leader in one.compared]
        watermarks = list_offsets(self._wire, leaders, LATEST, replica_id=CONSUMER)
        for one in partitions:
            first = []
            for broker_id in list(one.compared):
                start, end = starts[broker_id, one.partition], ends[broker_id, one.partition]
                if isinstance(start, KctlError) or isinstance(end, KctlError):
                    one.drop(broker_id, str(start if isinstance(start, KctlError) else end))
                else:
                    first.append(start)
                    one.ends[broker_id] = end
            until = watermarks.get((one.leader, one.partition), 0)
            one.from_offset = max([*first, self._options.begin.get(one.partition, 0)], default=0)
            one.offset = one.from_offset
            one.to_offset = until if isinstance(until, int) else min(one.ends.values(), default=0)

    # --- a round --------------------------------------------------------------------------------------

    def _ask(self, reader: ThreadPoolExecutor, unfinished: Iterable[Verified]) -> Round | None:
        """Ask for the next bytes of some partitions; None where none has any to come."""
        active = list(islice((one for one in unfinished if not one.is_over), AT_ONCE))
        if not active:
            return None
        ready = [one for one in active if one.waits_until <= time.monotonic()] or active[:1]
        for one in ready:
            one.ahead = one.offset
        return self._asked(reader, ready)

    def _asked(self, reader: ThreadPoolExecutor, ready: Sequence[Verified]) -> Round:
        wanted = tuple(Wanted(b, one.partition, one.ahead) for one in ready for b in one.compared)
        size = max(LEAST, min(MOST, A_ROUND // len(ready)))
        if self._options.max_rate:
            size = max(SMALLEST, min(size, int(self._options.max_rate * SLICE) // len(wanted)))
        return Round(tuple(ready), wanted, reader.submit(self._fetcher.fetch, wanted, size))

    def _round(self, reader: ThreadPoolExecutor, now: Round, unfinished: Iterable[Verified]) -> Round | None:
        """Compare what was asked for; the round that is on its way then."""
        answers = dict(zip(((w.node, w.partition) for w in now.wanted), now.answers.result(), strict=True))
        windows = []
        for one in now.partitions:
            if one.ahead == one.offset and not one.is_over:  # else it has come elsewhere meanwhile
                window = {b: answers[b, one.partition] for b in one.compared}
                windows.append((one, window, _front(window.values())))
            one.ahead = -1
        following = None
        if not self._options.max_rate:
            following = self._ask_ahead(reader, [(one, front) for one, _, front in windows], unfinished)
        for one, window, front in windows:
            self._window(one, window, front, is_alone=len(now.partitions) == 1)
        return following

    def _ask_ahead(
        self,
        reader: ThreadPoolExecutor,
        fronts: Sequence[tuple[Verified, Front | None]],
        unfinished: Iterable[Verified],
    ) -> Round | None:
        """Ask for what follows if all that was read is equal; what is in no round now joins."""
        compared = {one.partition for one, _ in fronts}
        ready = []
        for one, front in fronts:
            if front is not None and one.offset < front.next_offset < one.to_offset:
                one.ahead = front.next_offset
                ready.append(one)
        if len(ready) < len(fronts):  # somebody is done, or has to be looked at
            for one in unfinished:
                if len(ready) == AT_ONCE:
                    break
                if not one.is_over and one.waits_until == 0.0 and one.partition not in compared:
                    one.ahead = one.offset
                    ready.append(one)
        return self._asked(reader, ready) if ready else None

    def _window(
        self,
        one: Verified,
        answers: Mapping[int, Fetched | KctlError],
        front: Front | None,
        *,
        is_alone: bool,
    ) -> None:
        fetched: dict[int, Fetched] = {}
        for broker_id, answer in answers.items():
            if isinstance(answer, KctlError):
                one.drop(broker_id, str(answer))
            elif answer.error_code == OFFSET_OUT_OF_RANGE and self._has_moved_on(one, broker_id):
                return  # retention was faster
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
            self._nothing_from(one, fetched, empty, is_alone=is_alone)
            return
        if front is None or len(fetched) < len(answers):
            front = _front(fetched.values())
        if not self._equal(one, fetched, front):
            self._in_detail(one)

    def _has_moved_on(self, one: Verified, broker_id: int) -> bool:
        """Whether a replica's log begins later now; the error itself does not say where."""
        start = local_starts(self._wire, [(broker_id, one.partition)])[broker_id, one.partition]
        if not isinstance(start, int) or start <= one.offset:
            return False
        one.offset = start
        return True

    def _equal(self, one: Verified, fetched: Mapping[int, Fetched], front: Front | None) -> bool:
        """Compare the whole batches that all answers hold; whether they are equal and sound."""
        if front is None:
            return False
        first, *others = (answer.data for answer in fetched.values())
        if any(not begin_alike(first, other, front.stop) for other in others):
            return False
        headers = gather(front.data, front.positions)
        if headers.magic.min() >= 0:
            check_crc(front.data, headers)
        last = int(headers.last_offset[-1])
        if not headers.crc_valid.all() or last < one.offset:
            return False
        one.offset = last + 1
        one.batches += len(headers)
        return True

    def _nothing_from(
        self, one: Verified, fetched: Mapping[int, Fetched], empty: Sequence[int], *, is_alone: bool
    ) -> None:
        """Some gave no bytes: not that far yet, left out of a full answer, or with nothing at the offset."""
        behind = {b: fetched[b].high_watermark for b in empty if fetched[b].high_watermark <= one.offset}
        if not behind:
            if is_alone:
                self._in_detail(one)
            return
        now = time.monotonic()
        if one.waits_until == 0.0:
            one.waits_until = now + CATCHING_UP
            end = now + CATCHING_UP
            while time.monotonic() < end:
                asked = [Wanted(b, one.partition, one.offset) for b in behind]
                again = self._fetcher.fetch(asked, LEAST)
                if all(isinstance(a, Fetched) and a.high_watermark > one.offset for a in again):
                    one.waits_until = 0.0
                    return
                time.sleep(0.05)
        for broker_id, watermark in behind.items():
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
        one.waits_until = 0.0

    def _in_detail(self, one: Verified) -> None:
        """Compare the part from here on as evidence is compared."""
        part = Spool(self._fetcher, one.partition, one.offset, one.to_offset).compare(
            one.compared, is_compacted=one.is_compacted
        )
        self.bytes_read += part.size_in_bytes
        one.size_in_bytes += part.size_in_bytes
        one.divergences += part.divergences
        # Each broker cleans for itself, so that on a compacted topic other bytes are no news.
        one.findings += [f for f in part.findings if not (one.is_compacted and f.code == OTHER_BYTES)]
        self._judge(one, part)
        if part.end <= one.offset:
            one.worsen("unknown", f"nothing more could be read at offset {one.offset}")
            one.compared.clear()
        one.offset = part.end

    def _judge(self, one: Verified, part: Part) -> None:
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


def _front(answers: Iterable[Fetched | KctlError]) -> Front | None:
    """The whole batches at the front of what all replicas gave; None where one gave none."""
    data = [one.data for one in answers if isinstance(one, Fetched)]
    if not data or not all(data):
        return None
    block = padded(data[0])
    found = walk(block, 0, min(map(len, data)))
    if not len(found.positions):
        return None
    last = gather(block, found.positions[-1:])
    return Front(block, found.positions, found.stop, int(last.last_offset[0]) + 1)
