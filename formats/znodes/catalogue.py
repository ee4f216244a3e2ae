"""Every znode of Kafka: its path, who writes it, since when, what it is, and its content in words.

A new znode is one more function here, before any whose path also matches it. Children of a path that has none are unknown to Kafka.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 1.1.1, 2.0.1, 2.8.2, 3.4.1, 3.9.0-rc3;
kafka/utils/ZkUtils.scala @ 0.8.2.1
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from formats.secrets import REDACTED, is_secret_key, redact_text
from formats.words import counted, utc_text
from formats.znodes.cluster import (
    RESERVED_TOPIC_IDS,
    others,
    parse_broker,
    parse_config,
    parse_controller,
    parse_features,
    parse_migration,
    parse_number,
    parse_partition_state,
    parse_producer_id_block,
    parse_topic,
)
from formats.znodes.consumers import parse_consumer
from formats.znodes.json_text import Object, integer, parse_object, text
from formats.znodes.requests import duplicates, parse_config_change, parse_election, parse_reassignment
from formats.znodes.security import parse_acls, parse_delegation_token

Names = Mapping[str, str]  # the names in a path
Words = Callable[[Names, bytes], list[str]]
SHOWN = 20  # of a long list


class ZnodeKind(NamedTuple):
    """A kind of znode: `pattern` matches whole paths below the chroot.

    `words` gives lines, and raises FormatError for content that Kafka could not read.
    """

    name: str
    pattern: re.Pattern[str]
    written_by: str
    since: str
    what: str
    words: Words


KINDS: list[ZnodeKind] = []


def znode(name: str, path: str, written_by: str, since: str) -> Callable[[Words], Words]:
    """Put a function that describes a znode's content in `KINDS`; its docstring says what the znode is."""

    def add(words: Words) -> Words:
        pattern = re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", path))
        KINDS.append(ZnodeKind(name, pattern, written_by, since, words.__doc__ or "", words))
        return words

    return add


def kind_of_znode(path: str) -> tuple[ZnodeKind, dict[str, str]] | None:
    """The kind of a path below the chroot, and the names in the path; None for a folder or an unknown path."""
    for kind in KINDS:
        if match := kind.pattern.fullmatch(path):
            return kind, match.groupdict()
    return None


# --- brokers, topics, the controller ------------------------------------------------------------------


@znode("broker", "/brokers/ids/<id>", "the broker", "0.8")
def broker(names: Names, data: bytes) -> list[str]:
    """A live broker."""
    value = parse_broker(data)
    lines = [f"broker {names['id']} is alive, registered {moment(value.timestamp)} (form {value.version})"]
    if value.endpoints:
        for listener, host, port, protocol in value.endpoints:
            lines.append(f"listens on {host or 'all addresses'}:{port}, {listener} ({protocol})")
    else:
        lines.append(f"listens on {value.host}:{value.port}")
    if value.rack is not None:
        lines.append(f"in rack {value.rack}")
    return lines + unknown(value.other)


@znode("broker id counter", "/brokers/seqid", "brokers", "0.9")
def broker_id_counter(names: Names, data: bytes) -> list[str]:
    """Its version counts the ids given."""
    return []


@znode("topic", "/brokers/topics/<topic>", "tools, the controller", "0.8")
def topic(names: Names, data: bytes) -> list[str]:
    """A topic's replicas."""
    value = parse_topic(data)
    lines = [
        f"topic {names['topic']} has {counted(len(value.partitions), 'partition')} (form {value.version})"
    ]
    if value.topic_id:
        reserved = (
            ", which is reserved: a controller fails on it" if value.topic_id in RESERVED_TOPIC_IDS else ""
        )
        lines.append(f"its id is {value.topic_id}{reserved}")
    for partition, replicas in sorted(value.partitions.items())[:SHOWN]:
        adding, removing = value.adding_replicas.get(partition), value.removing_replicas.get(partition)
        moving = f", adding {ids(adding)}" if adding else ""
        moving += f", removing {ids(removing)}" if removing else ""
        lines.append(f"partition {partition} on {ids(replicas)}{moving}")
        if not set(replicas) - set(removing or ()):
            lines.append(f"partition {partition} would be left without replicas: a controller fails on it")
    return lines + more(len(value.partitions), "partitions") + unknown(value.other)


@znode(
    "partition state",
    "/brokers/topics/<topic>/partitions/<partition>/state",
    "the controller; leaders too before 2.7",
    "0.8",
)
def partition_state(names: Names, data: bytes) -> list[str]:
    """The leader and the ISR of a partition."""
    value = parse_partition_state(data)
    leader = f"broker {value.leader} leads" if value.leader >= 0 else "no broker leads"
    lines = [
        f"{leader} {names['topic']}-{names['partition']} in leader epoch {value.leader_epoch}",
        f"in sync: {ids(value.isr)}; written under controller epoch {value.controller_epoch}",
    ]
    if value.leader_recovery_state == 1:
        lines.append("the leader was elected uncleanly and is recovering")
    return lines


@znode("controller", "/controller", "the controller", "0.8")
def controller(names: Names, data: bytes) -> list[str]:
    """Which broker is controller."""
    value = parse_controller(data)
    lines = [f"broker {value.broker_id} is controller since {moment(value.timestamp)}"]
    if value.kraft_controller_epoch is not None and value.kraft_controller_epoch >= 0:
        lines = [
            f"the KRaft quorum has claimed the cluster: node {value.broker_id}, epoch {value.kraft_controller_epoch}"
        ]
    return lines + unknown(value.other)


@znode("controller epoch", "/controller_epoch", "the controller", "0.8")
def controller_epoch(names: Names, data: bytes) -> list[str]:
    """Counts controllers."""
    return [f"{parse_number(data)}"]


@znode("cluster id", "/cluster/id", "the first broker", "0.10.1")
def cluster_id(names: Names, data: bytes) -> list[str]:
    """The cluster's id."""
    values = parse_object(data)
    return [f"the cluster's id is {text(values, 'id')}", *unknown(others(values, "id", "version"))]


@znode("features", "/feature", "the controller", "2.7")
def feature(names: Names, data: bytes) -> list[str]:
    """Finalised features."""
    status, version, levels, other = parse_features(data)
    return [
        f"features are {'enabled' if status == 1 else 'disabled'} (form {version})",
        *(f"{name}: {level}" for name, level in sorted(levels.items())),
        *unknown(other),
    ]


# --- requests, notifications --------------------------------------------------------------------------


@znode("reassignment request", "/admin/reassign_partitions", "tools; the controller takes entries off", "0.8")
def reassignment(names: Names, data: bytes) -> list[str]:
    """Partitions that the controller is to move. Deleting it cancels nothing."""
    value = parse_reassignment(data)
    lines = [f"{counted(len(value.partitions), 'partition')} to be moved"]
    lines += [
        f"{partition.topic}-{partition.partition} to {ids(partition.replicas)}"
        for partition in value.partitions[:SHOWN]
    ]
    lines += more(len(value.partitions), "partitions")
    if value.unknown_keys:
        lines.append(
            f"controllers since 2.0 ignore it and leave it here: unknown key {', '.join(value.unknown_keys)}"
        )
    lines += [
        f"{duplicate.topic}-{duplicate.partition} names a broker twice: it will never leave"
        for duplicate in duplicates(value.partitions)
    ]
    lines += [
        f"{partition.topic}-{partition.partition} has no replicas: its data would be lost"
        for partition in value.partitions
        if not partition.replicas
    ]
    return lines


@znode(
    "preferred election request",
    "/admin/preferred_replica_election",
    "tools; the controller deletes it",
    "0.8",
)
def election(names: Names, data: bytes) -> list[str]:
    """Partitions whose first replica is to lead."""
    value = parse_election(data)
    listed = [f"{partition.topic}-{partition.partition}" for partition in value.partitions[:SHOWN]]
    head = f"the first replica of {counted(len(value.partitions), 'partition')} is to lead"
    return [head, *listed, *more(len(value.partitions), "partitions")]


@znode("deletion request", "/admin/delete_topics/<topic>", "tools; the controller deletes it", "0.8.1")
def deletion(names: Names, data: bytes) -> list[str]:
    """A topic that is to be deleted."""
    return [f"topic {names['topic']} is to be deleted"]


@znode("configuration notification", "/config/changes/config_change_<number>", "tools, brokers", "0.8.1")
def config_change(names: Names, data: bytes) -> list[str]:
    """Tells brokers to read a configuration again; gone after 15 minutes."""
    value = parse_config_change(data)
    releases = {0: "0.8", 1: "0.9 and 0.10.0", 2: "0.10.1 and later"}[value.form]
    return [f"the configuration of {value.entity_path} has changed (form of {releases})"]


@znode("ISR notification", "/isr_change_notification/isr_change_<number>", "leaders before 2.7", "0.9")
def isr_change(names: Names, data: bytes) -> list[str]:
    """Partitions whose ISR has changed."""
    return [
        f"the ISR of {partition.topic}-{partition.partition} has changed"
        for partition in parse_election(data).partitions
    ]


@znode("log directory notification", "/log_dir_event_notification/log_dir_event_<number>", "a broker", "1.0")
def log_dir_event(names: Names, data: bytes) -> list[str]:
    """A broker has lost a log directory."""
    values = parse_object(data)
    broker_id, *_ = (integer(values, "broker"), integer(values, "event"), integer(values, "version", 1))
    return [f"broker {broker_id} has lost a log directory"]


# --- configurations -----------------------------------------------------------------------------------


@znode("client's configuration of a user", "/config/users/<user>/clients/<name>", "tools, brokers", "0.10.1")
def user_client_config(names: Names, data: bytes) -> list[str]:
    """Quotas of one user's client."""
    return config(names, data)


@znode("configuration", "/config/<type>/<name>", "tools, brokers", "0.8.1")
def config(names: Names, data: bytes) -> list[str]:
    """What was set for it; secrets are left out."""
    if not data:
        return ["nothing is set"]
    value = parse_config(data)
    lines = [
        f"{k} = {REDACTED if is_secret_key(k) else redact_text(v)}" for k, v in sorted(value.config.items())
    ]
    return (lines or ["nothing is set"]) + unknown(value.other)


# --- producer ids, migration --------------------------------------------------------------------------


@znode("producer id block", "/latest_producer_id_block", "transaction coordinators", "0.11")
def producer_id_block(names: Names, data: bytes) -> list[str]:
    """The producer ids that were given out last."""
    broker_id, first, last, other = parse_producer_id_block(data)
    if broker_id == -1:
        return [f"the KRaft controller gives out the producer ids {first} to {last} next", *unknown(other)]
    return [f"broker {broker_id} has taken the producer ids {first} to {last}", *unknown(other)]


@znode("migration", "/migration", "a KRaft controller", "3.4")
def migration(names: Names, data: bytes) -> list[str]:
    """The migration to KRaft: how far the quorum has copied the cluster."""
    controller_id, controller_epoch, offset, epoch, other = parse_migration(data)
    copied = "the first copy is complete" if offset > 0 else "nothing is copied yet"
    return [
        f"KRaft controller {controller_id}, epoch {controller_epoch}, has claimed the cluster",
        f"{copied} (metadata offset {offset}, epoch {epoch})",
        *unknown(other),
    ]


# --- security -----------------------------------------------------------------------------------------


@znode("ACL", "/kafka-acl/<type>/<name>", "the authorizer", "0.9")
def acl(names: Names, data: bytes) -> list[str]:
    """Rules of a resource."""
    lines = [
        f"{rule.permission_type} {rule.principal} from {rule.host}: {rule.operation}"
        for rule in parse_acls(data)
    ]
    return lines or ["no rules"]


@znode("prefixed ACL", "/kafka-acl-extended/prefixed/<type>/<name>", "the authorizer", "2.0")
def prefixed_acl(names: Names, data: bytes) -> list[str]:
    """Rules of all resources whose names begin so."""
    return acl(names, data)


@znode("ACL notification", "/kafka-acl(?:-extended)?-changes/acl_changes_<number>", "the authorizer", "0.9")
def acl_change(names: Names, data: bytes) -> list[str]:
    """Tells brokers to read rules again."""
    return [shown(data)]


@znode("delegation token", "/delegation_token/tokens/<token>", "brokers", "1.1")
def delegation_token(names: Names, data: bytes) -> list[str]:
    """A delegation token, without its secret."""
    token = parse_delegation_token(data)
    until, latest = moment(token.expiration_timestamp), moment(token.max_timestamp)
    return [f"a token of {token.owner}, valid until {until}, at most {latest}"]


@znode("token notification", "/delegation_token/token_changes/token_change_<number>", "brokers", "1.1")
def token_change(names: Names, data: bytes) -> list[str]:
    """Tells brokers to read a token again."""
    return [shown(data)]


# --- old consumers ------------------------------------------------------------------------------------


@znode("old consumer", "/consumers/<group>/ids/<id>", "the consumer", "0.8")
def consumer(names: Names, data: bytes) -> list[str]:
    """A live old consumer."""
    value = parse_consumer(data)
    topics = ", ".join(f"{topic} with {count} streams" for topic, count in sorted(value.subscription.items()))
    return [f"consumer {names['id']} of group {names['group']}, {value.pattern}: {topics}"]


@znode("old consumer's partition", "/consumers/<group>/owners/<topic>/<partition>", "the consumer", "0.8")
def owner(names: Names, data: bytes) -> list[str]:
    """Which thread of a group reads a partition."""
    return [f"{shown(data)} reads {names['topic']}-{names['partition']} for group {names['group']}"]


@znode("old consumer's offset", "/consumers/<group>/offsets/<topic>/<partition>", "the consumer", "0.8")
def offset(names: Names, data: bytes) -> list[str]:
    """The next offset that a group reads."""
    next_offset = parse_number(data)
    return [
        f"group {names['group']} reads {names['topic']}-{names['partition']} from offset {next_offset} on"
    ]


# --- words --------------------------------------------------------------------------------------------


def moment(milliseconds: int | None) -> str:
    """A time in UTC; times beyond the calendar as the number."""
    return "at an unknown time" if milliseconds is None else utc_text(milliseconds)


def ids(values: Iterable[int]) -> str:
    """Broker ids by comma."""
    return ",".join(map(str, values)) or "no broker"


def more(count: int, noun: str) -> list[str]:
    """A line for what is not shown."""
    return [f"... and {count - SHOWN:,} {noun} more"] if count > SHOWN else []


def unknown(other: Object) -> list[str]:
    """A line for keys that Kafka does not know."""
    return [f"keys that Kafka does not know: {', '.join(sorted(other))}"] if other else []


def shown(data: bytes) -> str:
    """Content that is text."""
    return data.decode("utf-8", "backslashreplace")
