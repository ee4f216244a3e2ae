"""The rights of commands: the runbook's table is that of the code, and no live command is without its rows."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.catalogue import COMMANDS, Group
from commands.cli.rights import AS_OTHERS, markdown, rights
from commands.main import load
from tests.brokers.test_security import SEEN_BY as SEEN_BY_SESSIONS
from tests.brokers.wire.test_rights import SEEN_BY
from tests.brokers.wire.test_rights_to_change import CHANGED_BY
from tests.commands.test_catalogue import every_verb
from tests.commands.test_nothing_there import NOBODY, words_for
from tests.conftest import kctl

PAGE = Path(__file__).parents[2] / "docs" / "runbooks" / "connect-to-a-secured-cluster.md"
ACTIONS = {"topic config": ("get", "set", "unset"), "reassign throttle": ("list", "set", "clear")}
# What only ZooKeeper knows: its access lists decide, by session.
OF_ZOOKEEPER = ("consumer ", "znode ", "migration ")
ELSEWHERE = {
    **dict.fromkeys(
        ("token create", "token renew", "token expire"), "tests/brokers/access/test_tokens.py has them"
    ),
    "replica recover": "tests/brokers/wire/test_recover.py takes its rights one by one",
    "collect": "its rights are taken one by one in tests/brokers/wire/test_rights.py",
    "metadata show": "brokers do not serve the metadata log as a topic",
}


def test_the_table_of_rights_is_that_of_the_code() -> None:
    assert f"<!-- made by commands/cli/rights.py -->\n{markdown()}<!-- end -->" in PAGE.read_text("utf-8")


def test_the_commands_exist() -> None:
    for names in (*(names for names, _ in rights()), *AS_OTHERS):
        for name in names.split(", "):
            first, *rest = name.split()
            command = COMMANDS[first]
            known = command.commands(first) if isinstance(command, Group) else {first}
            assert " ".join([first, *rest[:1]]) in known, name


def live_commands(folder: Path) -> Iterator[str]:
    """The commands that ask a cluster: what options of theirs are for, or what they try where a topic is named."""
    env = {
        "KCTL_JOURNAL": str(folder / "journal"),
        "KCTL_BOOTSTRAP_SERVER": NOBODY,
        "KCTL_ANSWER_TIMEOUT": "0.2s",
    }
    for name, verb in every_verb():
        options = {parameter.name for parameter in load(verb).params}
        takes_evidence = options & {"paths", "files", "folder", "sources", "source", "scenario"}
        if options & {"snapshot", "yes"} or ("timeout" in options and not takes_evidence):
            yield from (
                (f"{name} {action}" for action in ACTIONS.get(name, ())) if name in ACTIONS else (name,)
            )
        elif takes_evidence:
            words = [
                "orders" if word == str(folder / "orders") else word
                for word in words_for(name, verb, folder / "orders")
            ]
            if NOBODY in kctl(*words, env=env).err:
                yield name


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return list(live_commands(tmp_path_factory.mktemp("live")))


def lacking(live: list[str], rows: list[str]) -> list[str]:
    """The live commands that no row is of."""
    return [name for name in live if not any(f"{row} ".startswith(f"{name} ") for row in rows)]


def first_cells(table: str) -> list[str]:
    return [re.split(" {2,}", line)[0] for line in table.strip().split("\n")]


def test_a_table_says_what_each_user_gets_of_every_live_command(live: list[str]) -> None:
    assert {"segment dump", "epoch show", "topic create", "journal undo", "token list"} < {*live}
    rows = [*first_cells(SEEN_BY), *first_cells(CHANGED_BY), *ELSEWHERE]
    of_brokers = [name for name in live if not name.startswith(OF_ZOOKEEPER)]
    assert lacking(of_brokers, rows) == []
    of_zookeeper = [name for name in live if name.startswith(OF_ZOOKEEPER)]
    assert lacking(of_zookeeper, first_cells(SEEN_BY_SESSIONS)) == []


def test_the_runbook_has_the_rights_of_every_live_command(live: list[str]) -> None:
    named = [name for names in (*(names for names, _ in rights()), *AS_OTHERS) for name in names.split(", ")]
    rest = lacking(live, [*named, "metadata show"])
    assert [name for name in rest if not name.startswith(OF_ZOOKEEPER)] == []
