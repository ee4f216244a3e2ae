"""Rules of access and the names of their parts: Kafka's own, in lower case.

Source: clients/src/main/java/org/apache/kafka/common/{acl/AclOperation,acl/AclPermissionType,resource/ResourceType,
resource/PatternType}.java @ 3.9.0-rc3; org/apache/kafka/security/authorizer/AclEntry.java (operations of a resource)
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from kctl.errors import BadValue

RESOURCE_TYPES = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional_id",
    6: "delegation_token",
    7: "user",
}
OPERATIONS = {
    2: "all", 3: "read", 4: "write", 5: "create", 6: "delete", 7: "alter", 8: "describe", 9: "cluster_action",
    10: "describe_configs", 11: "alter_configs", 12: "idempotent_write", 13: "create_tokens", 14: "describe_tokens",
    15: "two_phase_commit",
}  # fmt: skip
PATTERN_TYPES = {3: "literal", 4: "prefixed"}
PERMISSIONS = {2: "deny", 3: "allow"}
OPERATIONS_OF: Mapping[str, tuple[str, ...]] = {
    "topic": ("read", "write", "create", "describe", "delete", "alter", "describe_configs", "alter_configs"),
    "group": ("read", "describe", "delete", "describe_configs", "alter_configs"),
    "cluster": (
        *("create", "cluster_action", "describe_configs", "alter_configs", "idempotent_write", "alter"),
        "describe",
    ),
    "transactional_id": ("describe", "write", "two_phase_commit"),
    "delegation_token": ("describe",),
    "user": ("create_tokens", "describe_tokens"),
}
"""The operations that brokers check for each type of resource; `all` goes with each."""

WILDCARD = "*"
EVERYBODY = "User:*"
CLUSTER = "kafka-cluster"


class Resource(NamedTuple):
    """A resource that a request is about, or with a pattern the resources that a rule is about."""

    resource_type: str
    resource_name: str
    pattern_type: str = "literal"

    def __str__(self) -> str:
        """`topic orders`, `prefixed topic orders-`, `cluster`."""
        if self.resource_type == "cluster":
            return "cluster"
        prefix = "prefixed " if self.pattern_type == "prefixed" else ""
        return f"{prefix}{self.resource_type} {self.resource_name}"

    def matches(self, name: str) -> bool:
        """Whether a rule on this pattern is about a resource of this name."""
        if self.pattern_type == "prefixed":
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)


class Acl(NamedTuple):
    """A rule: who may (or may not) do what with which resources, from where."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str

    @property
    def resource(self) -> Resource:
        """What it is about."""
        return Resource(*self[:3])

    def __str__(self) -> str:
        """`allow User:alice read on topic orders`."""
        host = "" if self.host == WILDCARD else f" from {self.host}"
        return f"{self.permission} {self.principal} {self.operation} on {self.resource}{host}"

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `_asdict`; raises KeyError or TypeError for anything else."""
        texts = [values[name] for name in cls._fields]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"not a rule: {values!r}")
        return cls(*texts)

    @classmethod
    def numbered(
        cls,
        resource_type: int,
        name: str,
        pattern: int,
        principal: str,
        host: str,
        operation: int,
        permission: int,
    ) -> Self:
        """The rule with Kafka's numbers; one that is unknown here stays a number in words."""
        return cls(
            RESOURCE_TYPES.get(resource_type, f"type_{resource_type}"),
            name,
            PATTERN_TYPES.get(pattern, f"pattern_{pattern}"),
            principal,
            host,
            OPERATIONS.get(operation, f"operation_{operation}"),
            PERMISSIONS.get(permission, f"permission_{permission}"),
        )


def number_of(names: Mapping[int, str], name: str) -> int:
    """Kafka's number of a name. Raises BadValue."""
    for number, known in names.items():
        if known == name:
            return number
    raise BadValue(f"{name!r} is unknown", f"it is one of {', '.join(names.values())}")


def sorted_acls(acls: Iterable[Acl]) -> list[Acl]:
    """Rules by resource, principal and operation, each once."""
    return sorted(set(acls))


def check_principal(text: str) -> str:
    """The principal as it is: `User:alice`. Raises BadValue for a text without a type."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise BadValue(f"{text!r} is not a principal", "write TYPE:NAME, for example User:alice")
    return text
