"""A cluster in a file: the difference of 10,000 topics with configurations, against another export and against evidence."""

import base64
import json
from collections.abc import Iterator

from benchmarks.measure import KCTL, least_cpu
from benchmarks.parts import Line, Setting, at_most

TOPICS, PARTITIONS, FACTOR = 10_000, 6, 3
MOST_SECONDS = 3  # of CPU, start-up included


def part_cluster_file(setting: Setting) -> Iterator[Line]:
    """CPU seconds of `diff` and `export` with 10,000 topics, of which each has three values of its own."""
    folder = setting.folder / "cluster-file"
    folder.mkdir(exist_ok=True)
    (folder / "topics.yaml").write_text(export(86_400_000))
    (folder / "other.yaml").write_text(export(3_600_000))
    (folder / "znodes.jsonl").write_text("".join(f"{json.dumps(node)}\n" for node in znodes()))
    diff = [*KCTL, "diff", folder / "topics.yaml", "--output", "jsonl", "--against"]
    for what, path in (("evidence", "znodes.jsonl"), ("another file, which differs in all", "other.yaml")):
        cpu = least_cpu([*diff, folder / path], 3)
        yield at_most(f"diff of {TOPICS:,} topics against {what}", cpu, MOST_SECONDS, " s")
    cpu = least_cpu([*KCTL, "export", "--snapshot", folder / "znodes.jsonl"], 3)
    yield at_most(f"export of {TOPICS:,} topics from evidence", cpu, MOST_SECONDS, " s")


def configs(number: int, retention: int) -> dict[str, str]:
    """The configuration of a topic."""
    return {
        "cleanup.policy": "delete",
        "min.insync.replicas": "2",
        "retention.ms": str(retention + number),
    }


def export(retention: int) -> str:
    """What `kctl export` writes of such topics."""
    lines = ["kctl: 1", "topics:"]
    for number in range(TOPICS):
        lines += [
            f"  topic-{number:05d}:",
            f"    partitions: {PARTITIONS}",
            f"    replication_factor: {FACTOR}",
        ]
        lines += [
            "    configs:",
            *(f"      {key}: {value}" for key, value in configs(number, retention).items()),
        ]
    return "\n".join([*lines, ""])


def znodes() -> Iterator[dict[str, object]]:
    """The lines of an export of a cluster's znodes."""
    yield from map(znode, ("/", "/brokers", "/brokers/ids", "/brokers/topics", "/config", "/config/topics"))
    for number in range(TOPICS):
        replicas = {str(p): [(number + p + step) % 9 for step in range(FACTOR)] for p in range(PARTITIONS)}
        yield znode(f"/brokers/topics/topic-{number:05d}", {"version": 1, "partitions": replicas})
        yield znode(
            f"/config/topics/topic-{number:05d}", {"version": 1, "config": configs(number, 86_400_000)}
        )


def znode(path: str, content: object = None) -> dict[str, object]:
    """A line of the export."""
    data = b"" if content is None else json.dumps(content).encode()
    numbers = dict.fromkeys(
        ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "aversion", "ephemeralOwner", "numChildren"), 0
    )  # fmt: skip
    return {
        "path": path, "data": base64.b64encode(data).decode(), **numbers, "dataLength": len(data), "acl": [],
    }  # fmt: skip
