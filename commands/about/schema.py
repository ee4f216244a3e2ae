"""`kctl schema`: the JSON Schema of the rows that a command prints."""

import json

import click
from click.shell_completion import CompletionItem

from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import Frame, command
from commands.cli.options import flag
from commands.cli.render import Outcome
from kctl.errors import BadValue, near_names


def named(words: tuple[str, ...]) -> Verb:
    """The command of these words. Raises UsageError for an unknown command."""
    entry = COMMANDS.get(words[0])
    if isinstance(entry, Group):
        verb = entry.verbs.get(words[1]) if len(words) == 2 else None if words[1:] else entry.own
        if verb:
            return verb
        raise click.UsageError(f"`kctl {words[0]}` has the commands {', '.join(entry.verbs)}")
    if entry and len(words) == 1:
        return entry
    hint = near_names(words[0], COMMANDS, otherwise="`kctl --help` lists the commands")
    raise BadValue(f"no command `{' '.join(words)}`", hint)


def next_words(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The groups, or the verbs of the group that was given."""
    words = ctx.params.get("words") or ()
    group = COMMANDS.get(words[0]) if words else None
    table: dict[str, Group | Verb] = (
        dict(group.verbs) if isinstance(group, Group) else {} if words else COMMANDS
    )
    return [CompletionItem(name, help=entry.help) for name, entry in table.items() if name.startswith(begun)]


@command("schema", paged=True, status="0 printed · 2 no such command")
@click.argument("words", nargs=-1, required=True, metavar="COMMAND", shell_complete=next_words)
@flag("--files", "The schema of the files that the command reads, for editors.")
def schema(frame: Frame, words: tuple[str, ...], files: bool) -> Outcome:
    """Print the JSON Schema of the rows of a command.

    $ kctl schema segment verify
    $ kctl schema finding > finding.schema.json
    $ kctl schema --files apply > cluster.schema.json
    """
    from kctl.rows import row_type

    verb = named(words)
    if files:
        if words not in (("apply",), ("diff",)):
            raise click.UsageError(f"`kctl {' '.join(words)}` reads no file of this kind")
        from kctl.cluster_file.schema import file_schema

        file = json.dumps(file_schema(), indent=2).encode() + b"\n"
        return Outcome(encoded=lambda _: [file])
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rows of kctl {' '.join(words)}",
        "anyOf": [row_type(name).schema() for name in verb.rows],
    }
    if not verb.rows:
        raise click.UsageError(f"`kctl {' '.join(words)}` prints no rows")
    return Outcome(encoded=lambda _: [json.dumps(document, indent=2).encode() + b"\n"])
