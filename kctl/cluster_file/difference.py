"""The difference between what files ask for and what a cluster has: pure, over values."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from formats.words import counted
from kctl.cluster.config_keys import TOPIC_KEYS
from kctl.cluster_file.document import Place
from kctl.cluster_file.resources import (
    PARTITIONS,
    PLACEMENT,
    REPLICATION_FACTOR,
    SHAPE,
    Resource,
    Resources,
    Value,
    Wanted,
    by_key,
)
from kctl.errors import near_names

CREATE, CHANGE, DELETE, NONE = "create", "change", "delete", "none"


class Drift(NamedTuple):
    """A resource, or a field of one, that is not as it is wanted.

    `field` None: the resource as a whole. The action `none`: it is not in the files, and stays; `delete`: it goes, since
    they hold all that there is to be. None: what is present is not known, and `why`.
    """

    kind_of_resource: str
    name: str
    field: str | None
    present: Value
    desired: Value
    place: Place | None
    action: str | None
    why: str | None = None

    @property
    def file(self) -> str | None:
        """The file that wants it."""
        return self.place.file if self.place else None

    @property
    def line(self) -> int | None:
        """The line there."""
        return self.place.line if self.place else None


class Changed(NamedTuple):
    """A resource that is to be created, changed or deleted (action None: it is not known which), with the rows that tell."""

    action: str | None
    present: Resource | None
    desired: Resource | None
    drifts: tuple[Drift, ...]

    @property
    def resource(self) -> Resource:
        """As it is desired, or where it is to go, as it is."""
        resource = self.desired or self.present
        assert resource is not None
        return resource


def differences(
    wanted: Wanted, present: Resources, why_unread: Callable[[Resource], str | None] = lambda _: None
) -> Iterator[Changed]:
    """What differs, by kind and name. What is not in the files is left out, unless they are to hold all of it.

    `why_unread`: why a resource that is not in `present`, or the configuration of one that is, is not known.
    """
    keys = by_key([*wanted.resources.values(), *present.values()])
    for key in keys:
        desired, now = wanted.resources.get(key), present.get(key)
        if desired is None:
            assert now is not None
            if (managed := wanted.manages(now)) is not None:
                row = Drift(now.kind, now.name, None, "present", None, managed.place, DELETE)
                yield Changed(DELETE, now, None, (row,))
        elif (why := why_unread(desired)) is not None and now is None:
            row = Drift(desired.kind, desired.name, None, None, "present", desired.place, None, why)
            yield Changed(None, None, desired, (row,))
        elif now is None:
            if is_to_exist(desired):
                yield _created(desired)
        else:
            rows = tuple(_fields(desired, now, wanted, why))
            if any(row.action is None for row in rows):
                yield Changed(None, now, desired, rows)
            elif any(row.action != NONE for row in rows):
                yield Changed(CHANGE, now, desired, rows)
            elif rows:
                yield Changed(NONE, now, desired, rows)


def doubts(
    wanted: Wanted, present: Resources, changed: Iterable[Changed], brokers: int | None = None
) -> Iterator[str]:
    """What of the files is hardly meant, with file and line: sentences. `brokers`: how many there are, where it is known.

    Patterns that match nothing, keys that are neither known nor set anywhere, and shapes that Kafka cannot give a topic.
    """
    for managed in wanted.managed:
        everything = (*wanted.resources.values(), *present.values())
        if managed.pattern != "*" and not any(map(managed.covers, everything)):
            hint = near_names(managed.pattern, ["all"], otherwise="`all` stands for every name")
            kind = managed.kind.replace("_", " ")
            yield f"{managed.place}: manage: no {kind} matches {managed.pattern!r}; {hint}"
    known = {key.name for key in TOPIC_KEYS}
    known.update(*(now.fields for now in present.values() if now.kind == "topic"), SHAPE)
    for desired in wanted.resources.values():
        for key, value in desired.fields.items() if desired.kind == "topic" else ():
            if key not in known and value is not None:
                hint = near_names(key, known, otherwise="brokers that do not know it refuse it")
                yield f"{desired.place_of(key)}: {key}: kctl knows no such configuration of topics; {hint}"
    for row in (row for each in changed for row in each.drifts if each.action in (CREATE, CHANGE)):
        if row.field == PARTITIONS and int(row.present or 0) > int(row.desired or 0):
            yield (
                f"{row.place}: topic {row.name} has {counted(int(row.present or 0), 'partition')}, of which Kafka takes none away; "
                f"write `partitions: {row.present}` or more"
            )
        if row.field == REPLICATION_FACTOR and brokers and int(row.desired or 0) > brokers:
            yield (
                f"{row.place}: topic {row.name} is to have {counted(int(row.desired or 0), 'replica')}, with "
                f"{counted(brokers, 'broker')} known; write `replication_factor: {brokers}` or less"
            )


def is_to_exist(resource: Resource) -> bool:
    """Whether a resource is to be there: a configuration of which nothing is to be set is none."""
    has_fields = any(value is not None for value in resource.fields.values())
    return has_fields or resource.kind in ("topic", "acl", "user")


def _created(desired: Resource) -> Changed:
    whole = Drift(desired.kind, desired.name, None, None, "present", desired.place, CREATE)
    rows = [
        Drift(desired.kind, desired.name, name, None, value, desired.place_of(name), CREATE)
        for name, value in _ordered(desired)
        if value is not None and value != ""
    ]
    return Changed(CREATE, None, desired, (whole, *rows))


def _ordered(resource: Resource) -> list[tuple[str, Value]]:
    """The fields of a topic first, then keys by name."""
    return sorted(resource.fields.items(), key=lambda item: (item[0] not in SHAPE, item[0]))


def _fields(desired: Resource, now: Resource, wanted: Wanted, why: str | None) -> Iterator[Drift]:
    """What differs of a resource; `why` its configuration is not known, None if it is."""
    kind, name = desired.kind, desired.name
    for key, value in _ordered(desired):
        present = now.fields.get(key)
        if why is not None and key not in SHAPE:
            yield Drift(kind, name, key, None, value, desired.place_of(key), None, why)
        elif not _is_equal(desired, key, value, present):
            yield Drift(kind, name, key, present, value, desired.place_of(key), CHANGE)
    managed = wanted.manages(now)
    for key, present in _ordered(now):
        if key not in desired.fields and key not in SHAPE:
            action, place = (DELETE, managed.place) if managed else (NONE, None)
            yield Drift(kind, name, key, present, None, place, action)


def _is_equal(desired: Resource, key: str, value: Value, present: Value) -> bool:
    if desired.kind == "user":  # a mechanism without iterations: whatever there are
        return present == value or (value == "" and present is not None) or present == ""
    return present == value or (key == PLACEMENT and value == "untouched")


def changed_fields(changed: Changed) -> dict[str, Value]:
    """The fields of a resource that are to be changed, with the values that they are to have."""
    return {row.field: row.desired for row in changed.drifts if row.field is not None and row.action != NONE}
