"""Problems that stop or spoil a migration, one function a check; `CHECKS` has them in the order of this file."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from formats.words import counted
from kctl.cluster.names import brokers_named
from kctl.cluster.versions import V3_4
from kctl.findings import Finding, Place
from kctl.findings import migration as m
from kctl.migration.kraft_side import KraftSide
from kctl.migration.phase import MigrationStatus, Phase
from kctl.migration.zookeeper_side import CONFIGS, ZookeeperSide

PROTOCOL, AUTHORIZER = "inter.broker.protocol.version", "authorizer.class.name"
SECRETS = ("password.encoder.secret", "delegation.token.secret.key", "delegation.token.master.key")
SETTINGS = (PROTOCOL, AUTHORIZER, *SECRETS)
Settings = Mapping[int, Mapping[str, str | None]]
"""What each broker runs with, by key; null: a secret that is set. Keys that are not set are absent."""
KAFKA_S_OWN = frozenset(
    [
        "admin",
        "brokers",
        "cluster",
        "config",
        "consumers",
        "controller",
        "controller_epoch",
        "delegation_token",
        "feature",
        "isr_change_notification",
        "kafka-acl",
        "kafka-acl-changes",
        "kafka-acl-extended",
        "kafka-acl-extended-changes",
        "latest_producer_id_block",
        "log_dir_event_notification",
        "migration",
        "zookeeper",
    ]
)


class MigrationFacts(NamedTuple):
    """What the checks examine."""

    znodes: ZookeeperSide
    kraft: KraftSide | None
    status: MigrationStatus
    settings: Settings | None = None

    @property
    def is_before(self) -> bool:
        """Whether the metadata is not copied yet."""
        return self.status.phase.is_before_copy


Check = Callable[[MigrationFacts], Iterator[Finding]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Put a function in `CHECKS`."""
    CHECKS.append(function)
    return function


def examine(facts: MigrationFacts) -> Iterator[Finding]:
    """The findings of all checks, in their order."""
    for check in CHECKS:
        yield from check(facts)


@check
def other_cluster(facts: MigrationFacts) -> Iterator[Finding]:
    ours, theirs = facts.znodes.state.cluster_id, facts.kraft.cluster_id if facts.kraft else None
    if ours and theirs and ours != theirs:
        yield m.OTHER_CLUSTER.at(cluster_id=ours, other=theirs)


@check
def unreadable(facts: MigrationFacts) -> Iterator[Finding]:
    for problem in dict.fromkeys(facts.znodes.problems):
        yield m.ZNODE_UNREADABLE.at(path=problem.place, what=problem.reason)


@check
def states_disagree(facts: MigrationFacts) -> Iterator[Finding]:
    znodes, kraft = facts.znodes, facts.kraft
    if kraft is None or facts.status.is_export_older:
        return
    reset = znodes.migration is not None and znodes.reached is None and not znodes.is_claimed
    if kraft.is_copied and reset:
        yield m.STATES_DISAGREE.at(znodes="not copied yet", state=kraft.state)
    elif not kraft.is_copied and znodes.reached is not None:
        yield m.STATES_DISAGREE.at(znodes=f"copied up to offset {znodes.reached}", state=kraft.state)


@check
def too_old(facts: MigrationFacts) -> Iterator[Finding]:
    if facts.is_before and facts.znodes.state.kafka_version < V3_4:
        yield m.TOO_OLD.at()


@check
def missing_brokers(facts: MigrationFacts) -> Iterator[Finding]:
    replica_counts = Counter(
        id
        for topic in facts.znodes.state.topics.values()
        for replicas in topic.partitions.values()
        for id in replicas
    )
    alive, kraft = facts.znodes.state.brokers, facts.kraft
    if facts.is_before:
        for id in sorted(replica_counts.keys() - alive.keys()):
            yield m.BROKER_MISSING.at(Place(broker_id=id), broker=id, replicas=replica_counts[id])
    if facts.status.phase is Phase.PREPARING and kraft is not None:
        for id in sorted(alive.keys() - kraft.image.brokers.keys()):
            yield m.BROKER_WAITS.at(Place(broker_id=id), broker=id)
    if facts.status.phase in (Phase.HYBRID, Phase.DUAL_WRITE) and kraft is not None:
        for id, broker in sorted(kraft.image.brokers.items()):
            if broker.fenced and id not in alive:
                yield m.BROKER_FENCED.at(Place(broker_id=id), broker=id)


@check
def controllers(facts: MigrationFacts) -> Iterator[Finding]:
    if facts.kraft is None:
        return
    image = facts.kraft.image
    if facts.status.phase is Phase.PREPARING:
        for id, is_ready in sorted(image.is_ready_to_migrate.items()):
            if not is_ready:
                yield m.CONTROLLER_NOT_READY.at(controller=id)
    for id in sorted(set(image.controllers) & {*facts.znodes.state.brokers, *image.brokers}):
        if facts.status.phase is not Phase.FINALIZED:  # later on a node may have both roles
            yield m.CONTROLLER_ID_TAKEN.at(controller=id)


@check
def brokers_beside_kraft(facts: MigrationFacts) -> Iterator[Finding]:
    kraft, znodes = facts.kraft, facts.znodes
    if kraft is None or kraft.state != "POST_MIGRATION" or facts.status.is_export_older:
        return
    if facts.status.phase is Phase.ROLLED_BACK and znodes.state.brokers:
        listed = brokers_named(sorted(znodes.state.brokers))
        yield m.BESIDE_KRAFT.at(
            brokers=f"{listed} {'runs' if len(znodes.state.brokers) == 1 else 'run'}".capitalize()
        )


@check
def requests_left(facts: MigrationFacts) -> Iterator[Finding]:
    state = facts.znodes.state
    if not facts.is_before:
        return
    for topic in sorted(state.deleting):
        yield m.REQUEST_LEFT.at(
            Place(topic=topic), path=f"/admin/delete_topics/{topic}", what=f"topic {topic} is not deleted yet"
        )
    if state.reassignment is not None:
        count = len(state.reassignment.partitions)
        yield m.REQUEST_LEFT.at(
            path="/admin/reassign_partitions",
            what=f"{counted(count, 'partition')} {'is' if count == 1 else 'are'} to be moved",
        )
    if state.election is not None:
        count = len(state.election.partitions)
        yield m.REQUEST_LEFT.at(
            path="/admin/preferred_replica_election",
            what=f"{counted(count, 'election')} {'is' if count == 1 else 'are'} waited for",
        )


@check
def topics(facts: MigrationFacts) -> Iterator[Finding]:
    if not facts.is_before:
        return
    state = facts.znodes.state
    for name, topic in sorted(state.topics.items()):
        if topic.topic_id is None:
            yield m.TOPIC_WITHOUT_ID.at(Place(topic=name), topic=name)
    moving = [tp for tp in state.partitions() if state.topics[tp.topic].is_reassigning(tp.partition)]
    if moving:
        yield m.MOVE_UNDER_WAY.at(count=len(moving), partition=str(moving[0]))


@check
def left_behind(facts: MigrationFacts) -> Iterator[Finding]:
    if not facts.is_before:
        return
    reader, state = facts.znodes.reader, facts.znodes.state
    for kind, name in sorted(state.configs):
        if kind == "topics" and name not in state.topic_names:
            yield m.NOT_CARRIED_OVER.at(path=f"/config/topics/{name}", what="no such topic")
    for kind in reader.children("/config") or ():
        if kind not in (*CONFIGS, "changes"):
            yield m.NOT_CARRIED_OVER.at(
                path=f"/config/{kind}", what="Kafka knows no such type of configuration"
            )
    groups = len(reader.children("/consumers") or ())
    if groups:
        yield m.NOT_CARRIED_OVER.at(
            path="/consumers", what=f"{counted(groups, 'group')} of consumers from before 2.0"
        )
    for name in reader.children("/") or ():
        if name not in KAFKA_S_OWN:
            yield m.NOT_CARRIED_OVER.at(path=f"/{name}", what="it is not Kafka's")


@check
def broker_settings(facts: MigrationFacts) -> Iterator[Finding]:
    settings = facts.settings or {}
    versions = {id: broker_settings.get(PROTOCOL) or "" for id, broker_settings in settings.items()}
    newest = max(map(_version, versions.values()), default=(0,))
    for id, version in sorted(versions.items()):
        if _version(version) < V3_4[:2]:
            yield m.PROTOCOL_TOO_OLD.at(Place(broker_id=id), broker=id, version=version)
        elif _version(version) < newest:
            yield m.SETTINGS_DIFFER.at(
                Place(broker_id=id), key=PROTOCOL, brokers=brokers_named([id]), how=f"is {version}"
            )
    for key in (AUTHORIZER, *SECRETS):
        values = {id: broker_settings.get(key, "") for id, broker_settings in settings.items()}
        if len(set(values.values())) > 1:
            lacking = sorted(id for id, value in values.items() if value == "")
            differs = brokers_named(lacking or sorted(values))
            how = "is not set" if lacking else "differs"
            yield m.SETTINGS_DIFFER.at(key=key, brokers=differs, how=how)


def _version(text: str) -> tuple[int, ...]:
    """`3.9-IV0` as (3, 9)."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


@check
def not_examined(facts: MigrationFacts) -> Iterator[Finding]:
    if not facts.is_before:
        return
    missing = sorted(facts.znodes.state.brokers.keys() - (facts.settings or {}).keys())
    if missing:
        yield m.NOT_EXAMINED.at(whose=brokers_named(missing), settings=", ".join(SETTINGS))
    else:
        yield m.SECRETS_NOT_COMPARED.at(settings=", ".join(SECRETS))
