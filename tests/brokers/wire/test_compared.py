"""Read commands beside Kafka's own tools on one cluster: equal, field by field (docs/compared.md)."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kctl.cluster.feature_levels import LEVELS
from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_changes import plan_of
from tests.brokers.wire.test_groups import empty_group, member
from tests.brokers.wire.test_newer_groups import described, heartbeat, join_streams, running
from tests.brokers.wire.test_transactions import open_transaction

VERSIONS = [
    pytest.param("4.3", marks=pytest.mark.brokers),
    pytest.param("3.9", marks=[pytest.mark.brokers, pytest.mark.matrix]),
    pytest.param("4.1", marks=[pytest.mark.brokers, pytest.mark.matrix]),
]
TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group"
SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "default_broker",
    "DYNAMIC_CLIENT_METRICS_CONFIG": "client_metrics",
    "DYNAMIC_GROUP_CONFIG": "group",
    "STATIC_BROKER_CONFIG": "static",
    "DEFAULT_CONFIG": "default",
}
NOISE = ("log4j:WARN", "SLF4J")  # of the tools' own logs
Rows = list[dict[str, str]]
__all__ = ["heartbeat"]


@pytest.fixture(scope="module", params=VERSIONS)
def c(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Voters 1 and 2, which are brokers too, broker 3; two disks each, two topics, an empty group."""
    properties = {"transaction.partition.verification.enable": "false"}
    with kraft_cluster(request.param, dynamic=True, no_voters=[3], disks=2, properties=properties) as c:
        k = WireKctl(c, c.folder / "journal")
        for _ in eventually("three brokers alive"):
            if [b["is_alive"] for b in k("cluster", "brokers").of("broker")] == [True] * 3:
                break
        configs = ("--config", "segment.bytes=1048576", "--config", "retention.ms=604800000")
        k.change("topic", "create", "orders", "--replica-assignment", "1:2:3,2:3:1", *configs)
        k.change("topic", "create", "payments", "--replica-assignment", "3:1,1:2,2:3")
        for topic, partitions in (("orders", 2), ("payments", 3)):
            for partition in range(partitions):
                fill(c, topic, partition=partition, records=100)
        empty_group(c, "orders", "empty")
        k.change("group", "reset", "empty", "--topic", "orders:1", "--to-offset", 40, "--execute")
        k.change("topic", "delete-records", "payments", "--partition", 1, "--to-offset", 30, "--accept-loss")
        yield c


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> WireKctl:
    return WireKctl(c, tmp_path / "journal")


def said_by(c: Cluster, main: str, *args: object, before: str = "") -> str:
    """What one of Kafka's tools prints; `before` is the command of those that want it ahead of their options."""
    first = (before,) if before else ()
    said = c.tool(main, *first, "--bootstrap-server", c.bootstrap, *args)
    return "\n".join(line for line in said.splitlines() if not line.startswith(NOISE)) + "\n"


def table(said: str, first: str) -> Rows:
    """What stands below a line of headings that begins with `first`, by heading."""
    lines = [line.expandtabs() for line in said.splitlines()]
    found: Rows = []
    names: list[tuple[str, int]] = []
    for line in lines:
        if line.startswith(first):
            names = [(each[0], each.start()) for each in re.finditer(r"\S+(?: \(\S+\))?", line)]
        elif not line.strip():
            names = []
        elif names:
            ends = [*(start for _, start in names[1:]), None]
            found.append(
                {name: line[start:end].strip() for (name, start), end in zip(names, ends, strict=True)}
            )
    return found


def number(text: str) -> int | None:
    """A number of a table, where `-` stands for none."""
    return None if text in ("-", "") else int(text)


def partitions_in(text: str) -> list[str]:
    """`orders:0,1` of 4.x, of 3.9 `(0,1)` without the topic, as names of partitions."""
    return sorted(
        f"{topic or 'orders'}-{one}"
        for topic, numbers in re.findall(r"([\w.-]*)[:(]([\d,]+)", text)
        for one in numbers.split(",")
    )


def require_equal(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """The same, where nothing changed meanwhile: then both are asked again."""
    for _ in eventually("nothing changes while both are asked"):
        before, said = ours(), theirs()
        if ours() == before:
            assert before == said
            return


# --- topics -----------------------------------------------------------------------------------------------


def numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one.strip()]


def field(line: str, name: str) -> str:
    """A field of a line of `kafka-topics --describe`."""
    found = re.search(rf"(?:^|\t){name}: ([^\t]*)", line)
    return found[1].strip() if found else ""


def topics_of_kafka(c: Cluster, *options: str) -> list[tuple[Any, ...]]:
    """Topics and partitions as the tool describes them."""
    rows: list[tuple[Any, ...]] = []
    for line in said_by(c, f"{TOOLS}.TopicCommand", "--describe", *options).splitlines():
        if "PartitionCount: " in line:
            configs = dict(
                one.split("=", 1) for one in re.findall(r"[\w.]+=(?:(?!,[\w.]+=).)*", field(line, "Configs"))
            )
            count, factor = field(line, "PartitionCount"), field(line, "ReplicationFactor")
            rows.append((field(line, "Topic"), field(line, "TopicId"), int(count), int(factor), configs))
        elif "Partition: " in line:
            leader = field(line, "Leader")
            rows.append(
                (
                    *(field(line, "Topic"), int(field(line, "Partition"))),
                    -1 if leader == "none" else int(leader),
                    *(
                        numbers(field(line, name))
                        for name in ("Replicas", "Isr", "Adding Replicas", "Removing Replicas")
                    ),
                )
            )
    return sorted(rows, key=str)


def topics_of_kctl(k: WireKctl, *options: str) -> list[tuple[Any, ...]]:
    """The same; as configurations what is not the default, which the tool shows too."""
    ran = k("topic", "describe", *options)
    set_for: dict[str, dict[str, str]] = {}
    for row in k("config", "get", "--effective", "--entity-type", "topics").of("config"):
        if row["source"] != "default":
            set_for.setdefault(row["entity_name"], {})[row["key"]] = row["value"]
    rows: list[tuple[Any, ...]] = [
        (
            r["topic"],
            r["topic_id"],
            r["partition_count"],
            r["replication_factor"],
            set_for.get(r["topic"], {}),
        )
        for r in ran.of("topic")
    ]
    fields = ("topic", "partition", "leader", "replicas", "isr", "adding_replicas", "removing_replicas")
    return sorted([*rows, *(tuple(r[name] for name in fields) for r in ran.of("partition"))], key=str)


FILTERS = {
    "--under-replicated": "--under-replicated-partitions",
    "--offline": "--unavailable-partitions",
    "--under-min-isr": "--under-min-isr-partitions",
    "--at-min-isr": "--at-min-isr-partitions",
}


def test_topics(c: Cluster, k: WireKctl) -> None:
    listed = said_by(c, f"{TOOLS}.TopicCommand", "--list").split()
    assert sorted(row["topic"] for row in k("topic", "list").of("topic")) == sorted(listed)
    require_equal(lambda: topics_of_kctl(k), lambda: topics_of_kafka(c))


def test_offsets_of_topics(c: Cluster, k: WireKctl) -> None:
    def theirs() -> list[tuple[Any, ...]]:
        """Partitions with their first and last offset."""
        ends = [
            {
                (topic, int(partition)): int(offset)
                for topic, partition, offset in re.findall(
                    r"^([\w-]+):(\d+):(\d+)$",
                    said_by(c, f"{TOOLS}.GetOffsetShell", "--topic", "orders|payments", "--time", when),
                    re.M,
                )
            }
            for when in ("-2", "-1")
        ]
        return [(*tp, start, ends[1][tp]) for tp, start in sorted(ends[0].items())]

    def ours() -> list[tuple[Any, ...]]:
        rows = [
            row
            for topic in ("orders", "payments")
            for row in k("topic", "delete-records", topic, "--to-offset", 0, "--dry-run").of("deletion")
        ]
        return [(r["topic"], r["partition"], r["log_start_offset"], r["high_watermark"]) for r in rows]

    require_equal(ours, theirs)
    assert ("payments", 1, 30, 100) in ours()


def test_with_a_dead_broker(c: Cluster, k: WireKctl, topic: str) -> None:
    """Topics and what the filters leave of them; `--offline` ends with 5 where it finds some."""
    k.change("topic", "create", topic, "--replica-assignment", "3:1,1:2", "--config", "min.insync.replicas=2")
    k.change("topic", "create", f"{topic}-alone", "--replica-assignment", "3")
    assert k("topic", "describe", "--offline").status == 0
    c.kill(3)
    try:
        for _ in eventually("broker 3 is known to be dead"):
            if [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]] == [1, 2]:
                break
        require_equal(lambda: topics_of_kctl(k), lambda: topics_of_kafka(c))
        for option, of_tool in FILTERS.items():

            def ours(option: str = option) -> list[tuple[str, int]]:
                rows = k("topic", "describe", option).of("partition")
                return sorted((row["topic"], row["partition"]) for row in rows)

            def theirs(of_tool: str = of_tool) -> list[tuple[str, int]]:
                return sorted((row[0], row[1]) for row in topics_of_kafka(c, of_tool))

            require_equal(ours, theirs)
            assert ours() != [], option
        assert k("topic", "describe", "--offline").status == 5
    finally:
        c.start(3)
        for _ in eventually("broker 3 is alive"):
            if [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]] == [1, 2, 3]:
                break


# --- brokers and disks ------------------------------------------------------------------------------------


def test_brokers(c: Cluster, k: WireKctl) -> None:
    (cluster,) = k("cluster", "describe").of("cluster")
    tool = f"{TOOLS}.ClusterTool" if c.version >= "4" else "kafka.tools.ClusterTool"
    assert f"Cluster ID: {cluster['cluster_id']}\n" in said_by(c, tool, before="cluster-id")
    ours = [
        (b["broker_id"], b["host"], b["port"], b["rack"], b["is_alive"])
        for b in k("cluster", "brokers").of("broker")
    ]
    if c.version >= "4":
        rows = table(said_by(c, tool, before="list-endpoints"), "ID")
        theirs = [
            (int(r["ID"]), r["HOST"], int(r["PORT"]), r["RACK"], r["STATE"] == "unfenced") for r in rows
        ]
    else:
        said = said_by(c, "kafka.admin.BrokerApiVersionsCommand")
        rows_ = re.findall(r"^(\S+):(\d+) \(id: (\d+) rack: (\S+)(?: isFenced: (\w+))?\)", said, re.M)
        theirs = [
            (int(id), host, int(port), rack, fenced != "true") for host, port, id, rack, fenced in rows_
        ]
    assert ours == sorted((*row[:3], None if row[3] == "null" else row[3], row[4]) for row in theirs)


def test_disks(c: Cluster, k: WireKctl) -> None:
    def theirs() -> dict[tuple[int, str], tuple[Any, ...]]:
        said = said_by(c, f"{TOOLS}.LogDirsCommand", "--describe")
        (document,) = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return {
            (broker["broker"], one["logDir"]): (
                one["error"],
                sum(p["size"] for p in one["partitions"]),
                len(one["partitions"]),
                sum(p["isFuture"] for p in one["partitions"]),
            )
            for broker in document["brokers"]
            for one in broker["logDirs"]
        }

    def ours() -> dict[tuple[int, str], tuple[Any, ...]]:
        keys = ("error", "size_in_bytes", "partitions", "future_partitions")
        rows = k("cluster", "disks").of("log_dir")
        return {(r["broker_id"], r["log_dir"]): tuple(r[key] for key in keys) for r in rows}

    require_equal(ours, theirs)
    rows = k("cluster", "disks").of("log_dir")
    assert [row["state"] for row in rows] == ["online"] * 6
    (usage,) = {(row["total_bytes"], row["usable_bytes"] <= row["total_bytes"]) for row in rows}
    assert usage == (shutil.disk_usage(c.folder).total, True)


# --- configurations ---------------------------------------------------------------------------------------

LINE = re.compile(r"^  ([^=\s]+)=(.*) sensitive=(\w+) synonyms=\{(.*)\}$", re.M)
SYNONYM = re.compile(rf"({'|'.join(SOURCES)}):([^=]+)=(.*?)(?=, (?:{'|'.join(SOURCES)}):|$)")
Value = tuple[str | None, bool, list[tuple[str, str | None, str]]]


def values_of_kafka(c: Cluster, type: str, name: str) -> dict[str, Value]:
    """Every key of an entity: value, whether it is sensitive, and where it may come from."""
    of_entity = ("--entity-type", type, "--entity-name", name)
    said = said_by(c, "kafka.admin.ConfigCommand", "--describe", "--all", *of_entity)

    def plain(text: str) -> str | None:
        return None if text == "null" else text

    return {
        key: (
            plain(value),
            sensitive == "true",
            [(name, plain(text), SOURCES[source]) for source, name, text in SYNONYM.findall(synonyms)],
        )
        for key, value, sensitive, synonyms in LINE.findall(said)
    }


def values_of_kctl(k: WireKctl, type: str, name: str) -> dict[str, Value]:
    rows = k("config", "get", "--effective", "--entity-type", type, "--entity-name", name).of("config")
    return {
        row["key"]: (
            row["value"],
            row["is_sensitive"],
            [(s["key"], s["value"], s["source"]) for s in row["synonyms"]],
        )
        for row in rows
    }


@pytest.mark.parametrize(
    ("type", "name", "setting"),
    [
        ("topics", "orders", ""),
        ("topics", "payments", "max.message.bytes=2000000"),
        ("brokers", "1", "num.io.threads=3"),
        ("brokers", "2", ""),
        ("broker-loggers", "1", "root=WARN"),
        ("client-metrics", "mine", "interval.ms=5000"),
        ("groups", "empty", "consumer.session.timeout.ms=50000"),
    ],
)
def test_values_in_force(c: Cluster, k: WireKctl, type: str, name: str, setting: str) -> None:
    if c.version < "4" and type == "groups":
        assert (
            "need Kafka 4.0 (KIP-848)" in k("config", "get", "--entity-type", type, "--entity-name", name).err
        )
        return
    if setting:
        k.change("config", "set", "--entity-type", type, "--entity-name", name, setting)
    require_equal(lambda: values_of_kctl(k, type, name), lambda: values_of_kafka(c, type, name))
    if setting:
        key, _, value = setting.partition("=")
        assert values_of_kctl(k, type, name)[key][0] == value
        k.change("journal", "undo", k.ids()[-1])


def test_what_is_set(c: Cluster, k: WireKctl) -> None:
    """Of the default broker, and quotas, which have no default to come from."""
    default = ("--entity-type", "brokers", "--entity-name", "<default>")
    k.change("config", "set", *default, "log.retention.ms=86400000")
    k.change("config", "set", "--entity-type", "users", "--entity-name", "ann", "producer_byte_rate=5000")
    k.change("config", "set", "--entity-type", "clients", "--entity-name", "app", "request_percentage=20")
    k.change(
        "config", "set", "--entity-type", "ips", "--entity-name", "127.0.0.9", "connection_creation_rate=9"
    )
    said = said_by(
        c, "kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-default"
    )
    ours = {(r["key"], r["value"]) for r in k("config", "get", *default).of("config")}
    assert ours == {(key, value) for key, value, _, _ in LINE.findall(said)}
    for type, tool in (("users", "user-principal"), ("clients", "client-id"), ("ips", "ip")):
        said = said_by(c, "kafka.admin.ConfigCommand", "--describe", "--entity-type", type)
        theirs = {
            (name, key, float(value))
            for name, text in re.findall(rf"^Quota configs for {tool} '(.*)' are (.*)$", said, re.M)
            for key, value in (one.split("=") for one in text.split(", "))
        }
        rows = k("config", "get", "--entity-type", type).of("config")
        assert {(r["entity_name"], r["key"], float(r["value"])) for r in rows} == theirs != set()


# --- quorum and features ----------------------------------------------------------------------------------


def test_quorum(c: Cluster, k: WireKctl) -> None:
    """Offsets and times grow all the while: Kafka's lie between those of two looks."""
    keys = ("log_end_offset", "last_fetch_timestamp", "last_caught_up_timestamp")
    tool = f"{TOOLS}.MetadataQuorumCommand"
    for _ in eventually("no leader is elected meanwhile"):
        before = k("quorum", "describe")
        replication = table(said_by(c, tool, "describe", "--replication"), "NodeId")
        status = dict(re.findall(r"^(\w+): +(.*)$", said_by(c, tool, "describe", "--status"), re.M))
        after = k("quorum", "describe")
        (first,), (last,) = before.of("quorum"), after.of("quorum")
        if first["leader_epoch"] == last["leader_epoch"]:
            break
    assert (first["leader_id"], first["leader_epoch"]) == (
        int(status["LeaderId"]),
        int(status["LeaderEpoch"]),
    )
    assert first["high_watermark"] <= int(status["HighWatermark"]) <= last["high_watermark"]
    voters, observers = (json.loads(status[name]) for name in ("CurrentVoters", "CurrentObservers"))
    role = {"leader": "Leader", "voter": "Follower", "observer": "Observer"}
    ours = {row["node_id"]: row for row in before.of("quorum_member")}
    later = {row["node_id"]: row for row in after.of("quorum_member")}
    theirs = {int(row["NodeId"]): row for row in replication}
    assert {id: (row["directory_id"], role[row["role"]]) for id, row in ours.items()} == {
        id: (row["DirectoryId"], row["Status"]) for id, row in theirs.items()
    }
    for key, name in zip(keys, ("LogEndOffset", "LastFetchTimestamp", "LastCaughtUpTimestamp"), strict=True):
        for id, row in theirs.items():
            assert ours[id][key] <= int(row[name]) <= later[id][key], (id, key)
    assert {(v["id"], v["directoryId"], *v["endpoints"]) for v in voters} == {
        (id, row["directory_id"], *row["endpoints"]) for id, row in ours.items() if row["role"] != "observer"
    }
    assert (
        [3] == [o["id"] for o in observers] == [id for id, row in ours.items() if row["role"] == "observer"]
    )


def test_features(c: Cluster, k: WireKctl) -> None:
    releases = {level.level: level.release for level in LEVELS["metadata.version"]}

    def shown(name: str, level: int) -> str:
        return releases.get(level, str(level)) if name == "metadata.version" else str(level)

    said = said_by(c, f"{TOOLS}.FeatureCommand", "describe")
    fields = r"\s+".join(
        f"{name}: (\\S+)"
        for name in ("Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel")
    )
    keys = ("minimum_level", "maximum_level", "finalized_level")
    rows = k("feature", "list").of("feature")
    assert {(r["name"], *(shown(r["name"], r[key]) for key in keys)) for r in rows} == set(
        re.findall(fields, said)
    )


# --- groups -----------------------------------------------------------------------------------------------


def group_of_kctl(k: WireKctl, group: str) -> tuple[Any, ...]:
    """State, members and offsets of a group."""
    ran = k("group", "describe", group)
    (g,) = ran.of("group")
    return (
        (g["coordinator"], g["protocol"] or None, g["state"], g["epoch"], g["assignment_epoch"], g["members"]),
        sorted(
            (
                m["member_id"], m["client_host"], m["client_id"], m["assignment"] or [],
                m["epoch"], m["target_assignment"],
            )
            for m in ran.of("member")
        ),
        sorted(
            (o["topic"], o["partition"], o["leader_epoch"], o["offset"], o["high_watermark"], o["lag"], o["member_id"])
            for o in ran.of("group_offset")
        ),
    )  # fmt: skip


def group_of_kafka(c: Cluster, group: str) -> tuple[Any, ...]:
    """The same."""
    main = f"{GROUPS}.ConsumerGroupCommand"
    state, members, offsets = (
        table(said_by(c, main, "--describe", "--group", group, what, "--verbose"), "GROUP ")
        for what in ("--state", "--members", "--offsets")
    )
    (s,) = state
    newer = c.version >= "4"
    coordinator = re.search(r"\((\d+)\)", s["COORDINATOR (ID)"])
    assert coordinator

    def epoch(name: str, row: dict[str, str]) -> int | None:
        return number(row.get(name, "-"))

    def text(word: str) -> str | None:
        return None if word in ("-", "") else word

    return (
        (
            int(coordinator[1]), text(s["ASSIGNMENT-STRATEGY"]), s["STATE"], epoch("GROUP-EPOCH", s),
            epoch("TARGET-ASSIGNMENT-EPOCH", s), int(s["#MEMBERS"]),
        ),
        sorted(
            (
                m["CONSUMER-ID"], m["HOST"], m["CLIENT-ID"],
                partitions_in(m["CURRENT-ASSIGNMENT" if newer else "ASSIGNMENT"]), epoch("CURRENT-EPOCH", m),
                partitions_in(m["TARGET-ASSIGNMENT"]) if epoch("TARGET-EPOCH", m) is not None else None,
            )
            for m in members
        ),
        sorted(
            (
                o["TOPIC"], int(o["PARTITION"]), epoch("LEADER-EPOCH", o), number(o["CURRENT-OFFSET"]),
                number(o["LOG-END-OFFSET"]), number(o["LAG"]), text(o["CONSUMER-ID"]),
            )
            for o in offsets
        ),
    )  # fmt: skip


def test_groups(c: Cluster, k: WireKctl) -> None:
    """Empty, without commits, of the consumer protocol; listed with all others."""
    protocol = ("--consumer-property", "group.protocol=consumer")
    names = ["empty", "no-commits"]
    with ExitStack() as stack:
        stack.enter_context(member(c, "no-commits", "orders"))
        if c.version >= "4":
            names.append("newer")
            stack.enter_context(
                running(
                    c,
                    "ConsoleConsumer",
                    "--topic",
                    "orders",
                    "--group",
                    "newer",
                    "--from-beginning",
                    *protocol,
                )
            )
            for _ in eventually("it has both partitions"):
                rows = described(k, "newer", "Stable").of("member")
                if len(rows[0]["assignment"] or []) == 2:
                    break
        for name in names:
            require_equal(partial(group_of_kctl, k, name), partial(group_of_kafka, c, name))
        require_equal(
            lambda: sorted(
                (g["group"], g["type"], g["state"])
                for g in k("group", "list").of("group")
                if g["type"] in ("classic", "consumer")
            ),
            lambda: sorted(
                (r["GROUP"], r["TYPE"].lower(), r["STATE"])
                for r in table(
                    said_by(c, f"{GROUPS}.ConsumerGroupCommand", "--list", "--state", "--type"), "GROUP "
                )
            ),
        )
        if c.version >= "4":
            require_equal(
                lambda: sorted(
                    (g["group"], g["type"], g["protocol_type"] or "") for g in k("group", "list").of("group")
                ),
                lambda: sorted(
                    (r["GROUP"], r["TYPE"].lower(), r["PROTOCOL"])
                    for r in table(said_by(c, f"{TOOLS}.GroupsCommand", "--list"), "GROUP ")
                ),
            )


def test_a_share_group(c: Cluster, k: WireKctl) -> None:
    if c.version < "4.3":
        pytest.skip("share groups are not switched on before 4.2")
    k.change(
        "config",
        "set",
        "--entity-type",
        "groups",
        "--entity-name",
        "shared",
        "share.auto.offset.reset=earliest",
    )
    main = f"{GROUPS}.ShareGroupCommand"

    def theirs() -> tuple[Any, ...]:
        state, members, offsets = (
            table(said_by(c, main, "--describe", "--group", "shared", what, "--verbose"), "GROUP ")
            for what in ("--state", "--members", "--offsets")
        )
        (s,) = state
        return (
            (
                s["COORDINATOR (ID)"].split()[1],
                s["STATE"],
                int(s["GROUP-EPOCH"]),
                int(s["ASSIGNMENT-EPOCH"]),
                int(s["#MEMBERS"]),
            ),
            sorted(
                (
                    m["CONSUMER-ID"],
                    m["HOST"],
                    m["CLIENT-ID"],
                    int(m["MEMBER-EPOCH"]),
                    partitions_in(m["ASSIGNMENT"]),
                )
                for m in members
            ),
            sorted(
                (
                    o["TOPIC"],
                    int(o["PARTITION"]),
                    number(o["LEADER-EPOCH"]),
                    number(o["START-OFFSET"]),
                    number(o["LAG"]),
                )
                for o in offsets
            ),
        )

    def ours() -> tuple[Any, ...]:
        ran = k("group", "describe", "shared")
        (g,) = ran.of("group")
        return (
            (f"({g['coordinator']})", g["state"], g["epoch"], g["assignment_epoch"], g["members"]),
            sorted(
                (m["member_id"], m["client_host"], m["client_id"], m["epoch"], m["assignment"])
                for m in ran.of("member")
            ),
            sorted(
                (o["topic"], o["partition"], o["leader_epoch"], o["offset"], o["lag"])
                for o in ran.of("group_offset")
            ),
        )

    with running(c, "ConsoleShareConsumer", "--topic", "orders", "--group", "shared"):
        for _ in eventually("all is acknowledged"):
            rows = described(k, "shared", "Stable").of("group_offset")
            if [(row["offset"] is not None, row["lag"]) for row in rows] == [(True, 0)] * 2:
                break
        require_equal(ours, theirs)


def test_a_streams_group(c: Cluster, k: WireKctl, heartbeat: Any) -> None:
    if c.version < "4.3":
        pytest.skip("streams groups are not switched on before 4.2")
    main = f"{TOOLS}.streams.StreamsGroupCommand"
    join_streams(c, k, "orders", "flowing", heartbeat)

    def theirs() -> tuple[Any, ...]:
        state, members = (
            table(said_by(c, main, "--describe", "--group", "flowing", what, "--verbose"), "GROUP ")
            for what in ("--state", "--members")
        )
        (s,), (m,) = state, members
        return (
            (
                s["COORDINATOR (ID)"].split()[1],
                s["STATE"],
                int(s["GROUP-EPOCH"]),
                int(s["TARGET-ASSIGNMENT-EPOCH"]),
                int(s["#MEMBERS"]),
            ),
            (m["MEMBER"], int(m["MEMBER-EPOCH"]), m["CLIENT-ID"]),
        )

    def ours() -> tuple[Any, ...]:
        ran = k("group", "describe", "flowing")
        (g,), (m,) = ran.of("group"), ran.of("member")
        return (
            (f"({g['coordinator']})", g["state"], g["epoch"], g["assignment_epoch"], g["members"]),
            (m["member_id"], m["epoch"], m["client_id"]),
        )

    require_equal(ours, theirs)


def test_where_a_reset_would_go(c: Cluster, k: WireKctl) -> None:
    goals = {
        ("--to-earliest",): ("--to-earliest",),
        ("--to-latest",): ("--to-latest",),
        ("--shift", -60): ("--shift-by", -60),
        ("--to-offset", 70): ("--to-offset", 70),
        ("--to-time", "2020-01-01T00:00:00Z"): ("--to-datetime", "2020-01-01T00:00:00.000"),
        ("--by-duration", "1h"): ("--by-duration", "PT1H"),
    }
    for mine, kafkas in goals.items():
        said = said_by(
            c, f"{GROUPS}.ConsumerGroupCommand",
            *("--group", "empty", "--reset-offsets", "--topic", "orders", "--dry-run", *kafkas),
        )  # fmt: skip
        # 3.9's tool ends no line
        rows_ = re.findall(r"empty +(\S+) +(\d+) +(\d+)", said)
        theirs = [(name, int(partition), int(offset)) for name, partition, offset in rows_]
        rows = k("group", "reset", "empty", "--topic", "orders", *mine).of("group_reset")
        assert [(r["topic"], r["partition"], r["to_offset"]) for r in rows] == sorted(theirs), mine


# --- moves ------------------------------------------------------------------------------------------------


def test_moves(c: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    """Under way, and done; topics are described alike meanwhile."""
    main = f"{TOOLS}.reassign.ReassignPartitionsCommand"
    k.change("topic", "create", topic, "--replica-assignment", "1:2,1:2")
    fill(c, topic, records=200, size=20_000)
    plan = plan_of(tmp_path, topic, [1, 3], [1, 2])
    k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
    words = {"is still in progress": "in_progress", "is completed": "done"}
    verify = ("--verify", "--preserve-throttles", "--reassignment-json-file", plan)

    def verified() -> list[tuple[int, str]]:
        found = re.findall(rf"partition {topic}-(\d+) (.*)\.$", said_by(c, main, *verify), re.M)
        return sorted((int(number), words[said]) for number, said in found)

    def ours(*args: object) -> list[tuple[Any, ...]]:
        return [(r["partition"], r["state"]) for r in k("reassign", *args, "--sample", 0).of("partition")]

    require_equal(lambda: ours("verify", plan, "--keep-throttle"), verified)
    assert ours("verify", plan, "--keep-throttle") == [(0, "in_progress"), (1, "done")] and ours(
        "status"
    ) == [(0, "in_progress")]
    require_equal(
        lambda: [
            (p["topic"], p["partition"], p["replicas"], p["adding_replicas"], p["removing_replicas"])
            for p in k("topic", "describe").of("partition")
            if p["adding_replicas"] or p["removing_replicas"]
        ],
        lambda: [
            (name, int(partition), *map(numbers, rest))
            for name, partition, *rest in re.findall(
                r"^(\S+)-(\d+): replicas: ([\d,]+)\. adding: ([\d,]*)\. removing: ([\d,]*)\.$",
                said_by(c, main, "--list"),
                re.M,
            )
        ],
    )
    require_equal(lambda: topics_of_kctl(k), lambda: topics_of_kafka(c))
    k.change("reassign", "throttle", "clear", plan)
    for _ in eventually("it is done"):
        if k("reassign", "verify", plan, "--sample", 0).status == 0:
            break
    require_equal(lambda: ours("verify", plan), verified)
    assert "No partition reassignments found." in said_by(c, main, "--list") and ours("status") == []


# --- transactions -----------------------------------------------------------------------------------------


def test_transactions(c: Cluster, k: WireKctl, topic: str) -> None:
    main = f"{TOOLS}.TransactionsCommand"
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    id = f"id-{topic}"

    def coordinators() -> list[tuple[Any, ...]]:
        rows = table(said_by(c, main, "list"), "TransactionalId")
        return [(r["TransactionalId"], int(r["ProducerId"]), r["TransactionState"]) for r in rows]

    def description() -> tuple[Any, ...]:
        (r,) = table(said_by(c, main, "describe", "--transactional-id", id), "CoordinatorId")
        return (
            *(r["TransactionalId"], int(r["ProducerId"]), int(r["ProducerEpoch"]), r["TransactionState"]),
            *(
                int(r["TransactionTimeoutMs"]),
                int(r["CurrentTransactionStartTimeMs"]),
                r["TopicPartitions"].split(","),
            ),
        )

    def known() -> list[dict[str, Any]]:
        return k("transactions", "list", "__transaction_state").of("transaction")

    def producers() -> list[tuple[int, ...]]:
        rows = table(said_by(c, main, "describe-producers", "--topic", topic, "--partition", 0), "ProducerId")
        names = ("ProducerId", "ProducerEpoch", "CurrentTransactionStartOffset", "LastTimestamp")
        return [tuple(int(r[name]) for name in names) for r in rows if r[names[2]] != "None"]

    def hanging(*options: str) -> list[dict[str, Any]]:
        ran = k("transactions", "hanging", topic, "__transaction_state", *options)
        return ran.of("open_transaction")

    with open_transaction(c, topic):
        require_equal(
            lambda: [(t["transactional_id"], t["producer_id"], t["state"]) for t in known()], coordinators
        )
        fields = (
            "transactional_id", "producer_id", "producer_epoch", "state", "timeout_ms", "start_timestamp", "partitions",
        )  # fmt: skip
        require_equal(lambda: tuple(known()[0][name] for name in fields), description)
        require_equal(
            lambda: [
                (t["producer_id"], t["producer_epoch"], t["first_offset"], t["last_timestamp"])
                for t in hanging("--all")
            ],
            producers,
        )
        find = ("find-hanging", "--topic", topic, "--max-transaction-timeout", 0)
        assert table(said_by(c, main, *find), "Topic") == [] and hanging() == []
    forsake(c, topic)
    rows = table(said_by(c, main, *find), "Topic")
    names = ("Partition", "ProducerId", "ProducerEpoch", "StartOffset", "LastTimestamp")
    keys = ("partition", "producer_id", "producer_epoch", "first_offset", "last_timestamp")
    (ours,) = ([row[key] for key in keys] for row in hanging())
    assert [[int(r[name]) for name in names] for r in rows] == [ours]
    assert k("transactions", "hanging", topic, "__transaction_state").status == 5


def forsake(c: Cluster, topic: str) -> None:
    """Records of a transaction that no coordinator knows, as clients before KIP-890 may leave them behind."""
    from kafka.record.memory_records import MemoryRecordsBuilder

    from kctl.wire.adapter import Access, Wire
    from kctl.wire.protocol.messages import ProduceRequest

    own = {"producer_id": 999_999, "producer_epoch": 0, "base_sequence": 0}
    records = MemoryRecordsBuilder(2, 0, 1 << 16, transactional=True, **own)
    records.append(int(time.time() * 1000), None, b"forsaken")
    records.close()
    of = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id="nobody",
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            of(name=topic, partition_data=[of.PartitionProduceData(index=0, records=records.buffer())])
        ],
        max_version=9,  # later ones ask the coordinator to add the partition
    )
    with Wire(Access(servers=c.bootstrap)) as wire:
        (answer,) = wire.send(request, 1).responses[0].partition_responses
    assert answer.error_code == 0
