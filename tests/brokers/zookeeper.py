"""A ZooKeeper server of the version that comes with a Kafka release: start, stop, restart, read and write."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from tests.brokers.jars import classpath
from tests.brokers.processes import (
    LOCAL,
    PATIENCE,
    JavaProcess,
    Place,
    eventually,
    free_ports,
    java_command,
    wait_for_port,
)

# Which ZooKeeper comes with which Kafka; 3.6 and later answer multiRead.
ZOOKEEPERS = {"3.4": "1.1", "3.5": "2.8", "3.8": "3.9"}
# What every server makes the passwords of sessions from: SessionTrackerImpl and ZooKeeperServer (`superSecret`).
SECRET = 0xB3415C00


class ZooKeeper:
    """One standalone server. `settings` are lines of zoo.cfg, `flags` are for the JVM."""

    def __init__(
        self,
        folder: Path,
        kafka: str,
        *,
        settings: Mapping[str, object] | None = None,
        flags: tuple[str, ...] = (),
        place: Place = LOCAL,
    ) -> None:
        self.folder = folder
        self.place = place
        self.kafka = kafka
        self.flags = flags
        folder.mkdir(parents=True)
        self.port = free_ports(1)[0]
        values: dict[str, object] = {
            "dataDir": folder / "data",
            "clientPort": self.port,
            "clientPortAddress": place.host,
            "admin.enableServer": "false",
            "tickTime": 500,
            "minSessionTimeout": 500,
            "maxSessionTimeout": 60000,
            "maxClientCnxns": 0,
            "4lw.commands.whitelist": "*",
            **(settings or {}),
        }
        self.config = folder / "zoo.cfg"
        self.config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        self.process: JavaProcess | None = None
        self.login: dict[str, Any] = {}  # for the clients

    @property
    def has_peers(self) -> bool:
        """Whether it is one of several, and may never serve."""
        return "\nserver." in self.config.read_text()

    @property
    def address(self) -> str:
        return f"{self.place.host}:{self.port}"

    def start(self) -> None:
        flags = (f"-Dlog4j.configuration=file:{self.folder.parent}/log4j.properties", *self.flags)
        # Half the disk syncs: nothing here outlives the machine.
        flags = ("-Dzookeeper.forceSync=no", "-Dzookeeper.extendedTypesEnabled=true", *flags)
        command = java_command(
            classpath(self.kafka),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            [self.config],
            heap="256m",
            flags=flags,
        )
        self.process = JavaProcess([*self.place.before, *command], self.folder / "zookeeper.log")
        wait_for_port(self.port, self.process, host=self.place.host)
        # It listens before it serves, and a client that comes in between waits in vain for its whole time-out.
        for _ in eventually(f"ZooKeeper serves on port {self.port}"):
            self.process.require_running()
            with contextlib.suppress(OSError):
                if b"Zookeeper version" in self.asked("srvr") or self.has_peers:
                    return

    def stop(self) -> None:
        if self.process:
            self.process.kill()

    def restart(self) -> None:
        """Kill it and start it again with the same data."""
        self.stop()
        self.start()

    def client(self, chroot: str = "", **options: Any) -> KazooClient:
        """A connected client; the caller stops it."""
        client = KazooClient(self.address + chroot, timeout=60, **{**self.login, **options})
        client.start(timeout=PATIENCE)
        return client

    def sessions(self) -> set[int]:
        """Ids of the sessions that are connected now."""
        return {int(found, 16) for found in re.findall(rb"sid=0x([0-9a-f]+)", self.asked("cons"))}

    def asked(self, word: str) -> bytes:
        """What the server says to a four-letter word."""
        with socket.create_connection((self.place.host, self.port), timeout=5) as connection:
            connection.sendall(word.encode())
            return connection.makefile("rb").read()

    def expire(self, *sessions: int) -> None:
        """End sessions as the server does when their time is over; nobody has to wait for that."""
        for session in sessions:
            client = self.client(client_id=(session, password_of(session)))
            client.stop()
            client.close()


def password_of(session: int) -> bytes:
    """The password of a session: 16 bytes of java.util.Random, seeded with its id and the servers' secret."""
    modulus = (1 << 48) - 1
    seed = (session ^ SECRET ^ 0x5DEECE66D) & modulus
    words = []
    for _ in range(4):
        seed = (seed * 0x5DEECE66D + 0xB) & modulus
        words.append(seed >> 16)
    return struct.pack("<4I", *words)
