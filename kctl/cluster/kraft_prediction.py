"""What becomes of a partition of a KRaft cluster when brokers stop: by the controller's rules, with and without ELR.

A broker that is fenced or shuts down leaves the ISR of its partitions, one broker after the other. Without eligible
leader replicas the last member stays in the ISR, without a leader; with them the ISR may become empty, and who left
it while it was smaller than `min.insync.replicas` may lead again without loss (KIP-966). A broker that crashed is
struck from them when it registers again: nobody knows what its disk has lost.

Source: metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 4.0.0
"""

from collections.abc import Sequence

from kctl.cluster.election_rules import NO_LEADER, Replicas
from kctl.cluster.state import ClusterState, PartitionState

ELR_FEATURE = "eligible.leader.replicas.version"


def has_eligible_leaders(state: ClusterState) -> bool:
    """Whether the controller keeps eligible leader replicas."""
    return bool(state.features.get(ELR_FEATURE))


def quorum_is_left(state: ClusterState, stopped: Sequence[int]) -> bool:
    """Whether enough voters go on for somebody to be controller."""
    voters = {one.node_id for one in state.quorum.members if one.is_voter} if state.quorum else set()
    return not voters or 2 * len(voters - set(stopped)) > len(voters)


class KraftFate:
    """One partition while brokers go. `eligible` is None where the controller keeps no eligible leaders."""

    def __init__(
        self, replicas: Replicas, now: PartitionState, eligible: Replicas | None, *, least: int, unclean: bool
    ) -> None:
        self.replicas, self.least, self.unclean = replicas, least, unclean
        self.leader, self.isr, self.was_unclean = now.leader, now.isr, False
        self.keeps_eligible = eligible is not None
        self.eligible = eligible or ()

    def stop(self, stopped: Sequence[int], live: set[int]) -> None:
        """The brokers go, and none of them can lead any more."""
        left = live - set(stopped)
        for broker in stopped:
            if broker in self.isr or broker == self.leader:
                self._remove(broker, left)

    def _remove(self, broker: int, left: set[int]) -> None:
        rest = tuple(b for b in self.isr if b != broker)
        eligible: Replicas = ()
        if self.keeps_eligible and len(rest) < self.least:
            known = {*self.eligible, *self.isr} - set(rest)
            eligible = tuple(b for b in self.replicas if b in known)
        may_lead = rest or eligible
        leader = self.leader if self.leader in rest and self.leader in left else NO_LEADER
        if leader == NO_LEADER:
            leader = next((b for b in self.replicas if b in may_lead and b in left), NO_LEADER)
            if leader in eligible:
                rest, eligible = (leader,), tuple(b for b in eligible if b != leader)
        if leader == NO_LEADER and self.unclean:
            leader = next((b for b in self.replicas if b in left), NO_LEADER)
            if leader != NO_LEADER:
                rest, eligible, self.was_unclean = (leader,), (), True
        self.leader, self.eligible = leader, eligible
        if rest or self.keeps_eligible:
            self.isr = rest
