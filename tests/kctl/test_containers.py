"""What `docker compose logs` and `kubectl logs --prefix` print: several containers in one stream, each a log of its own."""

from __future__ import annotations

import errno
import io
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from kctl.broker_logs import sources as sources_module
from kctl.broker_logs.events import Event
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import find_sources
from kctl.errors import KctlError
from kctl.text_logs import containers, opening
from tests.conftest import rows

KAFKA_1 = """\
[2026-11-21 13:00:00,001] INFO [BrokerServer id=11] Transition from SHUTDOWN to STARTING (kafka.server.BrokerServer)
[2026-11-21 13:00:03,000] ERROR Error while handling event (kafka.server.KafkaRaftServer)
java.lang.IllegalStateException: it went wrong
\tat kafka.server.KafkaRaftServer.run(KafkaRaftServer.scala:1)
[2026-11-21 13:00:05,000] INFO Kafka version: 4.1.0 (org.apache.kafka.common.utils.AppInfoParser)
"""
KAFKA_2 = """\
[2026-11-21 13:00:01,000] INFO [BrokerServer id=12] Transition from SHUTDOWN to STARTING (kafka.server.BrokerServer)
[2026-11-21 13:00:02,000] INFO Kafka version: 4.1.0 (org.apache.kafka.common.utils.AppInfoParser)
[2026-11-21 13:00:04,000] INFO Kafka commitId: 13f70256db3c994c (org.apache.kafka.common.utils.AppInfoParser)
"""
DATABASE = "ready\nto accept\nconnections\n"


def printed(container: str, text: str, mark: str = "{}  | ") -> list[str]:
    return [mark.format(container) + line for line in text.splitlines(keepends=True)]


def taking_turns(*streams: list[str]) -> str:
    """A line of each in turn, as containers print them that run at the same time."""
    longest = max(map(len, streams))
    return "".join(stream[n] for n in range(longest) for stream in streams if n < len(stream))


def events_of(path: Path) -> list[Event]:
    return list(prepare(find_sources([str(path)])).events())


ONE, TWO = printed("kafka-1", KAFKA_1), printed("kafka-2", KAFKA_2)
MARKS = {"compose": "{}  | ", "in colours": "\x1b[36m{}  | \x1b[0m", "kubectl --prefix": "[pod/{}/kafka] "}


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_each_container_is_a_log_of_its_own(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "compose.log"
    path.write_text(taking_turns(printed("kafka-1", KAFKA_1, mark), printed("kafka-2", KAFKA_2, mark)))
    events = events_of(path)
    assert [event.broker_id for event in events] == [11, 12, 12, 11, 12, 11]
    assert [event.line for event in events] == [1, 2, 4, 3, 6, 8]
    assert events[3].text.endswith(
        "java.lang.IllegalStateException: it went wrong\n\tat kafka.server.KafkaRaftServer.run(KafkaRaftServer.scala:1)"
    )


def test_containers_printed_one_after_the_other_are_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text("Attaching to kafka-1, kafka-2\n" + "".join(TWO + ONE) + "kafka-1 exited with code 137\n")
    events = events_of(path)
    seconds = [event.time[18:19] for event in events if event.time and event.shape.is_record]
    assert seconds == list("012345")
    assert "exited with code 137" in events[-1].text


def test_a_container_that_prints_late_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text("".join(ONE) + ONE[-1] * 5000 + "".join(TWO))
    assert {event.broker_id for event in events_of(path)} == {11, 12}


def test_standard_input(tmp_path: Path) -> None:
    ran = rows("state-log", "merge", "-", stdin=taking_turns(ONE, TWO).encode())
    assert [(row["broker_id"], row["file"], row["line"]) for row in ran.of("event")] == [
        (11, "-", 1), (12, "-", 2), (12, "-", 4), (11, "-", 3), (12, "-", 6), (11, "-", 8),
    ]  # fmt: skip


def test_a_container_whose_lines_nobody_knows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text(taking_turns(ONE, printed("database-1", DATABASE), TWO))
    sources = find_sources([str(path)])
    (finding,) = [f for f in sources.findings if f.code == "log-container-unknown"]
    assert "database-1" in finding.message
    assert [source.broker_id for source in sources.sources] == [11, 12]


@pytest.mark.slow
def test_the_lines_of_countless_names_are_read_and_given_to_no_broker(tmp_path: Path) -> None:
    path = tmp_path / "compose.log"
    path.write_text(
        "".join(f"kafka-{n}  | [2026-11-21 13:00:00,001] INFO x (kafka.X)\n" for n in range(5000))
    )
    brokers = Counter(event.broker_id for event in prepare(find_sources([str(path)])).events())
    assert brokers == {None: 5000}


def test_a_host_that_begins_to_print_late_is_not_the_one_before_it(tmp_path: Path) -> None:
    """The lines of the first fill more than what is looked at of a file first; those of the other name no broker."""
    late = "Nov 21 13:00:07 kafka-12 kafka[1]: [2026-11-21 13:00:07,000] INFO x (kafka.X)\n"
    path = tmp_path / "messages"
    path.write_text("".join(printed("Nov 21 13:00:00 kafka-11 kafka", KAFKA_1, "{}[1]: ")) * 700 + late)
    assert path.stat().st_size > opening.PEEKED
    events = events_of(path)
    assert [event.broker_id for event in events][-1] == 12 and {e.broker_id for e in events[:-1]} == {11}
    assert events[-1].line == 700 * 5 + 1


@pytest.mark.slow
def test_a_file_of_several_is_taken_apart_once_and_where_the_disk_is_full_read_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "compose.log"
    path.write_text("Attaching to kafka\n" + taking_turns(ONE * 800, TWO * 800))
    files = list(find_sources([str(path)]).files)
    kept = [(event.broker_id, event.line, event.text) for event in events_of(path)]
    assert len(kept) == 4801 and all(file.part for file in files)
    assert [file.part for file in find_sources([str(path)]).files] == [file.part for file in files]
    monkeypatch.setattr(containers, "lack_of_room", lambda folder: OSError(errno.ENOSPC, "full"))
    monkeypatch.setattr(containers, "SMALL", 0)
    monkeypatch.setattr(sources_module, "_parts", {})
    assert not any(file.part for file in find_sources([str(path)]).files)
    assert [(event.broker_id, event.line, event.text) for event in events_of(path)] == kept


def test_standard_input_is_kept_on_disk_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much comes: memory holds one piece."""
    alive: list[int] = []

    class Stream:
        left = 40

        def read(self, size: int) -> bytes:
            alive.append(size)
            self.left -= 1
            return b"x" * size if self.left >= 0 else b""

    monkeypatch.setattr(opening.sys, "stdin", SimpleNamespace(buffer=Stream()))
    path = opening.spooled_stdin()
    assert os.path.getsize(path) == 40 * opening.CHUNK
    assert set(alive) == {opening.CHUNK} and len(alive) == 41


@pytest.mark.parametrize("why", ["little is left", "the disk is full"])
def test_standard_input_that_does_not_fit_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str
) -> None:
    left = [opening.ROOM + 1, opening.ROOM + 1, opening.ROOM - 1 if why == "little is left" else 0]

    def usage(_: object) -> SimpleNamespace:
        free = left.pop(0)
        if not free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return SimpleNamespace(free=free, total=100 * opening.ROOM)

    monkeypatch.setattr(opening, "SMALL", 0)
    monkeypatch.setattr("shutil.disk_usage", usage)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(opening.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * (3 * opening.CHUNK))))
    with pytest.raises(KctlError, match=r"standard input.*after 2,097,152 bytes") as raised:
        opening.spooled_stdin()
    assert "TMPDIR" in raised.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_little_standard_input_is_read_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A full disk is a reason to look at logs."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1, total=100 * opening.ROOM))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(opening.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * opening.CHUNK)))
    assert os.path.getsize(opening.spooled_stdin()) == opening.CHUNK
