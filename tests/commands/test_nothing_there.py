"""Where there is nothing to look at, or not what was asked for, that is said: silence would read as health."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from commands.catalogue import Verb
from commands.main import load
from tests.commands.test_catalogue import every_verb
from tests.conftest import kctl, recording, rows

UNCLEAN = "incidents/unclean-2.8"


NOBODY = "127.0.0.1:1"
# What some commands want beyond the parameters that they require.
MORE = {
    "segment rebuild": ("--check",),
    "audit sql": ("select 1",),
    "topic alter": ("--partitions", "2"),
    "reassign plan": ("--drain", "1"),
    "topic delete-records": ("--to-offset", "1"),
    "config get": ("--entity-type", "topics"),
    "group reset": ("--to-latest",),
    "group reset-plan": ("--to-latest",),
    "group delete-offsets": ("--topic", "t"),
    "acl create": ("--principal", "User:app", "--operation", "read", "--topic", "t"),
    "acl delete": ("--principal", "User:app"),
    "quota set": ("--user", "app"),
    "quota unset": ("--user", "app"),
}
# What they take in the place of any text.
VALUES = {"resource": "topic:t", "operation": "read", "principal": "User:app"}
# They look at what kctl itself knows, at a journal that may be empty, or list whatever is there.
ALWAYS_THERE = {
    "inventory", "help",
    "state-log explain", "remote partition-of", "journal list", "journal verify",
    "finding", "schema", "doctor", "completion", "config-file init", "config-file check", "config-file show",
}  # fmt: skip


def words_for(name: str, verb: Verb, folder: Path) -> list[str]:
    """The least that a command of the catalogue takes; its evidence, required or not, is the folder."""
    words = name.split()
    for parameter in load(verb).params:
        is_path = isinstance(parameter.type, click.Path)
        if isinstance(parameter, click.Option) and parameter.required:
            out = folder.with_name("out.tar.zst" if name == "collect pack" else "out")
            value = str(out) if is_path else value_of(parameter)
            words += [parameter.opts[0], value]
        elif isinstance(parameter, click.Argument) and (
            parameter.required or is_path or parameter.name == "sources"  # which may be URLs
        ):
            is_place = is_path or parameter.name == "sources"
            words.append(str(folder) if is_place else value_of(parameter))
        elif parameter.name == "timeout":
            words += ["--timeout", "0.2s"]
    return [*words, *MORE.get(name, ())]


def value_of(parameter: click.Parameter) -> str:
    """A value that the parameter takes."""
    if parameter.name in VALUES:
        return VALUES[parameter.name]
    if isinstance(parameter.type, click.Choice):
        return str(parameter.type.choices[0])
    if parameter.type.name.startswith(("integer", "IDS")):
        return "1"
    return "key=1" if parameter.name in ("value", "levels") else "any-0"


LOOKING = [(name, verb) for name, verb in every_verb() if name not in ALWAYS_THERE]


@pytest.mark.parametrize(("name", "verb"), LOOKING, ids=lambda v: v if isinstance(v, str) else "")
def test_nothing_where_a_command_looks_is_status_3(name: str, verb: Verb, tmp_path: Path) -> None:
    """Evidence without a file of Kafka's, an address that nobody listens at, a journal without a change."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    (folder / "notes.txt").write_text("nothing of Kafka's\n")
    journal = tmp_path / "journal"
    env = {"KCTL_JOURNAL": str(journal), "KCTL_BOOTSTRAP_SERVER": NOBODY, "KCTL_ANSWER_TIMEOUT": "0.2s"}
    ran = kctl(*words_for(name, verb, folder), env=env)
    assert ran.status == 3, ran.err
    assert any(str(place) in ran.err for place in (folder, NOBODY, journal)), ran.err
    if any(isinstance(one.type, click.Path) and one.nargs == -1 for one in load(verb).params):
        assert any(re.search(r" here\b|; name ", said) for said in ran.errors), f"what is missing: {ran.err}"
    assert not list(tmp_path.glob("out*"))


def test_the_exceptions_are_commands() -> None:
    assert ALWAYS_THERE | set(MORE) <= {name for name, _ in every_verb()}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["replica", "loss", "--topic", "legder"],
            "no copy of topic legder is in the evidence; did you mean ledger?",
        ),
        (["replica", "compare", "--topic", "legder"], "did you mean ledger?"),
        (["replica", "compare", "--topic", "ledger", "--partition", "9"], "no copy of ledger-9"),
        (["replica", "loss", "--partition", "9"], "no copy of a partition 9"),
        (["epoch", "show", "--topic", "legder"], "no copy of topic legder"),
        (["epoch", "compare", "--topic", "legder"], "no copy of topic legder"),
        (["epoch", "end-offset", "--epoch", "0", "--topic", "legder"], "no copy of topic legder"),
    ],
)
def test_a_topic_that_is_not_there_is_wrong_usage(words: list[str], says: str) -> None:
    ran = rows(*words, recording(UNCLEAN))
    assert ran.status == 2
    assert len(ran.errors) == 1
    assert says in ran.errors[0]


def test_topics_that_are_there_go_on() -> None:
    ran = rows("replica", "loss", "--topic", "ledger", "--topic", "legder", recording(UNCLEAN))
    assert ran.status == 2
    assert ran.of("loss")


def test_a_timeline_without_the_topic_says_so() -> None:
    ran = rows("state-log", "timeline", "--topic", "legder", recording(UNCLEAN))
    assert "no line names a leader of legder" in ran.err


@pytest.mark.slow
def test_without_pyspark_the_engine_that_needs_it_says_so(
    evidence: Callable[[str], Path], tmp_path: Path
) -> None:
    source, out, engine = str(evidence(UNCLEAN)), str(tmp_path / "report"), ("--engine", "spark")
    assert kctl("audit", "run", source, "--out", out).status == 5
    program = "import sys; sys.modules['pyspark'] = None; from commands.main import main; sys.exit(main(sys.argv[1:]))"
    for words in (("audit", "run", source, "--out", f"{out}-2"), ("audit", "sql", out, "select 1")):
        ran = subprocess.run(
            [sys.executable, "-c", program, *words, *engine], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 3, ran.stderr
        assert "Spark is not installed" in ran.stderr and "pip install 'kctl[spark]'" in ran.stderr


@pytest.mark.parametrize(
    ("folder", "name"), [("ledger-1", "remote_log_snapshot"), ("", "_rlmm_committed_offsets")]
)
def test_a_tier_audit_goes_on_past_a_folder_that_cannot_be_searched(
    folder: str, name: str, evidence: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    below = evidence(UNCLEAN)
    closed = below / "moments/before/broker-1/data" / folder / name
    real = os.stat

    def refusing(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if isinstance(path, (str, Path)) and Path(path) == closed:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", refusing)
    ran = rows("remote", "audit", below)
    assert ran.status in (3, 5), ran.err
    assert ran.of("tier_summary")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_that_was_named_is_status_3(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(b"")
    segment.chmod(0)
    assert rows("segment", "verify", segment).status == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["journal", "list"], "the journal "),
        (["elect", "status", "--snapshot", "{znodes}"], "every partition is led by its preferred leader"),
        (["consumer", "list", "--snapshot", "{znodes}"], "ZooKeeper holds no consumer group"),
        (["config", "get", "--entity-type", "brokers", "--snapshot", "{znodes}"], "nothing is set"),
        (["topic", "config", "get", "ledger", "--snapshot", "{znodes}"], "nothing is set"),
        (["reassign", "throttle", "list", "--snapshot", "{znodes}"], "no throttle is set"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_no_rows_are_said_to_people_alone(words: list[str], says: str, tmp_path: Path) -> None:
    znodes = str(recording(UNCLEAN) / "moments/before/znodes.jsonl")
    wanted = [word.format(znodes=znodes) for word in words]
    env = {"KCTL_JOURNAL": str(tmp_path / "journal")}
    ran = kctl(*wanted, env=env)
    assert (ran.status, ran.out) == (0, b"")
    assert says in ran.err
    assert len(ran.errors) == 1
    assert kctl(*wanted, "--quiet", env=env).err == ""
    assert rows(*wanted, env=env).err == ""


def test_a_tier_audit_takes_an_empty_replica_folder(tmp_path: Path) -> None:
    copy = tmp_path / "tiered"
    shutil.copytree(recording("tier/h-custom-metadata"), copy)
    emptied = [folder for folder in copy.glob("brokers/*/data/tagged-1") if folder.is_dir()]
    assert emptied
    for folder in emptied:
        for file in folder.iterdir():
            file.unlink()
    ran = rows("remote", "audit", copy)
    assert ran.status in (3, 5), ran.err
    assert ran.of("tier_summary")


def test_hanging_transactions_are_looked_for_past_a_folder_that_cannot_be_listed(
    evidence: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    below = evidence(UNCLEAN)
    for listing in (os.scandir, os.listdir):

        def refusing(path: Any = ".", real: Any = listing) -> Any:
            if os.fspath(path).endswith("/ledger-1"):
                raise PermissionError(13, "Permission denied", os.fspath(path))
            return real(path)

        monkeypatch.setattr(os, listing.__name__, refusing)
    ran = rows("transactions", "hanging", below)
    assert ran.status == 5, ran.err
    assert [one["code"] for one in ran.of("finding")] == ["internal-log-unreadable"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("topic", "describe", "--under-min-isr"), "no such partition in 1 topic"),
        (("topic", "describe", "--overrides"), "no topic overrides a configuration"),
        (("topic", "list", "--exclude-internal"), ""),
        (("reassign", "status"), "no reassignment is under way"),
    ],
)
def test_nothing_found_in_a_cluster_is_said_to_people(words: tuple[str, ...], said: str) -> None:
    export = recording(UNCLEAN) / "moments" / "after" / "znodes.jsonl"
    ran = kctl(*words, "--snapshot", export)
    assert ran.status == 0 and ran.err == (f"kctl: {said}\n" if said else "")
    assert bool(ran.out) is not bool(said)
    assert kctl(*words, "--snapshot", export, "--output", "jsonl").err == "", "programs see that no row came"
