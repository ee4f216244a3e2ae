"""An incident that nobody designed: three real brokers under load, and random faults from a seed.

The folder that is made holds `story.json` and, below `evidence`, what an operator would hand over: copies of all log
directories at each moment, znodes, and the brokers' logs.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, LogTruncationError
from kazoo.exceptions import KazooException

from tests.brokers.cluster import Cluster, cluster, eventually, kraft_cluster
from tests.brokers.jars import classpath, tier_jars
from tests.conftest import kctl
from tests.nemesis.story import Fault, Held, Moment, Sent, Story
from tests.nemesis.truth import kraft_history, stored, whole_entries, zookeeper_history

IDS = (1, 2, 3)
PARTITIONS = 2
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
KEPT_OF_KRAFT = ("__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint")


def now() -> float:
    """Milliseconds since the epoch."""
    return time.time() * 1000


@dataclass(frozen=True)
class Topic:
    """What a topic is like, and how its producer asks for answers."""

    name: str
    acks: str
    is_unclean: bool
    min_isr: int
    is_compacted: bool = False
    is_transactional: bool = False
    is_tiered: bool = False

    @property
    def configs(self) -> dict[str, str]:
        rolls_soon = self.is_compacted or self.is_tiered
        return {
            "unclean.leader.election.enable": str(self.is_unclean).lower(),
            "min.insync.replicas": str(self.min_isr),
            "segment.ms": "4000" if rolls_soon else "10000",  # Kafka 4 has no small segment.bytes
            **({"cleanup.policy": "compact"} if self.is_compacted else {}),
            **({"remote.storage.enable": "true", "local.retention.ms": "5000"} if self.is_tiered else {}),
        }


def topics(rng: Random, has_transactions: bool, has_tier: bool) -> list[Topic]:
    """One a way to ask for answers, a compacted one, and those with transactions and a tier where these are."""
    return [
        Topic("ledger", "all", rng.random() < 0.5, rng.choice((1, 2))),
        Topic("clicks", "1", True, 1),
        Topic("beacons", "0", rng.random() < 0.5, 1),
        Topic("profiles", "all", rng.random() < 0.5, rng.choice((1, 2)), is_compacted=True),
        *([Topic("payments", "all", False, 2, is_transactional=True)] if has_transactions else ()),
        *(
            [Topic("archive", "all", rng.random() < 0.5, rng.choice((1, 2)), is_tiered=True)]
            if has_tier
            else ()
        ),
    ]


class Load(threading.Thread):
    """A producer of one topic. Every record has a value of its own and is sent once by this side."""

    def __init__(self, topic: Topic, bootstrap: str, seed: int, release: str) -> None:
        super().__init__(daemon=True)
        self.topic, self.bootstrap, self.rng = topic, bootstrap, Random(f"{seed} {topic.name}")
        self.release = release
        self.sent: list[Sent] = []
        self.over = threading.Event()
        self.is_held = threading.Event()  # nothing is sent meanwhile

    def producer(self) -> KafkaProducer:
        """One that does not send again what failed, but in a transaction."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap.split(","),
            "metadata_max_age_ms": 1000,
            "max_block_ms": 4000,
            "request_timeout_ms": 4000,
            "delivery_timeout_ms": 5000,
            "reconnect_backoff_max_ms": 500,
            "bootstrap_timeout_ms": 10000,
        }
        if self.release == "0.9":
            options["api_version"] = (0, 9)  # the client cannot find out itself
        if self.topic.is_transactional:
            options |= {"transactional_id": self.topic.name, "transaction_timeout_ms": 10000}
        else:
            acks = "all" if self.topic.acks == "all" else int(self.topic.acks)
            options |= {"acks": acks, "retries": 0, "enable_idempotence": False}
        return KafkaProducer(**options)

    def run(self) -> None:
        while not self.over.is_set():
            producer = None
            with contextlib.suppress(KafkaError, OSError, ValueError, RuntimeError, AssertionError):
                producer = self.producer()
                if self.topic.is_transactional:
                    producer.init_transactions()
                self.produce(producer)
            if producer is not None:
                with contextlib.suppress(Exception):
                    producer.close(timeout=2)
            self.over.wait(1)

    def produce(self, producer: KafkaProducer) -> None:
        """Until it is over; what a transaction throws ends this producer."""
        while not self.over.wait(self.rng.uniform(0.05, 0.25)):
            if self.is_held.is_set():
                continue
            if self.topic.is_transactional:
                producer.begin_transaction()
                for _ in range(self.rng.randint(1, 4)):
                    self.send(producer)
                producer.flush(timeout=6)
                producer.abort_transaction() if self.rng.random() < 0.2 else producer.commit_transaction()
            else:
                for _ in range(self.rng.randint(1, 3)):
                    with contextlib.suppress(KafkaError):
                        self.send(producer)

    def send(self, producer: KafkaProducer) -> None:
        """One record; its answer comes later."""
        partition = self.rng.randrange(PARTITIONS)
        number = len(self.sent)
        value = f"{self.topic.name}-{number}." + "x" * self.rng.randrange(60)
        sent = Sent(now(), f"{self.topic.name}-{partition}", value, self.topic.acks)
        self.sent.append(sent)

        def acknowledged(answer: Any) -> None:
            if answer.offset is not None and answer.offset >= 0:
                sent.offset = answer.offset

        key = f"{self.topic.name}-{number % 12 if self.topic.is_compacted else number}"
        producer.send(
            self.topic.name, value=value.encode(), key=key.encode(), partition=partition
        ).add_callback(acknowledged)


class Watch(threading.Thread):
    """Reads what brokers' logs have, twice a second: what is dropped soon after is known as well."""

    def __init__(self, c: Cluster) -> None:
        super().__init__(daemon=True)
        self.cluster = c
        self.held: dict[str, Held] = {}
        self.read: dict[Path, tuple[int, int, bytes]] = {}  # inode, how far, the last bytes before
        self.over = threading.Event()
        self.lock = threading.Lock()

    def run(self) -> None:
        while not self.over.wait(0.5):
            self.look()

    def look(self) -> None:
        """Once at every log."""
        with self.lock:
            for id, broker in self.cluster.brokers.items():
                for path in broker.log_dir.glob("*-[0-9]*/*.log"):
                    # Folders that are being deleted have a random number and a suffix.
                    if re.fullmatch(r"[a-z]+-\d+", path.parent.name):
                        with contextlib.suppress(OSError):
                            self.file(path, id)

    def forget(self, topic: str) -> None:
        """What was read of a topic that is gone."""
        with self.lock:
            for name in [name for name in self.held if name.rpartition("-")[0] == topic]:
                del self.held[name]

    def file(self, path: Path, broker: int) -> None:
        """What is new in a segment, all of it where it is not what it was."""
        with path.open("rb") as file:
            inode = path.stat().st_ino
            was, position, before = self.read.get(path, (inode, 0, b""))
            file.seek(max(position - len(before), 0))
            if was != inode or file.read(len(before)) != before:
                position, before = 0, b""
                file.seek(0)
            data = file.read()
        held = self.held.setdefault(path.parent.name, {})
        for record in stored(data):
            value = (record.value or b"").decode("utf-8", "replace")
            held.setdefault(record.offset, {}).setdefault(value, set()).add(broker)
        end = max((end for _, end in whole_entries(data)), default=0)
        self.read[path] = inode, position + end, (before + data[:end])[-64:]


@dataclass
class Incident:
    """A running cluster, its load, and what is done to it."""

    cluster: Cluster
    rng: Random
    folder: Path
    story: Story
    topics: list[Topic]
    load: list[Load] = field(default_factory=list)

    def note(self, kind: str, broker: int | None = None, **detail: Any) -> None:
        """Add to the story."""
        self.story.faults.append(Fault(now(), kind, broker, detail))

    # --- the cluster ---

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """A client that asks the brokers."""
        client = KafkaAdminClient(
            bootstrap_servers=self.cluster.bootstrap.split(","),
            request_timeout_ms=8000,
            bootstrap_timeout_ms=15000,
        )
        try:
            yield client
        finally:
            client.close()

    def create_topics(self) -> None:
        """Each on all brokers, with random leaders."""
        assignments = {t.name: [self.rng.sample(IDS, 3) for _ in range(PARTITIONS)] for t in self.topics}
        if self.cluster.zookeeper:
            for topic in self.topics:
                self.cluster.create_topic(topic.name, assignments[topic.name], **topic.configs)
            return
        with self.admin() as admin:
            admin.create_topics(
                {
                    t.name: {"assignments": dict(enumerate(assignments[t.name])), "configs": t.configs}
                    for t in self.topics
                }
            )

    def behind(self) -> list[str]:
        """Partitions that are not led, or not in sync on all of their replicas."""
        if self.cluster.zookeeper:
            with self.cluster.client() as client:
                return self.cluster._behind(client)
        with contextlib.suppress(KafkaError), self.admin() as admin:
            return [
                f"{topic['name']}-{partition['partition_index']}"
                for topic in admin.describe_topics([t.name for t in self.topics])
                for partition in topic["partitions"]
                if partition["leader_id"] < 0 or set(partition["isr_nodes"]) < set(partition["replica_nodes"])
            ]
        return ["nobody answers"]

    def is_up(self, id: int) -> bool:
        process = self.cluster.brokers[id].process
        return bool(process and process.is_running)

    def running(self) -> list[int]:
        return [id for id in IDS if self.is_up(id)]

    # --- faults ---

    def start(self, id: int) -> None:
        self.note("start", id)
        self.cluster.start(id, wait=False)

    def kill(self, id: int) -> None:
        self.note("kill", id)
        self.cluster.brokers[id].is_paused = False
        self.cluster.kill(id)

    def terminate(self, id: int) -> None:
        """SIGTERM; killed where it has not ended after a while, as init systems do."""
        process = self.cluster.brokers[id].process
        assert process
        self.note("term", id)
        process.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.process.wait(15)
        if process.is_running:
            self.kill(id)
        else:
            process.kill()
            self.note("stopped", id)

    def pause(self, id: int) -> None:
        process = self.cluster.brokers[id].process
        assert process
        self.note("pause", id)
        process.signal(signal.SIGSTOP)
        self.cluster.brokers[id].is_paused = True

    def resume(self, id: int) -> None:
        self.cluster.resume(id)
        self.note("resume", id)

    def lose_power(self, id: int) -> None:
        """Kill, then take away what the kernel had not written: the ends of some active segments."""
        self.kill(id)
        directory = self.cluster.brokers[id].log_dir
        if (directory / ".kafka_cleanshutdown").exists():
            return  # it had only begun to start: what it closed before is on the disk
        for topic in self.topics:
            for folder in sorted(directory.glob(f"{topic.name}-*")):
                active = max(folder.glob("*.log"), default=None)
                if active is not None and self.rng.random() < 0.5:
                    self.cut(id, active)

    def cut(self, id: int, segment: Path) -> None:
        """Truncate a segment at a batch among its last ten, or inside of one."""
        data = segment.read_bytes()
        starts = [at for at, _ in whole_entries(data)][-10:]
        if not starts:
            return
        at = self.rng.choice(starts)
        is_torn = self.rng.random() < 0.4
        size = min(at + self.rng.randint(1, 60), len(data) - 1) if is_torn else at
        with segment.open("r+b") as file:
            file.truncate(size)
        detail = {
            "partition": segment.parent.name.partition(".")[0],
            "file": segment.name,
            "size": size,
            "is_torn": is_torn,
        }
        self.note("power-loss", id, **detail)

    def wipe(self, id: int) -> None:
        """A new disk in place of the old; a node of KRaft keeps its metadata."""
        self.note("wipe", id)
        kept = KEPT_OF_KRAFT if self.cluster.zookeeper is None else ()
        for path in list(self.cluster.brokers[id].log_dir.iterdir()):
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def reassign(self) -> None:
        """Other replicas, or the same in another order, for one partition."""
        topic, partition = self.rng.choice(self.topics).name, self.rng.randrange(PARTITIONS)
        replicas = self.rng.sample(IDS, self.rng.choice((2, 3, 3)))
        self.note("reassign", partition=f"{topic}-{partition}", replicas=replicas)
        if self.cluster.zookeeper is None:
            with self.admin() as admin:
                admin.alter_partition_reassignments({TopicPartition(topic, partition): replicas})
            return
        move = {"topic": topic, "partition": partition, "replicas": replicas}
        self.ask("/admin/reassign_partitions", {"version": 1, "partitions": [move]})

    def make_anew(self, watch: Watch) -> None:
        """Delete a topic and create another one of its name; what it had is no part of the story any more."""
        topic = self.rng.choice([t for t in self.topics if not t.is_transactional and not t.is_tiered])
        (load,) = (load for load in self.load if load.topic is topic)
        load.is_held.set()
        self.heal()
        self.settle()
        self.note("delete", topic=topic.name)
        replicas = [self.rng.sample(IDS, 3) for _ in range(PARTITIONS)]
        if self.cluster.zookeeper:
            with self.cluster.client() as client:
                client.create(f"/admin/delete_topics/{topic.name}")
                for _ in eventually(f"topic {topic.name} is deleted", 60):
                    if not client.exists(f"/brokers/topics/{topic.name}"):
                        break
            time.sleep(3)
        else:
            with self.admin() as admin:
                admin.delete_topics([topic.name])
                time.sleep(5)
        load.sent.clear()
        watch.forget(topic.name)
        self.note("create", topic=topic.name)
        if self.cluster.zookeeper:
            self.cluster.create_topic(topic.name, replicas, **topic.configs)
        else:
            with self.admin() as admin:
                assignments = dict(enumerate(replicas))
                admin.create_topics({topic.name: {"assignments": assignments, "configs": topic.configs}})
        load.is_held.clear()

    def elect(self) -> None:
        """Preferred leaders for all partitions."""
        self.note("election")
        every = [{"topic": t.name, "partition": p} for t in self.topics for p in range(PARTITIONS)]
        if self.cluster.zookeeper is None:
            with self.admin() as admin:
                admin.elect_leaders(
                    0, {t.name: list(range(PARTITIONS)) for t in self.topics}, raise_errors=False
                )
            return
        self.ask("/admin/preferred_replica_election", {"version": 1, "partitions": every})

    def ask(self, path: str, request: dict[str, Any]) -> None:
        """Ask the controller, where nothing is under way."""
        with self.cluster.client() as client:
            if not client.exists(path):
                client.create(path, json.dumps(request).encode())

    def fault(self) -> None:
        """One step of the nemesis."""
        brokers = self.cluster.brokers
        acts: list[tuple[float, Callable[[], object]]] = [(0.7, self.reassign), (0.7, self.elect)]
        for id in IDS:
            if not self.is_up(id):
                acts += [(3, lambda id=id: self.start(id)), (0.3, lambda id=id: self.wipe(id))]  # type: ignore[misc]
            elif brokers[id].is_paused:
                acts += [(2, lambda id=id: self.resume(id)), (0.3, lambda id=id: self.kill(id))]  # type: ignore[misc]
            else:
                for weight, act in (
                    (1, self.kill),
                    (0.8, self.terminate),
                    (0.7, self.pause),
                    (0.8, self.lose_power),
                ):
                    acts.append((weight, lambda act=act, id=id: act(id)))  # type: ignore[misc]
        act = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        # A broker that is away cannot do what it is asked for; the next fault comes all the same.
        with contextlib.suppress(KafkaError, KazooException, AssertionError):
            act()

    def notice_exits(self) -> None:
        """Brokers that ended by themselves."""
        for id in IDS:
            over = self.story.of("start", "kill", "stopped", "exited", broker=id)
            if not self.is_up(id) and over[-1].kind == "start":
                self.note("exited", id)

    # --- evidence ---

    def copy(self, name: str) -> None:
        """Copies of all log directories, and of the znodes where ZooKeeper has them."""
        folder = self.folder / "evidence" / "moments" / name
        moment = Moment(name, now(), [id for id in self.running() if not self.cluster.brokers[id].is_paused])
        for id, broker in self.cluster.brokers.items():
            target = folder / f"broker-{id}"
            target.mkdir(parents=True)
            copy = ["cp", "-r", "--sparse=always", str(broker.log_dir), str(target / "data")]
            subprocess.run(copy, capture_output=True, check=False)  # what goes meanwhile is not in the copy
        if self.cluster.zookeeper:
            where = ("--zookeeper", self.cluster.connect)
            ran = kctl("znode", "export", folder / "znodes.jsonl", *where)
            assert ran.status == 0, ran.err
        moment.done = now()
        self.story.moments.append(moment)

    def consume(self, topic: str) -> None:
        """Read a topic from its first offset to its end, as the brokers serve it."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.cluster.bootstrap.split(","),
            enable_auto_commit=False,
            auto_offset_reset="none",
        )
        try:
            partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            read: dict[str, dict[int, str]] = {f"{topic}-{number}": {} for number in range(PARTITIONS)}
            for _ in eventually(
                lambda: f"{topic} was read to {ends}: {[max(r) for r in read.values() if r]}"
            ):
                try:
                    polled = consumer.poll(timeout_ms=500)
                except LogTruncationError:  # goes on where it is: what is served there is what counts
                    for partition in partitions:
                        consumer.seek(partition, consumer.position(partition))
                    continue
                for partition, records in polled.items():
                    read[f"{topic}-{partition.partition}"] |= {r.offset: r.value.decode() for r in records}
                if all(consumer.position(partition) >= ends[partition] for partition in partitions):
                    break
            self.story.served |= read
        finally:
            consumer.close(autocommit=False)

    def keep_logs(self) -> None:
        for id, broker in self.cluster.brokers.items():
            logs = self.folder / "evidence" / f"broker-{id}" / "logs"
            logs.mkdir(parents=True)
            shutil.copy(broker.log, logs / "server.log")
            shutil.copy(broker.folder / "server.properties", logs.parent)

    # --- all of it ---

    def run(self, seconds: float, *, makes_anew: bool) -> None:
        """Load and faults for so long; then everything runs again, and the end is copied. `makes_anew`: a topic is deleted
        and created again in the middle of it."""
        self.create_topics()
        watch = Watch(self.cluster)
        watch.start()
        self.load = [
            Load(topic, self.cluster.bootstrap, self.story.seed, self.cluster.version)
            for topic in self.topics
        ]
        for load in self.load:
            load.start()
        time.sleep(6)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if makes_anew and time.monotonic() > end - seconds / 2:
                makes_anew = False
                self.make_anew(watch)
                end = time.monotonic() + seconds / 2
            self.notice_exits()
            self.fault()
            watch.look()
            if self.rng.random() < 0.5:
                self.copy(f"fault-{len(self.story.moments) + 1:02}")
            time.sleep(self.rng.uniform(0.5, 6))
        self.heal()
        time.sleep(2)
        for load in self.load:
            load.over.set()
        for load in self.load:
            load.join(12)
        self.settle()
        for name in self.story.tiered:
            self.consume(name)
        is_stopped = self.story.seed % 2 == 0
        if is_stopped:
            for id in IDS:
                self.terminate(id)
        watch.look()
        watch.over.set()
        watch.join()
        self.copy("after")
        for id in self.running():
            self.kill(id)
        self.keep_logs()
        self.story.sent = [sent for load in self.load for sent in load.sent]
        self.story.held = watch.held
        answered = {sent.partition.rpartition("-")[0] for sent in self.story.sent if sent.offset is not None}
        needed = {topic.name for topic in self.topics if topic.acks != "0" and not topic.is_transactional}
        if needed - answered:
            raise AssertionError(f"nothing was written to {sorted(needed - answered)}: the run says nothing")

    def heal(self) -> None:
        for id in IDS:
            if self.cluster.brokers[id].is_paused:
                self.resume(id)
        self.notice_exits()
        for id in IDS:
            if not self.is_up(id):
                self.start(id)

    def settle(self) -> None:
        """Until every replica is in sync; what ends by itself is started again."""
        behind: list[str] = []
        for _ in eventually(lambda: f"every replica is in sync: {behind[:8]}", 150, pause=1.5):
            behind[:] = self.behind()
            if not behind:
                break
            self.heal()
        time.sleep(4)  # logs that are the same have high watermarks that are the same a little later
        self.story.settled = now()


def metadata_history(c: Cluster) -> Any:
    """What the longest metadata log says."""
    logs = [max(b.log_dir.glob("__cluster_metadata-0/*.log")) for b in c.brokers.values()]
    longest = max(logs, key=lambda path: path.stat().st_size)
    main = "org.apache.kafka.tools.DumpLogSegments" if c.version >= "4.2" else "kafka.tools.DumpLogSegments"
    said = c.tool(main, "--cluster-metadata-decoder", "--files", longest)
    return kraft_history(said.splitlines())


def make(
    folder: Path, seed: int, version: str, seconds: float, *, has_tier: bool = False, makes_anew: bool = False
) -> Story:
    """An incident in a folder; `version` is one of the rig's, with `-kraft` behind it where there is no ZooKeeper.

    With a tier, brokers copy the segments of one topic into a folder of the evidence.
    """
    release, _, is_kraft = version.partition("-")
    rng = Random(f"{seed} {version}")
    classpath(release)  # what is fetched first takes its time
    story = Story(seed, version, "kraft" if is_kraft else "zookeeper")
    story.faults = [Fault(now(), "start", id) for id in IDS]
    chosen = topics(rng, release not in ("0.9", "0.10.2"), has_tier)
    story.compacted = [topic.name for topic in chosen if topic.is_compacted]
    story.tiered = [topic.name for topic in chosen if topic.is_tiered]
    properties = PROPERTIES
    if has_tier:
        properties = {
            **PROPERTIES,
            **TIERED,
            "remote.log.storage.manager.class.path": f"{tier_jars(release)}/*",
            "rsm.config.dir": folder.resolve() / "evidence" / "tier",
        }
    opened = (
        kraft_cluster(release, properties=properties)
        if is_kraft
        else cluster(release, properties={**properties, **WITH_ZOOKEEPER})
    )
    with opened as c:
        incident = Incident(c, rng, folder, story, chosen)
        incident.run(seconds, makes_anew=makes_anew)
        history = metadata_history(c) if is_kraft else zookeeper_history(c.zookeeper.folder / "data")  # type: ignore[union-attr]
        story.history = {name: lives[-1] for name, lives in history.items()}
        story.before = {name: lives[:-1] for name, lives in history.items() if len(lives) > 1}
    story.write(folder / "story.json")
    return story
