"""What `make suites` calls wrong: shown on folders made for it, without Kafka's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from tests.conftest import kctl
from tests.suites.invalid import Reason, reason_of
from tests.suites.judging import Judged, first_difference, is_dumped
from tests.suites.running import CLASSES, WITHOUT_FILES, Kept

LOG = f"{0:020d}.log"


class Answers:
    """A tool that prints what kctl prints, or something else."""

    def __init__(self, change: Callable[[bytes], bytes] = lambda text: text, answer: str = "ok") -> None:
        self.change, self.answer = change, answer

    def dump(self, *arguments: str) -> tuple[str, bytes]:
        flags = ["--records"] if "--print-data-log" in arguments else []
        said = kctl("segment", "dump", "--format", "kafka", *flags, arguments[-1]).out
        return self.answer, self.change(said)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    below = tmp_path / "kafka-1" / "t-0"
    below.mkdir(parents=True)
    (below / LOG).write_bytes(write_batch([Record(0, 1_000, b"k", b"v")]))
    for suffix in (".index", ".timeindex"):
        (below / f"{0:020d}{suffix}").write_bytes(b"")
    (below / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (below / "00000000000000000000.log.deleted").write_bytes(b"")
    return tmp_path


def judged(folder: Path, tool: Answers, test: str = "kafka.log.LogTest.testIt") -> Judged:
    result = Judged()
    result.folder(Kept(folder, test), tool)  # type: ignore[arg-type]
    return result


def test_a_sound_folder_with_the_same_lines_is_right(folder: Path) -> None:
    result = judged(folder, Answers())
    assert (result.folders, result.files, result.dumps, result.identical, result.wrong) == (1, 3, 4, 4, [])


def test_the_carriage_returns_of_a_payload_are_line_ends(folder: Path) -> None:
    path = folder / "kafka-1" / "t-0" / LOG
    path.write_bytes(write_batch([Record(0, 1_000, b"k", b"v\r\nw\rx")]))

    def as_kafka(text: bytes) -> bytes:
        return text.replace(b"v\nw\nx", b"v\r\nw\rx")

    assert b"v\nw\nx" in kctl("segment", "dump", "--format", "kafka", "--records", path).out
    assert judged(folder, Answers(as_kafka)).identical == 4


def test_another_line_is_wrong(folder: Path) -> None:
    result = judged(folder, Answers(lambda text: text.replace(b"isvalid: true", b"isvalid: false")))
    assert (result.identical, len(result.wrong)) == (2, 2)
    assert "line 3" in result.wrong[0]


def test_where_the_tool_throws_what_it_had_printed_counts(folder: Path) -> None:
    cut = Answers(lambda text: text[:-5], "java.lang.IllegalStateException")
    result = judged(folder, cut)
    assert (result.thrown, result.identical, result.wrong) == (4, 0, [])
    assert judged(folder, Answers(lambda text: b"no\n" + text, "java.lang.IllegalStateException")).wrong


def test_an_error_is_wrong_unless_the_table_has_a_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kafka-1" / "t-0" / LOG
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    (text,) = judged(folder, Answers()).wrong
    assert "batch-crc-mismatch" in text
    row = Reason("LogTest.testIt", frozenset({"batch-crc-mismatch"}), "the test changes a byte")
    monkeypatch.setattr("tests.suites.invalid.TABLE", (row,))
    result = judged(folder, Answers())
    assert (result.wrong, result.explained[row]) == ([], 1)
    assert judged(folder, Answers(), "kafka.log.LogTest.testOther").wrong


def test_what_fails_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("tests.suites.judging.verify", fail)
    (text,) = judged(folder, Answers()).wrong
    assert "RuntimeError: no" in text


def test_a_line_that_one_side_lacks() -> None:
    assert first_difference(b"a\nb\n", b"a\n") == "2 lines, Kafka 1: [b'b']"
    assert first_difference(b"a\n", b"a\nc\n") == "1 lines, Kafka 2: [b'c']"


def test_which_classes_run() -> None:
    names = [
        "kafka/log/UnifiedLogTest.class",
        "org/apache/kafka/storage/internals/log/LogCleanerManagerTest.class",
        "kafka/raft/KafkaMetadataLogTest.class",
    ]
    others = [
        "kafka/log/remote/RemoteLogManagerTest.class",
        "kafka/log/LogTestUtils.class",
        "kafka/zk/KafkaZkClientTest.class",
    ]
    assert [name for name in (*names, *others) if CLASSES.fullmatch(name)] == names
    assert WITHOUT_FILES.search("/kafka/log/AbstractLogCleanerIntegrationTest.class")
    assert not any(WITHOUT_FILES.search(f"/{name}") for name in names)


def test_only_files_of_a_log_are_dumped(folder: Path) -> None:
    below = folder / "kafka-1" / "t-0"
    assert sorted(path.suffix for path in below.iterdir() if is_dumped(path)) == [
        ".index",
        ".log",
        ".timeindex",
    ]
    assert reason_of("kafka.log.NoTest.test", "no-code") is None
