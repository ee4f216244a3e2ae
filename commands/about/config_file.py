"""`kctl config-file`: the file of contexts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from click import argument

from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN_PATH, option
from commands.cli.render import Outcome, Page, Row, cell, folding
from kctl.errors import Refused

TEMPLATE = """\
# Contexts of kctl: named clusters. `--context NAME` chooses one; docs/settings.md explains every key.
default_context = "example"

[contexts.example]
bootstrap_server = "kafka1:9092,kafka2:9092"   # Kafka 2.4 and later
# zookeeper = "zk1:2181,zk2:2181/kafka"        # with ZooKeeper; with both, changes go to the brokers
# cluster_id = ""                              # `kctl cluster describe` shows it; a write to another one is refused
read_only = true                               # every change is refused

# command_config = "/etc/kctl/client.properties"   # Kafka's own client properties, in place of what follows
# client_id = "kctl"                           # as quotas and request logs name it
# answer_timeout = "30s"                       # limit of the time for each answer

# tls = true                                   # with the system's authorities; or by files in PEM:
# tls_ca = "/etc/kctl/ca.pem"
# tls_certificate = "/etc/kctl/admin.pem"      # where brokers ask clients for one
# tls_key = "/etc/kctl/admin.key"
# tls_key_password = ""                        # better: KCTL_TLS_KEY_PASSWORD in the environment, or
# tls_key_password_command = ""                # what prints it
# tls_ca_password = ""                         # of a store of authorities, PKCS #12 or JKS
# tls_certificate_password = ""                # of a store with the client's certificate
# tls_check_hostname = true                    # false: a certificate for another host is taken

# sasl_mechanism = "SCRAM-SHA-512"             # PLAIN, SCRAM-SHA-256, OAUTHBEARER; of ZooKeeper DIGEST-MD5
# sasl_username = "admin"
# sasl_password = ""                           # better: KCTL_SASL_PASSWORD in the environment, or
# sasl_password_command = "keyring get kafka admin"   # what prints it: a keyring, a password manager
# sasl_token_file = "/run/token"               # with OAUTHBEARER; read at each connection; or an endpoint:
# sasl_oauth_token_url = "https://idp/token"
# sasl_oauth_client_id = "kctl"
# sasl_oauth_client_secret = ""                # better: KCTL_SASL_OAUTH_CLIENT_SECRET in the environment
# sasl_oauth_scope = ""
# sasl_oauth_extensions = ""                   # such as logicalCluster=lkc-1
# sasl_aws_profile = ""                        # with AWS_MSK_IAM, in place of the default credentials
# sasl_aws_role = ""                           # or the ARN of a role
# sasl_kerberos_service = "kafka"              # with GSSAPI
# acl = "secure"                               # of znodes that kctl creates: secure, or open
"""
NO_CONTEXT = "no context: `kctl config-file init` writes a file to fill in"
FILES = ("tls_ca", "tls_certificate", "tls_key", "sasl_token_file", "command_config")


@command("init", status="0 written · 4 the file exists")
def init(frame: Frame) -> Outcome:
    """Write a file of contexts to fill in, with every key explained.

    Only you can read the file. An existing file is not changed.

    $ kctl config-file init
    """
    from kctl.settings import settings_path

    path = settings_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Refused(f"{path} already exists", "`kctl config-file check` checks it") from None
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(TEMPLATE)
    return Outcome(encoded=lambda _: [f"{path}\n".encode()])


@command(
    "import", status="0 written · 2 the file is not understood · 3 it cannot be read · 4 the context exists"
)
@argument("file", metavar="FILE", type=GIVEN_PATH)
@option("--name NAME", "Name of the context; by default that of the file.")
def import_context(frame: Frame, file: Path, name: str | None) -> Outcome:
    """Write a context from a file of Kafka's client properties.

    The context is added to the file of contexts, which only you can read if it is new. Passwords are copied. To use
    the file itself, name it: `command_config = "FILE"` in a context, or `--command-config FILE`. Files often have no
    bootstrap.servers: --bootstrap-server goes into the context.

    $ kctl config-file import client.properties --name prod
    $ kctl config-file import client.properties --name prod --bootstrap-server kafka1:9093
    """
    from kctl.client_properties import read_client_properties
    from kctl.settings import SECRET_KEYS, is_open_to_others, read_file, settings_path

    path, name = settings_path(), name or file.stem
    settings = read_client_properties(str(file), frame.note)
    if servers := frame.given.get("bootstrap_server"):
        settings["bootstrap_server"] = servers
    if "bootstrap_server" not in settings:
        frame.note(
            f"{file} has no bootstrap.servers: write bootstrap_server into the context, or give --bootstrap-server"
        )
    if name in read_file(path)[1]:
        raise Refused(f"{path} has a context {name!r} already", "choose another one: --name NAME")
    lines = [f"[contexts.{toml(name)}]"]
    for key, value in settings.items():
        if key in FILES and not is_inline(value):
            value = os.path.abspath(value)
        if value is not None:
            lines.append(f"{key} = {toml(value)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(number, "a", encoding="utf-8") as opened:
        opened.write(("\n" if os.fstat(number).st_size else "") + "\n".join(lines) + "\n")
    if SECRET_KEYS & settings.keys() and is_open_to_others(path):
        frame.note(f"others can read {path}, and it contains a password; run chmod 600")
    return Outcome(encoded=lambda _: [f"{path}\n".encode()])


def toml(value: object) -> str:
    """A value, or a name in quotes, as TOML has it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def is_inline(value: object) -> bool:
    """Whether a setting is PEM itself and not the name of a file."""
    return "-----BEGIN" in str(value)


@command("check", status="0 in order · 3 not TOML · 5 a context has a problem")
def check(frame: Frame) -> Outcome:
    """Check every context: keys, values, files.

    Does not connect to any cluster; `kctl cluster describe --context NAME` does.

    $ kctl config-file check
    """
    rows = list(contexts())
    for row in rows:
        if row["problems"]:
            frame.raise_status(5)
    return Outcome(rows, nothing=NO_CONTEXT, text=folding(check_text))


@command("show", status="0 printed · 3 not TOML")
def show(frame: Frame) -> Outcome:
    """Show the contexts, without their secrets.

    $ kctl config-file show --output json
    """
    return Outcome(contexts(), nothing=NO_CONTEXT, text=folding(contexts_text))


def check_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The contexts, and that nothing is wrong where that is so."""
    listed = list(rows)
    yield from contexts_text(listed, page)
    if listed and not any(row["problems"] for row in listed):
        yield "no problem found; whether a cluster answers is not checked"


def contexts_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """Each context with a key a line, as in the file, and what is wrong with it."""
    for row in rows:
        yield page.style(str(row["name"]), "bold") + ("   (default)" if row["is_default"] else "")
        settings = cast("dict[str, object]", row["settings"])
        longest = max(map(len, settings), default=0)
        yield from (f"  {key.ljust(longest)}  {cell(value)}" for key, value in settings.items())
        yield from (page.style(f"  {problem}", "error") for problem in cast("list[str]", row["problems"]))


def contexts() -> Iterator[Row]:
    """A row for each context."""
    from formats.secrets import redact_text
    from kctl.rows.house import CONTEXT
    from kctl.settings import KEYS, SECRET_KEYS, read_file, settings_path

    path = settings_path()
    default, contexts = read_file(path)
    if default is not None and default not in contexts:
        yield CONTEXT(
            name=str(default), is_default=True, settings={}, problems=["the default, and not in the file"]
        )
    for name, values in contexts.items():
        shown = {
            key: "(set)"
            if key in SECRET_KEYS or key not in KEYS or is_inline(value)
            else redact_text(value)
            if isinstance(value, str)
            else value
            for key, value in values.items()
        }
        yield CONTEXT(
            name=name, is_default=name == default, settings=shown, problems=list(problems(path, values))
        )


def problems(path: Path, values: dict[str, object]) -> Iterator[str]:
    """What is wrong with a context."""
    from kctl.settings import BOOLEANS, KEYS, SECRET_KEYS, is_open_to_others, kind_of

    for key, value in values.items():
        if key not in KEYS:
            yield f"{key} is not a key"
        elif kind_of(key) is bool and isinstance(value, str):
            if value.strip().lower() not in BOOLEANS:
                yield f"{key} is {value!r}, neither true nor false"
        elif not isinstance(value, kind_of(key)):
            yield f"{key} is a {type(value).__name__}, not a {kind_of(key).__name__}"
        elif key in FILES and not is_inline(value) and not os.access(str(value), os.R_OK):
            yield f"{key}: {value} cannot be read"
        elif key.endswith("_command") and not shutil.which(str(value).split(" ")[0]):
            yield f"{key}: {value} is not a command of this machine"
    if not {"zookeeper", "bootstrap_server", "command_config"} & values.keys():
        yield "neither zookeeper nor bootstrap_server says where the cluster is"
    if SECRET_KEYS & values.keys() and is_open_to_others(path):
        yield f"others can read {path}, and it contains a password; run chmod 600"
