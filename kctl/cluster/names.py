"""Names that Kafka accepts: of topics, by version, and of users and clients in paths; and partitions by name.

Source: core/src/main/scala/kafka/common/Topic.scala @ 0.8.2.1, 0.9.0.1, 0.10.0.1;
clients/src/main/java/org/apache/kafka/common/internals/Topic.java @ 0.11.0.2, 2.8.2, 3.9.0-rc3
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from urllib.parse import quote

from kctl.cluster.rights import CREDENTIALS, MissingRight
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V0_9, V0_10, V0_11, V3_9, KafkaVersion
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import TopicPartition, command_line

LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
LETTERS = "letters, digits, '.', '_' and '-' are allowed"
LONGEST, LONGEST_BEFORE_0_10 = 249, 255
INTERNAL = (
    ("__consumer_offsets", KafkaVersion(0, 8, 2)),
    ("__transaction_state", V0_11),
    ("__share_group_state", V3_9),
)


def check_topic_name(name: str, version: KafkaVersion) -> None:
    """Raise BadValue for a name that this version does not accept."""
    longest = LONGEST if version >= V0_10 else LONGEST_BEFORE_0_10
    if not name:
        raise BadValue("a topic's name cannot be empty", LETTERS)
    if name in (".", ".."):
        raise BadValue(f"a topic's name cannot be {name!r}", LETTERS)
    if len(name) > longest:
        raise BadValue(
            f"topic name of {len(name)} characters; Kafka takes up to {longest}", "take a shorter one"
        )
    if not LEGAL.fullmatch(name):
        raise BadValue(f"{name!r} is not a topic name", LETTERS)


def refuse_collision(name: str, others: Iterable[str], version: KafkaVersion) -> None:
    """Raise Refused if another name is equal after replacing '.' with '_', as in metric names (0.9 and later)."""
    if version < V0_9 or not ("." in name or "_" in name):
        return
    folded = name.replace(".", "_")
    for existing in others:
        if existing != name and existing.replace(".", "_") == folded:
            raise Refused(
                f"topic {name} collides with topic {existing}: '.' and '_' are the same in metric names",
                "choose another name",
            )


def unknown_topics(missing: Collection[str], known: Iterable[str]) -> KctlError:
    """The error for topics that are not in the cluster, with similar names."""
    names = sorted(known)
    near = [name for topic in sorted(missing) for name in get_close_matches(topic, names, n=3)]
    hint = (
        f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "`kctl topic list` lists the topics"
    )
    return KctlError(f"no topic {', '.join(sorted(missing))}", hint)


def absent_topics(missing: Collection[str], state: ClusterState) -> KctlError:
    """The error for topics that a state does not show: unknown ones, or such that this user may not describe."""
    for problem in state.problems:
        if problem.right and problem.right.name in missing and problem.place == f"topic {problem.right.name}":
            return MissingRight(problem.right, problem.principal, problem.place)
    return unknown_topics(missing, state.topic_names)


def refuse_absent(topics: Iterable[str] | None, state: ClusterState) -> None:
    """Raise KctlError for topics that a state does not show."""
    if missing := set(topics or ()) - set(state.topic_names):
        raise absent_topics(missing, state)


def refuse_hidden(topics: Iterable[str], state: ClusterState) -> None:
    """Raise KctlError for topics of a change that may be there, and that this user does not see."""
    for topic in sorted(set(topics)):
        if (why := state.why_unseen(topic)) is not None:
            if topic in state.denied_topics:
                raise absent_topics([topic], state)
            raise KctlError(f"topic {topic}: {why}; nothing was written", CREDENTIALS)


def refuse_unknown(topics: Iterable[str] | None, known: Iterable[str]) -> None:
    """Raise KctlError for topics that are not in the cluster."""
    if missing := set(topics or ()) - set(known):
        raise unknown_topics(missing, known)


def not_electable(tp: TopicPartition, broker_id: int, *, is_alive: bool) -> Refused:
    """The refusal to elect a preferred leader that is not alive, or not in the ISR."""
    return Refused(
        f"broker {broker_id}, the preferred leader of {tp}, is not {'in the ISR' if is_alive else 'alive'}; nothing was written",
        "start that broker, or wait until it is back in the ISR; `kctl elect status` shows which are not",
    )


def not_consecutive(topic: str, last: int) -> Refused:
    """The refusal to add partitions that leave a gap."""
    return Refused(
        f"partitions of {topic} would not be numbered 0 to {last} without a gap",
        "`kctl topic describe` shows its partitions",
    )


def no_replicas(tp: TopicPartition) -> Refused:
    """The refusal of a partition without replicas."""
    return Refused(
        f"{tp} would have no replicas; nothing was written", "name at least one broker for it in the plan"
    )


def dead_targets(tp: TopicPartition, dead: Sequence[int]) -> Refused:
    """The refusal to put a partition on brokers that are not alive."""
    return Refused(
        f"{tp} would be on {brokers_named(dead)}, not alive; nothing was written",
        "start them, or name other brokers in the plan",
    )


def brokers_named(ids: Sequence[int]) -> str:
    """`broker 1`, `brokers 1, 2`."""
    return f"broker{'' if len(ids) == 1 else 's'} {', '.join(map(str, ids))}"


def unknown_partition(tp: TopicPartition, numbers: Collection[int]) -> KctlError:
    """The error for a partition that a topic of the cluster does not have."""
    return KctlError(
        f"no partition {tp}",
        f"the partitions of {tp.topic} are {', '.join(map(str, sorted(numbers)[:10]))}{' and more' if len(numbers) > 10 else ''}",
    )


def topic_exists(name: str) -> Refused:
    """The refusal to create a topic that exists."""
    return Refused(
        f"topic {name} already exists; nothing was written",
        f"`{command_line('kctl topic describe', [name])}` shows it; choose another name, or alter it",
    )


def topic_leaving(name: str) -> Refused:
    """The refusal to change a topic that is marked for deletion."""
    return Refused(f"topic {name} is marked for deletion; nothing was written", "wait until it is gone")


def being_moved(subject: object) -> Refused:
    """The refusal to change what a reassignment is moving."""
    return Refused(
        f"{subject} is already being reassigned; nothing was written",
        "wait for it (`kctl reassign status` shows what it waits for), or cancel it with `kctl reassign cancel`",
    )


def is_internal(name: str, version: KafkaVersion = V3_9) -> bool:
    """Whether Kafka itself owns the topic."""
    return any(name == internal and version >= since for internal, since in INTERNAL)


def sanitized(name: str) -> str:
    """A user's or client's name as encoded in a path; `<default>` unchanged."""
    if name == "<default>":
        return name
    # Java's URLEncoder leaves letters, digits and .-*_ alone; Kafka then encodes the star too.
    return quote(name, safe="-_.").replace("~", "%7E")


def partitions_named(names: Sequence[str], state: ClusterState) -> list[TopicPartition]:
    """The partitions of `TOPIC` or `TOPIC:PARTITION,PARTITION`, by topic and number. Raises KctlError."""
    partitions: set[TopicPartition] = set()
    for name in names:
        topic, colon, numbers = name.partition(":")  # no topic's name has a colon
        if topic not in state.topics:
            raise absent_topics([topic], state)
        known = state.topics[topic].partitions
        if colon and not all(part.isdecimal() for part in numbers.split(",")):
            raise BadValue(f"{name!r} is not TOPIC or TOPIC:PARTITION", "write it as orders or orders:0,3")
        chosen = [int(part) for part in numbers.split(",")] if colon else list(known)
        for partition in chosen:
            if partition not in known:
                raise unknown_partition(TopicPartition(topic, partition), known)
            partitions.add(TopicPartition(topic, partition))
    return sorted(partitions)


def is_named(tp: TopicPartition, names: Sequence[str]) -> bool:
    """Whether a partition is among `TOPIC` or `TOPIC:PARTITION,PARTITION`."""
    for name in names:
        topic, colon, numbers = name.partition(":")
        if topic == tp.topic and (not colon or str(tp.partition) in numbers.split(",")):
            return True
    return False


def topics_named(names: Sequence[str]) -> list[str]:
    """The topics of `TOPIC` or `TOPIC:PARTITION`."""
    return sorted({name.partition(":")[0] for name in names})
