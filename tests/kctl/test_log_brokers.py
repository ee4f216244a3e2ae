"""Several brokers in one export: no line is given to a broker that did not write it, whatever tells them apart."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import find_sources


class Line(NamedTuple):
    """A record that the broker of a number wrote; only broker 3 says of itself who it is."""

    broker: int
    millis: int
    level: str
    message: str
    logger: str
    trace: str = ""

    @property
    def name(self) -> str:
        return f"kafka-{self.broker}"

    @property
    def own(self) -> str:
        """As Kafka's own layout writes it."""
        return f"[{self.at('%Y-%m-%d %H:%M:%S')},{self.millis % 1000:03}] {self.level} {self.message} ({self.logger}){self.trace}"

    @property
    def iso(self) -> str:
        return f"{self.at('%Y-%m-%dT%H:%M:%S')}.{self.millis % 1000:03}Z"

    def at(self, form: str) -> str:
        return datetime.fromtimestamp(self.millis // 1000, UTC).strftime(form)


START = 1_790_935_201_100
TRACE = "\njava.io.IOException: Input/output error\n\tat sun.nio.fs.Unix.run(Unix.java:100)\n\tat java.lang.Thread.run(Thread.java:1)"


def _lines() -> list[Line]:
    forms = (
        (3, "INFO", "[KafkaServer id=3] started", "kafka.server.KafkaServer", ""),
        (4, "ERROR", "Error while deleting segments for orders-{i} in dir /data/kafka", "kafka.server.LogDirFailureChannel", TRACE),
        (5, "INFO", "[Log partition=orders-{i}, dir=/data/k] Loading took {i} ms", "kafka.log.Log", ""),
        (3, "WARN", "[ReplicaManager broker=3] Stopping serving replicas in dir /data/k{i}", "kafka.server.ReplicaManager", ""),
        (4, "ERROR", "Shutdown broker because all log dirs in /data/kafka{i} have failed", "kafka.log.LogManager", ""),
    )  # fmt: skip
    out = []
    for i in range(6):
        for n, (broker, level, message, logger, trace) in enumerate(forms):
            out.append(
                Line(broker, START + i * 10_000 + n * 1_100, level, message.format(i=i), logger, trace)
            )
    return out


LINES = _lines()
BY_BROKER = [line for broker in (3, 4, 5) for line in LINES if line.broker == broker]


def each(form: Callable[[Line], str], lines: Iterable[Line] = LINES) -> str:
    """A record at a time."""
    return "".join(form(line) + "\n" for line in lines)


def every(form: Callable[[Line, str], str], lines: Iterable[Line] = LINES) -> str:
    """A line at a time, those of traces as well."""
    return "".join(form(line, text) + "\n" for line in lines for text in line.own.split("\n"))


def objects(form: Callable[[Line], object], lines: Iterable[Line] = LINES) -> str:
    return each(lambda n: json.dumps(form(n)), lines)


def table(
    names: list[str] | None,
    row: Callable[[Line], list[object]],
    delimiter: str = ",",
    lines: Iterable[Line] = LINES,
) -> str:
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    if names:
        rows.writerow(names)
    rows.writerows(row(line) for line in lines)
    return out.getvalue()


def headed(form: str, lines: Iterable[Line] = LINES, body: Callable[[str], str] = lambda text: text) -> str:
    """Runs of lines of one broker below a heading."""
    return "".join(
        form.format(n=broker) + "".join(body(line.own) + "\n" for line in run)
        for broker, run in itertools.groupby(lines, lambda line: line.broker)
    )


def newest_first(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda n: -n.millis)


def fields(n: Line) -> dict[str, object]:
    trace = {"stack_trace": n.trace[1:]} if n.trace else {}
    return {"level": n.level, "logger": n.logger, "message": n.message, **trace}


def streams(lines: Iterable[Line], value: Callable[[Line], object]) -> list[object]:
    return [
        {
            "stream": {"app": "kafka", "pod": f"kafka-{broker}"},
            "values": [value(n) for n in lines if n.broker == broker],
        }
        for broker in (3, 4, 5)
    ]


def nanos(n: Line) -> str:
    return str(n.millis * 1_000_000)


NEWEST = newest_first(LINES)
CARRIERS: dict[str, Callable[[], str]] = {
    # Labels within a cell, structured data, tags
    "Grafana, labels as JSON": lambda: table(["labels", "Time", "Line", "tsNs"], lambda n: [json.dumps({"app": "kafka", "pod": n.name}), n.iso, n.own, nanos(n)]),
    "Grafana, labels as JSON, newest first": lambda: table(["labels", "Time", "Line", "tsNs"], lambda n: [json.dumps({"app": "kafka", "pod": n.name}), n.iso, n.own, nanos(n)], lines=NEWEST),
    "Grafana, labels of a selector": lambda: table(["Time", "labels", "Line"], lambda n: [n.iso, f'{{app="kafka", instance="h", pod="{n.name}"}}', n.own]),
    "labels as JSON in JSON": lambda: objects(lambda n: {"labels": json.dumps({"kubernetes": {"pod_name": n.name}}), "line": n.own}),
    "RFC 5424, structured data": lambda: every(lambda n, t: f'<14>1 {n.iso} relay kafka 812 - [k8s@1 ns="kafka" pod="{n.name}"] {t}'),
    "RFC 5424, two elements": lambda: every(lambda n, t: f'<14>1 {n.iso} relay kafka - - [meta sequenceId="1"][origin@9 software="x" container_name="{n.name}"] {t}'),
    "RFC 5424, program": lambda: every(lambda n, t: f"<14>1 {n.iso} relay {n.name} 812 - - {t}"),
    "syslog tag": lambda: every(lambda n, t: f"{n.at('%b %d %H:%M:%S')} relay {n.name}[812]: {t}"),
    "syslog tag, no process": lambda: every(lambda n, t: f"<14>{n.at('%b %d %H:%M:%S')} relay {n.name}: {t}"),
    "syslog tag, ISO": lambda: every(lambda n, t: f"{n.iso} relay docker/{n.name}[812]: {t}"),
    "journalctl, units": lambda: every(lambda n, t: f"{n.iso[:-5]}+0000 h {n.name}.service[812]: {t}"),
    "syslog among other programs": lambda: every(lambda n, t: f"{n.at('%b %d %H:%M:%S')} sshd-host sshd[1]: Accepted publickey for root\n{n.at('%b %d %H:%M:%S')} relay {n.name}[812]: {t}"),
    "journalctl -r": lambda: "".join(reversed(every(lambda n, t: f"{n.at('%b %d %H:%M:%S')} relay {n.name}[812]: {t}").splitlines(True))),
    # Headings and prefixes
    "tail -f": lambda: headed("\n==> kafka-{n}/server.log <==\n"),
    "tail of paths": lambda: headed("==> /var/log/kafka-{n}/server.log <==\n", BY_BROKER),
    "head, with the name in the file": lambda: headed("==> kafka-{n}.log <==\n", BY_BROKER),
    "ansible": lambda: headed("kafka-{n} | CHANGED | rc=0 >>\n", BY_BROKER),
    "ansible, one line": lambda: every(lambda n, t: f"{n.name} | CHANGED | rc=0 | (stdout) {t}"),
    "ansible, JSON": lambda: json.dumps({"plays": [{"tasks": [{"hosts": {f"kafka-{b}": {"stdout_lines": [t for n in LINES if n.broker == b for t in n.own.split("\n")]} for b in (3, 4, 5)}}]}]}),
    "hosts as keys": lambda: json.dumps({f"kafka-{b}": [t for n in LINES if n.broker == b for t in n.own.split("\n")] for b in (3, 4, 5)}),
    "hosts as keys, a text each": lambda: json.dumps({f"kafka-{b}": "\n".join(n.own for n in LINES if n.broker == b) for b in (3, 4, 5)}),
    "pdsh": lambda: every(lambda n, t: f"{n.name}: {t}"),
    "pdsh, a broker after the other": lambda: every(lambda n, t: f"{n.name}: {t}", BY_BROKER),
    "dshbak": lambda: headed("----------------\nkafka-{n}\n----------------\n", BY_BROKER),
    "more": lambda: headed("::::::::::::::\nkafka-{n}/server.log\n::::::::::::::\n", BY_BROKER),
    "a loop in a shell": lambda: headed("### kafka-{n} ###\n", BY_BROKER),
    "a loop in a shell, names alone": lambda: headed("kafka-{n}:\n", BY_BROKER),
    "headings of hosts": lambda: headed("=== kafka-{n}.example.com: server.log ===\n", BY_BROKER),
    "salt": lambda: headed("kafka-{n}:\n", BY_BROKER, lambda t: "\n".join("    " + x for x in t.split("\n"))),
    "multitail": lambda: every(lambda n, t: f"[{n.name}/server.log] {t}"),
    "grep of several": lambda: each(lambda n: f"{n.name}/server.log:{n.own.splitlines()[0]}"),
    "grep -A, with contexts": lambda: "".join(f"{n.name}/server.log{':' if i == 0 else '-'}{t}\n" for n in LINES for i, t in enumerate(n.own.split("\n"))),
    "parallel --tag": lambda: every(lambda n, t: f"{n.name}\t{t}", BY_BROKER),
    "fabric": lambda: every(lambda n, t: f"[{n.name}] out: {t}"),
    "capistrano": lambda: every(lambda n, t: f" ** [out :: {n.name}] {t}"),
    "mco": lambda: every(lambda n, t: f"{n.name}.example.com  {t}"),
    "foreman": lambda: every(lambda n, t: f"\x1b[36m{n.at('%H:%M:%S')} {n.name} | \x1b[0m{t}"),
    "lnav's export": lambda: table(["log_line", "log_part", "log_time", "log_path", "log_text"], lambda n: [1, "", n.iso, f"/var/log/{n.name}/server.log", n.own]),
    "sosreport's headings": lambda: headed("\n----- /srv/kafka-{n}/logs/server.log -----\n", BY_BROKER),
    # Order
    "Loki, two streams newest first": lambda: json.dumps({"data": {"result": streams(NEWEST, lambda n: [nanos(n), n.own])}}),
    "Loki, streams newest first, few lines": lambda: json.dumps({"data": {"result": streams(NEWEST[:6], lambda n: [nanos(n), n.own])}}),
    "Loki, lines, newest first": lambda: objects(lambda n: {"labels": {"pod": n.name}, "line": n.own, "timestamp": n.iso}, sorted(BY_BROKER, key=lambda n: (n.broker, -n.millis))),
    "Elasticsearch, newest first": lambda: json.dumps({"hits": {"hits": [{"_source": {"@timestamp": n.iso, "message": n.own, "kubernetes": {"pod": {"name": n.name}}}} for n in NEWEST]}}, indent=1),
    "fields alone, newest first": lambda: objects(lambda n: {"@timestamp": n.iso, "host": n.name, **fields(n)}, NEWEST),
    # Objects nested in others
    "fields in a text in a field": lambda: objects(lambda n: {"log": json.dumps({**fields(n), "@timestamp": n.iso}), "kubernetes": {"pod_name": n.name}}),
    "OpenTelemetry, a resource each": lambda: json.dumps({"resourceLogs": [{"resource": {"attributes": [{"key": "service.instance.id", "value": {"stringValue": f"kafka-{b}"}}]}, "scopeLogs": [{"logRecords": [{"timeUnixNano": nanos(n), "body": {"stringValue": n.own}} for n in LINES if n.broker == b]}]} for b in (3, 4, 5)]}),
    "Kafka Connect's envelope": lambda: objects(lambda n: {"schema": {"type": "struct"}, "payload": {"meta": {"origin": {"hostname": n.name}}, "event": {"original": n.own}}}),
    "an array of pairs": lambda: objects(lambda n: [{"key": "pod", "value": n.name}, {"key": "message", "value": n.own}]),
    "CRLF": lambda: every(lambda n, t: f"{n.name}: {t}\r"),
    "CSV with CRLF": lambda: table(["time", "pod", "text"], lambda n: [n.iso, n.name, n.own]).replace("\n", "\r\n"),
    "colours before names": lambda: every(lambda n, t: f"\x1b[{30 + n.broker}m{n.name}\x1b[0m {t}"),
    "a last line that breaks off": lambda: objects(lambda n: {"pod": n.name, "log": n.own}) + '{"pod": "kafka-4", "log": "[2026-10-02 10:',
    "other programs between": lambda: every(lambda n, t: f'{json.dumps({"pod": "nginx-1", "log": "GET / 200"})}\n{json.dumps({"pod": n.name, "log": t})}'),
    "tabs between": lambda: table(["when", "where", "what"], lambda n: [n.iso, n.name, n.own.replace("\n", "\\n").replace("\t", "\\t")], "\t"),
    "semicolons between": lambda: table(["Zeit", "Rechner", "Meldung"], lambda n: [n.at("%d.%m.%Y %H:%M:%S"), n.name, n.own], ";"),
    "URL of a target": lambda: objects(lambda n: {"target": f"https://{n.name}.example.com:9092/logs", "payload": {"data": n.own}}),
    "path of a file": lambda: objects(lambda n: {"file": f"/mnt/{n.name}/logs/server.log", "line": n.own}),
    "path of a file, deeper": lambda: objects(lambda n: {"log": {"file": {"path": f"/var/log/pods/ns_{n.name}_1a2b/kafka/0.log"}}, "message": n.own}),
    "topic of a bus": lambda: each(lambda n: f"logs/{n.name}/stdout {json.dumps({'data': n.own})}"),
    "logfmt": lambda: each(lambda n: f"ts={n.iso} host={n.name} msg={json.dumps(n.own)}"),
    "logfmt of fields": lambda: each(lambda n: f"time=\"{n.iso}\" level={n.level.lower()} host={n.name} logger={n.logger} msg={json.dumps(n.message + n.trace)}"),
    "XML": lambda: "<log>\n" + each(lambda n: f'<entry time="{n.iso}" host="{n.name}"><![CDATA[{n.own}]]></entry>') + "</log>\n",
    "YAML": lambda: each(lambda n: f"- host: {n.name}\n  time: {n.iso}\n  line: |\n" + "\n".join("    " + t for t in n.own.split("\n"))),
    "Markdown table": lambda: "| time | pod | line |\n|---|---|---|\n" + each(lambda n: f"| {n.iso} | {n.name} | {n.own.splitlines()[0]} |"),
    "HTML table": lambda: "<table>\n" + each(lambda n: f"<tr><td>{n.iso}</td><td>{n.name}</td><td>{n.own.splitlines()[0]}</td></tr>") + "</table>\n",
    "Nomad": lambda: every(lambda n, t: f"{n.iso} [{n.name}] stdout: {t}"),
    "systemd-nspawn": lambda: every(lambda n, t: f"{n.name} | {n.at('%H:%M:%S.000')} | {t}"),
    "Windows' Get-Content": lambda: "".join(f"PSComputerName : {n.name}\nTimeCreated    : {n.at('%m/%d/%Y %I:%M:%S %p')}\nMessage        : {n.own.splitlines()[0]}\n\n" for n in LINES),
}  # fmt: skip
# What shows the first line of a record alone, or other lines between.
FIRST_LINES = {"grep of several", "Markdown table", "HTML table", "XML", "YAML", "Windows' Get-Content"}


def written(carrier: str, folder: Path) -> Path:
    path = folder / "export"
    path.write_text(CARRIERS[carrier](), newline="")
    return path


def outcome(path: Path, *, first_lines: bool = False) -> list[tuple[int | None, str, int | None]]:
    """Time, text and broker of each record, in order."""
    sources = find_sources([str(path)])
    assert not sources.failures and not [f for f in sources.findings if f.severity == "error"]
    events = [event for event in prepare(sources).events() if event.time_ms is not None]
    texts = [event.text.partition("\n")[0] if first_lines else event.text for event in events]
    return [(event.time_ms, text, event.broker_id) for event, text in zip(events, texts, strict=True)]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_each_line_is_of_the_broker_that_wrote_it(tmp_path: Path, carrier: str) -> None:
    lines = LINES
    if "few lines" in carrier:
        lines = sorted(NEWEST[:6], key=lambda n: n.millis)
    is_cut = carrier in FIRST_LINES
    expected = [(n.millis, n.message + ("" if is_cut else n.trace), n.broker) for n in lines]
    assert outcome(written(carrier, tmp_path), first_lines=is_cut) == expected


def test_lines_that_a_runtime_cut_are_one(tmp_path: Path) -> None:
    """CRI marks parts with P; Docker's JSON ends only the last one with a line end. Parts of several brokers alternate."""
    partitions = ", ".join(f"orders-{i}" for i in range(3000))
    lines = [
        Line(n, START + n, "INFO", f"[ReplicaFetcherManager on broker {n}] Removed fetcher for partitions Set({partitions})", "kafka.server.ReplicaFetcherManager")
        for n in (3, 4)
    ]  # fmt: skip
    parts = [[line.own[i : i + 16384] for i in range(0, len(line.own), 16384)] for line in lines]
    cri, docker = "", ""
    for i in range(len(parts[0])):
        is_last = i == len(parts[0]) - 1
        cri += f"{lines[0].iso} stdout {'F' if is_last else 'P'} {parts[0][i]}\n"
        for line, texts in zip(lines, parts, strict=True):
            text = texts[i] + ("\n" if is_last else "")
            docker += (
                json.dumps({"log": text, "stream": "stdout", "time": line.iso, "attrs": {"tag": line.name}})
                + "\n"
            )
    (tmp_path / "cri").write_text(cri + f"{LINES[5].iso} stdout F {LINES[5].own}\n")
    (tmp_path / "docker").write_text(
        docker + json.dumps({"log": LINES[5].own + "\n", "time": LINES[5].iso}) + "\n"
    )
    assert outcome(tmp_path / "cri")[0][1:] == (lines[0].message, 3)
    assert [(text, broker) for _, text, broker in outcome(tmp_path / "docker")][:2] == [
        (line.message, line.broker) for line in lines
    ]


@pytest.mark.parametrize("form", ["whole records", "every line"])
def test_the_newest_first(tmp_path: Path, form: str) -> None:
    texts = [line.own + "\n" for line in LINES if line.broker != 3]
    if form == "every line":
        texts = "".join(texts).splitlines(keepends=True)
    path = tmp_path / "server.log"
    path.write_text("".join(reversed(texts)))
    assert [(time, text) for time, text, _ in outcome(path)] == [
        (n.millis, n.message + n.trace) for n in LINES if n.broker != 3
    ]
