"""The static table of commands agrees with the commands, and each command's help is complete."""

from collections.abc import Iterator

import click
import pytest

from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import GLOBAL_NAMES, GlobalOption, KctlCommand
from commands.main import EXIT_STATUS, load
from kctl.model import TopicPartition
from kctl.operations.elections import ElectionCandidate
from kctl.rows import row_type
from tests.conftest import kctl


def every_verb() -> Iterator[tuple[str, Verb]]:
    for name, entry in COMMANDS.items():
        if isinstance(entry, Group):
            yield from entry.commands(name).items()
        else:
            yield name, entry


@pytest.mark.parametrize(("name", "verb"), list(every_verb()), ids=lambda v: v if isinstance(v, str) else "")
def test_the_table_is_what_the_command_says(name: str, verb: Verb) -> None:
    command = load(verb)
    assert isinstance(command, KctlCommand)
    assert command.help, name
    assert command.help.strip().splitlines()[0] == verb.help
    assert any(f"kctl {name}" in line for line in command.examples), f"an example with `kctl {name}`"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name}"
    for row in verb.rows:
        row_type(row)
    own = {p.name for p in command.params if not isinstance(p, GlobalOption)}
    assert own.isdisjoint(GLOBAL_NAMES), "a value of the command that a global option would get"


ZOOKEEPER_SUBJECTS = ("topic", "config", "reassign", "elect", "cluster", "consumer", "znode")
ACTIONS = {"topic config", "reassign throttle"}  # read and change, by their first argument


@pytest.mark.parametrize("subject", ZOOKEEPER_SUBJECTS)
def test_every_command_that_reads_a_cluster_takes_a_snapshot(subject: str) -> None:
    entry = COMMANDS[subject]
    assert isinstance(entry, Group)
    for name, verb in entry.verbs.items():
        options = {parameter.name for parameter in load(verb).params}
        changes = "yes" in options
        assert changes or "snapshot" in options, f"{subject} {name}"
        assert ("snapshot" in options) is (not changes or f"{subject} {name}" in ACTIONS), f"{subject} {name}"


def test_help_of_everything_ends_with_the_exit_status() -> None:
    for name, _ in every_verb():
        ran = kctl(*name.split(), "--help")
        assert ran.status == 0, name
        assert b"Exit status:" in ran.out, name
    assert EXIT_STATUS.split(":")[0].encode() in kctl("--help").out


def test_help_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from commands.main import main; main(['--help']);"
        "print([m for m in ('numpy','pyarrow','rich','kazoo','pyspark','kafka','msgspec') if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr.strip() == "[]"


def test_a_row_of_a_value() -> None:
    """Keys are attributes of the value; a key that neither gives is an error, so that a renamed attribute is noticed."""
    row_type_ = row_type("cluster_wide.ELECTION")
    candidate = ElectionCandidate(TopicPartition("orders", 3), "done", "it leads")
    given = {"replicas": [1, 2], "isr": [1], "leader": 1, "preferred_leader": 1}
    given |= {"lost_at_least": None, "lost_at_most": None}
    row = row_type_.of(candidate, **given)
    assert list(row) == row_type_.required
    assert (row["topic"], row["partition"], row["state"], row["reason"]) == ("orders", 3, "done", "it leads")
    with pytest.raises(AttributeError):
        row_type_.of(candidate)
    with pytest.raises(TypeError):
        row_type_.of(candidate, **given, surplus=1)
