"""Names, indexes, snapshots, checkpoints and the small files of a log directory."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError, MalformedLine
from formats.kafka_text.dump_log_segments import java_path, java_text
from formats.log_dir.checkpoints import (
    EpochEntry,
    MalformedCheckpoint,
    OffsetEntry,
    Refusal,
    assigned_epochs,
    format_checkpoint,
    parse_leader_epochs,
    parse_offset_checkpoint,
)
from formats.log_dir.file_names import (
    FileState,
    FolderKind,
    PartitionFolder,
    SegmentFile,
    format_partition_folder,
    format_segment_file,
    parse_partition_folder,
    parse_segment_file,
)
from formats.log_dir.index_files import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    read_offset_index,
    read_time_index,
    read_transaction_index,
    used_size,
    write_index,
)
from formats.log_dir.meta_properties import (
    MetaProperties,
    format_meta_properties,
    format_properties,
    parse_meta_properties,
    parse_properties,
    unwritten_line,
)
from formats.log_dir.producer_snapshot import (
    ProducerEntry,
    SnapshotCrcMismatch,
    UnknownVersion,
    read_entries,
    read_snapshot,
    write_snapshot,
)
from formats.log_dir.state_files import (
    PartitionMetadata,
    QuorumState,
    format_clean_shutdown,
    format_partition_metadata,
    format_quorum_state,
    parse_clean_shutdown,
    parse_partition_metadata,
    parse_quorum_state,
)
from tests.conftest import recording, recordings
from tests.log_examples import EXAMPLES

T = 1_500_000_000_000
ID = "cc25bc8446244304996f0d5151dc8632"

FOLDERS = {
    "orders-0": PartitionFolder("orders", 0),
    "a-b.c_d-12": PartitionFolder("a-b.c_d", 12),
    "-1-2": PartitionFolder("-1", 2),
    "dots.in.name-3": PartitionFolder("dots.in.name", 3),
    f"orders-0.{ID}-delete": PartitionFolder("orders", 0, FolderKind.DELETE, ID),
    f"my.topic-7.{ID}-future": PartitionFolder("my.topic", 7, FolderKind.FUTURE, ID),
    f"x-1-1.{ID}-stray": PartitionFolder("x-1", 1, FolderKind.STRAY, ID),
    "orders-delete": None,
    "lost+found": None,
    "-0": None,
    "orders-": None,
    "orders-2147483648": None,
    "orders-1x": None,
    "": None,
}


@pytest.mark.parametrize(("name", "expected"), FOLDERS.items())
def test_partition_folders(name: str, expected: PartitionFolder | None) -> None:
    assert parse_partition_folder(name) == expected
    if expected:
        assert format_partition_folder(expected) == name


def test_a_long_topic_is_cut_where_kafka_cuts_it() -> None:
    folder = PartitionFolder("t" * 249, 12, FolderKind.DELETE, ID)
    assert len(format_partition_folder(folder)) == 255
    assert len(format_partition_folder(folder._replace(kind=FolderKind.FUTURE))) > 255


ZERO = "0" * 20
FILES = {
    f"{ZERO}.log": SegmentFile(0, ".log"),
    "00000000000000000123.timeindex": SegmentFile(123, ".timeindex"),
    f"{ZERO}.log.deleted": SegmentFile(0, ".log", FileState.DELETED),
    f"{ZERO}.index.cleaned": SegmentFile(0, ".index", FileState.CLEANED),
    f"{ZERO}.log.swap": SegmentFile(0, ".log", FileState.SWAP),
    f"{ZERO}.snapshot.deleted": SegmentFile(0, ".snapshot", FileState.DELETED),
    "00000000000000000036-0000000001.checkpoint": SegmentFile(36, ".checkpoint", FileState.LIVE, 1),
    "00000000000000000036-0000000001-12345.checkpoint.part": SegmentFile(
        36, ".checkpoint", FileState.PART, 1
    ),
    "00000000000000000036-0000000001.checkpoint.deleted": SegmentFile(
        36, ".checkpoint", FileState.DELETED, 1
    ),
    "17_Ab-_c.index": SegmentFile(17, ".index"),
    "leader-epoch-checkpoint": None,
    "x.log": None,
    ".log": None,
    "99999999999999999999.log": None,
}


@pytest.mark.parametrize(("name", "expected"), FILES.items())
def test_segment_files(name: str, expected: SegmentFile | None) -> None:
    assert parse_segment_file(name) == expected


def test_names_of_segment_files() -> None:
    assert format_segment_file(123, ".log", FileState.SWAP) == "00000000000000000123.log.swap"


@given(st.text(max_size=40))
def test_any_name(name: str) -> None:
    parse_partition_folder(name)
    parse_segment_file(name)


# --- indexes and snapshots ----------------------------------------------------------------------------------


def test_indexes_of_the_worked_examples() -> None:
    index = EXAMPLES["E12.index"]
    entries = [OffsetIndexEntry(4, 81), OffsetIndexEntry(7, 172)]
    assert read_offset_index(index)[:2] == entries
    assert used_size(index, 8) == 16
    assert write_index(entries) == index[:16]
    times = [TimeIndexEntry(T + 1, 1), TimeIndexEntry(T + 102, 4)]
    assert read_time_index(EXAMPLES["E12.timeindex"]) == times
    assert write_index(times) == EXAMPLES["E12.timeindex"]
    aborted = [AbortedTransaction(0, 1000, 90, 106, 107)]
    assert read_transaction_index(EXAMPLES["E12.txnindex"] + b"fragment") == aborted
    assert write_index(aborted) == EXAMPLES["E12.txnindex"]


def test_the_used_part_of_an_index() -> None:
    assert used_size(b"", 8) == 0
    assert used_size(bytes(80), 8) == 0
    assert used_size(b"\0\0\0\1\0\0\1\0" + bytes(16), 8) == 8  # a last byte of zero belongs to its row
    assert used_size(b"\0\0\0\1\0\0\0\1\0", 8) == 8


def test_snapshot_of_the_worked_examples() -> None:
    data = EXAMPLES["E12.snapshot"]
    first, second = read_snapshot(data)
    assert first == ProducerEntry(1000, 5, 14, 11, 4, T + 20, 7, -1)
    assert (first.first_sequence, first.first_offset) == (10, 7)
    assert (second.first_sequence, second.first_offset, second.current_txn_first_offset) == (-1, -1, 95)
    assert write_snapshot([first, second]) == data


def test_snapshots_that_kafka_deletes() -> None:
    data = EXAMPLES["E12.snapshot"]
    with pytest.raises(UnknownVersion):
        read_snapshot(b"\0\2" + data[2:])
    with pytest.raises(SnapshotCrcMismatch) as caught:
        read_snapshot(data + b"\0")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.stored, again.computed, str(again)) == (
        caught.value.stored,
        caught.value.computed,
        str(caught.value),
    )
    for cut in range(len(data)):
        with pytest.raises(FormatError):
            read_snapshot(data[:cut])
    with pytest.raises(FormatError):
        read_entries(b"\0\1" + bytes(4) + b"\xff\xff\xff\xff")


# --- checkpoints ----------------------------------------------------------------------------------------------


def test_the_last_of_two_lines_stays_for_the_reader_to_choose() -> None:
    entries = parse_offset_checkpoint("0\n2\na-b.c 0 5\na-b.c 0 7\n")
    assert entries == [OffsetEntry("a-b.c", 0, 5), OffsetEntry("a-b.c", 0, 7)]


def test_a_checkpoint_error_survives_a_worker() -> None:
    with pytest.raises(MalformedCheckpoint) as caught:
        parse_leader_epochs("0\n1\n1 x\n")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.refusal) == (str(caught.value), Refusal.STARTUP_FAILS)


ASSIGNED = [
    ([(0, 0), (5, 10), (3, 20)], [(0, 0), (3, 20)]),
    ([(0, 0), (5, 10), (7, 10)], [(0, 0), (7, 10)]),
    ([(0, 0), (5, 10), (6, 4)], [(0, 0), (6, 4)]),
    ([(1, 5), (1, 7)], [(1, 5)]),
    ([(1, 5), (1, 3)], [(1, 3)]),
]


@pytest.mark.parametrize(("lines", "held"), ASSIGNED)
def test_what_a_broker_holds_of_epochs(lines: list[tuple[int, int]], held: list[tuple[int, int]]) -> None:
    assert assigned_epochs(EpochEntry(*line) for line in lines) == held


def test_negative_epochs_are_refused() -> None:
    with pytest.raises(ValueError, match="epoch -1"):
        assigned_epochs([EpochEntry(-1, 0)])


offset_entries = st.lists(
    st.builds(
        OffsetEntry,
        st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True),
        st.integers(0, 2**31 - 1),
        st.integers(-1, 2**63 - 1),
    ),
    max_size=5,
)


@given(offset_entries)
def test_checkpoints_that_were_written_are_read(entries: list[OffsetEntry]) -> None:
    assert parse_offset_checkpoint(format_checkpoint(entries)) == entries


@given(st.text(alphabet="0123 \t\n\r+-x.é\x0b\x1c", max_size=40).map(lambda t: "0\n" + t))
def test_any_checkpoint(text: str) -> None:
    for parse in (parse_offset_checkpoint, parse_leader_epochs):
        try:
            parse(text)
        except MalformedCheckpoint as error:
            assert error.position >= 1


@pytest.mark.parametrize("name", recordings("segments"))
def test_recorded_small_files(name: str) -> None:
    found = 0
    for path in recording(name).rglob("data-*/**/*"):
        if path.is_file() and path.stat().st_size < 100_000:
            found += _read_small(path.name, path.read_bytes())
    assert found


def _read_small(name: str, data: bytes) -> bool:
    text = data.decode("latin-1")
    if name == "meta.properties":
        assert parse_meta_properties(text).broker_id is not None
    elif name == "partition.metadata":
        assert format_partition_metadata(parse_partition_metadata(text)) == text
    elif name == "quorum-state":
        assert format_quorum_state(parse_quorum_state(text)) == text
    elif name == ".kafka_cleanshutdown":
        epoch = parse_clean_shutdown(text)
        assert text == ("" if epoch is None else format_clean_shutdown(epoch))
    elif name == "leader-epoch-checkpoint":
        assert format_checkpoint(parse_leader_epochs(text)) == (text or "0\n0\n")
    elif name.endswith("-checkpoint"):
        assert format_checkpoint(parse_offset_checkpoint(text)) == (text or "0\n0\n")
    else:
        return False
    return True


# --- small files ------------------------------------------------------------------------------------------------

PROPERTIES = r"""#
! another comment
   # and one after blanks
broker.id=3
 spaced   value with blanks
colon:x
eq = y
empty
contin\
    ued=a\
    b
uni=\u00e9\uD83D\uDE00
esc\=key\ 1=tab\there
"""


def test_java_properties() -> None:
    assert parse_properties(PROPERTIES) == {
        "broker.id": "3",
        "spaced": "value with blanks",
        "colon": "x",
        "eq": "y",
        "empty": "",
        "continued": "ab",
        "uni": "é😀",
        "esc=key 1": "tab\there",
    }
    with pytest.raises(MalformedLine):
        parse_properties("a=\\u12")


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=4))
def test_properties_that_were_written_are_read(values: dict[str, str]) -> None:
    clean = {k: v for k, v in values.items() if not any(0xD800 <= ord(c) < 0xE000 for c in k + v)}
    assert parse_properties(format_properties(clean)) == clean


@given(st.text(max_size=60))
def test_any_properties(text: str) -> None:
    try:
        parse_meta_properties(text)
    except MalformedLine as error:
        assert error.position >= 0


META = {
    "version=0\nbroker.id=1\ncluster.id=abc": MetaProperties(0, 1, "abc"),
    "broker.id=1": MetaProperties(0, 1),
    "version=1\nnode.id=2\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAABAA": MetaProperties(
        1, 2, "c", "AAAAAAAAAAAAAAAAAAABAA"
    ),
    "version=0": MetaProperties(0),
}


@pytest.mark.parametrize(("text", "expected"), META.items())
def test_meta_properties(text: str, expected: MetaProperties) -> None:
    assert parse_meta_properties(text) == expected
    assert parse_meta_properties(format_meta_properties(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "version=2",
        "version=x",
        "version=1\ncluster.id=c",
        "version=1\nnode.id=2",
        "broker.id=one",
        "broker.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA",
        "broker.id=1\ndirectory.id=short",
    ],
)
def test_meta_properties_that_stop_a_broker(text: str) -> None:
    with pytest.raises(MalformedLine):
        parse_meta_properties(text)


def test_partition_metadata() -> None:
    text = "version: 0\ntopic_id: xdLKHYtNRvqlVmJ2Uc8IUg"
    assert parse_partition_metadata(text) == PartitionMetadata(0, "xdLKHYtNRvqlVmJ2Uc8IUg")
    assert parse_partition_metadata("any: 3\nlabel:  xdLKHYtNRvqlVmJ2Uc8IUg==\nmore") == PartitionMetadata(
        3, "xdLKHYtNRvqlVmJ2Uc8IUg"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("version: 0", 2),
        ("version: 0\n", 2),
        ("version:0\ntopic_id: xdLKHYtNRvqlVmJ2Uc8IUg", 1),
        ("version: -1\ntopic_id: xdLKHYtNRvqlVmJ2Uc8IUg", 1),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", 2),
        ("version: 0\ntopic_id: nonsense", 2),
    ],
)
def test_partition_metadata_that_kafka_refuses(text: str, line: int) -> None:
    with pytest.raises(MalformedLine) as caught:
        parse_partition_metadata(text)
    assert caught.value.position == line


def test_quorum_state() -> None:
    text = (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    state = QuorumState(0, 1, 2, -1, "", 0, (1,))
    assert parse_quorum_state(text + "\nmore") == state
    newer = QuorumState(1, 1, 2, 3, voted_directory_id="AAAAAAAAAAAAAAAAAAABAA")
    assert parse_quorum_state(format_quorum_state(newer)) == newer


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "{}", '{"data_version":2}', '{"data_version":0}', "[" * 10_000]
)
def test_quorum_states_that_kafka_refuses(text: str) -> None:
    with pytest.raises(MalformedLine):
        parse_quorum_state(text)


@pytest.mark.parametrize(
    ("text", "epoch"), [("", None), ('{"version":0,"brokerEpoch":7}', 7), ("x", None), ("[]", None)]
)
def test_clean_shutdown(text: str, epoch: int | None) -> None:
    assert parse_clean_shutdown(text) == epoch


# --- text as Java has it ------------------------------------------------------------------------------------------

R = "\ufffd"
JAVA = {
    b"caf\xc3\xa9 \xf0\x9f\x98\x80": "café 😀",
    b"\xed\xa0\x80": R,  # a lone surrogate
    b"\xed\xa0\x80x": R + "x",
    b"\xed\xbf\xbf\xed\xa0\x80": R + R,
    b"\xed\xa0": R,
    b"\xed\xa0x": R + "x",
    b"\xed\x9f\xbf": "\ud7ff",
    b"\xff\xfe": R + R,
    b"\xc0\x80": R + R,
    b"\xe0\x80\x80": R * 3,
    b"\xe2\x82": R,
    b"\xe2\x82x": R + "x",
    b"\xf0\x9f\x98": R,
    b"\xf4\x90\x80\x80": R * 4,
    b"\x80": R,
}


@pytest.mark.parametrize(("data", "expected"), JAVA.items(), ids=lambda v: repr(v))
def test_ill_formed_text_is_replaced_as_java_does(data: bytes, expected: str) -> None:
    assert java_text(data) == expected


@given(st.binary(max_size=30))
def test_any_bytes_are_text(data: bytes) -> None:
    assert bool(java_text(data).encode("utf-8")) == bool(data)


def test_paths_as_java_keeps_them() -> None:
    assert [java_path(p) for p in ("a//b/", "/", "./a", "a/../b")] == ["a/b", "/", "./a", "a/../b"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#\n#Sam Nov 21 \xe4\nversion=0\n", None),
        (" ! \x07\nversion=0\tx\n", None),
        ("#\ncluster.id=a\xda\n", 2),
        ("version=0\n\n\x00=1", 3),
    ],
)
def test_a_line_that_no_broker_writes(text: str, line: int | None) -> None:
    """Comments are anybody's."""
    assert unwritten_line(text) == line
