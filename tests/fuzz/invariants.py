"""What holds whatever the bytes are: `hold(format, data, folder)` raises for a file that kctl does not survive.

Every command may end in any of its statuses but 1: kctl runs in this process, where a bug is an exception that
comes through. Rows are held against their schemas. `ORIGINALS` are the files that mutation starts from.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

import commands.audit
from formats.log.records import LogEntry, walk
from kctl.changes.apply import ChangeRun, apply, deadline, resume
from kctl.changes.entry import new_entry
from kctl.changes.journal import Journal
from kctl.changes.undo import plan_undo
from kctl.errors import KctlError
from kctl.operations.topics import NewTopic, plan_creation
from kctl.scan import pool
from kctl.scan.splits import Split
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.audit_rows import equal_audits
from tests.commands.test_remote_audit import as_aiven
from tests.conftest import kctl, recording, rows
from tests.fakes import add_topic, fake_cluster, obedient_controller
from tests.kctl.checks.test_parallel import cut, in_order
from tests.kctl.scan.test_segment import all_records, items_of_scan, log, readable_records, small_blocks
from tests.kctl.scan.test_splits import boundaries, by_place, idempotent, scanned
from tests.log_examples import LOG

STATUSES = (0, 2, 3, 4, 5)
SEGMENT = f"{0:020d}"
SOMETIMES = 0.05
"""How many of the cases of a format are asked in every way, which takes longer than all other questions."""


def run(*args: object, **options: object) -> None:
    """A command as text and as rows: neither is a bug, and rows have their schema."""
    for ran in (rows(*args, **options), kctl(*args, **options)):
        assert ran.status in STATUSES, (args, ran.status, ran.err)
        assert ran.status in (0, 5) or ran.err or ran.out, f"{args} failed without a word"


# --- every way to the same answer ---------------------------------------------------------------------


class Executors:
    """An engine as Spark is one: functions, items and results leave the process and come back, as bytes."""

    cores = 2
    doing = ""
    retries = None

    def ordered(self, function: Callable[..., object], items: Iterable[object]) -> Iterator[object]:
        """function(item) for each item, in order."""
        sent = pickle.dumps(function)
        for item in items:
            yield pickle.loads(pickle.dumps(pickle.loads(sent)(pickle.loads(pickle.dumps(item)))))


@contextmanager
def executors(*_: object) -> Iterator[Executors]:
    """In the place of `commands.audit._engine`."""
    yield Executors()


def same_answer(evidence: Path, folder: Path, seed: int) -> None:
    """Logs whole and cut, one process and two, this machine and executors: all of them find the same."""

    def verified(jobs: int) -> list[str]:
        ran = rows("segment", "verify", "--jobs", jobs, evidence)
        return in_order([{**row, "seconds": None} for row in ran.rows])

    alone = verified(1)
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, seed)
        assert verified(1) == alone, "cut logs find something else"
    with pytest.MonkeyPatch.context() as patch:
        cut(patch, seed, sent=False)
        patch.setattr(pool, "ALONE_FOR", -1.0)
        assert verified(2) == alone, "two processes find something else"
    words = ("audit", "run", evidence, "--no-sha256", "--out")
    local = rows(*words, folder / "local", "--jobs", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands.audit, "_engine", executors)
        sent = rows(*words, folder / "sent")
    assert (local.status, local.err) == (sent.status, sent.err), "engines end differently"
    assert local.status in STATUSES, local.err
    equal_audits(folder / "local", folder / "sent")


# --- segments -----------------------------------------------------------------------------------------


def segment(data: bytes, folder: Path) -> None:
    """A scan is the walk, bytes add up, cuts and small blocks change nothing, damage spares what is beside it."""
    whole, _ = items_of_scan(data)
    walked = [
        (item.position, item.size_in_bytes, item.crc_valid if isinstance(item, LogEntry) else item.reason)
        for item in walk(data)
    ]
    assert whole == walked, "a scan finds what the walk does not"
    with small_blocks(1 << 12):
        assert items_of_scan(data)[0] == whole, "small blocks find something else"
    assert list(all_records(data)) == list(readable_records(data)), "records differ"
    rng = Random(crc32(data))
    places = boundaries(data)
    cuts = sorted({rng.choice(places) for _ in range(3)}) if places else []
    parts = [Split(start, end) for start, end in pairwise([0, *cuts, len(data)])]
    one, several = scanned(data, [Split(0, len(data))]), scanned(data, parts)
    assert (by_place(one[0]), *one[1:]) == (by_place(several[0]), *several[1:]), f"cut at {cuts}"
    intact_beside_damage(data, whole, rng)
    file = folder / "orders-0" / f"{SEGMENT}.log"
    file.parent.mkdir()
    file.write_bytes(data)
    run("segment", "verify", "--jobs", 1, file.parent)
    run("segment", "dump", "--records", file)
    run("segment", "dump", "--records", "--from-offset", 3, "--to-time", 1_700_000_050_000, file)
    run("segment", "dump", "--keys", "json", "--values", "base64", "--records", "--limit", 9, file)
    kctl("segment", "dump", "--format", "kafka", "--records", file)
    run("segment", "rebuild", "--check", file.parent)
    if rng.random() < SOMETIMES:
        same_answer(folder / "orders-0", folder, rng.randrange(100))


def intact_beside_damage(data: bytes, items: list[tuple[object, ...]], rng: Random) -> None:
    """Batches before a byte that changes are found as they were."""
    if not data:
        return
    at = rng.randrange(len(data))
    harmed = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    before = [item for item in items if int(str(item[0])) + int(str(item[1])) <= at and item[2] is True]
    found = set(items_of_scan(harmed)[0])
    lost = [item for item in before if item not in found]
    assert not lost, f"a bit at {at} hides {lost}"


# --- files beside segments ----------------------------------------------------------------------------

CLEAN = "data-clean/broker-11/logdir-0"
TXN = "txn-mix-0"
BESIDE = {
    "index": f"{TXN}/{SEGMENT}.index",
    "timeindex": f"{TXN}/{SEGMENT}.timeindex",
    "txnindex": f"{TXN}/{SEGMENT}.txnindex",
    "snapshot": f"{TXN}/{108:020d}.snapshot",
    "epochs": f"{TXN}/leader-epoch-checkpoint",
    "partition-metadata": f"{TXN}/partition.metadata",
    "checkpoint": "replication-offset-checkpoint",
    "meta-properties": "meta.properties",
}


def log_dir(folder: Path) -> Path:
    """A log directory with one partition, to be written to."""
    source = recording("segments/2.8.2") / CLEAN
    shutil.copytree(source / TXN, folder / "data" / TXN)
    for path in source.iterdir():
        if path.is_file():
            shutil.copy(path, folder / "data" / path.name)
    return folder / "data"


def beside(name: str) -> Callable[[bytes, Path], None]:
    """A file of a log directory: the log stays sound, and every command that reads the file ends well."""

    def holds(data: bytes, folder: Path) -> None:
        place = log_dir(folder)
        path = place / BESIDE[name]
        path.chmod(0o644)
        path.write_bytes(data)
        if name == "checkpoint":
            for other in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
                shutil.copy(path, place / other)
        ran = rows("segment", "verify", "--jobs", 1, place)
        (log_row,) = [row for row in ran.of("file") if str(row["file"]).endswith(".log")]
        assert log_row["damaged_bytes"] == 0, "damage beside a log is not damage of the log"
        for row in ran.of("file"):
            assert 0 <= row["damaged_bytes"] <= row["size_in_bytes"], row
        kctl("segment", "verify", "--jobs", 1, place)
        run("segment", "dump", path)
        kctl("segment", "dump", "--format", "kafka", path)
        run("segment", "rebuild", "--check", place)
        run("segment", "dump", "--records", "--from-offset", 50, place / TXN / f"{SEGMENT}.log")
        run("epoch", "show", place)
        if Random(crc32(data)).random() < SOMETIMES:
            same_answer(place, folder, crc32(data))
        if name in ("epochs", "checkpoint"):
            run("checkpoint", "show", path)
            run("epoch", "end-offset", "--epoch", 1, place)
            run("replica", "loss", place)

    return holds


# --- objects of a tier --------------------------------------------------------------------------------

TIERED, HARMED = "audit-0-6ziykJOWR_-SO9VLnxPpjA", f"{22:020d}-tLhv2jgWSi2wuLPrGxIGqg"
OBJECTS = {
    **{f"tier-{suffix}": suffix for suffix in ("log", "index", "timeindex", "txnindex", "snapshot", "leader_epoch_checkpoint")},
    **{f"aiven-{suffix}": suffix for suffix in ("log", "indexes", "rsm-manifest")},
}  # fmt: skip
"""Every kind of object that Kafka's own plug-in and Aiven's store, by the format's name here."""


@cache
def tiered(layout: str) -> Path:
    """Evidence of one partition whose segments are in a tier; never written to."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{layout}-"))
    source = recording("tier/a-healthy")
    for name in ("audit-0", "__remote_log_metadata-4"):
        shutil.copytree(source / "brokers/1/data" / name, folder / "broker-1/data" / name)
    objects = source / "tier/kafka-tiered-storage" / TIERED
    if layout == "tier":
        shutil.copytree(objects, folder / "tier" / TIERED)
    else:
        shutil.copytree(objects, folder / "as-kafka" / TIERED)
        as_aiven(folder / "as-kafka", folder / "tier", compressed=True)
        shutil.rmtree(folder / "as-kafka")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def harmed_object(evidence: Path, name: str) -> Path:
    """The object of this kind that is mutated."""
    (path,) = (evidence / "tier").rglob(f"{HARMED}.{OBJECTS[name]}")
    return path


def tier_object(name: str) -> Callable[[bytes, Path], None]:
    """An object of a tier: only its own segment is called damaged, and what reads objects ends well."""

    def holds(data: bytes, folder: Path) -> None:
        evidence = folder / "evidence"
        shutil.copytree(tiered(name.partition("-")[0]), evidence)
        path = harmed_object(evidence, name)
        path.chmod(0o644)
        path.write_bytes(data)
        brokers, tier = evidence / "broker-1", ("--tier", evidence / "tier")
        ran = rows("remote", "audit", brokers, *tier)
        assert ran.status in STATUSES, ran.err
        for finding in ran.of("finding"):  # the metadata name other partitions as well, which are not here
            is_ours = (finding["topic"], finding["partition"]) == ("audit", 0)
            assert not is_ours or finding["remote_log_segment_id"] in (None, HARMED[21:]), finding
        kctl("remote", "audit", brokers, *tier)
        run("remote", "follower", brokers, "--topic", "audit", "--partition", 0, "--broker", 2, *tier)
        run("remote", "lookup", brokers, "--topic", "audit", "--partition", 0, "--offset", 30)
        run("segment", "dump", path)
        if Random(crc32(data)).random() < SOMETIMES:
            same_answer(evidence, folder, crc32(data))

    return holds


# --- internal topics ----------------------------------------------------------------------------------


def internal(topic: str, *commands: tuple[object, ...], decoder: str) -> Callable[[bytes, Path], None]:
    """A partition of an internal topic, by the commands that read it."""

    def holds(data: bytes, folder: Path) -> None:
        file = folder / "data" / f"{topic}-0" / f"{SEGMENT}.log"
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
        for command in commands:
            run(*command, folder / "data")
        kctl("segment", "dump", "--format", "kafka", "--records", f"--{decoder}", file)
        run("segment", "dump", "--records", file)

    return holds


# --- broker logs, znodes, plans, scenarios, settings ---------------------------------------------------


def broker_log(data: bytes, folder: Path) -> None:
    """Lines of broker logs: each command that reads them, also what Kafka's tool would print."""
    for broker_id, half in ((1, data), (2, data[len(data) // 2 :])):
        path = folder / f"broker-{broker_id}" / "logs" / "state-change.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(half)
    run("state-log", "merge", folder)
    run("state-log", "merge", "--fix-skew", "--topic", "ledger", folder)
    run("state-log", "timeline", folder)
    run("state-log", "timeline", "--fix-skew", folder)
    first = folder / "broker-1" / "logs" / "state-change.log"
    kctl("state-log", "merge", "--format", "kafka", first)


def cluster_of(data: bytes, folder: Path) -> Path:
    path = folder / "znodes.jsonl"
    path.write_bytes(data)
    return path


def znodes(data: bytes, folder: Path) -> None:
    """An export of znodes: everything that reads a cluster."""
    snapshot = ("--snapshot", cluster_of(data, folder))
    for command in (
        ("topic", "list"), ("topic", "describe"), ("topic", "config", "get", "ledger"), ("cluster", "describe"), ("cluster", "brokers"),
        ("cluster", "controller"), ("cluster", "health"), ("cluster", "predict", "--stop", "2"), ("config", "get", "--entity-type", "topics"),
        ("config", "get", "--entity-type", "users"), ("elect", "status"), ("reassign", "status"), ("reassign", "throttle"),
        ("consumer", "list"), ("znode", "tree"), ("znode", "show", "/controller", "/brokers/topics/ledger"),
    ):  # fmt: skip
        run(*command, *snapshot)
    kctl("znode", "export", "-", *snapshot)
    kctl("reassign", "plan", "--drain", 1, "--to", folder / "plan.json", *snapshot)


@cache
def recorded_znodes() -> bytes:
    """An export of a cluster, without the znodes that no command looks at."""
    path = recording("incidents/unclean-2.8") / "moments" / "after" / "znodes.jsonl"
    return path.read_bytes()


def plan(data: bytes, folder: Path) -> None:
    """A plan's file."""
    path = folder / "plan.json"
    path.write_bytes(data)
    snapshot = cluster_of(recorded_znodes(), folder)
    run("reassign", "verify", path, "--snapshot", snapshot)


def scenario(data: bytes, folder: Path) -> None:
    """A file of `replica simulate`."""
    path = folder / "scenario.toml"
    path.write_bytes(data)
    run("replica", "simulate", path)
    run("replica", "simulate", path, "--kafka-version", "0.10.2")


def settings(data: bytes, folder: Path) -> None:
    """A settings file."""
    path = folder / "config.toml"
    path.write_bytes(data)
    snapshot = cluster_of(recorded_znodes(), folder)
    env = {"KCTL_CONFIG": os.fspath(path)}
    run("topic", "list", "--snapshot", snapshot, env=env)
    run("topic", "list", "--snapshot", snapshot, "--context", "prod", env=env)


# --- the journal --------------------------------------------------------------------------------------


def course_in(folder: Path) -> ChangeRun:
    store = fake_cluster()
    obedient_controller(store)
    add_topic(store, "b", [[1, 2], [2, 3]])
    return ChangeRun(
        cluster=ZookeeperCluster(store), journal=Journal(folder / "journal"), wait=True, until=deadline(1)
    )


@cache
def recorded_entry() -> bytes:
    """An entry of the journal: a topic that was created."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        course = course_in(Path(name))
        made = NewTopic(name="a", replicas={0: (1, 2), 1: (2, 3)}, configs={"retention.ms": "5"})
        entry = new_entry(
            plan_creation(course.cluster, made),
            command="kctl test",
            reason="why not",
            cluster_id="W1mYKYRPRZqt8XjSxCjVnQ",
            backend="zookeeper",
            location="fake:2181/kafka",
            kafka_version=None,
            undoes=None,
        )
        apply(entry, course)
        value = json.loads((course.journal.folder / f"{entry.id}.json").read_bytes())
        return json.dumps(value | {"id": "entry"}).encode()


def journal(data: bytes, folder: Path) -> None:
    """An entry that the chain seals: read, shown, undone and resumed, or refused."""
    course = course_in(folder)
    course.journal.folder.mkdir(mode=0o700)
    path = course.journal.folder / "entry.json"
    path.write_bytes(data)
    course.journal._seal("entry", sha256(data).hexdigest())
    env = {"KCTL_JOURNAL": os.fspath(course.journal.folder)}
    for verb in (("list",), ("show", "entry"), ("verify",)):
        run("journal", *verb, env=env)
    for act in (plan_undo, resume):
        with suppress(KctlError):
            act(course.journal.find_sealed("entry"), course)


# --- the tables ---------------------------------------------------------------------------------------


def log_of(name: str, path: str) -> Callable[[], list[bytes]]:
    return lambda: [(recording(name) / path).read_bytes()]


def file_beside(name: str) -> Callable[[], list[bytes]]:
    return log_of("segments/2.8.2", f"{CLEAN}/{BESIDE[name]}")


def some_lines() -> list[bytes]:
    """Parts of recorded broker logs, short enough to be mutated often."""
    found = []
    for name in ("state-change.log", "controller.log", "server.log"):
        lines = (
            (recording("incidents/unclean-2.8") / "broker-1" / "logs" / name)
            .read_bytes()
            .splitlines(keepends=True)
        )
        found += [b"".join(lines[at : at + 60]) for at in range(0, min(len(lines), 600), 60)]
    return found


def some_scenarios() -> list[bytes]:
    import kctl.replication

    return [
        path.read_bytes() for path in sorted(Path(kctl.replication.__file__).parent.glob("scenarios/*.toml"))
    ]


PLAN = b'{"version":1,"partitions":[{"topic":"ledger","partition":0,"replicas":[1,2,3],"log_dirs":["any","any","any"]},{"topic":"ledger","partition":1,"replicas":[3,2]}]}'
SETTINGS = b"""default_context = "prod"
[contexts.prod]
zookeeper = "zk1:2181,zk2:2181/kafka"
cluster_id = "W1mYKYRPRZqt8XjSxCjVnQ"
read_only = true
[contexts.test]
bootstrap_server = "localhost:9092"
tls = false
sasl_password = "secret"
"""
OLD = "segments/2.8.2"

ORIGINALS: dict[str, Callable[[], list[bytes]]] = {
    "segment": lambda: [LOG, *(log(seed) for seed in range(12)), *(idempotent(seed) for seed in range(4))],
    **{name: file_beside(name) for name in BESIDE},
    **{
        name: lambda name=name: [harmed_object(tiered(name.partition("-")[0]), name).read_bytes()]
        for name in OBJECTS
    },  # type: ignore[misc]
    "broker-log": some_lines,
    "znodes": lambda: [recorded_znodes()],
    "consumer-offsets": log_of(OLD, f"{CLEAN}/__consumer_offsets-0/{SEGMENT}.log"),
    "transaction-state": log_of(OLD, f"{CLEAN}/__transaction_state-0/{SEGMENT}.log"),
    "cluster-metadata": log_of(
        "segments/3.9.1-kraft", f"data-clean/broker-1/logdir-0/__cluster_metadata-0/{SEGMENT}.log"
    ),
    "remote-log-metadata": log_of("tier/a-healthy", f"brokers/1/data/__remote_log_metadata-2/{SEGMENT}.log"),
    "plan": lambda: [PLAN],
    "journal": lambda: [recorded_entry()],
    "settings": lambda: [SETTINGS],
    "scenario": some_scenarios,
}

INVARIANTS: dict[str, Callable[[bytes, Path], None]] = {
    "segment": segment,
    **{name: beside(name) for name in BESIDE},
    **{name: tier_object(name) for name in OBJECTS},
    "broker-log": broker_log,
    "znodes": znodes,
    "consumer-offsets": internal(
        "__consumer_offsets", ("offsets", "list"), ("offsets", "show", "grp.one"), ("offsets", "history", "grp.one"),
        decoder="offsets-decoder",
    ),
    "transaction-state": internal(
        "__transaction_state", ("transactions", "list"), ("transactions", "hanging"), decoder="transaction-log-decoder"
    ),
    "cluster-metadata": internal("__cluster_metadata", ("metadata", "show"), decoder="cluster-metadata-decoder"),
    "remote-log-metadata": internal(
        "__remote_log_metadata", ("remote", "format"), ("remote", "segments", "--all"), decoder="remote-log-metadata-decoder"
    ),
    "plan": plan,
    "journal": journal,
    "settings": settings,
    "scenario": scenario,
}  # fmt: skip


def hold(name: str, data: bytes, folder: Path) -> None:
    """Raise for a file of this format that kctl does not survive; the folder is empty, and emptied afterwards."""
    try:
        INVARIANTS[name](data, folder)
    finally:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def seeds() -> Iterator[tuple[str, Path]]:
    """Every file of `tests/data/fuzz`: what was found once, by its format."""
    for path in sorted((Path(__file__).parent.parent / "data" / "fuzz").glob("*/*")):
        yield path.parent.name, path
