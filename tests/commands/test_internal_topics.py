"""Groups, transactions and KRaft metadata read from recorded segments, as of offsets and times."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands.cli.render import Page, folding
from commands.transactions import known_text
from formats.log.record_batch import TRANSACTIONAL, Record, write_batch
from formats.log.records import walk
from formats.messages.cluster_metadata import MetadataRecord
from formats.messages.consumer_offsets import TYPES, write_versioned
from kctl.audit.tables import Tables
from kctl.internal_topics.cluster_image import ClusterImage, LoggedRecord
from kctl.internal_topics.groups import fold_groups, reset_lines
from kctl.internal_topics.reading import AsOf, TopicRecord, newest_segments
from kctl.internal_topics.transactions import (
    OpenTransaction,
    Transaction,
    is_every_partition,
    partition_for,
    why_it_hangs,
)
from kctl.model import TopicPartition
from kctl.scan.source import opened_source
from tests.conftest import Ran, kctl, recording, recordings, rows

COMMIT_KEY, COMMIT_VALUE = TYPES[0]


def commit(offset: int, of: int | None, partition: int = 0, at: int = 0) -> TopicRecord:
    key = write_versioned(COMMIT_KEY, 1, {"group": "g", "topic": "t", "partition": partition})
    value = (
        None
        if of is None
        else write_versioned(
            COMMIT_VALUE, 3, {"offset": of, "leader_epoch": 4, "metadata": "", "commit_timestamp": at}
        )
    )
    return TopicRecord(0, offset, at, key, value)


def test_the_last_commit_counts_and_a_tombstone_takes_it_away() -> None:
    state = fold_groups([commit(0, 5), commit(1, 9), commit(2, 3, partition=1), commit(3, None, partition=1)])
    assert list(reset_lines(state.commits["g"].values())) == ["t,0,9"]
    assert state.commits["g"][TopicPartition("t", 0)].leader_epoch == 4
    assert fold_groups([commit(0, 5), commit(1, None)]).names() == []


def test_what_cannot_be_read_is_counted_not_lost() -> None:
    state = fold_groups(
        [
            TopicRecord(3, 7, 0, None, b"x"),
            TopicRecord(3, 8, 0, b"\x00\x63", b""),
            TopicRecord(3, 9, 0, b"\x00\x01\x00\x09", b""),
            commit(10, 1),
        ]
    )
    assert [(p, o) for p, o, _ in state.unreadable] == [(3, 7), (3, 9)]
    assert state.unknown_types == {99: 1}
    assert state.names() == ["g"]


@pytest.mark.parametrize("name", [n for n in recordings("segments") if "kraft" not in n and "pair" not in n])
def test_groups_of_every_version(name: str) -> None:
    ran = rows("offsets", "list", recording(name) / "data-clean")
    assert ran.status == 0
    groups = {row["group"]: row for row in ran.of("group")}
    assert "grp.one" in groups or "grp.one-2" in groups
    assert all(row["offsets"] for row in groups.values() if row["state"] == "Offsets")


def test_a_group_as_of_an_offset_and_its_history_agree() -> None:
    data = recording("segments/2.8.2") / "data-clean"
    history = rows("offsets", "history", "grp.one", data).of("committed_offset")
    assert len(history) > 4
    for place in (history[1]["log_offset"], history[3]["log_offset"], history[-1]["log_offset"] + 1):
        then = {(r["topic"], r["partition"]): r["offset"] for r in history if r["log_offset"] < place}
        shown = rows("offsets", "show", "grp.one", data, "--as-of", place).of("committed_offset")
        assert {(r["topic"], r["partition"]): r["offset"] for r in shown} == then


def test_members_with_what_they_read() -> None:
    data = recording("segments/3.9.1-kraft") / "data-clean"
    then = next(r for r in range(1, 40) if rows("offsets", "show", "grp.one-sub", data, "--as-of", r, ).of("member"))  # fmt: skip
    member = rows("offsets", "show", "grp.one-sub", data, "--as-of", then).of("member")[0]
    assert member["topics"] == ["codec-mix", "orders.plain"]
    assert member["assignment"]


def test_a_reset_file_is_what_kafka_takes() -> None:
    data = recording("segments/2.8.2") / "data-clean"
    assert kctl("offsets", "reset-file", "grp.one", data).out == b"orders.plain,0,33\norders.plain,1,34\n"


def test_wrong_names_are_errors_of_one_line() -> None:
    data = recording("segments/2.8.2") / "data-clean"
    for args in (
        ["offsets", "show", "grp.onee", data],
        ["transactions", "show", "nobody", data],
        ["metadata", "show", data],
    ):
        ran = kctl(*args)
        assert ran.status == 3
        assert len(ran.errors) == 1
    assert "did you mean grp.one" in kctl("offsets", "show", "grp.onee", data).err
    assert kctl("offsets", "list", data, "--as-of", "yesterday-ish").status == 2


@pytest.mark.parametrize("name", ["0.11.0.3", "1.1.1", "2.4.1", "2.8.2", "3.9.1"])
def test_an_open_transaction_that_its_coordinator_still_has_does_not_hang(name: str) -> None:
    data = recording(f"segments/{name}") / "data-clean"
    ran = rows("transactions", "hanging", data, "--all")
    assert ran.status == 0
    assert [row["hanging"] for row in ran.of("open_transaction")] in ([False], [])
    assert rows("transactions", "hanging", data).of("open_transaction") == []


OPEN = OpenTransaction("t", 1, 1000, 5, 82, 85, 0)


def known(**changes: Any) -> Transaction:
    return Transaction("tx", 1000, 5, "Ongoing", 60000, 0, 0, (TopicPartition("t", 1),), 0, 0)._replace(
        **changes
    )


@pytest.mark.parametrize(
    ("coordinator", "says"),
    [
        (None, "no transactional id"),
        (known(producer_epoch=6), "gone on to producer epoch 6"),
        (known(state="CompleteAbort"), "for CompleteAbort"),
        (known(partitions=()), "without this partition"),
        (known(), None),
        (known(state="PrepareCommit"), None),
        (known(state="PrepareCommit", producer_epoch=6), None),  # as 4.0 ends each of them
        (known(state="PrepareAbort", producer_epoch=6), None),  # it timed out, or a new producer fences it
        (known(state="PrepareAbort", producer_epoch=6, partitions=()), "gone on to producer epoch 6"),
        (known(state="PrepareAbort", producer_epoch=4, partitions=()), "without this partition"),
    ],
)
def test_why_a_transaction_hangs(coordinator: Transaction | None, says: str | None) -> None:
    found = why_it_hangs(OPEN, coordinator)
    assert (says in found) if says and found else found is says


def test_a_hanging_transaction_is_found_and_the_command_that_ends_it(evidence: Any) -> None:
    import shutil

    data = recording("segments/2.8.2") / "data-clean"
    ran = rows("transactions", "list", data)
    ongoing = next(row for row in ran.of("transaction") if row["state"] == "Ongoing")
    folder = evidence("segments/2.8.2")
    alone = folder.parent.parent / "alone" / "txn-mix-1"
    source = next(p for p in (folder / "data-clean").rglob("txn-mix-1") if p.is_dir())
    shutil.copytree(source, alone)
    without = rows("transactions", "hanging", alone, "--all")
    assert without.of("open_transaction")[0]["hanging"] is None, "no coordinator's word, no verdict"
    assert ongoing["producer_id"] == without.of("open_transaction")[0]["producer_id"]


def test_metadata_as_of_an_offset_grows() -> None:
    data = recording("segments/3.9.1-kraft") / "data-clean"
    now = rows("metadata", "show", data)
    assert now.status == 0
    image = now.of("metadata")[0]
    assert image["features"]["metadata.version"] == 21
    assert image["topics"] == len(now.of("topic"))
    assert image["partitions"] == len(now.of("partition"))
    assert {row["leader"] for row in now.of("partition")} == {-1}, "the broker was stopped"
    assert 1 in {row["leader"] for row in rows("metadata", "show", data, "--as-of", "150").of("partition")}
    earlier = rows("metadata", "show", data, "--as-of", "60")
    assert earlier.status == 0
    assert earlier.of("metadata")[0]["end_offset"] <= 60
    assert len(earlier.of("topic")) < len(now.of("topic"))


LIFE = "incidents/life-1.1"


def copy_of(name: str, to: Path) -> Path:
    return shutil.copytree(recording(name), to / name)


def spoiled(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 0x55
    elif how == "cut":
        del data[-100:]
    elif how == "without its footer":
        with opened_source(path) as source:
            positions = [item.position for item in walk(source)]
        del data[positions[-1] :]
    elif how == "without its header":
        with opened_source(path) as source:
            items = list(walk(source))
        del data[: items[1].position]
    elif how == "empty":
        data.clear()
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["flipped", "cut", "without its footer", "without its header", "empty"])
def test_a_damaged_snapshot_is_said_and_the_one_before_it_is_taken(how: str, tmp_path: Path) -> None:
    data = copy_of("segments/3.9.1-kraft", tmp_path) / "data-clean"
    known = rows("metadata", "show", data)
    (folder,) = data.rglob("__cluster_metadata-0")
    snapshots = sorted(folder.glob("*.checkpoint"))
    spoiled(snapshots[-1], how)
    ran = rows("metadata", "show", data)
    assert ran.status == 5
    (finding,) = ran.of("finding")
    assert finding["code"] == "internal-log-unreadable" and snapshots[-1].name in finding["file"]
    assert [row for row in ran.rows if row["kind"] != "finding"] == known.rows
    for path in snapshots[:-1]:
        spoiled(path, how)
    (folder / f"{0:020}.log").unlink()
    ran = rows("metadata", "show", data)
    assert (ran.status, ran.rows) == (3, [])
    assert "no whole snapshot reaches back that far; " in ran.err and snapshots[0].name in ran.err
    for path in folder.glob("*.log"):
        path.unlink()
    ran = rows("metadata", "show", data)
    assert (ran.status, ran.rows) == (3, [])
    assert "is not a complete snapshot" in ran.err


def test_of_copies_that_reach_as_far_the_whole_one_is_shown(tmp_path: Path) -> None:
    data = copy_of("segments/3.9.1-kraft", tmp_path) / "data-clean"
    known = rows("metadata", "show", data).rows
    (folder,) = data.rglob("__cluster_metadata-0")
    for number in (2, 3):
        shutil.copytree(folder.parent, data / f"broker-{number}" / "logdir-0")
    for number in (1, 3):
        (own,) = (data / f"broker-{number}").rglob("__cluster_metadata-0")
        spoiled(sorted(own.glob("*.checkpoint"))[-1], "flipped")
    ran = rows("metadata", "show", data)
    assert (ran.status, ran.rows) == (0, known)


def billing(tmp_path: Path) -> list[Path]:
    """A cluster whose group `billing` is in one partition; the copies of that partition, all alike."""
    data = copy_of(LIFE, tmp_path) / "moments/after"
    logs = sorted(log for log in data.rglob("__consumer_offsets-*/*.log") if log.stat().st_size)
    assert len(logs) == 3 and len({log.read_bytes() for log in logs}) == 1
    return logs


def test_of_copies_of_a_group_that_reach_as_far_the_whole_one_is_read(tmp_path: Path) -> None:
    *damaged, whole = billing(tmp_path)
    data = tmp_path / LIFE / "moments/after"
    words = {
        name: ["offsets", name, *group]
        for name, group in {
            "list": [],
            "show": ["billing"],
            "history": ["billing"],
            "reset-file": ["billing"],
        }.items()
    }
    known = {name: kctl(*command, data) for name, command in words.items()}
    for log in damaged:
        spoiled(log, "flipped")
    for name, command in words.items():
        ran = kctl(*command, data)
        assert (ran.status, ran.out, ran.err) == (
            known[name].status,
            known[name].out,
            known[name].err,
        ) and not ran.status
    spoiled(whole, "flipped")
    for name, command in words.items():
        ran = kctl(*command, data)
        assert ran.status == (5 if name in ("list", "show") else 3)
        said = {"history": "in what can be read of", "reset-file": "crc-mismatch"}.get(name)
        assert said in ran.err if said else b"crc-mismatch" in ran.out
    ran = kctl("offsets", "show", "nobody", data)
    assert ran.status == 3 and "no group 'nobody' in what can be read of __consumer_offsets" in ran.err


def test_partitions_without_a_copy_are_named(tmp_path: Path) -> None:
    data = tmp_path / LIFE / "moments/after"
    for log in billing(tmp_path):
        shutil.rmtree(log.parent)
    said = "kctl: no copy of 1 partition of __consumer_offsets (1): its groups are not shown\n"
    ran = kctl("offsets", "list", data)
    assert (ran.status, ran.out.strip(), ran.err) == (0, b"", said), "the checkpoints name it"
    assert kctl("offsets", "show", "billing", data).err.startswith(said)
    (next(data.glob("broker-1/*")) / f"__consumer_offsets-1.{'0' * 32}-delete").mkdir()
    assert kctl("offsets", "list", data).err == said, "what is about to go is not read"
    alone = shutil.copytree(next(data.rglob("__consumer_offsets-0")), tmp_path / "__consumer_offsets-7")
    ran = kctl("offsets", "list", alone)
    assert "no copy of 7 partitions of __consumer_offsets (0, 1, 2, 3, 4, …)" in ran.err, (
        "others are below it"
    )


def test_a_history_of_a_transactional_id_says_what_cannot_be_read(tmp_path: Path) -> None:
    data = copy_of("segments/2.8.2", tmp_path) / "data-killed"
    known = rows("transactions", "list", data).of("transaction")
    whole = rows("transactions", "show", known[0]["transactional_id"], data)
    assert whole.status == 0 and not whole.of("finding")
    logs = [log for log in data.rglob("__transaction_state-*/*.log") if log.stat().st_size]
    with logs[0].open("r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff")
    for name in (known[0]["transactional_id"], "nobody"):
        ran = rows("transactions", "show", name, data)
        assert ran.of("finding") or "in what can be read of __transaction_state" in ran.err


def test_topics_that_the_metadata_do_not_have_are_named() -> None:
    data = recording("segments/4.3.0-kraft") / "data-killed"
    ran = rows("metadata", "show", data, "--topic", "paymentz", "--topic", "payments", "--topic", "nowhere")
    assert ran.status == 3
    assert ran.errors == [
        "kctl: no topic paymentz in the metadata log; did you mean payments?",
        "kctl: no topic nowhere in the metadata log; `kctl metadata show` without --topic shows all",
    ]
    assert [row["topic"] for row in ran.of("topic")] == ["payments"], "the others go on"


def test_transactions_on_a_terminal_of_80_columns() -> None:
    data = recording("segments/2.8.2") / "data-killed"
    lines = list(folding(known_text)(rows("transactions", "list", data).rows, Page(80, color=False)))
    assert all(len(line) <= 80 for line in lines)
    assert lines[-2:] == [
        "tx-app-1-open  Ongoing         producer 1005 epoch 0  2026-11-21T13:39:32.224Z",
        "    began 2026-11-21T13:39:32.224Z, timeout 60 s, record 1:1, in txn-mix-1",
    ]


def test_metadata_says_what_kafka_recorded() -> None:
    data = recording("segments/4.3.0-kraft") / "data-killed"
    named = {row["topic"]: row["partitions"] for row in rows("metadata", "show", data).of("topic")}
    for folder in data.glob("payments-*"):
        assert int(folder.name.rpartition("-")[2]) < named["payments"]


def test_an_aborted_metadata_transaction_never_counts() -> None:
    image = ClusterImage()
    topic = lambda name: MetadataRecord("TOPIC_RECORD", 0, {"name": name, "topic_id": name})  # noqa: E731
    mark = lambda kind: MetadataRecord(f"{kind}_TRANSACTION_RECORD", 0, {"name": None, "reason": None})  # noqa: E731
    records = [mark("BEGIN"), topic("a"), mark("ABORT"), mark("BEGIN"), topic("b"), mark("END"), topic("c")]
    image.apply(LoggedRecord(offset, record) for offset, record in enumerate(records))
    assert sorted(image.names) == ["b", "c"]


@pytest.mark.slow
def test_evidence_stays_as_it_was(evidence: Any) -> None:
    folder = evidence("segments/3.9.1-kraft")
    for args in (
        ["offsets", "list"],
        ["transactions", "list"],
        ["transactions", "hanging"],
        ["metadata", "show"],
    ):
        assert kctl(*args, folder).status == 0


def test_as_of_includes_what_is_before() -> None:
    assert AsOf(offset=5).includes(4, 0)
    assert not AsOf(offset=5).includes(5, 0)
    assert AsOf(timestamp=5).includes(9, 5)
    assert not AsOf(timestamp=5).includes(9, 6)


@pytest.mark.parametrize("name", ["0.11.0.3", "2.8.2", "3.9.1-kraft", "4.3.0-kraft"])
def test_transactional_ids_lie_where_kafka_puts_them(name: str) -> None:
    data = next(recording(f"segments/{name}").glob("data-*"))
    count = len(list(data.rglob("__transaction_state-*")))
    found = rows("transactions", "list", data).of("transaction")
    assert found
    for row in found:
        assert partition_for(row["transactional_id"], count) == row["log_partition"]


def test_java_s_hash_codes() -> None:
    assert partition_for("polygenelubricants", 50) == 0, (
        "its hash code is the least integer, whose abs Kafka has as 0"
    )
    assert partition_for("", 50) == 0
    assert partition_for("ab", 1000) == (31 * ord("a") + ord("b")) % 1000
    assert partition_for("\U0001f600", 10**9) == 31 * 0xD83D + 0xDE00


def test_without_every_partition_of_the_coordinators_topic_nothing_is_said_to_hang(
    evidence: Any, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(recording("segments/2.8.2") / "data-clean", data)
    (ongoing,) = (r for r in rows("transactions", "list", data).of("transaction") if r["state"] == "Ongoing")
    shutil.rmtree(next(data.rglob(f"__transaction_state-{ongoing['log_partition']}")))
    left = next(data.rglob("__transaction_state-*"))
    left.rename(left.with_name("__transaction_state-7"))
    ran = rows("transactions", "hanging", data)
    assert ran.status == 3  # nothing tells, which is no reassurance
    found = [(row["producer_id"], row["hanging"]) for row in ran.of("open_transaction")]
    assert found == [(ongoing["producer_id"], None)]


def below_its_mark(data: Path, partition: str) -> None:
    """The log of a partition ends below the high watermark that its broker wrote down."""
    path = next(data.rglob(partition)).with_name("replication-offset-checkpoint")
    topic, _, number = partition.rpartition("-")
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"{topic} {number} "))
    lines[at] = f"{topic} {number} {int(lines[at].split()[2]) + 100}"
    path.write_text("\n".join(lines) + "\n")


def hanging(data: Path) -> tuple[dict[int, bool | None], Ran]:
    ran = rows("transactions", "hanging", data, "--all")
    return {row["producer_id"]: row["hanging"] for row in ran.of("open_transaction")}, ran


def test_what_a_coordinator_s_log_lacks_may_be_the_end_of_a_transaction(tmp_path: Path) -> None:
    """A producer of another coordinator is still judged; one that no coordinator knows is not."""
    data = tmp_path / "data"
    shutil.copytree(recording("segments/2.8.2") / "data-clean", data)
    (ongoing,) = (r for r in rows("transactions", "list", data).of("transaction") if r["state"] == "Ongoing")
    own = ongoing["log_partition"]
    (other,) = {int(p.name[-1]) for p in data.rglob("__transaction_state-*")} - {own}
    unknown = next(data.rglob("txn-mix-1")).with_name("unknown-0")
    unknown.mkdir()
    open_batch = write_batch(
        [Record(0, 1_700_000_000_000, None, b"v", ())], producer_id=987_654, producer_epoch=0, base_sequence=0,
        attributes=TRANSACTIONAL,
    )  # fmt: skip
    (unknown / f"{0:020d}.log").write_bytes(open_batch)
    marks = {path: path.read_text() for path in data.rglob("replication-offset-checkpoint")}
    known = ongoing["producer_id"]
    assert hanging(data)[0] == {known: False, 987_654: True}
    below_its_mark(data, f"__transaction_state-{other}")
    assert hanging(data)[0] == {known: False, 987_654: None}
    for path, text in marks.items():
        path.write_text(text)
    below_its_mark(data, f"__transaction_state-{own}")
    assert hanging(data)[0] == {known: None, 987_654: None}


def test_the_mark_of_a_broker_that_ran_may_be_newer_than_the_copy_of_its_log(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(recording("segments/2.8.2") / "data-clean", data)
    below_its_mark(data, "txn-mix-1")

    def verdict() -> str:
        judged = hanging(data)[1].of("judgement")
        return next(row["verdict"] for row in judged if (row["topic"], row["partition"]) == ("txn-mix", 1))

    assert verdict() == "could_not_judge"
    (broker_id,) = {row["broker_id"] for row in rows("segment", "verify", data).of("file") if row["topic"]}
    for is_registered in (True, False):
        named = broker_id if is_registered else broker_id + 1
        lines = [{"path": "/cluster/id", "data": ""}, {"path": f"/brokers/ids/{named}", "data": "e30="}]
        (data / "znodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert verdict() == ("sound" if is_registered else "could_not_judge")


def test_which_partitions_are_all() -> None:
    def of(count: int) -> list[Transaction]:
        names = [f"payments-{n}" for n in range(40)]
        return [known(transactional_id=one, log_partition=partition_for(one, count)) for one in names]

    def held(count: int, there: set[int]) -> bool:
        return is_every_partition(there, [one for one in of(count) if one.log_partition in there])

    assert held(1, {0})
    assert held(2, {0, 1})
    assert held(50, set(range(50)))
    assert not held(2, {1})
    assert not held(50, {0})
    assert not held(50, {0, 1, 2})
    assert not held(50, set(range(49)))
    assert not is_every_partition({0, 1}, of(3)), "an id lies where it would not"
    assert not is_every_partition({0}, []), "nothing tells"


@pytest.mark.slow
def test_an_internal_topic_that_is_too_large_is_read_in_part_and_said_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kctl.replica.loss import commitment as external

    folder = recording("tier/a-healthy")
    assert "internal-topic-read-in-part" not in rows("replica", "loss", folder).codes()
    monkeypatch.setattr(external, "MOST_BYTES", 4)
    ran = rows("replica", "loss", folder)
    assert ran.codes().count("internal-topic-read-in-part") in (1, 2)


def test_the_newest_segments_are_read(tmp_path: Path) -> None:
    for base, size in ((0, 50), (10, 30), (20, 20)):
        (tmp_path / f"{base:020}.log").write_bytes(bytes(size))
    names = lambda most: [int(path.stem) for path in newest_segments(tmp_path, most)[0]]  # noqa: E731
    assert [names(most) for most in (None, 100, 99, 50, 20, 19)] == [
        [0, 10, 20], [0, 10, 20], [10, 20], [10, 20], [20], [],
    ]  # fmt: skip


@pytest.mark.slow
def test_the_audit_has_the_state_of_a_kraft_cluster_as_tables(tmp_path: Path) -> None:
    data = recording("segments/4.3.0-kraft") / "data-killed"
    shown = rows("metadata", "show", data)
    kctl("audit", "run", data, "--out", tmp_path / "out", "--no-sha256")
    tables = Tables(tmp_path / "out")
    for kind, table in (
        ("topic", "metadata_topics"),
        ("partition", "metadata_partitions"),
        ("broker", "metadata_brokers"),
        ("metadata", "metadata"),
    ):
        assert tables.count(table) == len(shown.of(kind)) > 0
    assert {row["topic"] for row in tables.rows("metadata_topics")} == {r["topic"] for r in shown.of("topic")}
