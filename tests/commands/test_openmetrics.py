"""`--output openmetrics`: what a Prometheus parser reads is what the rows say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands.cli.openmetrics import HELP, Sample, group_metrics, written
from kctl.rows.live_groups import GROUP, OFFSET
from tests.conftest import HERE, kctl, recording, rows

parser = pytest.importorskip("prometheus_client.openmetrics.parser")
older = pytest.importorskip("prometheus_client.parser")
PAGE = HERE.parent / "docs" / "metrics.md"


def samples_of(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What both parsers read: that of OpenMetrics, and that of node_exporter's format, which knows no UNIT."""
    read = {}
    for family in parser.text_string_to_metric_families(text.decode()):
        assert family.type == "gauge" and family.documentation == HELP[family.name]
        for sample in family.samples:
            read[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    as_older = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in older.text_string_to_metric_families(text.decode())
        for sample in family.samples
    }
    assert read == as_older
    return read


def labelled(read: dict[Any, float], name: str, **labels: str) -> float:
    return read[name, tuple(sorted(labels.items()))]


def test_health_of_a_snapshot() -> None:
    (znodes,) = list(Path(recording("incidents/unclean-2.8")).rglob("after/znodes.jsonl"))
    ran = kctl("cluster", "health", "--snapshot", znodes, "--output", "openmetrics")
    checks = rows("cluster", "health", "--snapshot", znodes)
    read = samples_of(ran.out)
    assert ran.status == checks.status
    for row in checks.of("health"):
        if row["status"] != "unknown":
            assert labelled(read, "kctl_cluster_health_problems", check=row["check"]) == row["count"]
        unknown = labelled(read, "kctl_cluster_health_unknown", check=row["check"])
        assert unknown == (row["status"] == "unknown")
    assert labelled(read, "kctl_exit_status", command="cluster health") == ran.status
    assert labelled(read, "kctl_run_timestamp_seconds", command="cluster health") > 1.7e9


@pytest.mark.slow
def test_an_audit(tmp_path: Path) -> None:
    folder = recording("incidents/unclean-2.8")
    ran = kctl("audit", "run", folder, "--out", tmp_path / "out", "--output", "openmetrics")
    (result,) = rows("audit", "run", folder, "--out", tmp_path / "again").of("audit")
    read = samples_of(ran.out)
    assert ran.status == 5 == labelled(read, "kctl_exit_status", command="audit run")
    assert labelled(read, "kctl_audit_findings", severity="error") == result["errors"]
    assert labelled(read, "kctl_audit_lost_records") == result["lost_records"]
    lost = next(row for row in result["judgements"] if row["question"] == "loss")["lost"]
    assert labelled(read, "kctl_audit_judged", question="loss", verdict="lost") == lost > 0


def group_rows() -> Iterator[dict[str, object]]:
    yield GROUP(group='a "b"\\c\nd', members=2, lag=None)
    yield GROUP(group="billing", members=1, lag=7)
    yield OFFSET(group="billing", topic="orders", partition=0, offset=3, lag=7, high_watermark=10)
    yield OFFSET(group="billing", topic="orders", partition=1, offset=None, lag=None, high_watermark=10)


def test_groups_and_what_is_not_known() -> None:
    read = samples_of(b"".join(written(group_metrics(group_rows()))))
    assert labelled(read, "kctl_group_lag_offsets", group="billing") == 7
    assert labelled(read, "kctl_group_lag_unknown", group='a "b"\\c\nd') == 1
    assert (
        labelled(read, "kctl_group_partition_lag_offsets", group="billing", topic="orders", partition="0")
        == 7
    )
    assert not any(name == "kctl_group_lag_offsets" and '"b"' in str(labels) for name, labels in read)
    assert (
        "kctl_group_partition_offset",
        (("group", "billing"), ("partition", "1"), ("topic", "orders")),
    ) not in read


def test_no_sample_is_a_whole_file() -> None:
    assert b"".join(written([])) == b"# EOF\n"
    assert b"".join(written([Sample("kctl_audit_files", 3)])).endswith(b"kctl_audit_files 3\n# EOF\n")


def test_other_commands_have_no_metrics() -> None:
    ran = kctl("topic", "list", "--output", "openmetrics")
    assert ran.status == 2 and "openmetrics" in ran.err


def test_the_page_and_the_dashboard_name_the_metrics() -> None:
    page = PAGE.read_text()
    assert all(f"`{name}`" in page and text.rstrip(".") in page for name, text in HELP.items())
    dashboard = (HERE.parent / "examples" / "grafana-dashboard.json").read_text()
    named = set(re.findall(r"kctl_\w+", dashboard))
    assert named <= set(HELP) and len(named) >= 8
