"""An incident that nobody designed: three real brokers under load, and random faults from a seed.

The folder that is made holds `story.json` and, below `evidence`, what an operator would hand over: copies of all log
directories at each moment, znodes, and the brokers' logs.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, LogTruncationError
from kazoo.exceptions import KazooException

from tests.brokers.cluster import BrokerProcess, Cluster, eventually
from tests.brokers.network import CLIENTS, QUORUM, ZOOKEEPER, Network
from tests.conftest import kctl
from tests.nemesis.load import PARTITIONS, Load, Topic, Watch, now
from tests.nemesis.story import IDS, Fault, Moment, Story
from tests.nemesis.truth import whole_entries

KEPT_OF_KRAFT = ("__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint")


@dataclass
class Incident:
    """A running cluster, its load, and what is done to it."""

    cluster: Cluster
    rng: Random
    folder: Path
    story: Story
    topics: list[Topic]
    network: Network | None = None
    load: list[Load] = field(default_factory=list)
    cut_off: set[int] = field(default_factory=set)

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
        process = self.cluster.nodes[id].process
        return bool(process and process.is_running)

    def running(self) -> list[int]:
        return [id for id in IDS if self.is_up(id)]

    # --- faults ---

    def start(self, id: int) -> None:
        """Start a process; a disk that went is there again."""
        for away in self.away(id):
            shutil.rmtree(away.with_suffix(""), ignore_errors=True)
            away.rename(away.with_suffix(""))
            self.note("disk-back", id, disk=away.stem)
        self.note("start", id)
        self.cluster.start(id, wait=False)

    def kill(self, id: int) -> None:
        self.note("kill", id)
        self.cluster.nodes[id].is_paused = False
        self.cluster.kill(id)

    def terminate(self, id: int) -> None:
        """SIGTERM; killed where it has not ended after a while, as init systems do."""
        process = self.cluster.nodes[id].process
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
        process = self.cluster.nodes[id].process
        assert process
        self.note("pause", id)
        process.signal(signal.SIGSTOP)
        self.cluster.nodes[id].is_paused = True

    def resume(self, id: int) -> None:
        self.cluster.resume(id)
        self.note("resume", id)

    def lose_power(self, id: int) -> None:
        """Kill, then take away what the kernel had not written: the ends of some active segments."""
        self.kill(id)
        for directory in self.cluster.brokers[id].log_dirs:
            if (directory / ".kafka_cleanshutdown").exists():
                continue  # it had only begun to start: what it closed before is on the disk
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
        directory = self.rng.choice(self.cluster.brokers[id].log_dirs)
        if not directory.is_dir():
            return
        self.note("wipe", id, disk=directory.name)
        kept = KEPT_OF_KRAFT if self.cluster.zookeeper is None else ()
        for path in list(directory.iterdir()):
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def lose_disk(self, id: int) -> None:
        """The last log directory of a running broker is there no more, until the broker starts again."""
        directory = self.cluster.brokers[id].log_dirs[-1]
        if directory.is_dir():
            self.note("disk-lost", id, disk=directory.name)
            directory.rename(directory.with_name(f"{directory.name}.away"))

    def away(self, id: int) -> list[Path]:
        """The disks that went."""
        return sorted(self.cluster.nodes[id].folder.glob("*.away"))

    def move(self, id: int) -> None:
        """A replica of a broker goes to another of its log directories."""
        directories = self.cluster.brokers[id].log_dirs
        topic, number = self.rng.choice(self.topics).name, self.rng.randrange(PARTITIONS)
        target = self.rng.choice(directories)
        self.note("move", id, partition=f"{topic}-{number}", disk=target.name)
        with self.admin() as admin:
            admin.alter_replica_log_dirs({(topic, number, id): str(target)})

    def cut_network(self, id: int) -> None:
        """No packets between a broker and the others, one of them, or those that it asks for decisions."""
        assert self.network
        others = [other for other in IDS if other != id]
        keepers = [ZOOKEEPER] if self.cluster.zookeeper else [*self.cluster.controllers] or others
        what = self.rng.choice(("peers", "peer", "keepers", "all"))
        peers = {"peers": others, "peer": self.rng.sample(others, 1), "keepers": [], "all": others}[what]
        self.note("cut", id, what=what, peers=peers)
        if peers:
            self.network.cut(id, peers, [CLIENTS])
        if what in ("keepers", "all"):
            self.network.cut(id, keepers, [CLIENTS, QUORUM] if self.cluster.controllers else [QUORUM])
            if self.cluster.zookeeper:
                self.network.cut(id, keepers, [CLIENTS])
        self.cut_off.add(id)

    def mend(self, id: int) -> None:
        """The network of a broker as it was."""
        assert self.network
        self.network.mend(id)
        self.cut_off.discard(id)
        self.note("mend", id)

    def delete_records(self) -> None:
        """Up to a random offset of a partition, as an administrator asks for it."""
        topic = self.rng.choice([t for t in self.topics if not t.is_compacted and not t.is_tiered])
        partition = TopicPartition(topic.name, self.rng.randrange(PARTITIONS))
        (load,) = (load for load in self.load if load.topic is topic)
        offsets = [
            s.offset for s in load.sent if s.offset and s.partition == f"{topic.name}-{partition.partition}"
        ]
        if offsets:
            before = self.rng.choice(offsets)
            self.note("delete-records", partition=f"{topic.name}-{partition.partition}", offset=before)
            with self.admin() as admin:
                admin.delete_records({partition: before}, timeout_ms=6000)

    def add_partition(self) -> None:
        """One more, which nobody writes to."""
        if self.story.of("add-partition"):
            return
        topic = self.topics[0].name
        self.note("add-partition", topic=topic)
        with self.admin() as admin:
            admin.create_partitions({topic: PARTITIONS + 1})

    def leave_open(self, *, is_hung: bool) -> None:
        """A producer goes in the middle of a transaction, of which the coordinator knows nothing where it is hung."""
        (load,) = (load for load in self.load if load.topic.is_transactional)
        name = f"{'hung' if is_hung else 'open'}-{len(self.story.of('open'))}"
        producer = KafkaProducer(
            **{**load.options(), "transactional_id": name, "transaction_timeout_ms": 600_000}
        )
        try:
            producer.init_transactions()
            manager = producer._transaction_manager
            producer.begin_transaction()
            partition = TopicPartition(load.topic.name, self.rng.randrange(PARTITIONS))
            self.note("open", name=name, is_hung=is_hung, producer=manager.producer_id_and_epoch.producer_id)
            if is_hung:  # brokers since 3.6 do not take it
                manager._partitions_in_transaction.add(partition)
            for _ in range(self.rng.randint(1, 3)):
                load.send(producer, partition.partition)
            producer.flush(timeout=6)
        finally:
            producer.close(timeout=0)

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
        kinds = self.story.kinds
        acts += [(0.8, self.delete_records)] * ("records" in kinds)
        acts += [(0.5, self.add_partition)] * ("partitions" in kinds)
        acts += [
            (0.5, partial(self.leave_open, is_hung=is_hung)) for is_hung in (True, False) if "open" in kinds
        ]
        for id in IDS:
            if not self.is_up(id):
                acts += [(3, partial(self.start, id)), (0.3, partial(self.wipe, id))]
            elif brokers[id].is_paused:
                acts += [(2, partial(self.resume, id)), (0.3, partial(self.kill, id))]
            else:
                acts += [
                    (1, partial(self.kill, id)),
                    (0.8, partial(self.terminate, id)),
                    (0.7, partial(self.pause, id)),
                    (0.8, partial(self.lose_power, id)),
                ]
                if "disks" in kinds:
                    acts += [(0.5, partial(self.lose_disk, id)), (0.7, partial(self.move, id))]
            if id in self.cut_off:
                acts.append((2.5, partial(self.mend, id)))
            elif "net" in kinds:
                acts.append((0.9, partial(self.cut_network, id)))
        for id, controller in self.cluster.controllers.items():
            if not self.is_up(id):
                acts.append((3, partial(self.start, id)))
            elif controller.is_paused:
                acts.append((3, partial(self.resume, id)))
            else:
                acts += [
                    (0.4, partial(self.kill, id)),
                    (0.3, partial(self.terminate, id)),
                    (0.3, partial(self.pause, id)),
                ]
        act = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])[0]
        # A broker that is away cannot do what it is asked for; the next fault comes all the same.
        with contextlib.suppress(KafkaError, KazooException, AssertionError, RuntimeError, OSError):
            act()

    def notice_exits(self) -> None:
        """Brokers that ended by themselves."""
        for id in self.cluster.nodes:
            over = self.story.of("start", "kill", "stopped", "exited", broker=id)
            if not self.is_up(id) and over[-1].kind == "start":
                self.note("exited", id)

    # --- evidence ---

    def copy(self, name: str) -> None:
        """Copies of all log directories, and of the znodes where ZooKeeper has them."""
        folder = self.folder / "evidence" / "moments" / name
        moment = Moment(name, now(), [id for id in self.running() if not self.cluster.brokers[id].is_paused])
        for node in self.cluster.nodes.values():
            target = folder / folder_of(node, self.cluster)
            target.mkdir(parents=True)
            there = [str(path) for path in node.log_dirs if path.is_dir()]
            copy = ["cp", "-r", "--sparse=always", *there, str(target)]
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
        for node in self.cluster.nodes.values():
            logs = self.folder / "evidence" / folder_of(node, self.cluster) / "logs"
            logs.mkdir(parents=True)
            shutil.copy(node.log, logs / "server.log")
            shutil.copy(node.folder / "server.properties", logs.parent)

    # --- all of it ---

    def run(self, seconds: float) -> None:
        """Load and faults for so long; then everything runs again, and the end is copied. A topic that is made anew is
        deleted and created again in the middle of it."""
        makes_anew = "anew" in self.story.kinds
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
            for id in self.cluster.nodes:  # brokers first
                self.terminate(id)
        watch.look()
        watch.over.set()
        watch.join()
        self.copy("after")
        for id in self.cluster.nodes:
            if self.is_up(id):
                self.kill(id)
        self.keep_logs()
        self.story.sent = [sent for load in self.load for sent in load.sent]
        self.story.held = watch.held
        answered = {sent.partition.rpartition("-")[0] for sent in self.story.sent if sent.offset is not None}
        needed = {topic.name for topic in self.topics if topic.acks != "0" and not topic.is_transactional}
        if needed - answered:
            raise AssertionError(f"nothing was written to {sorted(needed - answered)}: the run says nothing")

    def heal(self) -> None:
        for id in sorted(self.cut_off):
            self.mend(id)
        for id, node in self.cluster.nodes.items():
            if node.is_paused:
                self.resume(id)
        self.notice_exits()
        for id in IDS:
            if self.is_up(id) and self.away(id):  # it does not look at a disk again that it lost
                self.terminate(id)
        for id in sorted(self.cluster.nodes, reverse=True):  # controllers first
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


def folder_of(node: BrokerProcess, cluster: Cluster) -> str:
    """The name of a node's folder in the evidence."""
    return f"{'controller' if node.broker_id in cluster.controllers else 'broker'}-{node.broker_id}"
