"""Predict what happens if brokers stop: the leader of each partition, what goes offline or under min ISR.

By the rules of the cluster's version, from the state now. `crash`: all named brokers vanish at once. `controlled`:
they shut down one after the other in the given order, each handing over its leaderships first. Whether unclean
elections are allowed is set in the topic, in the brokers' dynamic default, or in the brokers' own files, which
are not visible: then the argument or the version's default applies.

Source for KRaft: metadata/src/main/java/org/apache/kafka/controller/PartitionChangeBuilder.java @ 4.0.0
"""

from collections.abc import Collection, Iterator, Sequence

from formats.values import Struct, replace
from kctl.cluster.config_keys import UNCLEAN
from kctl.cluster.election_rules import (
    Elected,
    ElectionRules,
    elect_for_shutdown,
    elect_offline,
    remove_from_isr,
    rules_of,
)
from kctl.cluster.partition_health import min_isr_in_force
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

    Voters of a KRaft quorum that are no brokers can be stopped too: without a majority no leaders are elected.
    """
    voters = state.quorum.voters - state.quorum.dead_voters if state.quorum else frozenset[int]()
    strangers = [node for node in stopped if node not in voters and not state.is_alive(node)]
    if strangers:
        raise BadValue(
            f"not alive now: {', '.join(map(str, strangers))}",
            "`kctl cluster brokers` shows who is alive",
        )
    noticed = _seen_by_a_controller(state, stopped, how)
    rules, live = rules_of(state.kafka_version), set(state.live_brokers)
    controller = state.controller.broker_id if state.controller else None
    for tp in state.partitions():
        replicas = state.topics[tp.topic].partitions[tp.partition]
        partition_state = state.partition_states.get(tp)
        least = min_isr_in_force(tp, state.leader(tp), state)
        if partition_state is None:
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
            kraft = _KraftFate(replicas, partition_state, eligible, least=least, unclean=may)
            alive = live - set(partition_state.offline_replicas)
            for number, broker in enumerate(noticed, 1):
                kraft.stop(broker, alive - set(stopped if how == "crash" else stopped[:number]))
            yield _prediction(tp, replicas, partition_state, kraft, least, alive - set(stopped))
            continue
        fate = _Fate(replicas, partition_state, rules, may)
        if how == "controlled":
            fate.shut_down(stopped, live)
        fate.crash(stopped, live, controller_goes=controller in stopped)
        yield _prediction(tp, replicas, partition_state, fate, least, live - set(stopped))


def may_be_unclean(topic: str, state: ClusterState, default: bool | None) -> bool:
    """Whether a replica outside the ISR may lead: by the topic, `given`, the dynamic default, or the version."""
    set_for_topic = state.config("topics", topic).get(UNCLEAN)
    if set_for_topic is None and default is not None:
        return default
    value = state.topic_value(topic, None, UNCLEAN)
    return state.kafka_version < V0_11 if value is None else value.strip().lower() == "true"


def has_majority_after(state: ClusterState, stopped: Collection[int]) -> bool:
    """Whether the voters that stay alive are a majority, so that one can be controller."""
    quorum = state.quorum
    if quorum is None:
        return True
    return not quorum.lost and is_majority(quorum.voters - quorum.dead_voters - set(stopped), quorum.voters)


def _seen_by_a_controller(state: ClusterState, stopped: Sequence[int], how: str) -> Sequence[int]:
    """The brokers whose stop a controller still handles. In a combined node the broker stops before the controller."""
    if how == "crash":
        return stopped if has_majority_after(state, stopped) else ()
    return [broker for number, broker in enumerate(stopped) if has_majority_after(state, stopped[:number])]


class _Fate:
    """A partition while brokers stop."""

    def __init__(self, replicas: Replicas, now: PartitionState, rules: ElectionRules, unclean: bool) -> None:
        self.replicas, self.rules, self.unclean = replicas, rules, unclean
        self.leader, self.isr, self.epoch = now.leader, now.isr, now.leader_epoch
        self.was_unclean = False

    def shut_down(self, stopped: Sequence[int], live: set[int]) -> None:
        """Each broker hands over its leaderships and leaves the ISR, unless it is its only member."""
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
        """First a new leader if the leader is gone, then every gone replica leaves the ISR.

        Until 2.3 a controller that has just started does not change a partition without a possible leader.
        """
        live_after = live - set(stopped)
        if not live_after:
            return  # no controller is left to write anything
        if self.leader not in live_after:
            self._take(
                elect_offline(
                    self.replicas,
                    self.isr,
                    live_after,
                    self.epoch,
                    unclean=self.unclean,
                    by_isr_order=self.rules.offline_by_isr_order,
                )
            )
        if self.leader not in live_after and controller_goes and self.rules.new_controller_leaves_the_dead:
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
    """A partition of a KRaft cluster while brokers stop. `eligible` is None if the controller tracks no eligible leaders.

    A broker that is fenced or shuts down leaves the ISR of its partitions, one broker after the other. Without eligible
    leader replicas the last member stays in the ISR, without a leader; with them the ISR may become empty, and replicas that left
    it when it was smaller than `min.insync.replicas` may lead again without loss (KIP-966). A broker that crashed is
    removed from them when it registers again, as its disk may have lost records.
    """

    def __init__(
        self, replicas: Replicas, now: PartitionState, eligible: Replicas | None, *, least: int, unclean: bool
    ) -> None:
        self.replicas, self.least, self.unclean = replicas, least, unclean
        self.leader, self.isr, self.was_unclean = now.leader, now.isr, False
        self.keeps_eligible = eligible is not None
        self.eligible = eligible or ()

    def stop(self, broker: int, live_after: set[int]) -> None:
        """Stop the broker; those in `live_after` can lead."""
        if broker not in self.isr and broker != self.leader:
            return
        rest = tuple(b for b in self.isr if b != broker)
        eligible: Replicas = ()
        if self.keeps_eligible and len(rest) < self.least:
            known = {*self.eligible, *self.isr} - set(rest)
            eligible = tuple(b for b in self.replicas if b in known)
        may_lead = rest or eligible
        leader = self.leader if self.leader in rest and self.leader in live_after else NO_LEADER
        if leader == NO_LEADER:
            leader = next((b for b in self.replicas if b in may_lead and b in live_after), NO_LEADER)
            if leader in eligible:
                rest, eligible = (leader,), tuple(b for b in eligible if b != leader)
        if leader == NO_LEADER and self.unclean:
            leader = next((b for b in self.replicas if b in live_after), NO_LEADER)
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
    live_after: set[int],
) -> Prediction:
    outcome = "unaffected"
    if (live_after or isinstance(fate, _KraftFate)) and fate.leader not in live_after:
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
    """The state with the predicted leaders and ISRs."""
    states = dict(state.partition_states)
    for prediction in predictions:
        if prediction.partition in states and prediction.leader is not None:
            states[prediction.partition] = states[prediction.partition]._replace(
                leader=prediction.leader, isr=prediction.isr
            )
    return replace(state, partition_states=states)
