"""The sections of a file: what may be written in each, and the resources that it asks for.

`KEYS` is the one table of keys; the JSON Schema is made from it, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from math import inf
from types import MappingProxyType

from formats.secrets import is_secret_key
from formats.values import replace
from formats.whole_numbers import whole_number
from kctl.access.acl import CLUSTER, WILDCARD, Acl
from kctl.access.quotas import QUOTA_NAMES, entity_of
from kctl.access.users import FEWEST_ITERATIONS, MOST_ITERATIONS
from kctl.cluster.names import is_internal, sanitized
from kctl.cluster_file.acceptable import refusal_of_value
from kctl.cluster_file.document import Items, Node, Place, Scalar, Table, wrong
from kctl.cluster_file.resources import (
    PARTITIONS,
    PLACEMENT,
    REPLICAS,
    REPLICATION_FACTOR,
    SECTIONS,
    SHAPE,
    Managed,
    Resource,
    Value,
)
from kctl.errors import BadValue, near_names
from kctl.operations.topics import parse_replica_assignment

MOST_PARTITIONS, MOST_REPLICAS = 200_000, 1000
OTHER_TYPE = re.compile(r"type_[0-9]{1,3}")  # of resources that newer brokers have rules on
ACL_RESOURCES = ("topic", "group", "cluster", "transactional_id", "delegation_token", "user")
PRINCIPALS, HOSTS, OPERATIONS, PERMISSION, PATTERN = (
    "principals",
    "hosts",
    "operations",
    "permission",
    "pattern",
)
TOPIC_KEYS: Mapping[str, str] = {
    PARTITIONS: "Number of partitions; needed for a topic that is to be created. It can only grow.",
    REPLICATION_FACTOR: "Number of replicas of each partition; needed for a topic that is to be created.",
    REPLICAS: "Brokers of each partition, the preferred leader first: `1:2,2:3`. In the place of the two above.",
    PLACEMENT: "`racks` or `brokers 1,2,3`: where replicas may be; without it they stay where they are.",
    "configs": "Values of the topic's configuration; null: it is not to be set.",
    "labels": "Anything; kctl ignores it.",
}
ACL_KEYS: Mapping[str, str] = {
    PRINCIPALS: "One TYPE:NAME, or a list of them; `User:*` is everybody.",
    **{kind: f"One {kind}, or a list; `*` is every one." for kind in ACL_RESOURCES if kind != "cluster"},
    "cluster": "`true`: the rule is about the cluster.",
    PATTERN: "`literal` or `prefixed`: how the names are meant.",
    OPERATIONS: "One operation, or a list.",
    HOSTS: "One address, or a list; without it every host.",
    PERMISSION: "`allow` or `deny`; without it allow.",
    "labels": "Anything; kctl ignores it.",
}
ENTITY_KEYS = {"user": "A user", "client_id": "A client id", "ip": "An address"}
QUOTA_KEYS: Mapping[str, str] = {
    **{
        key: f"{words}; `<default>`: those without a quota of their own."
        for key, words in ENTITY_KEYS.items()
    },
    **dict.fromkeys(QUOTA_NAMES, "A number."),
    "labels": "Anything; kctl ignores it.",
}
USER_KEYS: Mapping[str, str] = {
    "mechanisms": "SCRAM-SHA-256, SCRAM-SHA-512, or a table of them with their iterations.",
    "labels": "Anything; kctl ignores it.",
}
CONFIG_SECTIONS = ("brokers", "client_metrics", "groups")
ALL = "all"


# --- parts of all sections ------------------------------------------------------------------------------


def table_of(node: Node, what: str, example: str) -> Table:
    """The node as a mapping; one that is null is empty. Raises BadValue."""
    if isinstance(node, Scalar) and node.is_null:
        return Table({}, {}, node.place)
    if not isinstance(node, Table):
        raise wrong(node.place, f"{what} is not a mapping", f"write `{example}`")
    return node


def items_of(node: Node, what: str, example: str) -> tuple[Node, ...]:
    """The node as a list; one that is null is empty. Raises BadValue."""
    if isinstance(node, Scalar) and node.is_null:
        return ()
    if not isinstance(node, Items):
        raise wrong(node.place, f"{what} is not a list", f"write `{example}`")
    return node.items


def text_of(node: Node, what: str, example: str) -> str:
    """The node as a text. Raises BadValue."""
    if not isinstance(node, Scalar) or node.is_null:
        kind = "empty" if isinstance(node, Scalar) else "not a text"
        raise wrong(node.place, f"{what} is {kind}", f"write `{example}`")
    return node.text


def texts_of(node: Node, what: str, example: str) -> list[str]:
    """The node as a text or a list of them. Raises BadValue."""
    nodes = node.items if isinstance(node, Items) else (node,)
    texts = [text_of(each, what, example) for each in nodes]
    if not texts:
        raise wrong(node.place, f"{what} is empty", f"write `{example}`")
    return texts


def number_of(node: Node, what: str, lowest: int, highest: int) -> int:
    """The node as a whole number. Raises BadValue."""
    text = text_of(node, what, f"{what}: 3")
    number = whole_number(text)
    if number is None or not lowest <= number <= highest:
        raise wrong(node.place, f"{what} is {text!r}", f"write a whole number from {lowest:,} to {highest:,}")
    return number


def refuse_unknown(table: Table, known: Iterable[str], what: str) -> None:
    """Raise BadValue for the first key that is not known."""
    names = list(known)
    for name, place in table.places.items():
        if name not in names:
            hint = near_names(name, names, otherwise=f"there are {', '.join(names)}")
            raise wrong(place, f"{name!r} is not a key of {what}", hint)


def checked(place: Place, check: Callable[[], object]) -> None:
    """Carry out a check that knows nothing of files; its BadValue gets the place."""
    try:
        check()
    except BadValue as error:
        raise wrong(place, error.message, error.hint) from None


def config_values(node: Node, of: str) -> tuple[dict[str, Value], dict[str, Place]]:
    """The values of a configuration, with their places. A list is joined by commas. Raises BadValue."""
    table = table_of(node, f"the configuration of {of}", "configs: {retention.ms: 86400000}")
    values: dict[str, Value] = {}
    for key, child in table.entries.items():
        if is_secret_key(key):
            raise wrong(
                table.places[key],
                f"{key} is a secret, which belongs in no file",
                "set it with kafka-configs, which encodes it",
            )
        if isinstance(child, Items):
            values[key] = ",".join(texts_of(child, key, f"{key}: VALUE")) if child.items else ""
        elif isinstance(child, Table):
            raise wrong(child.place, f"the value of {key} is a mapping", f"write `{key}: VALUE`")
        else:
            values[key] = None if child.is_null else child.text
    return values, dict(table.places)


# --- topics ---------------------------------------------------------------------------------------------


class TopicBody:
    """What is written below a topic's name, or below a pattern of defaults."""

    def __init__(self, node: Node, of: str, *, is_default: bool = False) -> None:
        table = table_of(node, of, "orders: {partitions: 12, replication_factor: 3}")
        refuse_unknown(table, TOPIC_KEYS, "a topic")
        self.fields: dict[str, Value] = {}
        self.places: dict[str, Place] = {}
        for name, highest in ((PARTITIONS, MOST_PARTITIONS), (REPLICATION_FACTOR, MOST_REPLICAS)):
            if name in table.entries:
                self._set(table, name, number_of(table.entries[name], name, 1, highest))
        if REPLICAS in table.entries:
            self._set(table, REPLICAS, _replicas(table.entries[REPLICAS]))
            for name in (PARTITIONS, REPLICATION_FACTOR):
                if name in table.entries:
                    raise wrong(
                        table.places[name],
                        f"{name} and replicas stand beside each other",
                        "leave one of them out",
                    )
        if PLACEMENT in table.entries:
            self._set(table, PLACEMENT, _placement(table.entries[PLACEMENT]))
        if "configs" in table.entries:
            values, places = config_values(table.entries["configs"], of)
            for key, value in values.items():
                if key in SHAPE:
                    raise wrong(
                        places[key],
                        f"{key} is no configuration",
                        f"write `{key}` beside `configs`, not in it",
                    )
                # An export has no defaults: what it says of topics may be older than what brokers take.
                if is_default and (error := refusal_of_value(key, value, places[key])):
                    raise error
            self.fields.update(values)
            self.places.update(places)

    def _set(self, table: Table, name: str, value: Value) -> None:
        self.fields[name], self.places[name] = value, table.places[name]

    def over(self, defaults: "TopicBody") -> "TopicBody":
        """This with what defaults add."""
        merged = TopicBody.__new__(TopicBody)
        numbers = (PARTITIONS, REPLICATION_FACTOR)
        left_out: tuple[str, ...] = numbers if REPLICAS in self.fields else ()
        if not self.fields.keys().isdisjoint(numbers):
            left_out = (REPLICAS,)
        added = {name: value for name, value in defaults.fields.items() if name not in left_out}
        merged.fields = {**added, **self.fields}
        merged.places = {**{name: defaults.places[name] for name in added}, **self.places}
        return merged


def _replicas(node: Node) -> str:
    parts = texts_of(node, "replicas", "replicas: ['1:2', '2:3']")
    text = ",".join(part.replace(" ", "") for part in parts)
    checked(node.place, lambda: parse_replica_assignment(text))
    return text


def _placement(node: Node) -> str:
    text = text_of(node, PLACEMENT, "placement: racks")
    if text in ("racks", "untouched"):
        return text
    word, _, ids = text.partition(" ")
    numbers = [whole_number(part.strip()) for part in ids.split(",")]
    if word != "brokers" or None in numbers or len(set(numbers)) < len(numbers):
        raise wrong(node.place, f"placement is {text!r}", "write racks, untouched or `brokers 1,2,3`")
    return f"brokers {','.join(map(str, sorted(number for number in numbers if number is not None)))}"


Defaults = list[tuple[str, TopicBody]]


def defaults_in(node: Node) -> Defaults:
    """The defaults of topics, by pattern, in their order. Raises BadValue."""
    table = table_of(node, "defaults", "defaults: {topics: {'orders-*': {partitions: 12}}}")
    refuse_unknown(table, ("topics",), "defaults")
    if "topics" not in table.entries:
        return []
    patterns = table_of(table.entries["topics"], "defaults of topics", "'orders-*': {partitions: 12}")
    return [
        (pattern, TopicBody(body, f"topics {pattern}", is_default=True))
        for pattern, body in patterns.entries.items()
    ]


def topics_in(node: Node, defaults: Defaults) -> Iterator[Resource]:
    """The topics of a section. Of several defaults that fit, the later stands above. Raises BadValue."""
    table = table_of(node, "topics", "topics: {orders: {partitions: 12}}")
    for name, child in table.entries.items():
        place = table.places[name]
        if is_internal(name):
            raise wrong(
                place, f"{name} is Kafka's own topic", "leave it out: brokers make it, and its shape stays"
            )
        body = TopicBody(child, f"topic {name}")
        for pattern, default in reversed(defaults):
            if fnmatchcase(name, pattern):
                body = body.over(default)
        yield Resource(kind="topic", name=name, fields=body.fields, place=place, places=body.places)


# --- other configurations -------------------------------------------------------------------------------


def configs_in(node: Node, section: str) -> Iterator[Resource]:
    """The brokers, groups or subscriptions to client metrics of a section. Raises BadValue."""
    examples = {"brokers": "<default>", "groups": "billing", "client_metrics": "latency"}
    table = table_of(node, section, f"{section}: {{'{examples[section]}': {{KEY: VALUE}}}}")
    for name, child in table.entries.items():
        values, places = config_values(child, f"{SECTIONS[section]} {name}")
        yield Resource(
            kind=SECTIONS[section], name=name, fields=values, place=table.places[name], places=places
        )


# --- users, quotas, rules -------------------------------------------------------------------------------


def users_in(node: Node) -> Iterator[Resource]:
    """The users of a section, with their mechanisms (None: any number of iterations). Raises BadValue."""
    table = table_of(node, "users", "users: {app: {mechanisms: SCRAM-SHA-512}}")
    for name, child in table.entries.items():
        place = table.places[name]
        body = table_of(child, f"user {name}", "app: {mechanisms: SCRAM-SHA-512}")
        refuse_unknown(body, USER_KEYS, "a user")
        if "mechanisms" not in body.entries:
            raise wrong(place, f"user {name} has no mechanisms", "write `mechanisms: SCRAM-SHA-512`")
        fields, places = _mechanisms(body.entries["mechanisms"])
        yield Resource(kind="user", name=name, fields=fields, place=place, places=places)


def _mechanisms(node: Node) -> tuple[dict[str, Value], dict[str, Place]]:
    if isinstance(node, Table):
        return {name: _iterations(child, name) for name, child in node.entries.items()}, dict(node.places)
    fields: dict[str, Value] = dict.fromkeys(texts_of(node, "mechanisms", "mechanisms: SCRAM-SHA-512"), "")
    return fields, dict.fromkeys(fields, node.place)


def _iterations(node: Node, mechanism: str) -> int:
    text = text_of(node, f"the number of iterations of {mechanism}", f"{mechanism}: {FEWEST_ITERATIONS}")
    if not (number := whole_number(text)):  # whose text may be a password
        hint = f"write `{mechanism}: {FEWEST_ITERATIONS}`, or more up to {MOST_ITERATIONS:,}; files hold no passwords"
        raise wrong(node.place, f"the iterations of {mechanism} are no whole number", hint)
    return number


def number_text(text: str) -> str | None:
    """A number as quotas have it: whole ones without a fraction; None for any other text."""
    if text.isdecimal() and len(text) < 20:
        return str(int(text))  # a float would round what is beyond 2^53
    try:
        number = float(text)
    except ValueError:
        return None
    if not (0 <= number < inf):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def quota_name(user: str | None, client_id: str | None, ip: str | None) -> str:
    """Whom a quota is for, in one text: `user=alice, client-id=app`."""
    parts = (("user", user), ("client-id", client_id), ("ip", ip))
    return ", ".join(f"{kind}={name}" for kind, name in parts if name is not None)


def quota_resource(
    user: str | None,
    client_id: str | None,
    ip: str | None,
    fields: Mapping[str, Value],
    place: Place | None = None,
    places: Mapping[str, Place] | None = None,
) -> Resource:
    """The quotas of somebody. Raises BadValue where nobody is named."""
    kind, _ = entity_of(user, client_id, ip)
    user_path = sanitized(user) if user is not None else ""
    path = (
        f"{user_path}/clients/{sanitized(client_id)}"
        if user is not None and client_id is not None
        else user_path
    )
    stored = {"ips": ip or "", "clients": sanitized(client_id or ""), "users": path}[kind]
    name = quota_name(user, client_id, ip)
    return Resource(
        kind="quota", name=name, fields=fields, place=place, places=places or {}, entity=(kind, stored)
    )


def quotas_in_file(node: Node) -> Iterator[Resource]:
    """The quotas of a section. Raises BadValue."""
    example = "- {user: app, producer_byte_rate: 1048576}"
    for child in items_of(node, "quotas", f"quotas: [{example[2:]}]"):
        table = table_of(child, "a quota", example)
        refuse_unknown(table, QUOTA_KEYS, "a quota")
        whom = {
            key: text_of(table.entries[key], key, f"{key}: NAME") if key in table.entries else None
            for key in ENTITY_KEYS
        }
        if whom["ip"] is not None and (whom["user"] is not None or whom["client_id"] is not None):
            raise wrong(
                table.place, "an address has quotas of its own", "leave user and client_id out, or ip"
            )
        if not any(name is not None for name in whom.values()):
            raise wrong(table.place, "the quota is for nobody", "write user, client_id or both, or ip")
        fields: dict[str, Value] = {}
        for key in QUOTA_NAMES:
            if key in table.entries:
                value = table.entries[key]
                is_unset = isinstance(value, Scalar) and value.is_null
                text = None if is_unset else text_of(value, key, f"{key}: 1048576")
                fields[key] = None if text is None else number_text(text)
                if text is not None and fields[key] is None:
                    raise wrong(value.place, f"{key} is {text!r}", "write a number that is not negative")
        if not fields:
            raise wrong(table.place, "the quota has no value", f"write one of {', '.join(QUOTA_NAMES)}")
        places = {key: table.places[key] for key in fields}
        yield quota_resource(whom["user"], whom["client_id"], whom["ip"], fields, table.place, places)


def acl_resource(
    acl: Acl, place: Place | None = None, places: Mapping[str, Place] = MappingProxyType({})
) -> Resource:
    """A rule; `places` are those of the keys that it was written with."""
    return Resource(kind="acl", name=str(acl), place=place, places=places, acl=acl)


def is_rule_to_hold(resource_type: str, resource_name: str) -> bool:
    """Whether files have words for the resource of a rule; `true` of a cluster is its own name."""
    is_known = resource_type in ACL_RESOURCES or OTHER_TYPE.fullmatch(resource_type) is not None
    return is_known and (resource_type, resource_name) != ("cluster", "true")


def acls_in_file(node: Node) -> Iterator[Resource]:
    """The rules of a section: each operation and host of each resource and principal is one. Raises BadValue."""
    example = "- {principals: User:app, topic: orders, operations: [read, describe]}"
    for child in items_of(node, "acls", f"acls: [{example[2:]}]"):
        table = table_of(child, "a rule", example)
        refuse_unknown(table, (*ACL_KEYS, *filter(OTHER_TYPE.fullmatch, table.entries)), "a rule")
        for key, words in ((PRINCIPALS, "principals: User:app"), (OPERATIONS, "operations: read")):
            if key not in table.entries:
                raise wrong(table.place, f"the rule has no {key}", f"write `{words}`")
        principals = texts_of(table.entries[PRINCIPALS], PRINCIPALS, "principals: User:app")
        operations = texts_of(table.entries[OPERATIONS], OPERATIONS, "operations: read")
        kinds = [kind for kind in table.entries if kind in ACL_RESOURCES or OTHER_TYPE.fullmatch(kind)]
        if not kinds:
            raise wrong(table.place, "the rule is about nothing", f"write one of {', '.join(ACL_RESOURCES)}")
        hosts = (
            texts_of(table.entries[HOSTS], HOSTS, "hosts: 10.0.0.7") if HOSTS in table.entries else [WILDCARD]
        )
        permission = _text_or(table, PERMISSION, "allow")
        pattern = _text_or(table, PATTERN, "literal")
        places = {**table.places, **{key: node.place for key, node in table.entries.items()}}
        for kind in kinds:
            names = _resource_names(table.entries[kind], kind)
            for operation in operations:
                for name in names:
                    for principal in principals:
                        for host in hosts:
                            acl = Acl(kind, name, pattern, principal, host, operation, permission)
                            yield acl_resource(acl, table.place, places)


def _resource_names(node: Node, kind: str) -> list[str]:
    if kind != "cluster":
        return texts_of(node, kind, f"{kind}: NAME")
    text = text_of(node, kind, "cluster: true")
    return [CLUSTER if text == "true" else text]


def _text_or(table: Table, key: str, default: str) -> str:
    """The text of a key; the default without it."""
    return text_of(table.entries[key], key, f"{key}: {default}") if key in table.entries else default


# --- what files hold all of -----------------------------------------------------------------------------


def managed_in(node: Node) -> Iterator[Managed]:
    """The kinds and patterns of which files hold all that there is to be. Raises BadValue."""
    table = table_of(node, "manage", "manage: {topics: all}")
    refuse_unknown(table, SECTIONS, "manage")
    for section, child in table.entries.items():
        texts = texts_of(child, f"manage of {section}", f"{section}: all")
        for text in texts:
            yield Managed(SECTIONS[section], "*" if text == ALL else text, table.places[section])


READERS: Mapping[str, Callable[[Node], Iterator[Resource]]] = {
    **{section: partial(configs_in, section=section) for section in CONFIG_SECTIONS},
    "users": users_in,
    "quotas": quotas_in_file,
    "acls": acls_in_file,
}
"""What reads each section but topics."""


def without_unset(resource: Resource) -> Resource:
    """The resource without the fields that are not to be set."""
    return replace(
        resource, fields={key: value for key, value in resource.fields.items() if value is not None}
    )
