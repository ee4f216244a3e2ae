"""The table of rights in the runbook is that of the code, and every command in it exists."""

from pathlib import Path

from commands.catalogue import COMMANDS, Group
from commands.cli.rights import markdown, rights

PAGE = Path(__file__).parents[2] / "docs" / "runbooks" / "connect-to-a-secured-cluster.md"


def test_the_table_of_rights_is_that_of_the_code() -> None:
    assert f"<!-- made by commands/cli/rights.py -->\n{markdown()}<!-- end -->" in PAGE.read_text("utf-8")


def test_the_commands_exist() -> None:
    for names, _ in rights():
        for name in names.split(", "):
            first, *rest = name.split()
            command = COMMANDS[first]
            assert rest[0] in command.verbs if isinstance(command, Group) else not rest, name
