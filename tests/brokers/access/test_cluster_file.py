"""A cluster in a file: exported, applied to where nothing of it is, exported again; killed, resumed and undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kctl.wire.adapter import Wire
from tests.brokers.access.conftest import Guarded
from tests.brokers.cluster import eventually
from tests.brokers.running import Kctl
from tests.brokers.wire.conftest import fill
from tests.conftest import kctl

pytestmark = pytest.mark.brokers

MOST_REQUESTS = 24  # of a diff
TOLD = ("--super-user", "User:ANONYMOUS", "--no-allow-everyone")


def export(k: Kctl, *options: object) -> dict[str, Any]:
    """What the cluster has."""
    ran = kctl("export", *options, env=k.environment)
    assert ran.status == 0, ran.err
    document: dict[str, Any] = yaml.safe_load(ran.out)
    return document


def content(guarded: Guarded, name: str, topics: int, *, users: bool = True) -> dict[str, Any]:
    """A file with every kind that the backend can change."""
    document: dict[str, Any] = {
        "topics": {
            f"{name}-{n}": {"partitions": 1 + n % 3, "replication_factor": 1, "configs": {"retention.ms": 10**6 + n}}
            for n in range(topics)
        },
        "quotas": [
            {"user": name, "producer_byte_rate": 1000},
            {"user": name, "client_id": "<default>", "consumer_byte_rate": 500},
            {"client_id": f"{name} é", "request_percentage": 50.5},
            {"user": f"{name}, client-id=<default>", "consumer_byte_rate": 7},  # reads like the second
        ],
        "acls": [
            {"principals": f"User:{name}", "topic": f"{name}-0", "operations": ["read", "write"]},
            {"principals": f"User:{name}", "group": name, "pattern": "prefixed", "operations": "read", "hosts": "10.0.0.7"},
            {"principals": f"User:{name}", "topic": f"{name}-1", "operations": "delete", "permission": "deny"},
            {"principals": f"User:CN={name}, O='x' \"y\" @z", "group": "- ~ $${a}: #", "operations": "read"},
        ],
    }  # fmt: skip
    if users:
        document["users"] = {
            name: {"mechanisms": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096}},
            f"{name}=a, <b@c>/%": {"mechanisms": {"SCRAM-SHA-512": 4096}},
        }
    if guarded.backend == "kraft":
        document["brokers"] = {
            "<default>": {"log.cleaner.threads": 2},
            "1": {"log.cleaner.io.buffer.load.factor": 0.8},
        }
        document["client_metrics"] = {name: {"interval.ms": 5000, "metrics": ["a.b", "c.d"]}}
        if guarded.cluster.version >= "4":
            document["groups"] = {name: {"consumer.session.timeout.ms": 50000}}
    return document


def written(folder: Path, document: dict[str, Any], name: str = "cluster") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def sent(patch: pytest.MonkeyPatch) -> list[object]:
    """The requests to brokers from now on."""
    requests: list[object] = []
    send_all = Wire.send_all

    def counted(wire: Wire, listed: Sequence[tuple[int, Any]], **options: Any) -> list[Any]:
        requests.extend(type(request).__name__ for _, request in listed)
        return send_all(wire, listed, **options)

    patch.setattr(Wire, "send_all", counted)
    return requests


def check_there_and_back(guarded: Guarded, k: Kctl, name: str, folder: Path, topics: int) -> None:
    """Applied, applied again, undone; and what was exported meanwhile, applied to the empty cluster, is the same."""
    before = export(k)
    assert not any(topic.startswith(name) for topic in before.get("topics", {}))
    file = written(folder, content(guarded, name, topics))
    options = (*TOLD, "--timeout", "10m")
    k.change("apply", file, "--generate-passwords-to", folder / "first", *options)
    with pytest.MonkeyPatch.context() as patch:
        requests = sent(patch)
        assert k("diff", file, "--exit-code").status == 0
    assert len(requests) <= MOST_REQUESTS, "as many for 500 topics as for 5"
    after = export(k)
    assert len(after["topics"]) == len(before.get("topics", {})) + topics
    exported = folder / "exported.yaml"
    assert kctl("export", "--to", exported, env=k.environment).status == 0
    changes = k.ids()
    k.change("apply", file, *options)
    k.change("apply", exported, *options)
    assert k.ids() == changes, "there was nothing to do"
    k.change("journal", "undo", changes[-1], "--timeout", "10m")
    assert export(k) == before
    assert k("diff", exported, "--exit-code").status == 5
    k.change("apply", exported, "--generate-passwords-to", folder / "second", *options)
    assert export(k) == after
    if guarded.backend == "kraft":
        log = next(guarded.cluster.folder.rglob("__cluster_metadata-0"))
        for _ in eventually("the metadata log has it all"):
            if export(k, "--metadata", log) == after:
                break
        ran = k("diff", exported, "--against", log, "--whole", "--exit-code")
        assert (ran.status, ran.rows) == (0, [])
    else:
        k("znode", "export", folder / "znodes.jsonl")
        assert k("diff", exported, "--against", folder / "znodes.jsonl", "--exit-code").status == 0
    k.change("journal", "undo", k.ids()[-1], "--timeout", "10m")
    assert export(k) == before


def test_there_and_back(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    check_there_and_back(guarded, k, name, tmp_path, topics=5)


def test_five_hundred_topics_there_and_back(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    check_there_and_back(guarded, k, name, tmp_path, topics=500)


def test_an_apply_killed_at_every_step(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    """At each point once: resumed and undone, or undone at once, the cluster is as it was before."""
    before = export(k)
    file = written(tmp_path, content(guarded, name, 3, users=False))
    points = k.points("apply", file, *TOLD, trace=tmp_path / "trace")
    after = export(k)
    k.change("journal", "undo", k.ids()[-1])
    assert export(k) == before
    assert len(points) >= 20
    for number, point in enumerate(dict.fromkeys(points)):
        journal = type(k)(k.cluster, tmp_path / f"journal-{number}")
        if not journal.killed("apply", file, *TOLD, fault=point) or not journal.ids():
            assert export(k) in (before, after), point
        if number % 2 and journal.ids():
            ran = journal.change("journal", "resume", journal.ids()[-1], status=None)
            assert ran.status == 0 or "is finished" in ran.err, (point, ran.err)
            assert export(k) == after, point
            assert k("diff", file, "--exit-code").status == 0, point
        for id in journal.ids()[-1:]:
            journal.change("journal", "undo", id)
        assert export(k) == before, point


STAGES = ("users", "topics", "configs", "quotas", "grants", "revocations")
MOMENTS = {
    "before-write": "not sent",
    "after-write": "sent, and not in the journal",
    "finished": "in the journal",
}


@pytest.fixture(scope="module")
def changed(
    guarded: Guarded, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A file that asks for something in each stage, with deletions, and what the cluster has before."""
    folder, name = tmp_path_factory.mktemp("changed"), "staged"
    k = guarded.kctl(folder / "journal")
    there: dict[str, Any] = {
        "topics": {f"{name}-0": {"partitions": 1, "replication_factor": 1, "configs": {"retention.ms": 1, "flush.ms": 5}}},
        "quotas": [
            {"user": name, "producer_byte_rate": 1000, "consumer_byte_rate": 7},
            {"client_id": f"{name}, a=b", "request_percentage": 50},
        ],
        "acls": [
            {"principals": f"User:{name}", "topic": f"{name}-0", "operations": ["read", "write"]},
            {"principals": f"User:{name}", "topic": f"{name}-0", "operations": "delete", "permission": "deny"},
        ],
    }  # fmt: skip
    k.change("apply", written(folder, there), *TOLD)
    wanted: dict[str, Any] = {
        "manage": {"topics": f"{name}-*", "quotas": f"*={name}*", "acls": f"User:{name}"},
        "users": {name: {"mechanisms": {"SCRAM-SHA-256": 4096}}},
        "topics": {
            f"{name}-0": {"configs": {"retention.ms": 2}},
            f"{name}-1": {"partitions": 2, "replication_factor": 1},
        },
        "quotas": [{"user": name, "producer_byte_rate": 2000}],
        "acls": [
            {"principals": f"User:{name}", "topic": f"{name}-0", "operations": ["read", "describe"]},
            {"principals": f"User:{name}", "topic": f"{name}-0", "operations": "alter", "permission": "deny"},
        ],
    }  # fmt: skip
    yield written(folder, wanted, "wanted"), export(k)
    k.change("journal", "undo", k.ids()[-1])


@pytest.mark.parametrize("way", ["resume", "undo"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("guarded", ["kraft-4.3"], indirect=True)
def test_killed_at_a_stage(
    moment: str, stage: str, way: str, k: Kctl, changed: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """Resumed, it is as the file asks, but for a user whose password is lost; undone, the export is that of before."""
    file, before = changed
    options = (*TOLD, "--generate-passwords-to", tmp_path / "passwords", "--accept-deletes", "5")
    number = STAGES.index(stage)
    assert k.killed("apply", file, *options, fault=f"{moment}:{number}")
    (id,) = k.ids()
    if way == "resume":
        is_lost = (moment, stage) == ("before-write", "users")
        ran = k.change("journal", "resume", id, status=None)
        is_over = (moment, stage) == ("finished", STAGES[-1])
        assert (
            ran.status == 0
            or (is_over and "is finished" in ran.err)
            or (is_lost and "the password is not in" in ran.err)
        )
        assert k("diff", file, "--exit-code").status == (5 if is_lost else 0)
    k.change("journal", "undo", id)
    assert export(k) == before


def test_what_files_no_longer_hold_goes_with_its_word(
    guarded: Guarded, k: Kctl, name: str, tmp_path: Path
) -> None:
    document = content(guarded, name, 2, users=False)
    k.change("apply", written(tmp_path, document), *TOLD)
    fill(guarded.cluster, f"{name}-1", records=100)
    del document["topics"][f"{name}-1"], document["acls"][2]
    document["manage"] = {"topics": f"{name}-*", "acls": [f"User:{name}", f"User:CN={name},*"]}
    file = written(tmp_path, document)
    ran = k("apply", file, *TOLD, "--yes")
    assert ran.status == 4 and "needs --accept-deletes 2; nothing was written" in ran.err
    told = r"[\d.]+ KiB on disks" if guarded.backend == "kraft" else "all its records"
    assert re.search(rf"topic {name}-1 is deleted with {told}", ran.err)
    k.change("apply", file, *TOLD, "--accept-deletes", "2")
    assert k("diff", file, "--exit-code").status == 0
    ran = k("journal", "undo", k.ids()[-1], "--yes")
    assert ran.status == 4 and "no release stops a deletion" in ran.err
    del document["topics"][f"{name}-0"]
    document |= {"acls": [], "quotas": []}
    k.change("apply", written(tmp_path, document), *TOLD, "--accept-deletes", "5")


def test_of_two_applies_at_once_one_wins(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> None:
    one = content(guarded, name, 2, users=False)
    other = {
        **one,
        "topics": {t: {**body, "configs": {"retention.ms": 5}} for t, body in one["topics"].items()},
    }
    second = type(k)(k.cluster, tmp_path / "other-journal")
    with k.stopped("apply", written(tmp_path, one), *TOLD, at="journalled") as first:
        second.change("apply", written(tmp_path, other, "other"), *TOLD)
        ran = first.go_on()
    assert ran.status == 4 and "nothing was written" in ran.err, ran.err
    assert second("diff", written(tmp_path, other, "other"), "--exit-code").status == 0
    second.change("journal", "undo", second.ids()[-1])


def test_brokers_refuse_before_anything_is_written(
    guarded: Guarded, k: Kctl, name: str, tmp_path: Path
) -> None:
    """A bad value in the last of many topics: the first is not created either."""
    document = content(guarded, name, 120, users=False)
    document["topics"][f"{name}-99"]["configs"] = {"retention.ms": "soon"}
    ran = k("apply", written(tmp_path, document), *TOLD, "--yes")
    assert ran.status == 2 and f"{name}-99" in ran.err + str(document) and "retention.ms" in ran.err
    assert k.ids() == [] and not any(topic.startswith(name) for topic in export(k).get("topics", {}))
    assert os.listdir(tmp_path)
