"""What nobody lists: the lines of three brokers in one file, as logging systems, consoles and people write them.

Nested, escaped, framed, with dates of other countries, and with lines of other programs between; each line is given to its own
broker, or to none.
"""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from formats.broker_logs.exports.documents import document_of
from kctl.broker_logs.merging import prepare
from kctl.broker_logs.sources import find_sources
from tests.kctl.test_log_carriers import LINES, Line


def of_three() -> list[tuple[int, Line]]:
    """The lines of three brokers, one of each after the other."""
    return [
        (
            broker,
            line._replace(
                message=line.message.replace("id=3", f"id={broker}").replace("broker=3", f"broker={broker}")
            ),
        )
        for line in LINES
        for broker in (1, 2, 3)
    ]


ALL = of_three()


def cat(form: Callable[[int, Line], str]) -> str:
    return "".join(form(broker, line) for broker, line in ALL)


def per(form: Callable[[int, Line, str], str]) -> str:
    return "".join(form(broker, line, text) for broker, line in ALL for text in line.own.split("\n"))


def groups(form: Callable[[int, list[Line]], str]) -> str:
    """The lines of one broker after those of another."""
    return "".join(form(broker, [line for of, line in ALL if of == broker]) for broker in (1, 2, 3))


def csvof(
    names: Sequence[str],
    row: Callable[[int, Line], Sequence[object]],
    delim: str = ",",
    rev: bool = False,
    quoting: int = csv.QUOTE_MINIMAL,
) -> str:
    """A table, `rev` with the newest line first."""
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delim, quoting=quoting)  # type: ignore[arg-type]
    rows.writerow(names)
    every: Iterable[tuple[int, Line]] = reversed(ALL) if rev else ALL
    rows.writerows(row(broker, line) for broker, line in every)
    return out.getvalue()


def one(line: Line) -> str:
    """The line without what was thrown."""
    return line.own.splitlines()[0]


def ms(line: Line) -> str:
    return f"{line.millis % 1000:03}"


def esc_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def counted_octets(text: str) -> str:
    return f"{len(text)} {text}\n"


OF_THREE: dict[str, str] = {
    "epoch-us nested": cat(lambda b,n: json.dumps({"ts":n.millis*1000,"res":{"k8s":{"pod":f"kafka-{b}"}},"rec":{"sev":n.level,"logger":n.logger,"msg":n.message,"ex":{"stack_trace":n.trace[1:]}}})+"\n"),
    "CRLF + ANSI + compose": per(lambda b,n,t: f"\x1b[3{b}mkafka-{b}  |\x1b[0m {t}\r\n"),
    "other programs between": "".join("zookeeper-1 | 2026-10-02 10:00:00,000 [myid:1] - INFO [main:QuorumPeer@1] - hello\n" + "connect-1 | [2026-10-02 10:00:01,000] INFO Kafka Connect started (org.apache.kafka.connect.runtime.Connect)\n" + "".join(f"kafka-{b} | {t}\n" for t in n.own.split("\n")) for b,n in ALL),
    "nested json string twice": cat(lambda b,n: json.dumps({"host":f"kafka-{b}","message":json.dumps({"log":json.dumps({"level":n.level,"logger":n.logger,"message":n.message,"time":n.millis,"stack_trace":n.trace[1:]})})})+"\n"),
    "tsv no heading": cat(lambda b,n: f"{n.millis}\tkafka-{b}\t{n.own.splitlines()[0]}\n"),
    "csv semicolons multi": "time;pod;log\n"+cat(lambda b,n: f'{n.iso};kafka-{b};"{n.own.replace(chr(34),chr(34)*2)}"\n'),
    "yaml list": cat(lambda b,n: f"- pod: kafka-{b}\n  log: '{n.own.splitlines()[0]}'\n"),
    "ansible json stdout_lines": json.dumps({"plays":[{"tasks":[{"hosts":{f"kafka-{b}":{"stdout_lines":[t for c,n in ALL if c==b for t in n.own.split("\n")]} for b in (1,2,3)}}]}]},indent=1),
    "salt": "".join(f"kafka-{b}:\n"+"".join(f"    {t}\n" for c,n in ALL if c==b for t in n.own.split("\n")) for b in (1,2,3)),
    "markdown table": "| time | pod | line |\n|---|---|---|\n"+cat(lambda b,n: f"| {n.iso} | kafka-{b} | {n.own.splitlines()[0]} |\n"),
    "syslog octet count": per(lambda b,n,t: counted_octets(f"<14>1 {n.iso} kafka-{b} kafka 812 - - {t}")),
    "cef": cat(lambda b,n: f"CEF:0|Apache|Kafka|3.9|100|log|3|dhost=kafka-{b} msg={n.own.splitlines()[0]}\n"),
    "date log4j DATE": "".join(f"kafka-{b} | {n.at('%d %b %Y %H:%M:%S')},{n.millis%1000:03} {n.level} [main] {n.logger} - {n.message}{n.trace}\n" for b,n in ALL),
    "python repr dicts": cat(lambda b,n: repr({"pod":f"kafka-{b}","log":n.own.splitlines()[0]})+"\n"),
    "logfmt": cat(lambda b,n: f'ts={n.iso} pod=kafka-{b} msg={json.dumps(n.own)}\n'),
    "screen ts": per(lambda b,n,t: f"[kafka-{b}] {t}\n"),
    "xml events with host": "<Events>"+cat(lambda b,n: f'<Event timeMillis="{n.millis}" level="{n.level}" loggerName="{n.logger}"><Message>{html.escape(n.message)}</Message><ContextMap><item key="host" value="kafka-{b}"/></ContextMap></Event>\n')+"</Events>",
    "tmux pipe": per(lambda b,n,t: f"kafka-{b}│ {t}\n"),
    'dd/MM/yyyy layout': cat(lambda b,n: f"kafka-{b} | {n.at('%d/%m/%Y %H:%M:%S')},{ms(n)} {n.level} [main] {n.logger} - {n.message}{n.trace}\n"),
    'dd/MM/yyyy in the carrier': per(lambda b,n,t: f"{n.at('%d/%m/%Y %H:%M:%S')} kafka-{b} {t}\n"),
    'dd.MM.yyyy in the carrier': per(lambda b,n,t: f"{n.at('%d.%m.%Y %H:%M:%S')} kafka-{b} {t}\n"),
    'MM/dd/yyyy AM csv': csvof(["Time","Host","Message"],lambda b,n:(n.at('%m/%d/%Y %I:%M:%S %p'),f"kafka-{b}",n.own)),
    'dd/MMM/yyyy nginx': per(lambda b,n,t: f"kafka-{b} [{n.at('%d/%b/%Y:%H:%M:%S')} +0000] {t}\n"),
    'own head dd/MM/yyyy': cat(lambda b,n: f"kafka-{b} [{n.at('%d/%m/%Y %H:%M:%S')},{ms(n)}] {n.level} {n.message} ({n.logger}){n.trace}\n"),
    'own head dd.MM.yyyy': cat(lambda b,n: f"kafka-{b} [{n.at('%d.%m.%Y %H:%M:%S')},{ms(n)}] {n.level} {n.message} ({n.logger}){n.trace}\n"),
    'dd-MM-yyyy': cat(lambda b,n: f"kafka-{b} {n.at('%d-%m-%Y %H:%M:%S')}.{ms(n)} [main] {n.level} {n.logger} - {n.message}{n.trace}\n"),
    'dd-MMM-yyyy (tomcat)': cat(lambda b,n: f"kafka-{b} {n.at('%d-%b-%Y %H:%M:%S')}.{ms(n)} {n.level} [main] {n.logger} {n.message}{n.trace}\n"),
    'html escaped': per(lambda b,n,t: f"kafka-{b}: {html.escape(t)}\n"),
    'html table': "<table><tr><th>pod</th><th>line</th></tr>\n"+cat(lambda b,n: f"<tr><td>kafka-{b}</td><td>{html.escape(n.own)}</td></tr>\n")+"</table>\n",
    'html pre': "<html><body>\n"+groups(lambda b,ns: f"<h2>kafka-{b}</h2>\n<pre>\n"+"".join(html.escape(n.own)+"\n" for n in ns)+"</pre>\n")+"</body></html>\n",
    'html spans': per(lambda b,n,t: f'<div class="line"><span class="pod">kafka-{b}</span> <span class="msg">{html.escape(t)}</span></div>\n'),
    'html br': "<pre>"+per(lambda b,n,t: f'kafka-{b} {html.escape(t)}<br/>\n')+"</pre>",
    'json html escaped': cat(lambda b,n: json.dumps({"pod":f"kafka-{b}","log":html.escape(n.own)})+"\n"),
    'csv html escaped': csvof(["pod","log"],lambda b,n:(f"kafka-{b}",html.escape(n.own))),
    'json doubly escaped': cat(lambda b,n: json.dumps({"pod":f"kafka-{b}","log":esc_json(n.own)})+"\n"),
    'go json html escapes': cat(lambda b,n: json.dumps({"pod":f"kafka-{b}","log":n.own}).replace("<","\\u003c").replace(">","\\u003e").replace("&","\\u0026")+"\n"),
    'logcli with heads': 'http://loki:3100/loki/api/v1/query_range?direction=BACKWARD&end=1&limit=30&query=%7Bapp%3D%22kafka%22%7D&start=1\nCommon labels: {app="kafka", namespace="p"}\n'+"".join(f'{n.at("%Y-%m-%dT%H:%M:%S")}Z {{pod="kafka-{b}"}} {one(n)}\n' for b,n in reversed(ALL)),
    'datadog csv': csvof(["Date","Host","Service","Content"],lambda b,n:(n.iso,f"kafka-{b}","kafka",n.own),rev=True,quoting=csv.QUOTE_ALL),
    'splunk csv': csvof(["_bkt","_cd","_indextime","_raw","_serial","_si","_sourcetype","_time","host","index","linecount","source","splunk_server"],lambda b,n:("main~1","1:2",str(n.millis//1000),n.own,"0","idx\nmain","log4j",n.iso.replace("Z","+00:00"),f"kafka-{b}","main",str(n.own.count("\n")+1),"/var/log/kafka/server.log","idx1"),rev=True,quoting=csv.QUOTE_ALL),
    'splunk xml': "<?xml version='1.0' encoding='UTF-8'?>\n<results preview='0'>\n<meta><fieldOrder><field>_raw</field></fieldOrder></meta>\n"+cat(lambda b,n: f"<result offset='0'>\n<field k='host'><value><text>kafka-{b}</text></value></field>\n<field k='_time'><value><text>{n.iso}</text></value></field>\n<field k='_raw'><v xml:space='preserve' trunc='0'>{html.escape(n.own)}</v></field>\n</result>\n")+"</results>\n",
    'gcp csv': csvof(["insertId","jsonPayload.message","logName","receiveTimestamp","resource.labels.pod_name","resource.type","severity","textPayload","timestamp"],lambda b,n:("a","","projects/p/logs/stdout",n.iso,f"kafka-{b}","k8s_container","INFO",n.own,n.iso),rev=True),
    'gcp yaml (gcloud logging read)': cat(lambda b,n: f"---\ninsertId: abc{b}\nlogName: projects/p/logs/stdout\nreceiveTimestamp: '{n.iso}'\nresource:\n  labels:\n    container_name: kafka\n    pod_name: kafka-{b}\n  type: k8s_container\nseverity: INFO\ntextPayload: '{one(n).replace(chr(39),chr(39)*2)}'\ntimestamp: '{n.iso}'\n"),
    'yaml with block scalars': cat(lambda b,n: f"- pod: kafka-{b}\n  log: |\n"+"".join(f"    {t}\n" for t in n.own.split("\n"))),
    'yaml double quoted': cat(lambda b,n: f"- pod: kafka-{b}\n  log: {json.dumps(n.own)}\n"),
    'azure kql csv': "\ufeff"+csvof(["TimeGenerated [UTC]","PodName","ContainerName","LogMessage"],lambda b,n:(n.at('%m/%d/%Y, %I:%M:%S')+f".{ms(n)} "+n.at('%p'),f"kafka-{b}","kafka",n.own),quoting=csv.QUOTE_ALL),
    'azure LogMessage dynamic': json.dumps({"tables":[{"name":"PrimaryResult","columns":[{"name":"TimeGenerated","type":"datetime"},{"name":"PodName","type":"string"},{"name":"LogMessage","type":"dynamic"}],"rows":[[n.iso,f"kafka-{b}",json.dumps({"level":n.level,"logger":n.logger,"message":n.message,"time":n.iso,"stack_trace":n.trace[1:]})] for b,n in ALL]}]}),
    'az table': "TimeGenerated             PodName    LogMessage\n------------------------  ---------  ----------------------------------------\n"+cat(lambda b,n: f"{n.iso}  kafka-{b}    {one(n)}\n"),
    'elastic search': json.dumps({"hits":{"hits":[{"_source":{"@timestamp":n.iso,"message":n.own,"kubernetes":{"pod":{"name":f"kafka-{b}"},"namespace":"p"},"host":{"name":"node1"}},"sort":[n.millis,5]} for b,n in reversed(ALL)]}}),
    'elastic esql json': json.dumps({"columns":[{"name":"@timestamp","type":"date"},{"name":"kubernetes.pod.name","type":"keyword"},{"name":"message","type":"text"}],"values":[[n.iso,f"kafka-{b}",n.own] for b,n in ALL]}),
    'elastic fields api': json.dumps({"hits":{"hits":[{"_index":"x","fields":{"@timestamp":[n.iso],"message":[n.own],"kubernetes.pod.name":[f"kafka-{b}"]}} for b,n in ALL]}}),
    'kibana csv': csvof(["@timestamp","kubernetes.pod.name",""," message"],lambda b,n:(n.at("%b %d, %Y @ %H:%M:%S.")+ms(n),f"kafka-{b}","",n.own),rev=True,quoting=csv.QUOTE_ALL),
    'opensearch ppl': json.dumps({"schema":[{"name":"@timestamp","type":"timestamp"},{"name":"pod","type":"string"},{"name":"log","type":"string"}],"datarows":[[n.iso,f"kafka-{b}",n.own] for b,n in ALL],"total":15,"size":15}),
    'graylog csv': csvof(["timestamp","source","message"],lambda b,n:(n.iso,f"kafka-{b}",n.own),rev=True,quoting=csv.QUOTE_ALL),
    'stern default': per(lambda b,n,t: f"kafka-{b} kafka {t}\n"),
    'stern -t': per(lambda b,n,t: f"kafka-{b} kafka {n.iso[:-1]}456789Z {t}\n"),
    'stern + and -': "".join(f"+ kafka-{b} › kafka\n" for b in (1,2,3))+per(lambda b,n,t: f"kafka-{b} kafka {t}\n")+"- kafka-1\n",
    'stern -A namespaces': "".join(f"+ prod kafka-{b} › kafka\n" for b in (1,2,3))+per(lambda b,n,t: f"prod kafka-{b} kafka {t}\n"),
    'kubetail': per(lambda b,n,t: f"[kafka-{b}] {t}\n"),
    'oc logs prefix': per(lambda b,n,t: f"[pod/kafka-{b}/kafka] {t}\n"),
    'crictl -t': groups(lambda b,ns: f"==> kafka-{b} <==\n"+"".join(f"{n.iso[:-1]}456789+00:00 {t}\n" for n in ns for t in n.own.split("\n"))),
    'crictl log file prefix': per(lambda b,n,t: f"/var/log/pods/p_kafka-{b}_ab-12/kafka/0.log:{n.iso[:-1]}456789Z stdout F {t}\n"),
    'k9s saved': per(lambda b,n,t: f"kafka-{b} {n.iso} {t}\n"),
    'lnav csv': csvof(["log_line","log_time","log_level","log_path","log_body","log_raw_text"],lambda b,n:("1",n.iso[:-1].replace("T"," "),n.level.lower(),f"/logs/kafka-{b}/server.log",n.message,n.own)),
    'insights csv': csvof(["@timestamp","@logStream","@message"],lambda b,n:(n.iso[:-1].replace("T"," "),f"prod-Broker-{b}",n.own),rev=True),
    'insights table': "-"*80+"\n|   @timestamp            |  @logStream  | @message |\n|-------------------------|--------------|----------|\n"+cat(lambda b,n: f"| {n.iso[:-1].replace('T',' ')} | prod-Broker-{b} | {one(n)} |\n"),
    'aws logs tail --format detailed': per(lambda b,n,t: f"{n.iso[:-1]}000+00:00 prod-Broker-{b} {t}\n"),
    'aws output text filter-log-events': cat(lambda b,n: f"EVENTS\t3749{b}\t{n.millis+500}\tprod-Broker-{b}\t{one(n)}\t{n.millis}\n")+"SEARCHEDLOGSTREAMS\tprod-Broker-1\tTrue\n",
    'aws output table': "-"*60+"\n|   FilterLogEvents   |\n+--+\n||  events ||\n"+cat(lambda b,n: f"||  prod-Broker-{b} | {n.millis} | {one(n)}  ||\n"),
    'aws yaml': "events:\n"+cat(lambda b,n: f"- eventId: '3'\n  ingestionTime: {n.millis+5}\n  logStreamName: prod-Broker-{b}\n  message: '{one(n)}'\n  timestamp: {n.millis}\n"),
    'papertrail archive': "".join(f"{i}\t{n.iso[:-5]}Z\t{n.iso[:-5]}Z\t11\tkafka-{b}\t10.0.0.{b}\tUser\tInfo\tkafka\t{one(n)}\n" for i,(b,n) in enumerate(ALL)),
    'papertrail cli': cat(lambda b,n: f"{n.at('%b %d %H:%M:%S')} kafka-{b} server.log: {one(n)}\n"),
    'vector kubernetes_logs': cat(lambda b,n: json.dumps({"file":f"/var/log/pods/p_kafka-{b}_1/kafka/0.log","kubernetes":{"pod_name":f"kafka-{b}","pod_node_name":"n1","pod_labels":{"app":"kafka","statefulset.kubernetes.io/pod-name":f"kafka-{b}"}},"message":n.own,"source_type":"kubernetes_logs","stream":"stdout","timestamp":n.iso})+"\n"),
    'otlp json lines': cat(lambda b,n: json.dumps({"resourceLogs":[{"resource":{"attributes":[{"key":"k8s.pod.name","value":{"stringValue":f"kafka-{b}"}},{"key":"host.name","value":{"stringValue":"n1"}}]},"scopeLogs":[{"scope":{"name":n.logger},"logRecords":[{"timeUnixNano":str(n.millis*1000000),"severityNumber":9,"severityText":n.level,"body":{"stringValue":n.message},"attributes":[{"key":"exception.stacktrace","value":{"stringValue":n.trace[1:]}}] if n.trace else []}]}]}]})+"\n"),
    'otel debug exporter detailed': cat(lambda b,n: f"ResourceLog #0\nResource SchemaURL: \nResource attributes:\n     -> k8s.pod.name: Str(kafka-{b})\nScopeLogs #0\nScopeLogs SchemaURL: \nInstrumentationScope  \nLogRecord #0\nObservedTimestamp: {n.iso[:-1].replace('T',' ')} +0000 UTC\nTimestamp: {n.iso[:-1].replace('T',' ')} +0000 UTC\nSeverityText: \nSeverityNumber: Unspecified(0)\nBody: Str({one(n)})\nAttributes:\n     -> log.file.name: Str(server.log)\nTrace ID: \nSpan ID: \nFlags: 0\n"),
    'journalctl verbose': per(lambda b,n,t: f"{n.at('%a %Y-%m-%d %H:%M:%S')}.{ms(n)}000 UTC [s=1;i=1]\n    PRIORITY=6\n    _HOSTNAME=kafka-{b}\n    MESSAGE={t}\n"),
    'journalctl short-iso -m': per(lambda b,n,t: f"{n.at('%Y-%m-%dT%H:%M:%S')}+0000 kafka-{b} kafka-server-start.sh[812]: {t}\n"),
    'journalctl with-unit': per(lambda b,n,t: f"{n.at('%a %Y-%m-%d %H:%M:%S')} UTC kafka-{b} kafka.service/kafka-server-start.sh[812]: {t}\n"),
    'journalctl boots and notes': "-- Journal begins at Fri 2026-10-02 09:00:00 UTC. --\n"+per(lambda b,n,t: f"{n.at('%b %d %H:%M:%S')} kafka-{b} kafka[812]: {t}\n")+"-- Boot 0123456789abcdef --\n",
    '5424 with data': per(lambda b,n,t: f'<14>1 {n.iso} kafka-{b} kafka 812 - [meta sequenceId="1" ip="10.0.0.{b}"][origin software="rsyslogd"] {t}\n'),
    '5424 traditional-file': per(lambda b,n,t: f'{n.iso[:-1]}000+00:00 kafka-{b} kafka[812] {t}\n'),
    'winsw wrapper': per(lambda b,n,t: f"{n.at('%Y-%m-%d %H:%M:%S')},{ms(n)} DEBUG - kafka-{b} - {t}\r\n"),
    'procrun': per(lambda b,n,t: f"[{n.at('%Y-%m-%d %H:%M:%S')}] [info]  [ 1234] [kafka-{b}] {t}\r\n"),
    'nssm': per(lambda b,n,t: f"{n.at('%Y-%m-%d %H:%M:%S')}.{ms(n)}: kafka-{b}: {t}\r\n"),
    'jsw': per(lambda b,n,t: f"INFO   | jvm 1    | {n.at('%Y/%m/%d %H:%M:%S')} | kafka-{b} | {t}\n"),
    'powershell get-content -wait': per(lambda b,n,t: f"kafka-{b}:server.log:12:{t}\r\n"),
    'powershell format-list': cat(lambda b,n: f"\r\nTime    : {n.at('%d/%m/%Y %H:%M:%S')}\r\nHost    : kafka-{b}\r\nMessage : {one(n)}\r\n\r\n"),
    'powershell export-csv': '#TYPE System.Management.Automation.PSCustomObject\r\n'+csvof(["PSComputerName","Line","Path"],lambda b,n:(f"kafka-{b}",n.own,"C:\\kafka\\logs\\server.log"),quoting=csv.QUOTE_ALL),
    'powershell json': json.dumps([{"value":one(n),"PSPath":"C:\\kafka","PSComputerName":f"kafka-{b}","RunspaceId":"7f","PSShowComputerName":True} for b,n in ALL],indent=4),
    'logstash rubydebug': cat(lambda b,n: "{\n"+f'      "@version" => "1",\n    "@timestamp" => {n.iso},\n          "host" => "kafka-{b}",\n       "message" => {json.dumps(n.own)}\n'+"}\n"),
    'pdsh': per(lambda b,n,t: f"kafka-{b}: {t}\n"),
    'parallel-ssh': groups(lambda b,ns: f"[{b}] 10:00:0{b} [SUCCESS] kafka-{b}\n"+"".join(n.own+"\n" for n in ns)),
    'ansible adhoc': groups(lambda b,ns: f"kafka-{b} | CHANGED | rc=0 >>\n"+"".join(n.own+"\n" for n in ns)),
    'ansible yaml callback': groups(lambda b,ns: f"ok: [kafka-{b}] => \n  msg: |-\n"+"".join(f"    {t}\n" for n in ns for t in n.own.split("\n"))),
    'ansible debug default': groups(lambda b,ns: f"ok: [kafka-{b}] => "+json.dumps({"out.stdout_lines":[t for n in ns for t in n.own.split("\n")]},indent=4)+"\n"),
    'nomad alloc logs': per(lambda b,n,t: f"kafka-{b}.stdout.0: {t}\n"),
    'foreman': per(lambda b,n,t: f"{n.at('%H:%M:%S')} kafka.{b} | {t}\n"),
    'pm2': per(lambda b,n,t: f"{b}|kafka-{b}  | {n.at('%Y-%m-%d %H:%M:%S')}: {t}\n"),
    'pm2 json': cat(lambda b,n: json.dumps({"message":n.own+"\n","timestamp":n.iso,"type":"out","process_id":b,"app_name":f"kafka-{b}"})+"\n"),
    'svlogd/multilog tai64n': per(lambda b,n,t: f"@{(n.millis//1000)+0x400000000000000a:016x}{(n.millis%1000)*1000000:08x} kafka-{b} {t}\n"),
    's6 T': per(lambda b,n,t: f"{n.iso[:-1].replace('T',' ')}456789  kafka-{b}: {t}\n"),
    'runit socklog': per(lambda b,n,t: f"{n.at('%Y-%m-%d_%H:%M:%S')}.{ms(n)}12 daemon.info: {n.at('%b %d %H:%M:%S')} kafka-{b}: {t}\n"),
    'cloud foundry': per(lambda b,n,t: f"   {n.iso[:-1].replace('Z','')}+0000 [APP/PROC/KAFKA-{b}/0] OUT {t}\n"),
    'azure container apps': cat(lambda b,n: json.dumps({"TimeStamp":n.iso,"Log":one(n),"RevisionName":"k--1","ContainerAppName":f"kafka-{b}"})+"\n"),
    'ECS firelens': cat(lambda b,n: json.dumps({"source":"stdout","log":n.own,"container_id":"ab-12","container_name":f"/ecs-kafka-{b}","ecs_cluster":"prod","ecs_task_definition":"kafka:3"})+"\n"),
    'confluent operator json': cat(lambda b,n: json.dumps({"app":"kafka","clusterId":"c","server":f"kafka-{b}","level":n.level,"log_time":n.iso,"logger":n.logger,"message":n.message,"thread":"main","throwable":n.trace[1:]})+"\n"),
    'gelf null separated': "".join(json.dumps({"version":"1.1","host":f"kafka-{b}","short_message":n.message,"full_message":n.message+n.trace,"timestamp":n.millis/1000,"level":{"INFO":6,"WARN":4,"ERROR":3}[n.level],"_logger":n.logger,"_level":n.level})+"\0" for b,n in ALL),
    'msgpack-like fluentd symbol': cat(lambda b,n: f'{n.at("%Y-%m-%d %H:%M:%S")} +0000 kube.kafka-{b}: {json.dumps({"log":n.own,"stream":"stdout"})}\n'),
    'fluent-bit tail json lines time': cat(lambda b,n: json.dumps({"date":n.millis/1000,"log":n.own,"kubernetes":{"pod_name":f"kafka-{b}"}})+"\n"),
    'rsyslog json template': cat(lambda b,n: json.dumps({"timereported":n.iso,"hostname":f"kafka-{b}","programname":"kafka","msg":" "+n.own})+"\n"),
    'syslog-ng json': cat(lambda b,n: json.dumps({"PROGRAM":"kafka","PRIORITY":"info","MESSAGE":n.own,"HOST":f"kafka-{b}","DATE":n.at("%b %d %H:%M:%S")})+"\n"),
    'leef': cat(lambda b,n: f"LEEF:2.0|Apache|Kafka|3.9|x|devTime={n.millis}\tidentHostName=kafka-{b}\tmsg={one(n)}\n"),
    'new relic nrql': json.dumps({"results":[{"events":[{"timestamp":n.millis,"message":n.own,"hostname":f"kafka-{b}"} for b,n in ALL]}]}),
    'dynatrace': json.dumps({"results":[{"timestamp":n.millis,"status":"INFO","content":n.own,"additionalColumns":{"k8s.pod.name":[f"kafka-{b}"]}} for b,n in ALL]}),
    'better stack': cat(lambda b,n: json.dumps({"dt":n.iso,"raw":json.dumps({"pod":f"kafka-{b}","message":n.own})})+"\n"),
    'victorialogs': cat(lambda b,n: json.dumps({"_time":n.iso,"_stream":f'{{pod="kafka-{b}"}}',"_stream_id":"00","_msg":n.own})+"\n"),
    'clickhouse TSV': "timestamp\tpod\tbody\n"+cat(lambda b,n: f"{n.iso[:-1].replace('T',' ')}\tkafka-{b}\t"+n.own.replace("\\","\\\\").replace("\t","\\t").replace("\n","\\n")+"\n"),
    'clickhouse Vertical': cat(lambda b,n: f"Row {b}:\n──────\ntimestamp: {n.iso[:-1]}\npod:       kafka-{b}\nbody:      {one(n)}\n\n"),
    'clickhouse JSONCompact': json.dumps({"meta":[{"name":"timestamp","type":"DateTime"},{"name":"pod","type":"String"},{"name":"body","type":"String"}],"data":[[n.iso,f"kafka-{b}",n.own] for b,n in ALL],"rows":15},indent=1),
    'psql table': "      ts       |   pod   |   line   \n---------------+---------+---------\n"+cat(lambda b,n: f" {n.iso} | kafka-{b} | {one(n)}\n")+"(15 rows)\n",
    'mysql \\G': cat(lambda b,n: f"*************************** {b}. row ***************************\n  ts: {n.iso}\n pod: kafka-{b}\nline: {one(n)}\n"),
    'slack paste': cat(lambda b,n: f"kafka-{b} APP  10:00 AM\n```{n.own}```\n"),
    'jira code': groups(lambda b,ns: f"{{code:title=kafka-{b}}}\n"+"".join(n.own+"\n" for n in ns)+"{code}\n"),
    'markdown fences': groups(lambda b,ns: f"### kafka-{b}\n\n```\n"+"".join(n.own+"\n" for n in ns)+"```\n\n"),
    'markdown fences bold': groups(lambda b,ns: f"**kafka-{b}**\n\n```log\n"+"".join(n.own+"\n" for n in ns)+"```\n\n"),
    'github issue details': groups(lambda b,ns: f"<details><summary>kafka-{b}</summary>\n\n```\n"+"".join(n.own+"\n" for n in ns)+"```\n</details>\n"),
    'asciidoc': groups(lambda b,ns: f".kafka-{b}\n----\n"+"".join(n.own+"\n" for n in ns)+"----\n"),
    'script typescript': "Script started on 2026-10-02\n"+groups(lambda b,ns: f"[ops@kafka-{b} ~]$ cat server.log\r\n"+"".join(n.own.replace("\n","\r\n")+"\r\n" for n in ns))+"[ops@kafka-3 ~]$ exit\r\n",
    'asciinema v2': json.dumps({"version":2,"width":80,"height":24})+"\n"+per(lambda b,n,t: json.dumps([1.5,"o",f"kafka-{b} | {t}\r\n"])+"\n"),
    'jupyter text': json.dumps({"cells":[{"outputs":[{"name":"stdout","output_type":"stream","text":[f"kafka-{b}: {t}\n" for b,n in ALL for t in n.own.split("\n")]}]}]}),
    'pino-pretty': per(lambda b,n,t: f"[{n.at('%H:%M:%S')}.{ms(n)}] INFO (kafka-{b}/812): {t}\n"),
    'gitlab ci': per(lambda b,n,t: f"{n.iso[:-1]}456Z 01O kafka-{b} {t}\n"),
    'docker local json attrs': cat(lambda b,n: json.dumps({"log":one(n)+"\n","stream":"stdout","attrs":{"com.docker.compose.service":f"kafka-{b}"},"time":n.iso})+"\n"),
    'windows event csv': csvof(["Level","Date and Time","Source","Event ID","Task Category","Computer","Description"],lambda b,n:("Information",n.at('%d/%m/%Y %H:%M:%S'),"kafka","0","None",f"kafka-{b}",n.own)),
    'windows event xml': "<Events>"+cat(lambda b,n: f"<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System><Provider Name='kafka'/><TimeCreated SystemTime='{n.iso}'/><Computer>kafka-{b}</Computer></System><EventData><Data>{html.escape(n.own)}</Data></EventData></Event>\n")+"</Events>",
    'eventlog table': "TimeCreated            Computer  Message\n-----------            --------  -------\n"+cat(lambda b,n: f"{n.at('%d/%m/%Y %H:%M:%S')}    kafka-{b}   {one(n)}\n"),
    'excel utf16 tsv': "\ufeff"+csvof(["Time","Pod","Line"],lambda b,n:(n.iso,f"kafka-{b}",n.own),delim="\t"),
    'ltsv': cat(lambda b,n: f"time:{n.iso}\thost:kafka-{b}\tmessage:{one(n)}\n"),
    'double pipe': cat(lambda b,n: f"{n.iso}||kafka-{b}||{one(n)}\n"),
    'json5-ish keys': cat(lambda b,n: f"{{pod: 'kafka-{b}', log: {json.dumps(n.own)}}}\n"),
    'toml': cat(lambda b,n: f"[[line]]\npod = \"kafka-{b}\"\nlog = {json.dumps(n.own)}\n\n"),
    'edn': cat(lambda b,n: f"{{:pod \"kafka-{b}\" :log {json.dumps(n.own)}}}\n"),
    'go map': cat(lambda b,n: f"map[log:{one(n)} pod:kafka-{b} stream:stdout]\n"),
    'kafka-console-consumer (fluent to topic)': cat(lambda b,n: f"CreateTime:{n.millis}\tPartition:0\tkafka-{b}\t{one(n)}\n"),
    'kcat -J': cat(lambda b,n: json.dumps({"topic":"logs","partition":0,"offset":1,"tstype":"create","ts":n.millis,"key":f"kafka-{b}","payload":n.own})+"\n"),
    'the logger before the text': per(lambda b,n,t: f"<<kafka-{b}>> {n.at('%Y-%m-%d %H:%M:%S')},{ms(n)} {n.level:<5} [{n.logger}] (main) {n.message}\n" if t == one(n) else f"<<kafka-{b}>> {t}\n"),
    'a thread behind the logger': per(lambda b,n,t: f"<<kafka-{b}>> {n.at('%Y-%m-%d %H:%M:%S')},{ms(n)} {n.level} {n.message} ({n.logger}) [main]\n" if t == one(n) else f"<<kafka-{b}>> {t}\n"),
}  # fmt: skip


@pytest.mark.parametrize("carrier", OF_THREE)
def test_lines_of_three_brokers_are_each_of_its_own(tmp_path: Path, carrier: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(OF_THREE[carrier].encode("utf-16" if "utf16" in carrier else "utf-8"))
    expected = sorted((broker, line.millis, line.level, line.message, line.logger) for broker, line in ALL)
    events = (
        (event.broker_id, event.time_ms, event.level, event.text.partition("\n")[0].rstrip(), event.logger)
        for event in prepare(find_sources([str(path)])).events()
    )
    messages = {line.message for _, line in ALL}
    assert sorted(event for event in events if event[3] in messages) == expected


@pytest.mark.parametrize(
    ("form", "behind"),
    [
        ("<<kafka-{broker}>> {own} {number:08x}", " (kafka.log.Log) 00000000"),
        ("<<kafka-{broker}>> {time} INFO (kafka.log.Log) Created log for partition t-{number}", "t-0"),
        ("<<kafka-{broker}>> {time} INFO (kafka.log.Log) Loading done", " INFO (kafka.log.Log) Loading done"),
        (
            "<<kafka-{broker}>> {time} INFO (kafka.log.Log) Connected to kafka-{number}",
            " Connected to kafka-0",
        ),
        ("<<kafka-{broker}>> {time} INFO [kafka.log.Log] (main) Deleted t-{number}", "(main) Deleted t-0"),
    ],
)
def test_a_text_behind_what_looks_like_a_logger_is_none_of_the_mark(form: str, behind: str) -> None:
    text = "".join(
        form.format(
            broker=number % 3,
            number=number,
            time=line.at("%Y-%m-%d %H:%M:%S,100"),
            own=f"[{line.at('%Y-%m-%d %H:%M:%S,100')}] INFO Loading ({line.logger})",
        )
        + "\n"
        for number in range(60)
        for line in LINES[1:2]
    )
    document = document_of(text.encode())
    assert document is not None
    lines = list(document.lines(iter([text.encode()])))
    assert {line.origin for line in lines} == {"kafka-0", "kafka-1", "kafka-2"}
    assert lines[0].text.endswith(behind)


RECORDS = {
    "sorted YAML": "---\nlevel: INFO\nmessage: {quoted}\npod: kafka-{broker}\n",
    "a blank line between": "message: {own}\nsource: kafka-{broker}\n\n",
    "Format-List": "Message : {own}\r\nPodName : kafka-{broker}\r\n\r\n",
    "text of a field below a heading": "kafka-{broker}:\n    message: {own}\n",
    "the process before the text": "---\npod: kafka-{broker}\nmessage: {quoted}\n",
}


@pytest.mark.parametrize("form", RECORDS)
def test_a_record_is_of_the_process_that_it_names(form: str) -> None:
    brokers = (0, 1, 1, 2, 0, 0, 2, 1)
    records = (
        RECORDS[form].format(broker=n, own=one(LINES[3]), quoted=json.dumps(one(LINES[3]))) for n in brokers
    )
    text = "".join(records).encode()
    document = document_of(text)
    assert document is not None
    assert [line.origin for line in document.lines(iter([text]))] == [f"kafka-{n}" for n in brokers]


# Nothing in these names a process that is a broker's, or tells one from another.
NOT_RETURNED = {
    "instances": per(lambda b, n, t: f"kafka/{b}: stdout | {t}\n"),
    "containers": per(lambda b, n, t: f"{'abc'[b - 1]}81c0ffee42 | {t}\n"),
    "a host for all": per(lambda b, n, t: f"{n.iso} kafka-9 kafka[812]: {t}\n"),
    "no mark": per(lambda b, n, t: f"{t}\n"),
    "records without a host": cat(lambda b, n: f"---\nseverity: INFO\ntextPayload: '{one(n)}'\ntimestamp: '{n.iso}'\n"),
    "a host in some records": cat(lambda b, n: f"---\ntextPayload: '{one(n)}'\n" + ("pod_name: kafka-1\n" if b == 1 else "")),
    "a heading in what was thrown": "".join(f"{n.own}\njava.net.UnknownHostException: kafka-{b % 3 + 1}\n<title>kafka</title>\n" for b, n in ALL),
}  # fmt: skip


@pytest.mark.parametrize("carrier", NOT_RETURNED)
def test_no_line_is_given_to_another_broker(tmp_path: Path, carrier: str) -> None:
    path = tmp_path / "export"
    path.write_text(NOT_RETURNED[carrier])
    brokers: dict[str, set[int | None]] = {}
    for broker, line in ALL:
        brokers.setdefault(line.message, {None}).add(broker)
    events = [
        (event.text.partition("\n")[0].rstrip(), event.broker_id)
        for event in prepare(find_sources([str(path)])).events()
    ]
    told = [(message, broker_id) for message, broker_id in events if message in brokers]
    assert len(told) >= len(ALL) and all(broker_id in brokers[message] for message, broker_id in told)


# The clock shows the second of October, the twenty-third, and the second again; the others are of another country.
@pytest.mark.parametrize(
    ("form", "days", "doubtful"),
    [
        ("%d/%m/%Y", 0, True),
        ("%d/%m/%Y", 21, False),
        ("%m/%d/%Y", 21, False),
        ("%d.%m.%Y", 0, False),
        ("%d-%m-%Y", 0, True),
        ("%m-%d-%Y", 21, False),
    ],
)
@pytest.mark.parametrize("mark", ["", "kafka-3 | "])
def test_a_date_that_may_begin_with_the_month_is_doubted(
    tmp_path: Path, form: str, days: int, doubtful: bool, mark: str
) -> None:
    lines = [line._replace(millis=line.millis + days * 86_400_000, trace="") for line in LINES]
    path = tmp_path / "server.log"
    path.write_text("".join(f"{mark}{dated(n, form)}\n" for n in lines))
    sources = find_sources([str(path)])
    assert [event.time_ms for event in prepare(sources).events()] == [line.millis for line in lines]
    assert ("log-day-or-month" in {finding.code for finding in sources.findings}) is doubtful


def dated(line: Line, form: str) -> str:
    return f"[{line.at(form + ' %H:%M:%S')},{ms(line)}] {line.level} {line.message} ({line.logger})"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"])
@pytest.mark.parametrize("mark", ["", "kafka-3 | "])
def test_the_end_of_a_log_tells_what_its_start_leaves_open(tmp_path: Path, form: str, mark: str) -> None:
    lines = [LINES[0]._replace(millis=LINES[0].millis + 10_000 * number) for number in range(3000)]
    lines += [LINES[1]._replace(millis=LINES[1].millis + 20 * 86_400_000 + number) for number in range(2000)]
    path = tmp_path / "server.log"
    path.write_text("".join(f"{mark}{dated(line, form)}\n" for line in lines))
    sources = find_sources([str(path)])
    assert [event.time_ms for event in prepare(sources).events()] == [line.millis for line in lines]
    assert "log-day-or-month" not in {finding.code for finding in sources.findings}
