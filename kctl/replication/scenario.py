"""A scenario: steps over brokers, and what the controller makes of them.

A crash is noticed by the controller only at the next `elect` (or when the broker that led starts again): a
follower that is back before that never leaves the ISR, which is how clean elections lost data by high watermark.
Records acknowledged are those below a leader's high watermark (acks=all) or any that a leader took (acks=1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kctl.replication.election import NO_LEADER, Elected, elect_offline_partition, remove_replica_from_isr
from kctl.replication.rules import Rules
from kctl.replication.simulated_partition import SimulatedPartition, SimulatedReplica
from kctl.replication.truncation import Truncation


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is done, to which brokers, how much."""

    do: str
    brokers: tuple[int, ...] = ()
    records: tuple[str, ...] = ()
    count: int = 1
    limit: int | None = None

    def __str__(self) -> str:
        who = ", ".join(map(str, self.brokers))
        what = ", ".join(self.records) if self.records else ""
        if self.do == "produce":
            return f"produce {what or self.count}"
        times = f" x{self.count}" if self.do == "fetch" and self.count > 1 else ""
        return f"{self.do} {who}{times}".strip()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Brokers in assignment order (the first leads), and the steps."""

    name: str
    description: str
    brokers: tuple[int, ...]
    steps: tuple[Step, ...]
    unclean_leader_election_enable: bool | None = None


class Promise(NamedTuple):
    """A record that was acknowledged, and its offset."""

    offset: int
    record: str


@dataclass
class Run:
    """A scenario under way: the partition, what was promised, and whether an election was unclean."""

    partition: SimulatedPartition
    assignment: tuple[int, ...]
    committed: dict[int, str] = field(default_factory=dict)
    acknowledged: list[Promise] = field(default_factory=list)
    unclean_elections: int = 0
    produced: int = 0
    note: str = ""

    @classmethod
    def start(cls, rules: Rules, brokers: Sequence[int], unclean: bool | None = None) -> Run:
        """A new partition: all brokers in the ISR, the first one leads in epoch 0."""
        partition = SimulatedPartition(
            rules,
            {b: SimulatedReplica() for b in brokers},
            isr=tuple(brokers),
            unclean_enabled=rules.unclean_default if unclean is None else unclean,
        )
        partition.become_leader(brokers[0], 0)
        return cls(partition, tuple(brokers))

    @property
    def leads(self) -> SimulatedReplica | None:
        """The leader's replica while it is up."""
        leader = self.partition.leader
        replica = self.partition.replicas.get(leader)
        return replica if replica is not None and replica.up else None

    def take(self, step: Step) -> str:
        """Do one step; the text says what came of it, "" where nothing needs saying."""
        self.note = ""
        getattr(self, "_" + step.do.replace("-", "_"))(step)
        self._record_promises()
        return self.note

    def lost(self) -> list[Promise]:
        """Committed records that the present leader does not have at their offset; none while nobody leads."""
        leader = self.leads
        if leader is None:
            return []
        return [
            Promise(o, name)
            for o, name in sorted(self.committed.items())
            if o >= leader.log_end_offset or leader.log[o] != name
        ]

    def lost_acknowledged(self) -> list[Promise]:
        """Records that a leader took (acknowledged with acks=1) and the present leader does not have."""
        leader = self.leads
        if leader is None:
            return []
        return [
            p
            for p in self.acknowledged
            if p.offset >= leader.log_end_offset or leader.log[p.offset] != p.record
        ]

    def diverged(self, *, below_high_watermark: bool = False) -> dict[tuple[int, int], int]:
        """Pairs of brokers that are up, and the first offset at which they hold different records."""
        found = {}
        live = [(b, r) for b, r in sorted(self.partition.replicas.items()) if r.up]
        for index, (one, first) in enumerate(live):
            for other, second in live[index + 1 :]:
                end = min(first.log_end_offset, second.log_end_offset)
                if below_high_watermark:
                    end = min(end, first.high_watermark, second.high_watermark)
                differing = (o for o in range(end) if first.log[o] != second.log[o])
                offset = next(differing, None)
                if offset is not None:
                    found[one, other] = offset
        return found

    def _record_promises(self) -> None:
        leader = self.leads
        if leader is not None:
            for offset in range(leader.high_watermark):
                self.committed.setdefault(offset, leader.log[offset])

    def _produce(self, step: Step) -> None:
        leader = self.leads
        if leader is None:
            self.note = "refused: no leader"
            return
        names = step.records or tuple(f"m{self.produced + i}" for i in range(step.count))
        self.produced += len(names)
        start = leader.log_end_offset
        self.partition.append(names)
        self.acknowledged += [Promise(start + i, name) for i, name in enumerate(names)]

    def _fetch(self, step: Step) -> None:
        (broker_id,) = step.brokers
        replica = self.partition.replicas[broker_id]
        if self.leads is None or not replica.up or broker_id == self.partition.leader:
            self.note = "nothing to fetch from"
            return
        for _ in range(step.count):
            fetched = self.partition.fetch(broker_id, step.limit)
            if fetched.action:
                at = "" if fetched.truncate_to is None else f" {fetched.truncate_to}"
                self.note = f"OFFSET_OUT_OF_RANGE: {fetched.action.replace('_', ' ')}{at}"
            if not replica.up:
                return

    def _crash(self, step: Step) -> None:
        for broker_id in step.brokers:
            self.partition.stop(broker_id)

    def _power_failure(self, step: Step) -> None:
        for broker_id in step.brokers:
            self.partition.stop(broker_id, power=True)

    def _restart(self, step: Step) -> None:
        (broker_id,) = step.brokers
        if self.partition.replicas[broker_id].up:
            self.note = "is up"
            return
        self.partition.load(broker_id)
        if self.leads is not None and self.partition.leader != broker_id:
            self._follow(broker_id)
        else:
            self._elect(step, also_dead=broker_id)

    def _elect(self, step: Step, also_dead: int | None = None) -> None:
        """The controller notices who is gone, and elects where the leader is."""
        part = self.partition
        if also_dead is not None and part.leader == also_dead:  # its epoch is over although it is back
            part.leader, part.leader_epoch = NO_LEADER, part.leader_epoch + 1
        if any(part.replicas[b].up for b in part.isr):
            self._take_out([b for b in part.isr if not part.replicas[b].up])
        elif part.leader != NO_LEADER:  # all at once: the stored ISR stays
            part.leader, part.leader_epoch = NO_LEADER, part.leader_epoch + 1
        if self.leads is not None:
            part.advance()
            return
        live = [b for b, r in part.replicas.items() if r.up]
        elected = elect_offline_partition(
            self.assignment,
            part.isr,
            live,
            part.leader_epoch,
            unclean_enabled=part.unclean_enabled,
            order=part.rules.election_order,
        )
        if not isinstance(elected, Elected):
            part.leader = NO_LEADER
            self.note = f"no leader: {elected.why.replace('_', ' ')}"
            return
        self._install(elected)

    def _take_out(self, gone: Sequence[int]) -> None:
        part = self.partition
        for broker_id in gone:
            change = remove_replica_from_isr(
                broker_id,
                part.leader,
                part.isr,
                part.leader_epoch,
                unclean_enabled=part.unclean_enabled,
                keep_last=part.rules.keep_last,
            )
            if isinstance(change, Elected):
                part.leader, part.isr, part.leader_epoch = change[:3]

    def _install(self, elected: Elected) -> None:
        part = self.partition
        part.isr = elected.isr
        part.become_leader(elected.leader, elected.leader_epoch)
        self.unclean_elections += elected.unclean
        how = "unclean election" if elected.unclean else "elected"
        self.note = f"{how}: broker {elected.leader}, epoch {elected.leader_epoch}"
        for broker_id, replica in part.replicas.items():
            if replica.up and broker_id != elected.leader:
                self._follow(broker_id)

    def _follow(self, broker_id: int) -> None:
        before = self.partition.replicas[broker_id].log_end_offset
        found: Truncation = self.partition.become_follower(broker_id)
        cut = found.follower.log_end_offset
        if cut < before:
            self.note = "; ".join(filter(None, (self.note, f"broker {broker_id} truncates to {cut}")))

    def _flush(self, step: Step) -> None:
        for broker_id in step.brokers:
            replica = self.partition.replicas[broker_id]
            replica.flushed = replica.log_end_offset

    def _checkpoint(self, step: Step) -> None:
        for broker_id in step.brokers:
            replica = self.partition.replicas[broker_id]
            replica.checkpointed = replica.high_watermark

    def _shrink_isr(self, step: Step) -> None:
        part = self.partition
        part.isr = tuple(b for b in part.isr if b not in step.brokers or b == part.leader)
        if self.leads is not None:
            part.advance()


def play(scenario: Scenario, rules: Rules) -> Iterator[tuple[int, Step | None, str, Run]]:
    """The run after each step, the start first: number, step, what came of it, and the state."""
    run = Run.start(rules, scenario.brokers, scenario.unclean_leader_election_enable)
    yield 0, None, "", run
    for number, step in enumerate(scenario.steps, 1):
        note = run.take(step)
        yield number, step, note, run
