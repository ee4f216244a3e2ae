"""What would happen if brokers stopped: which leader each partition gets, what goes offline or under min ISR.

By the rules of the cluster's version, from the state now. `crash`: all named brokers vanish at once. `controlled`:
they shut down one after the other in the order given, each handing its leaderships over first. Whether unclean
elections are allowed stands in the topic, in the brokers' dynamic default, or in the brokers' own files, which
nothing here can see: there the version's default counts unless it is said.

Source for KRaft: metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 4.0.0
"""

from collections.abc import Collection, Iterator, Sequence

from formats.values import Struct, replace
from kctl.cluster.config_keys import UNCLEAN
from kctl.cluster.election_rules import (
    Elected,
    Rules,
    elect_for_shutdown,
    elect_offline,
    remove_from_isr,
    rules_of,
)
from kctl.cluster.partition_health import min_isr
from kctl.cluster.state import (
    ELR_FEATURE,
    NO_LEADER,
    ClusterState,
    PartitionState,
    Replicas,
    is_majority,
)
from kctl.cluster.versions import V0_11
from kctl.errors import BadValue
from kctl.model import TopicPartition

HOW = ("crash", "controlled")


class Prediction(Struct, frozen=True, kw_only=True):
    """A partition before and after. `outcome`: unaffected, isr_shrinks, new_leader, unclean, offline."""

    partition: TopicPartition
    replicas: Replicas
    leader_before: int | None
    isr_before: Replicas
    leader: int | None
    isr: Replicas
    outcome: str
    min_insync_replicas: int
    eligible: Replicas = ()  # may lead later without loss, by the controller (KIP-966)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether producers with acks=all would be refused."""
        lost = self.outcome == "offline" or self.leader in (None, NO_LEADER)
        return lost or len(self.isr) < self.min_insync_replicas


def predict(
    state: ClusterState, stopped: Sequence[int], *, how: str = "crash", unclean: bool | None = None
) -> Iterator[Prediction]:
    """Every partition of the topics read, by name and number. Raises BadValue for a node that is not alive.

    Voters of a KRaft quorum that are no brokers can be stopped too: without a majority nobody elects leaders.
    """
    voters = state.quorum.voters - state.quorum.dead_voters if state.quorum else frozenset[int]()
    strangers = [node for node in stopped if node not in voters and not state.is_alive(node)]
    if strangers:
        raise BadValue(
            f"not alive now: {', '.join(map(str, strangers))}",
            "`kctl cluster brokers` shows who is alive",
        )
    seen = _seen_by_a_controller(state, stopped, how)
    rules, live = rules_of(state.kafka_version), set(state.live_brokers)
    controller = state.controller.broker_id if state.controller else None
    for tp in state.partitions():
        replicas = state.topics[tp.topic].partitions[tp.partition]
        found = state.partition_states.get(tp)
        least = min_isr(tp.topic, found.leader if found else None, state)
        if found is None:
            yield Prediction(
                partition=tp,
                replicas=replicas,
                leader_before=None,
                isr_before=(),
                leader=None,
                isr=(),
                outcome="unaffected",
                min_insync_replicas=least,
            )
            continue
        may = may_be_unclean(tp.topic, state, unclean)
        if state.quorum is not None:
            eligible = state.eligible_leaders.get(tp, ()) if state.features.get(ELR_FEATURE) else None
            kraft = _KraftFate(replicas, found, eligible, least=least, unclean=may)
            alive = live - set(found.offline_replicas)
            for number, broker in enumerate(seen, 1):
                kraft.stop(broker, alive - set(stopped if how == "crash" else stopped[:number]))
            yield _prediction(tp, replicas, found, kraft, least, alive - set(stopped))
            continue
        fate = _Fate(replicas, found, rules, may)
        if how == "controlled":
            fate.shut_down(stopped, live)
        fate.crash(stopped, live, controller_goes=controller in stopped)
        yield _prediction(tp, replicas, found, fate, least, live - set(stopped))


def may_be_unclean(topic: str, state: ClusterState, given: bool | None) -> bool:
    """Whether a replica outside the ISR may lead: by the topic, as said, by the dynamic default, by the version."""
    set_for_topic = state.config("topics", topic).get(UNCLEAN)
    if set_for_topic is None and given is not None:
        return given
    value = state.topic_value(topic, None, UNCLEAN)
    return state.kafka_version < V0_11 if value is None else value.strip().lower() == "true"


def has_majority_after(state: ClusterState, stopped: Collection[int]) -> bool:
    """Whether the voters that stay alive are a majority of all voters, so that one can be controller."""
    quorum = state.quorum
    if quorum is None:
        return True
    return not quorum.lost and is_majority(quorum.voters - quorum.dead_voters - set(stopped), quorum.voters)


def _seen_by_a_controller(state: ClusterState, stopped: Sequence[int], how: str) -> Sequence[int]:
    """The brokers whose stop a controller still notices. In a combined node the broker stops before the controller."""
    if how == "crash":
        return stopped if has_majority_after(state, stopped) else ()
    return [broker for number, broker in enumerate(stopped) if has_majority_after(state, stopped[:number])]


class _Fate:
    """One partition while brokers go."""

    def __init__(self, replicas: Replicas, now: PartitionState, rules: Rules, unclean: bool) -> None:
        self.replicas, self.rules, self.unclean = replicas, rules, unclean
        self.leader, self.isr, self.epoch = now.leader, now.isr, now.leader_epoch
        self.was_unclean = False

    def shut_down(self, stopped: Sequence[int], live: set[int]) -> None:
        """Each hands over what it leads and leaves the ISR, where another is in it; single replicas stay."""
        going: set[int] = set()
        for broker in stopped:
            going.add(broker)
            if broker not in self.replicas or len(self.replicas) < 2:
                continue
            if self.leader == broker:
                self._take(
                    elect_for_shutdown(
                        self.replicas,
                        self.isr,
                        live,
                        going,
                        self.epoch,
                        by_isr_order=self.rules.shutdown_by_isr_order,
                    )
                )
            else:
                self._remove(broker)

    def crash(self, stopped: Sequence[int], live: set[int], *, controller_goes: bool) -> None:
        """First a new leader where the leader is gone, then every gone replica leaves the ISR.

        Until 2.3 a controller that has just started leaves a partition that it can find no leader for as it is.
        """
        left = live - set(stopped)
        if not left:
            return  # no controller is left to write anything
        if self.leader not in left:
            self._take(
                elect_offline(
                    self.replicas,
                    self.isr,
                    left,
                    self.epoch,
                    unclean=self.unclean,
                    by_isr_order=self.rules.offline_by_isr_order,
                )
            )
        if self.leader not in left and controller_goes and self.rules.new_controller_leaves_the_dead:
            return
        for broker in sorted(set(stopped) & set(self.replicas)):
            self._remove(broker)

    def _remove(self, broker: int) -> None:
        stays = self.rules.last_isr_member_always_stays or not self.unclean
        self._take(remove_from_isr(broker, self.leader, self.isr, self.epoch, last_stays=stays))

    def _take(self, outcome: object) -> None:
        if isinstance(outcome, Elected):
            self.leader, self.isr, self.epoch = outcome.leader, outcome.isr, outcome.leader_epoch
            self.was_unclean |= outcome.unclean


class _KraftFate:
    """One partition of a KRaft cluster while brokers go. `eligible` is None where the controller keeps no eligible leaders.

    A broker that is fenced or shuts down leaves the ISR of its partitions, one broker after the other. Without eligible
    leader replicas the last member stays in the ISR, without a leader; with them the ISR may become empty, and who left
    it while it was smaller than `min.insync.replicas` may lead again without loss (KIP-966). A broker that crashed is
    struck from them when it registers again: nobody knows what its disk has lost.
    """

    def __init__(
        self, replicas: Replicas, now: PartitionState, eligible: Replicas | None, *, least: int, unclean: bool
    ) -> None:
        self.replicas, self.least, self.unclean = replicas, least, unclean
        self.leader, self.isr, self.was_unclean = now.leader, now.isr, False
        self.keeps_eligible = eligible is not None
        self.eligible = eligible or ()

    def stop(self, broker: int, left: set[int]) -> None:
        """The broker goes; those that are left can lead."""
        if broker not in self.isr and broker != self.leader:
            return
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


def _prediction(
    tp: TopicPartition,
    replicas: Replicas,
    before: PartitionState,
    fate: _Fate | _KraftFate,
    least: int,
    left: set[int],
) -> Prediction:
    outcome = "unaffected"
    if (left or isinstance(fate, _KraftFate)) and fate.leader not in left:
        outcome = "offline" if before.leader != NO_LEADER or fate.isr != before.isr else "unaffected"
    elif fate.leader != before.leader:
        outcome = "unclean" if fate.was_unclean else "new_leader"
    elif fate.isr != before.isr:
        outcome = "isr_shrinks"
    return Prediction(
        partition=tp,
        replicas=replicas,
        leader_before=before.leader,
        isr_before=before.isr,
        leader=fate.leader,
        isr=fate.isr,
        outcome=outcome,
        min_insync_replicas=least,
        eligible=fate.eligible if isinstance(fate, _KraftFate) else (),
    )


def after(state: ClusterState, predictions: Sequence[Prediction]) -> ClusterState:
    """The state as predicted: leaders and ISRs only."""
    states = dict(state.partition_states)
    for prediction in predictions:
        if prediction.partition in states and prediction.leader is not None:
            states[prediction.partition] = states[prediction.partition]._replace(
                leader=prediction.leader, isr=prediction.isr
            )
    return replace(state, partition_states=states)
