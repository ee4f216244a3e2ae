"""What programs import: the names that stay, values named as rows are, and the documents that show them."""

from __future__ import annotations

import contextlib
import html
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kctl
from kctl.errors import BadValue
from tests.conftest import recording, rows

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "unclean-election"
# A change here is one for users: it takes a line in CHANGELOG.md.
SURFACE = {
    "Cluster": ["close", "cluster_id", "plan_reassignment"],
    "Columns": ["to_arrow", "to_pandas", "to_polars"],
    "Evidence": ["audit", "compare", "findings", "hanging_transactions", "judgements", "losses", "timeline", "verify"],
    "KctlError": ["add_note", "args", "exit_code", "hint", "items", "shown", "with_traceback"],
    "Plan": ["diff", "execute", "targets"],
    "Refused": ["add_note", "args", "exit_code", "hint", "items", "shown", "with_traceback"],
    "Segment": ["batches", "records", "verify"],
    "Value": ["as_dict"],
    "Values": ["count", "index", "to_arrow", "to_pandas", "to_polars", "where"],
}  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert sorted(kctl.__all__) == sorted([*SURFACE, "__version__", "connect", "open_segment"])
    for name, members in SURFACE.items():
        kind = getattr(kctl, name)
        assert [member for member in vars_of(kind) if not member.startswith("_")] == members, name
        assert kind.__doc__
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert all(f"`{name}`" in changes or f"kctl.{name}" in changes for name in kctl.__all__ if name[0] != "_")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kctl.nothing  # noqa: B018


def vars_of(kind: type) -> list[str]:
    return sorted({name for base in kind.__mro__ if base is not object for name in vars(base)})


def test_importing_it_imports_nothing_else() -> None:
    code = "import sys, kctl; sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'click', 'kctl.errors')))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_document_says_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
    assert len(blocks) == 2
    for block in blocks:
        expected = re.findall(r"^# (.*)$", block, re.M)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(block, names)
        assert out.getvalue().splitlines() == expected


@pytest.mark.slow
def test_values_are_the_rows_that_commands_print() -> None:
    folder = recording("incidents/diverge-2.8")
    evidence = kctl.Evidence(folder)
    printed = rows("replica", "loss", folder)
    assert [loss.as_dict() for loss in evidence.losses()] == printed.of("loss")
    told = {(j.topic, j.partition): j.verdict for j in evidence.judgements().where(question="loss")}
    assert told == {(j["topic"], j["partition"]): j["verdict"] for j in printed.of("judgement")}
    timeline = rows("state-log", "timeline", folder)
    assert [row.as_dict() for row in evidence.timeline().where(kind="leader")] == timeline.of("leader")
    verified = rows("segment", "verify", folder)
    assert [row.as_dict() for row in evidence.verify()] == verified.of("finding")
    assert evidence.failures == [] and "2 rows: loss" in repr(evidence.losses())
    for values in (
        evidence.losses(),
        evidence.timeline(),
        evidence.compare(),
        evidence.judgements(),
        evidence,
    ):
        page = values._repr_html_()  # type: ignore[attr-defined]
        assert page.startswith("<") and len(page) > 500
    for shown in (evidence.losses(), evidence.losses()[0]):
        page = html.unescape(shown._repr_html_())
        assert "Lost: " in page and "<summary>" in page and "{'kind'" not in page
    # What only the report's script can do is not offered where there is no script.
    shown = html.unescape(evidence.timeline()._repr_html_())
    assert "Zoom with a time range" in shown and re.search(r'<p [^>]*\bhidden="hidden"[^>]*>Zoom', shown)
    # The picture is as wide as the notebook: the report's style fits those that may scroll.
    assert '<div class="scroll"><svg' in html.unescape(evidence.compare()._repr_html_())
    assert evidence.losses().to_arrow().num_rows == 2 and evidence.losses()[:1].__class__ is tuple


def test_a_value_cannot_be_changed_and_says_what_it_has() -> None:
    value = kctl.Value({"kind": "loss", "topic": "<b>\x1b[31m", "from_offset": 3})
    assert (
        value.topic.startswith("<b>") and value == kctl.Value(value.as_dict()) and "from_offset" in dir(value)
    )
    with pytest.raises(AttributeError, match="a loss has no to_offset; it has kind, topic, from_offset"):
        _ = value.to_offset
    with pytest.raises(AttributeError, match="cannot be changed"):
        value.topic = "other"
    for page in (value._repr_html_(), kctl.Values([value])._repr_html_()):
        assert "<b>" not in page and "\x1b" not in page and "&lt;b&gt;" in page


def test_records_of_a_file_and_of_a_folder() -> None:
    folder = next(path.parent for path in sorted(EXAMPLE.rglob("ledger-0/*.log")))
    log = sorted(folder.glob("*.log"))[0]
    dumped = rows("segment", "dump", "--records", *sorted(folder.glob("*.log"))).of("record")
    of_folder = kctl.open_segment(folder).records(columns=["offset", "value"]).to_arrow()
    assert of_folder["offset"].to_pylist() == [record["offset"] for record in dumped]
    some = kctl.open_segment(log).records(from_offset=10, to_offset=12, columns=["offset"]).to_arrow()
    assert some["offset"].to_pylist() == [10, 11, 12]
    assert (
        kctl.open_segment(folder).batches().to_polars().height
        == kctl.open_segment(folder).batches().to_pandas().shape[0]
    )


def test_what_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for what in (lambda: kctl.open_segment(tmp_path / "no"), lambda: kctl.Evidence(tmp_path / "no")):
        with pytest.raises(kctl.KctlError, match="no such file"):
            what()
    folder = tmp_path / "orders-0"
    folder.mkdir()
    with pytest.raises(kctl.KctlError, match="no segment is here"):
        kctl.open_segment(folder).batches().to_arrow()
    (folder / f"{0:020d}.log").mkdir()
    with pytest.raises(kctl.KctlError):
        kctl.open_segment(folder).records().to_arrow()
    with pytest.raises(kctl.KctlError, match="no column"):
        kctl.open_segment(folder).records(columns=["ofset"])


def test_an_audit_refuses_to_replace_another(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    shutil.copytree(EXAMPLE / "broker-1", folder)
    evidence = kctl.Evidence(folder)
    assert evidence.audit(tmp_path / "out").kind == "audit" and (tmp_path / "out" / "report.html").exists()
    with pytest.raises(kctl.Refused):
        evidence.audit(tmp_path / "out")
    assert evidence.audit(tmp_path / "out", overwrite=True).kind == "audit"


def test_a_cluster_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCTL_CONFIG", "/dev/null/none")
    with pytest.raises(BadValue, match="no cluster given"):
        kctl.connect()
    with pytest.raises(BadValue, match="no setting tls_certifcate"):
        kctl.connect(bootstrap_server="h:1", tls_certifcate="x")


def test_what_evidence_takes_and_refuses(tmp_path: Path) -> None:
    with pytest.raises(kctl.KctlError, match="nothing was examined"):
        kctl.Evidence(tmp_path)
    folder = recording("incidents/unclean-2.8")
    brokers = sorted(Path(folder).glob("moments/after/broker-*"))
    assert kctl.Evidence(brokers).paths == kctl.Evidence(*brokers).paths == tuple(map(str, brokers))


@pytest.mark.slow
def test_rows_as_frames_and_by_their_values() -> None:
    losses = kctl.Evidence(recording("incidents/unclean-2.8")).losses()
    topic = losses[0].topic
    evidence = kctl.Evidence(recording("incidents/unclean-2.8"))
    assert evidence.losses(topic=topic) == losses.where(topic=topic)
    with pytest.raises(kctl.KctlError, match="the evidence names no topic ledgre; did you mean ledger"):
        evidence.losses(topic="ledgre")
    with pytest.raises(kctl.KctlError, match="the evidence names no partition 99"):
        evidence.losses(topic=topic, partition=99)
    with pytest.raises(AttributeError, match="no row has topc; did you mean topic"):
        losses.where(topc=topic)
    frame, polars = losses.to_pandas(), losses.to_polars()
    assert (
        str(frame["first_timestamp"].dtype).startswith("datetime64")
        and str(frame["first_timestamp"].dt.tz) == "UTC"
    )
    assert frame["first_timestamp"][0].timestamp() * 1000 == losses[0].first_timestamp
    assert polars.shape == frame.shape and polars["topic"].to_list() == [row.topic for row in losses]
