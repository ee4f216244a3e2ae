"""The words that every part of kctl shares."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Row = dict[str, object]  # as commands print it; `kctl/rows/` has what is in it
StoredRow = dict[str, Any]  # as it is read from a table of an audit
# Characters that reorder the text around them (Unicode's property Bidi_Control), as in a class of an expression.
REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"


def values_by_path(values: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """The values at any depth, each as JSON by its path: `configs.retention.ms`, `partitions[0].offset`."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from values_by_path(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list | tuple) and any(isinstance(value, dict) for value in values):
        for index, value in enumerate(values):
            yield from values_by_path(value, f"{path}[{index}]")
    else:
        yield path, json.dumps(values, separators=(",", ":"))


class TopicPartition(NamedTuple):
    """A partition of a topic; sorts by name, then number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def some(partitions: Sequence[TopicPartition | str]) -> str:
    """The first five partitions, or names, by comma, and how many more there are."""
    shown = ", ".join(map(str, partitions[:5]))
    return shown if len(partitions) <= 5 else f"{shown} and {len(partitions) - 5:,} more"


def command_line(command: str, names: Iterable[str], options: Iterable[str] = ()) -> str:
    """A command line to run, its words quoted for a shell: names, then options.

    Where a name begins with `-`, and would be taken for an option, the names stand behind `--`.
    """
    from shlex import join

    names, options = list(names), list(options)
    is_like_option = any(name.startswith("-") for name in names)
    words = [*options, "--", *names] if is_like_option else [*names, *options]
    return " ".join((command, *map(join, ([word] for word in words))))


class OffsetRange(NamedTuple):
    """Offsets [from_offset, to_offset); the end is None where no evidence gives it."""

    from_offset: int
    to_offset: int | None


class Progress(Protocol):
    """Where long work says how far it is. Amounts are bytes unless `unit` says otherwise."""

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None: ...

    def advance(self, amount: int) -> None: ...

    def note(self, text: str) -> None: ...


class Silent:
    """Progress that nobody watches."""

    def start(self, what: str, total: int | None, unit: str = "bytes") -> None:
        """Nothing."""

    def advance(self, amount: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


SILENT: Progress = Silent()
Report = Callable[[Exception], None]


class Diagnosis(NamedTuple):
    """Why a listener cannot be used, as a clause, and what to do."""

    clause: str
    hint: str
    is_sure: bool = True
    """Whether it stays so: a host that is not reached now may be later."""
