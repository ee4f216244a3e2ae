"""kctl killed at every step of the changes that KRaft clusters alone have, under load: gone on with, and nothing is lost.

What clusters with ZooKeeper have too is in test_faults.py, moves between disks are in test_disks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually, kraft_cluster
from tests.brokers.traffic import traffic
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.test_faults import Change, Command, Scene, killed_and_resumed, points_of, scene
from tests.brokers.wire.test_groups import empty_group, member, offsets
from tests.brokers.wire.test_newer_groups import described, running
from tests.brokers.wire.test_records import starts

VERSIONS = [
    pytest.param("4.3", marks=pytest.mark.brokers),
    pytest.param("3.9", marks=[pytest.mark.brokers, pytest.mark.matrix]),
    pytest.param("4.1", marks=[pytest.mark.brokers, pytest.mark.matrix]),
]
LOGGER = ("--entity-type", "broker-loggers", "--entity-name", 1)
BROKER = ("--entity-type", "brokers", "--entity-name", 1)


@pytest.fixture(scope="module", params=VERSIONS)
def shared(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Brokers 1, 2, 3; voters 101, 102, 103 that can be changed."""
    state = "share.coordinator.state.topic"  # its replicas are to be on two brokers too, without the third
    properties = {f"{state}.replication.factor": 1, f"{state}.min.isr": 1}
    with kraft_cluster(request.param, controllers=3, dynamic=True, properties=properties) as c:
        yield c


@pytest.fixture
def c(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.heal()


@pytest.fixture
def k(c: Cluster, tmp_path: Path) -> WireKctl:
    kctl = WireKctl(c, tmp_path / "journal")
    await_alive(kctl, 1, 2, 3)
    return kctl


def await_alive(k: WireKctl, *ids: int) -> None:
    for _ in eventually(f"brokers {ids} are alive, and no others"):
        if [b["broker_id"] for b in k("cluster", "brokers").of("broker") if b["is_alive"]] == list(ids):
            return


@dataclass
class Prepared:
    """What the changes of a test share: what ends with it, and topics made beforehand."""

    stack: ExitStack
    topics: list[str] = field(default_factory=list)


Prepare = Callable[[Scene, Prepared], Command]


@dataclass(frozen=True)
class Killed:
    """A change: how it is prepared, which gives its command; whether it is done; where the load's topic is."""

    prepare: Prepare
    is_done: Callable[[Scene], bool]
    ledger: str = "1:2"
    version: str = ""  # the first that has it


def filled(s: Scene) -> None:
    s.k.change("topic", "create", s.topic, "--replica-assignment", "1:2,2:1")
    for partition in (0, 1):
        fill(s.cluster, s.topic, partition=partition, records=20)


# --- configurations -----------------------------------------------------------------------------------------


def broker_config(s: Scene, _: Prepared) -> Command:
    if is_configured(s):
        s.k.change("config", "unset", *BROKER, "num.io.threads")
    return "config", "set", *BROKER, "num.io.threads=3"


def is_configured(s: Scene) -> bool:
    return [r["value"] for r in s.k("config", "get", *BROKER, "num.io.threads").of("config")] == ["3"]


def level_for_a_while(_: Scene, __: Prepared) -> Command:
    return "config", "set", *LOGGER, "root=DEBUG", "--for", "1s"


def is_level_back(s: Scene) -> bool:
    finished = [s.k.state(id) for id in s.k.ids()] == ["applied"]
    return finished and [r["value"] for r in s.k("config", "get", *LOGGER, "root").of("config")] == ["INFO"]


# --- records and groups -------------------------------------------------------------------------------------


def delete_records(s: Scene, _: Prepared) -> Command:
    filled(s)
    return "topic", "delete-records", s.topic, "--to-offset", 5, "--accept-loss"


def with_group(s: Scene) -> str:
    filled(s)
    empty_group(s.cluster, s.topic, f"g-{s.topic}")
    return f"g-{s.topic}"


def reset(s: Scene, _: Prepared) -> Command:
    return "group", "reset", with_group(s), "--to-offset", 4, "--execute"


def delete_offsets(s: Scene, _: Prepared) -> Command:
    return "group", "delete-offsets", with_group(s), "--topic", f"{s.topic}:0"


def delete_group(s: Scene, _: Prepared) -> Command:
    return "group", "delete", with_group(s)


def remove_member(s: Scene, prepared: Prepared) -> Command:
    filled(s)
    group = f"g-{s.topic}"
    prepared.stack.enter_context(
        member(s.cluster, group, s.topic)
    )  # it does not ask again, and so stays away
    (one,) = s.k("group", "describe", group).of("member")
    return "group", "remove-member", group, one["member_id"]


def share_group(s: Scene, prepared: Prepared) -> Command:
    if not prepared.topics:
        filled(s)
        of_group = ("--entity-type", "groups", "--entity-name", "shared")
        s.k.change("config", "set", *of_group, "share.auto.offset.reset=earliest")
        with running(s.cluster, "ConsoleShareConsumer", "--topic", s.topic, "--group", "shared"):
            for _ in eventually("all is acknowledged"):
                rows = described(s.k, "shared", "Stable").of("group_offset")
                if [row["lag"] for row in rows] == [0, 0]:
                    break
        described(s.k, "shared", "Empty")
        prepared.topics.append(s.topic)
    s.k.change("group", "reset", "shared", "--to-earliest", "--execute")
    return "group", "reset", "shared", "--to-offset", 4, "--execute"


# --- quorum, features, brokers --------------------------------------------------------------------------------


def voters(s: Scene) -> list[int]:
    return list(s.k("quorum", "describe").of("quorum")[0]["voters"])


def remove_voter(s: Scene, _: Prepared) -> Command:
    if 102 not in voters(s):
        s.k.change("quorum", "add", 102)
    return "quorum", "remove", 102


def add_voter(s: Scene, _: Prepared) -> Command:
    if 102 in voters(s):
        s.k.change("quorum", "remove", 102)
    return "quorum", "add", 102


def feature(s: Scene) -> tuple[str, int, int]:
    """One whose level goes down and up again."""
    return ("metadata.version", 20, 21) if s.cluster.version == "3.9" else ("group.version", 0, 1)


def level(s: Scene) -> int:
    rows = s.k("feature", "list").of("feature")
    return next(int(row["finalized_level"]) for row in rows if row["name"] == feature(s)[0])


def downgrade(s: Scene, _: Prepared) -> Command:
    name, low, high = feature(s)
    s.k.change("feature", "upgrade", f"{name}={high}")
    return "feature", "downgrade", f"{name}={low}", "--accept-downgrade"


def upgrade(s: Scene, _: Prepared) -> Command:
    name, low, high = feature(s)
    if level(s) == high:
        s.k.change("feature", "downgrade", f"{name}={low}", "--accept-downgrade")
    return "feature", "upgrade", f"{name}={high}"


def unregister(s: Scene, _: Prepared) -> Command:
    s.cluster.restart(3)
    await_alive(s.k, 1, 2, 3)
    plan = s.folder / "drain.json"
    ran = s.k("reassign", "plan", "--drain", 3, "--to", plan)
    assert ran.status == 0, ran.err
    if ran.of("move"):
        s.k.change("reassign", "execute", plan)
    s.cluster.kill(3)
    await_alive(s.k, 1, 2)
    return "cluster", "unregister", 3


def registered(s: Scene) -> set[int]:
    """By the controllers' own log: brokers before 4.0 do not tell of who is dead."""
    folders = [node.log_dir for node in s.cluster.controllers.values()]
    return {row["broker_id"] for row in s.k("metadata", "show", *folders).of("broker")}


def unclean(s: Scene, prepared: Prepared) -> Command:
    """A topic that broker 2 alone can lead, which has half of its records; the rest are on 1, which is dead."""
    if not prepared.topics:
        prepared.topics += [f"{s.topic}-{number}" for number in range(16)]
        for topic in prepared.topics:
            s.k.change("topic", "create", topic, "--replica-assignment", "1:2")
            fill(s.cluster, topic, records=5)
        s.cluster.kill(2)
        for _ in eventually("broker 1 alone is in sync"):
            rows = s.k("topic", "describe", *prepared.topics).of("partition")
            if rows and all(r["isr"] == [1] for r in rows):
                break
        for topic in prepared.topics:
            fill(s.cluster, topic, records=5)
        s.cluster.kill(1)
        s.cluster.start(2)
        await_alive(s.k, 2, 3)
    s.topic = prepared.topics.pop()
    for _ in eventually("it has no leader, and broker 2 answers"):
        rows = s.k("elect", "unclean", s.topic, "--dry-run").of("candidate")
        if [row["log_end_offset"] for row in rows] == [None, 5]:
            break
    return "elect", "unclean", s.topic, "--accept-loss"


def is_led(s: Scene) -> bool:
    return [p["leader"] for p in s.k("topic", "describe", s.topic).of("partition")] == [2]


CHANGES = {
    "config set of a broker": Killed(broker_config, is_configured),
    "config set --for": Killed(level_for_a_while, is_level_back),
    "topic delete-records": Killed(delete_records, lambda s: starts(s.k, s.topic) == [5, 5]),
    "group reset": Killed(reset, lambda s: set(offsets(s.k, f"g-{s.topic}").values()) == {4}),
    "group delete-offsets": Killed(
        delete_offsets, lambda s: [*offsets(s.k, f"g-{s.topic}")] == [(s.topic, 1)]
    ),
    "group delete": Killed(delete_group, lambda s: s.k("group", "describe", f"g-{s.topic}").status == 3),
    "group remove-member": Killed(
        remove_member, lambda s: s.k("group", "describe", f"g-{s.topic}").of("member") == []
    ),
    "group reset of a share group": Killed(
        share_group, lambda s: set(offsets(s.k, "shared").values()) == {4}, version="4.3"
    ),
    "quorum remove": Killed(remove_voter, lambda s: voters(s) == [101, 103]),
    "quorum add": Killed(add_voter, lambda s: voters(s) == [101, 102, 103]),
    "feature downgrade": Killed(downgrade, lambda s: level(s) == feature(s)[1]),
    "feature upgrade": Killed(upgrade, lambda s: level(s) == feature(s)[2]),
    "elect unclean": Killed(unclean, is_led, ledger="3"),
    "cluster unregister": Killed(unregister, lambda s: 3 not in registered(s)),
}


IRREVERSIBLE = ("quorum remove", "elect unclean", "cluster unregister")
"""Those that every run of the tests carries out: a mistake in one cannot be undone."""


@pytest.mark.parametrize(
    "wanted", [{"before-write:0", "sent:1"}, pytest.param(None, marks=pytest.mark.matrix)], ids=["two", "all"]
)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in IRREVERSIBLE else pytest.mark.matrix) for name in CHANGES]
)
def test_killed_under_load(
    c: Cluster, k: WireKctl, topic: str, tmp_path: Path, name: str, wanted: set[str] | None
) -> None:
    killed = CHANGES[name]
    if c.version < killed.version:
        pytest.skip(f"it needs Kafka {killed.version}")
    k.change("topic", "create", topic, "--replica-assignment", killed.ledger)
    with ExitStack() as stack:
        running = stack.enter_context(traffic(c, topic, 1))
        prepared = Prepared(stack)
        change = Change(lambda s: killed.prepare(s, prepared), killed.is_done)
        points = points_of(scene(c, k, topic, tmp_path), change) if wanted is None else sorted(wanted)
        assert {"before-write:0", "sent:1"} <= {*points}
        for point in points:
            killed_and_resumed(scene(c, k, topic, tmp_path), change, point)
        running.require_progress()
    running.require_nothing_lost()
