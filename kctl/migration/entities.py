"""The metadata of a cluster as entities with fields, for comparing ZooKeeper and KRaft.

`config` entities are `topic NAME`, `broker ID` and so on, `quota` entities `user=U, client-id=C`, `acl` entities
`TYPE NAME PATTERN`; `<default>` stands for the default entity. Values are what rows hold.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from formats.secrets import REDACTED, is_secret_key, redact_text

Value = str | int | float | list[int] | list[str] | None
DEFAULT = "<default>"
PRESENT = "present"
PRODUCER_IDS, NEXT_PRODUCER_ID = "producer_ids", "next_producer_id"
LEADERSHIP = ("leader", "leader_epoch", "isr")
"""Fields of a partition that change without anybody's doing, at each restart of a broker."""


class Entity(NamedTuple):
    """A thing with metadata: a topic, a partition, a configuration, ..."""

    type: str
    name: str

    @property
    def topic(self) -> str | None:
        """The topic that a topic, a partition or a configuration belongs to."""
        if self.type == "topic":
            return self.name
        if self.type == "partition":
            return self.name.rpartition("-")[0]
        kind, _, name = self.name.partition(" ")
        return name if self.type == "config" and kind == "topic" else None


Entities = dict[Entity, dict[str, Value]]

# In the order of rows. An entity of a type in the second list that one side lacks is one difference, not one a field.
COMPARED_TYPES = (
    "topic", "partition", "config", "quota", "user", "acl", "delegation_token", "broker", "producer_ids", "feature",
)  # fmt: skip
WHOLE = ("topic", "partition", "delegation_token", "broker")


def partition_entity(topic: str, partition: int) -> Entity:
    """The entity of a partition."""
    return Entity("partition", f"{topic}-{partition}")


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity of a quota from types and names, None for the default: `user=alice, client-id=<default>`."""
    order = ("user", "client-id", "ip")
    listed = sorted(
        parts, key=lambda part: (order.index(part[0]) if part[0] in order else len(order), part[0])
    )
    return Entity("quota", ", ".join(f"{kind}={DEFAULT if name is None else name}" for kind, name in listed))


def acl_entity(resource_type: str, name: str, pattern_type: str) -> Entity:
    """The entity of a resource with rules."""
    return Entity("acl", f"{resource_type} {name} {pattern_type}")


def acl_field(principal: str, host: str, operation: str, permission_type: str) -> str:
    """The field of a rule."""
    return f"{principal}|{host}|{operation}|{permission_type}"


def config_value(key: str, value: str) -> str:
    """A value of a configuration, redacted if it is secret."""
    return REDACTED if is_secret_key(key) else redact_text(value)


# java.lang.Double.valueOf @ JDK 17, without hexadecimal
JAVA_DOUBLE = re.compile(r"\s*([+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?))[fFdD]?\s*", re.ASCII)


def quota_value(value: str | float) -> int | float | str:
    """A quota as a number of JSON; text if Kafka would not parse it, or if it is not finite."""
    if isinstance(value, str):
        number = JAVA_DOUBLE.fullmatch(value)
        if not number:
            return redact_text(value)
        value = float(number[1])
    if not math.isfinite(value):
        return str(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def shown(value: Value) -> Value:
    """The value for JSON: an integer that is too long becomes text."""
    if isinstance(value, list):
        return [str(item) if isinstance(item, int) and abs(item) >= 2**63 else item for item in value]  # type: ignore[return-value]
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def is_equal(field: str, first: Value, second: Value) -> bool:
    """Whether two values of a field are equal; an ISR has no order."""
    if field == "isr" and isinstance(first, list) and isinstance(second, list):
        return sorted(map(str, first)) == sorted(map(str, second))
    return first == second
