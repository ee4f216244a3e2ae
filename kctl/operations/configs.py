"""Configurations of topics, brokers, clients, users and ips: checked as the target version would, then planned.

Nothing checks what is written to ZooKeeper, and a bad topic value keeps brokers from starting, so the whole
resulting configuration has to pass. Secrets are refused: Kafka's own tool knows how to encode them.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from shlex import quote

from formats.secrets import is_secret_key
from formats.whole_numbers import whole_number
from kctl.changes.kinds.configs import AlterConfig, WaitUntil
from kctl.changes.plan import Plan, Stage
from kctl.changes.unclean_allowed import guarded
from kctl.cluster.config_keys import BROKERS_ONLY, ENTITY_TYPES, KEPT_BY_EACH_BROKER, KIPS, key_for
from kctl.cluster.interface import Cluster
from kctl.cluster.names import absent_topics, sanitized
from kctl.cluster.partition_health import too_many_in_sync
from kctl.cluster.state import DEFAULT, ClusterState
from kctl.cluster.versions import V0_10_1, V1_1, V2_3, KafkaVersion
from kctl.errors import BadValue, KctlError, Refused, near_names
from kctl.times import iso

MIN_ISR = "min.insync.replicas"
OF_A_LISTENER = "listener.name."  # begins keys of one listener, which brokers list only if they are set


def parse_assignments(arguments: Sequence[str]) -> dict[str, str]:
    """`K=V` arguments; raises BadValue for one without `=` and for a key given twice."""
    values: dict[str, str] = {}
    for text in arguments:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise BadValue(f"{text!r} is not KEY=VALUE", "write it as retention.ms=3600000")
        if key.strip() in values:
            raise BadValue(f"{key.strip()} is given twice", "give it once")
        values[key.strip()] = value
    return values


def entity_path(entity_type: str, name: str, version: KafkaVersion) -> str:
    """The entity's name as it is stored. Raises BadValue for a type or name that the version does not have."""
    if entity_type not in ENTITY_TYPES:
        raise BadValue(f"{entity_type!r} is not an entity type", f"there are {', '.join(ENTITY_TYPES)}")
    since, _ = ENTITY_TYPES[entity_type]
    if version < since and entity_type in BROKERS_ONLY:
        raise KctlError(
            f"configurations of {entity_type} need Kafka {since} ({KIPS[entity_type]})",
            "upgrade the brokers first",
        )
    if version < since:
        raise BadValue(
            f"Kafka {version} has no configuration of {entity_type}; it came with {since}",
            "check --kafka-version",
        )
    if not name:
        raise BadValue("an entity's name cannot be empty", "name it with --entity-name")
    if name == DEFAULT:
        if entity_type in ("topics", *BROKERS_ONLY) or version < (
            V1_1 if entity_type == "brokers" else V0_10_1
        ):
            raise BadValue(f"no default of {entity_type} in Kafka {version}", "name one with --entity-name")
        return name
    if entity_type in KEPT_BY_EACH_BROKER:
        broker_id = whole_number(name)
        if broker_id is None:
            raise BadValue(f"{name!r} is not a broker id", "write its number, or <default> for all")
        return str(broker_id)
    if entity_type == "users" and "/clients/" in name:
        user, client = name.split("/clients/", 1)
        return f"{sanitized(user)}/clients/{sanitized(client)}"
    return sanitized(name) if entity_type in ("users", "clients") else name


def check_values(entity_type: str, values: Mapping[str, str], version: KafkaVersion) -> None:
    """Raise BadValue for the first key or value that the version does not accept, Refused for a secret."""
    keys = ENTITY_TYPES[entity_type][1]
    for name, value in values.items():
        if is_secret_key(name):
            raise Refused(
                f"{name} is a secret, which kctl does not store; nothing was written",
                "kafka-configs encodes it: --bootstrap-server, --alter, --add-config",
            )
        key = key_for(keys, name, version)
        if key is None:
            _refuse_unknown(entity_type, name, version)
            continue
        if reason := key.check(value):
            raise BadValue(f"{name}={value}: {reason}", "give a value that Kafka accepts")
    if entity_type == "topics":
        _check_together(values, version)


def _refuse_unknown(entity_type: str, name: str, version: KafkaVersion) -> None:
    if entity_type == "brokers":
        raise Refused(
            f"{name}: only brokers check dynamic broker configurations; nothing was written",
            "set it with kafka-configs --bootstrap-server",
        )
    names = {key.name: key.since for key in ENTITY_TYPES[entity_type][1]}
    if name in names:
        raise BadValue(f"Kafka {version} has no {name}; it came with {names[name]}", "check --kafka-version")
    hint = near_names(name, names, otherwise=f"Kafka's documentation lists those of {entity_type}")
    raise BadValue(f"{name} is not a configuration of {entity_type}", hint)


def _check_together(values: Mapping[str, str], version: KafkaVersion) -> None:
    if version >= V2_3 and int(values.get("max.compaction.lag.ms", 2**63 - 1)) < int(
        values.get("min.compaction.lag.ms", 0)
    ):
        raise BadValue(
            "max.compaction.lag.ms is smaller than min.compaction.lag.ms",
            "raise it, or lower min.compaction.lag.ms",
        )
    if values.get("remote.storage.enable", "").strip().lower() != "true":
        return
    if "compact" in values.get("cleanup.policy", ""):
        raise BadValue(
            "remote.storage.enable does not go with cleanup.policy=compact", "set only one of the two"
        )
    for local, total in (
        ("local.retention.ms", "retention.ms"),
        ("local.retention.bytes", "retention.bytes"),
    ):
        local_value, total_value = int(values.get(local, -2)), int(values.get(total, -1))
        if local_value > total_value >= 0 or (local_value == -1 and total_value >= 0):
            raise BadValue(f"{local} is larger than {total}", "lower it, or raise the other")


def plan_configs(
    cluster: Cluster,
    entity_type: str,
    entity_name: str,
    *,
    set: Mapping[str, str],
    unset: Sequence[str] = (),
    kafka_version: KafkaVersion | None = None,
    seconds: float | None = None,
    accepted: bool = False,
) -> Plan:
    """The plan of setting and unsetting keys of one entity; empty if all is in force already.

    With `seconds` it is for so long, and then set back. Where it lets a partition elect an unclean leader at once, it
    needs its own word, which is `accepted`. Raises BadValue for a bad name, key or value, KctlError for an unknown topic or a key that is not set.
    """
    if entity_type in BROKERS_ONLY and not cluster.can.ask_brokers:
        raise Refused(f"only brokers keep {entity_type}; nothing was written", "give --bootstrap-server")
    topics = [entity_name] if entity_type == "topics" else []
    state = cluster.read_state(
        topics, partition_states=False, configs=[entity_type], kafka_version=kafka_version
    )
    version = state.kafka_version
    name = entity_path(entity_type, entity_name, version)
    if entity_type == "topics" and entity_name not in state.topic_names:
        raise absent_topics([entity_name], state)
    known = cluster.config_keys(entity_type, name) if set else ()
    intent = config_change(state, entity_type, name, set=set, unset=unset, known=known)
    if intent is None:
        return Plan(title=f"configure {entity_type.removesuffix('s')} {entity_name}", stages=())
    after = intent.after
    stages: tuple[Stage, ...] = (Stage(intent=intent, writes=cluster.writes_for(intent, state)),)
    title = str(intent)
    if seconds is not None:
        until = time.time_ns() // 1_000_000 + round(seconds * 1000)
        title = f"{intent} until {iso(until)}"
        back = Stage(intent=intent.inverse(), undo=())
        stages = (*stages, Stage(intent=WaitUntil(time=until), undo=()), back)
    plan = Plan(title=title, stages=stages, warnings=tuple(config_warnings(entity_name, after, state)))
    intents = [stage.intent for stage in stages]
    return guarded(cluster, intents, plan, accepted=accepted, kafka_version=kafka_version)


def config_change(
    state: ClusterState,
    entity_type: str,
    name: str,
    *,
    set: Mapping[str, str],
    unset: Sequence[str] = (),
    known: Collection[str] | None,
) -> AlterConfig | None:
    """What sets and unsets keys of an entity in this state; None if all is in force already.

    `known` are the keys that brokers list; None: they cannot be asked, and the values are checked here. Raises BadValue,
    Refused, KctlError.
    """
    present = state.config(entity_type, name)
    missing = [key for key in unset if key not in present]
    if missing and (why := state.why_unread(entity_type, name)) is not None:
        problem = state.unread_config(entity_type, name)
        raise KctlError(
            f"whether {missing[0]} is set for {entity_type.removesuffix('s')} {name} is not known: {why}; nothing was written",
            problem.hint
            if problem is not None and (problem.right is not None or problem.is_hidden)
            else "ask again when it can be read; `kctl reassign throttle clear PLAN` takes a throttle off a dead broker of KRaft",
        )
    if missing:
        raise KctlError(
            f"{missing[0]} is not set for {entity_type.removesuffix('s')} {name}",
            f"`kctl config get --entity-type {entity_type} --entity-name {quote(name)}` shows the configuration",
        )
    if any(map(is_secret_key, unset)):
        raise Refused("kctl does not touch secrets; nothing was written", "use kafka-configs")
    after: dict[str, str | None] = {key: value for key, value in set.items() if present.get(key) != value}
    after.update(dict.fromkeys(unset))
    if known is None:
        _check_result(entity_type, present, set, after, state.kafka_version)
    else:  # brokers check values themselves
        _refuse_unlisted(entity_type, set, known)
    return AlterConfig.of(entity_type, name, after, present) if after else None


def config_warnings(name: str, after: Mapping[str, str | None], state: ClusterState) -> Iterator[str]:
    """Warnings about what brokers accept silently, though it stops writes."""
    min_isr = after.get(MIN_ISR)
    if name in state.topics and min_isr is not None and min_isr.isdecimal():
        factor = min(map(len, state.topics[name].partitions.values()), default=int(min_isr))
        if int(min_isr) > factor:
            yield too_many_in_sync(int(min_isr), factor, state)


def _refuse_unlisted(entity_type: str, values: Mapping[str, str], known: Collection[str]) -> None:
    """Raise BadValue for the first key that brokers do not list, Refused for a secret."""
    for name in values:
        if is_secret_key(name):
            raise Refused("kctl stores no secrets; nothing was written", "use kafka-configs")
        if name not in known and not (entity_type == "brokers" and name.startswith(OF_A_LISTENER)):
            hint = near_names(
                name, known, otherwise="`kctl config get --effective` lists those of the entity"
            )
            raise BadValue(f"{name} is not a configuration of {entity_type}", hint)


def _check_result(
    entity_type: str,
    present: Mapping[str, str],
    values: Mapping[str, str],
    after: Mapping[str, str | None],
    version: KafkaVersion,
) -> None:
    """Raise BadValue for wrong new values, Refused if the present values that kctl knows are wrong beside them."""
    check_values(entity_type, values, version)
    keys = ENTITY_TYPES[entity_type][1]
    whole = {**present, **{key: value for key, value in after.items() if value is not None}}
    known = {k: v for k, v in whole.items() if after.get(k, "") is not None and key_for(keys, k, version)}
    try:
        check_values(entity_type, known, version)
    except BadValue as error:
        raise Refused(
            f"the current configuration is invalid ({error.message}); nothing was written", "unset it first"
        ) from error
