"""What all tests share: recordings unpacked once, evidence that must not change, and kctl as a function."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from tests.levels import later, left_to, nightly, repeated, what_levels_add

HERE = Path(__file__).parent
RECORDINGS = HERE / "data" / "recordings"
UNPACKED = Path(os.environ.get("KCTL_TEST_CACHE", HERE.parent / ".cache")) / "recordings"
# Nothing is timed: machines are slow, and busy. A commit passes or fails whenever it is tested; other examples of
# properties, and twice as many, are for the night (`--hypothesis-profile=other-examples`), fewer for `make test-quick`.
settings.register_profile("same-examples", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("other-examples", deadline=None, print_blob=True, max_examples=100)
settings.register_profile("few-examples", settings.get_profile("same-examples"), max_examples=20)
settings.load_profile("same-examples")


def examples(count: int) -> int:
    """How many examples of a property this run tries, where it would be `count` at night."""
    return count * settings().max_examples // 100


REQUIRED = frozenset(filter(None, os.environ.get("KCTL_TEST_REQUIRE", "").split(",")))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write the golden files of tests/cases anew")


# --- what a run leaves behind -------------------------------------------------------------------------

OF_KCTL = ".kctl"  # marks a run's temporary folder, beside which those of other projects lie


@pytest.hookimpl(trylast=True)  # pytest's own folder is made by then
def pytest_configure(config: pytest.Config) -> None:
    """What runs that were killed left is removed; pytest itself keeps it for three days."""
    if not has_own_folder(config):
        return
    own = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    (own / OF_KCTL).touch()
    for mark in own.parent.glob(f"pytest-*/{OF_KCTL}"):
        lock = mark.with_name(".lock")  # there until its run ends, with the number of the process
        if lock.exists() and mark.parent != own and not is_running(lock.read_text()):
            shutil.rmtree(mark.parent, ignore_errors=True)


def is_running(process: str) -> bool:
    return not process.isdecimal() or Path("/proc", process).exists() or not Path("/proc").exists()


def has_own_folder(config: pytest.Config) -> bool:
    return not (hasattr(config, "workerinput") or config.option.basetemp or config.option.collectonly)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What is kept after failures is not after Ctrl-C."""
    if exitstatus == pytest.ExitCode.INTERRUPTED and has_own_folder(session.config):
        shutil.rmtree(session.config._tmp_path_factory.getbasetemp(), ignore_errors=True)  # type: ignore[attr-defined]


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What kctl, Spark's JVM and other programs make below the folder for temporary files goes with this run's."""
    folder = tmp_path_factory.getbasetemp() / "tmp"
    folder.mkdir()
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
        os.environ[name] = f"{os.environ.get(name, '')} -Djava.io.tmpdir={folder}".strip()


# --- what this machine can run ------------------------------------------------------------------------


def missing(name: str) -> str | None:
    """Why tests that need `name` cannot run here; None when they can."""
    if name in ("java", "spark", "brokers"):
        java = shutil.which("java")
        if not java:
            return "no java on the PATH"
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        if int(said.split('"')[1].split(".")[0] if '"' in said else 0) < 17:
            return f"java is older than 17: {said.splitlines()[:1]}"
    for program in ("mvn", "javac") if name == "brokers" else ():
        if not shutil.which(program):
            return f"no {program} on the PATH"
    if name == "spark":
        try:
            import pyspark  # noqa: F401
        except ImportError:
            return "the extra `spark` is not installed"
    return None


# What tests that are skipped for want of it need.
INSTALLS = {
    "no java": "Java 17 with its compiler (Debian: openjdk-17-jdk-headless)",
    "java is older": "Java 17 with its compiler (Debian: openjdk-17-jdk-headless)",
    "no mvn": "Maven (Debian: maven), which fetches Kafka's jars",
    "extra `spark`": "the extra: pip install 'kctl[spark]'",
}
# Tests that share what is dear to start stay together in one process; the others are spread over all.
TOGETHER = ("brokers", "spark")
CLUSTERS = ("shared", "live", "made", "guarded")  # the fixtures whose parameter chooses a cluster


def shared_by(item: pytest.Item, name: str) -> str:
    """What is started once for this test and others: Spark, a cluster of one version, or a file's own."""
    if name == "spark":
        return name
    chosen = getattr(getattr(item, "callspec", None), "params", {})
    return next((f"{f}-{chosen[f]}" for f in CLUSTERS if f in chosen), item.path.stem)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases = Counter[str]()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if reason := repeated(item.nodeid):
            item.add_marker(pytest.mark.repeated(reason))
            if reason := nightly(item.nodeid):
                item.add_marker(pytest.mark.matrix(reason))
        else:
            if reason := later(item.nodeid, cases[function]):
                item.add_marker(pytest.mark.later(reason))
            cases[function] += 1
        for name in TOGETHER:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(shared_by(item, name)))
    for name in ("java", "spark", "brokers"):
        marked = [item for item in items if item.get_closest_marker(name)]
        why = missing(name) if marked else None
        if why and (name in REQUIRED or (name == "spark" and "java" in REQUIRED)):
            pytest.exit(f"tests marked {name} are required here (KCTL_TEST_REQUIRE): {why}", returncode=1)
        if why:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=why))


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: a tenth of a run was looking through them for garbage."""
    gc.set_threshold(50_000, 20, 100)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """The parser of Python 3.11, which shows where a test failed, breaks where the collector runs in it (gh-106905)."""
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: Any, nextitem: pytest.Item | None) -> None:
    """A cluster stops after its last test: brokers with nothing to do take a tenth of a core each from other tests."""
    if nextitem is not None and shared_by(nextitem, "brokers") == shared_by(item, "brokers"):
        return
    for name in set(CLUSTERS) & set(item.fixturenames):
        for fixture in item._fixtureinfo.name2fixturedefs.get(name, ()):
            fixture.finish(item._request)


LEFT = pytest.StashKey[Counter[tuple[str, str]]]()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the tests that this level leaves to others, by level and reason."""
    for item in items:
        left = item.config.stash.setdefault(LEFT, Counter())
        # Reasons are of markers, not of the name again, to which xdist may have added a group since.
        markers = {
            mark.name: str(mark.args[0])
            if mark.name in ("repeated", "matrix", "later") and mark.args
            else mark.name
            for mark in item.iter_markers()
        }
        left[left_to(markers)] += 1
        worker = getattr(
            item.config, "workeroutput", None
        )  # of xdist: the process that prints collects nothing
        if worker is not None:
            worker["left"] = list(left.items())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[LEFT] = Counter(dict(getattr(node, "workeroutput", {}).get("left", ())))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left = config.stash.get(LEFT, Counter())
    if not config.option.keyword and not config.option.file_or_dir:
        for line in what_levels_add(left):
            terminalreporter.write_line(line)
    skipped: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[reason] = skipped.get(reason, 0) + 1
    for reason, count in sorted(skipped.items()):
        terminalreporter.write_line(f"skipped {count} tests: {reason}")
    for what, to_install in INSTALLS.items():
        if any(what in reason for reason in skipped):
            terminalreporter.write_line(f"to run these too, install {to_install}")


# --- recordings ---------------------------------------------------------------------------------------


@functools.cache  # an archive does not change during a run
def recording(name: str) -> Path:
    """The folder of a recording such as `incidents/unclean-2.8`, unpacked once. Never write to it."""
    archive = RECORDINGS / f"{name}.tar.xz"
    stamp = hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    folder = UNPACKED / f"{name}.{stamp}.now"
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
            # Archives hold one time for all files, years before the records in them: files are as old as their copy.
            for member in (members := tar.getmembers()):
                member.mtime = time.time()
            tar.extractall(partial, members)
        with contextlib.suppress(OSError):  # another test process was quicker
            partial.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
    return folder / Path(name).name


def recordings(kind: str) -> list[str]:
    """Names of the recordings of a kind: `segments`, `incidents`, `tier` or `logs`."""
    return sorted(f"{kind}/{p.name.removesuffix('.tar.xz')}" for p in (RECORDINGS / kind).glob("*.tar.xz"))


def vectors(name: str) -> Any:
    """The cases of a vector file."""
    return msgspec.json.decode((HERE / "data" / "vectors" / f"{name}.json").read_bytes())


def digest(folder: Path) -> str:
    """A digest of every name, mode and byte below a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        total.update(
            f"{path.relative_to(folder)}\0{path.lstat().st_mode}\0".encode("utf-8", "surrogateescape")
        )
        if path.is_file() and not path.is_symlink():
            total.update(path.read_bytes())
    return total.hexdigest()


@contextlib.contextmanager
def unchanged(folder: Path) -> Iterator[Path]:
    """A folder that fails the test when one byte of it changes, or a file appears in it."""
    before = digest(folder)
    yield folder
    assert digest(folder) == before, f"evidence was changed: {folder}"


@pytest.fixture
def evidence(tmp_path: Path) -> Iterator[Any]:
    """A function from a recording's name to a private copy of it that must not change."""
    with contextlib.ExitStack() as stack:

        def lend(name: str) -> Path:
            copy = tmp_path / "evidence" / name
            shutil.copytree(recording(name), copy, symlinks=True)
            return stack.enter_context(unchanged(copy))

        yield lend


# --- kctl as a function -------------------------------------------------------------------------------


@dataclass
class Ran:
    """How a run of kctl ended and what it printed."""

    status: int
    out: bytes
    err: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        """What went wrong, each with what to do next behind a semicolon."""
        return errors_in(self.err)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == kind]

    def codes(self, *severities: str) -> list[str]:
        return sorted(r["code"] for r in self.of("finding") if not severities or r["severity"] in severities)


def errors_in(text: str) -> list[str]:
    """The errors that kctl printed to standard error, each with what to do next behind a semicolon."""
    return text.replace("\n      ", "; ").splitlines()


class Terminal(io.TextIOWrapper):
    """Standard output as a terminal."""

    def isatty(self) -> bool:
        return True


def kctl(
    *args: object, stdin: bytes = b"", env: dict[str, str] | None = None, columns: int | None = None
) -> Ran:
    """Run kctl in this process; with `columns` on a terminal of that width.

    With `--output jsonl` (use `rows`) every row is held against its schema.
    """
    from commands.main import main

    out, err = io.BytesIO(), io.BytesIO()
    out.close = err.close = lambda: None  # type: ignore[method-assign]  # kept open when the wrapper goes
    saved = sys.stdin, sys.stdout, sys.stderr
    saved_env = dict(os.environ)
    os.environ.update({"KCTL_CONFIG": os.devnull + "/none", "KCTL_DEBUG": "1", **(env or {})})
    os.environ.update({"COLUMNS": str(columns)} if columns else {})
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    kind = Terminal if columns else io.TextIOWrapper
    sys.stdout = kind(out, encoding="utf-8", errors="surrogateescape", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="surrogateescape", write_through=True)
    try:
        status = main([str(a) for a in args])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved
        os.environ.clear()
        os.environ.update(saved_env)
    return Ran(status, out.getvalue(), err.getvalue().decode("utf-8", "surrogateescape"))


def rows(*args: object, **options: Any) -> Ran:
    """Run kctl with `--output jsonl` and read its rows, each checked against `kctl schema`."""
    ran = kctl(*args, "--output", "jsonl", **options)
    decoder = msgspec.json.Decoder()
    ran.rows = [decoder.decode(line) for line in ran.out.splitlines() if line]
    check_rows([str(a) for a in args], ran.rows)
    return ran


def check_rows(args: list[str], found: list[dict[str, Any]]) -> None:
    """Every row is of a kind that the catalogue promises for the command and has that kind's schema."""
    from jsonschema import Draft202012Validator

    from commands.catalogue import verb_of
    from kctl.rows import row_type

    verb = verb_of(args)
    assert verb, args[:2]
    kinds: dict[str, list[Any]] = {}
    for name in verb.rows:
        one = row_type(name)
        kinds.setdefault(one.kind, []).append(Draft202012Validator(one.schema()))
    count: dict[str, int] = {}
    for row in found:
        kind = row["kind"]
        assert next(iter(row)) == "kind", row
        assert kind in kinds, (
            f"{' '.join(args[:2])} printed a row of kind {kind}, which the catalogue does not list"
        )
        count[kind] = count.get(kind, 0) + 1
        if count[kind] <= 300:
            errors = [min((e.message for e in v.iter_errors(row)), default="") for v in kinds[kind]]
            assert "" in errors, f"{row}: {errors}"
