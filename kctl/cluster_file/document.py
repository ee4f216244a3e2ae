"""YAML and JSON as a tree of texts, each with its file and line: one reader, which builds no objects.

Scalars stay as they are written (`012`, `yes`, `1_000`): whoever wants a number parses it. JSON is read by the same
reader, of whose language it is a part. Refused are tags, merge keys, keys that stand twice, and aliases that repeat
more than a file may hold.

Source: YAML 1.1 as libyaml reads it
"""

from collections.abc import Iterable, Iterator, Mapping
from errno import EFBIG
from pathlib import Path
from typing import Any, NamedTuple

from formats.secrets import REDACTED, is_secret_key
from kctl.errors import BadValue, file_error
from kctl.files import LARGEST_TEXT, read_whole

DEEPEST = 32  # levels
MOST_VALUES = 2_000_000  # of a file, with what its aliases repeat
NULLS = ("", "~", "null", "Null", "NULL")


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Scalar(NamedTuple):
    """A value as it is written; `is_null` for one that is absent in YAML's words."""

    text: str
    place: Place
    is_null: bool = False


class Items(NamedTuple):
    """A list."""

    items: "tuple[Node, ...]"
    place: Place


class Table(NamedTuple):
    """A mapping; `places` has those of its keys."""

    entries: "Mapping[str, Node]"
    places: Mapping[str, Place]
    place: Place


Node = Scalar | Items | Table


def wrong(place: Place, what: str, hint: str) -> BadValue:
    """The error of a file: its place, what is wrong there, and what to write."""
    return BadValue(f"{place}: {what}", hint)


def read_documents(path: Path, shown: str | None = None) -> list[Node]:
    """The documents of a file; `shown` is its name in errors. Raises KctlError."""
    name = shown or str(path)
    try:
        data = read_whole(path, LARGEST_TEXT, follow=True)
    except OSError as error:
        if error.errno != EFBIG:
            raise file_error(name, error) from error
        raise wrong(
            Place(name, 1),
            f"the file is larger than {LARGEST_TEXT >> 20} MiB",
            "write several files, and name them all, or their folder",
        ) from None
    return parse_documents(data, name)


def read_document(path: Path, shown: str | None = None) -> Node | None:
    """The one document of a file; None for one that is empty. Raises KctlError."""
    documents = read_documents(path, shown)
    if len(documents) > 1:
        raise wrong(
            documents[1].place, "a second document begins", "write one a file: take the line `---` out"
        )
    return documents[0] if documents else None


def parse_documents(data: bytes, name: str) -> list[Node]:
    """The documents of a text. Raises BadValue with file and line."""
    import yaml

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = Place(name, data.count(b"\n", 0, error.start) + 1)
        raise wrong(place, f"byte {data[error.start]:#04x} is not UTF-8", "save the file in UTF-8") from None
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(_Builder(name).documents(yaml.parse(text, Loader=loader)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line if mark else 0
        raise _not_yaml(Place(name, line + 1), str(error.problem or error.context), text) from None
    except yaml.YAMLError as error:  # of characters that YAML does not have
        position = getattr(error, "position", 0)
        place = Place(name, text.count("\n", 0, position) + 1)
        raise wrong(
            place, "a character that no YAML file may hold", "take it out, or write \\xNN in quotes"
        ) from None


def _not_yaml(place: Place, problem: str, text: str) -> BadValue:
    line = text.split("\n")[place.line - 1 : place.line] or [""]
    if "\t" in line[0][: len(line[0]) - len(line[0].lstrip())] or "\\t" in problem:
        return wrong(place, "a tab where spaces are expected", "indent with spaces")
    if "nesting depth" in problem:
        return _too_deep(place)
    return wrong(
        place,
        f"this is not YAML: {problem}",
        'write `key: value`, two spaces deeper for each level; put text with ": " or " #" in it in quotes',
    )


def _too_deep(place: Place) -> BadValue:
    return wrong(place, f"nested more than {DEEPEST} levels deep", "no part of such a file is so deep")


class _Open:
    """A list or mapping whose end has not come."""

    def __init__(self, place: Place, anchor: str | None, *, is_table: bool) -> None:
        self.place, self.anchor, self.is_table = place, anchor, is_table
        self.items: list[Node] = []
        self.entries: dict[str, Node] = {}
        self.places: dict[str, Place] = {}
        self.key: Scalar | None = None
        self.weight = 1

    @property
    def awaits_key(self) -> bool:
        """Whether what comes next is a key."""
        return self.is_table and self.key is None

    def add(self, node: Node, weight: int) -> None:
        """Take in the next value, or key."""
        self.weight += weight
        if not self.is_table:
            self.items.append(node)
        elif self.key is not None:
            self.entries[self.key.text] = node
            self.key = None
        elif not isinstance(node, Scalar):
            raise wrong(node.place, "a key is a list or a mapping", "write a name as the key")
        else:
            self._take_key(node)

    def _take_key(self, key: Scalar) -> None:
        if (first := self.places.get(key.text)) is not None:
            raise wrong(
                key.place,
                f"{key.text} stands twice here, first in line {first.line}",
                "leave one of the two, or put what both hold in one",
            )
        self.key, self.places[key.text] = key, key.place

    def node(self) -> Node:
        """The value."""
        if self.is_table:
            return Table(self.entries, self.places, self.place)
        return Items(tuple(self.items), self.place)


def _is_in_secret(stack: Iterable[_Open]) -> bool:
    """Whether a secret stands here: a password may begin with what YAML takes for a tag or an alias."""
    return any(each.key is not None and is_secret_key(each.key.text) for each in stack)


class _Builder:
    """Makes trees of a parser's events, without recursion."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._values = 0

    def documents(self, events: Any) -> Iterator[Node]:
        """A tree for each document that is not empty."""
        import yaml

        stack: list[_Open] = []
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                place = self._place(event)
                self._check(event, place, stack)
                is_null = not event.style and event.value in NULLS
                if event.value == "<<" and not event.style and stack and stack[-1].awaits_key:
                    raise wrong(place, "`<<` is not read", "use `defaults`, or write the values out")
                node: Node = Scalar(event.value, place, is_null)
                weight = 1
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                place = self._place(event)
                self._check(event, place, stack)
                if len(stack) >= DEEPEST:
                    raise _too_deep(place)
                stack.append(_Open(place, event.anchor, is_table=kind is yaml.MappingStartEvent))
                continue
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                ended = stack.pop()
                node, weight = ended.node(), ended.weight
                event = ended
            elif kind is yaml.AliasEvent:
                place = self._place(event)
                if event.anchor not in self._anchors:
                    open_ones = {each.anchor for each in stack}
                    what = "repeats itself" if event.anchor in open_ones else "stands for nothing"
                    raise wrong(
                        place,
                        f"*{REDACTED if _is_in_secret(stack) else event.anchor} {what}",
                        "write `&name` before the value that is meant, further up in the file",
                    )
                node, weight = self._anchors[event.anchor]
                self._count(weight, place)
            else:
                if kind is yaml.DocumentStartEvent:
                    self._anchors = {}
                continue
            if kind is not yaml.AliasEvent and event.anchor is not None:
                self._anchors[event.anchor] = (node, weight)
            if stack:
                stack[-1].add(node, weight)
            elif not (isinstance(node, Scalar) and node.is_null):
                yield node

    def _place(self, event: Any) -> Place:
        return Place(self._name, event.start_mark.line + 1)

    def _check(self, event: Any, place: Place, stack: "list[_Open]") -> None:
        self._count(1, place)
        if event.tag is not None and event.tag != "!":
            raise wrong(
                place,
                f"the tag {REDACTED if _is_in_secret(stack) else event.tag} is not read",
                "leave the tag out: values are taken as they are written",
            )

    def _count(self, weight: int, place: Place) -> None:
        self._values += weight
        if self._values > MOST_VALUES:
            raise wrong(
                place,
                f"more than {MOST_VALUES:,} values, with what aliases repeat",
                "write several files, and use `defaults` in the place of aliases",
            )
