"""What a cluster has now, or had: from its state and its rules, whatever the backend."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from formats.secrets import is_secret_key
from kctl.access.quotas import TYPES
from kctl.access.view import RULES, USERS, NoAuthorizer
from kctl.access_sources.live import view_of
from kctl.cluster.config_keys import BROKERS_ONLY, ENTITY_TYPES
from kctl.cluster.interface import Cluster, Users
from kctl.cluster.names import is_internal
from kctl.cluster.state import ClusterState, Problem, Topic, unread
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.holdable import configs_to_hold, stored_quota, to_hold
from kctl.cluster_file.moving import Racks, placed
from kctl.cluster_file.resources import (
    ENTITY_TYPE_OF,
    PLACEMENT,
    REPLICAS,
    REPLICATION_FACTOR,
    Key,
    Resource,
    Resources,
    Value,
    shape_of,
)
from kctl.cluster_file.sections import acl_resource
from kctl.errors import KctlError


def topic_resource(
    topic: Topic, configs: Mapping[str, str], racks: Racks, desired: Resource | None = None
) -> Resource:
    """A topic; while it is being moved with the replicas that it will have.

    It has the fields of its shape that are `desired`, and its replicas where their number differs between partitions.
    """
    replicas = {p: topic.target_replicas(p) for p in sorted(topic.partitions)}
    fields = {**shape_of(replicas), **configs}
    if desired is not None and not desired.fields.keys().isdisjoint((REPLICAS, PLACEMENT)):
        fields = {**placed(replicas, desired, racks), **fields}
    return Resource(kind="topic", name=topic.name, fields=fields)


def remarks_of(topics: Iterable[Resource]) -> dict[str, list[str]]:
    """What a file should say of topics beside their fields, by `topics/NAME`."""
    text = f"not all partitions have as many replicas; `{REPLICATION_FACTOR}: N` in the place of `{REPLICAS}` makes them alike"
    uneven = (
        each
        for each in topics
        if each.kind == "topic" and isinstance(each.fields.get(REPLICATION_FACTOR), str)
    )
    return {
        f"topics/{each.name}": [f"{REPLICATION_FACTOR} {each.fields[REPLICATION_FACTOR]}: {text}"]
        for each in uneven
    }


def resources_in(
    state: ClusterState, kinds: Collection[str], wanted: Resources, left_out: list[str]
) -> Iterator[Resource]:
    """The topics, configurations and quotas of a state, without internal and leaving topics.

    Topics have the fields of their shape that are `wanted` of them, too. What no file can hold is said in `left_out`.
    """
    racks = {id: broker.rack for id, broker in state.brokers.items()}
    if "topic" in kinds:
        for name, topic in state.topics.items():
            if not is_internal(name) and name not in state.deleting:
                configs = state.config("topics", name)
                told = {key: value for key, value in configs.items() if not is_kept_back(state, key, value)}
                told = configs_to_hold(name, told, left_out)
                yield topic_resource(topic, told, racks, wanted.get(Key("topic", name)))
    by_type = {ENTITY_TYPE_OF[kind]: kind for kind in kinds if kind in ENTITY_TYPE_OF and kind != "topic"}
    for (entity_type, name), config in state.configs.items():
        if entity_type in by_type:
            fields: dict[str, Value] = {
                key: value for key, value in config.values.items() if not is_kept_back(state, key, value)
            }
            if fields:
                yield Resource(kind=by_type[entity_type], name=name, fields=fields)
        elif entity_type in TYPES and "quota" in kinds:
            quota = stored_quota(entity_type, name, config.values, left_out)
            yield from [quota] if quota else []


def is_kept_back(state: ClusterState, key: str, value: str) -> bool:
    """Whether a value is a secret, or one that brokers do not tell."""
    return is_secret_key(key) or state.is_not_returned(value)


def user_resources(users: Users) -> Iterator[Resource]:
    """The users with SCRAM credentials; iterations that are not known are empty."""
    for name, mechanisms in users.items():
        yield Resource(
            kind="user",
            name=name,
            fields={
                mechanism: count if count and count > 0 else ""
                for mechanism, count in sorted(mechanisms.items())
            },
        )


class Present(NamedTuple):
    """What a cluster has, the state it was read from, what could not be read, and what there cannot be."""

    state: ClusterState
    resources: list[Resource]
    problems: list[Problem]
    remarks: list[str]
    not_asked: Mapping[str, str]  # why, by entity type
    left_out: Sequence[str] = ()  # what no file can hold; neither exported nor compared

    @property
    def brokers(self) -> int:
        """How many brokers there are: those registered, and those that are down and have replicas."""
        replicas = (ids for topic in self.state.topics.values() for ids in topic.partitions.values())
        return len(set(self.state.brokers).union(*replicas))

    def why_unread(self, resource: Resource) -> str | None:
        """Why it is not known whether there is such a resource, or of a topic that is there, how it is configured."""
        if resource.kind in PLACES:
            return next((p.reason for p in self.problems if p.place.startswith(PLACES[resource.kind])), None)
        kind, name = resource.of_config()
        places = (f"configurations of {kind}", f"/config/{kind}", f"/config/{kind}/{name}")
        whole = next((p.reason for p in self.problems if p.place in places), None)
        hidden = "" if self.state.can.name_all_topics else self.state.hidden
        if hidden and (resource.kind != "topic" or name in self.state.topic_names):
            hidden = ""
        return self.not_asked.get(kind) or whole or self.state.why_unread(kind, name) or hidden or None


PLACES = {"acl": (RULES, "/kafka-acl"), "user": (USERS, "/config/users")}
"""Places of the problems of kinds that are read as a whole."""


def present_in(
    cluster: Cluster,
    version: KafkaVersion | None,
    kinds: Collection[str],
    topics: Sequence[str] | None,
    wanted: Resources = MappingProxyType({}),
) -> Present:
    """What a cluster has of some kinds; `topics` None: all of them. `wanted`: see `resources_in`. Raises KctlError."""
    now = cluster.read_state((), partition_states=False, kafka_version=version)
    types = [ENTITY_TYPE_OF[kind] for kind in sorted(ENTITY_TYPE_OF.keys() & set(kinds))]
    types += TYPES if "quota" in kinds else ()
    not_asked = {kind: why for kind in types if (why := _why_not_asked(kind, now))}
    can_ask = [kind for kind in types if kind not in not_asked]
    state = cluster.read_state(
        topics if "topic" in kinds else (),
        partition_states=False,
        configs=can_ask,
        kafka_version=version,
        visibility="topic" in kinds and topics is None,
    )
    problems, remarks = list(state.problems), list[str]()
    left_out = list[str]()
    resources = list(resources_in(state, kinds, wanted, left_out))
    if "acl" in kinds:
        try:
            view = view_of(cluster, rules_only=True)
        except NoAuthorizer as error:
            remarks.append(error.message)
        except KctlError as error:
            problems.append(unread(RULES, error))
        else:
            problems += [problem for problem in view.problems if problem not in problems]
            resources += map(acl_resource, view.acls)
    if "user" in kinds:
        try:
            resources += user_resources(cluster.scram_users(problems))
        except KctlError as error:
            problems.append(unread(USERS, error))
    resources = list(to_hold(resources, left_out))
    return Present(state, resources, problems, remarks, not_asked, left_out)


def _why_not_asked(kind: str, state: ClusterState) -> str:
    if ENTITY_TYPES[kind][0] > state.kafka_version:
        return f"Kafka {state.kafka_version} has no configuration of {kind}; it came with {ENTITY_TYPES[kind][0]}"
    if kind in BROKERS_ONLY and not state.can.ask_brokers:
        return f"only brokers keep {kind}: give --bootstrap-server"
    if kind in ("client-metrics", "groups") and state.quorum is None and state.not_quorum is None:
        return f"a cluster with ZooKeeper has no configuration of {kind}"
    return ""


def secrets_in(state: ClusterState) -> Iterator[str]:
    """Sentences on values that are set and that no file holds."""
    for (kind, name), config in sorted(state.configs.items()):
        keys = sorted(key for key, value in config.values.items() if is_kept_back(state, key, value))
        if keys and kind in ("topics", "brokers"):
            yield f"{kind.removesuffix('s')} {name}: {', '.join(keys)} set, and not exported, as secrets"
