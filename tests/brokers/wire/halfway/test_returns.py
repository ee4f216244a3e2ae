"""Brokers that are killed at a step of a change, and that come back, maybe at another port: nothing is left, or it is named."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers.cluster import BrokerProcess, Cluster, eventually, kraft_cluster
from tests.brokers.processes import free_ports
from tests.brokers.running import Forked
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.halfway.test_half_allowed import plan_to, two_topics
from tests.brokers.wire.test_changes import configs_of
from tests.conftest import Ran

ON_KRAFT = pytest.mark.parametrize("live", ["kraft-4.3"], indirect=True)
KRAFT_AND_ZOOKEEPER = pytest.mark.parametrize(
    "live", ["kraft-4.3", pytest.param("zookeeper-2.8", marks=pytest.mark.matrix)], indirect=True
)
pytestmark = pytest.mark.brokers


def to_another_port(c: Cluster, id: int) -> None:
    """Let a dead broker listen elsewhere from its next start on."""
    broker, (port,) = c.brokers[id], free_ports(1)
    file = broker.folder / "server.properties"
    file.write_text(
        file.read_text().replace(f"PLAINTEXT://127.0.0.1:{broker.port}", f"PLAINTEXT://127.0.0.1:{port}")
    )
    broker.port = port


def killed(c: Cluster, k: WireKctl, id: int) -> None:
    """A broker ends at once, and the controller has noticed."""
    c.kill(id)
    c.wait_until_gone(id)
    for _ in eventually(f"broker {id} is seen to be dead"):
        if id not in alive(k):
            return


def returned(c: Cluster, k: WireKctl, id: int, *, elsewhere: bool = False) -> None:
    if elsewhere:
        to_another_port(c, id)
    c.start(id)
    for _ in eventually(f"broker {id} is seen to be alive"):
        if id in alive(k):
            return


def alive(k: WireKctl) -> list[int]:
    return [row["broker_id"] for row in k("cluster", "brokers").of("broker") if row["is_alive"]]


def throttled_by_kafka(c: Cluster) -> list[str]:
    """The throttles that Kafka's own tool describes, of brokers and topics."""
    lines = []
    for kind in ("brokers", "topics"):
        where = ("--bootstrap-server", c.bootstrap)
        said = c.tool("kafka.admin.ConfigCommand", *where, "--describe", "--entity-type", kind)
        lines += [line.strip() for line in said.splitlines() if "throttled" in line]
    return lines


def verified_by_kafka(c: Cluster, plan: Path) -> str:
    package = "kafka.admin" if c.version < "3.7" else "org.apache.kafka.tools.reassign"
    return c.tool(
        f"{package}.ReassignPartitionsCommand",
        *("--bootstrap-server", c.bootstrap, "--reassignment-json-file", plan),
        *("--verify", "--preserve-throttles"),
    )


def named(ran: Ran) -> str:
    """The id of a change that was not finished, which its error names with the way on."""
    assert ran.status == 5, ran.err
    (row,) = ran.of("change")
    assert f"kctl journal resume {row['id']}" in ran.err, ran.err
    return str(row["id"])


# --- moves ------------------------------------------------------------------------------------------------------

STEPS = {
    "before the first batch": ("before-write:0", False),
    "between the requests of its throttle": ("sent:2", True),
    "during the first batch": ("written:0", True),
    "between batches": ("finished:0", False),
    "before the throttle is taken off": ("finished:1", True),
}


@pytest.mark.parametrize("step", STEPS)
@KRAFT_AND_ZOOKEEPER
def test_a_source_that_comes_back(w: Cluster, k: WireKctl, topic: str, tmp_path: Path, step: str) -> None:
    at, elsewhere = STEPS[step]
    topics = two_topics(w, k, topic)
    plan = plan_to(tmp_path, topics, [1, 3])
    execute = ("reassign", "execute", plan, "--throttle", "50MiB", "--max-batch-moves", 1)
    with k.stopped(*execute, at=at) as moving:
        killed(w, k, 2)
        returned(w, k, 2, elsewhere=elsewhere)
        ran = moving.go_on()
    if ran.status != 0:
        k.change("journal", "resume", named(ran))
    assert [k.replicas(name) for name in topics] == [[[1, 3]], [[1, 3]]]
    assert k("reassign", "throttle", "list").of("throttle") == []
    assert throttled_by_kafka(w) == []
    said = verified_by_kafka(w, plan)
    assert len(re.findall(r"is complete|completed successfully", said)) == 2, said


@pytest.mark.parametrize(
    "step", ["before the first batch", "between batches", "before the throttle is taken off"]
)
@KRAFT_AND_ZOOKEEPER
def test_a_source_that_stays_away(w: Cluster, k: WireKctl, topic: str, tmp_path: Path, step: str) -> None:
    """Only the controller of KRaft takes a throttle off a dead broker; what is left elsewhere is named until it is off."""
    topics = two_topics(w, k, topic)
    plan = plan_to(tmp_path, topics, [1, 3])
    execute = ("reassign", "execute", plan, "--throttle", "50MiB", "--max-batch-moves", 1)
    with k.stopped(*execute, at=STEPS[step][0]) as moving:
        killed(w, k, 2)
        ran = moving.go_on()
    listed = k("reassign", "throttle", "list")
    assert listed.status == 3 and "broker 2 is not alive" in listed.err
    id = None if ran.status == 0 else named(ran)
    if w.zookeeper is not None:
        assert id is not None and re.search(
            r"may stay on brokers 1, 2, 3 and|may be left on broker 2", ran.err
        )
        cleared = k.change("reassign", "throttle", "clear", plan, status=None)
        assert cleared.status in (3, 5) and "may be left on broker 2" in cleared.err
    returned(w, k, 2)
    if id is not None:
        k.change("journal", "resume", id)
    assert [k.replicas(name) for name in topics] == [[[1, 3]], [[1, 3]]]
    assert k("reassign", "throttle", "list").status == 0
    assert throttled_by_kafka(w) == []


@KRAFT_AND_ZOOKEEPER
def test_a_source_that_ends_while_its_throttle_is_taken_off(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path
) -> None:
    """Nobody has noticed yet that it is dead."""
    topics = two_topics(w, k, topic)
    plan = plan_to(tmp_path, topics, [1, 3])
    with k.stopped("reassign", "execute", plan, "--throttle", "50MiB", at="finished:0") as moving:
        w.kill(2)
        ran = moving.go_on()
    w.wait_until_gone(2)
    returned(w, k, 2)
    if ran.status != 0:
        k.change("journal", "resume", named(ran))
    assert k("reassign", "throttle", "list").of("throttle") == [] and throttled_by_kafka(w) == []


@KRAFT_AND_ZOOKEEPER
def test_a_target_that_stays_away_is_named(w: Cluster, k: WireKctl, topic: str, tmp_path: Path) -> None:
    topics = two_topics(w, k, topic)
    plan = plan_to(tmp_path, topics, [1, 3])
    execute = ("reassign", "execute", plan, "--throttle", "1000", "--max-batch-moves", 1, "--timeout", "5s")
    with k.stopped(*execute, at="written:0") as moving:
        killed(w, k, 3)
        ran = moving.go_on()
    id = named(ran)
    returned(w, k, 3, elsewhere=True)
    if k.replicas(topics[0]) != [[1, 3]]:
        k.change("reassign", "throttle", "set", plan, "50MiB")
    k.change("journal", "resume", id)
    assert [k.replicas(name) for name in topics] == [[[1, 3]], [[1, 3]]]
    assert throttled_by_kafka(w) == []


# --- other changes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A change that concerns broker 2: its command for a topic, which is on brokers 1 and 2; whether it is done, by Kafka's tools too."""

    command: Callable[[str], tuple[object, ...]]
    is_done: Callable[[WireKctl, str], bool]
    by_kafka: Callable[[Cluster, str], bool]


def configured_by_kafka(c: Cluster, kind: str, name: object) -> str:
    where = ("--bootstrap-server", c.bootstrap)
    return c.tool(
        "kafka.admin.ConfigCommand", *where, "--describe", "--entity-type", kind, "--entity-name", name
    )


def topics_by_kafka(c: Cluster, *words: object) -> str:
    package = "kafka.admin" if c.version < "3.7" else "org.apache.kafka.tools"
    return c.tool(f"{package}.TopicCommand", "--bootstrap-server", c.bootstrap, *words)


def broker_threads(k: WireKctl) -> list[str]:
    return [row["value"] for row in k("config", "get", *OF_BROKER, "num.io.threads").of("config")]


OF_BROKER = ("--entity-type", "brokers", "--entity-name", 2)
ASKED = {
    "config set of the broker": Asked(
        lambda topic: ("config", "set", *OF_BROKER, "num.io.threads=3"),
        lambda k, _: broker_threads(k) == ["3"],
        lambda c, _: "num.io.threads=3 " in configured_by_kafka(c, "brokers", 2),
    ),
    "config set of a topic": Asked(
        lambda topic: ("topic", "config", "set", topic, "retention.ms=1000"),
        lambda k, topic: configs_of(k, topic) == {"retention.ms": "1000"},
        lambda c, topic: "retention.ms=1000 " in configured_by_kafka(c, "topics", topic),
    ),
    "topic delete": Asked(
        lambda topic: ("topic", "delete", topic),
        lambda k, topic: k("topic", "describe", topic).status == 3,
        lambda c, topic: topic not in topics_by_kafka(c, "--list").split(),
    ),
    "elect preferred": Asked(
        lambda topic: ("elect", "preferred", "--topics", topic),
        lambda k, topic: k("elect", "status", "--topics", topic).status == 0,
        lambda c, topic: (
            re.search(r"Leader: 2\s+Replicas: 2,1", topics_by_kafka(c, "--describe", "--topic", topic))
            is not None
        ),
    ),
}


# Before the request is sent; when it is answered, and not looked at; when it is seen, and not waited for.
AT = ("before-write:0", "sent:1", "written:0")


@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays away"])
@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("name", ASKED)
@KRAFT_AND_ZOOKEEPER
def test_the_broker_that_is_asked(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str, at: str, comes_back: bool
) -> None:
    asked = ASKED[name]
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=10)
    if name == "elect preferred":
        k.change("reassign", "execute", plan_to(tmp_path, [topic], [2, 1]))
    with k.stopped(*asked.command(topic), "--timeout", "8s", at=at) as process:
        killed(w, k, 2)
        if comes_back:
            returned(w, k, 2, elsewhere=True)
        ran = process.go_on()
    if not comes_back:
        returned(w, k, 2)
    if ran.status in (3, 4):
        assert "nothing was written" in ran.err and ran.of("change") in ([], [*planned(ran)]), ran.err
        assert not asked.is_done(k, topic) and not asked.by_kafka(w, topic)
    else:
        id = str(ran.of("change")[0]["id"]) if ran.status == 0 else named(ran)
        for _ in eventually(f"{name} is done"):  # a replica takes a while until it can lead again
            if asked.is_done(k, topic):
                break
            if ran.status != 0:
                k.change("journal", "resume", id, status=None)
        assert asked.by_kafka(w, topic)
    if name.startswith("config set of the broker"):
        k("config", "unset", *OF_BROKER, "num.io.threads", "--yes")


def has_unread(broker: BrokerProcess, pid: int) -> bool:
    """Whether a process has sent bytes to the port of a broker that the broker has not read."""
    sockets = {os.path.basename(os.path.realpath(link)) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    own = {row[1] for row in rows if f"socket:[{row[9]}]" in sockets}
    return any(
        row[1].endswith(f":{broker.port:04X}") and row[2] in own and not row[4].endswith(":00000000")
        for row in rows
    )


def unanswered(c: Cluster, process: Forked) -> tuple[int, Ran]:
    """The broker that a request of a stopped change is sent to, which dies before it answers, and how the change ends."""
    for id in c.brokers:
        c.pause(id)
    os.kill(process.pid, signal.SIGCONT)
    asked = 0
    for _ in eventually("a request has come to a broker"):
        if asked := next((id for id, broker in c.brokers.items() if has_unread(broker, process.pid)), 0):
            break
    c.kill(asked)
    for id in set(c.brokers) - {asked}:
        c.resume(id)
    return asked, process.wait()


@pytest.mark.parametrize("is_done_meanwhile", [False, True], ids=["by nobody", "by another"])
@pytest.mark.parametrize("name", ASKED)
@KRAFT_AND_ZOOKEEPER
def test_a_request_that_is_sent_and_not_answered(
    w: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str, is_done_meanwhile: bool
) -> None:
    """Whether it was carried out is looked for; where that does not show, the change is named with the way on."""
    asked = ASKED[name]
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=10)
    if name == "elect preferred":
        k.change("reassign", "execute", plan_to(tmp_path, [topic], [2, 1]))
    with k.stopped(*asked.command(topic), "--timeout", "8s", at="asking:1") as process:
        if is_done_meanwhile:
            WireKctl(w, tmp_path / "other").change(*asked.command(topic))
        dead, ran = unanswered(w, process)
    w.wait_until_gone(dead)
    returned(w, k, dead)
    (change,) = ran.of("change")
    # A partition whose leader is killed may be led by its preferred one without an election of ours; of its own
    # configuration only the broker tells; and with ZooKeeper there may be no controller, who tells, for a while.
    is_told = name != "config set of the broker" and w.zookeeper is None
    by_itself = name == "elect preferred"
    statuses = ({0} if is_told else {0, 5}) if is_done_meanwhile else {0, 5} if by_itself else {5}
    assert ran.status in statuses and "nothing was written" not in ran.err, (ran.status, ran.err)
    if ran.status != 0:
        named(ran)
    for _ in eventually(f"{name} is done"):
        if asked.is_done(k, topic):
            break
        k.change("journal", "resume", change["id"], status=None)
    assert asked.by_kafka(w, topic)
    if ran.status != 0:
        k.change("journal", "resume", change["id"], status=None)
    assert k.state(change["id"]) == "applied"
    if name.startswith("config set of the broker"):
        k("config", "unset", *OF_BROKER, "num.io.threads", "--yes")


def planned(ran: Ran) -> list[object]:
    return [row for row in ran.of("change") if row["state"] == "planned"]


@KRAFT_AND_ZOOKEEPER
def test_the_only_broker_with_all_records_comes_back_before_an_unclean_election(
    w: Cluster, k: WireKctl, topic: str
) -> None:
    """It leads again, and the election, which would have cost records, is refused."""
    k.change("topic", "create", topic, "--replica-assignment", "1:2")
    fill(w, topic, records=5)
    killed(w, k, 2)
    for _ in eventually("broker 1 alone is in sync"):
        if [row["isr"] for row in k("topic", "describe", topic).of("partition")] == [[1]]:
            break
    fill(w, topic, records=5)
    w.kill(1)
    returned(w, k, 2)
    w.wait_until_gone(1)
    for _ in eventually("it has no leader, and broker 2 answers"):
        rows = k("elect", "unclean", topic, "--dry-run").of("candidate")
        if [row["log_end_offset"] for row in rows] == [None, 5]:
            break
    with k.stopped("elect", "unclean", topic, "--accept-loss", at="before-write:0") as election:
        returned(w, k, 1, elsewhere=True)
        ran = election.go_on()
    assert ran.status == 4 and "nothing was written" in ran.err, ran.err
    (row,) = k("topic", "describe", topic).of("partition")
    assert row["leader"] == 1


# --- registrations ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    """Broker 1, which is the controller, and broker 2, which has no replica."""
    with kraft_cluster("4.3", brokers=2, no_voters=(2,)) as c:
        yield c


@pytest.mark.parametrize("at", AT)
def test_a_broker_comes_back_while_it_is_unregistered(two: Cluster, tmp_path: Path, at: str) -> None:
    k = WireKctl(two, tmp_path / "journal")
    killed(two, k, 2)
    with k.stopped("cluster", "unregister", 2, at=at) as process:
        returned(two, k, 2, elsewhere=True)
        ran = process.go_on()
    if at == "before-write:0":
        assert ran.status == 4 and "broker 2 is alive; nothing was written" in ran.err
    else:
        assert "broker 2 is alive: it has registered again" in ran.err
        named(ran)
    assert alive(k) == [1, 2]
    listed = listed_by_kafka(two)
    assert re.search(rf"(?m)^2\s+127\.0\.0\.1\s+{two.brokers[2].port}\s", listed), listed


def listed_by_kafka(c: Cluster) -> str:
    where = ("--bootstrap-server", c.bootstrap)
    return c.tool("org.apache.kafka.tools.ClusterTool", "list-endpoints", *where, "--include-fenced-brokers")


def test_the_controller_dies_while_a_broker_is_unregistered(two: Cluster, tmp_path: Path) -> None:
    """The request is sent, and nobody answers it."""
    k = WireKctl(two, tmp_path / "journal")
    killed(two, k, 2)
    with k.stopped("cluster", "unregister", 2, at="asking:1") as process:
        two.pause(1)
        os.kill(process.pid, signal.SIGCONT)
        for _ in eventually("the request has come"):
            if has_unread(two.brokers[1], process.pid):
                break
        two.kill(1)
        ran = process.wait()
    id = named(ran)
    assert "nothing was written" not in ran.err
    two.start(1)
    for _ in eventually("it is done"):
        if k.change("journal", "resume", id, status=None).status == 0:
            break
    assert not re.search(r"(?m)^2\s", listed_by_kafka(two))
    two.start(2)
    for _ in eventually("broker 2 is there again"):
        if alive(k) == [1, 2]:
            break
