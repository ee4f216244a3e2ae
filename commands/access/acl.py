"""`kctl acl`: rules of access and what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from commands.access.sources import (
    Choice,
    Known,
    OperationName,
    Recorded,
    choice,
    known,
    read_view,
    recorded,
)
from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import option
from commands.cli.render import Outcome, Page, Row
from kctl.errors import BadValue
from kctl.rows.access import ACL, DECISION

if TYPE_CHECKING:
    from kctl.access.acl import Acl, Resource
    from kctl.access.authorizer import Authorizer, Decision


def acl_row(acl: Acl) -> Row:
    """The row of a rule."""
    return ACL(**acl._asdict())


@command("list", paged=True, status="0 listed · 2 wrong usage · 3 no connection, something could not be read")
@reads
@recorded
@choice("literal", "prefixed", "match")
def list_acls(frame: Frame, at: At, source: Recorded, wanted: Choice) -> Outcome:
    """List rules of access.

    --pattern match lists all rules that are about the resources named: those on the name itself, on a prefix and on `*`.

    $ kctl acl list --bootstrap-server kafka1:9092
    $ kctl acl list --principal User:alice
    $ kctl acl list --topic orders --pattern match
    $ kctl acl list --snapshot znodes.jsonl
    $ kctl acl list --metadata /var/lib/kafka/__cluster_metadata-0 --as-of 1042
    """
    view = read_view(frame, at, source)
    return Outcome((acl_row(acl) for acl in wanted.of(view.acls)), nothing="there are no such rules")


def resource_of(text: str) -> Resource:
    """`topic:orders`, `group:billing`, `cluster`. Raises BadValue."""
    from kctl.access.acl import CLUSTER, OPERATIONS_OF, Resource

    kind, colon, name = text.partition(":")
    kind = kind.replace("-", "_").lower()
    if kind == "cluster" and name in ("", CLUSTER):
        return Resource(kind, CLUSTER)
    if kind not in OPERATIONS_OF or not name or not colon:
        raise BadValue(
            f"{text!r} is not a resource",
            "write topic:NAME, group:NAME, cluster, transactional_id:ID, delegation_token:ID or user:TYPE:NAME",
        )
    return Resource(kind, name)


@command(
    "check",
    status="0 allowed, or denied: the row tells · 2 wrong usage · 3 no connection, or what decides is not known",
)
@reads
@recorded
@known
@click.argument("principal")
@click.argument("operation", type=OperationName())
@click.argument("resource", metavar="TYPE:NAME")
@option("--host HOST", "The address that requests come from.  [default: any that no rule names]")
def check(
    frame: Frame,
    at: At,
    source: Recorded,
    told: Known,
    principal: str,
    operation: str,
    resource: str,
    host: str | None,
) -> Outcome:
    """Show whether something is allowed, and by which rule.

    Without --host, a decision that rules make differently for some hosts is shown for each of them. Brokers do not tell
    super.users and allow.everyone.if.no.acl.found: where these decide, give them.

    $ kctl acl check User:alice read topic:orders
    $ kctl acl check User:alice write topic:orders --host 10.0.0.7 --server-properties server.properties
    $ kctl acl check User:app read group:billing --snapshot znodes.jsonl --super-user User:admin --no-allow-everyone
    $ kctl acl check User:app create cluster --metadata /var/lib/kafka/__cluster_metadata-0 --as-of 1042
    """
    from formats.values import replace
    from kctl.access.acl import OPERATIONS_OF, check_principal

    asked = resource_of(resource)
    if operation not in OPERATIONS_OF[asked.resource_type]:
        raise BadValue(
            f"brokers check no {operation} on a {asked.resource_type}",
            f"it is one of {', '.join(OPERATIONS_OF[asked.resource_type])}",
        )
    view = read_view(frame, at, source)
    view = replace(view, settings=told.over(view.settings))
    rows = list(
        decisions(
            view.authorizer(), check_principal(principal), operation, asked, host, view.settings.unknown
        )
    )
    if any(row["allowed"] is None for row in rows):
        frame.raise_status(3)
    return Outcome(rows, text=decision_text)


def decisions(
    authorizer: Authorizer,
    principal: str,
    operation: str,
    resource: Resource,
    host: str | None,
    unknown: Iterable[str],
) -> Iterator[Row]:
    """A row for the host, or for any host and each from which it is decided differently."""

    def row(decision: Decision, at: str) -> Row:
        from kctl.access.acl import Acl

        why = None
        if decision.missing:
            clauses = [text for text in unknown if text.startswith(decision.missing)] or list(unknown)
            why = "; ".join(clauses or (f"{' and '.join(decision.missing)} not known",))
        return DECISION(
            principal=principal,
            host=at,
            operation=operation,
            resource=str(resource),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            allowed=decision.allowed,
            by=decision.reason,
            acl=decision.by._asdict() if isinstance(decision.by, Acl) else None,
            why=why,
        )

    first = authorizer.decide(principal, operation, resource, host or "*")
    yield row(first, host or "*")
    for other in authorizer.hosts_named(principal, resource) if host is None else ():
        decision = authorizer.decide(principal, operation, resource, other)
        if decision.allowed is not first.allowed:
            yield row(decision, other)


def decision_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A sentence for each decision."""
    words = {
        True: page.style("allowed", "good"),
        False: page.style("denied", "error"),
        None: page.style("could not judge", "warning"),
    }
    for row in rows:
        host = "" if row["host"] == "*" else f" from {row['host']}"
        question = f"{row['principal']} {row['operation']} on {row['resource']}{host}"
        allowed = row["allowed"]
        assert allowed is None or isinstance(allowed, bool)
        by = "no rule allows it" if row["by"] == "nothing" else f"by {row['by']}"
        yield f"{question}: {words[allowed]}, {by}"
        if row["why"]:
            yield f"  {row['why']}: give --server-properties, or --super-user and --allow-everyone"
