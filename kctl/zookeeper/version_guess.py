"""The lowest Kafka version that what stands in ZooKeeper is consistent with.

Brokers write forms by their inter.broker.protocol.version, so a cluster in an upgrade looks as old as its
brokers still speak, which is what a writer has to go by. Signs that only newer brokers leave raise the bound.
"""

from collections.abc import Collection
from dataclasses import dataclass

from formats.znodes import BrokerZnode, ControllerZnode
from kctl.cluster.versions import (
    V0_8_2,
    V0_9,
    V0_10,
    V0_10_1,
    V0_10_2,
    V0_11,
    V1_0,
    V1_1,
    V2_4,
    V2_7,
    V2_8,
    V3_4,
    KafkaVersion,
)

V2_2 = KafkaVersion(2, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What the guess is made from."""

    registrations: Collection[tuple[BrokerZnode, int]]  # with the znode's data version
    topic_versions: Collection[int]
    root: frozenset[str]  # names below the chroot
    config: frozenset[str]  # names below /config
    has_cluster_id: bool
    controller: ControllerZnode | None


def guess_version(signs: Signs) -> KafkaVersion:
    """A lower bound of the oldest broker's version; with no broker up, of whatever wrote last."""
    found = _by_registration(signs)
    if found is None:
        found = V0_10_2 if signs.has_cluster_id else V0_8_2
    if found < V0_10_2:
        return found
    newest_form = max(signs.topic_versions, default=1)
    raised = (
        ("latest_producer_id_block" in signs.root, V0_11),
        ("log_dir_event_notification" in signs.root, V1_0),
        ("log_dir_event_notification" in signs.root and {"users", "brokers"} <= signs.config, V1_1),
        # From 2.2 a broker creates its node empty and sets it in one transaction.
        (signs.registrations and all(version >= 1 for _, version in signs.registrations), V2_2),
        (newest_form >= 2, V2_4),
        ("feature" in signs.root, V2_7),
        (newest_form >= 3 or "ips" in signs.config, V2_8),
        (signs.controller is not None and signs.controller.version >= 2, V3_4),
    )
    return max([found, *(version for sign, version in raised if sign)])


def _by_registration(signs: Signs) -> KafkaVersion | None:
    forms = [broker.version for broker, _ in signs.registrations]
    if not forms:
        return None
    oldest = min(forms)
    if oldest == 1:
        return V0_8_2
    if oldest == 2:
        return V0_9
    if oldest == 3:
        return V0_10_1 if signs.has_cluster_id else V0_10
    return V2_7 if oldest >= 5 else V0_10_2
