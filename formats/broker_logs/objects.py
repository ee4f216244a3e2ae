"""The objects that Kafka prints inside its log lines: partition states of every version, assignments, changes.

Each version prints them in its own way: see `core/src/main/scala/kafka/api/LeaderAndIsr.scala`,
`core/src/main/scala/kafka/controller/KafkaController.scala` and
`metadata/src/main/java/org/apache/kafka/metadata/PartitionRegistration.java` @ 0.8.2.1 to 3.9.0-rc3.
"""

from __future__ import annotations

import re
from functools import lru_cache

from formats.whole_numbers import whole_number

LEADER_ISR_EPOCH = re.compile(
    r"\(Leader:(?P<leader>-?\d{1,19}),ISR:(?P<isr>[-\d,]*)(?:,LeaderRecoveryState:(?P<leader_recovery_state>\w+))?"
    r",LeaderEpoch:(?P<leader_epoch>-?\d{1,19})(?:,ZkVersion:(?P<zk_version>-?\d{1,19}))?"
    r",ControllerEpoch:(?P<controller_epoch>-?\d{1,19})\)"
)
LEADER_AND_ISR_JSON = re.compile(
    r'\{"leader":(?P<leader>-?\d{1,19}),"leader_epoch":(?P<leader_epoch>-?\d{1,19}),"isr":\[(?P<isr>[-\d, ]*)\]\}'
)
LEADER_AND_ISR = re.compile(
    r"LeaderAndIsr\(leader=(?P<leader>-?\d{1,19}), leaderEpoch=(?P<leader_epoch>-?\d{1,19}), isr(?:WithBrokerEpoch)?=List\("
    r"(?P<isr>.*?)\)(?:, leaderRecoveryState=(?P<leader_recovery_state>\w+))?"
    r", (?:zkVersion|partitionEpoch)=(?P<partition_epoch>-?\d{1,19})\)"
)
ISR_WITH_EPOCHS = re.compile(r"brokerId=(-?\d{1,19})")
ALL_REPLICAS = re.compile(r"AllReplicas:(?P<replicas>[-\d,]*)")
BARE_LISTS = re.compile(
    r"isr=(?P<isr>[-\d,]*), zkVersion=(?P<zk_version>-?\d{1,19}), replicas=(?P<replicas>[-\d,]*?)(?:, \w+=|\)|$)"
)
KEY_VALUE = re.compile(r"(\w+)=(\[[^\]]*\]|'[^']*'|[^,()]+)")
ASSIGNMENT = re.compile(
    r"ReplicaAssignment\(replicas=(?P<replicas>[-\d,]*), addingReplicas=(?P<adding_replicas>[-\d,]*)"
    r", removingReplicas=(?P<removing_replicas>[-\d,]*)\)"
)
CHANGE = re.compile(r"(\w+): (\[[^\]]*\]|\S+) -> (\[[^\]]*\]|[^,\s]+)")
OLD_CHANGE = re.compile(r"old(\w+)=(\[[^\]]*\]|[^,]+), new\1=(\[[^\]]*\]|[^,]+)")
INTEGER = re.compile(r"-?\d{1,19}")
HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
LISTS = frozenset(
    ("isr", "replicas", "adding_replicas", "removing_replicas", "elr", "offline_replicas", "last_known_elr")
)

Value = None | bool | int | str | list[int] | list[str]
Fields = dict[str, Value]


@lru_cache(4096)
def snake(name: str) -> str:
    """`leaderEpoch` as `leader_epoch`."""
    return HUMP.sub(r"_\1", name).lower()


def numbers(text: str) -> list[int]:
    """The integers of a list, however it is written."""
    return [int(number) for number in INTEGER.findall(text)]


def value_of(name: str, text: str) -> Value:
    """A printed value by its look; what is a list by name becomes a list even where it prints bare."""
    text = text.strip()
    if name in LISTS:
        return numbers(text)
    if text.startswith("["):
        inner = text[1:-1].strip()
        parts = [part.strip() for part in inner.split(",")] if inner else []
        return numbers(inner) if all(INTEGER.fullmatch(part) for part in parts) else parts
    if INTEGER.fullmatch(text):
        return int(text)
    if text in ("true", "false"):
        return text == "true"
    return text.strip("'")


@lru_cache(8192)
def partition_state(text: str) -> Fields | None:
    """Leader, leader epoch, ISR and what else a printed partition state names; None for what is none.

    Reads `(Leader:1,ISR:1,...)`, LeaderAndIsr as JSON and as a case class, PartitionStateInfo, PartitionState,
    LeaderAndIsrPartitionState, UpdateMetadataPartitionState, PartitionRegistration and PartitionControlInfo.
    """
    for pattern in (LEADER_ISR_EPOCH, LEADER_AND_ISR_JSON, LEADER_AND_ISR):
        match = pattern.search(text)
        if match:
            fields = {k: value_of(k, v) for k, v in match.groupdict().items() if v is not None}
            if pattern is LEADER_AND_ISR and "brokerId=" in match["isr"]:
                fields["isr"] = [int(number) for number in ISR_WITH_EPOCHS.findall(match["isr"])]
            replicas = ALL_REPLICAS.search(text)
            if replicas:
                fields["replicas"] = numbers(replicas["replicas"])
            return fields
    if "=" not in text:
        return None
    fields = {}
    for key, value in KEY_VALUE.findall(text):
        name = snake(key)
        fields[name] = value_of(name, value)
    bare = BARE_LISTS.search(text)
    if bare:
        # 0.11 to 2.3 print lists without brackets, which the general form cuts at their first comma.
        fields["isr"] = numbers(bare["isr"])
        fields["replicas"] = numbers(bare["replicas"])
    return fields or None


def assignment(text: str) -> Fields | None:
    """The lists of a ReplicaAssignment."""
    match = ASSIGNMENT.search(text)
    return {k: numbers(v) for k, v in match.groupdict().items()} if match else None


def changes(text: str) -> dict[str, tuple[Value, Value]]:
    """What a KRaft partition change changed: name to value before and after (2.8 and 3.0 on print differently)."""
    values_by_name = {
        snake(k): (value_of(snake(k), a), value_of(snake(k), b)) for k, a, b in CHANGE.findall(text)
    }
    if not values_by_name:
        values_by_name = {
            snake(k): (value_of(snake(k), a), value_of(snake(k), b)) for k, a, b in OLD_CHANGE.findall(text)
        }
    return values_by_name


def topic_partition(text: str) -> tuple[str, int] | None:
    """`[t,0]` or `t-0` as topic and partition; the name may hold dashes."""
    text = text.strip("[]")
    cut = "," if "," in text else "-"
    topic, separator, number = text.rpartition(cut)
    partition = whole_number(number.strip())
    return (topic, partition) if separator and topic and partition is not None else None


OBJECTS = frozenset(("state", "partition_state", "leader_and_isr", "registration", "current_state"))
ASSIGNMENTS = frozenset(("assignment",))
DIFFS = frozenset(("changes",))


def object_of(name: str, text: str) -> object:
    """What a field holds where it is an object; the text itself where it is none that is known."""
    value: object = None
    if name in OBJECTS:
        value = partition_state(text)
    elif name in ASSIGNMENTS:
        value = assignment(text)
    elif name in DIFFS:
        value = {key: list(pair) for key, pair in changes(text).items()}
    return value or text
