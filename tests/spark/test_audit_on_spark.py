"""`kctl audit run --engine spark` writes the tables that the local engine writes, laid out by topic."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kctl.audit.parts import PARTS
from kctl.audit.tables import Tables
from tests.audit_rows import cut_all, equal_audits
from tests.conftest import kctl, recording, recordings, unchanged

pytestmark = pytest.mark.spark
ON_SPARK = ("--engine", "spark", "--master", "local[2]")
ROOT = Path(__file__).parents[2]
UNCLEAN = "incidents/unclean-2.8"


# Of each kind and age; the others cost minutes and are for the matrix.
IN_EVERY_RUN = {
    UNCLEAN, "incidents/pauses-3.9", "segments/0.8.2.2", "segments/0.11.0.3",
    "segments/3.9.1-kraft", "tier/a-healthy", "tier/f-damage",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.matrix)
        for kind in ("incidents", "segments", "tier")
        for one in recordings(kind)
    ],
)
def test_both_engines_write_the_same_tables(spark: Any, tmp_path: Path, name: str) -> None:
    options = () if name == UNCLEAN else ("--no-sha256",)  # each costs jobs of its own
    with unchanged(recording(name)) as folder:
        local = kctl("audit", "run", folder, "--out", tmp_path / "local", "--jobs", "1", *options)
        ran = kctl("audit", "run", folder, "--out", tmp_path / "spark", *options, *ON_SPARK)
    assert ran.status == local.status
    assert ran.err == local.err
    equal_audits(tmp_path / "local", tmp_path / "spark")
    assert [p.name for p in (tmp_path / "spark").iterdir() if p.name.startswith(".")] == []


def test_spark_s_pages_say_what_a_job_is_for(spark: Any, tmp_path: Path) -> None:
    jobs = spark.sparkContext._jsc.sc().statusStore()
    before = jobs.jobsList(None).size()
    assert kctl("audit", "run", recording(UNCLEAN), "--out", tmp_path / "out", *ON_SPARK).status == 5
    seen = jobs.jobsList(None)
    new = [seen.apply(at) for at in range(seen.size() - before)]  # the newest come first
    said = {re.sub(r"[\d,]+", "N", job.description().get()) for job in new}
    assert said == {
        "kctl audit: reach N probes", "kctl audit: verify N folders", "kctl audit: verify N files",
        "kctl audit: compare N partitions",
    }  # fmt: skip
    assert len({job.jobGroup().get() for job in new}) == 1
    assert Tables(tmp_path / "out").summary["retries"] == 0


def files_of(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def test_files_lie_in_the_folder_of_their_table_and_an_overwriting_run_replaces(
    spark: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    kctl("audit", "run", recording(UNCLEAN), "--out", out, *ON_SPARK)
    first = files_of(out)
    for name in Tables(out).names():
        assert all(one.suffix == ".parquet" for one in (out / name).iterdir())
    assert kctl("audit", "run", recording(UNCLEAN), "--out", out, *ON_SPARK).status == 4
    assert kctl("audit", "run", recording(UNCLEAN), "--out", out, "--overwrite", *ON_SPARK).status == 5
    assert files_of(out) == first


def test_folders_with_many_batches_write_files_of_their_own_topic(
    spark: Any, tmp_path: Path, corpus: Path
) -> None:
    """More than `OWN_PART_ELSEWHERE` batches are in none of the recordings."""
    from benchmarks.corpus import make, shape_of

    make(tmp_path / "evidence", shape_of("none-1x100"), 300_000)
    for out, options in ((tmp_path / "local", ()), (tmp_path / "spark", ON_SPARK)):
        kctl("audit", "run", tmp_path / "evidence", "--out", out, *options)
    equal_audits(tmp_path / "local", tmp_path / "spark")
    assert Tables(tmp_path / "spark").count("batches") > 1000
    (part,) = (tmp_path / "spark" / "batches").iterdir()
    assert part.name not in ("part-00000.parquet", "part-.parquet")


def test_a_partition_that_is_cut_has_the_same_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hurt_evidence: Path
) -> None:
    kctl("audit", "run", hurt_evidence, "--out", tmp_path / "whole", "--jobs", "1")
    cut_all(monkeypatch)
    jobs = spark.sparkContext._jsc.sc().statusStore()
    kctl("audit", "run", hurt_evidence, "--out", tmp_path / "cut", *ON_SPARK)
    equal_audits(tmp_path / "whole", tmp_path / "cut")
    seen = jobs.jobsList(None)
    said = {seen.apply(at).description().getOrElse(None) for at in range(seen.size())}
    assert any(one and re.search(r"verify \d+ parts of logs", one) for one in said)


def test_a_run_that_fails_leaves_no_half_table(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=broken),))
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="cheese"):
        kctl("audit", "run", recording(UNCLEAN), "--out", out, *ON_SPARK)
    assert list(out.iterdir()) == []


def test_a_run_that_was_killed_goes_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evidence: Any
) -> None:
    folder, out = evidence(UNCLEAN), tmp_path / "out"
    kctl("audit", "run", folder, "--out", tmp_path / "whole", *ON_SPARK)

    def killed(audit: Any) -> Any:
        yield from PARTS[0].rows(audit)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("kctl.audit.run.PARTS", (PARTS[0]._replace(rows=killed), *PARTS[1:]))
        assert kctl("audit", "run", folder, "--out", out, "--resume", *ON_SPARK).status == 130
    assert [one.name for one in out.iterdir()] == [".resume"]
    kept = sorted((out / ".resume").glob("*.report"))
    assert len(kept) > 5
    kept[0].write_bytes(b"")  # torn by a crash of the machine
    times = {one: one.stat().st_mtime_ns for one in kept}
    with monkeypatch.context() as patched:
        patched.setattr("kctl.audit.run.forget", lambda out: None)
        kctl("audit", "run", folder, "--out", out, "--resume", *ON_SPARK)
    assert [one for one in kept if one.stat().st_mtime_ns != times[one]] == kept[:1]
    kctl("audit", "run", folder, "--out", out, "--resume", *ON_SPARK)
    assert not (out / ".resume").exists()
    equal_audits(tmp_path / "whole", out)


def test_both_demos_write_equal_tables(tmp_path: Path) -> None:
    """The programs of `make demo` and `make demo-spark`; Spark says nothing of its own."""
    for name, options in (("demo", ()), ("demo-spark", ON_SPARK)):
        ran = subprocess.run(
            [ROOT / "examples" / "demo", Path(sys.executable).parent / "kctl", *options],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env={**os.environ, "KCTL_DEMO_OUT": str(tmp_path / name), "KCTL_CONFIG": "/none"},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr == ""
    equal_audits(tmp_path / "demo", tmp_path / "demo-spark")
    makefile = (ROOT / "Makefile").read_text()
    assert "@examples/demo $(BIN)/kctl\n" in makefile
    assert "@examples/demo $(BIN)/kctl --engine spark --master 'local[*]'\n" in makefile
