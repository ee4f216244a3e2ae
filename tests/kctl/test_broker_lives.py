"""Lives of brokers: starts, stops and kills as hand-made logs tell them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.broker_logs.history.lives import BrokerState
from kctl.broker_logs.history.timeline import timeline
from kctl.broker_logs.merging import read_events

SERVER = "kafka.server.KafkaServer"
FIRST = "Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jControllerRegistration$)"
SIGNALS = "Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
STARTING = f"starting ({SERVER})"
STARTED = f"[KafkaServer id=1] started ({SERVER})"
WORK = "[Partition t-0 broker=1] Log loaded for partition t-0 with initial high watermark 5 (kafka.cluster.Partition)"
STOPPING = f"[KafkaServer id=1] shutting down ({SERVER})"
STOPPED = f"[KafkaServer id=1] shut down completed ({SERVER})"
STARTUP_FAILED = f"[KafkaServer id=1] Fatal error during KafkaServer startup. Prepare to shutdown ({SERVER})"
LOCKED = "org.apache.kafka.common.KafkaException: Failed to acquire lock on file .lock in /data."
EXIT = "Exiting Kafka. (kafka.server.KafkaServerStartable)"
CONTROLLER_STARTS = "[ControllerServer id=1] Starting controller (kafka.server.ControllerServer)"
BROKER_STARTS = "[BrokerServer id=1] Starting broker (kafka.server.BrokerServer)"
SHARED = "[SharedServer id=1] Starting SharedServer (kafka.server.SharedServer)"
BROKER = "kafka.server.BrokerServer"
UNFENCED = (
    "[BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING. "
    "(kafka.server.BrokerLifecycleManager)"
)
SIGTERM = "Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.LoggingSignalHandler)"


def log(*lines: tuple[int, str] | str) -> str:
    """Lines of a log, each with its second; a text alone follows the line before it, as a stack trace does."""
    return "".join(
        f"{line}\n"
        if isinstance(line, str)
        else f"[2026-11-21 13:{line[0] // 60:02d}:{line[0] % 60:02d},000] "
        f"{'ERROR' if 'atal' in line[1] or 'Exit' in line[1] else 'INFO'} {line[1]}\n"
        for line in lines
    )


def lives(folder: Path, *parts: str, **others: str) -> list[BrokerState]:
    """The states that the parts of a server.log say, the first part the oldest."""
    logs = folder / "broker-1" / "logs"
    logs.mkdir(parents=True)
    for number, text in enumerate(parts):
        suffix = f".2026-11-21-{10 + number}" if number + 1 < len(parts) else ""
        (logs / f"server.log{suffix}").write_text(text)
    for name, text in others.items():
        (logs / f"{name.replace('_', '-')}.log").write_text(text)
    return timeline(read_events([str(folder)])).brokers


def told(states: list[BrokerState]) -> list[tuple[int, str, str | None]]:
    return [(state.time_ms // 1000 % 3600 - 13 * 3600 % 3600, state.state, state.how) for state in states]


def test_a_start_that_is_the_first_record_of_a_file_is_a_start(tmp_path: Path) -> None:
    found = lives(tmp_path, log((1, STARTING), (3, STARTED), (9, WORK)), log((40, STARTING), (42, STARTED)))
    assert told(found) == [
        (1, "starting", None), (3, "up", None), (9, "killed", "no_shutdown"), (40, "starting", None), (42, "up", None),
    ]  # fmt: skip


@pytest.mark.parametrize("printed", [(), ((22, SIGNALS),)])
def test_a_process_that_printed_its_first_lines_hides_no_kill(
    tmp_path: Path, printed: tuple[tuple[int, str], ...]
) -> None:
    """It was killed before it said that it starts: the one before it had ended by then."""
    server = log(
        (1, STARTING), (3, STARTED), (9, WORK), (20, FIRST), *printed, (30, FIRST), (31, STARTING), (35, STARTED)
    )  # fmt: skip
    killed = lives(tmp_path, server)[2]
    assert (killed.state, killed.time_ms // 1000 % 60, killed.until_ms) == (
        "killed",
        9,
        killed.time_ms + 11_000,
    )


def test_a_kill_lies_between_the_last_line_of_a_process_and_the_first_of_the_next(tmp_path: Path) -> None:
    """The lines of a start may be seconds apart, so that no pause stands right before `starting`."""
    server = log(
        (1, STARTING), (3, STARTED), (9, WORK), (30, FIRST), (34, SIGNALS),
        (38, STARTING), (41, STARTED),
    )  # fmt: skip
    killed = lives(tmp_path, server)[2]
    assert (killed.state, killed.time_ms // 1000 % 60, killed.until_ms) == (
        "killed",
        9,
        killed.time_ms + 21_000,
    )
    assert [(proof["line"], proof["file"]) for proof in killed.proofs] == [
        (6, "broker-1/logs/server.log"), (3, "broker-1/logs/server.log"),
    ]  # fmt: skip


def test_the_last_line_of_a_process_may_be_in_another_log(tmp_path: Path) -> None:
    server = log((1, STARTING), (3, STARTED), (9, WORK), (30, FIRST), (31, STARTING))
    changes = log((20, "[Broker id=1] Add 1 partitions and deleted 0 partitions from metadata cache in response to "
                       "UpdateMetadata request sent by controller 1 epoch 1 with correlation id 2 (state.change.logger)"),
                  (21, "[Broker id=1] Stopped fetchers as part of become-follower for 1 partitions (state.change.logger)"),
                  (22, "[Controller id=1 epoch=1] Changed partition t-0 state from NewPartition to OnlinePartition with "
                       "state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), zkVersion=0) (state.change.logger)"))  # fmt: skip
    killed = [state for state in lives(tmp_path, server, state_change=changes) if state.state == "killed"]
    assert [state.time_ms // 1000 % 60 for state in killed] == [22]


def test_a_process_killed_before_it_had_started_is_told(tmp_path: Path) -> None:
    server = log((1, FIRST), (2, CONTROLLER_STARTS), (4, BROKER_STARTS), (20, FIRST), (21, CONTROLLER_STARTS),
                 (23, BROKER_STARTS))  # fmt: skip
    assert told(lives(tmp_path, server)) == [
        (4, "starting", None), (4, "killed", "no_shutdown"), (23, "starting", None),
    ]  # fmt: skip


def test_a_broker_without_a_controller_begins_with_the_first_line_of_its_process(tmp_path: Path) -> None:
    """It reads the metadata log, for seconds, before it says that the broker starts."""
    raft = "[RaftManager id=1] Reading KRaft snapshot and log as part of the initialization (org.apache.kafka.raft.KafkaRaftClient)"
    work = [(32 + number // 4, raft) for number in range(20)]
    server = log((1, FIRST), (2, SHARED), (3, BROKER_STARTS), (5, UNFENCED), (9, WORK), (30, FIRST), (31, SIGNALS),
                 (31, SHARED), *work, (40, BROKER_STARTS))  # fmt: skip
    states = lives(tmp_path, server)
    assert told(states) == [
        (3, "starting", None), (5, "up", None), (9, "killed", "no_shutdown"), (40, "starting", None),
    ]  # fmt: skip
    assert [state.until_ms // 1000 % 60 for state in states if state.until_ms] == [30]


def test_a_controller_that_stopped_in_order_was_not_killed(tmp_path: Path) -> None:
    """A process that has no broker: it never says that one has started."""
    stops = "[ControllerServer id=1] shutting down (kafka.server.ControllerServer)"
    server = log((1, FIRST), (2, CONTROLLER_STARTS), (3, SHARED), (20, SIGTERM), (21, stops), (30, FIRST),
                 (31, CONTROLLER_STARTS), (32, SHARED), (50, FIRST), (51, CONTROLLER_STARTS))  # fmt: skip
    assert told(lives(tmp_path, server)) == [(32, "killed", "no_shutdown")]


def test_a_process_whose_controller_stops_first_goes_on_to_start_its_broker(tmp_path: Path) -> None:
    """Told to stop as it started; the process after it says each of its starts once."""
    stops = "[ControllerServer id=1] shutting down (kafka.server.ControllerServer)"
    server = log((1, FIRST), (2, CONTROLLER_STARTS), (3, SHARED), (4, SIGTERM), (5, stops), (6, BROKER_STARTS), (7, WORK),
                 (30, FIRST), (31, CONTROLLER_STARTS), (32, SHARED), (35, BROKER_STARTS))  # fmt: skip
    assert told(lives(tmp_path, server)) == [
        (6, "starting", None), (7, "halted", "signal_in_startup"), (35, "starting", None),
    ]  # fmt: skip


def test_a_process_told_to_stop_before_it_had_started_was_not_killed(tmp_path: Path) -> None:
    server = log((1, FIRST), (2, CONTROLLER_STARTS), (3, SIGTERM), (4, BROKER_STARTS), (5, WORK), (20, FIRST),
                 (21, CONTROLLER_STARTS), (23, BROKER_STARTS))  # fmt: skip
    assert told(lives(tmp_path, server)) == [
        (4, "starting", None), (5, "halted", "signal_in_startup"), (23, "starting", None),
    ]  # fmt: skip


@pytest.mark.parametrize("again", [STOPPING, STOPPED, "Halting Kafka. (kafka.Kafka$)"])
def test_what_the_hook_of_a_stopped_process_prints_is_the_same_stop(tmp_path: Path, again: str) -> None:
    server = log(
        (1, STARTING), (3, STARTED), (9, STOPPING), (10, STOPPED), (10, EXIT), (11, again), (30, STARTING)
    )
    assert told(lives(tmp_path, server)) == [
        (1, "starting", None), (3, "up", None), (9, "stopping", None), (10, "down", None), (30, "starting", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "trace", "how"),
    [
        (STARTUP_FAILED, "java.lang.RuntimeException: no", "fatal_error_in_startup"),
        (STARTUP_FAILED, "java.lang.OutOfMemoryError: Java heap space", "out_of_memory"),
        (STARTUP_FAILED, LOCKED, "log_dir_locked"),
        (STARTUP_FAILED, "Caused by: java.net.BindException: Address already in use", "port_taken"),
        ("Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)", "", "log_dir_failed"),
        ("[BrokerServer id=1] Fatal error during broker startup. Prepare to shutdown (kafka.server.BrokerServer)",
         "org.apache.kafka.common.KafkaException: no", "fatal_error_in_startup"),
    ],
)  # fmt: skip
def test_a_process_that_ends_by_itself_says_how_and_was_not_killed(
    tmp_path: Path, line: str, trace: str, how: str
) -> None:
    server = log((1, STARTING), (3, line), trace, (4, STOPPING), (30, STARTING), (32, STARTED))
    found = lives(tmp_path, server)
    assert told(found) == [
        (1, "starting", None),
        (3, "halted", how),
        (30, "starting", None),
        (32, "up", None),
    ]
    assert found[1].proofs[0]["line"] == 2


def test_a_second_process_that_never_became_the_broker_ends_no_life(tmp_path: Path) -> None:
    server = log(
        (1, STARTING), (3, STARTED), (9, FIRST), (10, STARTING), (11, STARTUP_FAILED), LOCKED, (11, STOPPING),
        (12, STOPPED), (12, EXIT), (20, WORK), (30, STOPPING), (31, STOPPED), (50, STARTING),
    )  # fmt: skip
    assert [state for _, state, _ in told(lives(tmp_path, server))] == [
        "starting", "up", "starting", "halted", "down", "stopping", "down", "starting",
    ]  # fmt: skip


def test_a_process_that_fails_before_it_says_that_it_starts_is_told(tmp_path: Path) -> None:
    fails = "Exiting Kafka due to fatal exception (kafka.Kafka$)"
    server = log(
        (1, STARTING), (3, STARTED), (9, STOPPING), (10, STOPPED), (20, FIRST), (21, fails), "bad config"
    )
    assert told(lives(tmp_path, server))[-1] == (21, "halted", "fatal_error_before_start")


def test_a_copy_that_ends_while_a_broker_runs_is_no_kill(tmp_path: Path) -> None:
    assert [state for _, state, _ in told(lives(tmp_path, log((1, STARTING), (3, STARTED), (9, WORK))))] == [
        "starting", "up",
    ]  # fmt: skip


def test_a_second_process_that_starts_while_the_first_still_does_was_no_kill(tmp_path: Path) -> None:
    """The first says that it has started after the second began, which then finds the directory locked."""
    found = lives(
        tmp_path,
        log((1, STARTING), (5, FIRST), (6, STARTING), (7, STARTED), (8, STARTUP_FAILED), LOCKED, (9, STOPPED),
            (10, STOPPING), (20, STOPPING), (25, STOPPED), (40, STARTING), (42, STARTED)),
    )  # fmt: skip
    assert [state.state for state in found if state.state == "killed"] == []
    assert ("halted", "log_dir_locked") in [(state.state, state.how) for state in found]


def test_a_second_process_that_fails_without_its_id_ends_no_life(tmp_path: Path) -> None:
    """KRaft: two nodes write to the folder, so that the fault is of the one that starts; it fails twice so."""
    fault = "Encountered fatal fault: caught exception (org.apache.kafka.server.fault.ProcessTerminatingFaultHandler)"
    taken = "Caused by: java.net.BindException: Address already in use"
    other = BROKER_STARTS.replace("id=1", "id=2"), UNFENCED.replace("id=1", "id=2")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text(
        log((1, BROKER_STARTS), (2, other[0]), (3, UNFENCED), (4, other[1]), (200, CONTROLLER_STARTS), (201, fault), taken,
            (400, CONTROLLER_STARTS), (401, fault), taken, (500, f"[BrokerServer id=1] shutting down ({BROKER})"),
            (501, f"[BrokerServer id=1] shut down completed ({BROKER})"))
    )  # fmt: skip
    found = timeline(read_events([str(tmp_path)])).brokers
    assert [(state.broker_id, state.state, state.how) for state in found] == [
        (1, "starting", None), (2, "starting", None), (1, "up", None), (2, "up", None),
        (None, "halted", "port_taken"), (None, "halted", "port_taken"), (1, "stopping", None), (1, "down", None),
    ]  # fmt: skip


def test_what_fails_as_a_broker_stops_was_not_held_by_the_process_before_it(tmp_path: Path) -> None:
    """Only a process that never became the broker fails for want of what another one, which still runs, holds."""
    failed = f"[KafkaServer id=1] Fatal error during KafkaServer shutdown. ({SERVER})"
    trace = "org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists"
    text = log(
        (0, FIRST), (1, STARTING), (2, STARTED), (9, WORK), (30, FIRST), (31, STARTING), (32, STARTED), (50, failed), trace
    )  # fmt: skip
    states = told(lives(tmp_path, text))
    assert ("killed", "no_shutdown") in [state[1:] for state in states]
    assert states[-1][1:] == ("halted", "broker_id_taken")


def test_what_runs_the_server_says_again_that_it_failed_and_ends_no_other_life(tmp_path: Path) -> None:
    again = "Fatal error during KafkaServerStartable startup. Prepare to shutdown (kafka.server.KafkaServerStartable)"
    taken = (
        "kafka.common.KafkaException: Socket server failed to bind to 0.0.0.0:9092: Address already in use."
    )
    found = lives(
        tmp_path,
        log((1, STARTING), (3, STARTED), (20, STARTING), (21, STARTUP_FAILED), taken, (22, STOPPED), (23, again),
            taken, (50, STARTING), (52, STARTED)),
    )  # fmt: skip
    assert [(state.state, state.how) for state in found] == [
        ("starting", None), ("up", None), ("starting", None), ("halted", "port_taken"), ("down", None),
        ("killed", "no_shutdown"), ("starting", None), ("up", None),
    ]  # fmt: skip


def test_what_the_hook_of_a_process_that_failed_prints_stops_no_other_process(tmp_path: Path) -> None:
    taken = "org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists"
    found = lives(
        tmp_path,
        log((1, STARTING), (3, STARTED), (9, WORK), (20, STARTING), (21, STARTUP_FAILED), taken, (22, STOPPED),
            (23, EXIT), (24, STOPPING), (50, STARTING), (52, STARTED)),
    )  # fmt: skip
    assert [(state.state, state.how) for state in found] == [
        ("starting", None), ("up", None), ("starting", None), ("halted", "broker_id_taken"), ("down", None),
        ("killed", "no_shutdown"), ("starting", None), ("up", None),
    ]  # fmt: skip


def test_what_runs_a_second_process_ends_no_first_one_that_still_starts(tmp_path: Path) -> None:
    """The first never said that it has started; its registration outlives it while the second starts."""
    taken = "org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists"
    found = lives(
        tmp_path,
        log((1, STARTING), (9, WORK), (20, STARTING), (21, STARTUP_FAILED), taken, (21, STOPPING), (22, STOPPED),
            (22, EXIT), (22, STOPPING), (50, STARTING), (52, STARTED)),
    )  # fmt: skip
    assert told(found)[1:] == [
        (9, "killed", "no_shutdown"), (20, "starting", None), (21, "halted", "broker_id_taken"), (22, "down", None),
        (50, "starting", None), (52, "up", None),
    ]  # fmt: skip


def test_a_process_is_killed_after_what_it_printed_last_not_after_the_lines_of_another(
    tmp_path: Path,
) -> None:
    taken = "org.apache.zookeeper.KeeperException$NodeExistsException: KeeperErrorCode = NodeExists"
    second = (20, STARTING), (21, STARTUP_FAILED), taken, (22, STOPPED), (22, EXIT), (22, STOPPING)
    found = lives(tmp_path / "a", log((1, STARTING), (3, STARTED), (9, WORK), *second, (50, STARTING)))
    killed = next(state for state in found if state.state == "killed")
    assert (killed.time_ms // 1000 % 60, killed.until_ms) == (9, killed.time_ms + 41_000)
    found = lives(
        tmp_path / "b", log((1, STARTING), (3, STARTED), (9, WORK), *second, (40, WORK), (50, STARTING))
    )
    killed = next(state for state in found if state.state == "killed")
    assert (killed.time_ms // 1000 % 60, killed.until_ms) == (40, killed.time_ms + 10_000)


@pytest.mark.parametrize(
    "after",
    [((30, STARTUP_FAILED), "ZooKeeperClientTimeoutException", (31, STOPPED)), ((30, STARTED), (40, WORK))],
)
def test_directories_that_fail_end_the_process_that_runs_not_the_one_that_starts(
    tmp_path: Path, after: tuple[tuple[int, str] | str, ...]
) -> None:
    """A process halts at once by it: what says more is the other one, which began before the first had ended."""
    failed = "Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)"
    found = lives(tmp_path, log((1, STARTING), (3, STARTED), (9, WORK), (10, STARTING), (15, failed), *after))
    assert [state.state for state in found if state.state == "killed"] == []
    assert told(found)[2:5] == [
        (10, "starting", None),
        (15, "halted", "log_dir_failed"),
        (30, "halted", "fatal_error_in_startup") if STARTUP_FAILED in after[0] else (30, "up", None),
    ]


def test_directories_that_fail_at_a_start_hide_no_kill(tmp_path: Path) -> None:
    failed = "Shutdown broker because all log dirs in /data have failed (kafka.log.LogManager)"
    server = log((1, STARTING), (3, STARTED), (9, WORK), (30, STARTING), (35, failed), (35, STARTUP_FAILED),
                 (36, FIRST), (37, STARTING),
                 (38, STARTED))  # fmt: skip
    assert [(time, state) for time, state, _ in told(lives(tmp_path, server))][2:5] == [
        (9, "killed"), (30, "starting"), (35, "halted"),
    ]  # fmt: skip


def test_an_end_for_which_a_kill_is_taken_back_is_of_the_cluster_of_its_time(tmp_path: Path) -> None:
    ids = [f"Cluster ID = {letter * 22} ({SERVER})" for letter in "AB"]
    found = lives(
        tmp_path,
        log((1, STARTING), (2, ids[0]), (3, STARTED), (8, STOPPING), (9, STOPPED), (20, STARTING), (21, ids[1]),
            (22, STARTED), (30, STARTING), (31, ids[1]), (32, STARTUP_FAILED), LOCKED, (33, STOPPED)),
    )  # fmt: skip
    assert [state.cluster for state in found if state.how == "log_dir_locked"] == [2]


def test_each_end_of_a_broker_is_told_where_its_starts_are_missing(tmp_path: Path) -> None:
    """Parts of a log that was rotated by several processes are lost; a minute later it is another process that ends."""
    found = lives(
        tmp_path,
        log((1, STARTING), (3, STARTED), (9, STOPPING), (10, STOPPED), (10, STOPPING)),
        log((200, STOPPING), (201, STOPPED), (201, STOPPING)),
        log((400, STARTUP_FAILED), (401, STOPPED)),
        log((600, STOPPED)),
    )
    assert told(found)[3:] == [
        (10, "down", None), (200, "stopping", None), (201, "down", None),
        (400, "halted", "fatal_error_in_startup"), (401, "down", None), (600, "down", None),
    ]  # fmt: skip


def test_a_process_whose_start_is_missing_is_not_said_to_be_killed(tmp_path: Path) -> None:
    """Where its start was lost its end may have been too."""
    found = lives(
        tmp_path,
        log((1, STARTING), (3, STARTED), (9, STOPPING), (10, STOPPED)),
        log((200, STOPPING)),
        log((400, STARTING), (402, STARTED)),
    )
    assert [state.state for state in found] == [
        "starting", "up", "stopping", "down", "stopping", "starting", "up",
    ]  # fmt: skip


def test_the_hook_of_a_second_process_does_not_stop_the_first(tmp_path: Path) -> None:
    found = lives(
        tmp_path,
        log(
            (1, STARTING), (3, STARTED), (20, STARTING), (21, STARTUP_FAILED),
            "java.net.BindException: Address already in use", (21, STOPPED), (21, STOPPING), (30, STOPPING), (31, STOPPED),
        ),
    )  # fmt: skip
    assert [(time, state) for time, state, _ in told(found)][2:] == [
        (20, "starting"), (21, "halted"), (21, "down"), (30, "stopping"), (31, "down"),
    ]  # fmt: skip


def test_before_0_8_2_what_runs_the_server_is_all_that_says_that_it_failed(tmp_path: Path) -> None:
    states = lives(
        tmp_path,
        log(
            (1, f"[Kafka Server 1], starting ({SERVER})"),
            (2, f"Fatal error during KafkaServerStable startup. Prepare to shutdown ({SERVER}Startable)"),
            "java.net.UnknownHostException: broker1",
            (3, f"[Kafka Server 1], shutting down ({SERVER})"),
            (4, f"[Kafka Server 1], shut down completed ({SERVER})"),
            (5, f"[Kafka Server 1], shutting down ({SERVER})"),
        ),
    )
    assert told(states) == [(1, "starting", None), (2, "halted", "fatal_error_in_startup"), (4, "down", None)]


@pytest.mark.parametrize(
    "first",
    [
        "KafkaConfig values: \n\tbroker.id = 1\n (kafka.server.KafkaConfig)",
        "Property broker.id is overridden to 1 (kafka.utils.VerifiableProperties)",
    ],
)
def test_where_several_write_to_a_log_a_kill_lies_before_the_first_line_of_the_next_process(
    tmp_path: Path, first: str
) -> None:
    server = log(
        (1, STARTING), (3, STARTED), (4, STARTED.replace("1", "2")), (9, WORK), (30, first), (31, STARTING)
    )
    killed = [state for state in lives(tmp_path, server) if state.state == "killed"]
    assert [(one.broker_id, one.time_ms // 1000 % 60, one.until_ms) for one in killed] == [
        (1, 9, killed[0].time_ms + 21_000)
    ]
