"""Where rules come from: a live cluster, an export of znodes, a metadata log; and the options that choose rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from commands.cli import completing
from commands.cli.connecting import At
from commands.cli.frame import Frame
from commands.cli.options import GIVEN_PATH, METADATA, Decorator, as_one_value, flag, option
from commands.topic import note_problems
from kctl.access_sources.live import view_of
from kctl.errors import BadValue, file_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kctl.access.acl import Acl
    from kctl.access.authorizer import AuthorizerSettings
    from kctl.access.view import AccessView

PATTERNS = ("literal", "prefixed")
OPERATIONS = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster_action", "describe_configs"),
    *("alter_configs", "idempotent_write", "create_tokens", "describe_tokens", "two_phase_commit"),
)


class OperationName(click.Choice[str]):
    """Kafka's name of an operation in any spelling: `describe_configs`, `DescribeConfigs`, `DESCRIBE_CONFIGS`."""

    def __init__(self) -> None:
        super().__init__(OPERATIONS)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        plain = value.replace("_", "").replace("-", "").lower()
        known = {name.replace("_", ""): name for name in OPERATIONS}
        return super().convert(known.get(plain, value), param, ctx)


class Recorded(NamedTuple):
    """Where rules are recorded, from the options."""

    folders: tuple[str, ...]
    as_of: str | None

    def check(self) -> None:
        """Raise BadValue for a bound without a metadata log."""
        if self.as_of is not None and not self.folders:
            raise BadValue("--as-of goes with --metadata", "name a copy of a controller's metadata log")

    def logs(self) -> list[Path]:
        """The copies of the metadata log. Raises KctlError."""
        from commands.migration import metadata_logs

        return [log for folder in self.folders for log in metadata_logs(Path(folder))]

    def read(self) -> AccessView | None:
        """What the metadata log says; None where none is named. Raises KctlError."""
        self.check()
        if not self.folders:
            return None
        from commands.cli.evidence_options import bound_of
        from kctl.access_sources.recorded import read_recorded_access

        return read_recorded_access(self.logs(), bound_of(self.as_of))


recorded = as_one_value(
    Recorded,
    [
        METADATA,
        option(
            "--as-of OFFSET|TIME",
            "With --metadata: the state before this offset, or at this time (ISO 8601, -2h, epoch ms).",
        ),
    ],
)


class Known(NamedTuple):
    """What the user knows of the brokers' settings, which brokers do not tell."""

    server_properties: tuple[Path, ...]
    super_users: tuple[str, ...]
    allow_everyone: bool | None

    def over(self, settings: AuthorizerSettings) -> AuthorizerSettings:
        """The settings with what is known in the place of what was not told. Raises KctlError."""
        from kctl.access.acl import check_principal
        from kctl.access.view import agreed, settings_of_file, with_given
        from kctl.files import read_whole

        files = []
        for path in self.server_properties:
            try:
                files.append(settings_of_file(read_whole(path).decode("utf-8", "replace"), str(path)))
            except OSError as error:
                raise file_error(path, error) from error
        names = [check_principal(name.strip()) for text in self.super_users for name in text.split(";")]
        return with_given(agreed(files) if files else settings, names, self.allow_everyone)


known = as_one_value(
    Known,
    [
        option(
            "--server-properties FILE...",
            "Read super.users and allow.everyone.if.no.acl.found from a broker's file; repeatable.",
            type=GIVEN_PATH,
        ),
        option(
            "--super-user PRINCIPAL...",
            "The super users, where brokers do not tell them; repeatable.",
            into="super_users",
        ),
        flag(
            "--allow-everyone/--no-allow-everyone",
            "allow.everyone.if.no.acl.found, where brokers do not tell it.",
            default=None,
        ),
    ],
)


def read_view(frame: Frame, at: At, source: Recorded, *, rules_only: bool = False) -> AccessView:
    """Rules and what else is known of access; reports what could not be read (status 3). Raises KctlError.

    `rules_only`: the cluster is asked for nothing else.
    """
    view = source.read()
    if view is None:
        with at.open(frame) as cluster:
            view = view_of(cluster, rules_only=rules_only)
    note_problems(
        frame, [problem for problem in view.problems if problem.place != "users"]
    )  # rules need none
    return view


class Choice(NamedTuple):
    """Rules, as options name them."""

    principals: tuple[str, ...]
    operations: tuple[str, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    cluster: bool
    delegation_tokens: tuple[str, ...]
    user_principals: tuple[str, ...]
    pattern: str | None
    hosts: tuple[str, ...]

    @property
    def resources(self) -> list[tuple[str, str]]:
        """Type and name of each resource that is named."""
        from kctl.access.acl import CLUSTER

        named = (
            ("topic", self.topics),
            ("group", self.groups),
            ("cluster", (CLUSTER,) if self.cluster else ()),
            ("transactional_id", self.transactional_ids),
            ("delegation_token", self.delegation_tokens),
            ("user", self.user_principals),
        )
        return [(kind, name) for kind, names in named for name in names]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is named."""
        return not any(self)

    def of(self, acls: Iterable[Acl], permission: str | None = None) -> list[Acl]:
        """The rules that fit, sorted. Raises BadValue for what is no principal."""
        from kctl.access.acl import check_principal
        from kctl.access.view import chosen

        return chosen(
            acls,
            principals=[check_principal(name) for name in self.principals],
            operations=self.operations,
            resources=self.resources,
            pattern=self.pattern,
            hosts=self.hosts,
            permission=permission,
        )


def choice(*patterns: str, verb: str = "Only rules") -> Decorator:
    """The options that name rules; the function gets them as `Choice`."""
    return as_one_value(
        Choice,
        [
            option(
                "--principal TYPE:NAME...",
                f"{verb} of this principal; repeatable.",
                into="principals",
                shell_complete=completing.principals,
            ),
            option(
                "--operation OPERATION...",
                f"{verb} on this operation; repeatable.",
                into="operations",
                type=OperationName(),
            ),
            option(
                "--topic TOPIC...",
                f"{verb} on this topic; repeatable.",
                into="topics",
                shell_complete=completing.topics,
            ),
            option(
                "--group GROUP...",
                f"{verb} on this group; repeatable.",
                into="groups",
                shell_complete=completing.groups,
            ),
            option(
                "--transactional-id ID...",
                f"{verb} on this transactional id; repeatable.",
                into="transactional_ids",
            ),
            flag("--cluster", f"{verb} on the cluster."),
            option(
                "--delegation-token ID...",
                f"{verb} on this delegation token; repeatable.",
                into="delegation_tokens",
            ),
            option(
                "--user-principal TYPE:NAME...",
                f"{verb} on tokens of this user; repeatable.",
                into="user_principals",
            ),
            option("--pattern", "How names are meant.", type=click.Choice(patterns or PATTERNS)),
            option("--host HOST...", f"{verb} for this host; repeatable.", into="hosts"),
        ],
    )
