"""Administration against Kafka 2.8's own tools: CPU seconds, start-up included, on the same ZooKeeper.

    make bench-admin            # or: python -m benchmarks.admin [JOB...], printed only

1,000 topics of 10 partitions on 12 brokers. No broker runs: every job here only reads ZooKeeper.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kazoo.client import KazooClient

from benchmarks.measure import machine
from benchmarks.parts import Line, at_least, at_most
from benchmarks.planner import JOBS as planner_jobs
from benchmarks.planner import MOST_MIB, MOST_SECONDS, SIZES
from benchmarks.results import shown, table, write_section
from tests.brokers.cluster import LOG4J
from tests.brokers.jars import classpath
from tests.brokers.processes import java_command
from tests.brokers.zookeeper import ZooKeeper

TOPICS, PARTITIONS, BROKERS, FACTOR = 1000, 10, 12, 3
ROUNDS = 3


class Cost(NamedTuple):
    """What a run took, in seconds."""

    cpu: float
    wall: float


@contextmanager
def populated(kafka: str = "3.9") -> Iterator[tuple[str, Path]]:
    """A ZooKeeper (of the version that a Kafka release brings) with the cluster in it, and a folder for files."""
    with tempfile.TemporaryDirectory(prefix="kctl-bench-") as name:
        folder = Path(name)
        (folder / "log4j.properties").write_text(LOG4J)
        server = ZooKeeper(folder / "zookeeper", kafka)
        server.start()
        client = server.client()
        try:
            _populate(client)
            (folder / "topics.json").write_text(
                json.dumps({"version": 1, "topics": [{"topic": topic(n)} for n in range(TOPICS)]})
            )
            (folder / "current.json").write_text(json.dumps({"version": 1, "partitions": _current()}))
            yield server.address, folder
        finally:
            client.stop()
            client.close()
            server.stop()


def topic(number: int) -> str:
    """A topic's name."""
    return f"bench-topic-{number:04d}"


def replicas(number: int, partition: int) -> list[int]:
    """Where a partition is."""
    first = number * 7 + partition
    return [(first + step * (1 + number % 5)) % BROKERS for step in range(FACTOR)]


def _current() -> list[dict[str, object]]:
    return [
        {"topic": topic(n), "partition": p, "replicas": replicas(n, p)}
        for n in range(TOPICS)
        for p in range(PARTITIONS)
    ]


def _populate(client: KazooClient) -> None:
    nodes: list[tuple[str, bytes]] = [
        (path, b"")
        for path in (
            "/brokers", "/brokers/ids", "/brokers/topics", "/admin", "/admin/delete_topics", "/config", "/config/topics",
            "/config/brokers", "/config/changes", "/config/users", "/config/clients", "/config/ips", "/cluster",
        )
    ]  # fmt: skip
    nodes += [
        ("/controller_epoch", b"1"),
        ("/controller", b'{"version":1,"brokerid":0,"timestamp":"1700000000000"}'),
        ("/cluster/id", b'{"version":"1","id":"W1mYKYRPRZqt8XjSxCjVnQ"}'),
    ]
    for id in range(BROKERS):
        broker = {
            "version": 4, "host": "127.0.0.1", "port": 9092 + id, "jmx_port": -1, "timestamp": "1700000000000",
            "endpoints": [f"PLAINTEXT://127.0.0.1:{9092 + id}"], "rack": f"r{id % 3}",
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        }  # fmt: skip
        nodes.append((f"/brokers/ids/{id}", json.dumps(broker).encode()))
    for n in range(TOPICS):
        path = f"/brokers/topics/{topic(n)}"
        partitions = {str(p): replicas(n, p) for p in range(PARTITIONS)}
        value = {"version": 3, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
        nodes += [(path, json.dumps(value).encode()), (f"{path}/partitions", b"")]
        nodes.append((f"/config/topics/{topic(n)}", b'{"version":1,"config":{}}'))
        for p, ids in partitions.items():
            state = {"controller_epoch": 1, "leader": ids[0], "version": 1, "leader_epoch": 0, "isr": ids}
            nodes += [
                (f"{path}/partitions/{p}", b""),
                (f"{path}/partitions/{p}/state", json.dumps(state).encode()),
            ]
    for at in range(0, len(nodes), 500):
        transaction = client.transaction()
        for path, data in nodes[at : at + 500]:
            transaction.create(path, data, ephemeral=path == "/controller")
        failed = [result for result in transaction.commit() if isinstance(result, Exception)]
        assert not failed, failed


def run(command: list[str], environment: dict[str, str] | None = None) -> Cost:
    """The cost of a process, all its threads and children included."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})},  # as it is installed
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 5):
        raise SystemExit(
            f"{command[:4]} ended with {ended.returncode}: {ended.stdout[-500:]!r} {ended.stderr[-500:]!r}"
        )
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


class Job(NamedTuple):
    """The same work for both, and how many times less kctl is to take."""

    name: str
    at_least: float
    ours: Callable[[str, Path], list[str]]
    theirs: Callable[[str, Path], list[str]]


def kafka(main: str, *args: object) -> list[str]:
    """Kafka's own tool, with the flags that its scripts give it."""
    quiet = "-Dlog4j.rootLogger=WARN"
    return java_command(classpath("2.8"), f"kafka.admin.{main}", args, heap="512m", flags=(quiet,))


def kctl(*args: object) -> list[str]:
    """This kctl."""
    return [str(Path(sys.executable).with_name("kctl")), *map(str, args)]


JOBS = (
    Job(
        "list",
        3,
        lambda at, _: kctl("topic", "list", "--zookeeper", at),
        lambda at, _: kafka("TopicCommand", "--zookeeper", at, "--list"),
    ),
    Job(
        "describe",
        5,
        lambda at, _: kctl("topic", "describe", "--zookeeper", at),
        lambda at, _: kafka("TopicCommand", "--zookeeper", at, "--describe"),
    ),
    Job(
        "plan",
        2,
        lambda at, folder: kctl(
            *("reassign", "plan", "--brokers", ",".join(map(str, range(BROKERS - 1))), "--zookeeper", at),
            *("--to", folder / f"{time.monotonic_ns()}.json"),
        ),
        lambda at, folder: kafka(
            "ReassignPartitionsCommand",
            *("--zookeeper", at, "--generate", "--topics-to-move-json-file", folder / "topics.json"),
            *("--broker-list", ",".join(map(str, range(BROKERS - 1)))),
        ),
    ),
    Job(
        "verify",
        3,
        lambda at, folder: kctl("reassign", "verify", folder / "current.json", "--zookeeper", at),
        lambda at, folder: kafka(
            "ReassignPartitionsCommand",
            *("--zookeeper", at, "--verify", "--reassignment-json-file", folder / "current.json"),
        ),
    ),
)


def reads(address: str) -> Iterator[Line]:
    """The state of 10,000 partitions: kctl's reading against a raw multiRead, and kazoo's own pipelined reads."""
    from kctl.zookeeper.bulk import GET_DATA, multi_read, pipelined
    from kctl.zookeeper.cluster import ZookeeperCluster
    from kctl.zookeeper.connection import Ensemble, EnsembleAccess

    paths = [
        f"/brokers/topics/{topic(n)}/partitions/{p}/state" for n in range(TOPICS) for p in range(PARTITIONS)
    ]
    with ZookeeperCluster(Ensemble(EnsembleAccess(hosts=address))) as cluster:
        store = cluster.store
        assert isinstance(store, Ensemble)
        client = store._client

        def by_kazoo() -> None:
            for result in [client.get_async(path) for path in paths]:
                result.get()

        ways: dict[str, Callable[[], object]] = {
            "kctl: cluster state": cluster.read_state,
            "kctl: pipelined reads": lambda: pipelined(client._call, GET_DATA, paths, 30),
            "kazoo: pipelined reads": by_kazoo,
        }
        if store._can_multi_read():
            ways = {"raw multiRead": lambda: multi_read(client._call, GET_DATA, paths, 30), **ways}
        rounds = [{name: _timed(way) for name, way in ways.items()} for _ in range(ROUNDS)]
        best = {
            name: Cost(*(min(each) for each in zip(*(one[name] for one in rounds), strict=True)))
            for name in ways
        }
    for name, cost in best.items():
        yield Line(name, f"{cost.wall:.3f} s wall, {cost.cpu:.3f} s CPU")
    ours, raw = best["kctl: cluster state"], best.get("raw multiRead")
    if raw is not None:
        yield at_most("cluster state against raw multiRead, wall", ours.wall / raw.wall, 4)
        yield at_most("cluster state against raw multiRead, CPU", ours.cpu / raw.cpu, 2.5)
    theirs, pipelines = best["kazoo: pipelined reads"], best["kctl: pipelined reads"]
    yield at_least("pipelined reads, kazoo's wall against kctl's", theirs.wall / pipelines.wall, 1)


def _timed(work: Callable[[], object]) -> Cost:
    begun, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - begun)


def jobs(wanted: list[str], address: str, folder: Path) -> Iterator[Line]:
    """Every job, the best of a few rounds of each side in turn."""
    for job in JOBS:
        if wanted and job.name not in wanted:
            continue
        rounds = [(run(job.ours(address, folder)), run(job.theirs(address, folder))) for _ in range(ROUNDS)]
        ours, theirs = (min(costs) for costs in zip(*rounds, strict=True))
        text = f"kctl {ours.cpu:.2f} s, Kafka {theirs.cpu:.2f} s"
        yield at_least(job.name, theirs.cpu / ours.cpu, job.at_least, text)


def planner() -> Iterator[Line]:
    """What the planner takes at its largest size, the slowest of all kinds of plans."""
    found = []
    for job in planner_jobs:
        command = [sys.executable, "-m", "benchmarks.planner", job, str(max(SIZES))]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        seconds, memory = re.findall(r"([0-9.]+) (?:s|MiB)", said)[:2]
        found.append((float(seconds), float(memory), job))
    text = f"{max(SIZES):,} partitions, 200 brokers"
    yield at_most(f"planner, {text}", max(found)[0], MOST_SECONDS, " s CPU", max(found)[2])
    yield at_most("planner, memory", max(one[1] for one in found), MOST_MIB, " MiB")


def main(wanted: list[str]) -> None:
    """Everything, into a section of RESULTS.md; or the jobs asked for, printed only."""
    lines: list[Line] = []

    def say(found: Iterator[Line]) -> None:
        for line in found:
            lines.append(line)
            print(shown(line), flush=True)

    with populated() as (address, folder):
        say(jobs(wanted, address, folder))
        if not wanted or "reads" in wanted:
            say(reads(address))
    if not wanted or "reads" in wanted:
        with populated("2.8") as (address, _):
            say(line._replace(what=f"{line.what} (ZooKeeper 3.5, no multiRead)") for line in reads(address))
    if not wanted or "planner" in wanted:
        say(planner())
    if not wanted:
        today = datetime.datetime.now(datetime.UTC).date()
        size = f"{TOPICS:,} topics of {PARTITIONS} partitions, {FACTOR} replicas, {BROKERS} brokers"
        head = f"Measured {today} by `make bench-admin` on {machine()}: {size}, no broker runs."
        how = f"CPU seconds, start-up included, against Kafka 2.8's own tools on the same ZooKeeper; best of {ROUNDS}."
        write_section("admin", f"{head} {how}\n\n{table(lines)}")


if __name__ == "__main__":
    main(sys.argv[1:])
