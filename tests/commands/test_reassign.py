"""Reassign, elect, cluster and consumer on recorded znodes: rows, files, exit statuses."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from tests.conftest import kctl, recording, rows

CHECKS_THAT_MAY_FIND = {"non-preferred-leaders", "moving"}


@pytest.fixture
def znodes() -> Path:
    """Brokers 1 to 3 of 2.8, all well but one preferred leader."""
    return recording("incidents/pauses-2.8") / "moments" / "after" / "znodes.jsonl"


def read(path: Path) -> dict[str, list[int]]:
    values = json.loads(path.read_text())
    assert set(values) == {"version", "partitions"}
    assert all(set(row) == {"topic", "partition", "replicas"} for row in values["partitions"])
    return {f"{r['topic']}-{r['partition']}": r["replicas"] for r in values["partitions"]}


def test_a_plan_and_its_files(znodes: Path, tmp_path: Path) -> None:
    plan = tmp_path / "rf2.json"
    ran = rows(
        *("reassign", "plan", "--replication-factor", 2, "--topics", "trades", "--to", plan),
        *("--max-batch-moves", 2, "--snapshot", znodes),
    )
    assert ran.status == 0, ran.err
    assert [row["kind"] for row in ran.rows] == ["move"] * 3 + ["load"] * 3 + ["batch"] * 2 + ["plan"]
    targets = read(plan)
    assert sorted(targets) == ["trades-0", "trades-1", "trades-2"]
    assert all(len(replicas) == 2 for replicas in targets.values())
    assert {**read(tmp_path / "rf2.001.json"), **read(tmp_path / "rf2.002.json")} == targets
    origins = read(tmp_path / "rf2.rollback.json")
    assert {f"{m['topic']}-{m['partition']}": m["from"] for m in ran.of("move")} == origins
    (summary,) = ran.of("plan")
    assert (summary["partitions"], summary["replicas_to_move"], summary["batches"]) == (3, 0, 2)
    again = rows("reassign", "plan", "--replication-factor", 1, "--to", plan, "--snapshot", znodes)
    assert again.status == 4 and "exists; nothing was written" in again.err


def test_sizes_from_log_directories(znodes: Path, tmp_path: Path) -> None:
    ran = rows(
        *("reassign", "plan", "--replication-factor", 2, "--to", tmp_path / "p.json", "--snapshot", znodes),
        *("--disk-sizes", znodes.parent, "--max-batch-data", "1GiB"),
    )
    assert ran.status == 0, ran.err
    assert all(load["size_in_bytes_before"] > 0 for load in ran.of("load"))
    assert all(move["size_in_bytes"] is not None for move in ran.of("move"))


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        (("--to", "p.json"), 2, "nothing to plan"),
        (("--drain", "1", "--brokers", "2", "--to", "p.json"), 2, "exclude each other"),
        (("--drain", "x", "--to", "p.json"), 2, "is not a list of broker ids"),
        (("--drain", "1,1", "--to", "p.json"), 2, "twice"),
        (("--replace", "1", "--to", "p.json"), 2, "is not OLD=NEW"),
        (("--like-kafka", "--drain", "1", "--to", "p.json"), 2, "--like-kafka needs --brokers"),
        (("--drain", "1", "--max-batch-data", "5", "--to", "p.json"), 2, "needs --disk-sizes"),
        (("--balance-disks", "1", "--drain", "2", "--to", "p.json"), 2, "exclude each other"),
        (
            ("--balance-disks", "1", "--partition", "0", "--to", "p.json"),
            2,
            "--partition goes with --log-dir only",
        ),
        (("--drain", "2", "--partition", "0", "--to", "p.json"), 2, "--partition goes with --log-dir only"),
        (("--log-dir", "1=d2", "--to", "p.json"), 2, "'1=d2' is not BROKER=DIR with an absolute path"),
        (("--drain", "1", "--topics", "zz", "--to", "p.json"), 3, "no topic zz"),
        (("--drain", "1", "--to", "p.json"), 4, "needs 3 brokers and may only use 2, 3"),
        (("--brokers", "1,2,9", "--to", "p.json"), 4, "brokers 9 are not alive"),
        (("--drain", "1", "--disk-sizes", "no-such", "--to", "p.json"), 3, "no-such"),
    ],
)
def test_plans_that_cannot_be(
    znodes: Path,
    tmp_path: Path,
    args: tuple[str, ...],
    status: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kctl("reassign", "plan", *args, "--snapshot", znodes)
    assert ran.status == status, ran.err
    assert says in ran.err
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_move_is_a_plan_that_all_commands_take(znodes: Path, tmp_path: Path) -> None:
    plan = tmp_path / "none.json"
    made = rows("reassign", "plan", "--replication-factor", 3, "--to", plan, "--snapshot", znodes)
    assert made.status == 0
    assert made.of("plan")[0]["partitions"] == 0
    journal = {"KCTL_JOURNAL": str(tmp_path / "journal")}
    assert rows("reassign", "verify", plan, "--snapshot", znodes, env=journal).status == 0
    assert not (tmp_path / "journal").exists(), "looking writes nothing"


def test_verify_and_status_of_a_plan_not_carried_out(znodes: Path, tmp_path: Path) -> None:
    plan = tmp_path / "p.json"
    rows(
        "reassign",
        "plan",
        "--replication-factor",
        1,
        "--topics",
        "strict",
        "--to",
        plan,
        "--snapshot",
        znodes,
    )
    journal = {"KCTL_JOURNAL": str(tmp_path / "journal")}
    for verb in ("verify", "status"):
        ran = rows("reassign", verb, plan, "--snapshot", znodes, env=journal)
        assert ran.status == 5
        assert [(p["topic"], p["state"]) for p in ran.of("partition")] == [("strict", "not_started")]
    back = rows("reassign", "verify", tmp_path / "p.rollback.json", "--snapshot", znodes, env=journal)
    assert back.status == 0
    assert rows("reassign", "status", "--snapshot", znodes, env=journal).status == 0
    assert rows("reassign", "throttle", "list", "--snapshot", znodes, env=journal).rows == []


@pytest.mark.parametrize(
    ("text", "status"),
    [("", 3), ("{", 3), ('{"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', 2)],
)
def test_plans_that_are_none(znodes: Path, tmp_path: Path, text: str, status: int) -> None:
    (tmp_path / "p.json").write_text(text)
    assert kctl("reassign", "verify", tmp_path / "p.json", "--snapshot", znodes).status == status
    assert kctl("reassign", "verify", tmp_path / "gone.json", "--snapshot", znodes).status == 3


def test_like_kafka(znodes: Path, tmp_path: Path) -> None:
    plans = [tmp_path / f"{n}.json" for n in (1, 2)]
    for plan in plans:
        ran = rows(
            *("reassign", "plan", "--brokers", "1,2,3", "--like-kafka", "--seed", 7, "--to", plan),
            *("--snapshot", znodes),
        )
        assert ran.status == 0
    assert plans[0].read_bytes() == plans[1].read_bytes()


def test_elections(znodes: Path) -> None:
    ran = rows("elect", "status", "--snapshot", znodes)
    assert ran.status == 5
    assert [(p["topic"], p["partition"], p["state"], p["preferred_leader"]) for p in ran.rows] == [
        ("trades", 2, "not_started", 3)
    ]
    assert len(rows("elect", "status", "--all", "--snapshot", znodes).rows) == 8
    assert rows("elect", "status", "--topics", "alpha", "--snapshot", znodes).status == 0
    assert rows("elect", "status", "--topics", "zz", "--snapshot", znodes).status == 3


def test_the_cluster(znodes: Path) -> None:
    (row,) = rows("cluster", "describe", "--snapshot", znodes).rows
    assert (row["brokers"], row["partitions"], row["non_preferred_leaders"], row["backend"]) == (
        3,
        8,
        1,
        "snapshot",
    )
    brokers = rows("cluster", "brokers", "--snapshot", znodes).rows
    assert [b["broker_id"] for b in brokers] == [1, 2, 3]
    assert sum(b["leaders"] for b in brokers) == 8
    (controller,) = rows("cluster", "controller", "--snapshot", znodes).rows
    assert controller["is_alive"]
    health = rows("cluster", "health", "--snapshot", znodes)
    assert health.status == 0
    assert {h["check"] for h in health.rows if h["status"] != "good"} <= CHECKS_THAT_MAY_FIND


def test_predictions(znodes: Path) -> None:
    ran = rows("cluster", "predict", "--stop", 1, "--snapshot", znodes)
    assert ran.status == 5
    assert [p["topic"] for p in ran.rows if p["is_under_min_isr"]] == ["strict"]
    assert rows("cluster", "predict", "--stop", 1, "--topics", "trades", "--snapshot", znodes).status == 0
    assert rows("cluster", "predict", "--stop", 9, "--snapshot", znodes).status == 2
    assert rows("cluster", "predict", "--stop", 1, "--topics", "zz", "--snapshot", znodes).status == 3


def test_a_topics_configuration_from_a_snapshot(znodes: Path) -> None:
    ran = rows("topic", "config", "get", "strict", "--snapshot", znodes)
    assert ran.status == 0 and ran.rows, ran.err
    by_entity = ("config", "get", "--entity-type", "topics", "--entity-name", "strict", "--snapshot", znodes)
    assert ran.rows == rows(*by_entity).rows
    assert kctl("topic", "config", "get", "zz", "--snapshot", znodes).status == 3
    for action in (("set", "strict", "flush.ms=1"), ("unset", "strict", "flush.ms")):
        ran = kctl("topic", "config", *action, "--yes", "--snapshot", znodes)
        assert ran.status == 2 and "a snapshot cannot be changed" in ran.err


def test_no_old_consumers(znodes: Path) -> None:
    assert rows("consumer", "list", "--snapshot", znodes).rows == []
    assert rows("consumer", "describe", "g", "--snapshot", znodes).status == 3


def test_old_consumers_of_an_export(tmp_path: Path) -> None:
    nodes = {
        "/brokers/ids": "",
        "/brokers/topics/t": '{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}',
        "/consumers/g/ids/g_a": '{"version":1,"subscription":{"t":2},"pattern":"static","timestamp":"5"}',
        "/consumers/g/ids/g_b": '{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"6"}',
        "/consumers/g/owners/t/0": "g_a-0",
        "/consumers/g/owners/t/1": "g_b-0",
        "/consumers/g/owners/t/2": "g_gone-0",
        "/consumers/g/offsets/t/0": "41",
    }
    export = tmp_path / "znodes.jsonl"
    export.write_text(
        "".join(
            json.dumps({"path": p, "data": b64encode(d.encode()).decode(), "version": 0}) + "\n"
            for p, d in nodes.items()
        )
    )
    (group,) = rows("consumer", "list", "--snapshot", export).rows
    assert (group["group"], group["members"], group["partitions"], group["lag"]) == ("g", 2, 3, None)
    described = rows("consumer", "describe", "g", "--snapshot", export)
    assert [m["member_id"] for m in described.of("member")] == ["g_a", "g_b"]
    assert [(p["partition"], p["offset"], p["owner"], p["is_member"]) for p in described.of("partition")] == [
        (0, 41, "g_a-0", True),
        (1, None, "g_b-0", True),
        (2, None, "g_gone-0", False),
    ]
    dealt = rows("consumer", "assign", "g", "--snapshot", export)
    assert [(a["thread"], a["partition"], a["is_as_assigned"]) for a in dealt.rows] == [
        ("g_a-0", 0, True),
        ("g_a-1", 1, False),
        ("g_b-0", 2, False),
    ]
    assert rows("consumer", "assign", "g", "--algorithm", "roundrobin", "--snapshot", export).status == 0


@pytest.mark.parametrize(
    "args",
    [
        ("reassign", "plan", "--replication-factor", "2"),
        ("cluster", "health"),
        ("cluster", "predict", "--stop", "1,2"),
        ("elect", "status"),
    ],
)
def test_what_people_see(znodes: Path, tmp_path: Path, args: tuple[str, ...]) -> None:
    more = ("--to", tmp_path / "p.json") if args[1] == "plan" else ()
    ran = kctl(*args, *more, "--snapshot", znodes, "--color", "always")
    assert ran.status in (0, 5)
    assert b"\x1b[" in ran.out or args[0] == "elect"
    assert b"\t" not in ran.out or args[0] == "elect"


def test_a_snapshot_cannot_be_changed(znodes: Path, tmp_path: Path) -> None:
    assert kctl("reassign", "throttle", "clear", "--unused", "--snapshot", znodes).status == 2
    assert kctl("reassign", "throttle", "set", "p.json").status == 2
    assert kctl("reassign", "throttle", "clear").status == 2


def test_disks_are_not_moved_through_zookeeper(znodes: Path, tmp_path: Path) -> None:
    why = (
        "kctl: only the broker itself, not ZooKeeper, can move replicas between its disks; nothing was written\n"
        "      give --bootstrap-server HOST:PORT (Kafka 1.1 and later, KIP-113)\n"
    )
    to = "--to", tmp_path / "disks.json", "--snapshot", znodes
    for goal in (("--balance-disks", 1), ("--log-dir", "1=/d2")):
        ran = kctl("reassign", "plan", *goal, *to)
        assert (ran.status, ran.err) == (4, why)
    made = {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["/d2"]}],
    }
    (tmp_path / "made.json").write_text(json.dumps(made))
    ran = kctl("reassign", "verify", tmp_path / "made.json", "--snapshot", znodes)
    assert (ran.status, ran.err) == (4, why)
