"""Plan files, batches, sizes and what a plan changes."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.cli.leaving import say_error
from formats.znodes.requests import Requested, format_reassignment
from kctl.cluster.moves import (
    EMPTY_REQUEST,
    by_rack,
    cut,
    encoded_size,
    holdings,
    moves_of,
    seconds_to_move,
)
from kctl.errors import BadValue, KctlError, Refused, UnreadableFile
from kctl.model import TopicPartition
from kctl.operations.reassignment.plan_files import PRINTED, identity_of, plan_json, read_plan, write_plan
from kctl.operations.reassignment.replica_sizes import partition_sizes, read_disk_sizes
from tests.conftest import recording, rows

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
names = st.text("abcXYZ09._-", min_size=1, max_size=30)
plans = st.dictionaries(
    st.builds(TopicPartition, names, st.integers(0, 9999)),
    st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5, unique=True).map(tuple),
    max_size=30,
)


@pytest.mark.slow
@given(plans)
def test_a_plan_survives_its_file(targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    values = json.loads(plan_json(targets))
    assert values["version"] == 1
    found = {TopicPartition(r["topic"], r["partition"]): tuple(r["replicas"]) for r in values["partitions"]}
    assert found == targets
    assert identity_of(targets) == identity_of(dict(reversed(targets.items())))


def test_the_identity_is_of_the_moves_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(
        '{"partitions":[{"topic":"a","partition":1,"replicas":[2]},{"partition":0,"topic":"a","replicas":[1]}]}'
    )
    other.write_bytes(plan_json({A0: (1,), A1: (2,)}))
    assert read_plan(one).identity == read_plan(other).identity
    assert read_plan(one).identity != identity_of({A0: (1,), A1: (3,)})
    assert len(read_plan(one).identity) == 64


def test_the_way_back_is_written_first_and_nothing_is_overwritten(tmp_path: Path) -> None:
    plan = tmp_path / "drain.json"
    write_plan(plan, {A0: (1,), B0: (2,)}, {A0: (3,), B0: (3,)}, [{A0: (1,)}, {B0: (2,)}])
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "drain.001.json",
        "drain.002.json",
        "drain.json",
        "drain.rollback.json",
    ]
    assert read_plan(tmp_path / "drain.rollback.json").targets == {A0: (3,), B0: (3,)}
    assert read_plan(tmp_path / "drain.002.json").targets == {B0: (2,)}
    for left in ("drain.json", "drain.rollback.json", "drain.002.json"):
        kept = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        for path in tmp_path.iterdir():
            if path.name != left:
                path.unlink()
        with pytest.raises(Refused, match=f"{left} exists; nothing was written"):
            write_plan(plan, {A0: (1,)}, {A0: (2,)}, [{A0: (1,)}])
        assert [p.name for p in tmp_path.iterdir()] == [left]
        for name, content in kept.items():
            (tmp_path / name).write_bytes(content)


def test_a_disk_that_is_full_before_the_way_back_leaves_no_plan(tmp_path: Path) -> None:
    (tmp_path / "p.rollback.json").symlink_to(tmp_path / "gone" / "nowhere")
    with pytest.raises((Refused, Exception)):
        write_plan(tmp_path / "p.json", {A0: (1,)}, {A0: (2,)}, [])
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("{", UnreadableFile, "is not JSON: expecting property name"),
        ("[]", UnreadableFile, "no list `partitions`"),
        ('{"partitions":{}}', UnreadableFile, "no list `partitions`"),
        ('{"version":2,"partitions":[]}', BadValue, "version 2"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[]}]}', BadValue, "would lose the partition"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[4,4]}]}', BadValue, "a broker twice"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":["1"]}]}', BadValue, "not a list of broker"),
        ('{"partitions":[{"topic":"a","partition":0,"replicas":[-1]}]}', BadValue, "not a list of broker"),
        ('{"partitions":[{"topic":"a","partition":true,"replicas":[1]}]}', BadValue, "partition is True"),
        ('{"partitions":[{"partition":0,"replicas":[1]}]}', BadValue, "has no topic"),
        ('{"partitions":[5]}', BadValue, "entry 1 is 5"),
        (
            '{"partitions":[{"topic":"a","partition":0,"replicas":[1]},{"topic":"a","partition":0,"replicas":[2]}]}',
            BadValue,
            "a-0 is in it twice",
        ),
    ],
)
def test_plans_that_must_not_be_carried_out(tmp_path: Path, text: str, error: type, says: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(error, match=says):
        read_plan(tmp_path / "p.json")


def test_log_dirs_of_kafkas_own_tool(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","/d1"]}]}'
    )
    plan = read_plan(tmp_path / "p.json")
    assert (plan.targets, plan.log_dirs) == ({A0: (1, 2)}, {(A0, 2): "/d1"})
    assert plan.identity not in (identity_of(plan.targets), identity_of(plan.targets, {(A0, 2): "/d2"}))
    assert identity_of(plan.targets, {}) == identity_of(plan.targets)
    (tmp_path / "q.json").write_bytes(plan_json(plan.targets, plan.log_dirs))
    assert read_plan(tmp_path / "q.json").log_dirs == plan.log_dirs
    assert read_plan(tmp_path / "q.json").identity == plan.identity


@pytest.mark.parametrize(
    ("log_dirs", "says"),
    [
        ('["/d1"]', "has 1 log_dirs, and not one a replica"),
        ('["any","d1"]', "'d1' is not an absolute path, nor `any`"),
        ('"any"', "not a list of paths"),
    ],
)
def test_log_dirs_that_are_none(tmp_path: Path, log_dirs: str, says: str) -> None:
    row = f'{{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":{log_dirs}}}'
    (tmp_path / "p.json").write_text(f'{{"version":1,"partitions":[{row}]}}')
    with pytest.raises(BadValue, match=says):
        read_plan(tmp_path / "p.json")


# --- batches ------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(plans, st.integers(200, 1000), st.none() | st.integers(1, 50), st.none() | st.integers(1, 5))
def test_batches_hold_everything_once_and_keep_their_bounds(
    targets: dict[TopicPartition, tuple[int, ...]], most_bytes: int, most_data: int | None, most: int | None
) -> None:
    def data(tp: TopicPartition) -> int:
        return tp.partition % 20

    batches = cut(
        targets, {tp: data(tp) for tp in targets}, most_bytes=most_bytes, most_data=most_data, most_moves=most
    )
    joined = [tp for batch in batches for tp in batch]
    assert sorted(joined) == sorted(targets)
    assert all(batches)
    for batch in batches:
        assert all(targets[tp] == replicas for tp, replicas in batch.items())
        encoded = format_reassignment(Requested(tp.topic, tp.partition, r) for tp, r in batch.items())
        assert len(batch) == 1 or len(encoded) <= most_bytes
        assert most_data is None or len(batch) == 1 or sum(map(data, batch)) <= most_data
        assert most is None or len(batch) <= most


@pytest.mark.slow
@given(plans)
def test_the_encoded_size_is_known_beforehand(targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    encoded = format_reassignment(Requested(tp.topic, tp.partition, r) for tp, r in targets.items())
    assert len(encoded) <= EMPTY_REQUEST + sum(encoded_size(tp, r) for tp, r in targets.items())


def test_a_batch_takes_what_fits_exactly() -> None:
    targets = {A0: (1, 2), A1: (2, 3)}
    both = EMPTY_REQUEST + sum(encoded_size(tp, replicas) for tp, replicas in targets.items())
    for most_bytes, batches in ((both, 1), (both - 1, 2)):
        assert len(cut(targets, {}, most_bytes=most_bytes)) == batches


def test_a_batch_moves_no_more_data_than_asked() -> None:
    """Three of 40 where 60 are asked for: two batches would have room by their sum, and none by itself."""
    targets = {TopicPartition("orders", number): (1,) for number in range(3)}
    assert len(cut(targets, dict.fromkeys(targets, 40), most_data=60)) == 3
    assert len(cut(targets, dict.fromkeys(targets, 30), most_data=60)) == 2


def test_batches_of_data_are_about_equal() -> None:
    targets = {TopicPartition("t", p): (1,) for p in range(12)}
    batches = cut(targets, {tp: 10 + tp.partition for tp in targets}, most_data=60)
    assert len(batches) <= 4
    loads = [sum(10 + tp.partition for tp in batch) for batch in batches]
    assert max(loads) <= 60
    assert min(loads) >= 30


# --- what a plan changes ----------------------------------------------------------------------------------


def test_moves_and_holdings() -> None:
    origins = {A0: (1, 2), A1: (1, 3), B0: (3, 2)}
    sizes = {A0: 100, A1: 50, B0: 7}
    moves = list(moves_of({A0: (1, 4), A1: (1, 3), B0: (2, 3)}, origins, sizes))
    assert [(str(m.partition), m.adding, m.removing, m.data) for m in moves] == [
        ("a-0", (4,), (2,), 100),
        ("b-0", (), (), 0),
    ]
    held = holdings(origins, sizes, [1, 2, 3, 4])
    assert [(b, h.replicas, h.leaders, h.size_in_bytes) for b, h in held.items()] == [
        (1, 2, 2, 150),
        (2, 2, 0, 107),
        (3, 2, 1, 57),
        (4, 0, 0, 0),
    ]
    racks = by_rack(held, {1: "x", 2: "x", 3: "y", 4: None})
    assert {name: h.replicas for name, h in racks.items()} == {"x": 4, "y": 2}
    assert seconds_to_move(moves, 10) == 10


# --- sizes --------------------------------------------------------------------------------------------


def test_sizes_from_what_kafka_log_dirs_prints(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(
        "Querying brokers for log directories information\nReceived log directory information from brokers 1,2\n"
        '{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","error":null,"partitions":['
        '{"partition":"my-topic-0","size":10,"offsetLag":0,"isFuture":false},'
        '{"partition":"my-topic-1","size":99,"offsetLag":0,"isFuture":true}]}]},'
        '{"broker":2,"logDirs":[{"logDir":"/d","error":null,"partitions":['
        '{"partition":"my-topic-0","size":12,"offsetLag":0,"isFuture":false}]}]}]}\n'
    )
    found = read_disk_sizes(tmp_path / "said")
    assert [(r.broker_id, r.size_in_bytes) for r in found] == [(1, 10), (2, 12)]
    assert partition_sizes(found) == {TopicPartition("my-topic", 0): 12}


def test_sizes_from_an_object_and_from_log_directories(tmp_path: Path) -> None:
    (tmp_path / "sizes.json").write_text('{"a-0": 5, "a-1": 6}')
    assert partition_sizes(read_disk_sizes(tmp_path / "sizes.json")) == {A0: 5, A1: 6}
    incident = recording("incidents/unclean-2.8")
    sizes = read_disk_sizes(incident)
    assert sizes
    assert {s.broker_id for s in sizes} == {1, 2}
    assert all(s.size_in_bytes > 0 for s in sizes)


@pytest.mark.parametrize("text", ["", "nothing", "{}x", '{"a-0": "big"}', '["a"]'])
def test_what_holds_no_sizes(tmp_path: Path, text: str) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(UnreadableFile):
        read_disk_sizes(tmp_path / "s")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_plan_of_another_systems_editor_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "plan.json"
    mark = "\ufeff" if encoding.endswith(("-le", "-be")) else ""
    path.write_bytes(
        (mark + '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}').encode(encoding)
    )
    assert read_plan(path).targets == {TopicPartition("t", 0): (1, 2)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Current partition replica assignment\n{}\n\nProposed partition reassignment configuration\n{}\n",
         "it holds the present assignment (--current) and the proposed one (--proposed)"),
        ("Current partition replica assignment\n\n{}\n\nSave this", "it holds the present assignment"),
        ('{"version":1,"topics":[{"topic":"orders"}]}', "is a list of topics to move"),
        ('{"partitions":[\n  {"topic":"t" 1}\n]}', "line 2 column 16"),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(KctlError) as raised:
        read_plan(path)
    assert words in raised.value.message


def test_the_place_of_a_mistake_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"partitions":[\n  {"topic":"t" 1}\n]}')
    with pytest.raises(KctlError) as raised:
        read_plan(path)
    say_error(raised.value)
    _, line, mark, hint = capsys.readouterr().err.splitlines()
    assert (line, mark) == (
        '        {"topic":"t" 1}',
        "                     ^",
    ) and "correct the file" in hint


GENERATED = (
    'Current partition replica assignment\n{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}\n\n'
    "Proposed partition reassignment configuration\n"
    '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2]}]}\n'
)
EXECUTED = (
    'Current partition replica assignment\n\n{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}\n\n'
    "Save this to use as the --reassignment-json-file option during rollback\n"
    "Successfully started partition reassignment for t-0\n"
)


@pytest.mark.parametrize(
    ("text", "printed", "replicas"),
    [(GENERATED, "current", (1, 2)), (GENERATED, "proposed", (3, 2)), (EXECUTED, "current", (1, 2)),
     (GENERATED.replace("\n", "\r\n"), "proposed", (3, 2))],
)  # fmt: skip
def test_a_plan_is_chosen_from_printed_output(
    tmp_path: Path, text: str, printed: str, replicas: tuple[int, ...]
) -> None:
    path = tmp_path / "printed.txt"
    path.write_text(text, newline="")
    assert read_plan(path, printed).targets == {TopicPartition("t", 0): replicas}


@pytest.mark.parametrize(
    ("text", "printed", "words"),
    [
        (EXECUTED, "proposed", "it holds the present assignment (--current)"),
        ('{"partitions":[]}', "current", "is not the output of"),
        (GENERATED.replace('{"version"', "x", 1), "current", "is not JSON"),
    ],
)
def test_a_plan_that_was_not_printed_is_not_chosen(
    tmp_path: Path, text: str, printed: str, words: str
) -> None:
    path = tmp_path / "printed.txt"
    path.write_text(text)
    with pytest.raises(KctlError) as raised:
        read_plan(path, printed)
    assert words in raised.value.message


def entries(*replicas: object, partitions: tuple[object, ...] = (0, 1), **more: object) -> dict[str, object]:
    """A plan of orders with these replicas, as people keep it."""
    rows = [
        {"topic": "orders", "partition": n, "replicas": ids, "log_dirs": ["any"] * 2}
        for n, ids in zip(partitions, replicas, strict=True)
    ]
    return {"version": 1, "partitions": rows, **more}


GOOD = entries([1, 2], [2, 1])
BACK = entries([3, 2], [2, 3])
ORDERS = {TopicPartition("orders", 0): (1, 2), TopicPartition("orders", 1): (2, 1)}
TYPOGRAPHIC = json.dumps(GOOD).replace('"topic"', "\u201ctopic\u201d")
KEPT: dict[str, tuple[bytes, str | None, str | None]] = {
    "what --generate printed, without a choice": (f"{PRINTED[0].heading}\n{json.dumps(BACK)}\n\n{PRINTED[1].heading}\n{json.dumps(GOOD)}\n".encode(), None, r"\(--current\) and the proposed one \(--proposed\)"),
    "what --generate printed": (f"{PRINTED[0].heading}\n{json.dumps(BACK)}\n\n{PRINTED[1].heading}\n{json.dumps(GOOD)}\n".encode(), "proposed", None),
    "what --execute printed": (f"{PRINTED[0].heading}\n\n{json.dumps(GOOD)}\n\nSave this to use as the --reassignment-json-file option during rollback\nSuccessfully started partition reassignments for orders-0,orders-1\n".encode(), "current", None),
    "what --execute printed, the other": (f"{PRINTED[0].heading}\n\n{json.dumps(GOOD)}\n\nSave this".encode(), "proposed", "say which is meant|it holds the present assignment"),
    "UTF-16": (json.dumps(GOOD).encode("utf-16"), None, None),
    "a mark": (json.dumps(GOOD).encode("utf-8-sig"), None, None),
    "no version": (json.dumps({"partitions": GOOD["partitions"]}).encode(), None, None),
    "directories of other replicas": (json.dumps(entries([1, 2, 3], [2, 1])).encode(), None, r"entry 1 \(orders-0\) has 2 log_dirs, and not one a replica"),
    "a partition twice": (json.dumps(entries([1, 2], [2, 1], partitions=(0, 0))).encode(), None, "orders-0 is in it twice, the second time as entry 2"),
    "no replicas": (json.dumps(entries([], [2, 1])).encode(), None, r"entry 1 \(orders-0\) has no replicas"),
    "a comma too many": (json.dumps(GOOD).replace("}]}", "},]}").encode(), None, "is not JSON: .* line 1 column"),
    "typographic quotes": (TYPOGRAPHIC.encode(), None, "is not JSON: .* line 1 column"),
    "a broker twice": (json.dumps(entries([1, 1], [2, 1])).encode(), None, r"names a broker twice: \[1, 1\]"),
    "numbers as texts": (json.dumps(entries(["1", "2"], [2, 1], partitions=(0, "1"))).encode(), None, "replicas are .*, not a list of broker ids"),
    "topics to move": (b'{"topics":[{"topic":"orders"}],"version":1}', None, "a list of topics to move, as `kafka-reassign-partitions --generate` takes it"),
}  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
def test_plans_as_people_keep_them(tmp_path: Path, kept: str) -> None:
    data, printed, words = KEPT[kept]
    path = tmp_path / "plan.json"
    path.write_bytes(data)
    if words is None:
        assert read_plan(path, printed).targets == ORDERS
    else:
        with pytest.raises(KctlError) as raised:
            read_plan(path, printed)
        assert re.search(words, f"{raised.value.message}\n{raised.value.hint}")
        assert not words.startswith("is not JSON") or raised.value.shown[1].strip() == "^"


@pytest.mark.parametrize(
    ("plan", "notes"),
    [
        (GOOD, []),
        ({"partitions": GOOD["partitions"]}, ["names no version; it is read as version 1"]),
        (
            {**GOOD, "comment": "by hand", "partitions": [{"topic": "orders", "partition": 0, "replicas": [1], "rack": "a"}]},
            ["not read: 'comment', 'rack' of entries"],
        ),
        ({**GOOD, **{f"k{n}": n for n in range(9)}}, ["not read: 'k0', 'k1', 'k2', 'k3', 'k4', and 4 more"]),
    ],
)  # fmt: skip
def test_what_is_unusual_in_a_plan_is_noted(tmp_path: Path, plan: object, notes: list[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    given: list[str] = []
    read_plan(path, note=given.append)
    assert len(given) == len(notes)
    assert all(
        note.startswith(f"{path}: ") and note.endswith(end) for note, end in zip(given, notes, strict=True)
    )


def test_a_command_notes_it_and_names_a_partition_that_is_not_there(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    znodes = recording("incidents/unclean-2.8") / "moments/after/znodes.jsonl"
    plan.write_text('{"partitions": [{"topic": "__consumer_offsets", "partition": 170, "replicas": [1, 2]}]}')
    ran = rows("reassign", "verify", "--snapshot", znodes, plan)
    (row,) = ran.of("partition")
    assert (row["state"], row["reason"]) == ("failed", "no such partition")
    assert "the plan names no version; it is read as version 1" in ran.err
