"""What brokers would refuse of what files ask for: an error with file and line, of what is to be created or changed.

What a cluster has already is as it is, whatever brokers take today: an export is read back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from formats.whole_numbers import whole_number
from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.acl import CLUSTER, OPERATIONS_OF, PATTERN_TYPES, PERMISSIONS, Acl, check_principal
from kctl.access.users import FEWEST_ITERATIONS, MOST_ITERATIONS, check_user
from kctl.cluster.config_keys import refusal_of_all
from kctl.cluster.names import check_topic_name
from kctl.cluster.state import DEFAULT
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.difference import CHANGE, CREATE, Changed
from kctl.cluster_file.document import Place, wrong
from kctl.cluster_file.resources import SHAPE, Resource, Value
from kctl.errors import BadValue, near_names

NEWEST = KafkaVersion(99, 0)
NOWHERE = Place("", 0)
Refusal = tuple[str | None, BadValue]
"""The field that would be refused, None for the resource as a whole, and why."""


def refuse_unacceptable(changes: Iterable[Changed]) -> None:
    """Raise BadValue for the first resource or field that is to be created or changed and that no broker takes."""
    for changed in changes:
        if changed.desired is None or changed.action not in (CREATE, CHANGE):
            continue
        fields = {row.field for row in changed.drifts if row.action == CHANGE}
        for name, error in refusals_of(changed.desired):
            if changed.action == CREATE or name in fields:
                raise error


def refuse_any(resources: Iterable[Resource]) -> None:
    """Raise BadValue for the first of resources that no broker would take, whatever there is."""
    for resource in resources:
        for _, error in refusals_of(resource):
            raise error


def refusals_of(resource: Resource) -> Iterator[Refusal]:
    """What brokers of no version take of a resource, with its place in files."""
    return REFUSALS[resource.kind](resource)


def refusal_of_value(key: str, value: Value, place: Place | None) -> BadValue | None:
    """The error of a value of a topic's configuration that brokers of no version take."""
    if value is None or not (reason := refusal_of_all(key, str(value))):
        return None
    return wrong(place or NOWHERE, f"{key}={value}: {reason}", "write a value that Kafka accepts")


def _topic(resource: Resource) -> Iterator[Refusal]:
    yield from _checked(resource, None, lambda: check_topic_name(resource.name, NEWEST))
    for key, value in resource.fields.items():
        if key not in SHAPE and (error := refusal_of_value(key, value, resource.place_of(key))):
            yield key, error


def _configured(resource: Resource) -> Iterator[Refusal]:
    if resource.kind == "broker" and resource.name != DEFAULT and whole_number(resource.name) is None:
        what, hint = f"{resource.name!r} is not a broker id", "write its number, or <default> for all"
        yield None, wrong(resource.place or NOWHERE, what, hint)
    if not resource.name:
        what = f"the name of a {resource.kind.replace('_', ' ')} is empty"
        yield None, wrong(resource.place or NOWHERE, what, "write the name")


def _user(resource: Resource) -> Iterator[Refusal]:
    yield from _checked(resource, None, lambda: check_user(resource.name))
    known = SCRAM_MECHANISMS.values()
    for name, count in resource.fields.items():
        place = resource.place_of(name) or NOWHERE
        if name not in known:
            yield name, wrong(place, f"{name!r} is not a mechanism", f"it is one of {', '.join(known)}")
        if count and not FEWEST_ITERATIONS <= int(count) <= MOST_ITERATIONS:
            hint = f"write a whole number from {FEWEST_ITERATIONS:,} to {MOST_ITERATIONS:,}"
            yield name, wrong(place, f"{name} with {int(count):,} iterations", hint)


def _rule(resource: Resource) -> Iterator[Refusal]:
    assert resource.acl is not None
    acl: Acl = resource.acl
    yield from _checked(resource, "principals", lambda: check_principal(acl.principal))
    kind = acl.resource_type
    if kind not in OPERATIONS_OF:
        what = f"{kind} is no type of resource that kctl knows"
        yield None, wrong(resource.place or NOWHERE, what, f"write one of {', '.join(OPERATIONS_OF)}")
        return
    choices = {
        "operations": (acl.operation, ("all", *OPERATIONS_OF[kind]), f"brokers check no {acl.operation!r} on a {kind}"),
        "permission": (acl.permission, tuple(PERMISSIONS.values())[::-1], f"permission is {acl.permission!r}"),
        "pattern": (acl.pattern_type, tuple(PATTERN_TYPES.values()), f"pattern is {acl.pattern_type!r}"),
        "cluster": (acl.resource_name, (CLUSTER,) if kind == "cluster" else (acl.resource_name,), "cluster is not true"),
    }  # fmt: skip
    for key, (value, known, what) in choices.items():
        if value not in known:
            hint = f"write {' or '.join(known)}"
            if key == "operations":
                hint = near_names(value, known, otherwise=f"it is one of {', '.join(known)}")
            elif key == "cluster":
                hint = "write `cluster: true`, or leave it out"
            yield None, wrong(resource.place_of(key) or NOWHERE, what, hint)


def _checked(resource: Resource, at: str | None, check: Callable[[], object]) -> Iterator[Refusal]:
    """The error of a check that knows nothing of files, of the resource as a whole."""
    try:
        check()
    except BadValue as error:
        yield None, wrong(resource.place_of(at) or NOWHERE, error.message, error.hint)


REFUSALS: Mapping[str, Callable[[Resource], Iterator[Refusal]]] = {
    "topic": _topic,
    "user": _user,
    "acl": _rule,
    "quota": lambda resource: iter(()),
    **dict.fromkeys(("broker", "client_metrics", "group"), _configured),
}
