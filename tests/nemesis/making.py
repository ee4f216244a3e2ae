"""Makes an incident: the cluster that its kinds of faults need, and the truth of what ZooKeeper or the metadata log had."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.brokers import network
from tests.brokers.cluster import Cluster, cluster, kraft_cluster
from tests.brokers.jars import classpath, tier_jars
from tests.nemesis.incident import Incident
from tests.nemesis.load import topics
from tests.nemesis.story import IDS, Fault, Story
from tests.nemesis.truth import (
    kraft_fencings,
    kraft_history,
    quorum_leaders,
    transactional_ids,
    with_leaders,
    zookeeper_controllers,
    zookeeper_history,
)

PROPERTIES: dict[str, object] = {
    "replica.lag.time.max.ms": 3000,
    "replica.high.watermark.checkpoint.interval.ms": 2000,
    "log.flush.offset.checkpoint.interval.ms": 5000,
    "log.cleaner.backoff.ms": 2000,
    "log.cleaner.min.cleanable.ratio": 0.1,
    "log.segment.delete.delay.ms": 1000,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
}
WITH_ZOOKEEPER: dict[str, object] = {"zookeeper.session.timeout.ms": 3000, "log.cleaner.enable": "true"}
TIERED: dict[str, object] = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.num.partitions": 3,
    "rlmm.config.remote.log.metadata.topic.replication.factor": 3,
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": 300,
    "remote.log.manager.task.interval.ms": 1000,
    "remote.log.manager.thread.pool.size": 2,
    "remote.log.reader.threads": 2,
    "log.retention.check.interval.ms": 2000,
    "log.initial.task.delay.ms": 500,
}
CLOCK = Path(network.__file__).with_name("ahead.c")
AHEAD = 420  # seconds
CONTROLLERS = 3


class Kind(NamedTuple):
    """A kind of faults, beside those of every run."""

    name: str
    doc: str
    since: tuple[int, int] = (0, 0)
    is_kraft: bool | None = None  # None: with ZooKeeper as well
    since_kraft: tuple[int, int] = (0, 0)
    missing: Callable[[], str | None] = lambda: None  # what this machine lacks for it
    is_drawn: bool = True  # whether `any` may choose it


def no_compiler() -> str | None:
    """What keeps a clock from being ahead."""
    return None if shutil.which("cc") else "no cc on the PATH (Debian: gcc)"


KINDS = (
    Kind(
        "net", "brokers are cut off from others, from ZooKeeper or from the quorum", missing=network.why_not
    ),
    Kind("disks", "two log directories a broker: one goes, replicas move", (1, 1), since_kraft=(3, 9)),
    Kind("skew", "the clock of one node is seven minutes ahead, or behind", missing=no_compiler),
    Kind("anew", "a topic is deleted and created again"),
    Kind("records", "records are deleted", (0, 11)),
    Kind("partitions", "a topic gets one more", (1, 1)),
    Kind("open", "transactions are left open, or no coordinator knows them", (0, 11)),
    Kind("appendtime", "some topics have LogAppendTime", (0, 10)),
    Kind("gzip", "some topics are compressed", (0, 11)),
    Kind("controllers", "controllers are processes of their own, and have faults too", is_kraft=True),
    Kind("tier", "one topic has remote segments", (3, 9), is_drawn=False),
)


def number_of(release: str) -> tuple[int, int]:
    """`2.8` as numbers."""
    major, minor, *_ = map(int, release.split("."))
    return major, minor


def why_not(kind: Kind, version: str) -> str | None:
    """Why there is no such fault with this version, or on this machine; None where there is."""
    release, _, is_kraft = version.partition("-")
    since = max(kind.since, kind.since_kraft) if is_kraft else kind.since
    if number_of(release) < since:
        return f"only since {since[0]}.{since[1]}"
    if kind.is_kraft and not is_kraft:
        return "only with KRaft"
    return kind.missing()


def kinds_of(asked: Collection[str], version: str, seed: int) -> list[str]:
    """The kinds asked for, by name; `any` has the seed choose among those that are possible. ValueError names what is not."""
    by_name = {kind.name: kind for kind in KINDS}
    chosen = set()
    for name in asked:
        if name == "any":
            possible = [kind.name for kind in KINDS if kind.is_drawn and not why_not(kind, version)]
            chosen |= set(Random(f"kinds {seed} {version}").sample(possible, min(4, len(possible))))
        elif name not in by_name:
            raise ValueError(f"no kind of faults is named {name!r}: they are {' '.join(by_name)} any")
        elif reason := why_not(by_name[name], version):
            raise ValueError(f"{name} with {version}: {reason}")
        else:
            chosen.add(name)
    return sorted(chosen)


def make(folder: Path, seed: int, version: str, seconds: float, kinds: Collection[str] = ()) -> Story:
    """An incident in a folder; `version` is one of the rig's, with `-kraft` behind it where there is no ZooKeeper.

    With a tier, brokers copy the segments of one topic into a folder of the evidence.
    """
    release, _, is_kraft = version.partition("-")
    rng = Random(f"{seed} {version} {' '.join(sorted(kinds))}".rstrip())
    classpath(release)  # what is fetched first takes its time
    story = Story(seed, version, "kraft" if is_kraft else "zookeeper", kinds=sorted(kinds))
    chosen = topics(rng, frozenset(kinds), release not in ("0.9", "0.10.2"))
    story.compacted = [topic.name for topic in chosen if topic.is_compacted]
    story.tiered = [topic.name for topic in chosen if topic.is_tiered]
    properties = PROPERTIES
    if "tier" in kinds:
        properties = {
            **PROPERTIES,
            **TIERED,
            "remote.log.storage.manager.class.path": f"{tier_jars(release)}/*",
            "rsm.config.dir": folder.resolve() / "evidence" / "tier",
        }
    before: dict[int, tuple[str, ...]] = {}
    if "skew" in kinds:
        apart = range(101, 101 + CONTROLLERS) if "controllers" in kinds else ()
        off, seconds_ahead = rng.choice([*IDS, *apart]), rng.choice((AHEAD, AHEAD, -AHEAD))
        story.skew = {off: seconds_ahead}
        library = folder.resolve() / "ahead.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
        before = {off: ("env", f"LD_PRELOAD={library}", f"AHEAD={seconds_ahead}")}
    disks = 2 if "disks" in kinds else 1
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network.network()) if "net" in kinds else None
        controllers = CONTROLLERS if "controllers" in kinds else 0
        c = stack.enter_context(
            kraft_cluster(
                release,
                properties=properties,
                controllers=controllers,
                disks=disks,
                network=net,
                before=before,
            )
            if is_kraft
            else cluster(
                release,
                properties={**properties, **WITH_ZOOKEEPER},
                disks=disks,
                network=net,
                before=before,
            )
        )
        story.faults = [
            Fault(node.process.began_ms, "start", id) for id, node in c.nodes.items() if node.process
        ]
        incident = Incident(c, rng, folder, story, chosen, network=net)
        incident.run(seconds)
        tell(c, story)
    story.write(folder / "story.json")
    return story


def tell(c: Cluster, story: Story) -> None:
    """Add what ZooKeeper's log, or the metadata log, and the log of transactions say."""
    if c.zookeeper:
        data = c.zookeeper.folder / "data"
        history = zookeeper_history(data)
        story.controllers = zookeeper_controllers(data)
    else:
        logs = [max(node.log_dir.glob("__cluster_metadata-0/*.log")) for node in c.nodes.values()]
        longest = max(logs, key=lambda path: path.stat().st_size)
        said = list(with_leaders(dumped(c, "--cluster-metadata-decoder", [longest]), longest.read_bytes()))
        history = kraft_history(said, story.skew)
        story.controllers = quorum_leaders(said, story.skew)
        story.fencings = kraft_fencings(said, story.skew)
    story.history = {name: lives[-1] for name, lives in history.items()}
    story.before = {name: lives[:-1] for name, lives in history.items() if len(lives) > 1}
    states = [name for name in story.history if name.startswith("__transaction_state-")]
    files = []
    for name in states:
        leader = story.leader(name, story.settled)
        if leader is not None:
            files += [
                path for disk in c.brokers[leader].log_dirs for path in sorted(disk.glob(f"{name}/*.log"))
            ]
    if files:
        story.transactions = transactional_ids(dumped(c, "--transaction-log-decoder", files))


def dumped(c: Cluster, decoder: str, files: Collection[Path]) -> list[str]:
    """What Kafka's own tool prints of files of a log."""
    name = "org.apache.kafka.tools.DumpLogSegments"
    main = name if number_of(c.version) >= (4, 2) else "kafka.tools.DumpLogSegments"
    return c.tool(main, decoder, "--files", ",".join(map(str, files))).splitlines()
