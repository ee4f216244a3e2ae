"""The broker of each line of logs that several brokers write to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from formats.broker_logs.line import WRITER, writers_named
from formats.broker_logs.table import every_table
from kctl.broker_logs import writers
from kctl.broker_logs.events import Event
from kctl.broker_logs.history.timeline import timeline
from kctl.broker_logs.merging import Marks, prepare, read_events
from kctl.broker_logs.sources import find_sources, only_brokers
from kctl.text_logs.blocks import BEFORE_ALL, NO_BROKER, Reading, blocks_of
from kctl.text_logs.opening import PEEKED
from kctl.text_logs.shapes import Shapes, writer_of
from tests.conftest import recording

SERVER = "kafka.server.KafkaServer"
STARTING = f"starting ({SERVER})"
MANAGER = "kafka.server.ReplicaManager"


def started(broker_id: int) -> str:
    return f"[KafkaServer id={broker_id}] started ({SERVER})"


def stopped(broker_id: int) -> str:
    return f"[KafkaServer id={broker_id}] shut down completed ({SERVER})"


def configured(broker_id: int, *, is_before: bool = False) -> str:
    """The configuration that a process tells once it has started; before, until 1.0."""
    more = "" if is_before else "\tpassword.encoder.secret = null\n"
    return f"KafkaConfig values: \n\tbroker.id = {broker_id}\n{more} (kafka.server.KafkaConfig)"


def configured_before(broker_id: int) -> str:
    return configured(broker_id, is_before=True)


def log(*texts: str) -> str:
    return "".join(f"[2026-11-21 13:00:{second:02d},000] INFO {text}\n" for second, text in enumerate(texts))


def events(folder: Path, *texts: str, below: str = "logs") -> list[Event]:
    path = folder / below / "server.log"
    path.parent.mkdir(parents=True)
    path.write_text(log(*texts))
    return list(read_events([str(folder)]))


@pytest.mark.parametrize(
    ("identity", "broker_id"),
    [
        ("[Broker id=2] x", 2),
        ("[Controller id=1 epoch=3] x", 1),
        ("[Controller id=1, targetBrokerId=2] x", 1),
        ("[KafkaServer id=1] x", 1),
        ("[ReplicaManager broker=0] x", 0),
        ("[Partition orders-7 broker=1] x", 1),
        ("Partition [orders,7] on broker 1: x", 1),
        ("[RaftManager id=3] x", 3),
        ("[RaftManager nodeId=3] x", 3),
        ("[QuorumController id=3] x", 3),
        ("[SocketServer listenerType=BROKER, nodeId=4] x", 4),
        ("[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] x", 2),
        ("[ReplicaFetcherManager on broker 2] x", 2),
        ("[Replica Manager on Broker 2]: x", 2),
        ("[Partition state machine on Controller 5]: x", 5),
        ("[data-plane Kafka Request Handler on Broker 1], x", 1),
        ("[Controller-1-to-broker-2-send-thread], x", 1),
        ("[broker-2-to-controller-heartbeat-channel-manager]: x", 2),
        ("[kafka-3-raft-io-thread]: x", 3),
        ("[ExpirationReaper-1-Produce]: x", 1),
        ("[GroupCoordinator 1]: x", 1),
        ("[Kafka Server 0], x", 0),
        ("[Topic Deletion Manager 0], x", 0),
        ("[ProducerId Manager 2]: x", 2),
        ("[Transaction Marker Channel Manager 2]: x", 2),
        ("[ReplicaFetcherThread-0-2]: x", None),
        ("[UnifiedLog partition=t-0, dir=/data/broker-1] x", None),
        ("[Consumer clientId=consumer-1, groupId=g] x", None),
        ("[raft-expiration-reaper]: x", None),
        ("[kafka-log-cleaner-thread-0]: x", None),
    ],
)
def test_who_writes_is_read_from_the_identity(identity: str, broker_id: int | None) -> None:
    found = WRITER.match(identity.encode())
    assert (int(next(filter(None, found.groups()))) if found else None) == broker_id


@pytest.mark.parametrize(
    "line",
    [
        b"2026-11-21 13:00:00,000 INFO Partition [orders,7] on broker 2: x (kafka.cluster.Partition)\n",
        b"2026-11-21 13:00:00,000 INFO [Broker id=2] x (state.change.logger)\n",
        b'{"message":"Partition [orders,7] on broker 2: x"}\n',
    ],
)
def test_writers_are_named_in_layouts_of_others_too(line: bytes) -> None:
    assert writers_named(line) == {2}
    assert not writers_named(line.replace(b"INFO", b"about").replace(b':"', b':"x'))


def test_lines_of_several_brokers_are_those_of_the_broker_that_each_names(tmp_path: Path) -> None:
    texts = [
        "[Broker id=1] x (state.change.logger)", "[RaftManager id=2] x (org.apache.kafka.raft.KafkaRaftClient)",
        "x (kafka.log.LogManager)", "[ReplicaManager broker=1] x (kafka.server.ReplicaManager)",
    ]  # fmt: skip
    assert [event.broker_id for event in events(tmp_path, *texts)] == [1, 2, None, 1]


def test_the_lines_of_a_folder_win_over_its_name(tmp_path: Path) -> None:
    texts = [started(0), "x (kafka.log.LogManager)"]
    assert [event.broker_id for event in events(tmp_path, *texts, below="kafka_1/logs")] == [0, 0]


def test_a_log_that_a_second_broker_writes_to_later_is_not_of_the_first(tmp_path: Path) -> None:
    texts = [f"[ReplicaManager broker=1] said {n:05999} ({MANAGER})" for n in range(50)]
    found = events(tmp_path, *texts, "x (kafka.log.LogManager)", started(2))
    assert [event.broker_id for event in found[-3:]] == [1, None, 2]


def test_a_start_takes_the_broker_that_its_thread_names_next(tmp_path: Path) -> None:
    texts = [STARTING, "Cluster ID = x (kafka.server.KafkaServer)", configured(1), started(1), STARTING, configured(0),
             started(0)]  # fmt: skip
    found = events(tmp_path, *texts)
    assert [event.broker_id for event in found if event.event == "U11"] == [1, 0]
    assert [event.broker_id for event in found][1] is None


def brokers_of_starts(folder: Path, *texts: str) -> list[int | None]:
    return [event.broker_id for event in events(folder, *texts) if event.event == "U11"]


def test_a_start_takes_the_broker_that_told_its_configuration_before(tmp_path: Path) -> None:
    texts = [
        configured_before(1),
        "x (kafka.A)",
        STARTING,
        configured_before(0),
        STARTING,
        started(1),
        started(0),
    ]
    assert brokers_of_starts(tmp_path, *texts) == [1, 0]


def test_a_start_is_of_none_where_two_brokers_told_their_configuration_before(tmp_path: Path) -> None:
    texts = [
        *(configured_before(2), configured_before(3), STARTING, STARTING, started(3), started(2)),
        *(stopped(2), configured_before(2), STARTING, started(2)),
    ]
    assert brokers_of_starts(tmp_path, *texts) == [None, None, 2]


def test_starts_of_none_leave_those_after_them_their_brokers(tmp_path: Path) -> None:
    """Broker 1 was killed before it had started."""
    texts = [
        started(1),
        configured_before(1),
        configured_before(2),
        STARTING,
        STARTING,
        started(2),
        configured_before(1),
        STARTING,
    ]
    assert brokers_of_starts(tmp_path, *texts) == [None, None, 1]


def test_a_start_is_not_of_the_broker_that_tells_its_configuration_again_right_before(tmp_path: Path) -> None:
    """It has started already, and tells it twice."""
    texts = [STARTING, configured(2), configured(2), STARTING, configured(4), started(2), started(4)]
    assert brokers_of_starts(tmp_path, *texts) == [2, 4]


def test_a_start_is_not_of_a_broker_that_registers_again(tmp_path: Path) -> None:
    registered = "Registered broker 1 at path /brokers/ids/1 with addresses: x (kafka.zk.KafkaZkClient)"
    texts = [started(1), STARTING, registered, "x (kafka.A)", started(2)]
    assert brokers_of_starts(tmp_path, *texts) == [2]


def test_a_start_whose_broker_a_later_line_contradicts_is_of_none(tmp_path: Path) -> None:
    """Broker 1 runs, and tells its configuration as it changes."""
    texts = [started(1), started(2), STARTING, configured(1), configured(2), started(2), STARTING, configured(2),
             started(2)]  # fmt: skip
    assert brokers_of_starts(tmp_path, *texts) == [None, 2]


def test_starts_are_of_none_until_each_that_overlaps_has_its_broker(tmp_path: Path) -> None:
    texts = [STARTING, STARTING, configured(1), STARTING, configured(2), configured(3), STARTING, configured(0),
             *map(started, (1, 2, 3, 0))]  # fmt: skip
    assert brokers_of_starts(tmp_path, *texts) == [None, None, None, 0]


def test_a_start_that_ended_without_its_broker_is_of_none(tmp_path: Path) -> None:
    texts = [
        started(1),
        started(2),
        STARTING,
        f"shut down completed ({SERVER})",
        STARTING,
        configured(2),
        started(2),
    ]
    assert brokers_of_starts(tmp_path, *texts) == [None, 2]


@pytest.mark.parametrize("then", [[STARTING, configured(2)], [STARTING]])
def test_what_fails_without_its_broker_is_of_none_where_several_start(
    tmp_path: Path, then: list[str]
) -> None:
    texts = [started(3), started(4), STARTING, configured(1), *then, f"shutting down ({SERVER})"]
    assert events(tmp_path, *texts)[-1].broker_id is None


def test_a_start_takes_the_broker_that_the_next_file_names(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "server.log.2026-11-21-12").write_text(log(started(1), started(2), STARTING))
    (logs / "server.log").write_text(log(configured(2), started(2)).replace(" 13:", " 14:"))
    assert [event.broker_id for event in read_events([str(tmp_path)])] == [1, 2, 2, 2, 2]


def test_a_broker_that_unregistered_earlier_is_not_what_stops_now(tmp_path: Path) -> None:
    texts = [started(1), started(2), "App info kafka.server for 1 unregistered (org.apache.kafka.common.utils.AppInfoParser)",
             f"[ReplicaManager broker=2] x ({MANAGER})", f"shut down completed ({SERVER})"]  # fmt: skip
    assert events(tmp_path, *texts)[-1].broker_id is None


def test_of_logs_of_several_brokers_beside_each_other_one_that_names_none_is_of_none(tmp_path: Path) -> None:
    for name, text in (("a", started(1)), ("b", started(2)), ("c", "x (kafka.log.LogManager)")):
        (tmp_path / f"{name}.out").write_text(log(text))
    found = find_sources([str(tmp_path / f"{name}.out") for name in "abc"])
    assert {Path(file.file).name: file.broker_id for file in found.files} == {
        "a.out": 1,
        "b.out": 2,
        "c.out": None,
    }


def test_starts_that_overlap_and_name_no_broker_have_none(tmp_path: Path) -> None:
    texts = [STARTING, STARTING, configured(0), configured(1), started(1), started(0)]
    found = events(tmp_path, *texts)
    assert [event.broker_id for event in found if event.event == "U11"] == [None, None]
    states = [(state.broker_id, state.state) for state in timeline(found).brokers]
    assert states == [(None, "starting"), (None, "starting"), (1, "up"), (0, "up")]


def test_starts_of_none_are_over_once_their_brokers_are_up(tmp_path: Path) -> None:
    """What runs a server that fails says so again without its broker, and that is no end of such a start."""
    texts = [STARTING, STARTING, configured(0), configured(1), started(1), started(0), stopped(0), STARTING, configured(0),
             f"[KafkaServer id=0] Fatal error during KafkaServer startup. Prepare to shutdown ({SERVER})",
             "Exiting Kafka due to fatal exception during startup. (kafka.Kafka$)"]  # fmt: skip
    states = [(state.broker_id, state.state) for state in timeline(events(tmp_path, *texts)).brokers]
    assert states[2:] == [(1, "up"), (0, "up"), (0, "down"), (0, "starting"), (0, "halted")]


def test_lives_of_brokers_in_one_log_are_told_apart(tmp_path: Path) -> None:
    texts = [STARTING, started(1), STARTING, started(2), stopped(1), STARTING, configured(1), started(1), STARTING,
             configured(2), started(2)]  # fmt: skip
    killed = [state for state in timeline(events(tmp_path, *texts)).brokers if state.state == "killed"]
    assert [(state.broker_id, state.time_ms // 1000 % 60) for state in killed] == [(2, 3)]


def test_one_broker_of_a_log_of_several_can_be_asked_for(tmp_path: Path) -> None:
    events(tmp_path, started(1), started(2), "x (kafka.log.LogManager)", stopped(1))
    sources = only_brokers(find_sources([str(tmp_path)], names_all=True), ["1"])
    assert [event.text for event in prepare(sources).events()] == [
        "[KafkaServer id=1] started", "[KafkaServer id=1] shut down completed",
    ]  # fmt: skip


def test_marks_of_lines_name_the_broker_of_each(tmp_path: Path) -> None:
    events(tmp_path, started(1), started(2), "x (kafka.log.LogManager)")
    merging = prepare(find_sources([str(tmp_path)]))
    text = b"".join(Marks(merging.sources).written(merging.released())).decode()
    assert [line.split("\t")[:2] for line in text.splitlines()] == [
        ["1", "logs/server.log"], ["2", "logs/server.log"], ["-", "logs/server.log"],
    ]  # fmt: skip


def test_a_broker_that_halts_as_its_disks_failed_is_the_one_whose_partitions_were_given_up(
    tmp_path: Path,
) -> None:
    """Where several brokers write to a log: the same thread says both, and the halt names no broker."""
    found = timeline(
        events(
            tmp_path,
            started(1),
            started(2),
            "[ReplicaManager broker=1] Broker 1 stopped fetcher for partitions t-0 and stopped moving logs for"
            f" partitions  because they are in the failed log directory /data. ({MANAGER})",
            "Stopping serving logs in dir /data (kafka.log.LogManager)",
            "[Partition t-1 broker=2] Expanding ISR from 2 to 2,3 (kafka.cluster.Partition)",
            "Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)",
            STARTING,
            configured(1),
            started(1),
        )
    ).brokers
    assert [(state.broker_id, state.state, state.how) for state in found] == [
        (1, "up", None), (2, "up", None), (1, "halted", "log_dir_failed"), (1, "starting", None), (1, "up", None),
    ]  # fmt: skip


def test_a_process_that_failed_before_it_had_its_id_is_that_of_the_broker_it_unregisters(
    tmp_path: Path,
) -> None:
    found = events(
        tmp_path,
        started(2),
        started(3),
        STARTING,
        f"Fatal error during KafkaServer startup. Prepare to shutdown ({SERVER})",
        "App info kafka.server for 1 unregistered (org.apache.kafka.common.utils.AppInfoParser)",
        f"shut down completed ({SERVER})",
        "App info kafka.server for 2 unregistered (org.apache.kafka.common.utils.AppInfoParser)",
        STARTING,
        configured(3),
    )
    assert [event.broker_id for event in found] == [2, 3, 1, 1, 1, 1, 2, 3, 3]


def test_a_copy_of_a_log_of_several_brokers_tells_each_start_once(tmp_path: Path) -> None:
    lines = log(STARTING, configured(1), started(1), STARTING, configured(2), started(2), stopped(1))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text(lines)
    (tmp_path / "logs" / "kafkaServer.out").write_text(lines)
    found = timeline(read_events([str(tmp_path)])).brokers
    assert [(state.broker_id, state.state) for state in found] == [
        (1, "starting"), (1, "up"), (2, "starting"), (2, "up"), (1, "down"),
    ]  # fmt: skip


def test_a_process_that_fails_before_it_has_its_id_is_the_only_one_that_starts(tmp_path: Path) -> None:
    fails = (
        f"Fatal error during KafkaServer startup. Prepare to shutdown ({SERVER})",
        f"shutting down ({SERVER})",
        f"shut down completed ({SERVER})",
        "Exiting Kafka. (kafka.server.KafkaServerStartable)",
        f"shutting down ({SERVER})",
    )
    found = timeline(
        events(
            tmp_path,
            started(2),
            started(3),
            configured_before(1),
            STARTING,
            *fails,
            configured_before(1),
            STARTING,
            started(1),
        )
    ).brokers
    assert [(state.broker_id, state.state) for state in found] == [
        (2, "up"), (3, "up"), (1, "starting"), (1, "halted"), (1, "down"), (1, "starting"), (1, "up"),
    ]  # fmt: skip


def test_every_sentence_that_says_more_than_who_wrote_it_is_told_by_how_it_begins() -> None:
    for name in writers.LOOKED_FOR:
        printed = (
            re.sub(r"«.*»", "", re.sub(r"\{\w+:\w+\}", "1", every_table().by_id[name].pattern)) + " (kafka.X)"
        )
        assert writers.BEGINS.match(printed[: writers.NEEDED].encode()), name
    for text in (
        writers.CONFIGURATION,
        b"Registered broker 1 at",
        b"Property broker.id is",
        b"App info kafka",
    ):
        assert writers.BEGINS.match(text[: writers.NEEDED])


@pytest.mark.parametrize("case", ["life-0.8.2", "life-0.10.2", "unclean-1.1", "life-2.8", "life-3.9"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_how_a_line_begins_tells_its_writer_as_the_whole_line_does(
    tmp_path: Path, case: str, end: str
) -> None:
    """Also of short lines, the last of a file, and lines without a level."""
    logs = sorted(recording(f"incidents/{case}").glob("broker-*/logs/*.log"))
    text = "".join(path.read_text() for path in logs)
    text += log("x", "[KafkaServer id=3] ", "[Broker id=-1] of none", "Controller 4 epoch 5 x (a.B)")
    for thread in ("heartbeat-channel-manager", "directory-assignments-channel-manager"):
        name = f"[broker-2-to-controller-{thread}]: "
        text += log(
            f"{name}Recorded new KRaft controller (a.B)", f"{name}Starting (a.B)", f"{name[:-3]}", name
        )
    text += "[2026-11-21 13:00:00,000] Broker 7 x\n[2026-11-21 13:00:00,000]INFO [KafkaServer id=1] no more\n"
    path = tmp_path / "server.log"
    path.write_bytes(("torn\n" + text).replace("\n", end).encode())
    named, known = 0, writers.KnownLines()
    (source,) = find_sources([str(path)]).sources
    for block in blocks_of(source, 0, None, Reading(), chunk=50_000):
        shapes = Shapes().parse(block)
        brokers, others = writers._named(block, known)
        assert block.times[0] != BEFORE_ALL or 0 in others
        for index, shape in enumerate(shapes):
            told = known.shapes.at(block, index)
            assert told.id == (shape.id if shape.id in writers.LOOKED_FOR else None), block.record(index)
            assert (told.logger, told.writer) == (shape.logger, shape.writer)
        for index in set(range(len(shapes))) - set(others):
            assert shapes[index].is_record and shapes[index].id not in writers.LOOKED_FOR
            own = writer_of(shapes[index], block, index)
            assert brokers[index] == (NO_BROKER if own is None else own), block.record(index)
            named += own is not None
    assert named > len(text) / 2000


def test_other_logs_beside_those_of_several_brokers_are_of_none(tmp_path: Path) -> None:
    (tmp_path / "controller.log").write_text(
        log("[Controller id=1 epoch=3] x (kafka.controller.KafkaController)")
    )
    (tmp_path / "server.log").write_text(log(started(1), started(2)))
    (tmp_path / "more.log").write_text(log(f"x ({MANAGER})"))
    assert {event.broker_id for event in read_events([str(tmp_path)]) if "more" in event.file} == {None}


def test_of_a_log_of_several_brokers_each_can_be_asked_for(tmp_path: Path) -> None:
    """Also the one that a later file names alone, or the end of a long one."""
    long = log(started(1), started(2)) + log(*[f"x ({MANAGER})"] * 60) * 100 + log(started(4))
    assert len(long) > PEEKED
    (tmp_path / "controller.log").write_text(
        log("[Controller id=3 epoch=3] x (kafka.controller.KafkaController)")
    )
    (tmp_path / "server.log").write_text(long)
    (tmp_path / "state-change.log").write_text(log("[Broker id=5] x (state.change.logger)"))
    for broker_id in (1, 2, 3, 4, 5):
        sources = only_brokers(find_sources([str(tmp_path)], names_all=True), [str(broker_id)])
        assert {event.broker_id for event in prepare(sources).events()} == {broker_id}


def test_a_copy_of_a_log_that_several_write_to_leaves_nothing_to_tell(tmp_path: Path) -> None:
    texts = [
        started(0),
        started(1),
        *(f"[ReplicaManager broker={n % 2}] said {n} ({MANAGER})" for n in range(9)),
    ]
    for name in ("server.log", "server.log.2026-11-21-13"):
        (tmp_path / name).write_text(log(*texts))
    said = list(read_events([str(tmp_path)]))
    assert [event.broker_id for event in said] == [0, 1, *(n % 2 for n in range(9))]
