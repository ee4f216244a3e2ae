"""Scenarios: steps over brokers, read from TOML, and the run that plays them with the controller's decisions.

The controller notices a crash only at the next `elect`, or when the broker that led starts again. A follower that is
back before that never leaves the ISR, which is how clean elections lost data by high watermark. Acknowledged records
are those below a leader's high watermark (acks=all), or all that a leader accepted (acks=1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from formats import bounded_toml
from formats.values import Struct, field
from kctl.cluster.election_rules import Elected, elect_offline, remove_from_isr
from kctl.cluster.state import NO_LEADER
from kctl.errors import BadValue, UnreadableFile, reason_of
from kctl.files import read_text
from kctl.replication.rules import ReplicationRules
from kctl.replication.simulated_partition import SimulatedPartition, SimulatedReplica
from kctl.replication.truncation import FollowerTruncation

LARGEST = 1 << 20  # bytes of a scenario


class Step(Struct, frozen=True):
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


class Scenario(Struct, frozen=True):
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


class ScenarioRun(Struct):
    """A scenario in progress: the partition, the promises made, and how many elections were unclean."""

    partition: SimulatedPartition
    assignment: tuple[int, ...]
    committed: dict[int, str] = field(default_factory=dict)
    acknowledged: list[Promise] = field(default_factory=list)
    unclean_elections: int = 0
    produced: int = 0
    note: str = ""

    @classmethod
    def start(
        cls, rules: ReplicationRules, brokers: Sequence[int], unclean: bool | None = None
    ) -> ScenarioRun:
        """A new partition: all brokers in the ISR, the first one leads in epoch 0."""
        partition = SimulatedPartition(
            rules,
            {broker_id: SimulatedReplica() for broker_id in brokers},
            isr=tuple(brokers),
            unclean_enabled=rules.unclean_default if unclean is None else unclean,
        )
        partition.become_leader(brokers[0], 0)
        return cls(partition, tuple(brokers))

    @property
    def leading_replica(self) -> SimulatedReplica | None:
        """The leader's replica; None while it is down."""
        leader = self.partition.leader
        replica = self.partition.replicas.get(leader)
        return replica if replica is not None and replica.up else None

    def take(self, step: Step) -> str:
        """Do one step; return what came of it, "" if there is nothing to say."""
        self.note = ""
        getattr(self, "_" + step.do.replace("-", "_"))(step)
        self._record_promises()
        return self.note

    def lost(self) -> list[Promise]:
        """Committed records that the present leader does not have at their offset; none without a leader."""
        return self._missing(Promise(*committed) for committed in sorted(self.committed.items()))

    def lost_acknowledged(self) -> list[Promise]:
        """Records that a leader accepted (acks=1) and the present leader does not have."""
        return self._missing(self.acknowledged)

    def _missing(self, promises: Iterable[Promise]) -> list[Promise]:
        leader = self.leading_replica
        log = leader.log if leader else []
        return [p for p in promises if leader and log[p.offset : p.offset + 1] != [p.record]]

    def diverged(self, *, below_high_watermark: bool = False) -> dict[tuple[int, int], int]:
        """Pairs of running brokers, and the first offset at which their records differ."""
        first_differences = {}
        live = [(b, r) for b, r in sorted(self.partition.replicas.items()) if r.up]
        for index, (first_id, first) in enumerate(live):
            for second_id, second in live[index + 1 :]:
                end = min(first.log_end_offset, second.log_end_offset)
                if below_high_watermark:
                    end = min(end, first.high_watermark, second.high_watermark)
                differing = (offset for offset in range(end) if first.log[offset] != second.log[offset])
                first_difference = next(differing, None)
                if first_difference is not None:
                    first_differences[first_id, second_id] = first_difference
        return first_differences

    def _record_promises(self) -> None:
        leader = self.leading_replica
        if leader is not None:
            for offset in range(leader.high_watermark):
                self.committed.setdefault(offset, leader.log[offset])

    def _produce(self, step: Step) -> None:
        leader = self.leading_replica
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
        if self.leading_replica is None or not replica.up or broker_id == self.partition.leader:
            self.note = "nothing to fetch from"
            return
        for _ in range(step.count):
            fetch = self.partition.fetch(broker_id, step.limit)
            if fetch.action:
                at = "" if fetch.truncate_to is None else f" {fetch.truncate_to}"
                self.note = f"OFFSET_OUT_OF_RANGE: {fetch.action.replace('_', ' ')}{at}"
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
        if self.leading_replica is not None and self.partition.leader != broker_id:
            self._follow(broker_id)
        else:
            self._elect(step, also_dead=broker_id)

    def _elect(self, step: Step, also_dead: int | None = None) -> None:
        """The controller notices which brokers are down, and elects a leader if there is none."""
        part = self.partition
        if (
            also_dead is not None and part.leader == also_dead
        ):  # its epoch is over although the broker is back
            part.leader, part.leader_epoch = NO_LEADER, part.leader_epoch + 1
        if any(part.replicas[b].up for b in part.isr):
            self._take_out([b for b in part.isr if not part.replicas[b].up])
        elif part.leader != NO_LEADER:  # all failed at once: the stored ISR stays
            part.leader, part.leader_epoch = NO_LEADER, part.leader_epoch + 1
        if self.leading_replica is not None:
            part.advance()
            return
        live = [b for b, r in part.replicas.items() if r.up]
        elected = elect_offline(
            self.assignment,
            part.isr,
            live,
            part.leader_epoch,
            unclean=part.unclean_enabled,
            by_isr_order=part.rules.elects_by_isr_order,
        )
        if not isinstance(elected, Elected):
            part.leader = NO_LEADER
            self.note = f"no leader: {elected.reason.replace('_', ' ')}"
            return
        self._install(elected)

    def _take_out(self, gone: Sequence[int]) -> None:
        part = self.partition
        last_stays = part.rules.last_isr_member_always_stays or not part.unclean_enabled
        for broker_id in gone:
            change = remove_from_isr(
                broker_id, part.leader, part.isr, part.leader_epoch, last_stays=last_stays
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
        truncation: FollowerTruncation = self.partition.become_follower(broker_id)
        cut = truncation.follower.log_end_offset
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
        if self.leading_replica is not None:
            part.advance()


def play(scenario: Scenario, rules: ReplicationRules) -> Iterator[tuple[int, Step | None, str, ScenarioRun]]:
    """The run after each step, beginning with the start: number, step, what came of it, and the state."""
    run = ScenarioRun.start(rules, scenario.brokers, scenario.unclean_leader_election_enable)
    yield 0, None, "", run
    for number, step in enumerate(scenario.steps, 1):
        note = run.take(step)
        yield number, step, note, run


# The keys of each step besides `do`, each with whether it is required.
STEPS: Mapping[str, Mapping[str, bool]] = {
    "produce": {"records": False, "count": False},
    "fetch": {"broker": True, "rounds": False, "limit": False},
    "crash": {"broker": True},
    "power-failure": {"brokers": True},
    "restart": {"broker": True},
    "elect": {},
    "flush": {"broker": True},
    "checkpoint": {"broker": True},
    "shrink-isr": {"broker": True},
}


def built_in_names() -> list[str]:
    folder = resources.files("kctl.replication") / "scenarios"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def read_scenario(name_or_path: str) -> Scenario:
    """A built-in scenario by name, or one from a TOML file. Raises UnreadableFile or BadValue."""
    if name_or_path in built_in_names():
        resource = resources.files("kctl.replication") / "scenarios" / f"{name_or_path}.toml"
        return parse_scenario(name_or_path, resource.read_text(encoding="utf-8"))
    path = Path(name_or_path)
    try:
        text = read_text(path, LARGEST, follow=True)
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error)
        names = ", ".join(built_in_names())
        raise UnreadableFile(f"{name_or_path}: {why}", f"built-in scenarios: {names}") from error
    try:
        return parse_scenario(path.stem, text)
    except BadValue as error:
        raise BadValue(
            f"{name_or_path}: {error.message.removeprefix(path.stem + ': ')}",
            "correct the file; `kctl replica simulate --help` shows its format",
        ) from error


def parse_scenario(name: str, text: str) -> Scenario:
    """A scenario from TOML text. Raises BadValue."""
    try:
        table = bounded_toml.loads(text)
    except ValueError as error:
        raise BadValue(f"{name}: not TOML: {error}") from error
    brokers = table.get("brokers", [1, 2])
    if not _are_ids(brokers) or len(set(brokers)) != len(brokers) or not brokers:
        raise BadValue(f"{name}: brokers must be a list of different ids, not {brokers!r}")
    unclean = table.get("unclean_leader_election_enable")
    if unclean is not None and not isinstance(unclean, bool):
        raise BadValue(f"{name}: unclean_leader_election_enable must be true or false, not {unclean!r}")
    step_tables = table.get("steps", [])
    if not isinstance(step_tables, list) or not all(isinstance(step, dict) for step in step_tables):
        raise BadValue(f"{name}: steps must be tables [[steps]]")
    if not step_tables:
        raise BadValue(f"{name}: it has no [[steps]]")
    steps = tuple(_step(name, number, step, brokers) for number, step in enumerate(step_tables, 1))
    return Scenario(name, str(table.get("description", "")), tuple(brokers), steps, unclean)


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(broker_id) is int and broker_id >= 0 for broker_id in value)


def _step(name: str, number: int, step_table: dict[str, Any], brokers: list[int]) -> Step:
    where = f"{name}: step {number}"
    do = step_table.get("do")
    if not isinstance(do, str) or do not in STEPS:
        raise BadValue(f"{where}: do must be one of {', '.join(STEPS)}, not {do!r}")
    unknown = set(step_table) - {"do"} - set(STEPS[do])
    missing = {key for key, must in STEPS[do].items() if must} - set(step_table)
    if unknown or missing:
        raise BadValue(
            f"{where}: {do} has no key {min(unknown)!r}"
            if unknown
            else f"{where}: {do} needs {min(missing)!r}"
        )
    ids = step_table.get("brokers", [step_table["broker"]] if "broker" in step_table else [])
    if not _are_ids(ids) or not set(ids) <= set(brokers):
        raise BadValue(f"{where}: no such broker {ids!r}")
    count = step_table.get("rounds", step_table.get("count", 1))
    limit = step_table.get("limit")
    records = step_table.get("records", [])
    if type(count) is not int or not 0 < count <= 1000 or (limit is not None and type(limit) is not int):
        raise BadValue(f"{where}: count, rounds and limit are whole numbers, count at most 1000")
    if not isinstance(records, list) or not all(isinstance(record, str) for record in records):
        raise BadValue(f"{where}: records must be a list of names, not {records!r}")
    return Step(do, tuple(ids), tuple(records), count, limit)
