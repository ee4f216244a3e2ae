"""Types of options that are lists: broker ids and names, by comma."""

from __future__ import annotations

from typing import Any

import click


class Brokers(click.ParamType[frozenset[int]]):
    """Broker ids by comma."""

    name = "IDS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        """The ids."""
        if isinstance(value, frozenset):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isascii() and part.isdigit() for part in parts):
            self.fail(f"{value!r} is not broker ids such as 1,2,3", param, ctx)
        if len(set(parts)) < len(parts):
            self.fail(f"{value!r} names a broker twice", param, ctx)
        return frozenset(map(int, parts))


class Names(click.ParamType[frozenset[str]]):
    """Names by comma, taken literally."""

    name = "A,B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """The names."""
        if isinstance(value, frozenset):
            return value
        names = frozenset(part.strip() for part in str(value).split(","))
        if "" in names:
            self.fail(f"{value!r} holds an empty name", param, ctx)
        return names


class OrderedBrokers(click.ParamType[tuple[int, ...]]):
    """Broker ids by comma, in the order given."""

    name = "IDS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The ids."""
        if isinstance(value, tuple):
            return value
        Brokers().convert(value, param, ctx)
        return tuple(int(part) for part in str(value).split(","))
