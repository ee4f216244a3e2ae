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
    "finding": Verb(
        "finding:finding",
        "Say what a finding means, where it comes from and what to do.",
        ("house.FINDING_TYPE",),
    ),
    "schema": Verb("schema:schema", "Print the JSON Schema of a command's rows."),
    "doctor": Verb(
        "doctor:doctor",
        "Say what is set, from where, and whether codecs, CRC, Java and Spark are in order.",
        ("house.SETTING", "house.CHECK"),
    ),
    "completion": Verb("completion:completion", "Print the completion script of a shell."),
    "replica": Group(
        "Replicas of a partition, from copies of brokers' log directories.",
        {
            "simulate": Verb(
                "replica_simulate:simulate",
                "Play a scenario of produce, fetch, crash, restart and elect over a model of the brokers.",
                ("replica.REPLICA_STATE", "replica.SIMULATION", "replica.VIOLATION", "replica.EXPLORATION"),
            ),
        },
    ),
}
