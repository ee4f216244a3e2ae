"""What a cluster had, from evidence: a metadata log, an export of znodes, or files that another export wrote."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from formats.secrets import is_secret_key
from formats.values import replace
from kctl.access_sources.recorded import view_of_image
from kctl.cluster.names import is_internal
from kctl.cluster.state import DEFAULT, Problem, Topic
from kctl.cluster_file.holdable import configs_to_hold, quota_to_hold, to_hold
from kctl.cluster_file.loading import SUFFIXES
from kctl.cluster_file.present import present_in, remarks_of, topic_resource, user_resources
from kctl.cluster_file.resources import (
    KINDS,
    REPLICAS,
    Key,
    Resource,
    Resources,
    Value,
    Wanted,
    of_kinds,
    shape_of,
)
from kctl.cluster_file.sections import acl_resource, without_unset
from kctl.errors import BadValue, KctlError
from kctl.evidence.discover import discover
from kctl.evidence.model import FoundEvidence
from kctl.evidence.order import is_order_known
from kctl.evidence.znodes import greatest_zxid
from kctl.identities.statements import cluster_id_of
from kctl.internal_topics.cluster_image import CLUSTER_METADATA, ClusterImage
from kctl.internal_topics.metadata_rows import furthest_image
from kctl.internal_topics.reading import NOW, AsOf, entries
from kctl.operations.topics import parse_replica_assignment
from kctl.times import iso

KIND_OF_CONFIG = {"broker": "broker", "client-metrics": "client_metrics", "group": "group"}
EVERY_KIND = frozenset(kind for kinds in KINDS.values() for kind in kinds)


class RecordedResources(NamedTuple):
    """Resources, what could not be read, and comments by `SECTION/NAME`."""

    resources: list[Resource]
    problems: list[Problem]
    comments: dict[str, list[str]]
    why_unread: Callable[[Resource], str | None] = lambda _: None
    remark: str = ""  # which of several moments it is, or what its time is not
    brokers: int | None = None  # how many there are, where it is known
    left_out: Sequence[str] = ()  # what no file can hold; neither exported nor compared


def image_resources(
    image: ClusterImage, kinds: Collection[str], wanted: Resources, left_out: list[str]
) -> Iterator[Resource]:
    """The resources of a KRaft cluster, without internal topics and secrets. `wanted`, `left_out`: see `resources_in`."""

    def configs(kind: str, name: str) -> dict[str, Value]:
        values = image.configs.get((kind, name), {})
        return {key: str(value) for key, value in values.items() if not is_secret_key(key)}

    racks = {id: broker.rack for id, broker in image.brokers.items()}
    if "topic" in kinds:
        for topic in topics_of_image(image):
            values = {key: str(value) for key, value in configs("topic", topic.name).items()}
            values = configs_to_hold(topic.name, values, left_out)
            yield topic_resource(topic, values, racks, wanted.get(Key("topic", topic.name)))
    for kind, name in image.configs:
        if KIND_OF_CONFIG.get(kind) in kinds and (fields := configs(kind, name)):
            shown = name or (DEFAULT if kind == "broker" else name)
            yield Resource(kind=KIND_OF_CONFIG[kind], name=shown, fields=fields)
    if "quota" in kinds:
        for entity, quota_values in image.quotas.items():
            whom = {kind: DEFAULT if name is None else name for kind, name in entity}
            if DEFAULT in dict(entity).values():
                left_out.append(f"quota {whom}: in files {DEFAULT} is everybody else")
                continue
            if not whom.keys() <= {"user", "client-id"} and whom.keys() != {"ip"}:
                left_out.append(f"quota {whom}: kctl knows no quotas of such")
                continue
            texts = {key: str(value) for key, value in quota_values.items()}
            quota = quota_to_hold(whom.get("user"), whom.get("client-id"), whom.get("ip"), texts, left_out)
            yield from [quota] if quota else []
    view = view_of_image(image)
    if "user" in kinds:
        yield from user_resources(view.credentials)
    if "acl" in kinds:
        yield from map(acl_resource, view.acls)


def topics_of_image(image: ClusterImage) -> Iterator[Topic]:
    """The topics, without Kafka's own."""
    for topic_id, name in image.names.items():
        if not is_internal(name):
            partitions = image.partitions.get(topic_id, {})
            yield Topic(
                name=name,
                partitions={number: tuple(p.replicas) for number, p in partitions.items()},
                adding_replicas={
                    n: tuple(p.adding_replicas) for n, p in partitions.items() if p.adding_replicas
                },
                removing_replicas={
                    n: tuple(p.removing_replicas) for n, p in partitions.items() if p.removing_replicas
                },
                topic_id=topic_id,
            )


def metadata_resources(
    folders: Iterable[Path],
    as_of: AsOf = NOW,
    kinds: Collection[str] = EVERY_KIND,
    wanted: Resources = MappingProxyType({}),
) -> RecordedResources:
    """The cluster by the copy of the metadata log that reaches furthest.

    Raises KctlError where none can be read, BadValue for a bound before the log begins, or an offset after it ends.
    """
    folders = list(folders)
    image, trouble = furthest_image(folders, as_of)
    problems = [Problem(f"{part.file.name} at {part.position}", part.what) for part in trouble]
    left_out = list[str]()
    resources = list(to_hold(image_resources(image, kinds, wanted, left_out), left_out))
    remark = _check_bound(folders, as_of, image) if as_of != NOW else ""
    return RecordedResources(
        resources,
        problems,
        remarks_of(resources),
        remark=remark,
        brokers=len(image.brokers),
        left_out=left_out,
    )


def _check_bound(folders: Iterable[Path], as_of: AsOf, image: ClusterImage) -> str:
    """Raise BadValue for a bound that is not in the log; a remark for a time after its last record, else nothing."""
    begins: list[int] = []
    last_time, last_offset = -1, image.end_offset - 1
    for entry in (entry for folder in folders for entry in entries(folder, [])):
        if entry.batch is not None:
            begins = begins or [entry.base_offset, entry.batch.base_timestamp]
            last_time = max(last_time, entry.batch.max_timestamp)
            last_offset = max(last_offset, entry.last_offset)
    ends = f"the log ends with offset {last_offset:,}" + (f" at {iso(last_time)}" if last_time >= 0 else "")
    if not image.end_offset and begins:
        raise BadValue(
            "nothing of the cluster is recorded before --as-of: the log begins with offset "
            f"{begins[0]:,} at {iso(begins[1])}",
            f"name a later one; {ends}",
        )
    if as_of.offset is not None and as_of.offset > last_offset + 1:
        raise BadValue(f"--as-of is offset {as_of.offset:,}, and {ends}", "leave --as-of out for its end")
    if as_of.timestamp is not None and as_of.timestamp > last_time >= 0:
        return f"{ends}, before --as-of: what came after it is not known"
    return ""


def against(
    path: Path, kinds: Collection[str], wanted: Resources, load: Callable[[Sequence[Path]], Wanted]
) -> RecordedResources:
    """What another export, or the evidence of a cluster, says; of several moments the last one.

    `load` reads files with the variables that were given. Raises KctlError, BadValue for evidence of several clusters. Of
    an export of znodes and a metadata log in one evidence the metadata log counts: the cluster has left ZooKeeper.
    """
    if path.is_file():
        is_file = path.suffix.lower() in SUFFIXES
        return _of_files(load([path]), kinds) if is_file else _of_export(path, kinds, wanted)
    evidence = discover((str(path),))
    for failure in evidence.failures:
        raise failure
    if len(clusters := _clusters_in(evidence)) > 1:
        raise BadValue(
            f"{path}: the evidence is of {len(clusters)} clusters: {', '.join(clusters)}",
            "name the folder or the export of one of them",
        )
    folders = {log_dir.path / f"{CLUSTER_METADATA}-0": log_dir.moment for log_dir in evidence.log_dirs}
    if logs := {folder: moment for folder, moment in folders.items() if folder.is_dir()}:
        newest, remark = _of_the_last(path, logs, evidence)
        return metadata_resources(newest, kinds=kinds, wanted=wanted)._replace(remark=remark)
    if exports := {export.path: export.moment for export in evidence.znode_exports}:
        newest, remark = _of_the_last(path, exports, evidence)
        export = newest[0] if len(newest) == 1 else max(newest, key=greatest_zxid)
        return _of_export(export, kinds, wanted)._replace(remark=remark)
    if any(child.suffix.lower() in SUFFIXES for child in path.iterdir()):
        return _of_files(load([path]), kinds)
    raise KctlError(
        f"{path}: no export of znodes, no {CLUSTER_METADATA}-0 and no file of YAML or JSON here",
        "name what `kctl export`, `kctl znode export` or `kctl collect` wrote",
    )


def _clusters_in(evidence: FoundEvidence) -> list[str]:
    """The ids of clusters that log directories and, where there are several, exports of znodes name."""
    exports = evidence.znode_exports if len(evidence.znode_exports) > 1 else ()
    ids = {log_dir.cluster_id for log_dir in evidence.log_dirs} | {
        cluster_id_of(export) for export in exports
    }
    return sorted(filter(None, ids))


def _of_the_last(
    path: Path, moments: Mapping[Path, str | None], evidence: FoundEvidence
) -> tuple[list[Path], str]:
    """Of sources by their moments those of the last one, and which it is, where there are several."""
    names = [name for name in evidence.moments if name in moments.values()]
    last = names[-1] if names else None
    newest = [source for source, moment in moments.items() if moment == last]
    if len(names) < 2:
        return newest, ""
    unsure = "" if is_order_known(evidence) else "; nothing tells their order"
    return newest, f"{path}: compared with {last}, the last of the moments {', '.join(names)}{unsure}"


def _of_files(files: Wanted, kinds: Collection[str]) -> RecordedResources:
    resources = map(without_unset, of_kinds(files.resources, kinds))
    return RecordedResources(list(map(_shaped, resources)), [], {})


def _shaped(resource: Resource) -> Resource:
    """The resource; a topic whose replicas are listed has the numbers of partitions and replicas, too."""
    if (text := resource.fields.get(REPLICAS)) is None:
        return resource
    shape = shape_of(parse_replica_assignment(str(text)))
    return replace(resource, fields={**shape, **resource.fields})


def _of_export(path: Path, kinds: Collection[str], wanted: Resources) -> RecordedResources:
    from kctl.zookeeper.cluster import RecordedCluster
    from kctl.zookeeper.snapshot import read_snapshot

    with RecordedCluster(read_snapshot(path)) as cluster:
        present = present_in(cluster, None, kinds, None, wanted)
    return RecordedResources(
        present.resources,
        present.problems,
        {},
        present.why_unread,
        brokers=present.brokers or None,
        left_out=present.left_out,
    )
