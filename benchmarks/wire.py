"""Administration over Kafka's own protocol against Kafka 3.9's own tools: CPU seconds, start-up included.

    make bench-wire            # or: python -m benchmarks.wire [live] [replica-verify] [JOB...]; KCTL_BENCH_TOPICS=100 for less

1,000 topics of 10 partitions on two KRaft nodes, and for `replica verify` 512 MB with two replicas, in one partition
and in 5,000.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.admin import Cost, kctl, run
from benchmarks.measure import machine
from benchmarks.parts import Line, at_least, at_most
from benchmarks.results import landed, shown, table, write_section
from tests.brokers.cluster import Cluster, kraft_cluster
from tests.brokers.jars import classpath
from tests.brokers.processes import java_command

TOPICS, PARTITIONS = int(os.environ.get("KCTL_BENCH_TOPICS", "1000")), 10
MEGABYTES = int(os.environ.get("KCTL_BENCH_MEGABYTES", "512"))
MANY = TOPICS * PARTITIONS // 2  # of one topic: a controller makes fewer than 10,000 at once
ROUNDS = 5
VERSION = "3.9"


class Job(NamedTuple):
    """The same work for both, and how many times less kctl is to take."""

    name: str
    at_least: float | None
    ours: Callable[[str, Path], list[str]]
    theirs: Callable[[str, Path], list[str]]


def kafka(main: str, *args: object) -> list[str]:
    """Kafka's own tool: those of its package for tools by the name there, the others by their whole name."""
    quiet = "-Dlog4j.rootLogger=WARN"
    name = main if main.startswith("kafka.") else f"org.apache.kafka.tools.{main}"
    return java_command(classpath(VERSION), name, args, heap="512m", flags=(quiet,))


def ours(*words: object) -> Callable[[str, Path], list[str]]:
    """The command of kctl; PLAN is the file with all partitions."""
    patience = () if words[0] == "transactions" else ("--timeout", "300")
    return lambda at, folder: kctl(
        *(folder / "current.json" if word == "PLAN" else word for word in words),
        *(*patience, "--bootstrap-server", at),
    )


def theirs(main: str, *words: object) -> Callable[[str, Path], list[str]]:
    """That of Kafka's tool."""
    return lambda at, folder: kafka(
        main,
        *("--bootstrap-server", at),
        *(folder / "current.json" if word == "PLAN" else word for word in words),
    )


MOVES, TOPIC = "reassign.ReassignPartitionsCommand", "TopicCommand"
GROUPS = "consumer.group.ConsumerGroupCommand"
NAMES = [f"bench-group-{number}" for number in range(10)]  # of groups, which share all topics
JOBS = (
    Job("topic list", 3, ours("topic", "list"), theirs(TOPIC, "--list")),
    Job("topic describe", 3, ours("topic", "describe"), theirs(TOPIC, "--describe")),
    Job(
        "config get --entity-type topics", 3,
        ours("config", "get", "--entity-type", "topics"),
        theirs("kafka.admin.ConfigCommand", "--describe", "--entity-type", "topics"),
    ),
    Job(
        "config get --effective --entity-type topics", 3,
        ours("config", "get", "--effective", "--entity-type", "topics"),
        theirs("kafka.admin.ConfigCommand", "--describe", "--all", "--entity-type", "topics"),
    ),
    Job(
        "config get --effective --entity-type brokers", 3,
        ours("config", "get", "--effective", "--entity-type", "brokers"),
        theirs("kafka.admin.ConfigCommand", "--describe", "--all", "--entity-type", "brokers"),
    ),
    Job("group list", 3, ours("group", "list"), theirs(GROUPS, "--list")),
    Job(
        "group describe", 3,
        ours("group", "describe", *NAMES),
        theirs(GROUPS, "--describe", *(word for name in NAMES for word in ("--group", name))),
    ),
    Job(
        "group reset, shown", 3,
        ours("group", "reset", NAMES[0], "--to-earliest"),
        theirs(GROUPS, "--reset-offsets", "--group", NAMES[0], "--all-topics", "--to-earliest", "--dry-run"),
    ),
    Job(
        "transactions list", 3,
        ours("transactions", "list", "__transaction_state"), theirs("TransactionsCommand", "list"),
    ),
    Job("cluster brokers", 3, ours("cluster", "brokers"), theirs("kafka.admin.BrokerApiVersionsCommand")),
    Job(
        "topic delete-records, shown", 3,
        ours("topic", "delete-records", "bench-topic-0000", "--to-offset", 0, "--dry-run"),
        theirs("GetOffsetShell", "--topic", "bench-topic-0000", "--time", "-1"),
    ),
    Job("cluster disks", 3, ours("cluster", "disks"), theirs("LogDirsCommand", "--describe")),
    Job(
        "quorum describe", 3,
        ours("quorum", "describe"), theirs("MetadataQuorumCommand", "describe", "--replication"),
    ),
    Job("feature list", 3, ours("feature", "list"), theirs("FeatureCommand", "describe")),
    Job(
        "reassign verify", 5,
        ours("reassign", "verify", "PLAN"), theirs(MOVES, "--verify", "--reassignment-json-file", "PLAN"),
    ),
    Job("reassign status", 5, ours("reassign", "status"), theirs(MOVES, "--list")),
    Job(
        "cluster controller", 3,
        ours("cluster", "controller"), theirs("MetadataQuorumCommand", "describe", "--status"),
    ),
    Job(
        "cluster describe", 3,
        ours("cluster", "describe"), theirs(TOPIC, "--describe", "--under-replicated-partitions"),
    ),
    Job("cluster health", None, ours("cluster", "health"), theirs(TOPIC, "--describe", "--under-replicated-partitions")),
)  # fmt: skip
MOST_OF_HEALTH = 1  # CPU second


def populate(c: Cluster, folder: Path) -> None:
    """Topics of one replica, and a plan that says that they are where they are."""
    from kctl.wire.adapter import Access, Wire
    from kctl.wire.protocol.messages import CreateTopicsRequest
    from kctl.wire.quorum import read_quorum
    from kctl.wire.reading import await_metadata

    kind = CreateTopicsRequest.CreatableTopic
    rows = []
    with Wire(Access(servers=c.bootstrap, timeout=300)) as wire:
        for first in range(0, TOPICS, 100):
            topics = []
            for n in range(first, min(first + 100, TOPICS)):
                name = f"bench-topic-{n:04d}"
                placed = [[1 + (n + p) % 2] for p in range(PARTITIONS)]
                rows += [{"topic": name, "partition": p, "replicas": ids} for p, ids in enumerate(placed)]
                assignments = [
                    kind.CreatableReplicaAssignment(partition_index=p, broker_ids=ids)
                    for p, ids in enumerate(placed)
                ]
                topics.append(
                    kind(
                        name=name,
                        num_partitions=-1,
                        replication_factor=-1,
                        assignments=assignments,
                        configs=[],
                    )
                )
            answer = wire.send(CreateTopicsRequest(topics=topics, timeout_ms=120_000, validate_only=False))
            failed = [one for one in answer.topics if one.error_code]
            assert not failed, failed[:1]
        await_metadata(wire, read_quorum(wire))  # the brokers make folders for a while
    (folder / "current.json").write_text(json.dumps({"version": 1, "partitions": rows}))
    commit(c)


def commit(c: Cluster) -> None:
    """Offsets of each group; and a transaction, so that there is a topic of them."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    servers = c.bootstrap.split(",")
    for number, group in enumerate(NAMES):
        consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
        topics = range(number, TOPICS, len(NAMES))
        mine = [TopicPartition(f"bench-topic-{n:04d}", p) for n in topics for p in range(PARTITIONS)]
        consumer.assign(mine)
        consumer.commit({partition: OffsetAndMetadata(0, "", -1) for partition in mine})
        consumer.close()
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="bench")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("bench-topic-0000", b"one").get(timeout=60)
    producer.commit_transaction()
    producer.close()


def measure(*commands: list[str]) -> list[Cost]:
    """The least of some runs of each, taken in turns: what else the machine does is the same for all."""
    rounds = [[run(command) for command in commands] for _ in range(ROUNDS)]
    return [min(costs, key=lambda cost: cost.cpu) for costs in zip(*rounds, strict=True)]


class Filled(NamedTuple):
    """A topic of two replicas with records in it."""

    name: str
    meaning: str
    partitions: int
    batch_size: int


FILLED = (
    Filled("bulk", "one partition", 1, 262_144),
    Filled("spread", f"{MANY:,} partitions", MANY, 16_384),
)


def fill(c: Cluster, topic: Filled) -> None:
    """Make it."""
    create = (
        "topic",
        "create",
        topic.name,
        "--partitions",
        topic.partitions,
        "--replication-factor",
        2,
        "--yes",
    )
    subprocess.run(
        kctl(*create, "--timeout", 300, "--bootstrap-server", c.bootstrap),
        check=True,
        env={**os.environ, "KCTL_JOURNAL": str(c.folder / "journal")},
        capture_output=True,
    )
    count = ("--num-records", MEGABYTES * 1000, "--record-size", 1000, "--throughput", -1)
    settings = ("acks=1", f"batch.size={topic.batch_size}", "linger.ms=20", "max.block.ms=300000")
    c.tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic.name, *count),
        *("--producer-props", f"bootstrap.servers={c.bootstrap}", *settings),
        timeout=900,
    )


def broker_seconds(c: Cluster) -> float:
    """CPU seconds of the brokers so far."""
    found = 0
    for broker in c.brokers.values():
        assert broker.process
        usage = Path(f"/proc/{broker.process.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        found += int(usage[11]) + int(usage[12])
    return found / os.sysconf("SC_CLK_TCK")


class Read(NamedTuple):
    """What a run over a topic's replicas took, its brokers too: seconds, and megabytes that it read."""

    megabytes: float
    wall: float
    cpu: float
    brokers: float


def by_kctl(c: Cluster, topic: Filled) -> Read:
    """Of some runs the one with the least CPU."""
    command = [
        *kctl("replica", "verify", "--topic", topic.name, "--bootstrap-server", c.bootstrap),
        "--output",
        "jsonl",
    ]
    brokers = broker_seconds(c)
    (best,) = measure(command)
    brokers = (broker_seconds(c) - brokers) / ROUNDS
    said = subprocess.run(command, capture_output=True, check=True).stdout.decode().splitlines()
    return Read(json.loads(said[-1])["bytes"] / 1e6, best.wall, best.cpu, brokers)


def by_kafka(c: Cluster, topic: Filled, megabytes: float) -> Read:
    """Kafka's tool as it is shipped, until it says that nothing is left; it would go on for ever."""
    begun, brokers = time.perf_counter(), broker_seconds(c)
    running = subprocess.Popen(
        kafka("ReplicaVerificationTool", "--broker-list", c.bootstrap, "--topics-include", topic.name,
              "--report-interval-ms", "200", "--time", "-2"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert running.stdout
    is_done = any("max lag is 0 " in line for line in running.stdout)
    wall = time.perf_counter() - begun
    usage = Path(f"/proc/{running.pid}/stat").read_text().rsplit(")", 1)[1].split()
    running.kill()
    running.wait()
    assert is_done, "it ended by itself"
    cpu = (int(usage[11]) + int(usage[12])) / os.sysconf("SC_CLK_TCK")
    return Read(megabytes, wall, cpu, broker_seconds(c) - brokers)


def verify_replicas(c: Cluster, topic: Filled) -> Iterator[Line]:
    """What `replica verify` takes, and Kafka's tool."""
    ours = by_kctl(c, topic)
    text = f"{ours.megabytes:,.0f} MB in {ours.cpu:.2f} s CPU, {ours.wall:.2f} s; the brokers took {ours.brokers:.2f} s CPU"
    name = f"replica verify of {topic.meaning}"
    yield at_least(f"{name}, MB a CPU second", ours.megabytes / ours.cpu, 100, text)
    theirs = min((by_kafka(c, topic, ours.megabytes) for _ in range(3)), key=lambda one: one.wall)
    text = f"kctl {ours.megabytes / ours.wall:,.0f} MB/s, Kafka's {theirs.megabytes / theirs.wall:,.0f}"
    yield at_least(f"{name}, rate against ReplicaVerificationTool", theirs.wall / ours.wall, 5, text)
    text = f"kctl {ours.cpu:.2f} s, Kafka's {theirs.cpu:.2f}; its brokers {theirs.brokers:.2f}"
    yield Line(f"{name}, CPU against ReplicaVerificationTool", f"{theirs.cpu / ours.cpu:.1f} ({text})")


def jobs(c: Cluster, folder: Path, chosen: Collection[str]) -> Iterator[Line]:
    """CPU seconds and time of each job, kctl's and Kafka's."""
    for job in JOBS:
        if chosen and job.name not in chosen:
            continue
        mine, kafkas = measure(job.ours(c.bootstrap, folder), job.theirs(c.bootstrap, folder))
        text = f"kctl {mine.cpu:.2f} s CPU, {mine.wall:.2f} s; Kafka {kafkas.cpu:.2f}, {kafkas.wall:.2f}"
        yield at_least(job.name, kafkas.cpu / mine.cpu, job.at_least, text)
        if job.name == "cluster health":
            yield at_most("cluster health, CPU", mine.cpu, MOST_OF_HEALTH, " s CPU")


def main(chosen: list[str]) -> None:
    """Everything, into sections of RESULTS.md; or what is named, printed only: `live` (all read commands, written too),
    `replica-verify`, a job.
    """
    lines: dict[str, list[Line]] = {"live": [], "wire": []}

    def say(section: str, found: Iterator[Line]) -> None:
        before = landed(section)
        for line in found:
            lines[section].append(line)
            print(shown(line, before), flush=True)

    wanted = [name for name in chosen if name not in ("live", "replica-verify")]
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as name, kraft_cluster(VERSION, brokers=2) as c:
        folder = Path(name)
        bulk, spread = FILLED
        verifies = not chosen or "replica-verify" in chosen
        if verifies:
            fill(c, bulk)
            say("wire", verify_replicas(c, bulk))
        if chosen != ["replica-verify"]:
            populate(c, folder)
            say("live", jobs(c, folder, wanted))
        if verifies:  # last: all commands that list topics would list it
            fill(c, spread)
            say("wire", verify_replicas(c, spread))
    sizes = {
        "live": f"read commands, {TOPICS * PARTITIONS:,} partitions of {TOPICS:,} topics on two KRaft nodes of {VERSION}",
        "wire": f"two KRaft nodes of {VERSION}, {MEGABYTES} MB for `replica verify`",
    }
    for section in () if wanted else sizes:
        if lines[section] and (not chosen or section in chosen):
            today = datetime.datetime.now(datetime.UTC).date()
            load = f"load average {os.getloadavg()[1]:.0f}, brokers included"
            write_section(
                section,
                f"Measured {today} by `make bench-wire` on {machine()}, {load}: {sizes[section]}. CPU seconds, start-up "
                f"included, against Kafka {VERSION}'s own tools on the same cluster; best of {ROUNDS}.\n\n"
                f"{table(lines[section])}",
            )


if __name__ == "__main__":
    main(sys.argv[1:])
