"""Files of other tools as resources: topicctl's topics, Strimzi's KafkaTopic and KafkaUser, what kafka-topics describes.

One way: what they say and these files cannot is a remark with its place.

Source: topicctl's docs (topics/*.yaml: meta, spec); strimzi.io, KafkaTopicSpec and KafkaUserSpec of v1beta2; tools/src/main/
java/org/apache/kafka/tools/TopicCommand.java @ 3.9.0-rc3 (--describe: every value that is not Kafka's own default)
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kctl.access.acl import CLUSTER, OPERATIONS_OF, WILDCARD, Acl
from kctl.access.users import FEWEST_ITERATIONS
from kctl.cluster.names import check_topic_name, is_internal
from kctl.cluster_file.acceptable import NEWEST
from kctl.cluster_file.document import Items, Node, Place, Scalar, Table, read_documents, wrong
from kctl.cluster_file.resources import PARTITIONS, REPLICAS, REPLICATION_FACTOR, Resource, Value, shape_of
from kctl.cluster_file.sections import (
    MOST_PARTITIONS,
    MOST_REPLICAS,
    acl_resource,
    checked,
    config_values,
    number_of,
    number_text,
    quota_resource,
    table_of,
    text_of,
    texts_of,
)
from kctl.errors import KctlError, file_error, near_names
from kctl.files import read_whole

TOPICCTL, STRIMZI, KAFKA_TOPICS = FORMATS = ("topicctl", "strimzi", "kafka-topics")
YAML_SUFFIXES = (".yaml", ".yml")
MILLISECONDS = 60_000  # of a minute
MOST_FILES = 100_000
PLACED = {"any": None, "cross-rack": "racks"}
"""What topicctl's strategies of placement are here."""
QUOTAS = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}
SCRAM = {"scram-sha-512": "SCRAM-SHA-512"}


class Taken(NamedTuple):
    """Resources, and what of the files was not taken over."""

    resources: list[Resource]
    remarks: list[str]


def read_other(tool: str, path: Path) -> Taken:
    """The resources of files of a tool, at and below a path. Raises KctlError with file and line."""
    taken = Taken([], [])
    reader: Mapping[str, Callable[[Path, Taken], None]] = {
        TOPICCTL: _topicctl,
        STRIMZI: _strimzi,
        KAFKA_TOPICS: _described,
    }
    if tool not in reader:
        raise KctlError(
            f"{tool!r} is not a format",
            near_names(tool, FORMATS, otherwise=f"there are {', '.join(FORMATS)}"),
        )
    for file in _files(path, () if tool == KAFKA_TOPICS else YAML_SUFFIXES):
        reader[tool](file, taken)
    if not taken.resources:
        raise KctlError(f"{path}: nothing of {tool} here", "name the file or folder with its topics")
    return taken


def _files(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    count = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if not suffixes or name.endswith(suffixes):
                count += 1
                if count > MOST_FILES:
                    raise KctlError(f"{path}: more than {MOST_FILES:,} files", "name a folder with fewer")
                yield Path(folder) / name


def _at(table: Table, *names: str) -> Node | None:
    """The value below keys; None where there is none."""
    node: Node = table
    for name in names:
        if not isinstance(node, Table) or name not in node.entries:
            return None
        node = node.entries[name]
    return None if isinstance(node, Scalar) and node.is_null else node


def _numbers(spec: Table, names: Mapping[str, tuple[str, int]], fields: dict[str, Value]) -> None:
    for name, (field, highest) in names.items():
        if (node := _at(spec, name)) is not None:
            fields[field] = number_of(node, name, 1, highest)


def _topic(name: str, place: Place, fields: Mapping[str, Value], taken: Taken) -> None:
    checked(place, lambda: check_topic_name(name, NEWEST))
    if is_internal(name):
        taken.remarks.append(f"{place}: {name} is Kafka's own topic, and left out")
        return
    taken.resources.append(Resource(kind="topic", name=name, fields=fields, place=place))


# --- topicctl -------------------------------------------------------------------------------------------


def _topicctl(path: Path, taken: Taken) -> None:
    for node in read_documents(path):
        if not isinstance(node, Table) or _at(node, "spec", "partitions") is None:
            taken.remarks.append(f"{node.place}: not a topic, and left out")
            continue
        name = _at(node, "meta", "name")
        if name is None:
            raise wrong(node.place, "the topic has no meta.name", "write `meta: {name: orders}`")
        spec = table_of(node.entries["spec"], "spec", "spec: {partitions: 3}")
        fields: dict[str, Value] = {}
        _numbers(
            spec,
            {
                "partitions": (PARTITIONS, MOST_PARTITIONS),
                "replicationFactor": (REPLICATION_FACTOR, MOST_REPLICAS),
            },
            fields,
        )
        if (settings := _at(spec, "settings")) is not None:
            fields.update(config_values(settings, f"topic {text_of(name, 'name', 'name: orders')}")[0])
        if (minutes := _at(spec, "retentionMinutes")) is not None:
            fields["retention.ms"] = str(number_of(minutes, "retentionMinutes", 0, 2**40) * MILLISECONDS)
        strategy = _at(spec, "placement", "strategy")
        if strategy is not None:
            text = text_of(strategy, "strategy", "strategy: any")
            if text not in PLACED:
                taken.remarks.append(f"{strategy.place}: the placement {text} is not taken over")
            elif (placement := PLACED[text]) is not None:
                fields["placement"] = placement
        _topic(text_of(name, "name", "name: orders"), name.place, fields, taken)


# --- Strimzi --------------------------------------------------------------------------------------------


def _strimzi(path: Path, taken: Taken) -> None:
    for node in read_documents(path):
        kind = _at(node, "kind") if isinstance(node, Table) else None
        text = kind.text if isinstance(kind, Scalar) else ""
        if text == "List" and isinstance(node, Table) and isinstance(items := _at(node, "items"), Items):
            for item in items.items:
                _strimzi_resource(item, taken)
        else:
            _strimzi_resource(node, taken)


def _strimzi_resource(node: Node, taken: Taken) -> None:
    kind = _at(node, "kind") if isinstance(node, Table) else None
    text = kind.text if isinstance(kind, Scalar) else "no kind"
    if text not in ("KafkaTopic", "KafkaUser") or not isinstance(node, Table):
        taken.remarks.append(f"{node.place}: {text} is not taken over")
        return
    name = _at(node, "metadata", "name")
    if name is None:
        raise wrong(node.place, f"the {text} has no metadata.name", "write `metadata: {name: orders}`")
    spec_node = _at(node, "spec")
    spec = table_of(spec_node, "spec", "spec: {}") if spec_node is not None else Table({}, {}, node.place)
    shown = text_of(name, "name", "name: orders")
    if text == "KafkaUser":
        _strimzi_user(shown, name.place, spec, taken)
        return
    fields: dict[str, Value] = {}
    _numbers(
        spec,
        {"partitions": (PARTITIONS, MOST_PARTITIONS), "replicas": (REPLICATION_FACTOR, MOST_REPLICAS)},
        fields,
    )
    if (config := _at(spec, "config")) is not None:
        fields.update(config_values(config, f"topic {shown}")[0])
    if (own := _at(spec, "topicName")) is not None:
        shown = text_of(own, "topicName", "topicName: orders")
    _topic(shown, name.place, fields, taken)


def _strimzi_user(name: str, place: Place, spec: Table, taken: Taken) -> None:
    authentication = _at(spec, "authentication", "type")
    kind = text_of(authentication, "type", "type: scram-sha-512") if authentication is not None else "none"
    login = f"CN={name}" if kind.startswith("tls") else name
    if kind in SCRAM:
        taken.resources.append(
            Resource(kind="user", name=name, fields={SCRAM[kind]: FEWEST_ITERATIONS}, place=place)
        )
    elif authentication is not None and not kind.startswith("tls"):
        taken.remarks.append(f"{authentication.place}: the authentication {kind} is not taken over")
    rules = _at(spec, "authorization", "acls")
    for rule in rules.items if isinstance(rules, Items) else ():
        taken.resources.extend(map(acl_resource, _strimzi_rules(rule, f"User:{login}", taken)))
    quotas = _at(spec, "quotas")
    if quotas is not None:
        fields: dict[str, Value] = {}
        for key, value in table_of(quotas, "quotas", "quotas: {producerByteRate: 1048576}").entries.items():
            if key not in QUOTAS:
                taken.remarks.append(f"{value.place}: the quota {key} is not taken over")
                continue
            fields[QUOTAS[key]] = number_text(text_of(value, key, f"{key}: 1048576"))
            if fields[QUOTAS[key]] is None:
                raise wrong(value.place, f"{key} is not a number", f"write `{key}: 1048576`")
        if fields:
            taken.resources.append(quota_resource(login, None, None, fields, place))


def _strimzi_rules(node: Node, principal: str, taken: Taken) -> Iterator[Acl]:
    rule = table_of(node, "a rule", "- {resource: {type: topic, name: orders}, operations: [Read]}")
    kind_node, name = _at(rule, "resource", "type"), _at(rule, "resource", "name")
    if kind_node is None:
        raise wrong(
            rule.place, "the rule has no resource.type", "write `resource: {type: topic, name: orders}`"
        )
    kind = snake(text_of(kind_node, "type", "type: topic"))
    if kind not in OPERATIONS_OF:
        raise wrong(
            kind_node.place, f"{kind!r} is not a type of resource", f"it is one of {', '.join(OPERATIONS_OF)}"
        )
    operations = _at(rule, "operations") or _at(rule, "operation")
    if operations is None:
        raise wrong(rule.place, "the rule has no operations", "write `operations: [Read]`")
    pattern, host, permission = _at(rule, "resource", "patternType"), _at(rule, "host"), _at(rule, "type")
    for text in texts_of(operations, "operations", "operations: [Read]"):
        operation = snake(text)
        if operation not in ("all", *OPERATIONS_OF[kind]):
            taken.remarks.append(
                f"{operations.place}: brokers check no {operation} on a {kind}: it is left out"
            )
            continue
        yield Acl(
            kind,
            CLUSTER if kind == "cluster" or name is None else text_of(name, "name", "name: orders"),
            "prefixed" if pattern is not None and text_of(pattern, "patternType", "patternType: literal") == "prefix" else "literal",
            principal,
            WILDCARD if host is None else text_of(host, "host", "host: 10.0.0.7"),
            operation,
            "deny" if permission is not None and text_of(permission, "type", "type: allow") == "deny" else "allow",
        )  # fmt: skip


def snake(text: str) -> str:
    """`DescribeConfigs` and `transactionalId` as Kafka's names are written here."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).replace("-", "_").lower()


# --- kafka-topics --describe ----------------------------------------------------------------------------

TOPIC_LINE = re.compile(
    r"^Topic:\s*(?P<topic>\S+)\s.*?\bPartitionCount:\s*(?P<count>\d+)\s+ReplicationFactor:\s*(?P<factor>\d+)"
)
CONFIGS = re.compile(r"\bConfigs:\s*(\S.*?)\s*$")
BETWEEN = re.compile(r",(?=[a-z][a-z.]*=)")
PARTITION_LINE = re.compile(
    r"^\s+Topic:\s*(?P<topic>\S+)\s+Partition:\s*(?P<partition>\d+)\s.*?\bReplicas:\s*(?P<replicas>[\d,]+)"
)
REMOVING = re.compile(r"\bRemoving Replicas:\s*([\d,]+)")
OF_BROKERS = (
    "Configs also has what brokers set for all topics, by their files or as a default: take it out of these topics, or "
    "export from the cluster, whose brokers tell them apart"
)


def _described(path: Path, taken: Taken) -> None:
    try:
        text = read_whole(path, follow=True).decode("utf-8", "replace")
    except OSError as error:
        raise file_error(path, error) from error
    lines = text.splitlines()
    shapes = _described_shapes(lines)
    is_configured = False
    for number, line in enumerate(lines, 1):
        match = TOPIC_LINE.match(line)
        if match is None:
            continue
        place = Place(str(path), number)
        fields: dict[str, Value] = {}
        for field, name, highest in (
            (PARTITIONS, "count", MOST_PARTITIONS),
            (REPLICATION_FACTOR, "factor", MOST_REPLICAS),
        ):
            fields[field] = number_of(Scalar(match[name], place), field, 1, highest)
        shape = shapes.get(match["topic"], {})
        if REPLICAS in shape and shape[PARTITIONS] == fields[PARTITIONS]:
            fields.update(shape)
            taken.remarks.append(
                f"{place}: replication_factor {shape[REPLICATION_FACTOR]}: all replicas are listed"
            )
        configs = CONFIGS.search(line)
        is_configured |= configs is not None
        for pair in BETWEEN.split(configs[1]) if configs else ():
            key, equals, value = pair.partition("=")
            if not equals:
                raise wrong(
                    place, f"{pair!r} is not KEY=VALUE", "give the whole output of kafka-topics --describe"
                )
            fields[key] = value
        _topic(match["topic"], place, fields, taken)
    taken.remarks.extend([f"{path}: {OF_BROKERS}"] if is_configured else [])


def _described_shapes(lines: Iterable[str]) -> dict[str, dict[str, Value]]:
    """The shape of each topic by the lines of its partitions: the topic's own line knows the replicas of one."""
    replicas: dict[str, dict[int, tuple[int, ...]]] = {}
    for match in filter(None, map(PARTITION_LINE.match, lines)):
        removing = REMOVING.search(match.string)
        leaving = removing[1].split(",") if removing else []
        ids = tuple(int(id) for id in match["replicas"].split(",") if id and id not in leaving)
        replicas.setdefault(match["topic"], {})[int(match["partition"])] = ids
    return {topic: shape_of(listed) for topic, listed in replicas.items()}
