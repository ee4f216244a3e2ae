"""`kctl export`: a cluster as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, Names, option
from commands.cli.render import Outcome
from commands.topic import note_hidden, note_problems
from kctl.errors import BadValue

KIND_NAMES = "topics,configs,groups,users,quotas,acls"
STATUS = "0 written · 2 wrong usage · 3 no connection, something could not be read"


def kinds_of(names: frozenset[str] | None) -> list[str]:
    """The kinds of resource that --kinds names; all without it. Raises BadValue."""
    from kctl.cluster_file.resources import KINDS
    from kctl.errors import near_names

    for name in sorted(names or ()):
        if name not in KINDS:
            raise BadValue(
                f"{name!r} is not a kind", near_names(name, KINDS, otherwise=f"there are {KIND_NAMES}")
            )
    return [kind for name, kinds in KINDS.items() if names is None or name in names for kind in kinds]


@command("export", status=STATUS)
@reads
@option("--topics PATTERN...", "Only topics that match this pattern; repeatable.", into="patterns")
@option("--kinds A,B", f"Only these kinds: {KIND_NAMES}.", type=Names())
@option("--to PATH", "Write to this file (.yaml, .json), or to files in this folder.", type=GIVEN_PATH)
def export(
    frame: Frame, at: At, patterns: tuple[str, ...], kinds: frozenset[str] | None, to: Path | None
) -> Outcome:
    """Export topics, configurations, users, quotas and rules to a file that `kctl apply` reads.

    Only what is set is written: what brokers take from their files and defaults is left out, as are Kafka's own topics,
    passwords and other secrets. The order is always the same. YAML; with --output json, or to FILE.json, JSON.

    $ kctl export > cluster.yaml
    $ kctl export --to cluster/
    $ kctl export --topics 'orders-*' --kinds topics,acls --to orders.yaml
    $ kctl export --snapshot znodes.jsonl > cluster.yaml
    """
    from fnmatch import fnmatchcase

    from kctl.cluster_file.present import present_in, uneven
    from kctl.cluster_file.writing import document_of

    with at.open(frame) as cluster:
        chosen = kinds_of(kinds)
        present = present_in(cluster, at.version, chosen, None)
    note_problems(frame, present.problems)
    note_hidden(frame, present.state)
    resources = [
        resource
        for resource in present.resources
        if resource.kind != "topic" or not patterns or any(fnmatchcase(resource.name, p) for p in patterns)
    ]
    comments = {
        f"topics/{resource.name}": [text]
        for resource in resources
        if resource.kind == "topic" and (text := uneven(present.state.topics[resource.name]))
    }
    for remark in present.remarks:
        frame.note(remark)
    head = [f"not read: {problem.place}: {problem.reason}" for problem in present.problems] + present.remarks
    document = document_of(resources)
    if to is not None:
        from kctl.cluster_file.writing import write_document

        names = write_document(to, document, head, comments)
        return Outcome(encoded=lambda _: [f"{name}\n".encode() for name in names])
    from kctl.cluster_file.writing import json_text, yaml_lines

    def encoded(form: str) -> Iterator[bytes]:
        if form != "text":
            yield json_text(document).encode()
        else:
            yield from (f"{line}\n".encode() for line in yaml_lines(document, head, comments))

    return Outcome(encoded=encoded, is_exact=True)
