"""`segment dump` and `checkpoint show`: rows, filters, forms, and input that is not what it says."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from formats.compression import Codec
from formats.log.record_batch import Record, read_header, seal, write_batch
from formats.log_dir.index_files import OffsetIndexEntry, TimeIndexEntry, write_index
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from formats.messages.consumer_offsets import TYPES, write_versioned
from tests.conftest import kctl, recording, recordings, rows, unchanged
from tests.log_examples import EXAMPLES, LOG

T = 1_700_000_000_000
NAME = "00000000000000000000"


def batches(count: int, each: int = 5, first: int = 0, codec: int = 0) -> list[bytes]:
    return [
        write_batch(
            [
                Record(o, T + 1000 * o, f"k{o % 7}".encode(), f"value {o}".encode(), ((b"h", b"x"),))
                for o in range(first + n * each, first + (n + 1) * each)
            ],
            codec=codec,
            partition_leader_epoch=3,
        )
        for n in range(count)
    ]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """200 offsets in 40 batches, with indexes as a broker writes them."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log, index, times, position = b"", [], [], 0
    for n, batch in enumerate(batches(40, codec=1)):
        if n % 4 == 3:
            index.append(OffsetIndexEntry(n * 5 + 4, position))
            times.append(TimeIndexEntry(T + 1000 * (n * 5 + 4), n * 5 + 4))
        log += batch
        position += len(batch)
    (folder / f"{NAME}.log").write_bytes(log)
    (folder / f"{NAME}.index").write_bytes(write_index(index) + bytes(80))
    (folder / f"{NAME}.timeindex").write_bytes(write_index(times) + bytes(120))
    return folder / f"{NAME}.log"


def offsets(*args: object) -> list[int]:
    ran = rows("segment", "dump", "--records", *args)
    assert ran.status == 0
    return [row["offset"] for row in ran.of("record")]


def test_a_row_for_each_entry_of_every_magic(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(LOG)
    ran = rows("segment", "dump", "--records", file)
    assert ran.status == 0
    found = ran.of("batch")
    assert [(b["magic"], b["base_offset"], b["last_offset"], b["records_count"]) for b in found] == [
        (0, 0, 0, 1),
        (1, 1, 1, 1),
        (1, None, 3, None),
        (2, 4, 5, 2),
        (2, 6, 6, 1),
        (2, 7, 11, 0),
        (2, 12, 12, 1),
        (2, 13, 14, 2),
    ]
    assert sum(b["size_in_bytes"] for b in found) == len(LOG)
    assert all(b["crc_valid"] for b in found)
    assert found[6]["delete_horizon_ms"] == 1_600_000_000_000
    assert [r["offset"] for r in ran.of("record")] == [0, 1, 2, 3, 4, 5, 6, 12, 13, 14]
    headers = ran.of("record")[4]["headers"]
    assert headers == [{"key": "h", "value": "x"}, {"key": "n", "value": None}]
    marker = ran.of("record")[6]["decoded"]
    assert marker == {"type": 1, "name": "COMMIT", "coordinator_epoch": 7}


@pytest.mark.parametrize("beside", ["indexes", "no indexes", "lying indexes"])
@pytest.mark.parametrize(("start", "end"), [(0, 200), (73, 91), (150, 151), (199, 300), (200, 201), (0, 0)])
def test_offset_filters(segment: Path, beside: str, start: int, end: int) -> None:
    if beside != "indexes":
        segment.with_suffix(".timeindex").unlink()
        segment.with_suffix(".index").write_bytes(
            b""
            if beside == "no indexes"
            else write_index([OffsetIndexEntry(1, 17), OffsetIndexEntry(2, 170)])
        )
    expected = list(range(start, min(end, 200)))
    assert offsets("--from-offset", start, "--to-offset", end, segment) == expected
    plain = rows("segment", "dump", "--from-offset", start, "--to-offset", end, segment).of("batch")
    assert [b["base_offset"] for b in plain] == sorted({o - o % 5 for o in expected})


@pytest.mark.parametrize(("start", "end"), [(0, 10_000), (73, 91), (150, 150), (199, 300)])
def test_time_filters(segment: Path, start: int, end: int) -> None:
    args = ("--from-time", T + 1000 * start, "--to-time", T + 1000 * end, segment)
    assert offsets(*args) == list(range(start, min(end, 200)))


def test_key_and_limit(segment: Path) -> None:
    assert offsets("--key", "k3", "--limit", 3, segment) == [3, 10, 17]
    assert offsets("--key", "nobody", segment) == []
    assert [b["base_offset"] for b in rows("segment", "dump", "--limit", 2, segment).of("batch")] == [0, 5]
    assert rows("segment", "dump", "--records", "--limit", 0, segment).rows == []


def test_seeking_reads_little(tmp_path: Path) -> None:
    """The first half of the segment is unreadable; whoever begins at the index entry does not notice."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    log = batches(40)
    size = len(log[0])
    (folder / f"{NAME}.log").write_bytes(b"\xa5" * (20 * size) + b"".join(log[20:]))
    (folder / f"{NAME}.index").write_bytes(write_index([OffsetIndexEntry(104, 20 * size)]))
    ran = rows("segment", "dump", "--from-offset", 110, "--to-offset", 115, folder / f"{NAME}.log")
    assert ran.status == 0
    assert [b["base_offset"] for b in ran.rows] == [110]


BYTES = b"\xff\x00"


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("utf8", b"caf\xc3\xa9", {"value": "café"}),
        ("utf8", BYTES, {"value_base64": base64.b64encode(BYTES).decode()}),
        ("hex", BYTES, {"value": "ff00"}),
        ("base64", b"hi", {"value_base64": "aGk="}),
        ("json", b'{"a": [1, null]}', {"value": {"a": [1, None]}}),
        ("json", b"NaN", {"value": "NaN"}),
        ("json", b"{", {"value": "{"}),
        ("json", b"[" * 100_000, {"value": "[" * 100_000}),
        ("json", BYTES, {"value_base64": base64.b64encode(BYTES).decode()}),
        ("hex", None, {"value": None}),
        ("utf8", b"", {"value": ""}),
    ],
)
def test_forms_of_values(form: str, value: bytes | None, expected: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(write_batch([Record(0, T, b"k", value)]))
    (record,) = rows("segment", "dump", "--records", "--values", form, file).of("record")
    assert {k: v for k, v in record.items() if k.startswith("value")} == expected
    assert record["key"] == "k"


def test_damage_is_a_finding_and_the_rest_goes_on(segment: Path) -> None:
    pieces = batches(40)
    log, at, size = bytearray(b"".join(pieces)), sum(map(len, pieces[:7])), len(pieces[7])
    log[100] ^= 1
    log[at + 8] = 0x7F
    segment.write_bytes(log)
    ran = rows("segment", "dump", "--records", segment)
    assert ran.status == 5
    assert ran.codes() == ["batch-crc-mismatch", "batch-illegal-length"]
    damaged = next(f for f in ran.of("finding") if f["code"] == "batch-illegal-length")
    assert (damaged["position"], damaged["size_in_bytes"]) == (at, size)
    assert len(ran.of("batch")) == 39
    assert [b["crc_valid"] for b in ran.of("batch")] == [False] + [True] * 38


def test_records_that_cannot_be_read_are_a_finding(tmp_path: Path) -> None:
    good = batches(3)
    lying = seal(read_header(good[1])._replace(records_count=4), good[1][61:])
    codec7 = seal(read_header(good[2])._replace(attributes=7), good[2][61:])
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(good[0] + lying + codec7)
    ran = rows("segment", "dump", "--records", file)
    assert ran.status == 5
    assert ran.codes() == ["batch-decompression-failed", "record-malformed"]
    assert [r["offset"] for r in ran.of("record")] == [*range(5), 5, 6, 7, 8]


def test_a_batch_that_decompresses_to_too_much(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.log"
    file.write_bytes(
        write_batch([Record(0, T, None, bytes(10 << 20))], codec=Codec.ZSTD) + batches(1, first=1)[0]
    )
    ran = rows("segment", "dump", "--records", "--max-decompressed-bytes", 1 << 20, file)
    assert ran.codes() == ["batch-not-examined"]
    assert len(ran.of("record")) == 5


# --- other files ---------------------------------------------------------------------------------------------


def test_index_entries(segment: Path) -> None:
    ran = rows("segment", "dump", "--limit", 2, segment.with_suffix(".index"))
    assert [(e["relative_offset"], e["offset"], e["entry_position"]) for e in ran.rows] == [
        (19, 19, 0),
        (39, 39, 8),
    ]
    times = rows("segment", "dump", segment.with_suffix(".timeindex")).rows
    assert [(e["timestamp"], e["offset"], e["position"]) for e in times][:2] == [
        (T + 19_000, 19, 0),
        (T + 39_000, 39, 12),
    ]
    assert len(times) == 10


CONTENT = {
    "log": (LOG, "batch"),
    "index": (EXAMPLES["E12.index"], "entry"),
    "timeindex": (EXAMPLES["E12.timeindex"], "entry"),
    "txnindex": (EXAMPLES["E12.txnindex"], "entry"),
    "snapshot": (EXAMPLES["E12.snapshot"], "entry"),
    "checkpoint": (b"0\n1\norders 3 17\n", "entry"),
    "epochs": (b"0\n2\n0 0\n4 120\n", "entry"),
}


@pytest.mark.parametrize("kind", CONTENT)
def test_a_file_of_any_name_by_type_and_by_content(kind: str, tmp_path: Path) -> None:
    data, row_kind = CONTENT[kind]
    file = tmp_path / "evidence.bin"
    file.write_bytes(data)
    told = rows("segment", "dump", "--type", kind, file)
    assert told.status == 0
    assert {row["kind"] for row in told.rows} == {row_kind}
    assert rows("segment", "dump", file).rows == told.rows


def test_fields_of_the_worked_examples(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000100.index").write_bytes(EXAMPLES["E12.index"])
    (tmp_path / "00000000000000000100.txnindex").write_bytes(EXAMPLES["E12.txnindex"])
    (tmp_path / "00000000000000000100.snapshot").write_bytes(EXAMPLES["E12.snapshot"])
    index, txn, snapshot = (
        rows("segment", "dump", tmp_path / f"00000000000000000100.{s}").rows
        for s in ("index", "txnindex", "snapshot")
    )
    assert [(e["offset"], e["position"]) for e in index] == [(104, 81), (107, 172)]
    assert [
        (e["producer_id"], e["first_offset"], e["last_offset"], e["last_stable_offset"]) for e in txn
    ] == [(1000, 90, 106, 107)]
    assert [(e["producer_id"], e["last_sequence"], e["current_txn_first_offset"]) for e in snapshot] == [
        (1000, 14, -1),
        (1001, -1, 95),
    ]


def test_a_corrupt_snapshot_gives_its_rows_and_one_line(tmp_path: Path) -> None:
    file = tmp_path / f"{NAME}.snapshot"
    data = bytearray(write_snapshot([ProducerEntry(1, 0, 2, 3, 0, T, -1, -1)]))
    data[20] ^= 1
    file.write_bytes(data)
    ran = rows("segment", "dump", file)
    assert ran.status == 3 and len(ran.rows) == 1
    assert "Kafka deletes the snapshot" in ran.err and str(file) in ran.err


def test_internal_topics_are_decoded() -> None:
    folder = recording("segments/3.9.1-kraft") / "data-clean/broker-1/logdir-0"
    for topic, key in (("__consumer_offsets-0", "key"), ("__transaction_state-0", "transactional_id")):
        ran = rows("segment", "dump", "--records", folder / topic / f"{NAME}.log")
        assert ran.status == 0
        data = [r for r in ran.of("record") if r["decoded"] and "name" not in r["decoded"]]
        assert data and all(key in r["decoded"] for r in data)
    metadata = sorted((folder / "__cluster_metadata-0").glob("*.log"))[0]
    types = {r["decoded"].get("type") for r in rows("segment", "dump", "--records", metadata).of("record")}
    assert "TOPIC_RECORD" in types


def test_records_of_groups_are_decoded_in_every_known_version(tmp_path: Path) -> None:
    """Also types and tagged fields that Kafka 3.9's dump tool does not know."""
    folder, topic_id = tmp_path / "__consumer_offsets-0", "LWgrMmVrT0a__7a4SasuPA"
    folder.mkdir()
    written, expected = [], []
    for key, value in TYPES:
        version = value.versions.last
        values = {"topic_id": topic_id, "metadata_hash": 9}
        name, data = write_versioned(key, key.versions.last, {}), write_versioned(value, version, values)
        written.append(Record(len(written), T, name, data))
        expected.append((str(key.versions.last), str(version)))
    (folder / f"{NAME}.log").write_bytes(write_batch(written))
    decoded = [
        r["decoded"] for r in rows("segment", "dump", "--records", folder / f"{NAME}.log").of("record")
    ]
    assert [(one["key"]["type"], one["value"]["version"]) for one in decoded] == expected
    data = {one["key"]["type"]: one["value"]["data"] for one in decoded}
    assert (data["1"]["topicId"], data["3"]["metadataHash"], data["11"]["metadataHash"]) == (topic_id, 9, 9)


@pytest.mark.slow
@pytest.mark.parametrize("name", recordings("segments"))
def test_recorded_files_are_read_and_never_touched(name: str) -> None:
    with unchanged(recording(name)) as folder:
        files = sorted(
            p for p in folder.rglob("*") if p.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
            and "expected" not in p.parts and p.stat().st_size < 200_000
        )[:120]  # fmt: skip
        ran = rows("segment", "dump", "--records", *files)
    assert (ran.status, ran.err) == (0, "")
    assert not ran.codes("error", "warning")


# --- bad input -----------------------------------------------------------------------------------------------


def bad(tmp_path: Path, what: str) -> Path:
    """A path of each kind that is no readable segment."""
    path = tmp_path / f"{NAME}.log"
    if what == "empty":
        path.touch()
    elif what == "no permission":
        path.write_bytes(LOG)
        path.chmod(0)
    elif what == "FIFO":
        os.mkfifo(path)
    elif what == "symlink loop":
        path.symlink_to(path)
    elif what == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize("form", ["kctl", "kafka"])
@pytest.mark.parametrize("what", ["missing", "no permission", "FIFO", "symlink loop", "folder"])
def test_a_file_that_cannot_be_read_is_one_line_and_the_rest_goes_on(
    what: str, form: str, tmp_path: Path, segment: Path
) -> None:
    if what == "no permission" and os.geteuid() == 0:
        pytest.skip("root reads everything")
    path = bad(tmp_path, what)
    ran = kctl("segment", "dump", "--format", form, path, segment)
    assert ran.status == 3
    assert len(ran.errors) == 1 and str(path) in ran.err
    assert b"195" in ran.out


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    ran = rows("segment", "dump", "--records", bad(tmp_path, "empty"))
    assert (ran.status, ran.rows) == (0, [])


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9-0.log"
    Path(os.fsdecode(path)).write_bytes(LOG)
    for form in (["--output", "jsonl"], ["--output", "text"], ["--format", "kafka"]):
        ran = kctl("segment", "dump", *form, "--type", "log", os.fsdecode(path))
        assert ran.status == 0, ran.err


NASTY = {
    "batch length of 2^31-1": EXAMPLES["E6"][:8] + b"\x7f\xff\xff\xff" + EXAMPLES["E6"][12:],
    "varints without end": seal(read_header(EXAMPLES["E6"]), b"\xff" * 400),
    "codec 7": seal(read_header(EXAMPLES["E6"])._replace(attributes=7), EXAMPLES["E6"][61:]),
    "lying zstd": seal(
        read_header(EXAMPLES["E6"])._replace(attributes=4),
        bytes.fromhex("28b52ffda0ffffff7f4100006100"),
    ),
    "snappy length that overflows": seal(
        read_header(EXAMPLES["E6"])._replace(attributes=2), b"\xff\xff\xff\xff\x0f" + b"abc" * 10
    ),
    "snappy chunk that overflows": seal(
        read_header(EXAMPLES["E6"])._replace(attributes=2),
        bytes.fromhex("82534e41505059000000000100000001") + b"\x7f\xff\xff\xff" + b"abc",
    ),
    "count of 2^31-1": seal(
        read_header(EXAMPLES["E6"])._replace(records_count=0x7FFFFFFF), EXAMPLES["E6"][61:]
    ),
    "old message with a huge key": EXAMPLES["E2"][:26] + b"\x7f\xff\xff\xff" + EXAMPLES["E2"][30:],
}


@pytest.mark.parametrize("form", [[], ["--output", "jsonl"], ["--format", "kafka"]], ids=str)
@pytest.mark.parametrize("what", NASTY)
def test_nasty_bytes_are_told_and_what_is_behind_is_read(what: str, form: list[str], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(EXAMPLES["E1"] + NASTY[what] + batches(1, first=100)[0])
    ran = kctl("segment", "dump", "--records", *form, path)
    assert ran.status == 5
    assert b"value 104" in ran.out or "--format" in form


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.scan import source

    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(batches(20)))
    read_at = source.LocalFile.read_at

    def shrinking(self: source.LocalFile, position: int, size: int) -> bytes:
        data = read_at(self, position, size)
        return data[: max(0, 1000 - position)]

    monkeypatch.setattr(source.LocalFile, "read_at", shrinking)
    ran = rows("segment", "dump", "--limit", 99, path)
    assert "file-changed" in ran.codes()
    assert ran.of("batch")
    assert kctl("segment", "dump", "--format", "kafka", path).status == 3


def test_a_file_that_is_cut_as_its_columns_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kctl.dump import files
    from kctl.scan import source

    monkeypatch.setattr(files, "SMALL", 0)
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(b"".join(batches(20)))
    read_into = source.LocalFile.read_into

    def shrinking(self: source.LocalFile, position: int, room: Any) -> int:
        os.truncate(path, 1000)
        return read_into(self, position, room)

    monkeypatch.setattr(source.LocalFile, "read_into", shrinking)
    ran = rows("segment", "dump", path)
    assert "file-changed" in ran.codes()
    assert ran.of("batch")


def test_wrong_usage(segment: Path) -> None:
    assert kctl("segment", "dump").status == 2
    assert kctl("segment", "dump", "--type", "nonsense", segment).status == 2
    assert kctl("segment", "dump", "--from-time", "yesterday-ish", segment).status == 2
    assert kctl("segment", "dump", "--format", "kafka", "--output", "jsonl", segment).status == 2
    assert kctl("segment", "dump", "--offsets-decoder", segment).status == 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_segment(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    piece = write_batch([Record(0, T, b"k", os.urandom(900_000))])
    with path.open("wb") as out:
        for _ in range(100):
            out.write(piece)
    code = (
        "import sys; from commands.main import main; sys.stdout = open('/dev/null', 'w');"
        f" main(['segment', 'dump', '--records', '--output', 'jsonl', {str(path)!r}]);"
        # Of this process alone: what getrusage says begins with the size of the process that started it.
        " print(next(x for x in open('/proc/self/status') if x.startswith('VmHWM')).split()[1], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stderr.splitlines()[-1]) < 270_000


# --- checkpoint show ----------------------------------------------------------------------------------------

ACCEPTED = {
    "empty file": ("", []),
    "only the version": ("0\n", []),
    "trailing blanks, tabs and +": ("0\n2\n0\t0  \n+7   12\t\n", [(0, 0), (7, 12)]),
    "CRLF and no line end at the end": ("0\r\n1\r\n3 4", [(3, 4)]),
    "CR alone": ("0\r1\r3 4\r", [(3, 4)]),
}


@pytest.mark.parametrize(("text", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_checkpoints_that_kafka_reads(text: str, expected: list[tuple[int, int]], tmp_path: Path) -> None:
    file = tmp_path / "leader-epoch-checkpoint"
    file.write_bytes(text.encode())
    ran = rows("checkpoint", "show", file)
    assert ran.status == 0
    assert [(row["epoch"], row["start_offset"]) for row in ran.rows] == expected


OFFLINE, FAILS = "marks the log directory offline", "does not handle"
REFUSED = {
    "version 1": ("1\n0\n", "version 1 where 0 is known (line 1)", OFFLINE),
    "version is no number": ("0 \n0\n", "malformed line '0 ' (line 1)", OFFLINE),
    "count is no number": ("0\nx\n", "malformed line 'x' (line 2)", OFFLINE),
    "too few fields": ("0\n1\n3\n", "malformed line '3' (line 3)", OFFLINE),
    "blank line": ("0\n1\n\n", "malformed line '' (line 3)", OFFLINE),
    "leading blank": ("0\n1\n 3 4\n", "malformed line ' 3 4' (line 3)", OFFLINE),
    "fewer entries": ("0\n2\n3 4\n", "1 entry where line 2 promises 2 (line 3)", OFFLINE),
    "more entries": ("0\n1\n3 4\n5 6\n", "2 entries where line 2 promises 1 (line 4)", OFFLINE),
    "negative count": ("0\n-1\n", "count of -1 entries (line 2)", FAILS),
    "field is no number": ("0\n1\n3 x\n", "'x' is not a number of 64 bits (line 3)", FAILS),
    "field overflows": ("0\n1\n2147483648 1\n", "'2147483648' is not a number of 32 bits (line 3)", FAILS),
    "a number of 5,000 digits": (
        "0\n1\n3 " + "9" * 5000 + "\n",
        "is not a number of 64 bits (line 3)",
        FAILS,
    ),
}


@pytest.mark.parametrize(("text", "what", "refusal"), REFUSED.values(), ids=REFUSED)
def test_checkpoints_that_kafka_refuses(text: str, what: str, refusal: str, tmp_path: Path) -> None:
    file = tmp_path / "leader-epoch-checkpoint"
    file.write_text(text)
    ran = kctl("checkpoint", "show", file)
    assert ran.status == 3
    assert len(ran.errors) == 1
    assert what in ran.err and refusal in ran.err and str(file) in ran.err
    below = kctl("checkpoint", "show", tmp_path)
    assert below.status == 5 and what in below.err


def test_a_checkpoint_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "replication-offset-checkpoint"
    file.write_bytes(b"0\n1\ncaf\xe9 0 1\n")
    ran = kctl("checkpoint", "show", file)
    assert ran.status == 3 and "byte 7 is not UTF-8 (line 3)" in ran.err


@pytest.mark.slow
def test_a_checkpoint_of_a_million_lines(tmp_path: Path) -> None:
    file = tmp_path / "replication-offset-checkpoint"
    file.write_text("0\n1000000\n" + "".join(f"topic.with-dashes {n} {n}\n" for n in range(1_000_000)))
    ran = rows("segment", "dump", "--from-offset", 999_999, file)
    assert ran.status == 0
    assert ran.rows == [
        {
            "kind": "entry",
            "file": str(file),
            "topic": "topic.with-dashes",
            "partition": 999_999,
            "offset": 999_999,
            "line": 1_000_002,
        }
    ]


def test_all_checkpoints_of_a_log_directory() -> None:
    folder = recording("segments/2.8.2") / "data-clean/broker-11"
    ran = rows("checkpoint", "show", folder)
    assert ran.status == 0
    files = {row["file"] for row in ran.rows}
    assert "logdir-0/replication-offset-checkpoint" in files
    assert any(file.endswith("leader-epoch-checkpoint") for file in files)
    epochs = [row for row in ran.rows if "epoch" in row]
    assert all(row["topic"] and row["partition"] is not None for row in epochs)


def test_paths_that_are_no_checkpoints(tmp_path: Path, segment: Path) -> None:
    assert kctl("checkpoint", "show", tmp_path / "nowhere").status == 3
    assert kctl("checkpoint", "show", segment).status == 3
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert kctl("checkpoint", "show", loop).status == 3
    fifo = tmp_path / "leader-epoch-checkpoint"
    os.mkfifo(fifo)
    assert kctl("checkpoint", "show", fifo).status == 3
