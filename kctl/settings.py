"""Contexts and settings: a TOML file with named clusters, under flags and environment.

    default_context = "prod"
    [contexts.prod]
    zookeeper = "zk1:2181,zk2:2181/kafka"
    cluster_id = "W1mYKYRPRZqt8XjSxCjVnQ"
    read_only = true

docs/settings.md lists every key. Precedence: flag, environment variable, context, default. An unknown key is a warning, not an error.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kctl.errors import BadValue, KctlError, file_error, reason_of
from kctl.files import read_text


class Context(NamedTuple):
    """How to reach one cluster, and what may be done to it."""

    name: str | None = None
    zookeeper: str | None = None
    bootstrap_server: str | None = None
    cluster_id: str | None = None
    read_only: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_key_password: str | None = None
    tls_key_password_command: str | None = None
    tls: bool = False
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = None
    sasl_password_command: str | None = None
    sasl_token_file: str | None = None
    acl: str | None = None
    command_config: str | None = None
    client_id: str | None = None
    answer_timeout: str | None = None
    tls_ca_password: str | None = None
    tls_certificate_password: str | None = None
    tls_check_hostname: bool = True
    sasl_kerberos_service: str | None = None
    sasl_oauth_token_url: str | None = None
    sasl_oauth_client_id: str | None = None
    sasl_oauth_client_secret: str | None = None
    sasl_oauth_scope: str | None = None
    sasl_oauth_extensions: str | None = None
    sasl_aws_profile: str | None = None
    sasl_aws_role: str | None = None
    for_zookeeper: "Context | None" = None
    """The context without the client properties, which are about brokers; None where there are none."""


KEYS = {name: kind for name, kind in Context.__annotations__.items() if name not in ("name", "for_zookeeper")}
SECRET_KEYS = frozenset(
    {
        "tls_ca_password",
        "tls_certificate_password",
        "tls_key_password",
        "sasl_password",
        "sasl_oauth_client_secret",
    }
)
FOR_A_SECRET = 60  # seconds: somebody may have to unlock a keyring
LONGEST_SECRET = 64 << 10  # bytes


def settings_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the settings file lies: `KCTL_CONFIG`, else the XDG configuration folder."""
    if path := environ.get("KCTL_CONFIG"):
        return Path(path)
    return Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kctl" / "config.toml"


def read_context(
    arguments: Mapping[str, object], *, warn: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> Context:
    """The context in force: the one asked for, else the file's default, with what was given on top."""
    path = settings_path(environ)
    name, values = arguments.get("context"), {}
    table = _read(path)
    if name is None:
        name = table.get("default_context")
    if name is not None:
        contexts = _contexts(table)
        if name not in contexts:
            hint = f"it has {', '.join(contexts)}" if contexts else f"add [contexts.{name}]"
            raise KctlError(f"no context {name!r} in {path}", f"{hint}; or leave --context out")
        values = dict(contexts[str(name)])
    for key in [key for key in values if key not in KEYS]:
        warn(f"{path}: unknown key {key!r} in context {name!r} is ignored")
        del values[key]
    if SECRET_KEYS & values.keys() and is_open_to_others(path):
        warn(f"others can read {path}, and it contains a password; run chmod 600")
    for key, value in values.items():
        kind = kind_of(key)
        if kind is bool and isinstance(value, str):
            values[key] = boolean(value, f"{path}: {key} of context {name!r}")
        elif not isinstance(value, kind):
            raise KctlError(
                f"{path}: {key} of context {name!r} is a {type(value).__name__}, not a {kind.__name__}",
                "correct the file; `kctl doctor` shows which one is read",
            )
    overrides: dict[str, Any] = {}
    for key in KEYS:
        is_given = arguments.get(key) is not None
        override = arguments[key] if is_given else environ.get(f"KCTL_{key.upper()}") or None
        if override is not None and kind_of(key) is bool:
            override = boolean(str(override), key if is_given else f"KCTL_{key.upper()}")
        if override is not None:
            overrides[key] = override
    merged = values | overrides
    if not merged.get("command_config"):
        return Context(name=name if name is None else str(name), **merged)
    context = Context(name=name if name is None else str(name), **merged)
    return _with_client_properties(context, values, overrides, warn)


def _with_client_properties(
    context: Context, values: dict[str, Any], overrides: dict[str, Any], warn: Callable[[str], None]
) -> Context:
    """The context with the client properties that it names.

    The file stands above the context where it was given beside it, else below; it replaces all of TLS and SASL
    there, since its own security.protocol says what of them is in use.
    """
    from kctl.client_properties import read_client_properties

    path = str(context.command_config)
    properties = read_client_properties(path, warn)
    if (
        SECRET_KEYS & properties.keys() or "-----BEGIN" in properties.get("tls_key", "")
    ) and is_open_to_others(path):
        warn(f"others can read {path}, and it contains a password; run chmod 600")
    if "command_config" in overrides:
        kept = {key: value for key, value in values.items() if not key.startswith(("tls", "sasl_"))}
        merged = kept | properties
    else:
        merged = properties | values
    return Context(name=context.name, **(merged | overrides), for_zookeeper=context)


BOOLEANS = dict.fromkeys(("true", "yes", "on", "1", "y", "t"), True) | dict.fromkeys(
    ("false", "no", "off", "0", "n", "f"), False
)


def boolean(text: str, name: str) -> bool:
    """The value of a setting that is true or false, with the words of the flags' variables. Raises BadValue."""
    value = BOOLEANS.get(text.strip().lower())
    if value is None:
        # The value is not shown: it may be a secret that stands in the wrong line.
        raise BadValue(f"{name} is neither true nor false", f"write one of {', '.join(BOOLEANS)}")
    return value


def is_open_to_others(path: str | Path) -> bool:
    """Whether users other than the owner can read a file; false where there is none."""
    try:
        return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o077)
    except OSError:
        return False


def with_secrets(context: Context) -> Context:
    """The context with the passwords that its commands print, where it has none itself. Raises KctlError."""
    printed: dict[str, Any] = {}
    for key in sorted(SECRET_KEYS):
        command = getattr(context, f"{key}_command", None)
        if command and getattr(context, key) is None:
            printed[key] = printed_by(command, f"{key}_command")
    return context._replace(**printed)


def printed_by(command: str, key: str) -> str:
    """The first line that a command prints; it may ask on the terminal. No shell reads it."""
    import shlex
    import subprocess
    from threading import Timer

    program = ""
    try:
        program, *arguments = shlex.split(command)  # its arguments may be secrets themselves
        with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE) as process:
            clock = Timer(FOR_A_SECRET, process.kill)
            clock.start()
            try:
                assert process.stdout is not None
                printed = process.stdout.read(LONGEST_SECRET + 1)
                if len(printed) > LONGEST_SECRET:
                    process.kill()
                status = process.wait()
            finally:
                is_late = not clock.is_alive()
                clock.cancel()
        line = printed.split(b"\n", 1)[0].rstrip(b"\r")
        if len(printed) > LONGEST_SECRET:
            problem = f"printed more than {LONGEST_SECRET:,} bytes"
        elif is_late:
            problem = f"took longer than {FOR_A_SECRET} seconds"
        elif status:
            problem = f"ended with status {status}"
        elif line:
            return line.decode("utf-8", "surrogateescape")
        else:
            problem = "printed nothing"
    except OSError as error:
        problem = reason_of(error)
    except ValueError:  # a quote that is not closed, or no word
        problem = "is no command"
    named = f"{key} {program!r}:" if program else key
    raise KctlError(f"{named} {problem}", "run it by hand: it must print the password")


def kind_of(key: str) -> type:
    """The type that a key's value has."""
    return bool if KEYS[key] in (bool, "bool") else str


def read_file(path: Path) -> tuple[object, dict[str, dict[str, Any]]]:
    """The default context and all contexts of a file, as they stand there. Raises KctlError."""
    table = _read(path)
    return table.get("default_context"), _contexts(table)


def contexts_of(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Names of the contexts in the settings file; KctlError where it cannot be read."""
    path = settings_path(environ)
    return list(_contexts(_read(path)))


def _contexts(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    contexts = table.get("contexts")
    return {n: c for n, c in contexts.items() if isinstance(c, dict)} if isinstance(contexts, dict) else {}


def _read(path: Path) -> dict[str, object]:
    """What the file holds; nothing where there is none."""
    try:
        text = read_text(path, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise file_error(f"settings file {path}", error, KctlError) from error
    except UnicodeDecodeError as error:
        raise KctlError(
            f"settings file {path} is not TOML: {reason_of(error)}", "save the file as UTF-8"
        ) from error
    from formats import bounded_toml  # most have no settings file

    try:
        return bounded_toml.loads(text)
    except bounded_toml.TooComplex as error:
        raise KctlError(f"settings file {path}: {error}", "correct the file") from None
    except ValueError as error:
        # The library may quote the line, and a password stands in it: only the place is told.
        place = re.search(r"\((at [^()]*)\)$", str(error))
        where = f" ({place[1]})" if place else ""
        raise KctlError(
            f"settings file {path} is not TOML{where}", "correct the file at that place"
        ) from None
