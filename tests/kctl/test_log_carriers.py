"""The same lines of a broker, carried as many systems carry them: each gives the same events."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.broker_logs import layouts
from formats.broker_logs.exports import records
from formats.broker_logs.exports.documents import document_of, written
from kctl.broker_logs.explain import explain_line
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import find_sources, layout_in_words
from kctl.text_logs.zones import parse_zones
from tests.conftest import kctl, rows


class Line(NamedTuple):
    millis: int
    level: str
    message: str
    logger: str
    trace: str = ""

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
LINES = (
    Line(START, "INFO", "[KafkaServer id=3] started", "kafka.server.KafkaServer"),
    Line(START + 400, "INFO", '[Log partition=orders-0, dir=/data/k] Loading "it" took 3 ms, 40% {a=1}', "kafka.log.Log"),
    Line(START + 1100, "WARN", "[ReplicaManager broker=3] Stopping serving replicas in dir /data/kafka", "kafka.server.ReplicaManager"),
    Line(
        START + 1150, "ERROR", "Error while deleting segments for orders-0 in dir /data/kafka", "kafka.server.LogDirFailureChannel",
        "\njava.nio.file.FileSystemException: /data/kafka: Read-only file system\n\tat sun.nio.fs.Unix.run(Unix.java:100)\n"
        "Caused by: java.io.IOException: Input/output error\n\t... 3 more",
    ),
    Line(START + 1200, "ERROR", "Shutdown broker because all log dirs in /data/kafka have failed", "kafka.log.LogManager"),
)  # fmt: skip


def in_json() -> list[str]:
    return [json.dumps({"pod": "kafka-3", "log": line.own}) for line in LINES]


def batches(form: str, between: str) -> str:
    """The lines as objects, two in the first line and three in the second."""
    objects = in_json()
    return "".join(form.format(between.join(part)) for part in (objects[:2], objects[2:]))


def each(form: Callable[[Line], str]) -> str:
    """A record at a time, its trace as one text with it."""
    return "".join(form(line) + "\n" for line in LINES)


def every(form: Callable[[Line, str], str]) -> str:
    """A line at a time: those of a trace are carried like any other."""
    return "".join(form(line, text) + "\n" for line in LINES for text in line.own.split("\n"))


def objects(form: Callable[[Line], object], **options: object) -> str:
    return each(lambda line: json.dumps(form(line), **options))  # type: ignore[arg-type]


def all_in(form: Callable[[list[Line]], object], *, indent: int | None = None) -> str:
    return json.dumps(form(list(LINES)), indent=indent)


def table(
    names: Sequence[str] | None, row: Callable[[Line], Sequence[object]], delimiter: str = ",", **how: int
) -> str:
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, **how)  # type: ignore[arg-type]
    if names:
        rows.writerow(names)
    rows.writerows(row(line) for line in LINES)
    return out.getvalue()


def nanos(line: Line) -> str:
    return str(line.millis * 1_000_000)


def fields(line: Line) -> dict[str, object]:
    trace = {"stack_trace": line.trace[1:]} if line.trace else {}
    return {"level": line.level, "logger": line.logger, "message": line.message, "thread": "main", **trace}


CARRIERS: dict[str, Callable[[], str]] = {
    # Clouds
    "aws logs tail": lambda: every(lambda n, t: f"{n.iso.replace('Z', '000+00:00')} prod-Broker-3 {t}"),
    "aws logs filter-log-events": lambda: all_in(lambda all_: {"events": [{"logStreamName": "prod-Broker-3", "timestamp": n.millis, "message": n.own, "ingestionTime": n.millis + 500, "eventId": "3"} for n in all_], "searchedLogStreams": []}, indent=4),
    "aws logs get-log-events, text": lambda: each(lambda n: f"EVENTS\t{n.millis + 500}\t{n.own.splitlines()[0]}\t{n.millis}"),
    "CloudWatch export to S3": lambda: every(lambda n, t: f"{n.iso} {t}"),
    "CloudWatch Insights, JSON": lambda: all_in(lambda all_: {"results": [[{"field": "@timestamp", "value": n.iso[:-1].replace("T", " ")}, {"field": "@message", "value": n.own}, {"field": "@logStream", "value": "kafka-3"}, {"field": "@ptr", "value": "CpEB"}] for n in reversed(all_)], "status": "Complete"}, indent=2),
    "CloudWatch Insights, CSV": lambda: table(("@timestamp", "@message", "@logStream"), lambda n: (n.iso[:-1].replace("T", " "), n.own, "kafka-3")),
    "gcloud logging read": lambda: all_in(lambda all_: [{"insertId": str(i), "resource": {"type": "k8s_container", "labels": {"pod_name": "kafka-3"}}, "severity": "INFO", "textPayload": n.own + "\n", "timestamp": n.iso, "receiveTimestamp": n.iso} for i, n in enumerate(reversed(all_))], indent=2),
    "Google, jsonPayload": lambda: objects(lambda n: {"insertId": "x", "jsonPayload": fields(n), "timestamp": n.iso, "resource": {"labels": {"pod_name": "kafka-3"}}}),
    "Azure Monitor, REST": lambda: all_in(lambda all_: {"tables": [{"name": "PrimaryResult", "columns": [{"name": "TimeGenerated", "type": "datetime"}, {"name": "LogEntry", "type": "string"}, {"name": "PodName", "type": "string"}], "rows": [[n.iso, n.own, "kafka-3"] for n in all_]}]}),
    "az monitor log-analytics query": lambda: all_in(lambda all_: [{"LogMessage": n.own, "PodName": "kafka-3", "TableName": "PrimaryResult", "TimeGenerated": n.iso} for n in all_], indent=2),
    "Azure portal, CSV": lambda: "\ufeff" + table(("TimeGenerated [UTC]", "LogEntry"), lambda n: (n.at("%m/%d/%Y, %I:%M:%S.100 %p"), n.own), quoting=csv.QUOTE_ALL),
    "Alibaba SLS": lambda: objects(lambda n: {"__time__": n.millis // 1000, "__source__": "10.0.0.3", "__tag__:_pod_name_": "kafka-3", "content": n.own}),
    "IBM Log Analysis": lambda: objects(lambda n: {"_host": "kafka-3", "_ts": n.millis, "_line": n.own, "_app": "kafka"}),
    "Heroku's Logplex": lambda: every(lambda n, t: f"{n.iso.replace('Z', '000+00:00')} app[kafka.3]: {t}"),
    # Collectors and stores
    "Fluent Bit, stdout": lambda: each(lambda n: f'[0] kube.kafka-3: [{n.millis / 1000:.9f}, {{"stream"=>"stdout", "log"=>"{n.own.splitlines()[0]}"}}]'),
    "Fluent Bit, file": lambda: each(lambda n: f"kube.kafka: [{n.millis / 1000:.9f}, {json.dumps({'log': n.own, 'stream': 'stdout', 'kubernetes': {'pod_name': 'kafka-3', 'labels': {'app': 'kafka'}}})}]"),
    "Fluentd, out_file": lambda: each(lambda n: f"{n.iso[:-5]}+00:00\tkube.kafka\t{json.dumps({'log': n.own, 'stream': 'stdout'})}"),
    "Vector": lambda: objects(lambda n: {"file": "/var/log/kafka.out", "host": "node3", "message": n.own, "source_type": "file", "timestamp": n.iso}),
    "Vector, docker_logs": lambda: objects(lambda n: {"container_id": "9b6", "container_name": "kafka-3", "image": "kafka", "label": {"com.docker.compose.service": "kafka"}, "message": n.own, "stream": "stdout", "timestamp": n.iso}),
    "Loki, query_range": lambda: all_in(lambda all_: {"status": "success", "data": {"resultType": "streams", "result": [{"stream": {"app": "kafka", "pod": "kafka-3"}, "values": [[nanos(n), n.own] for n in reversed(all_)]}]}}),
    "Loki, push": lambda: all_in(lambda all_: {"streams": [{"stream": {"pod": "kafka-3"}, "values": [[nanos(n), n.own, {"trace_id": "0"}] for n in all_]}]}),
    "logcli": lambda: each(lambda n: f'{n.iso[:-5]}Z {{app="kafka", pod="kafka-3"}} {n.own.splitlines()[0]}'),
    "logcli, jsonl": lambda: objects(lambda n: {"labels": {"pod": "kafka-3"}, "line": n.own, "timestamp": n.iso}),
    "promtail --dry-run": lambda: each(lambda n: f'{n.iso[:-1]}000+0000\t{{__path__="/var/log/kafka.out", pod="kafka-3"}}\t{n.own.splitlines()[0]}'),
    "Grafana Explore, text": lambda: each(lambda n: f"{n.iso}\t{n.own.splitlines()[0]}"),
    "Grafana Explore, CSV": lambda: table(("labels", "Time", "Line", "tsNs", "id"), lambda n: ('{"pod":"kafka-3"}', n.iso[:-1].replace("T", " "), n.own, nanos(n), "a_b"), quoting=csv.QUOTE_ALL),
    "OTLP, JSON": lambda: all_in(lambda all_: {"resourceLogs": [{"resource": {"attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "kafka-3"}}]}, "scopeLogs": [{"scope": {}, "logRecords": [{"timeUnixNano": nanos(n), "body": {"stringValue": n.own}, "attributes": [{"key": "log.file.name", "value": {"stringValue": "kafka.out"}}], "traceId": ""} for n in all_]}]}]}),
    "OTLP, taken apart": lambda: objects(lambda n: {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": nanos(n), "severityText": n.level, "body": {"stringValue": n.message}, "attributes": [{"key": "logger.name", "value": {"stringValue": n.logger}}, *([{"key": "exception.stacktrace", "value": {"stringValue": n.trace[1:]}}] if n.trace else [])]}]}]}]}),
    "OpenTelemetry collector, debug": lambda: each(lambda n: f"Body: Str({n.own.splitlines()[0]})"),
    "Graylog, CSV": lambda: table(("timestamp", "source", "message"), lambda n: (n.iso, "kafka-3", n.own), quoting=csv.QUOTE_ALL),
    "Graylog, search": lambda: all_in(lambda all_: {"query": "*", "messages": [{"index": "graylog_0", "message": {"_id": "1", "timestamp": n.iso, "source": "kafka-3", "message": n.own}} for n in reversed(all_)]}),
    "GELF": lambda: objects(lambda n: {"version": "1.1", "host": "node3", "short_message": n.message, "timestamp": n.millis / 1000, "level": 6, "_level_name": n.level, "_logger": n.logger, **({"_exception.stack_trace": n.trace[1:]} if n.trace else {})}),
    "Papertrail's archive": lambda: table(None, lambda n: (n.millis, n.iso[:-1], n.iso[:-1], 42, "kafka-3", "10.0.0.3", "User", "Info", "kafka", n.own), "\t"),
    "papertrail-cli": lambda: each(lambda n: f"{n.at('%b %d %H:%M:%S')} kafka-3 kafka: {n.own.splitlines()[0]}"),
    "Elasticsearch, search": lambda: all_in(lambda all_: {"took": 3, "hits": {"total": {"value": 5}, "hits": [{"_index": "filebeat", "_id": "a", "_source": {"@timestamp": n.iso, "message": n.own, "kubernetes": {"pod": {"name": "kafka-3"}}}, "fields": {"message": [n.own]}, "sort": [n.millis]} for n in reversed(all_)]}}, indent=1),
    "elasticdump": lambda: objects(lambda n: {"_index": "filebeat", "_source": {"@timestamp": n.iso, "message": n.own, "host": {"name": "node3"}}}),
    "Filebeat": lambda: objects(lambda n: {"@timestamp": n.iso, "agent": {"type": "filebeat"}, "message": n.own, "kubernetes": {"pod": {"name": "kafka-3"}}}),
    "ECS, dotted": lambda: objects(lambda n: {"@timestamp": n.iso, "log.level": n.level, "message": n.message, "ecs.version": "1.2.0", "log.logger": n.logger, **({"error.stack_trace": n.trace[1:]} if n.trace else {})}),
    "ECS, nested": lambda: objects(lambda n: {"@timestamp": n.iso, "log": {"level": n.level, "logger": n.logger}, "message": n.message, **({"error": {"stack_trace": n.trace[1:]}} if n.trace else {})}),
    "Kibana, CSV": lambda: table(("@timestamp", "kubernetes.pod.name", "message"), lambda n: (n.at("%b %d, %Y @ %H:%M:%S.100"), "kafka-3", n.own), quoting=csv.QUOTE_ALL),
    "Splunk, CSV": lambda: table(("_raw", "_time", "host"), lambda n: (n.own, n.iso.replace("Z", "+0000"), "node3"), quoting=csv.QUOTE_ALL),
    "Splunk, JSON": lambda: objects(lambda n: {"preview": False, "offset": 0, "result": {"_raw": n.own, "_time": n.iso, "host": "node3", "source": "/var/log/kafka.out"}}),
    "Splunk HEC": lambda: objects(lambda n: {"time": n.millis / 1000, "host": "node3", "event": n.own}),
    "Datadog, CSV": lambda: table(("Date", "Host", "Service", "Message"), lambda n: (n.iso, "node3", "kafka", n.own)),
    "Datadog, API": lambda: all_in(lambda all_: {"data": [{"id": "A", "type": "log", "attributes": {"timestamp": n.iso, "status": "info", "host": "node3", "service": "kafka", "message": n.own, "attributes": {}}} for n in all_], "meta": {}}),
    "Sumo Logic": lambda: table(("_messageTimeMs", "_raw", "_sourceHost"), lambda n: (n.millis, n.own, "node3"), quoting=csv.QUOTE_ALL),
    "New Relic": lambda: all_in(lambda all_: [{"timestamp": n.millis, "logs": [{"message": n.own, "attributes": {"hostname": "node3"}}]} for n in all_]),
    "Humio": lambda: objects(lambda n: {"@timestamp": n.millis, "@rawstring": n.own, "#host": "node3"}),
    "Logstash, JSONEventLayout": lambda: objects(lambda n: {"@timestamp": n.iso, "@version": 1, "source_host": "node3", "message": n.message, "thread_name": "main", "level": n.level, "logger_name": n.logger, **({"exception": {"stacktrace": n.trace[1:]}} if n.trace else {})}),
    "Confluent's JSON": lambda: objects(lambda n: {**fields(n), "time_ms": n.millis}),
    "log4j 2, JsonTemplateLayout": lambda: objects(lambda n: {"instant": {"epochSecond": n.millis // 1000, "nanoOfSecond": n.millis % 1000 * 1_000_000}, "thread": "main", "level": n.level, "loggerName": n.logger, "message": n.message, **({"thrown": {"extendedStackTrace": n.trace[1:]}} if n.trace else {})}),
    "log4j, XMLLayout": lambda: each(lambda n: f'<log4j:event logger="{n.logger}" timestamp="{n.millis}" level="{n.level}" thread="main">\n<log4j:message><![CDATA[{n.message}]]></log4j:message>\n' + (f"<log4j:throwable><![CDATA[{n.trace[1:]}]]></log4j:throwable>\n" if n.trace else "") + "</log4j:event>\n"),
    "log4j 2, XmlLayout": lambda: "<?xml version='1.0' encoding='UTF-8'?>\n<Events xmlns='http://logging.apache.org/log4j/2.0/events'>\n" + each(lambda n: f'  <Event xmlns="http://logging.apache.org/log4j/2.0/events" thread="main" level="{n.level}" loggerName="{n.logger}" endOfBatch="false">\n    <Instant epochSecond="{n.millis // 1000}" nanoOfSecond="{n.millis % 1000 * 1_000_000}"/>\n    <Message>{html.escape(n.message)}</Message>\n' + (f"    <Thrown><ExtendedStackTrace>{html.escape(n.trace[1:])}</ExtendedStackTrace></Thrown>\n" if n.trace else "") + "  </Event>") + "</Events>\n",
    "log4j 2, XmlLayout, compact": lambda: "<Events>" + "".join(f'<Event timeMillis="{n.millis}" level="{n.level}" loggerName="{n.logger}"><Message>{html.escape(n.message)}</Message>' + (f"<Thrown>{html.escape(n.trace[1:])}</Thrown>" if n.trace else "") + "</Event>" for n in LINES) + "</Events>",
    "log4j 2, JsonLayout": lambda: "[\n" + ",\n".join(json.dumps({"instant": {"epochSecond": n.millis // 1000, "nanoOfSecond": n.millis % 1000 * 1_000_000}, "thread": "main", "level": n.level, "loggerName": n.logger, "message": n.message, "endOfBatch": False, **({"stack_trace": n.trace[1:]} if n.trace else {})}, indent=2) for n in LINES) + "\n]\n",
    "JSON in JSON": lambda: objects(lambda n: {"log": json.dumps({**fields(n), "ts": n.millis}) + "\n", "stream": "stdout"}),
    "jq's output": lambda: each(lambda n: json.dumps({"pod": "kafka-3", "text": n.own}, indent=2)),
    # Containers
    "docker logs -t": lambda: every(lambda n, t: f"{n.iso[:-1]}000000Z {t}"),
    "docker compose logs": lambda: every(lambda n, t: f"kafka-3  | {t}"),
    "docker compose logs -t": lambda: every(lambda n, t: f"kafka-3  | {n.iso[:-1]}456789Z {t}"),
    "docker service logs": lambda: every(lambda n, t: f"kafka_kafka.3.x7b2@node3    | {t}"),
    "Docker json-file": lambda: every(lambda n, t: json.dumps({"log": t + "\n", "stream": "stdout", "time": n.iso})),
    "podman logs -t --names": lambda: every(lambda n, t: f"{n.iso[:-5]}+00:00 kafka-3 {t}"),
    "nerdctl logs -t": lambda: every(lambda n, t: f"{n.iso[:-1]}456789Z {t}"),
    "CRI": lambda: every(lambda n, t: f"{n.iso[:-1]}000000Z stdout F {t}"),
    "kubectl logs --prefix --timestamps": lambda: every(lambda n, t: f"[pod/kafka-3/kafka] {n.iso[:-1]}456789Z {t}"),
    "oc logs": lambda: every(lambda n, t: f"[kafka-3] {n.iso[:-1]}000000Z {t}"),
    "stern": lambda: every(lambda n, t: f"my-kafka-3 kafka {t}"),
    "stern, JSON": lambda: every(lambda n, t: json.dumps({"message": t, "nodeName": "node3", "namespace": "kafka", "podName": "kafka-3", "containerName": "kafka"})),
    "kubetail": lambda: every(lambda n, t: f"[kafka-3 kafka] {t}"),
    "kail": lambda: every(lambda n, t: f"kafka/kafka-3[kafka]: {t}"),
    "GitHub Actions": lambda: every(lambda n, t: f"{n.iso[:-1]}1234Z {t}"),
    "Jenkins, timestamps": lambda: every(lambda n, t: f"[{n.iso}] {t}"),
    "Testcontainers": lambda: every(lambda n, t: f"10:00:01.100 [docker-java-stream] INFO  org.testcontainers - STDOUT: {t}"),
    # Journals and syslog
    "journalctl": lambda: every(lambda n, t: f"{n.at('%b %d %H:%M:%S')} node3 kafka-server-start.sh[812]: {t}"),
    "journalctl -o short-precise": lambda: every(lambda n, t: f"{n.at('%b %d %H:%M:%S')}.100000 node3 kafka-server-start.sh[812]: {t}"),
    "journalctl -o short-iso": lambda: every(lambda n, t: f"{n.iso[:-5]}+0000 node3 kafka-server-start.sh[812]: {t}"),
    "journalctl -o short-iso-precise": lambda: every(lambda n, t: f"{n.iso[:-5]}.100000+0000 node3 kafka[812]: {t}"),
    "journalctl -o short-full": lambda: every(lambda n, t: f"{n.at('%a %Y-%m-%d %H:%M:%S')} UTC node3 kafka[812]: {t}"),
    "journalctl -o short-unix": lambda: every(lambda n, t: f"{n.millis / 1000:.6f} node3 kafka[812]: {t}"),
    "journalctl -o short-monotonic": lambda: every(lambda n, t: f"[{n.millis % 100000 / 7:12.6f}] node3 kafka[812]: {t}"),
    "journalctl -o short-delta": lambda: every(lambda n, t: f"[{n.millis % 100000 / 7:12.6f} <    0.000123 >] node3 kafka[812]: {t}"),
    "journalctl -o with-unit": lambda: every(lambda n, t: f"{n.at('%a %Y-%m-%d %H:%M:%S')} UTC node3 kafka.service[812]: {t}"),
    "journalctl -o cat": lambda: each(lambda n: n.own),
    "journalctl -o json": lambda: every(lambda n, t: json.dumps({"__CURSOR": "s=1", "__REALTIME_TIMESTAMP": str(n.millis * 1000), "_HOSTNAME": "node3", "MESSAGE": t, "PRIORITY": "6"})),
    "journalctl -o json, bytes": lambda: every(lambda n, t: json.dumps({"__REALTIME_TIMESTAMP": str(n.millis * 1000), "_HOSTNAME": "node3", "MESSAGE": list(t.encode())})),
    "journalctl -o json-pretty": lambda: "".join(json.dumps({"_HOSTNAME": "node3", "__REALTIME_TIMESTAMP": str(n.millis * 1000), "MESSAGE": t}, indent=8) + "\n" for n in LINES for t in n.own.split("\n")),
    "journalctl -o json-sse": lambda: "".join(f"data: {json.dumps({'_HOSTNAME': 'node3', '__REALTIME_TIMESTAMP': str(n.millis * 1000), 'MESSAGE': t})}\n\n" for n in LINES for t in n.own.split("\n")),
    "journalctl -o json-seq": lambda: "".join(f"\x1e{json.dumps({'_HOSTNAME': 'node3', '__REALTIME_TIMESTAMP': str(n.millis * 1000), 'MESSAGE': t})}\n" for n in LINES for t in n.own.split("\n")),
    "journalctl -o export": lambda: "".join(f"__CURSOR=s=1\n__REALTIME_TIMESTAMP={n.millis * 1000}\n_HOSTNAME=node3\nMESSAGE={t}\nPRIORITY=6\n\n" for n in LINES for t in n.own.split("\n")),
    "journalctl -o verbose": lambda: "".join(f"{n.at('%a %Y-%m-%d %H:%M:%S')}.100000 UTC [s=1;i=1]\n    PRIORITY=6\n    _HOSTNAME=node3\n    MESSAGE={t}\n    _PID=812\n" for n in LINES for t in n.own.split("\n")),
    "syslog, RFC 3164": lambda: every(lambda n, t: f"<14>{n.at('%b %d %H:%M:%S')} node3 kafka[812]: {t.replace(chr(9), '#011')}"),
    "syslog, RFC 5424": lambda: every(lambda n, t: f"<14>1 {n.iso} node3 kafka 812 - - {t}"),
    "syslog, RFC 5424, with data": lambda: every(lambda n, t: f'<14>1 {n.iso} node3 kafka 812 ID47 [x@1 a="b c" d="e"] {t}'),
    "rsyslog, one line a message": lambda: each(lambda n: f"{n.iso.replace('Z', '000+00:00')} node3 kafka: {n.own.replace(chr(10), '#012').replace(chr(9), '#011')}"),
    "syslog-ng": lambda: every(lambda n, t: f"{n.iso} node3 kafka[812]: {t}"),
    # Windows
    "Apache procrun": lambda: every(lambda n, t: f"[{n.at('%Y-%m-%d %H:%M:%S')}] [info]  [ 1234] {t}"),
    "Java Service Wrapper": lambda: every(lambda n, t: f"INFO   | jvm 1    | {n.at('%Y/%m/%d %H:%M:%S')} | {t}"),
    "NSSM, timestamps": lambda: every(lambda n, t: f"{n.at('%Y-%m-%d %H:%M:%S')}.100: {t}\r"),
    "Windows event, JSON": lambda: objects(lambda n: {"TimeCreated": n.iso, "ProviderName": "kafka", "MachineName": "node3", "Level": 4, "Message": n.own}),
    "Windows line ends": lambda: each(lambda n: n.own.replace("\n", "\r\n") + "\r"),
    # What people do with lines
    "colours": lambda: each(lambda n: f"\x1b[32m{n.own}\x1b[0m"),
    "grep -n": lambda: each(lambda n: f"12:{n.own.splitlines()[0]}"),
    "grep -H": lambda: each(lambda n: f"logs/kafka.out:{n.own.splitlines()[0]}"),
    "quoted in a mail": lambda: every(lambda n, t: f"> {t}"),
    "ts": lambda: every(lambda n, t: f"{n.at('%b %d %H:%M:%S')} {t}"),
    "arrays of two and three a line": lambda: batches("[{}]\n", ", "),
    "objects one behind the other": lambda: batches("{}\n", ""),
    "objects behind a mark of braces": lambda: batches('{{"app": "kafka"}} {}\n', " "),
    "one array in a line": lambda: f"[{','.join(in_json())}]",
    "wrapped at 80 columns": lambda: "".join(part + "\n" for n in LINES for t in n.own.split("\n") for part in (t[i : i + 80] for i in range(0, len(t), 80))),
}  # fmt: skip
WITHOUT_TRACE = {
    "aws logs get-log-events, text", "Fluent Bit, stdout", "logcli", "Grafana Explore, text", "papertrail-cli", "grep -n", "grep -H",
    "OpenTelemetry collector, debug", "promtail --dry-run",
}  # fmt: skip


def events_of(path: Path) -> list[tuple[int | None, str, str, str | None]]:
    sources = find_sources([str(path)])
    assert not sources.failures and not [f for f in sources.findings if f.severity == "error"]
    return [(event.time_ms, event.level, event.text, event.logger) for event in prepare(sources).events()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_lines_are_found_in_what_carried_them(tmp_path: Path, carrier: str, encoding: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(CARRIERS[carrier]().encode(encoding))
    traces = ["" if carrier in WITHOUT_TRACE else line.trace for line in LINES]
    expected = [
        (n.millis, n.level, n.message + trace, n.logger) for n, trace in zip(LINES, traces, strict=True)
    ]
    assert events_of(path) == expected


def test_a_stack_trace_in_elements_is_one(tmp_path: Path) -> None:
    """As log4j 2 writes it; what entities name is not looked up, and what never ends is left out."""
    hostile = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd"><!ENTITY b "&a;&a;">]>\n'
    endless = '<Event loggerName="kafka.X" level="INFO" timeMillis="1"><Message>' + "x" * (3 << 20) + "\n"
    event = (
        f'<Event timeMillis="{START}" level="ERROR" loggerName="kafka.log.LogManager"><Message>Failed &amp; &b; &#65;</Message>'
        '<Thrown name="java.io.IOException" message="No space"><ExtendedStackTrace><ExtendedStackTraceItem class="a.B" '
        'method="c" file="B.java" line="7"/></ExtendedStackTrace></Thrown></Event>\n'
    )
    path = tmp_path / "export.xml.txt"
    path.write_text(hostile + event + endless + event)
    text = "Failed & &b; A\njava.io.IOException: No space\n\tat a.B.c(B.java:7)"
    assert events_of(path) == [(START, "ERROR", text, "kafka.log.LogManager")] * 2


def of_block(lines: int) -> str:
    """Two records whose texts are blocks of YAML, the second one of so many lines."""
    first, *_, last = LINES
    record = (
        f"---\n  pod: kafka-3\n  log: |\n    {first.own}\n---\n  pod: kafka-4\n  log: |\n    {last.own}\n"
    )
    return record + "".join(f"    \tat kafka.Step.number({number})\n" for number in range(lines))


def written_lines(text: str, *, chunk: int = 1 << 16) -> list[str]:
    """The lines of an export, each without its mark."""
    data = text.encode()
    document = document_of(data)
    assert document is not None
    chunks = (data[place : place + chunk] for place in range(0, len(data), chunk))
    lines = b"".join(written(document, chunks, 1 << 16)).decode().splitlines()
    return [line.rpartition("\x1f")[2] for line in lines]


def test_a_record_that_is_too_long_is_given_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = of_block(1000)
    expected = [line[4:] for line in text.splitlines() if line.startswith("    ")]
    assert written_lines(text) == expected
    document = document_of(text.encode())
    assert document is not None
    monkeypatch.setattr(records, "LONGEST_RECORD", 5000)
    parts = list(document.lines(iter([text.encode()])))
    assert [part for line in parts for part in line.text.split("\n")] == expected
    assert [line.origin for line in parts] == ["kafka-3"] + ["kafka-4"] * (len(parts) - 1)
    assert len(parts) > 5 and max(len(line.text) for line in parts) < 5100


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        of_block(70_000),
        "".join(f'<Event level="INFO" loggerName="kafka.X" timeMillis="{START}"><Message>{part}</Message></Event>\n' for part in ("a", "<![CDATA[a]]>" * 70_000)),
        "==> kafka-3 <==\n" + LINES[0].own + "\n" * 150_000 + LINES[1].own + "\n",
    ],
    ids=["a block of YAML", "parts of CDATA", "blank lines"],
)  # fmt: skip
def test_time_and_memory_grow_no_faster_than_an_export(text: str) -> None:
    tracemalloc.start()
    began = time.process_time()
    data = text.encode()
    document = document_of(data)
    assert document is not None
    for _ in document.lines(data[place : place + (1 << 16)] for place in range(0, len(data), 1 << 16)):
        pass
    taken, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 3 and most < 15 << 20


def test_what_stands_before_objects_of_a_line_names_their_process(tmp_path: Path) -> None:
    """One mark for all of a line, to which an object without a line of a log belongs."""
    one, *others = [json.dumps({"log": line.own}) for line in LINES]
    text = (
        f"kafka-3 | {one}{others[0]}\n" + f'{{"id": "kafka-4"}} {others[1]}, {others[2]}\n' + f"{others[3]}\n"
    )
    document = document_of(text.encode())
    assert document is not None
    origins = [carried.origin for carried in document.lines(iter([text.encode()]))]
    assert (
        origins[:2] == ["kafka-3"] * 2
        and all("kafka-4" in origin for origin in origins[2:4])
        and origins[4] == ""
    )
    assert not any("KafkaServer" in origin or "Log" in origin for origin in origins)


@given(data=st.data())
def test_no_export_is_too_strange(data: st.DataObject) -> None:
    """Bytes that were torn, cut and glued give lines or nothing, and nothing that a mark could be mistaken for."""
    parts = [
        CARRIERS[name]().encode()
        for name in data.draw(st.lists(st.sampled_from(sorted(CARRIERS)), max_size=2))
    ]
    torn = bytearray(b"".join(parts))
    for place, byte in data.draw(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=8)):
        if place < len(torn):
            torn[place] = byte
    whole = bytes(torn[: data.draw(st.integers(0, 4000))]) + data.draw(st.binary(max_size=40))
    document = document_of(whole)
    if document is None:
        return
    size = data.draw(st.integers(1, 500))
    chunks = (whole[i : i + size] for i in range(0, len(whole), size))
    for line in b"".join(written(document, chunks, 1 << 16)).split(b"\n")[:-1]:
        assert line.count(b"\x1f") == 4 and layouts.DOCUMENT.mark.match(line)


@pytest.mark.parametrize(
    ("carrier", "number", "words"),
    [
        ("Datadog, CSV", 5, "a table with commas, the text in 'Message'"),
        ("gcloud logging read", 12, "a JSON document, the text in 'textPayload'"),
        ("wrapped at 80 columns", 1, "lines wrapped at 80 columns"),
    ],
)
def test_what_was_inferred_is_told(tmp_path: Path, carrier: str, number: int, words: str) -> None:
    path = tmp_path / "export.log"
    path.write_text(CARRIERS[carrier]())
    (file,) = find_sources([str(path)]).files
    assert words in layout_in_words(file) and "of broker 3" in layout_in_words(file)
    row = explain_line(f"{path}:{number}")
    assert row["event"] and row["line"] == number


def test_files_are_found_by_what_they_hold_where_none_is_called_a_log(tmp_path: Path) -> None:
    (tmp_path / "broker-3.csv").write_text(CARRIERS["Datadog, CSV"]())
    (tmp_path / "messages").write_text(CARRIERS["stern"]())
    (tmp_path / "notes.txt").write_text("what we did\n" + LINES[0].own + "\nand so on\nand on\n" * 5)
    assert sorted(file.file for file in find_sources([str(tmp_path)]).files) == ["broker-3.csv", "messages"]


def silent(lines: Sequence[Line]) -> str:
    """Lines that do not name their broker."""
    return "".join(f"{line.own}\n" for line in lines if "id=3" not in line.own and "broker=3" not in line.own)


def test_a_log_hides_none_of_another_name_beside_it(tmp_path: Path) -> None:
    """Each is read once, where its lines or its place tell the broker; what is left out is named."""
    of_broker = tmp_path / "broker-3"
    of_broker.mkdir()
    (of_broker / "server.log").write_text(LINES[0].own + "\n")
    (of_broker / "messages").write_text(CARRIERS["stern"]())
    (of_broker / "broker-3.csv").write_text(CARRIERS["Datadog, CSV"]())
    (of_broker / "quiet").write_text(silent(LINES))
    for name, text in (("server.log.2024-01-02.gz", LINES[1].own), ("kafka.log.gz", LINES[2].own)):
        (of_broker / name).write_bytes(gzip.compress((text + "\n").encode()))
    (of_broker / "notes").write_text("what we did\n" + LINES[0].own + "\nand so on\nand on\n" * 5)
    (tmp_path / "quiet").write_text(silent(LINES))
    both = [line.own.replace("id=3", f"id={i}") for i, line in enumerate(LINES[:1] * 2, 3)]
    (tmp_path / "broker-4").mkdir()
    (tmp_path / "broker-4" / "server.log").write_text(both[1] + "\n")
    (tmp_path / "both.txt").write_text("\n".join(both))
    others = (line.own.replace("id=3", f"id={i}") + "\n" for i, line in enumerate(LINES[:1] * 3, 1))
    (tmp_path / "all.txt").write_text("".join(others) + silent(LINES))
    sources = find_sources([str(tmp_path)])
    read = {"server.log", "messages", "broker-3.csv", "quiet", "server.log.2024-01-02.gz", "kafka.log.gz"}
    read = {f"broker-3/{name}" for name in read} | {"broker-4/server.log"}
    assert {file.file for file in sources.files} == read
    (left,) = (finding for finding in sources.findings if finding.code == "evidence-logs-left")
    assert "2 files" in left.message and "all.txt, quiet" in left.message and left.severity == "info"
    assert sources.copies_left == ["both.txt"] and "both.txt" in kctl("state-log", "merge", tmp_path).err
    events = [event for event in prepare(sources).events() if event.broker_id == 3]
    expected = [(line.millis, line.message + line.trace) for line in LINES]
    assert [(event.time_ms, event.text) for event in events] == expected
    listed = rows("inventory", tmp_path).of("evidence_file")
    logs = {row["file"] for row in listed if row["what"] == "broker-log"}
    assert {row["file"] for row in listed if row["is_read"]} == read
    assert logs == read | {"all.txt", "both.txt", "quiet"}


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_rows_that_were_printed_of_logs_are_no_logs(tmp_path: Path, form: str) -> None:
    (tmp_path / "server.log").write_text("".join(f"{line.own}\n" for line in LINES))
    (tmp_path / "merged.txt").write_bytes(kctl("state-log", "merge", tmp_path, "--output", form).out)
    assert [file.file for file in find_sources([str(tmp_path)]).files] == ["server.log"]


LAYOUTS = {
    "Strimzi": """\
2025-07-03 12:03:09 INFO  [main] KafkaRaftServer:66 - [KafkaRaftServer nodeId=3] Kafka Server started
2025-07-03 12:03:19 INFO  [broker-3-to-controller] Partition:66 - [Partition orders-0 broker=3] ISR updated to 1,3 and version updated to 7
""",
    "LinkedIn": """\
2025/07/03 12:03:09.000 [KafkaRaftServer] [KafkaRaftServer nodeId=3] Kafka Server started
2025/07/03 12:03:19.000 [Partition] [Partition orders-0 broker=3] ISR updated to 1,3 and version updated to 7
""",
    "Bitnami": """\
kafka 12:03:08.00 INFO  ==> Welcome to the Bitnami kafka container
kafka 12:03:08.02 INFO  ==> ** Starting Kafka setup **
[2025-07-03 12:03:09,000] INFO [KafkaRaftServer nodeId=3] Kafka Server started (kafka.server.KafkaRaftServer)
[2025-07-03 12:03:19,000] INFO [Partition orders-0 broker=3] ISR updated to 1,3 and version updated to 7 (kafka.cluster.Partition)
""",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_distributions_under_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "broker-3"
    folder.mkdir()
    (folder / "kafka.log").write_text(LAYOUTS[name])
    ran = rows("state-log", "merge", tmp_path)
    started, isr = (row for row in ran.of("event") if row["event"])
    assert (started["time"], started["broker_id"], started["event"]) == ("2025-07-03T12:03:09.000Z", 3, "O02")
    assert (isr["time"], isr["broker_id"], isr["fields"]["topic"]) == (
        "2025-07-03T12:03:19.000Z",
        3,
        "orders",
    )
    plain = kctl("state-log", "merge", tmp_path, "--columns", "broker_id,event")
    assert plain.status == 0 and b"event\t3\tO02" in plain.out


def elsewhere(line: Line, hours: float) -> str:
    """As a broker writes a line whose clock shows another zone, without its offset."""
    return Line(line.millis + int(hours * 3_600_000), *line[1:]).own


CARRIED_LATER = 730  # milliseconds
ZONED: dict[str, Callable[[Line, str, str], str]] = {
    "CRI": lambda n, own, at: f"{at} stdout F {own}",
    "CRI, a node elsewhere": lambda n, own, at: f"{at.replace('T10:', 'T16:').replace('Z', '+06:00')} stdout F {own}",
    "syslog, RFC 5424": lambda n, own, at: f"<14>1 {at} node3 kafka 812 - - {own}",
    "docker logs -t": lambda n, own, at: f"{at} {own}",
    "oc logs": lambda n, own, at: f"[kafka-3] {at} {own}",
    "logcli": lambda n, own, at: f'{at} {{pod="kafka-3"}} {own}',
    "Docker json-file": lambda n, own, at: json.dumps({"log": own + "\n", "stream": "stdout", "time": at}),
    "Filebeat": lambda n, own, at: json.dumps({"@timestamp": at, "message": own, "kubernetes": {"pod": {"name": "kafka-3"}}}),
    "Loki's nanoseconds": lambda n, own, at: json.dumps({"stream": {"pod": "kafka-3"}, "values": [[str((n.millis + CARRIED_LATER) * 1_000_000), own]]}),
    "journalctl -o json": lambda n, own, at: json.dumps({"__REALTIME_TIMESTAMP": str((n.millis + CARRIED_LATER) * 1000), "MESSAGE": own}),
}  # fmt: skip


@pytest.mark.parametrize("hours", [9, -4.5, 0])
@pytest.mark.parametrize("carrier", ZONED)
def test_the_time_of_a_carrier_tells_the_zone_of_the_broker(
    tmp_path: Path, carrier: str, hours: float
) -> None:
    """The time is the broker's own, to the millisecond: the carrier's comes later and has the offset."""
    written_lines = [line._replace(trace="") for line in LINES]
    path = tmp_path / "export"
    path.write_text(
        "".join(
            ZONED[carrier](n, elsewhere(n, hours), n._replace(millis=n.millis + CARRIED_LATER).iso) + "\n"
            for n in written_lines
        )
    )
    assert [time for time, *_ in events_of(path)] == [line.millis for line in written_lines]
    (file,) = find_sources([str(path)]).files
    assert file.is_utc and "times with their offset" in layout_in_words(file)


def test_a_carrier_without_an_offset_tells_no_zone(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(
        table(("@timestamp", "message"), lambda n: (n.at("%b %d, %Y @ %H:%M:%S.100"), elsewhere(n, 9)))
    )
    (file,) = find_sources([str(path)]).files
    assert not file.is_utc
    first = next(iter(prepare(find_sources([str(path)]), {3: parse_zones(["3=+09:00"])[0][3]}).events()))
    assert first.time_ms == LINES[0].millis


# Two brokers in one export, of which the lines of one never name it: what names the process decides.
TWO: dict[str, Callable[[str, str], str]] = {
    "Graylog, JSON": lambda name, own: json.dumps({"timestamp": "2026-10-02T10:00:00Z", "source": name, "message": own}),
    "Docker's JSON with a tag": lambda name, own: json.dumps({"log": own + "\n", "stream": "stdout", "attrs": {"tag": name}}),
    "containers of one name on many hosts": lambda name, own: json.dumps({"container_name": "kafka", "host": name, "log": own}),
    "Swarm": lambda name, own: json.dumps({"container": "kafka", "instance": name, "line": own}),
    "journald, units of one host": lambda name, own: json.dumps({"_HOSTNAME": "h", "_SYSTEMD_UNIT": f"{name}.service", "MESSAGE": own}),
    "Papertrail, no headings": lambda name, own: f"7\t2026-10-02T10:00:00Z\t10.0.0.1\t{name}\tlocal0\t{own}",
    "a column of pods": lambda name, own: f"{name}\t{own}",
    "Graylog, CSV": lambda name, own: f'"2026-10-02T10:00:00Z","{name}","{own}"',
}  # fmt: skip


@pytest.mark.parametrize("carrier", TWO)
def test_lines_without_a_broker_are_those_of_the_process_that_the_carrier_names(
    tmp_path: Path, carrier: str
) -> None:
    form = TWO[carrier]
    halt = LINES[4].own
    text = [
        form("kafka-3", LINES[0].own),
        form("kafka-4", halt),
        form("kafka-3", LINES[1].own.replace('"it" ', "")),
    ]
    path = tmp_path / "export.txt"
    path.write_text(
        "\n".join([*(['"timestamp","source","message"'] if carrier == "Graylog, CSV" else []), *text * 3])
        + "\n"
    )
    states = {
        (row["broker_id"], row["state"]) for row in rows("state-log", "timeline", path).of("broker_state")
    }
    assert states == {(3, "up"), (4, "halted")}


def test_a_namespace_with_a_number_names_no_broker(tmp_path: Path) -> None:
    lines = [json.dumps({"namespace": "kafka-1", "log": line.own}) for line in (LINES[0], LINES[4])]
    (tmp_path / "export.json").write_text("\n".join(lines * 2))
    ran = rows("state-log", "timeline", tmp_path / "export.json")
    assert {row["broker_id"] for row in ran.of("broker_state")} == {3}
