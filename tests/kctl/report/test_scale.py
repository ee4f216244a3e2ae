"""The page of a large cluster's audit: 10,000 partitions and 100,000 findings stay readable and small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.audit.tables import TableWriter, write_summary
from kctl.findings import all_findings
from kctl.rows.audit import AUDIT
from tests.audit_rows import whole_row

PARTITIONS, FINDINGS, BROKERS = 10_000, 100_000, (1, 2, 3)
RENDER = """
import re, sys
from pathlib import Path
from kctl.report.page import write_report

path = write_report(Path(sys.argv[1]))
# Not ru_maxrss: that has the memory of the process that this one was forked from.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(path.stat().st_size, int(peak[1]) >> 10)
"""


def partition_of(number: int) -> dict[str, object]:
    return {"topic": f"orders-of-region-{number % 500:03}", "partition": number // 500}


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables such as an audit of a hundred brokers writes."""
    out = tmp_path_factory.mktemp("audit")
    codes = [one for one in all_findings() if one.severity.value != "info"] + list(all_findings())
    moments = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
    with (
        TableWriter(out, "findings") as findings, TableWriter(out, "lineages") as lineages,
        TableWriter(out, "segments") as segments, TableWriter(out, "verdicts") as verdicts,
        TableWriter(out, "losses") as losses, TableWriter(out, "files") as files,
        TableWriter(out, "leaders") as leaders,
    ):  # fmt: skip
        writers = {
            "findings": findings, "lineages": lineages, "segments": segments, "verdicts": verdicts, "losses": losses,
            "files": files, "leaders": leaders,
        }  # fmt: skip

        def row(table: str, values: dict[str, object]) -> None:
            writers[table].row(whole_row(table, values))

        for number in range(PARTITIONS):
            key = partition_of(number)
            row(
                "verdicts",
                {**key, "verdict": "diverged" if number % 3 else "equal", "reason": "said at length " * 10},
            )
            if number % 10 == 0:
                row("losses", {
                    **key, "from_offset": 100, "to_offset": 400, "class": "committed", "cause": "unclean_election",
                    "recoverable_from": [], "replaced": False,
                })  # fmt: skip
            for broker in BROKERS:
                file = f"broker-{broker}/data/{key['topic']}-{key['partition']}/00000000000000000000.log"
                place = {**key, "broker_id": broker, "file": file}
                epochs = [[epoch, epoch * 20] for epoch in range(50)]
                row("lineages", {
                    **place, "epochs": epochs, "log_start_offset": 0, "log_end_offset": 1000, "high_watermark": 900,
                    "local_log_start_offset": 0, "rebuilt": epochs, "folder": "",
                })  # fmt: skip
                row("segments", {**place, "base_offset": 0, "next_offset": 1000, "size_in_bytes": 1 << 30})
                row("files", {**place, "type": "log", "size_in_bytes": 1 << 30, "sha256": "ab" * 32})
                row("leaders", {
                    **key, "leader": broker, "leader_epoch": broker, "isr": [1, 2, 3], "isr_changes": [],
                    "from_time": moments[0], "to_time": moments[1], "how": "failure", "evidence": [], "cause": "",
                })  # fmt: skip
        for number in range(FINDINGS):
            one = codes[number % len(codes)]
            row("findings", {
                "code": one.code, "severity": one.severity.value, "message": f"Bytes {number} are not right. " * 8,
                **partition_of(number * 7 % PARTITIONS), "broker_id": number % 3 + 1, "position": number,
                "file": "broker-1/data/orders-of-region-000-0/00000000000000000000.log", "size_in_bytes": 10,
                "base_offset": number % 900, "last_offset": number % 900 + 9,
            })  # fmt: skip
    for writer in (findings, lineages, segments, verdicts, losses, files, leaders):
        writer.put_in_place()
    summary = dict.fromkeys(AUDIT.fields) | {
        "verdict": "Much is wrong.", "evidence": "evidence", "errors": 90_000, "warnings": 9_000, "infos": 1_000,
        "lost_records": 300_000, "partitions": PARTITIONS, "brokers": list(BROKERS), "moments": [], "files": 30_000,
        "bytes": 1 << 50, "batches": 10, "records": 10, "started": moments[0], "seconds": 1.0, "parts": [],
        "judgements": [], "kctl": "1",
    }  # fmt: skip
    write_summary(out, summary)
    return out


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc on this system")
def test_the_page_stays_small_and_is_made_in_bounded_memory(audit: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", RENDER, audit], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    size, megabytes = map(int, ran.stdout.split())
    page = (audit / "report.html").read_text()
    assert size < 5_000_000
    assert megabytes < 700, megabytes
    ranks = ["error", "warning", "info"]
    order = [ranks.index(one) for one in re.findall(r'class="finding (\w+)"', page)]
    assert order == sorted(order)
    assert len(order) > 50, "grouped by code"
    assert "SELECT * FROM findings WHERE code = " in page, "what is left out is counted and named"
    assert (
        page.count('<tr id="orders-of-region-') + page.count('<tr id="index-orders-of-region-') == PARTITIONS
    )
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "every id is one place"
    assert {one[1:] for one in re.findall(r'href="(#[^"]+)"', page) if "=" not in one} <= set(ids)
    assert "300,000 committed offsets are gone" in page
