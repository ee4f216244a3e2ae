"""What a znode's content says, in sentences: one function a kind of znode, named in `formats.znode_catalogue`.

Each takes the names in the path and the content, gives lines, and raises FormatError for content that Kafka
could not read.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from formats.znode_json import Object
from formats.znode_others import (
    parse_acl,
    parse_cluster_id,
    parse_consumer,
    parse_delegation_token,
    parse_feature,
    parse_log_dir_event,
    parse_migration,
    parse_producer_id_block,
)
from formats.znode_requests import duplicates, parse_config_change, parse_election, parse_reassignment
from formats.znode_secrets import REDACTED, is_secret_key
from formats.znodes import (
    RESERVED_TOPIC_IDS,
    parse_broker,
    parse_config,
    parse_controller,
    parse_number,
    parse_partition_state,
    parse_topic,
)

Names = Mapping[str, str]
SHOWN = 20  # of a long list


def broker(names: Names, data: bytes) -> list[str]:
    """A broker's registration."""
    value = parse_broker(data)
    lines = [f"broker {names['id']} is alive, registered {moment(value.timestamp)} (form {value.version})"]
    if value.endpoints:
        for one in value.endpoints:
            lines.append(
                f"listens on {one.host or 'all addresses'}:{one.port}, {one.listener} ({one.security_protocol})"
            )
    else:
        lines.append(f"listens on {value.host}:{value.port}")
    if value.rack is not None:
        lines.append(f"in rack {value.rack}")
    return lines + unknown(value.other)


def topic(names: Names, data: bytes) -> list[str]:
    """A topic's replicas, and what is being moved."""
    value = parse_topic(data)
    lines = [f"topic {names['topic']} has {len(value.partitions)} partitions (form {value.version})"]
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


def partition_state(names: Names, data: bytes) -> list[str]:
    """Leader and ISR."""
    value = parse_partition_state(data)
    leader = f"broker {value.leader} leads" if value.leader >= 0 else "nobody leads"
    lines = [
        f"{leader} {names['topic']}-{names['partition']} in leader epoch {value.leader_epoch}",
        f"in sync: {ids(value.isr)}; written under controller epoch {value.controller_epoch}",
    ]
    if value.leader_recovery_state == 1:
        lines.append("the leader was elected uncleanly and is recovering")
    return lines


def controller(names: Names, data: bytes) -> list[str]:
    """Who is controller."""
    value = parse_controller(data)
    lines = [f"broker {value.broker_id} is controller since {moment(value.timestamp)}"]
    if value.kraft_controller_epoch is not None and value.kraft_controller_epoch >= 0:
        lines = [
            f"the KRaft quorum has claimed the cluster: node {value.broker_id}, epoch {value.kraft_controller_epoch}"
        ]
    return lines + unknown(value.other)


def number(names: Names, data: bytes) -> list[str]:
    """A decimal number."""
    return [f"{parse_number(data)}"]


def reassignment(names: Names, data: bytes) -> list[str]:
    """What is to be moved, and what the controller cannot take."""
    value = parse_reassignment(data)
    lines = [f"{len(value.partitions)} partitions are to be moved"]
    lines += [f"{one.topic}-{one.partition} to {ids(one.replicas)}" for one in value.partitions[:SHOWN]]
    lines += more(len(value.partitions), "partitions")
    if value.unknown_keys:
        lines.append(
            f"controllers since 2.0 ignore it and leave it here: unknown key {', '.join(value.unknown_keys)}"
        )
    lines += [
        f"{one.topic}-{one.partition} names a broker twice: it will never leave"
        for one in duplicates(value.partitions)
    ]
    lines += [
        f"{one.topic}-{one.partition} has no replicas: its data would be lost"
        for one in value.partitions
        if not one.replicas
    ]
    return lines


def election(names: Names, data: bytes) -> list[str]:
    """What is to be elected."""
    value = parse_election(data)
    listed = [f"{one.topic}-{one.partition}" for one in value.partitions[:SHOWN]]
    head = f"the first replica of {len(value.partitions)} partitions is to lead"
    return [head, *listed, *more(len(value.partitions), "partitions")]


def deletion(names: Names, data: bytes) -> list[str]:
    """The name is everything."""
    return [f"topic {names['topic']} is to be deleted"]


def config_change(names: Names, data: bytes) -> list[str]:
    """Whose configuration changed."""
    value = parse_config_change(data)
    releases = {0: "0.8", 1: "0.9 and 0.10.0", 2: "0.10.1 and later"}[value.form]
    return [f"the configuration of {value.entity_path} has changed (form of {releases})"]


def config(names: Names, data: bytes) -> list[str]:
    """What is set, secrets left out."""
    if not data:
        return ["nothing is set"]
    value = parse_config(data)
    lines = [f"{k} = {REDACTED if is_secret_key(k) else v}" for k, v in sorted(value.config.items())]
    return (lines or ["nothing is set"]) + unknown(value.other)


def isr_change(names: Names, data: bytes) -> list[str]:
    """Which partitions."""
    return [f"the ISR of {one.topic}-{one.partition} has changed" for one in parse_election(data).partitions]


def log_dir_event(names: Names, data: bytes) -> list[str]:
    """Which broker."""
    return [f"broker {parse_log_dir_event(data).broker} has lost a log directory"]


def cluster_id(names: Names, data: bytes) -> list[str]:
    """The id."""
    value = parse_cluster_id(data)
    return [f"the cluster's id is {value.id}", *unknown(value.other)]


def feature(names: Names, data: bytes) -> list[str]:
    """Finalised features."""
    value = parse_feature(data)
    state = "enabled" if value.status == 1 else "disabled"
    named = [f"{name}: {levels}" for name, levels in sorted(value.features.items())]
    return [f"features are {state} (form {value.version})", *named, *unknown(value.other)]


def producer_id_block(names: Names, data: bytes) -> list[str]:
    """Which ids."""
    value = parse_producer_id_block(data)
    head = f"broker {value.broker} has taken the producer ids {value.block_start} to {value.block_end}"
    return [head, *unknown(value.other)]


def migration(names: Names, data: bytes) -> list[str]:
    """How far the copy is."""
    value = parse_migration(data)
    copied = "the first copy is complete" if value.kraft_metadata_offset > 0 else "nothing is copied yet"
    return [
        f"KRaft controller {value.kraft_controller_id}, epoch {value.kraft_controller_epoch}, has claimed the cluster",
        f"{copied} (metadata offset {value.kraft_metadata_offset}, epoch {value.kraft_metadata_epoch})",
        *unknown(value.other),
    ]


def acl(names: Names, data: bytes) -> list[str]:
    """The rules."""
    rules = parse_acl(data).acls
    return [f"{r.permission_type} {r.principal} from {r.host}: {r.operation}" for r in rules] or ["no rules"]


def delegation_token(names: Names, data: bytes) -> list[str]:
    """Whose token, until when; not the token."""
    value = parse_delegation_token(data)
    return [
        f"a token of {value.owner}, valid until {moment(value.expiry_timestamp)}, at most {moment(value.max_timestamp)}"
    ]


def consumer(names: Names, data: bytes) -> list[str]:
    """What it subscribes to."""
    value = parse_consumer(data)
    topics = ", ".join(f"{topic} with {count} streams" for topic, count in sorted(value.subscription.items()))
    return [f"consumer {names['id']} of group {names['group']}, {value.pattern}: {topics}"]


def owner(names: Names, data: bytes) -> list[str]:
    """Which thread."""
    return [f"{shown(data)} reads {names['topic']}-{names['partition']} for group {names['group']}"]


def offset(names: Names, data: bytes) -> list[str]:
    """Up to where."""
    next_offset = parse_number(data)
    return [
        f"group {names['group']} reads {names['topic']}-{names['partition']} from offset {next_offset} on"
    ]


def plain(names: Names, data: bytes) -> list[str]:
    """Text."""
    return [shown(data)]


def nothing(names: Names, data: bytes) -> list[str]:
    """No content that says anything."""
    return []


def moment(milliseconds: int | None) -> str:
    """A time in UTC; times beyond the calendar as the number."""
    if milliseconds is None:
        return "at an unknown time"
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"


def ids(values: Iterable[int]) -> str:
    """Broker ids by comma."""
    return ",".join(map(str, values)) or "no broker"


def more(count: int, what: str) -> list[str]:
    """A line for what is not shown."""
    return [f"... and {count - SHOWN:,} {what} more"] if count > SHOWN else []


def unknown(other: Object) -> list[str]:
    """A line for keys that Kafka does not know."""
    return [f"keys that Kafka does not know: {', '.join(sorted(other))}"] if other else []


def shown(data: bytes) -> str:
    """Content that is text."""
    return data.decode("utf-8", "backslashreplace")
