"""`kctl export`: a cluster as a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.access.sources import Recorded, recorded
from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, WRITTEN, Names, flag, option
from commands.cli.render import Outcome
from commands.topic import note_hidden, note_problems
from kctl.errors import BadValue, KctlError

if TYPE_CHECKING:
    from kctl.cluster.state import Problem
    from kctl.cluster_file.resources import Resource

TOOLS = ("topicctl", "strimzi", "kafka-topics")
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
@recorded
@option(
    "--from TOOL PATH",
    "Convert files of another tool: topicctl, strimzi (KafkaTopic, KafkaUser), kafka-topics (--describe).",
    into="converted",
    type=(click.Choice(TOOLS), GIVEN_PATH),
)
@option("--topics PATTERN...", "Only topics that match this pattern; repeatable.", into="patterns")
@option("--kinds A,B", f"Only these kinds: {KIND_NAMES}.", type=Names())
@option("--to PATH", "Write to this file (.yaml, .yml, .json), or to files in this folder.", type=WRITTEN)
@flag(
    "--replace",
    "Replace what an earlier export wrote there; its files of kinds of which nothing is left are removed.",
    into="replaces",
)
def export(
    frame: Frame,
    at: At,
    source: Recorded,
    converted: tuple[str, Path] | None,
    patterns: tuple[str, ...],
    kinds: frozenset[str] | None,
    to: str | None,
    replaces: bool,
) -> Outcome:
    """Export topics, configurations, users, quotas and rules to a file that `kctl apply` reads.

    Only what is set is written: what brokers take from their files and defaults is left out, as are Kafka's own topics,
    passwords and other secrets. The order is always the same. YAML; with --output json, or to FILE.json, JSON, in a folder
    too.

    $ kctl export > cluster.yaml
    $ kctl export --to cluster/
    $ kctl export --to cluster/ --replace
    $ kctl export --topics 'orders-*' --kinds topics,acls --to orders.yaml
    $ kctl export --snapshot znodes.jsonl > cluster.yaml
    $ kctl export --from topicctl topics/ --to cluster.yaml
    $ kctl export --from strimzi kafka-topics.yaml
    $ kctl export --metadata /var/lib/kafka/__cluster_metadata-0 --as-of -2h
    """
    from fnmatch import fnmatchcase

    from kctl.cluster.visibility import grouped
    from kctl.cluster_file.resources import SECTIONS
    from kctl.cluster_file.writing import document_of, json_text, target_of, write_document, yaml_lines
    from kctl.files import LARGEST_TEXT

    given = {"--snapshot": at.snapshot, "--metadata": source.folders, "--from": converted}
    if len(several := [name for name, value in given.items() if value]) > 1:
        raise BadValue(f"give one of {' and '.join(several)}", "an export is of one cluster")
    if replaces and to is None:
        raise BadValue("--replace goes with --to", "name the file or the folder to replace")
    chosen = kinds_of(kinds)
    found = _read(frame, at, source, chosen) if converted is None else _converted(frame, *converted, chosen)
    resources = [
        resource
        for resource in found.resources
        if resource.kind != "topic" or not patterns or any(fnmatchcase(resource.name, p) for p in patterns)
    ]
    if "topic" in chosen:
        refuse_unmatched(patterns, [each.name for each in found.resources if each.kind == "topic"])
    found.head.extend(f"not read: {text}" for text, _ in grouped(found.problems))
    document = document_of(resources)
    if to is not None:
        emptied = [section for section, kind in SECTIONS.items() if kind in chosen and not frame.status]
        is_json = frame.output != "text"
        target = target_of(to, document, emptied, replaces=replaces, is_json=is_json)
        names = write_document(target, document, found.head, found.comments)
        for path in target.gone:
            why = "the export is in another form" if path.stem in document else "nothing of its kind is left"
            frame.note(f"{path} was removed: {why}")
        for path in names:
            if path.stat().st_size > LARGEST_TEXT:
                frame.note(
                    f"warning: {path} is larger than {LARGEST_TEXT >> 20} MiB: `kctl diff` reads no such file; "
                    "export parts of it, by --kinds and --topics"
                )
        return Outcome(encoded=lambda _: [f"{name}\n".encode() for name in names])

    def encoded(form: str) -> Iterator[bytes]:
        if form != "text":
            yield json_text(document, found.head, found.comments, is_line=form == "jsonl").encode()
        else:
            yield from (f"{line}\n".encode() for line in yaml_lines(document, found.head, found.comments))

    return Outcome(encoded=encoded, is_exact=True)


def refuse_unmatched(patterns: Iterable[str], topics: Collection[str]) -> None:
    """Raise KctlError for the first pattern that no topic matches."""
    from fnmatch import fnmatchcase

    from kctl.errors import near_names

    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in topics):
            names = sorted(topics)
            there_are = f"there are {', '.join(names[:8])}" + (", ..." if len(names) > 8 else "")
            hint = near_names(pattern, names, otherwise=there_are if names else "there are no topics")
            raise KctlError(f"no topic matches {pattern!r}", hint)


class _Found(NamedTuple):
    """What is exported, and what stands as comments before it and before its topics."""

    resources: list[Resource]
    problems: list[Problem]
    head: list[str]
    comments: dict[str, list[str]]


def _converted(frame: Frame, tool: str, path: Path, kinds: list[str]) -> _Found:
    """The resources of another tool's files; notes what is not taken over."""
    from kctl.cluster_file.other_tools import read_other

    taken = read_other(tool, path)
    for remark in taken.remarks:
        frame.note(remark)
    return _Found([resource for resource in taken.resources if resource.kind in kinds], [], taken.remarks, {})


def _left_out(frame: Frame, sentences: Iterable[str]) -> list[str]:
    """What no file can hold, as remarks of the export; noted, too."""
    remarks = [f"not exported: {text}" for text in sentences]
    for remark in remarks:
        frame.note(remark)
    return remarks


def _read(frame: Frame, at: At, source: Recorded, kinds: list[str]) -> _Found:
    """The resources of the cluster or of its metadata log; reports what could not be read (status 3)."""
    if source.folders:
        from commands.cli.evidence_options import bound_of
        from kctl.cluster_file.recorded import metadata_resources

        recorded = metadata_resources(source.logs(), bound_of(source.as_of), kinds)
        note_problems(frame, recorded.problems)
        if recorded.remark:
            frame.note(recorded.remark)
        head = _left_out(frame, recorded.left_out)
        return _Found(*recorded[:2], head, recorded.comments)
    source.check()
    from kctl.cluster_file.present import present_in, remarks_of, secrets_in

    with at.open(frame) as cluster:
        present = present_in(cluster, at.version, kinds, None)
    note_problems(frame, present.problems)
    note_hidden(frame, present.state)
    for remark in present.remarks:
        frame.note(remark)
    comments = remarks_of(present.resources)
    head = [*present.remarks, *secrets_in(present.state), *_left_out(frame, present.left_out)]
    head += [f"not all topics: {present.state.hidden}"] if present.state.hidden else []
    return _Found(present.resources, present.problems, head, comments)
