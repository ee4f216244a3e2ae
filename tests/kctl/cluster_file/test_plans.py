"""Files applied to ZooKeeper in a dict: one plan, applied, applied again, cut off, resumed and undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from formats.values import replace
from formats.znodes.security import format_scram
from kctl.access.users import credential_of, salted
from kctl.changes import apply as applying
from kctl.changes import faults
from kctl.changes.apply import ChangeRun, deadline
from kctl.changes.entry import Entry, new_entry
from kctl.changes.intents import Several, intent_from_json, intent_to_json
from kctl.changes.journal import Journal
from kctl.changes.kinds.access import SetScram
from kctl.changes.plan import Plan
from kctl.changes.undo import plan_undo
from kctl.cluster.intent import Write
from kctl.cluster.interface import Conflict
from kctl.cluster_file.difference import differences
from kctl.cluster_file.loading import load
from kctl.cluster_file.planning import Accepted, plan_files
from kctl.cluster_file.present import present_in, secrets_in
from kctl.cluster_file.resources import SECTIONS, by_key
from kctl.cluster_file.writing import document_of
from kctl.errors import BadValue, KctlError, Refused
from kctl.model import Json
from kctl.zookeeper.cluster import ZookeeperCluster
from kctl.zookeeper.writes import scram_writes
from tests.fakes import FakeStore, add_topic, fake_cluster, obedient_controller, put_state

KINDS = ("topic", "quota", "acl")
FILE = """
defaults: {topics: {"*": {partitions: 2, replication_factor: 2}}}
topics:
  a: {configs: {retention.ms: 1000}}
  b:
  old: {configs: {retention.ms: 7}}
quotas:
  - {user: app, producer_byte_rate: 1000}
  - {user: app, client_id: <default>, consumer_byte_rate: 5}
acls:
  - {principals: User:app, topic: a, operations: [read, write]}
  - {principals: User:bad, topic: a, operations: write, permission: deny}
"""


@pytest.fixture
def store() -> FakeStore:
    found = fake_cluster()
    obedient_controller(found)
    add_topic(found, "old", [[1, 2], [2, 3]])
    return found


@pytest.fixture
def run(store: FakeStore, tmp_path: Path) -> ChangeRun:
    return ChangeRun(
        cluster=ZookeeperCluster(store), journal=Journal(tmp_path / "journal"), wait=True, until=deadline(5)
    )


def planned(run: ChangeRun, folder: Path, text: str = FILE, accepted: Accepted = Accepted()) -> Plan:  # noqa: B008
    path = folder / "cluster.yaml"
    path.write_text(text)
    wanted = load([path], {}, {})
    present = present_in(run.cluster, None, wanted.kinds, None, wanted.resources)
    changes = list(differences(wanted, by_key(present.resources)))
    return plan_files(run.cluster, present.state, changes, accepted, title="apply cluster.yaml")


def entry_of(plan: Plan) -> Entry:
    return new_entry(
        plan, command="kctl test", reason=None, cluster_id="W1mYKYRPRZqt8XjSxCjVnQ", backend="zookeeper",
        location="fake:2181/kafka", kafka_version=None, undoes=plan.details.get("undoes"),  # type: ignore[arg-type]
    )  # fmt: skip


def carry_out(plan: Plan, run: ChangeRun) -> Entry:
    entry = entry_of(plan)
    applying.apply(entry, run)
    return entry


def export(run: ChangeRun) -> dict[str, Json]:
    return document_of(present_in(run.cluster, None, tuple(SECTIONS.values()), None).resources)


def test_everything_in_one_change_in_a_safe_order(run: ChangeRun, tmp_path: Path) -> None:
    before = export(run)
    plan = planned(run, tmp_path)
    steps = [[part.kind for part in stage.intent.parts] for stage in plan.stages]
    assert steps == [
        ["create-topic"] * 2,
        ["alter-config"],
        ["alter-config"] * 2,
        ["alter-acls"],
        ["alter-acls"],
    ]
    assert "create allow" not in str(plan.stages[-1].intent)
    entry = carry_out(plan, run)
    assert entry.state == "applied" and entry.is_finished
    after = export(run)
    assert set(after) == {"kctl", "topics", "quotas", "acls"}
    assert planned(run, tmp_path).is_empty
    (tmp_path / "again.yaml").write_text(json.dumps(after))
    assert (
        load([tmp_path / "again.yaml"], {}, {}).resources.keys()
        >= load([tmp_path / "cluster.yaml"], {}, {}).resources.keys()
    )
    undo = plan_undo(entry, run)
    carry_out(undo, run)
    assert export(run) == before


def test_several_intents_survive_their_json(run: ChangeRun, tmp_path: Path) -> None:
    for stage in planned(run, tmp_path).stages:
        assert intent_from_json(json.loads(json.dumps(intent_to_json(stage.intent)))) == stage.intent


class Killed(BaseException):
    """The process ends here."""


def points_of(run: ChangeRun, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    points: list[str] = []
    monkeypatch.setattr(applying, "reach", points.append)
    carry_out(planned(run, folder), run)
    monkeypatch.setattr(applying, "reach", faults.reach)
    return points


POINTS = [
    "planned", "journalled", *(f"{when}:{n}" for n in range(5) for when in ("before-write", "after-write", "written", "finished")),
    "applied", "closed",
]  # fmt: skip


def test_the_points_are_all_that_there_are(
    run: ChangeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert points_of(run, tmp_path, monkeypatch) == POINTS


@pytest.mark.parametrize("way", ["resume", "undo"])
@pytest.mark.parametrize("point", POINTS[1:])
def test_killed_and_resumed_or_undone(
    point: str, way: str, run: ChangeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = export(run)

    def kill(reached: str) -> None:
        if reached == point:
            raise Killed

    monkeypatch.setattr(applying, "reach", kill)
    with pytest.raises(Killed):
        carry_out(planned(run, tmp_path), run)
    monkeypatch.setattr(applying, "reach", faults.reach)
    (entry,) = run.journal.entries(lambda error: None)
    if way == "resume":
        try:
            applying.resume(entry, run)
        except Refused as refused:
            assert "is finished" in str(refused)
        assert planned(run, tmp_path).is_empty
        (entry,) = run.journal.entries(lambda error: None)
    undo = plan_undo(entry, run)
    if not undo.is_empty:
        carry_out(undo, run)
    assert export(run) == before


def test_deletions_need_their_number(run: ChangeRun, tmp_path: Path) -> None:
    text = "manage: {topics: all, acls: all}\n"
    assert planned(run, tmp_path, text).needs == "--accept-deletes 1"
    assert planned(run, tmp_path, text, Accepted(deletes=2)).needs == "--accept-deletes 1"
    plan = planned(run, tmp_path, text, Accepted(deletes=1))
    assert plan.needs == "" and any(
        "nothing takes this back: delete topic old" in text for text in plan.warnings
    )
    carry_out(plan, run)
    assert "topics" not in export(run)


def test_keys_that_no_file_mentions_need_the_number_too(
    run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    store.put(
        "/config/topics/old",
        {"version": 1, "config": {"retention.ms": "5", "flush.ms": "6", "flush.messages": "7"}},
    )
    store.put(
        "/config/clients/app",
        {"version": 1, "config": {"producer_byte_rate": "1", "consumer_byte_rate": "2"}},
    )
    before = export(run)
    text = (
        "manage: {topics: all, quotas: all}\ntopics: {old: {configs: {retention.ms: 8, flush.ms: null}}}\n"
        "quotas: [{client_id: app, producer_byte_rate: 1}]\n"
    )
    plan = planned(run, tmp_path, text)
    assert plan.needs == "--accept-deletes 2", "what the file unsets itself is none"
    assert plan.title.endswith(", 2 deletions")
    entry = carry_out(planned(run, tmp_path, text, Accepted(deletes=2)), run)
    assert planned(run, tmp_path, text).is_empty
    carry_out(plan_undo(entry, run), run)
    assert export(run) == before


def test_a_key_that_goes_and_lets_an_unclean_leader_in_needs_both_words(
    run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    put_state(store, "old", 0, leader=-1, isr=[1])
    store.put("/config/topics/old", {"version": 1, "config": {"unclean.leader.election.enable": "false"}})
    store.put(
        "/config/brokers/<default>", {"version": 1, "config": {"unclean.leader.election.enable": "true"}}
    )
    text = "manage: {topics: all}\ntopics: {old: }\n"
    assert planned(run, tmp_path, text).needs == "--accept-deletes 1 and --accept-loss"
    assert planned(run, tmp_path, text, Accepted(deletes=1)).needs == "--accept-loss"
    assert planned(run, tmp_path, text, Accepted(deletes=1, loss=True)).needs == ""


REFUSED: Sequence[tuple[str, type[KctlError], str]] = (
    (
        "topics: {old: {partitions: 1}}",
        BadValue,
        "cluster.yaml:1: topic old has 2 partitions, and there cannot be fewer",
    ),
    (
        "topics:\n  new: {partitions: 1}",
        BadValue,
        "cluster.yaml:2: topic new is not there, and the file does not say its replic",
    ),
    ("topics: {new: {partitions: 1, replication_factor: 9}}", KctlError, "cluster.yaml:1: "),
    (
        "topics: {old: {configs: {retention.ms: soon}}}",
        BadValue,
        "cluster.yaml:1: retention.ms=soon: not a whole number",
    ),
    (
        "topics: {old: {configs: {retention.msx: 1}}}",
        BadValue,
        "cluster.yaml:1: retention.msx is not a configuration",
    ),
    (
        "topics: {o.ld: {partitions: 1, replication_factor: 1}, o_ld: {partitions: 1, replication_factor: 1}}",
        Refused,
        "collides",
    ),
)


@pytest.mark.parametrize(("text", "kind", "words"), REFUSED)
def test_what_cannot_be_is_said_before_anything_is_written(
    text: str, kind: type[KctlError], words: str, run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    with pytest.raises(kind) as raised:
        planned(run, tmp_path, text)
    assert words in raised.value.message
    assert store.transactions == []


def race(run: ChangeRun, folder: Path, text: str, act: Callable[[], None]) -> KctlError:
    plan = planned(run, folder, text)
    act()
    with pytest.raises(KctlError) as raised:
        carry_out(plan, run)
    return raised.value


def test_of_two_applies_the_second_sees_the_first(run: ChangeRun, tmp_path: Path) -> None:
    text = "topics: {old: {configs: {retention.ms: 7}}}"
    error = race(
        run, tmp_path, text, lambda: void(carry_out(planned(run, tmp_path, text.replace("7", "8")), run))
    )
    assert isinstance(error, Conflict) and "nothing was written" in error.message
    assert export(run)["topics"]["old"]["configs"] == {"retention.ms": "8"}  # type: ignore[index,call-overload]


def void(_: object) -> None:
    """Nothing."""


def test_a_topic_made_by_somebody_else_meanwhile_is_theirs(
    run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    text = "topics: {n: {partitions: 1, replication_factor: 1}}"
    error = race(run, tmp_path, text, lambda: add_topic(store, "n", [[3]]))
    assert error.exit_code == 4


@pytest.mark.slow
def test_many_are_carried_out_together(run: ChangeRun, tmp_path: Path, store: FakeStore) -> None:
    names = "\n".join(f"  t{n}: {{configs: {{retention.ms: {n}}}}}" for n in range(250))
    text = f"defaults: {{topics: {{'*': {{partitions: 1, replication_factor: 1}}}}}}\ntopics:\n{names}\n"
    plan = planned(run, tmp_path, text)
    assert [len(stage.intent.parts) for stage in plan.stages] == [100, 100, 50]
    assert isinstance(plan.stages[0].intent, Several)
    before = export(run)
    entry = carry_out(plan, run)
    assert len(store.transactions) == 3
    carry_out(plan_undo(entry, run), run)
    assert export(run) == before


USERS = "users: {app: {mechanisms: {SCRAM-SHA-256: 8192}}, b: {mechanisms: [SCRAM-SHA-512]}}"


def with_passwords(run: ChangeRun) -> ChangeRun:
    """The run, in which every password is `secret`."""

    def credentials(intent: SetScram) -> tuple[Write, ...]:
        assert isinstance(run.cluster, ZookeeperCluster)
        stored = {
            name: format_scram(credential_of(name, salted(name, b"secret", count)))
            for name, count in intent.mechanisms.items()
        }
        state = run.cluster.read_state((), partition_states=False)
        return scram_writes(run.cluster.store, intent, stored, state)

    return replace(run, credentials=credentials)


def test_users_without_passwords_are_refused(run: ChangeRun, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"cluster\.yaml:1: user app has no SCRAM-SHA-256"):
        planned(run, tmp_path, USERS)


def test_users_come_first_and_their_passwords_are_nowhere_kept(run: ChangeRun, tmp_path: Path) -> None:
    before = export(run)
    text = f"{USERS}\ntopics: {{n: {{partitions: 1, replication_factor: 1}}}}\n"
    plan = planned(run, tmp_path, text, Accepted(passwords=True))
    assert [stage.intent.kind for stage in plan.stages] == ["set-scram", "set-scram", "create-topic"]
    entry = carry_out(plan, with_passwords(run))
    assert export(run)["users"] == {
        "app": {"mechanisms": {"SCRAM-SHA-256": 8192}}, "b": {"mechanisms": {"SCRAM-SHA-512": 4096}},
    }  # fmt: skip
    kept = "".join(path.read_text() for path in run.journal.folder.glob("*.json"))
    assert "stored_key=" not in kept.replace("stored_key=(redacted)", "") and entry.id in kept
    assert planned(run, tmp_path, text, Accepted(passwords=True)).is_empty
    carry_out(plan_undo(entry, run), run)
    assert export(run) == before


def test_a_user_that_was_written_when_kctl_ended_is_not_asked_for_again(
    run: ChangeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(reached: str) -> None:
        if reached == "after-write:1":
            raise Killed

    monkeypatch.setattr(applying, "reach", kill)
    text = f"{USERS}\ntopics: {{n: {{partitions: 1, replication_factor: 1}}}}\n"
    with pytest.raises(Killed):
        carry_out(planned(run, tmp_path, text, Accepted(passwords=True)), with_passwords(run))
    monkeypatch.setattr(applying, "reach", faults.reach)
    (entry,) = run.journal.entries(lambda error: None)
    applying.resume(entry, run)  # which has no password
    assert planned(run, tmp_path, text).is_empty


def test_other_iterations_need_a_password(run: ChangeRun, tmp_path: Path) -> None:
    carry_out(planned(run, tmp_path, USERS, Accepted(passwords=True)), with_passwords(run))
    with pytest.raises(Refused, match="has 8192 iterations, and 4096 are wanted"):
        planned(run, tmp_path, USERS.replace("8192", "4096"), Accepted(passwords=True))


@pytest.mark.parametrize(
    "shape", ["partitions: 2, replication_factor: 3", "placement: 'brokers 1,2'", "replicas: ['1:2', '1:3']"]
)
def test_moves_whose_bytes_nobody_tells_are_refused(shape: str, run: ChangeRun, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"it is not known how many bytes old-."):
        planned(run, tmp_path, f"topics: {{old: {{{shape}}}}}", Accepted(most_bytes=1 << 40))


def test_a_placement_that_holds_is_no_difference(run: ChangeRun, tmp_path: Path) -> None:
    for shape in ("placement: 'brokers 3,2,1'", "placement: untouched", "replicas: ['1:2', '2:3']"):
        assert planned(run, tmp_path, f"topics: {{old: {{{shape}}}}}").is_empty


def test_listed_replicas_beyond_the_present_ones_are_new_partitions(run: ChangeRun, tmp_path: Path) -> None:
    carry_out(planned(run, tmp_path, "topics: {old: {replicas: ['1:2', '2:3', '3:1']}}"), run)
    assert run.cluster.read_state(["old"]).topics["old"].partitions[2] == (3, 1)
    with pytest.raises(Refused, match="more partitions and other replicas at once"):
        planned(run, tmp_path, "topics: {old: {replicas: ['1:3', '2:3', '3:1', '1:2']}}")
    with pytest.raises(Refused, match="more partitions and other replicas at once"):
        planned(run, tmp_path, "topics: {old: {partitions: 9, replication_factor: 1}}")


def test_lockouts_need_their_word(run: ChangeRun, tmp_path: Path) -> None:
    text = "acls: [{principals: User:a, topic: old, operations: read}]"
    plan = planned(run, tmp_path, text, Accepted(lockouts=("User:b would lose all",)))
    assert plan.needs == "--accept-lockout" and "User:b would lose all" in plan.warnings


def test_what_could_not_be_read_is_neither_there_nor_gone(
    run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    store.put("/brokers/topics/torn", b"{")
    text = "topics: {torn: {partitions: 1, replication_factor: 1}, old: {partitions: 2}}\ngroups: {g: {a: 1}}"
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    wanted = load([path], {}, {})
    present = present_in(run.cluster, None, wanted.kinds, None, wanted.resources)
    changed = list(differences(wanted, by_key(present.resources), present.why_unread))
    assert [(each.resource.name, each.action) for each in changed] == [
        ("torn", None),
        ("g", None),
    ]
    assert "it came with 4.0" in str(changed[-1].drifts[0].why)


def test_secrets_are_named_and_not_exported(run: ChangeRun, store: FakeStore) -> None:
    store.put(
        "/config/brokers/1", {"version": 1, "config": {"ssl.key.password": "x", "log.cleaner.threads": "2"}}
    )
    store.put("/brokers/topics/old", {"version": 1, "partitions": {"0": [1]}})
    store.put("/config/topics/old", {"version": 1, "config": {"sasl.jaas.config": "x", "retention.ms": "5"}})
    present = present_in(run.cluster, None, ["broker", "topic"], None)
    told = {(resource.kind, resource.name): resource.fields for resource in present.resources}
    assert told["broker", "1"] == {"log.cleaner.threads": "2"}
    assert told["topic", "old"] == {"partitions": 1, "replication_factor": 1, "retention.ms": "5"}
    assert list(secrets_in(present.state)) == [
        "broker 1: ssl.key.password set, and not exported, as secrets",
        "topic old: sasl.jaas.config set, and not exported, as secrets",
    ]


def test_an_unclean_election_that_comes_to_be_allowed_needs_its_word(
    run: ChangeRun, tmp_path: Path, store: FakeStore
) -> None:
    put_state(store, "old", 0, leader=-1, isr=[1])
    text = "topics: {old: {configs: {unclean.leader.election.enable: true}}, n: {partitions: 1, replication_factor: 1}}"
    assert planned(run, tmp_path, text).needs == "--accept-loss"
    assert planned(run, tmp_path, text, Accepted(loss=True)).needs == ""


def test_a_mechanism_that_leaves_counts_as_a_deletion(run: ChangeRun, tmp_path: Path) -> None:
    carry_out(planned(run, tmp_path, USERS, Accepted(passwords=True)), with_passwords(run))
    text = "manage: {users: all}\nusers: {app: {mechanisms: [SCRAM-SHA-256]}}\n"
    assert planned(run, tmp_path, text).needs == "--accept-deletes 1"  # b
    text = "manage: {users: all}\nusers: {app: {mechanisms: [SCRAM-SHA-256]}, b: {mechanisms: [SCRAM-SHA-256]}}\n"
    assert planned(run, tmp_path, text, Accepted(passwords=True)).needs == "--accept-deletes 1"


def test_new_partitions_go_where_the_file_says(run: ChangeRun, tmp_path: Path) -> None:
    text = "topics: {n: {partitions: %d, replication_factor: 1, placement: 'brokers 1,2'}}\n"
    carry_out(planned(run, tmp_path, text % 2), run)
    carry_out(planned(run, tmp_path, text % 8), run)
    replicas = run.cluster.read_state(["n"]).topics["n"].partitions
    assert len(replicas) == 8 and {broker for ids in replicas.values() for broker in ids} == {1, 2}
    assert planned(run, tmp_path, text % 8).is_empty


def test_an_export_reads_back_what_looks_like_variables_and_the_largest_quota(
    run: ChangeRun, store: FakeStore, tmp_path: Path
) -> None:
    config = {"ssl.keystore.location": "${file:/etc/k:path}", "x": "$${y}"}
    store.put("/config/brokers/1", {"version": 1, "config": config})
    quota = {"producer_byte_rate": "9223372036854775807"}
    store.put("/config/clients/max", {"version": 1, "config": quota})
    assert planned(run, tmp_path, json.dumps({**export(run), "manage": {"quotas": "all"}})).is_empty
