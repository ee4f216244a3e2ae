"""A cluster of real brokers of one Kafka version on this machine, with ZooKeeper or with KRaft.

with cluster("2.8", brokers=3) as c:
    c.kill(2); c.restart(2); c.tool("kafka.admin.TopicCommand", "--zookeeper", c.connect, "--list")
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kctl.temporary_folder import temporary_folder
from tests.brokers.jars import classpath
from tests.brokers.metadata import named_brokers
from tests.brokers.network import QUORUM, ZOOKEEPER, Network
from tests.brokers.processes import (
    LOCAL,
    PATIENCE,
    RECORDS_CLASSES,
    JavaProcess,
    Place,
    archive_of,
    eventually,
    free_ports,
    java_command,
    keep_classes,
    tail,
    wait_for_port,
)
from tests.brokers.tools import tools_of
from tests.brokers.zookeeper import ZooKeeper

BEFORE_BROKERS_ARE_ASKED = ("0.8", "0.9")  # they do not know version 1 of Metadata
LOG4J = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.state.change.logger=TRACE
log4j.logger.kafka.controller=TRACE
log4j.logger.org.apache.zookeeper=WARN
"""
# The same for Kafka 4, which brings Log4j 2.
LOG4J2 = """rootLogger.level=INFO
rootLogger.appenderRefs=stdout
rootLogger.appenderRef.stdout.ref=stdout
appenders=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=[%d] %p %m (%c)%n
loggers=changes,controller
logger.changes.name=state.change.logger
logger.changes.level=TRACE
logger.controller.name=kafka.controller
logger.controller.level=TRACE
"""
# What a broker of KRaft ends with that nobody took in time: once more it may be.
GAVE_UP = b"Received a fatal error while waiting for the controller to acknowledge that we are caught up"
QUICK: dict[str, object] = {
    "num.network.threads": 2,
    "num.io.threads": 2,
    "offsets.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.dedupe.buffer.size": 8388608,
    "log.index.size.max.bytes": 16384,
    "replica.lag.time.max.ms": 10000,  # a slow machine's replicas are not behind, and tests do wait for the dead
    "replica.fetch.wait.max.ms": 100,
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "delete.topic.enable": "true",
    "controlled.shutdown.max.retries": 1,
    "controlled.shutdown.retry.backoff.ms": 500,
    "unclean.leader.election.enable": "false",
}


@dataclass
class BrokerProcess:
    """One broker: its folder (server.properties, data, server.log), port and process."""

    broker_id: int
    port: int
    folder: Path
    process: JavaProcess | None = None
    is_paused: bool = False
    place: Place = LOCAL
    disks: int = 1

    @property
    def log_dir(self) -> Path:
        return self.folder / "data"

    @property
    def log_dirs(self) -> list[Path]:
        """All of them, the first one first."""
        return [self.log_dir, *(self.folder / f"data-{number}" for number in range(2, self.disks + 1))]

    @property
    def log(self) -> Path:
        return self.folder / "server.log"


@dataclass
class Cluster:
    """Real brokers. `connect` is the ZooKeeper string with chroot, `bootstrap` the brokers' addresses."""

    version: str
    folder: Path
    zookeeper: ZooKeeper | None = None
    chroot: str = ""
    brokers: dict[int, BrokerProcess] = field(default_factory=dict)
    cluster_id: str | None = None
    flags: tuple[str, ...] = ()  # of the brokers' JVMs
    controllers: dict[int, BrokerProcess] = field(default_factory=dict)  # nodes of KRaft that are no brokers
    traffic: JavaProcess | None = None  # what produces through changes
    is_disturbed: bool = False  # a broker was killed, stopped or paused, and the rest may be behind
    login_ports: dict[int, int] = field(default_factory=dict)  # of brokers where users log in

    @property
    def connect(self) -> str:
        assert self.zookeeper
        return self.zookeeper.address + self.chroot

    @property
    def nodes(self) -> dict[int, BrokerProcess]:
        """Brokers and controllers."""
        return self.brokers | self.controllers

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{b.place.host}:{b.port}" for b in self.brokers.values())

    @property
    def login_bootstrap(self) -> str:
        """The listeners where users log in with SASL PLAIN, of a cluster with `users`."""
        return ",".join(f"127.0.0.1:{port}" for port in self.login_ports.values())

    # --- processes ---

    def start(self, *broker_ids: int, wait: bool = True) -> None:
        """Start brokers, all of them where none is named, and wait until they are registered."""
        chosen = [self.nodes[id] for id in broker_ids or self.nodes]
        jars = classpath(self.version)
        archive = archive_of(jars)
        is_first = archive is not None and not archive.exists()
        for broker in chosen:
            logging = (
                f"-Dlog4j.configuration=file:{self.folder}/log4j.properties",
                f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties",
            )
            recording = (RECORDS_CLASSES,) if is_first and broker is chosen[0] else ()
            command = java_command(
                jars,
                "kafka.Kafka",
                [broker.folder / "server.properties"],
                flags=(*logging, *recording, *self.flags),
            )
            broker.process = JavaProcess([*broker.place.before, *command], broker.log)
        if wait:
            self.wait_until_up([broker.broker_id for broker in chosen])
            if is_first and chosen[0].process:
                keep_classes(chosen[0].process, jars)

    def wait_until_up(self, broker_ids: Sequence[int]) -> None:
        """Until the brokers listen and, with ZooKeeper, are registered and there is a controller."""
        for id in broker_ids:
            broker = self.nodes[id]
            assert broker.process
            try:
                wait_for_port(broker.port, broker.process, host=broker.place.host)
            except AssertionError:
                if not broker.process.has_printed(GAVE_UP):
                    raise
                self.start(id, wait=False)
                wait_for_port(broker.port, broker.process, host=broker.place.host)
        if self.zookeeper is None:
            return
        with self.client() as client:
            for _ in eventually(f"brokers {list(broker_ids)} registered"):
                with contextlib.suppress(NoNodeError):
                    registered = {int(id) for id in client.get_children("/brokers/ids")}
                    if registered >= set(broker_ids) and client.exists("/controller"):
                        break
                for id in broker_ids:
                    self.nodes[id].process.require_running()  # type: ignore[union-attr]
        self._wait_until_known(set(broker_ids))

    def _wait_until_known(self, broker_ids: set[int]) -> None:
        """Until each broker that can be asked has heard of them from the controller; not for ever, for one may be cut off."""
        if self.version.startswith(BEFORE_BROKERS_ARE_ASKED):
            return
        end = time.monotonic() + PATIENCE / 12
        for broker in self.brokers.values():
            while broker.process and broker.process.is_running and not broker.is_paused:
                named = named_brokers(broker.place.host, broker.port)
                if named is None or named >= broker_ids or time.monotonic() > end:
                    break
                time.sleep(0.1)

    def kill(self, *broker_ids: int) -> None:
        """End brokers at once, as a crash does; ZooKeeper notices with `wait_until_gone`."""
        self.is_disturbed = True
        for id in broker_ids:
            process = self.nodes[id].process
            assert process
            process.kill()

    def stop(self, *broker_ids: int) -> None:
        """Controlled shutdown."""
        self.is_disturbed = True
        for id in broker_ids:
            process = self.nodes[id].process
            assert process
            process.terminate()

    def pause(self, broker_id: int) -> None:
        """Stop the process without ending it, as a long garbage collection does."""
        self.is_disturbed = True
        broker = self.nodes[broker_id]
        assert broker.process
        if self.zookeeper is not None:
            # It is registered before it is done with starting: one whose session ends on the way gives up.
            for _ in eventually(f"broker {broker_id} started"):
                if broker.process.has_printed(b"started (kafka.server."):
                    break
        broker.process.signal(signal.SIGSTOP)
        broker.is_paused = True

    def resume(self, broker_id: int) -> None:
        """Let a paused process go on."""
        broker = self.nodes[broker_id]
        assert broker.process
        broker.process.signal(signal.SIGCONT)
        broker.is_paused = False

    def restart(self, *broker_ids: int) -> None:
        """Start brokers again, killed before where they still run."""
        self.is_disturbed = True
        for id in broker_ids:
            process = self.nodes[id].process
            if process and process.is_running:
                process.kill()
                self.wait_until_gone(id)
        self.start(*broker_ids)

    def restart_zookeeper(self) -> None:
        """Kill ZooKeeper and start it again with the same data."""
        assert self.zookeeper
        self.is_disturbed = True
        self.zookeeper.restart()

    def heal(self) -> None:
        """Everything runs again: ZooKeeper, and every broker of the cluster, with its replicas in sync."""
        if self.zookeeper and not (self.zookeeper.process and self.zookeeper.process.is_running):
            self.zookeeper.start()
        for broker in self.nodes.values():
            if broker.is_paused:
                self.resume(broker.broker_id)
        dead = [b.broker_id for b in self.nodes.values() if not (b.process and b.process.is_running)]
        if dead:
            self.wait_until_gone(*dead)
            self.start(*dead)
        if self.is_disturbed:
            self.wait_until_up(list(self.nodes))
            self.wait_until_in_sync()
            self.is_disturbed = False

    def wait_until_gone(self, *broker_ids: int) -> None:
        """ZooKeeper notices that brokers do not answer: their sessions are over, and there is a controller.

        Sessions of the rig are long, so that a slow machine ends none; here their time is over at once.
        """
        if self.zookeeper is None:
            return
        others = set(self.brokers) - set(broker_ids)
        with self.client() as client:
            registered = [client.exists(f"/brokers/ids/{id}") for id in broker_ids]
            self.zookeeper.expire(*(stat.ephemeralOwner for stat in registered if stat))
            for _ in eventually(f"brokers {broker_ids} unregistered"):
                gone = not {int(id) for id in client.get_children("/brokers/ids")} & set(broker_ids)
                if gone and (client.exists("/controller") or not others):
                    return

    def wait_until_in_sync(self) -> None:
        """Until every replica on a broker of this cluster is in the ISR, and every partition is led."""
        self._wait_until_none("replicas are behind", self._behind)

    def wait_until_led(self, topic: str) -> None:
        """Until every partition of the topic is led by a broker that is there."""
        self._wait_until_none("partitions are not led", partial(self._leaderless, topic))

    def _wait_until_none(self, wrong: str, found_by: Callable[[KazooClient], list[str]]) -> None:
        if self.zookeeper is None:
            return
        found: list[str] = []
        hopeless = time.monotonic() + PATIENCE / 12
        with self.client() as client:
            for _ in eventually(lambda: f"no {wrong}: {found[:10]}"):
                found[:] = found_by(client)
                if not found:
                    return
                if time.monotonic() > hopeless:
                    # Seen of 1.1 and 2.8: the controller elected nobody and does not try again, or one that was deposed
                    # wrote a leader's epoch that the brokers never heard of. The next one sends them everything.
                    with contextlib.suppress(NoNodeError):
                        client.delete("/controller")
                    hopeless = time.monotonic() + PATIENCE / 4

    def _leaderless(self, topic: str, client: KazooClient) -> list[str]:
        here = {int(id) for id in client.get_children("/brokers/ids")}
        partitions = client.get_children(f"/brokers/topics/{topic}/partitions")
        states = {n: client.get(f"/brokers/topics/{topic}/partitions/{n}/state")[0] for n in partitions}
        return [f"{topic}-{n}" for n, state in states.items() if json.loads(state)["leader"] not in here]

    def _behind(self, client: KazooClient) -> list[str]:
        """Partitions with replicas here that are not in the ISR, or without a leader."""
        found: dict[str, Any] = {}
        topics = client.get_children("/brokers/topics")
        going = set(client.get_children("/admin/delete_topics"))
        for topic, result in [
            (t, client.get_async(f"/brokers/topics/{t}")) for t in topics if t not in going
        ]:
            with contextlib.suppress(NoNodeError, ValueError):
                for partition, ids in json.loads(result.get()[0])["partitions"].items():
                    if set(ids) & set(self.brokers):
                        state = f"/brokers/topics/{topic}/partitions/{partition}/state"
                        found[f"{topic}-{partition}"] = set(ids) & set(self.brokers), client.get_async(state)
        behind = []
        for name, (ids, result) in found.items():
            try:
                state = json.loads(result.get()[0])
            except NoNodeError:
                behind.append(f"{name} never had a leader")
                continue
            if state["leader"] not in self.brokers or not ids <= set(state["isr"]):
                behind.append(f"{name} led by {state['leader']}, in sync {state['isr']} of {sorted(ids)}")
        return behind

    def close(self) -> None:
        """End everything, without ceremony."""
        for broker in self.nodes.values():
            if broker.process:
                broker.process.kill()
        if self.traffic:
            self.traffic.kill()
        if self.zookeeper:
            self.zookeeper.stop()

    # --- looking and writing past kctl ---

    @contextlib.contextmanager
    def client(self, chroot: str | None = None) -> Iterator[KazooClient]:
        """A kazoo client in the cluster's chroot, for tests that look or write past kctl."""
        assert self.zookeeper
        client = self.zookeeper.client(self.chroot if chroot is None else chroot)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def znode(self, path: str) -> Any:
        """A znode's JSON, its text where it is none; None where there is no such znode."""
        with self.client() as client:
            try:
                data, _ = client.get(path)
            except NoNodeError:
                return None
        try:
            return json.loads(data)
        except ValueError:
            return (data or b"").decode()

    def controller(self) -> int | None:
        """The broker id of the controller."""
        found = self.znode("/controller")
        return found["brokerid"] if found else None

    def tool(
        self, main: str, *args: object, check: bool = True, timeout: float = PATIENCE, version: str = ""
    ) -> str:
        """Run one of Kafka's own tools, of the cluster's version or another; what it printed on both streams."""
        status, said = tools_of(version or self.version).run(main, args, timeout)
        if check and status:
            raise AssertionError(f"{main} ended with {status}: {said[-3000:]}")
        return said

    def create_topic(self, topic: str, replicas: Sequence[Sequence[int]], **configs: object) -> None:
        """A topic with these replicas, written past kctl as Kafka's own tool does, and waited for."""
        with self.client() as client:
            config = {key.replace("_", "."): str(value) for key, value in configs.items()}
            write = json.dumps({"version": 1, "config": config}).encode()
            path = f"/config/topics/{topic}"
            client.set(path, write) if client.exists(path) else client.create(path, write, makepath=True)
            partitions = {str(p): list(ids) for p, ids in enumerate(replicas)}
            client.create(
                f"/brokers/topics/{topic}", json.dumps({"version": 1, "partitions": partitions}).encode()
            )
            for _ in eventually(f"topic {topic} has leaders"):
                if all(self._has_leader(client, topic, p) for p in range(len(replicas))):
                    return

    @staticmethod
    def _has_leader(client: KazooClient, topic: str, partition: int) -> bool:
        try:
            data, _ = client.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
        except NoNodeError:
            return False
        return json.loads(data)["leader"] >= 0


@contextlib.contextmanager
def cluster(
    version: str,
    brokers: int = 3,
    *,
    first_id: int = 1,
    zookeeper: str | None = None,
    chroot: str = "/kafka",
    racks: Mapping[int, str] | None = None,
    properties: Mapping[str, object] | None = None,
    zookeeper_settings: Mapping[str, object] | None = None,
    zookeeper_flags: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    login: Mapping[str, Any] | None = None,
    disks: int = 1,
    network: Network | None = None,
    before: Mapping[int, tuple[str, ...]] | None = None,
    users: Sequence[str] = (),
) -> Iterator[Cluster]:
    """A running cluster with ZooKeeper; ended, and its data removed, with the block.

    `zookeeper` is the Kafka version whose ZooKeeper serves (default: the same; "3.9" has multiRead).
    `login` is what kazoo's clients of the tests need to be let in. With a `network` every process has an address of its
    own there. `before` stands before the command line of a broker. `users` are as in `kraft_cluster`.
    """
    with _folder() as folder:
        server = ZooKeeper(
            folder / "zookeeper",
            zookeeper or version,
            settings=zookeeper_settings,
            flags=zookeeper_flags,
            place=network.place(ZOOKEEPER) if network else LOCAL,
        )
        c = Cluster(version, folder, server, chroot, flags=flags)
        server.login = dict(login or {})
        try:
            server.start()
            if chroot:
                with contextlib.closing(server.client()) as client:
                    client.ensure_path(chroot)
                    client.stop()
            ids = range(first_id, first_id + brokers)
            for id, port in zip(ids, free_ports(brokers), strict=True):
                settings = {
                    "broker.id": id,
                    "zookeeper.connect": c.connect,
                    # Long, since a slow machine is no dead one: `wait_until_gone` ends sessions of the dead.
                    "zookeeper.session.timeout.ms": 30000,
                    **({"broker.rack": racks[id]} if racks else {}),
                    **(properties or {}),
                }
                place = _place(network, id, before)
                listen = f"PLAINTEXT://{place.host}:{port}"
                settings |= (
                    {"port": port, "host.name": "127.0.0.1", "advertised.host.name": "127.0.0.1"}
                    if version == "0.8.2"
                    else {"listeners": settings.get("listeners", listen)}
                )
                if users:
                    settings |= {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
                    settings |= _logins(c, id, users, settings)
                _add_broker(c, id, port, settings, disks, place)
            c.start()
            yield c
        finally:
            c.close()


@contextlib.contextmanager
def kraft_cluster(
    version: str,
    brokers: int = 3,
    *,
    properties: Mapping[str, object] | None = None,
    no_voters: Sequence[int] = (),
    controllers: int = 0,
    dynamic: bool = False,
    disks: int = 1,
    flags: tuple[str, ...] = (),
    network: Network | None = None,
    before: Mapping[int, tuple[str, ...]] | None = None,
    users: Sequence[str] = (),
) -> Iterator[Cluster]:
    """A running KRaft cluster of combined nodes 1, 2, ...; ended, and its data removed, with the block.

    `no_voters` are brokers alone. With `controllers` all brokers are, and nodes 101, 102, ... vote; `dynamic`: as a
    set of voters that can be changed (KIP-853). Each broker has so many log directories. `network` and `before` are as
    in `cluster`. `users`, their passwords their names, have the rights that ACLs give them, at a listener of their own; at
    the other one everything is allowed.
    """
    with _folder() as folder:
        c = Cluster(version, folder, cluster_id=_random_id(), flags=flags)
        apart = [100 + number for number in range(1, controllers + 1)]
        ids = [*range(1, brokers + 1), *apart]
        voting = apart or [id for id in ids if id not in no_voters]
        ports = free_ports(2 * len(ids))
        clients, quorum = dict(zip(ids, ports, strict=False)), dict(zip(ids, reversed(ports), strict=False))
        hosts = {id: network.host(id, QUORUM) if network else "127.0.0.1" for id in voting}
        at = {id: f"{hosts[id]}:{quorum[id]}" for id in voting}
        known = (
            {"controller.quorum.bootstrap.servers": ",".join(at.values())}
            if dynamic
            else {"controller.quorum.voters": ",".join(f"{id}@{where}" for id, where in at.items())}
        )
        first = ",".join(f"{id}@{where}:{_random_id()}" for id, where in at.items())
        try:
            for id in ids:
                place = _place(network, id, before)
                client = f"PLAINTEXT://{place.host}:{clients[id]}"
                roles = ["broker"] * (id not in apart) + ["controller"] * (id in voting)
                listeners = [client] * (id not in apart) + [f"CONTROLLER://{at.get(id)}"] * (id in voting)
                settings: dict[str, object] = {
                    "node.id": id,
                    "process.roles": ",".join(roles),
                    **known,
                    "controller.listener.names": "CONTROLLER",
                    "listeners": ",".join(listeners),
                    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                    "broker.session.timeout.ms": 3000,
                    "broker.heartbeat.interval.ms": 500,
                    # Of a minute a slow machine needs more until there is a controller to register with: a broker then
                    # gives up (BrokerLifecycleManager.RegistrationTimeoutEvent).
                    "initial.broker.registration.timeout.ms": 180_000,
                    **({} if id in apart else {"advertised.listeners": client}),
                    **(properties or {}),
                }
                if users:
                    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
                    settings |= {"authorizer.class.name": name, "super.users": "User:ANONYMOUS"}
                    settings |= {} if id in apart else _logins(c, id, users, settings)
                if id in apart:
                    _add_broker(c, id, quorum[id], settings, 1, place._replace(host=hosts[id]))
                else:
                    _add_broker(c, id, clients[id], settings, disks, place)
                if id in apart:
                    c.controllers[id] = c.brokers.pop(id)
            how: dict[int, tuple[str, ...]] = {}
            if dynamic:
                how = {
                    id: ("--initial-controllers", first) if id in voting else ("--no-initial-controllers",)
                    for id in ids
                }
            threads = [
                threading.Thread(target=_format, args=(c, node, *how.get(id, ())))
                for id, node in c.nodes.items()
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            c.start()
            yield c
        finally:
            c.close()


def _logins(c: Cluster, id: int, users: Sequence[str], settings: Mapping[str, object]) -> dict[str, object]:
    """Settings of a second listener of a broker, where these users log in."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    names = " ".join(f'user_{user}="{user}"' for user in users)
    (c.login_ports[id],) = free_ports(1)
    at = f"LOGIN://127.0.0.1:{c.login_ports[id]}"
    kinds = settings.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
    advertised = settings.get("advertised.listeners", settings["listeners"])
    return {
        "listeners": f"{settings['listeners']},{at}",
        "advertised.listeners": f"{advertised},{at}",
        "listener.security.protocol.map": f"{kinds},LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f"{module} required {names};",
        "super.users": "User:ANONYMOUS",
    }


def _random_id() -> str:
    """An id in Kafka's form; one that begins with a dash would be an option of Kafka's tools."""
    return urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).decode().rstrip("=")


def _format(c: Cluster, node: BrokerProcess, *how: str) -> None:
    properties = node.folder / "server.properties"
    c.tool("kafka.tools.StorageTool", "format", "-t", c.cluster_id, "-c", properties, *how)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A cluster's folder; those of runs that were killed go as it is made."""
    with temporary_folder("test-cluster") as folder:
        (folder / "log4j.properties").write_text(LOG4J)
        (folder / "log4j2.properties").write_text(LOG4J2)
        yield folder


def _place(network: Network | None, id: int, before: Mapping[int, tuple[str, ...]] | None) -> Place:
    place = network.place(id) if network else LOCAL
    return place._replace(before=(*place.before, *(before or {}).get(id, ())))


def _add_broker(
    c: Cluster, id: int, port: int, settings: Mapping[str, object], disks: int, place: Place
) -> None:
    folder = c.folder / f"broker-{id}"
    folder.mkdir()
    broker = BrokerProcess(id, port, folder, place=place, disks=disks)
    values = {**QUICK, "log.dirs": ",".join(map(str, broker.log_dirs)), **settings}
    (folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    c.brokers[id] = broker


__all__ = ["BrokerProcess", "Cluster", "cluster", "eventually", "kraft_cluster", "tail"]
