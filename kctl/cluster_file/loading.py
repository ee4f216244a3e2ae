"""Files to what they ask for: includes, variables, defaults by pattern, and one place for each resource."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from kctl.cluster_file.document import Items, Node, Place, Scalar, Table, read_document, wrong
from kctl.cluster_file.resources import SECTIONS, Key, Managed, Resource, Wanted, by_key
from kctl.cluster_file.sections import (
    READERS,
    Defaults,
    defaults_in,
    managed_in,
    refuse_unknown,
    table_of,
    text_of,
    texts_of,
    topics_in,
)
from kctl.cluster_file.variables import Variables, refuse_unused
from kctl.errors import KctlError, file_error

FORMAT = "1"
SUFFIXES = (".yaml", ".yml", ".json")
HEAD = ("kctl", "include", "variables", "labels", "manage", "defaults")
LABELLED = {"topics": 1, "users": 1, "quotas": 1, "acls": 1, "defaults": 2}
"""How many levels below these sections labels may stand."""
MOST_FILES, DEEPEST = 10_000, 50


class _File(NamedTuple):
    """A file that was read, before its variables are filled in."""

    name: str
    table: Table


def load(
    paths: Iterable[Path],
    given: Mapping[str, str],
    environment: Mapping[str, str],
    known: set[str] | None = None,
) -> Wanted:
    """What files, or all files of folders, ask for. Raises KctlError: one error, with file and line.

    A variable that is `given` and not used is an error; with `known`, to which those are added that the files use or
    define, the caller sees to it: other files may use it.
    """
    reading = _Reading()
    paths = list(paths)
    for path in paths:
        for file in files_of(path):
            reading.take(file, str(file), ())
    if paths and not reading.files:
        raise wrong(
            Place(str(paths[0]), 1),
            "the file is empty" if len(paths) == 1 else "all files are empty",
            "write what is wanted, such as `topics: {orders: {partitions: 12}}`",
        )
    variables = Variables(given, environment)
    for each in reading.files:
        if "variables" in each.table.entries:
            variables.define(
                table_of(each.table.entries["variables"], "variables", "variables: {team: orders}")
            )
    wanted = _wanted(_filled(reading.files, variables))
    if known is None:
        refuse_unused(given, variables.known)
    else:
        known |= variables.known
    return wanted


def files_of(path: Path) -> list[Path]:
    """The file, or the files of YAML and JSON in the folder, by name. Raises KctlError."""
    if not path.is_dir():
        return [path]
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise file_error(path, error) from error
    files = [path / name for name in names if name.lower().endswith(SUFFIXES)]
    if not files:
        raise KctlError(
            f"{path}: no file of YAML or JSON here", f"name a file, or a folder with {', '.join(SUFFIXES)}"
        )
    return files


class _Reading:
    """The files in order: what a file includes comes before it."""

    def __init__(self) -> None:
        self.files: list[_File] = []
        self._seen: set[str] = set()

    def take(self, path: Path, name: str, includers: tuple[tuple[str, Place], ...]) -> None:
        """Read a file and what it includes; one that was read already is left out."""
        real = os.path.realpath(path)
        if chain := [place for other, place in includers if other == real]:
            raise wrong(
                chain[0], f"{name} includes itself, by way of this line", "take one of the includes out"
            )
        if real in self._seen:
            return
        self._seen.add(real)
        if len(includers) > DEEPEST:
            raise wrong(includers[-1][1], f"includes more than {DEEPEST} deep", "include the files from one")
        if len(self._seen) > MOST_FILES:
            raise wrong(
                Place(name, 1), f"more than {MOST_FILES:,} files", "name fewer, or put several in one"
            )
        node = read_document(path, name)
        if node is None:
            return
        table = table_of(node, "the file", "topics: {orders: {partitions: 12}}")
        refuse_unknown(table, (*HEAD, *SECTIONS), "a file")
        if "kctl" in table.entries and text_of(table.entries["kctl"], "kctl", "kctl: 1") != FORMAT:
            raise wrong(table.places["kctl"], "the format is of another kctl", f"write `kctl: {FORMAT}`")
        if "include" in table.entries:
            include = table.entries["include"]
            for text in texts_of(include, "include", "include: [topics.yaml]"):
                if "${" in text:
                    raise wrong(
                        table.places["include"],
                        f"the path of an include holds no variables: {text}",
                        "write `include: [topics.yaml]`; what differs between clusters goes into a file of each, which is named too",
                    )
                inner = path.parent / text
                shown = os.path.join(os.path.dirname(name), text)
                for file in files_of(inner):
                    named = shown if file == inner else os.path.join(shown, file.name)
                    self._included(
                        file, named, table.places["include"], (*includers, (real, table.places["include"]))
                    )
        self.files.append(_File(name, table))

    def _included(
        self, file: Path, name: str, place: Place, includers: tuple[tuple[str, Place], ...]
    ) -> None:
        if not file.exists():
            raise wrong(place, f"{name} is not there", "write its path from the folder of this file")
        self.take(file, name, includers)


def _filled(files: Iterable[_File], variables: Variables) -> Iterator[tuple[str, Node]]:
    """The sections of all files, variables filled in, without labels."""
    for file in files:
        for section, node in file.table.entries.items():
            if section == "labels":
                variables.mention(node)
            elif section not in ("variables", "include", "kctl"):
                yield section, variables.fill(_unlabelled(node, LABELLED.get(section), variables))


def _unlabelled(node: Node, depth: int | None, variables: Variables) -> Node:
    """The tree without the labels that stand so many levels below it."""
    if depth is None or isinstance(node, Scalar):
        return node
    if isinstance(node, Items):
        items = (_unlabelled(item, depth - 1, variables) for item in node.items)
        return node._replace(items=tuple(items)) if depth else node
    if depth:
        entries = {key: _unlabelled(child, depth - 1, variables) for key, child in node.entries.items()}
        return node._replace(entries=entries)
    if "labels" not in node.entries:
        return node
    variables.mention(node.entries["labels"])
    return node._replace(entries={key: child for key, child in node.entries.items() if key != "labels"})


def _wanted(sections: Iterator[tuple[str, Node]]) -> Wanted:
    listed = list(sections)
    defaults: Defaults = [
        each for section, node in listed if section == "defaults" for each in defaults_in(node)
    ]
    managed: list[Managed] = []
    wanted: dict[Key, Resource] = {}
    for section, node in listed:
        if section == "manage":
            managed += managed_in(node)
        elif section != "defaults":
            resources = topics_in(node, defaults) if section == "topics" else READERS[section](node)
            for resource in resources:
                _add(wanted, resource)
    return Wanted(resources=by_key(wanted.values()), managed=tuple(managed))


def _add(wanted: dict[Key, Resource], resource: Resource) -> None:
    first = wanted.get(resource.key)
    if first is None:
        wanted[resource.key] = resource
        return
    if resource.acl is not None:  # rules are a set
        return
    assert resource.place is not None
    raise wrong(
        resource.place,
        f"{resource.kind.replace('_', ' ')} {resource.name} stands twice, first at {first.place}",
        "leave one of the two",
    )
