"""`kctl schema`: JSON Schema of the rows that a command prints."""

import json

import click
from click.shell_completion import CompletionItem

from commands.catalogue import COMMANDS, Group, Verb
from commands.frame import Frame, command
from commands.render import Outcome


def named(words: tuple[str, ...]) -> Verb:
    """The command of these words; a usage error where there is none."""
    entry = COMMANDS.get(words[0])
    if isinstance(entry, Group):
        verb = entry.verbs.get(words[1]) if len(words) == 2 else None
        if verb:
            return verb
        raise click.UsageError(f"`kctl {words[0]}` has the commands {', '.join(entry.verbs)}")
    if entry and len(words) == 1:
        return entry
    raise click.UsageError(f"no command `{' '.join(words)}`")


def next_words(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The groups, or the verbs of the group that was given."""
    given = ctx.params.get("words") or ()
    entry = COMMANDS.get(given[0]) if given else None
    table: dict[str, Group | Verb] = dict(entry.verbs) if isinstance(entry, Group) else {}
    if not given:
        table = COMMANDS
    return [CompletionItem(name, help=one.help) for name, one in table.items() if name.startswith(begun)]


@command(
    "schema",
    examples="""
    kctl schema segment verify
    kctl schema finding > finding.schema.json
    """,
    status="0 printed · 2 no such command",
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND", shell_complete=next_words)
def schema(frame: Frame, words: tuple[str, ...]) -> Outcome:
    """Print the JSON Schema of a command's rows."""
    from kctl.rows.find import row_type

    verb = named(words)
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rows of kctl {' '.join(words)}",
        "anyOf": [row_type(name).schema() for name in verb.rows],
    }
    if not verb.rows:
        raise click.UsageError(f"`kctl {' '.join(words)}` prints no rows")
    return Outcome(encoded=lambda _: [json.dumps(document, indent=2).encode() + b"\n"])
