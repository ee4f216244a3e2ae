"""What a cluster, or a file, has: resources of seven kinds, each with its fields. A value without a connection."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from formats.values import Struct, field
from kctl.access.acl import Acl
from kctl.cluster_file.document import Place

SECTIONS = {
    "users": "user",
    "topics": "topic",
    "brokers": "broker",
    "client_metrics": "client_metrics",
    "groups": "group",
    "quotas": "quota",
    "acls": "acl",
}
"""The kind of resource in each section of a file, in the order in which they are written.

Other tables by kind or section: `KINDS` and `ENTITY_TYPE_OF` below, `READERS` in `sections.py`, `REFUSALS` in `acceptable.py`, `WITH_CONFIG` in
`planning.py`, `KIND_OF_CONFIG` in `recorded.py`.
"""
KINDS = {
    "topics": ("topic",),
    "configs": ("broker", "client_metrics"),
    "groups": ("group",),
    "users": ("user",),
    "quotas": ("quota",),
    "acls": ("acl",),
}
"""What each name of --kinds stands for."""
ENTITY_TYPE_OF = {
    "topic": "topics",
    "broker": "brokers",
    "client_metrics": "client-metrics",
    "group": "groups",
}
"""The entity type of the configuration of a kind."""
PARTITIONS, REPLICATION_FACTOR, REPLICAS, PLACEMENT = (
    "partitions",
    "replication_factor",
    "replicas",
    "placement",
)
SHAPE = (PARTITIONS, REPLICATION_FACTOR, REPLICAS, PLACEMENT)
"""The fields of a topic that are no configuration."""
Value = str | int | None


class Key(NamedTuple):
    """What tells a resource from others: a name, of quotas and rules with its parts, since two may read alike."""

    kind: str
    name: str
    parts: tuple[str, ...] = ()


class Resource(Struct, frozen=True, kw_only=True):
    """A resource: a topic, an entity with a configuration, a quota, a user, a rule.

    `fields` are keys of configurations, quotas by key, iterations by mechanism; None: it is not set. Places are those in
    files.
    """

    kind: str
    name: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    place: Place | None = None
    places: Mapping[str, Place] = field(default_factory=dict)
    acl: Acl | None = None  # of a rule
    entity: tuple[str, str] | None = None  # of a quota: entity type and name of the configuration

    @property
    def key(self) -> Key:
        """What tells it from others."""
        return Key(self.kind, self.name, self.acl or self.entity or ())

    @property
    def configs(self) -> dict[str, str]:
        """The values of a configuration that are set."""
        return {
            key: str(value) for key, value in self.fields.items() if key not in SHAPE and value is not None
        }

    def place_of(self, name: str | None) -> Place | None:
        """Where a field is wanted, or the resource."""
        return self.places.get(name or "", self.place)

    def of_config(self) -> tuple[str, str]:
        """Entity type and name of its configuration."""
        return self.entity or (ENTITY_TYPE_OF[self.kind], self.name)


Resources = Mapping[Key, Resource]
Lists = Mapping[int, tuple[int, ...]]


def listed(replicas: Lists) -> str:
    """The replicas of partitions as files list them: `1:2,2:3`."""
    return ",".join(":".join(map(str, ids)) for _, ids in sorted(replicas.items()))


def shape_of(replicas: Lists) -> dict[str, Value]:
    """The number of partitions and the replication factor.

    Where partitions differ in it, the factor is a text that says how, and all replicas are listed, too.
    """
    numbers = {partition: len(ids) for partition, ids in sorted(replicas.items())}
    if not all(numbers.values()):  # of a topic that is half made
        return {PARTITIONS: len(replicas)}
    if not numbers:
        return {}
    usual = next(iter(numbers.values()))
    others: dict[int, list[int]] = {}
    for partition, number in numbers.items():
        if number != usual:
            others.setdefault(number, []).append(partition)
    if not others:
        return {PARTITIONS: len(replicas), REPLICATION_FACTOR: usual}
    differ = (
        f"{number} of partition{'s' if len(of) > 1 else ''} {', '.join(map(str, of[:8]))}"
        + (f" and {len(of) - 8} more" if len(of) > 8 else "")
        for number, of in others.items()
    )
    factor = f"{usual}, but {', '.join(differ)}"
    return {PARTITIONS: len(replicas), REPLICATION_FACTOR: factor, REPLICAS: listed(replicas)}


class Managed(NamedTuple):
    """A kind and pattern of which files hold all that there is to be."""

    kind: str
    pattern: str
    place: Place

    def covers(self, resource: Resource) -> bool:
        """Whether it is about the resource: by its name, of a rule by its principal."""
        name = resource.acl.principal if resource.acl else resource.name
        return self.kind == resource.kind and fnmatchcase(name, self.pattern)


class Wanted(Struct, frozen=True, kw_only=True):
    """What files ask for."""

    resources: Resources
    managed: tuple[Managed, ...] = ()

    def manages(self, resource: Resource) -> Managed | None:
        """What says that the files hold all of it; None: what is not in the files stays."""
        return next((managed for managed in self.managed if managed.covers(resource)), None)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of resource that are asked for, or managed."""
        return frozenset(key.kind for key in self.resources) | {managed.kind for managed in self.managed}


def by_key(resources: Iterable[Resource]) -> dict[Key, Resource]:
    """Resources by what tells them apart, in order of kind and name."""
    order = list(SECTIONS.values())
    listed = sorted(resources, key=lambda each: (order.index(each.kind), each.name, each.key.parts))
    return {resource.key: resource for resource in listed}


def of_kinds(resources: Resources, kinds: Collection[str]) -> Iterator[Resource]:
    """The resources of some kinds."""
    return (resource for key, resource in resources.items() if key.kind in kinds)
