"""A day's work of an administrator: users, rules, quotas and tokens, each step as Kafka's tools list it, and taken back."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import pytest

from tests.brokers.access.conftest import KINDS, MODULE, Guarded
from tests.brokers.access.test_acls import TOLD, listed
from tests.brokers.access.test_tokens import Login, by_kafka, may_log_in_by, properties, times_by_kafka
from tests.brokers.access.test_tokens import listed as tokens_of
from tests.brokers.access.test_users import OTHER, SECRET, left_behind, may_log_in
from tests.brokers.processes import PATIENCE, eventually
from tests.brokers.running import Kctl
from tests.brokers.tools import Tools
from tests.brokers.wire.conftest import fill
from tests.conftest import HERE, Ran

pytestmark = pytest.mark.brokers
Entity = tuple[tuple[str, str], ...]
ENTITIES = {
    "user-principal": "user",
    "client-id": "client_id",
    "ip": "ip",
}


USERS, CLIENTS, BOTH, IPS = ("users",), ("clients",), ("users", "clients"), ("ips",)


def by_kafka_configs(
    guarded: Guarded, *kinds: tuple[str, ...]
) -> tuple[dict[str, dict[str, int]], dict[tuple[Entity, str], float]]:
    """Users with the iterations of their mechanisms, and quotas of users and clients, as kafka-configs lists them."""
    where: tuple[object, ...] = ("--bootstrap-server", guarded.cluster.bootstrap)
    if guarded.is_before_protocol:
        where = ("--zookeeper", guarded.cluster.connect)
    users: dict[str, dict[str, int]] = {}
    quotas: dict[tuple[Entity, str], float] = {}
    for types in kinds or (USERS, CLIENTS, BOTH):
        args = [word for type in types for word in ("--entity-type", type)]
        text = guarded.cluster.tool("kafka.admin.ConfigCommand", *where, "--describe", *args)
        for entity, values in re.findall(r"onfigs for (.*?) are (.*)", text):
            named = re.findall(r"((?:the )?default )?(user-principal|client-id|ip)(?: '([^']*)')?", entity)
            key = tuple(
                (ENTITIES[kind], name if not default else "<default>") for default, kind, name in named
            )
            mechanisms = re.findall(r"(SCRAM-SHA-\d+)=\S*?iterations=(\d+)", values)
            if mechanisms:
                users[key[0][1]] = {mechanism: int(count) for mechanism, count in mechanisms}
            for quota, value in re.findall(r"\b([a-z_]+_(?:rate|percentage))=([\d.E]+)", values):
                quotas[key, quota] = float(value)
    return users, quotas


def quotas_by_kctl(k: Kctl) -> dict[tuple[Entity, str], float]:
    """The same of kctl, without addresses."""
    return {
        (
            tuple((kind, row[kind]) for kind in ("user", "client_id") if row[kind] is not None),
            row["key"],
        ): row["value"]
        for row in k("quota", "list").of("quota")
        if row["ip"] is None
    }


@contextmanager
def watched(*secrets: str) -> Iterator[list[str]]:
    """The command lines of processes that hold a secret during the block."""
    seen: list[str] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = file.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                except OSError:
                    continue
                if any(secret in line for secret in secrets):
                    seen.append(line)
            time.sleep(0.02)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


@dataclass
class Day:
    """The administrator's kctl. With points each step is killed at the next of them, and gone on with."""

    guarded: Guarded
    k: Kctl
    points: Iterator[str] | None
    printed: list[str] = field(default_factory=list)
    killed: int = 0

    def do(self, *args: object, status: int = 0, about: str = "") -> Ran:
        """A step, with the status that it ends with in the end; `about`: what of it Kafka's tools list."""
        ran = self._do(args, status)
        self.printed += [ran.out.decode(), ran.err]
        assert ran.status == status, (args, ran.status, ran.err)
        if status == 0:
            self.require_the_same(about or str(args[0]))
        return ran

    def _do(self, args: tuple[object, ...], status: int) -> Ran:
        if self.points is None or status:
            return self.k(*args, "--yes", "--timeout", "60")
        before = len(self.k.ids())
        if not self.k.killed(*args, fault=next(self.points)):
            return self.k("journal", "list")
        self.killed += 1
        if len(self.k.ids()) == before:
            return self.k(*args, "--yes", "--timeout", "60")
        ran = self.k("journal", "resume", self.k.ids()[-1], "--yes", "--timeout", "60")
        if "is finished" in ran.err:
            return self.k("journal", "list")
        if "the password is not in the journal" in ran.err:
            return self.k(*args, "--yes", "--timeout", "60")
        return ran

    def require_the_same(self, about: str) -> None:
        """What kctl lists of rules, users, quotas or tokens is what Kafka's tools list."""
        if about == "token":
            require_the_same_tokens(self.guarded, self.k)
            return
        if about == "acl":
            assert listed(self.k("acl", "list")) == self.guarded.acls_by_kafka()
            return
        users, quotas = by_kafka_configs(self.guarded, *((USERS,) if about == "user" else ()))
        shown: dict[str, dict[str, int]] = {}
        for row in self.k("user", "list").of("user"):
            shown.setdefault(row["name"], {})[row["mechanism"]] = row["iterations"]
        assert shown == users
        if about == "quota":
            assert quotas_by_kctl(self.k) == quotas


def require_the_same_tokens(guarded: Guarded, owner: Kctl) -> None:
    """A user's tokens are those that Kafka's tool lists: ids, owners, renewers and times."""
    assert isinstance(owner, Login)
    login = properties(owner.journal.parent, owner.user, owner.password)
    shown = tokens_of(owner)
    assert {id: (row["owner"], set(row["renewers"])) for id, row in shown.items()} == by_kafka(guarded, login)
    keys = ("issue_timestamp", "expiry_timestamp", "max_timestamp")
    times = {
        id: [time.strftime("%Y-%m-%dT%H:%M", time.localtime(row[key] // 1000)) for key in keys]
        for id, row in shown.items()
    }
    assert times == times_by_kafka(guarded, login)


def works(guarded: Guarded, user: str, password: str, topic: str, folder: Path, seconds: float) -> bool:
    """Whether a real client of the user writes a record to the topic and reads it, in a group that is called as it is.

    With 0.11 it only reads.
    """
    if guarded.is_before_protocol:
        return reads_with_kafka(guarded, user, password, topic, folder)
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    login = {
        "bootstrap_servers": guarded.sasl, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": user, "sasl_plain_password": password, "bootstrap_timeout_ms": 10_000,
    }  # fmt: skip
    try:
        producer = KafkaProducer(**login, enable_idempotence=False, max_block_ms=10_000, retries=0)
        try:
            producer.send(topic, b"record").get(timeout=15)
        finally:
            producer.close()
        consumer = KafkaConsumer(
            topic, **login, group_id=topic, auto_offset_reset="earliest", enable_auto_commit=False,
            consumer_timeout_ms=round(seconds * 1000),
        )  # fmt: skip
        try:
            return next(consumer, None) is not None
        finally:
            consumer.close()
    except KafkaError:
        return False


def reads_with_kafka(guarded: Guarded, user: str, password: str, topic: str, folder: Path) -> bool:
    """Whether Kafka's own client reads a record: kafka-python cannot log in to 0.11."""
    file = folder / f"{user}.properties"
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\ngroup.id={topic}\nenable.auto.commit=false\n"
        f'sasl.jaas.config={MODULE} required username="{user}" password="{password}";\n'
    )
    args = (
        "--bootstrap-server", guarded.sasl, "--topic", topic, "--from-beginning",
        "--max-messages", 1, "--timeout-ms", 15_000, "--consumer.config", file,
    )  # fmt: skip
    own = Tools(guarded.cluster.version)  # the tool counts what all its runs in one Java read
    try:
        _, said = own.run("kafka.tools.ConsoleConsumer", args, PATIENCE)
    finally:
        own.end()
    return "Processed a total of 1 messages" in said


def new_token(day: Day, args: tuple[str, ...]) -> tuple[str, str]:
    """A token and its secret. Where its creation is killed nobody sees the secret: it is taken back, and another is created."""
    owner, point = day.k, next(day.points) if day.points else ""
    if point and owner.killed(*args, fault=point):
        day.killed += 1
        is_sent = point not in ("journalled", "before-write:0")
        for _ in eventually("the broker shows the token"):
            if len(tokens_of(owner)) == is_sent:
                break
        ran = owner("journal", "resume", owner.ids()[-1], "--yes", "--timeout", "60")
        assert ran.status in ((4, 5) if is_sent else (4,)), ran.err
        assert ("told once" if is_sent else "its secret is for the one who creates it") in ran.err
    if point:
        day.printed.append(owner.change("journal", "undo", owner.ids()[-1]).err)
        assert tokens_of(owner) == {}
    ran = owner.change(*args)
    require_the_same_tokens(day.guarded, owner)
    (issued,) = ran.of("issued_token")
    return issued["token_id"], issued["hmac"]


def work_with_tokens(day: Day, owner: Login, folder: Path) -> None:
    """A user's token from its creation to its end, each step compared with Kafka's tool; a client logs in with it."""
    mine = Day(day.guarded, owner, day.points, day.printed)
    id, secret = new_token(mine, ("token", "create", "--renewer", f"User:{owner.user}-2", "--lifetime", "5h"))
    if day.points is None:
        assert may_log_in_by(day.guarded, folder, id, secret)
    (former,) = tokens_of(owner).values()
    mine.do("token", "renew", id, "--for", "1h")
    mine.do("journal", "undo", owner.ids()[-1], about="token")
    assert abs(tokens_of(owner)[id]["expiry_timestamp"] - former["expiry_timestamp"]) < 60_000
    mine.do("token", "expire", id, "--after", "2h")
    mine.do("token", "renew", id, "--for", "3h")
    mine.do("token", "expire", id)
    assert tokens_of(owner) == {}
    ran = mine.do("journal", "undo", owner.ids()[-1], status=4)
    assert "does not come back" in ran.err
    if day.points is None:
        assert not may_log_in_by(day.guarded, folder, id, secret)
    day.killed += mine.killed
    assert left_behind(owner.journal, SECRET, OTHER, secret) == []
    shown = [owner("journal", "show", id).out.decode() for id in owner.ids()]
    assert not [text for text in (*shown, *mine.printed) if secret in text]


def work(day: Day, name: str, folder: Path) -> None:
    """The day: each step compared with Kafka's tools, then all of it taken back. A client tries it where none is killed."""
    guarded, k = day.guarded, day.k
    app, topic = f"{name}-app", f"{name}-orders"

    def require_client(password: str, works_now: bool) -> None:
        if day.points is None:
            for _ in eventually(f"what the client may do is {works_now}"):
                if works(guarded, app, password, topic, folder, 15.0 if works_now else 3.0) == works_now:
                    break

    file = folder / "given"
    file.write_text(f"{SECRET}\n")
    rules, (users, quotas) = guarded.acls_by_kafka(), by_kafka_configs(guarded)
    k.change("topic", "create", topic, "--partitions", "1", "--replication-factor", "1")
    if guarded.is_before_protocol:
        fill(guarded.cluster, topic, records=1)
    first = len(k.ids())

    day.do("user", "create", app, "--password-file", file)
    assert may_log_in(guarded, app, SECRET, "SCRAM-SHA-512")
    require_client(SECRET, False)
    access = ("--principal", f"User:{app}", "--topic", topic)
    day.do("acl", "create", *access, "--producer", *TOLD)
    day.do("acl", "create", *access, "--consumer", "--group", topic, *TOLD)
    require_client(SECRET, True)

    file.write_text(f"{OTHER}\n")
    day.do("user", "set-password", app, "--password-command", f"cat {file}", "--iterations", "8192")
    require_client(OTHER, True)
    assert not may_log_in(guarded, app, SECRET, "SCRAM-SHA-512", seconds=2)
    if not guarded.is_before_protocol:  # tokens came with 1.1
        own = Login(guarded.cluster, folder / "own" / "journal", guarded.sasl, app, OTHER)
        work_with_tokens(day, own, folder)
    day.do("acl", "create", *access, "--operation", "all", "--deny", *TOLD)
    require_client(OTHER, False)
    day.do("journal", "undo", k.ids()[-1], about="acl")
    require_client(OTHER, True)

    day.do("acl", "copy", f"User:{app}", f"User:{app}-2", *TOLD)
    day.do("quota", "set", "--user", app, "producer_byte_rate=1048576", "request_percentage=50")
    day.do("quota", "set", "--user", app, "--client-id", "<default>", "consumer_byte_rate=1000")
    day.do("quota", "unset", "--user", app, "request_percentage")

    everyone = ("--super-user", "User:ANONYMOUS", "--allow-everyone")
    ran = day.do(
        "acl", "create", "--principal", f"User:{app}", "--topic", f"first-{name}", *everyone, status=4
    )
    assert "rules for the first time" in ran.err and "nothing was written" in ran.err
    ran = day.do("user", "create", app, "--password-file", file, status=4)
    assert "already" in ran.err

    for id in reversed(k.ids()[first:]):
        shown = k("journal", "show", id)
        day.printed.append(shown.out.decode())
        (change,) = shown.of("change")
        # What was never sent, since its password is not kept, was done by another change.
        if change["state"] in ("undone", "planned") or change["undoes"]:
            continue
        # The former password is not kept; and with the new one the credentials are not those that were created.
        is_final = "password" in change["title"] or "credentials" in change["title"]
        kind = shown.of("change_stage")[0]["intent"]
        about = "acl" if "rule" in kind or "allow" in kind else "quota"
        day.do("journal", "undo", id, status=4 if is_final else 0, about=about)
    day.do("user", "delete", app)
    assert guarded.acls_by_kafka() == rules and by_kafka_configs(guarded) == (users, quotas)
    assert not may_log_in(guarded, app, OTHER, "SCRAM-SHA-512", seconds=2)
    if not guarded.is_before_protocol:  # it deletes no topic by default
        k.change("topic", "delete", topic)


def test_a_day(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    day = Day(guarded, k, None)
    with watched(SECRET, OTHER) as processes:
        work(day, name, tmp_path)
        # As a process of its own, whose command line others see.
        file = tmp_path / "given"
        file.write_text(f"{SECRET}\n")
        command = [
            sys.executable,
            "-m",
            "commands",
            "user",
            "create",
            f"{name}-b",
            "--password-file",
            file,
            "--yes",
        ]
        ran = subprocess.run(
            command, env={"PYTHONPATH": str(HERE.parent), "PATH": "/usr/bin:/bin", **k.environment},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    day.printed += [ran.stdout, ran.stderr]
    k.change("user", "delete", f"{name}-b")
    assert processes == []
    assert not [text for text in day.printed if SECRET in text or OTHER in text]
    assert left_behind(k.journal, SECRET, OTHER) == []


POINTS = (
    "journalled",
    "before-write:0",
    "sent:1",
    "after-write:0",
    "written:0",
    "finished:0",
    "applied",
    "closed",
)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first in (0, 3, 6) else pytest.mark.matrix)
        for first in range(len(POINTS))
    ],
)
@pytest.mark.parametrize(
    "guarded",
    [pytest.param(kind, marks=() if kind == "kraft-4.3" else pytest.mark.matrix) for kind in KINDS],
    indirect=True,
)
def test_a_day_killed_at_every_step(guarded: Guarded, k: Kctl, name: str, tmp_path: Path, first: int) -> None:
    """Each step is killed at one point, the next step at the next; the lists are the same all the same."""
    day = Day(guarded, k, cycle((*POINTS[first:], *POINTS[:first])))
    work(day, name, tmp_path)
    assert day.killed >= 6
    assert not [text for text in day.printed if SECRET in text or OTHER in text]
    assert left_behind(k.journal, SECRET, OTHER) == []
