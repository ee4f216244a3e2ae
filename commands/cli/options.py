"""Types of options and arguments, and options that several commands share."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import click

from commands.cli import completing

if TYPE_CHECKING:
    from pathlib import Path

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


# Shells complete paths; whoever opens one says what is wrong with it, with status 3. click would look first, and
# end with 2, wrong usage, for a folder in place of a file or an unreadable file.
class EvidencePath(click.Path):
    """A path of evidence, or the URL or archive of one: then the folder that stands for it until the command ends."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            from kctl.stores.mirror import local_path

            value = local_path(value)
        elif isinstance(value, str) and value.endswith(".tar.zst"):
            from kctl.collect.archive import local_folder

            value = local_folder(value)
        return super().convert(value, param, ctx)


GIVEN = EvidencePath(readable=False)
STORE_OR_PATH = click.Path(readable=False)  # of what opens URLs by itself


def limit_first_answer(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Set how long a store may take for its first answer, where the option was given; returns the value."""
    source = ctx.get_parameter_source(param.name or "")
    # An option of stores alone has no other use; else the environment says how long a cluster may take.
    if value is not None and (source is click.core.ParameterSource.COMMANDLINE or not param.expose_value):
        os.environ["KCTL_STORE_TIMEOUT"] = f"{value:g}"  # processes that this one starts read it too
    return value


def with_store_timeout(params: list[click.Parameter]) -> None:
    """Give a command that takes URLs of stores the option `--timeout`; one that it has counts for them as well."""
    if not any(isinstance(param.type, EvidencePath) or param.type is STORE_OR_PATH for param in params):
        return
    timeout = next((param for param in params if "--timeout" in param.opts), None)
    if timeout is None:
        timeout = click.Option(
            ["--timeout"], type=Duration(), expose_value=False, help="Maximum wait for the first answer of a store.  [default: 12s]"
        )  # fmt: skip
        params.append(timeout)
    timeout.is_eager = True  # before the paths, which are opened as they are parsed
    timeout.callback = limit_first_answer


class LocalPath(click.Path):
    """A path of this machine; a URL is wrong usage, as it would become a folder `s3:`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and ":/" in value:
            from kctl.errors import ONE_SLASH
            from kctl.stores.file_systems import URL

            if URL.match(value) or ONE_SLASH.match(value):
                self.fail(f"{value!r} is a URL; only local paths are supported here", param, ctx)
        return super().convert(value, param, ctx)


class ReadPath(LocalPath):
    """The same as a Path, whose module is loaded where one is given."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from pathlib import Path

        return Path(super().convert(value, param, ctx))


GIVEN_PATH = ReadPath(readable=False)
WRITTEN = LocalPath(readable=False)  # of what is written


def as_one_value(kind: Any, options: Sequence[Decorator]) -> Decorator:
    """Add options that the function gets as one value of `kind`, a named tuple, after the frame."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*positional: Any, **values: Any) -> Any:
            shared = {name: values.pop(name) for name in kind._fields if name in values}
            return function(*positional, kind(**shared), **values)

        decorated: Callable[..., Any] = functools.wraps(function)(wrapped)
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def option(declaration: str, help: str, *, into: str | None = None, **attributes: Any) -> Decorator:
    """An option, `--jobs N` or, repeatable, `--topic TOPIC...`; its type may have the metavar. Its default is shown.

    `into` is the parameter that gets it, where that has another name.
    """
    flags, _, metavar = declaration.partition(" ")
    names = (flags, into) if into else (flags,)
    if metavar.endswith("..."):
        metavar, attributes["multiple"] = metavar.removesuffix("..."), True
    attributes = {"show_default": "default" in attributes, **attributes}
    return click.option(*names, metavar=metavar or None, help=help, **attributes)


def flag(declaration: str, help: str, *, into: str | None = None, **attributes: Any) -> Decorator:
    """An option without a value."""
    return option(declaration, help, into=into, is_flag=True, **attributes)


METADATA = option(
    "--metadata FOLDER...",
    "Read this copy of a KRaft controller's __cluster_metadata-0; repeatable.",
    into="folders",
    type=GIVEN,
    envvar="KCTL_METADATA",
)


class Size(click.ParamType[int]):
    """A number of bytes, with or without KiB, MiB, GiB or their first letters."""

    name = "size"
    UNITS = ("", "k", "m", "g", "t")

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        from formats.whole_numbers import whole_number

        text = str(value).strip().lower().removesuffix("ib").removesuffix("b")
        unit = text[-1:] if text[-1:].isalpha() else ""
        digits = text.removesuffix(unit).strip()
        number = whole_number(digits)
        if unit not in self.UNITS or number is None or (size := number << 10 * self.UNITS.index(unit)) >> 63:
            self.fail(f"{value!r} is not a number of bytes such as 268435456 or 256MiB", param, ctx)
        return size


LONGEST = 100 * 365 * 86400  # seconds: clocks and timers of the system end somewhere


class Duration(click.ParamType[float]):
    """Seconds, or a number with s, m, h or d."""

    name = "DURATION"
    UNITS: ClassVar[dict[str, int]] = {"s": 1, "m": 60, "h": 3600, "d": 86400}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        text = str(value)
        number, unit = (text[:-1], self.UNITS[text[-1]]) if text[-1:] in self.UNITS else (text, 1)
        try:
            seconds = float(number) * unit
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST:
            self.fail(f"{value!r} is not a duration; write 90, 90s, 15m or 2h", param, ctx)
        return seconds


class OrderedBrokers(click.ParamType[tuple[int, ...]]):
    """Broker ids separated by commas, in the order given."""

    name = "IDS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The ids."""
        if isinstance(value, tuple):
            return value
        from formats.whole_numbers import whole_number

        ids = [id for part in str(value).split(",") if (id := whole_number(part.strip())) is not None]
        if len(ids) <= str(value).count(","):
            self.fail(f"{value!r} is not a list of broker ids such as 1,2,3", param, ctx)
        if len(set(ids)) < len(ids):
            self.fail(f"{value!r} names a broker twice", param, ctx)
        return tuple(ids)


class Brokers(click.ParamType[frozenset[int]]):
    """Broker ids separated by commas."""

    name = "IDS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[int]:
        """The ids."""
        return (
            value if isinstance(value, frozenset) else frozenset(OrderedBrokers().convert(value, param, ctx))
        )


class Names(click.ParamType[frozenset[str]]):
    """Names separated by commas, taken literally."""

    name = "A,B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """The names."""
        if isinstance(value, frozenset):
            return value
        names = frozenset(part.strip() for part in str(value).split(","))
        if "" in names:
            self.fail(f"{value!r} contains an empty name", param, ctx)
        return names


# 16 bytes in URL-safe base64; one of 64 begins with `-`.
TOKEN_ID = re.compile("[A-Za-z0-9_-]{21}[AQgw]")


class TokenId(click.ParamType[str]):
    """The id of a delegation token. As an argument it is none of the options, though it may begin with `-`."""

    name = "TOKEN_ID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id: brokers say whether it is one."""
        return str(value)


TOPIC = option(
    "--topic TOPIC...", "Only this topic; repeatable.", into="topics", shell_complete=completing.topics
)
PARTITION = option("--partition N...", "Only this partition; repeatable.", into="partitions", type=int)
TOPICS = option("--topics A,B", "Only these topics.", type=Names(), shell_complete=completing.topics)
JOBS = option("--jobs N", "Number of worker processes.  [default: one per core]", type=click.IntRange(1))
RULES_OF_VERSION = option("--kafka-version VERSION", "Apply the rules of this Kafka version.", default="3.9")
TIMEOUT = option("--timeout", "Maximum wait for each answer.", type=Duration(), default="10s")
KAFKA_VERSION = option(
    "--kafka-version VERSION",
    "Version of the oldest broker, when ZooKeeper does not show it.",
    envvar="KCTL_KAFKA_VERSION",
)
SNAPSHOT = option(
    "--snapshot FILE",
    "Read this export of `kctl znode export` instead of a live ZooKeeper.",
    type=GIVEN_PATH,
    envvar="KCTL_SNAPSHOT",
)
