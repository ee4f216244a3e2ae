"""The topics of an incident, their producers, and what looks at the brokers' logs all the while."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.brokers.cluster import Cluster
from tests.nemesis.story import Held, Sent
from tests.nemesis.truth import stored, whole_entries

PARTITIONS = 2


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
    has_append_time: bool = False  # LogAppendTime
    is_compressed: bool = False

    @property
    def configs(self) -> dict[str, str]:
        rolls_soon = self.is_compacted or self.is_tiered
        return {
            "unclean.leader.election.enable": str(self.is_unclean).lower(),
            "min.insync.replicas": str(self.min_isr),
            "segment.ms": "4000" if rolls_soon else "10000",  # Kafka 4 has no small segment.bytes
            **({"cleanup.policy": "compact"} if self.is_compacted else {}),
            **({"message.timestamp.type": "LogAppendTime"} if self.has_append_time else {}),
            **({"remote.storage.enable": "true", "local.retention.ms": "5000"} if self.is_tiered else {}),
        }


def topics(rng: Random, kinds: frozenset[str], has_transactions: bool) -> list[Topic]:
    """One a way to ask for answers, a compacted one, and those with transactions and a tier where these are."""

    def of(name: str, acks: str, is_unclean: bool, min_isr: int, **more: bool) -> Topic:
        at_random = {"has_append_time": "appendtime" in kinds and rng.random() < 0.6}
        at_random["is_compressed"] = "gzip" in kinds and rng.random() < 0.6
        return Topic(name, acks, is_unclean, min_isr, **at_random, **more)

    return [
        of("ledger", "all", rng.random() < 0.5, rng.choice((1, 2))),
        of("clicks", "1", True, 1),
        of("beacons", "0", rng.random() < 0.5, 1),
        of("profiles", "all", rng.random() < 0.5, rng.choice((1, 2)), is_compacted=True),
        *([of("payments", "all", False, 2, is_transactional=True)] if has_transactions else ()),
        *(
            [of("archive", "all", rng.random() < 0.5, rng.choice((1, 2)), is_tiered=True)]
            if "tier" in kinds
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

    def options(self) -> dict[str, Any]:
        """What every producer of the topic is made with."""
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
        if self.topic.is_compressed:
            options["compression_type"] = "gzip"
        return options

    def producer(self) -> KafkaProducer:
        """One that does not send again what failed, but in a transaction."""
        options = self.options()
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

    def send(self, producer: KafkaProducer, partition: int | None = None) -> None:
        """One record; its answer comes later."""
        if partition is None:
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
                # Folders that are being deleted have a random number and a suffix.
                for path in (path for folder in broker.log_dirs for path in folder.glob("*-[0-9]*/*.log")):
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
