"""Rows as metrics in the text format of OpenMetrics 1.0, for the textfile collector of node_exporter.

All are gauges: a command looks once. What is not known has no sample, and a metric of its own that says so. A file is
replaced at once: write to FILE.tmp and rename it. docs/metrics.md lists the names, which are stable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from commands.cli.frame import Frame
    from commands.cli.render import Row

NAME = "openmetrics"


class Sample(NamedTuple):
    """A value of a metric, with its labels."""

    metric: str
    value: float
    labels: Mapping[str, object] = {}


Metrics = Callable[[Iterable["Row"]], Iterator[Sample]]
HELP = {
    "kctl_cluster_health_problems": "Problems that a check of `kctl cluster health` found.",
    "kctl_cluster_health_severity": "How bad a check is: 0 good, 1 info, 2 warning, 3 error.",
    "kctl_cluster_health_unknown": "Whether what decides a check could not be read.",
    "kctl_group_members": "Members of a consumer group.",
    "kctl_group_lag_offsets": "Offsets that a group has not read, over its partitions.",
    "kctl_group_lag_unknown": "Whether the lag of a group is not known.",
    "kctl_group_partition_lag_offsets": "Offsets of a partition that a group has not read.",
    "kctl_group_partition_offset": "The offset that a group committed of a partition.",
    "kctl_group_partition_out_of_range": "Whether the log has not the offset that a group committed.",
    "kctl_audit_findings": "Findings of an audit.",
    "kctl_audit_lost_records": "Records that an audit knows to be lost.",
    "kctl_audit_lost_records_unknown": "Whether replicas could not be compared.",
    "kctl_audit_judged": "Subjects by the verdict of an audit.",
    "kctl_audit_files": "Files that an audit read.",
    "kctl_audit_bytes": "Bytes that an audit read.",
    "kctl_audit_duration_seconds": "How long an audit took.",
    "kctl_exit_status": "The exit status of the command.",
    "kctl_run_timestamp_seconds": "When the command ran.",
}
"""What each metric is."""


def written(samples: Iterable[Sample]) -> Iterator[bytes]:
    """Samples in the text format, by metric; the last line says that it is whole."""
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, []).append(sample)
    for metric, of_metric in by_metric.items():
        yield f"# TYPE {metric} gauge\n".encode()
        if metric.endswith("_seconds"):
            yield f"# UNIT {metric} seconds\n".encode()
        yield f"# HELP {metric} {HELP[metric]}\n".encode()
        for sample in of_metric:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
            text = f"{metric}{'{' + labels + '}' if labels else ''} {sample.value}\n"
            yield text.encode("utf-8", "backslashreplace")
    yield b"# EOF\n"


def _escaped(value: object) -> str:
    return str(value).replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def as_metrics(
    frame: Frame, words: str, rows: Iterable[Row], metrics: Metrics
) -> Callable[[str], Iterator[bytes] | None]:
    """What gives the rows of a command as metrics, for `Outcome.encoded`; None for other forms of output."""

    def samples() -> Iterator[Sample]:
        yield from metrics(map(frame.checked, rows))
        yield Sample("kctl_exit_status", frame.status, {"command": words})
        yield Sample("kctl_run_timestamp_seconds", round(time.time(), 3), {"command": words})

    return lambda output: written(samples()) if output == NAME else None


SEVERITIES = ("good", "info", "warning", "error")


def health_metrics(rows: Iterable[Row]) -> Iterator[Sample]:
    """The checks of `kctl cluster health`."""
    for row in rows:
        labels, status = {"check": row["check"]}, str(row["status"])
        yield Sample("kctl_cluster_health_unknown", int(status not in SEVERITIES), labels)
        if status in SEVERITIES:
            yield Sample("kctl_cluster_health_problems", _number(row["count"]), labels)
            yield Sample("kctl_cluster_health_severity", SEVERITIES.index(status), labels)


def group_metrics(rows: Iterable[Row]) -> Iterator[Sample]:
    """Groups of `kctl group describe`, and their partitions."""
    for row in rows:
        if row["kind"] == "group":
            labels = {"group": row["group"]}
            yield Sample("kctl_group_members", _number(row["members"]), labels)
            yield Sample("kctl_group_lag_unknown", int(row["lag"] is None), labels)
            yield from _known("kctl_group_lag_offsets", row["lag"], labels)
        elif "high_watermark" in row:
            labels = {name: row[name] for name in ("group", "topic", "partition")}
            yield from _known("kctl_group_partition_lag_offsets", row["lag"], labels)
            yield from _known("kctl_group_partition_offset", row["offset"], labels)
            yield Sample("kctl_group_partition_out_of_range", int(bool(row["out_of_range"])), labels)


def audit_metrics(rows: Iterable[Row]) -> Iterator[Sample]:
    """The result of `kctl audit run`, which is its last row."""
    from kctl.judging.judgement import Verdict

    for row in rows:
        if row["kind"] != "audit":
            continue
        for severity in ("error", "warning", "info"):
            yield Sample("kctl_audit_findings", _number(row[f"{severity}s"]), {"severity": severity})
        yield Sample("kctl_audit_lost_records_unknown", int(row["lost_records"] is None))
        yield from _known("kctl_audit_lost_records", row["lost_records"])
        judgements = row["judgements"]
        for coverage in judgements if isinstance(judgements, Sequence) else ():
            for verdict in Verdict:
                labels = {"question": coverage["question"], "verdict": verdict}
                yield Sample("kctl_audit_judged", _number(coverage[verdict]), labels)
        yield Sample("kctl_audit_files", _number(row["files"]))
        yield Sample("kctl_audit_bytes", _number(row["bytes"]))
        yield Sample("kctl_audit_duration_seconds", _number(row["seconds"]))


def _known(metric: str, value: object, labels: Mapping[str, object] = {}) -> Iterator[Sample]:
    if value is not None:
        yield Sample(metric, _number(value), labels)


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) else 0
