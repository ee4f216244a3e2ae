"""The list of commands: where each lives, its short help, and the rows it prints.

`kctl --help` is written from this table alone, so that nothing else is imported; a test holds the short
help to the command's own, and `kctl schema` reads the rows. A new command is one more line here.
Rows are named as `MODULE.NAME` in `kctl/rows`.
"""

from typing import NamedTuple


class Verb(NamedTuple):
    """A command: `MODULE:FUNCTION` under `commands`, its first line of help, the rows it prints."""

    target: str
    help: str
    rows: tuple[str, ...] = ()


class Group(NamedTuple):
    """Commands about one subject."""

    help: str
    verbs: dict[str, Verb]


FINDING = "common.FINDING"

COMMANDS: dict[str, Group | Verb] = {
    "completion": Verb("completion:completion", "Print the completion script of a shell."),
}
