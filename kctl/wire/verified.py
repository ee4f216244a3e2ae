"""How far a partition of a running cluster is compared, and what was found in it."""

from dataclasses import dataclass, field, replace

from kctl.findings import Finding, Place
from kctl.findings import live as say
from kctl.model import TopicPartition
from kctl.replica.compare import Divergence

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
