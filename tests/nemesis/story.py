"""What is known of an incident: its faults, what producers saw, and what ZooKeeper or the metadata log recorded."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

IDS = (1, 2, 3)  # brokers
Held = dict[int, dict[str, set[int]]]  # offset: value: brokers whose log had it


@dataclass
class Fault:
    """What was done to a broker, or to the cluster where it is None; `time` in ms since the epoch."""

    time: float
    # start, kill, term, stopped, exited, pause, resume, power-loss, wipe, reassign, election, delete, create, cut, mend,
    # disk-lost, disk-back, move, delete-records, add-partition, open
    kind: str
    broker: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass
class Sent:
    """A record as its producer saw it; `offset` is None where acks=0, or where it was not acknowledged."""

    time: float
    partition: str  # TOPIC-N
    value: str
    acks: str  # all, 1 or 0
    offset: int | None = None


@dataclass
class State:
    """A partition's state as ZooKeeper or the metadata log has it from a time on."""

    time: float
    epoch: int
    leader: int
    isr: list[int]
    is_unclean: bool = False  # the leader was neither in the ISR nor eligible before
    controller_epoch: int | None = None  # with ZooKeeper
    topic_id: str | None = None


@dataclass
class Fencing:
    """A KRaft controller fences a broker or unfences it; one that registers is fenced."""

    time: float
    broker: int
    is_fenced: bool


@dataclass
class Term:
    """A controller, or a leader of the metadata quorum, with its epoch."""

    time: float
    epoch: int
    broker: int


@dataclass
class Transactional:
    """The newest entry of a transactional id in `__transaction_state`, as Kafka's own tool prints it."""

    name: str
    producer_id: int
    producer_epoch: int
    state: str
    partitions: list[str]
    timeout_ms: int
    last_update: int
    log_partition: int
    log_offset: int


@dataclass
class Moment:
    """A copy of every log directory."""

    name: str
    time: float
    running: list[int]
    done: float = 0.0


@dataclass
class Story:
    """An incident; `held` is what logs of brokers had at any time, by partition."""

    seed: int
    version: str
    mode: str  # zookeeper or kraft
    kinds: list[str] = field(default_factory=list)  # of faults, beside those of every run
    skew: dict[int, float] = field(default_factory=dict)  # seconds that clocks of brokers are ahead
    compacted: list[str] = field(default_factory=list)  # topics
    tiered: list[str] = field(default_factory=list)  # topics
    faults: list[Fault] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    history: dict[str, list[State]] = field(default_factory=dict)
    before: dict[str, list[list[State]]] = field(default_factory=dict)  # of topics that had the name before
    controllers: list[Term] = field(default_factory=list)
    fencings: list[Fencing] = field(default_factory=list)  # with KRaft
    transactions: list[Transactional] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    served: dict[str, dict[int, str]] = field(
        default_factory=dict
    )  # what a consumer read of tiered topics at the end
    settled: float = 0.0  # every replica was in sync from then on

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), default=sorted, indent=1))

    @classmethod
    def read(cls, path: Path) -> Story:
        """What `write` wrote."""
        story = cls(**json.loads(path.read_text()))
        story.faults = [Fault(**fault) for fault in story.faults]  # type: ignore[arg-type]
        story.sent = [Sent(**sent) for sent in story.sent]  # type: ignore[arg-type]
        story.moments = [Moment(**moment) for moment in story.moments]  # type: ignore[arg-type]
        story.skew = {int(id): seconds for id, seconds in story.skew.items()}
        story.controllers = [Term(**term) for term in story.controllers]  # type: ignore[arg-type]
        story.fencings = [Fencing(**fencing) for fencing in story.fencings]  # type: ignore[arg-type]
        story.transactions = [Transactional(**entry) for entry in story.transactions]  # type: ignore[arg-type]
        for name, states in story.history.items():
            story.history[name] = [State(**state) for state in states]  # type: ignore[arg-type]
        for name, lives in story.before.items():
            story.before[name] = [[State(**state) for state in states] for states in lives]  # type: ignore[arg-type]
        story.held = {
            name: {int(at): {value: set(ids) for value, ids in values.items()} for at, values in held.items()}
            for name, held in story.held.items()
        }
        story.served = {
            name: {int(at): v for at, v in values.items()} for name, values in story.served.items()
        }
        return story

    def leader(self, partition: str, time: float) -> int | None:
        """Who led at a time."""
        led = [state.leader for state in self.history[partition] if state.time <= time]
        return led[-1] if led and led[-1] >= 0 else None

    @property
    def nodes(self) -> list[int]:
        """Brokers, and controllers that are apart."""
        return sorted({fault.broker for fault in self.of("start") if fault.broker is not None})

    def created(self, topic: str) -> float:
        """When a topic that was deleted was created again; 0 where it never was."""
        return max((f.time for f in self.of("create") if f.detail["topic"] == topic), default=0.0)

    def of(self, *kinds: str, broker: int | None = None) -> list[Fault]:
        """Faults of these kinds, of one broker where it is named."""
        return [f for f in self.faults if f.kind in kinds and (broker is None or f.broker == broker)]
