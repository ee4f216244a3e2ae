"""Every template finds its own sentence; recorded lines of controllers and state changes all have one."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from importlib.resources import files
from itertools import pairwise
from random import Random

import pytest

from formats.broker_logs.line import IDENTITY, STATE_IDENTITY, find_records, split_head
from formats.broker_logs.table import (
    FILES,
    LOGS,
    Table,
    every_table,
    is_controller,
    state_change_table,
    table_of,
)
from formats.broker_logs.template import FIELD_TYPES, Template, compiled, templates_of
from tests.conftest import recording, recordings

SAMPLES = {
    "i": ("0", "12", "-1"),
    "w": ("x", "kafka.X"),
    "s": ("", "Set(1, 2)", "a b c"),
    "L": ("", "1", "1,2,3", "1, 2"),
    "b": ("true", "false"),
    "tp": ("t-0", "[t,0]", "a.b_c-d-12", "[a-b, 3]"),
    "tid": ("Some(AAAAAAAAAAAAAAAAAAAAAA)", "None", "abcdefghijklmnopqrst-_"),
    "st": ("OnlinePartition", "STARTING"),
    "opt": ("Some(1)", "None"),
    "um": ("", "(under-min-isr)"),
}
EVERY = every_table().templates
# What holds no words of its own is not looked for by its words.
TEMPLATES = [template for template in EVERY if template.words]


def sentence(template: Template, random: Random) -> str:
    """The template with its fields filled in, optional parts there or not, the first letter in either case."""
    text = template.pattern
    while "«" in text:  # the innermost first: optional parts may hold others
        text = re.sub(r"«([^«»]*)»", lambda m: random.choice((m[1], "")), text)
    text = re.sub(r"\{\w+:(\w+)\}", lambda m: random.choice(SAMPLES[m[1]]), text)
    if text[:1].isalpha() and template.pattern[:1].isalpha() and random.random() < 0.5:
        text = text[0].swapcase() + text[1:]
    return text


@pytest.mark.slow
def test_every_template_fits_what_it_prints_and_is_looked_for_there() -> None:
    random = Random(5)
    for template in TEMPLATES:
        for _ in range(8):
            text = sentence(template, random).encode()
            assert compiled(template).fullmatch(text), (template.id, text)
            assert template in every_table().candidates(text), (template.id, text)


@pytest.mark.parametrize("log", LOGS)
def test_what_a_template_prints_is_found_as_it_among_the_templates_of_its_log(log: str) -> None:
    random = Random(7)
    table = Table(t for t in TEMPLATES if t.log == log)
    for template in table.templates:
        for _ in range(8):
            text = sentence(template, random).encode()
            found = table.find(text)
            assert found and found.template is template, (template.id, text, found and found.template.id)


@pytest.mark.slow
def test_few_templates_of_two_logs_print_alike() -> None:
    random = Random(11)
    alike = set()
    for template in TEMPLATES:
        for _ in range(8):
            found = every_table().find(sentence(template, random).encode())
            assert found
            if found.template is not template:
                alike.add((found.template.id, template.id))
    assert alike == {("U11", "F230"), ("U13", "F232"), ("U19", "F227"), ("B45", "X567")}


def test_every_file_is_in_the_notation_and_named_after_a_class_that_prints_it() -> None:
    folder = files("formats.broker_logs").joinpath("templates")
    named = [f"{name}.txt" for name in FILES]
    assert sorted(file.name for file in folder.iterdir()) == named, (
        "name each in FILES of broker_logs/table.py"
    )
    file_of: dict[str, str] = {}
    for name in FILES:
        text = folder.joinpath(f"{name}.txt").read_text("utf-8")
        templates = list(templates_of(text))
        rows = [line for line in text.splitlines() if line and line[0] not in "#["]
        assert len(rows) == len(templates)
        for section in re.findall(r"(?m)^\[.*", text):
            assert re.fullmatch(r"\[[\w.]+( ≤[\d.]+)?(, [\w.]+( ≤[\d.]+)?)* in [\w.-]+\]", section), section
        assert {t.log for t in templates} <= set(LOGS)
        latest = {t.classes.split(", ")[-1] for t in templates}
        assert name in {class_name.rpartition(".")[2] for class_name in latest}
        elsewhere = [(c, file_of[c]) for c in latest if file_of.setdefault(c, name) != name]
        assert elsewhere == [], f"all rows of a class stand in one file, not also in {name}.txt"
        for template in templates:
            assert re.fullmatch(r"[A-Z]\d{2,3}", template.id), template.id
            assert re.fullmatch(r"\d\.\d+(\.\d)?(–\d\.\d+(\.\d)?)?", template.versions), template.id
            assert re.match(r"[TDIWEF]\b", template.level), template.id
            assert all(re.fullmatch(r"[\w.]+\.[A-Z]\w+( ≤[\d.]+)?", c) for c in template.classes.split(", "))


@pytest.mark.parametrize(
    "text",
    [
        "X01 | 1.0 | Leader starts | A leader starts.\n",
        "X01 | 1.0 | I | Leader starts | A leader starts. | since B01\n",
        "X01 | 1.0 | I | Leader starts | A leader starts. | before\n",
    ],
)
def test_a_row_with_a_part_missing_or_unknown_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="X01"):
        list(templates_of(text))


def test_ids_are_given_once_and_every_template_says_what_it_means() -> None:
    last: dict[str, int] = {}
    for template in EVERY:
        last[template.id[0]] = max(last.get(template.id[0], 0), int(template.id[1:]))
    twice = [i for i, n in Counter(t.id for t in EVERY).items() if n > 1]
    assert twice == [], f"free is {', '.join(f'{i[0]}{last[i[0]] + 1:02}' for i in twice)}"
    assert [t.id for t in EVERY if not t.meaning.endswith(".")] == [], (
        "the meaning is a sentence with a full stop"
    )
    known = {t.id for t in EVERY}
    assert [t.id for t in TEMPLATES if not known >= {*t.before.split(), *t.after.split()}] == []


def test_no_template_holds_a_digit_and_field_types_treat_digits_alike() -> None:
    """What lines of one shape rely on."""
    assert [t.id for t in TEMPLATES if re.search(r"\d", re.sub(r"\{\w+:\w+\}", "", t.pattern))] == []
    for kind, samples in SAMPLES.items():
        for sample in samples:
            other = re.sub(r"\d", "7", sample)
            assert re.fullmatch(FIELD_TYPES[kind], other), kind


@pytest.mark.slow
@pytest.mark.parametrize("name", recordings("incidents"))
def test_every_recorded_line_of_controllers_and_state_changes_has_a_template(name: str) -> None:
    unknown = []
    count = 0
    for path in sorted(recording(name).glob("broker-*/logs/*.log*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        starts = [*find_records(data).starts.tolist(), len(data)]
        assert len(starts) - 1 == len(re.findall(rb"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]", data))
        for start, end in pairwise(starts):
            head = split_head(data[start:end])
            assert head is not None
            if head.logger is None or not (
                head.logger == "state.change.logger" or is_controller(head.logger)
            ):
                continue
            table = table_of(head.logger)
            identity = (STATE_IDENTITY if table is state_change_table() else IDENTITY).match(head.message)
            count += 1
            if not table.find(head.message[identity.end() if identity else 0 :]):
                unknown.append(head.message[:200])
    assert count > 100
    assert unknown == []


@pytest.mark.parametrize(
    ("logger", "text", "template_id"),
    [
        ("kafka.controller.PreferredReplicaPartitionLeaderElectionListener", "After leader election, leader cache for [t,19] is updated to (Leader:0,ISR:0,LeaderEpoch:1,ControllerEpoch:3)", "F173"),
        ("kafka.server.ReplicaFetcherThread", "Starting", "F230"),
        ("kafka.raft.TimingWheelExpirationService$ExpiredOperationReaper", "Starting", "F230"),
        ("kafka.server.KafkaServer", "starting", "U11"),
        ("kafka.server.KafkaServer", "started", "U12"),
        (None, "started", "U12"),
        ("state.change.logger", "changed state of replica 0 for partition [test,0] to OnlineReplica", "C38"),
        ("state.change.logger", "received invalid LeaderAndIsr request with correlation id 12 from controller 0 epoch 4 with an older leader epoch 1 for partition [t,0], current leader epoch is 1", "B47"),
        ("state.change.logger", "ignoring LeaderAndIsr request with correlation id 12 from controller 0 epoch 4 as broker is not in assigned replica list 1,2 for partition [t,0]", "B46"),
        ("state.change.logger", "aborted the become-follower state change with correlation id 12 from controller 0 epoch 4 for partition [t,0] new leader -1", "L14"),
        ("kafka.server.ReplicaManager", "Handling LeaderAndIsr request Name:LeaderAndIsrRequest;Version:0", "H78"),
        ("kafka.controller.RequestSendThread", "Controller 0 epoch 4 failed to send UpdateMetadata request with correlation id 12 to broker id:0,host:a,port:9092. Reconnecting to broker.", "E44"),
        ("kafka.controller.KafkaController", "Cannot remove replica 1 from ISR of [t,0]. Leader = 0 ; ISR = List(0)", "F26"),
        ("org.apache.kafka.controller.ReplicationControlManager", "Fencing broker 3 at epoch 17 because its session has timed out.", "Q10"),
        ("org.apache.kafka.controller.ReplicationControlManager", "Fencing broker 3 because its session has timed out.", "Q10"),
        ("kafka.server.KafkaRequestHandlerPool", "shut down completely", "H50"),
        ("kafka.log.LogCleaner", "Shutting down", "F232"),
        ("kafka.server.ControllerServer", "shutting down", "U13"),
        ("kafka.network.SocketServer", "Something else", None),
        ("kafka.network.Acceptor", "Error in acceptor", "X256"),
        ("org.apache.kafka.server.log.remote.storage.RemoteLogManagerConfig", "RemoteLogManagerConfig values: ", "X815"),
        ("kafka.network.Processor", "Processor got uncaught exception.", "X266"),
        ("org.apache.kafka.common.network.ChannelBuilders", "Broker configuration 'ssl.client.auth' is applied only to SSL listeners. Listener-prefixed configuration can be used to enable SSL client authentication for SASL_SSL listeners. In future releases, broker-wide option without listener prefix may be applied to SASL_SSL listeners as well. All configuration options intended for specific listeners should be listener-prefixed.", "X814"),
        ("org.apache.zookeeper.server.ZooKeeperServer", "shutting down", None),
        ("state.change.logger", "preRegister called. Server=com.sun.jmx.mbeanserver.JmxMBeanServer@66d3c617, name=log4j:logger=state.change.logger", "B45"),
        ("kafka.controller", "preRegister called. Server=com.sun.jmx.mbeanserver.JmxMBeanServer@66d3c617, name=log4j:logger=kafka.controller", "X567"),
        ("org.apache.kafka.controller.QuorumController", "writeNoOpRecord: event failed with NotControllerException in 119105 microseconds. Exception message: No controller appears to be active.", "X412"),
        ("kafka.network.Processor", "Exception while processing request from 10.0.0.1:9092-10.0.0.2:41000-3", "X809"),
        ("org.apache.kafka.storage.internals.log.LogDirFailureChannel", "Error while writing to checkpoint file C:\\data\\replication-offset-checkpoint", "X813"),
        ("some.other.Class", "writeNoOpRecord: failed with X in 1 us", None),
        ("kafka.coordinator.transaction.ProducerIdManager", "Acquired new producerId block (brokerId:0,blockStartProducerId:0,blockEndProducerId:999) by writing to Zk with path version 1", "U29"),
    ],
)  # fmt: skip
def test_the_logger_decides_between_sentences_that_are_alike(
    logger: str | None, text: str, template_id: str | None
) -> None:
    found = table_of(logger).find(text.encode(), logger)
    assert (found.template.id if found else None) == template_id


def test_of_two_templates_that_fit_the_one_of_the_class_that_printed_it_is_meant() -> None:
    """Also where the other one has more words."""
    rows = (
        Template(
            "A1", "server.log", "kafka.a.First", "0.8.1–4.3", "I", "Closed {what:s} with all of it", "x"
        ),
        Template("A2", "server.log", "kafka.b.Second", "0.8.1–4.3", "I", "Closed {what:s}", "x"),
    )
    for logger, template_id in (("kafka.a.First", "A1"), ("kafka.b.Second", "A2"), (None, "A1")):
        found = Table(rows).find(b"Closed a log with all of it", logger)
        assert found is not None and found.template.id == template_id
