"""Old consumers as they stand below `/consumers`."""

from collections.abc import Iterator, Sequence

from formats.errors import FormatError
from formats.znode_others import parse_consumer
from kctl.cluster.old_groups import OldGroup, OldMember
from kctl.model import TopicPartition
from kctl.zookeeper.store import ZnodeReader

ROOT = "/consumers"


def read_old_groups(reader: ZnodeReader) -> Sequence[OldGroup]:
    """Every group, by name. What cannot be read is in the group's `problems`."""
    return [_group(reader, name) for name in reader.children(ROOT) or []]


def _group(reader: ZnodeReader, name: str) -> OldGroup:
    problems: list[str] = []
    base = f"{ROOT}/{name}"
    owners = {tp: data.decode("utf-8", "replace") for tp, data in _by_partition(reader, f"{base}/owners")}
    offsets = {}
    for tp, data in _by_partition(reader, f"{base}/offsets"):
        try:
            offsets[tp] = int(data)
        except ValueError:
            problems.append(f"{base}/offsets/{tp.topic}/{tp.partition}: {data[:40]!r} is no offset")
    members = tuple(_members(reader, f"{base}/ids", problems))
    return OldGroup(name=name, members=members, owners=owners, offsets=offsets, problems=tuple(problems))


def _members(reader: ZnodeReader, base: str, problems: list[str]) -> Iterator[OldMember]:
    names = reader.children(base) or []
    paths = [f"{base}/{name}" for name in names]
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            found = parse_consumer(node.data)
        except FormatError as error:
            problems.append(f"{path}: {error.what}")
            continue
        yield OldMember(
            member_id=name,
            subscription=dict(found.subscription),
            pattern=found.pattern,
            registered_at=found.timestamp,
        )


def _by_partition(reader: ZnodeReader, base: str) -> Iterator[tuple[TopicPartition, bytes]]:
    topics = reader.children(base) or []
    folders = [f"{base}/{topic}" for topic in topics]
    places = [
        (TopicPartition(topic, int(number)), f"{folder}/{number}")
        for topic, folder, numbers in zip(topics, folders, reader.children_many(folders), strict=True)
        for number in numbers or ()
        if number.isascii() and number.isdigit()
    ]
    for (tp, _), node in zip(places, reader.get_many([path for _, path in places]), strict=True):
        if node is not None:
            yield tp, node.data
