"""`kctl acl`: rules of access and what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

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
from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import flag, option
from commands.cli.render import Outcome, Page, Row, finding_line, folding
from commands.topic import note_problems
from kctl.access.view import USERS
from kctl.access_sources.live import view_of
from kctl.errors import BadValue, KctlError
from kctl.rows.access import ACCESS, ACL, DECISION

if TYPE_CHECKING:
    from kctl.access.acl import Acl, Resource
    from kctl.access.authorizer import Authorizer, Decision
    from kctl.access.forecast import AccessChange
    from kctl.access.view import AccessView
    from kctl.changes.plan import Plan
    from kctl.cluster.interface import Cluster
    from kctl.cluster.state import Problem


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
    view = read_view(frame, at, source, rules_only=True)
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
@click.argument("principal", shell_complete=completing.principals)
@click.argument("operation", type=OperationName())
@click.argument("resource", metavar="TYPE:NAME", shell_complete=completing.resources)
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
    return Outcome(rows, text=folding(decision_text))


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


@command(
    "audit",
    paged=True,
    status="0 nothing wrong · 2 wrong usage · 3 no connection, something could not be read · 5 a rule is wrong",
)
@reads
@recorded
@known
def audit(frame: Frame, at: At, source: Recorded, told: Known) -> Outcome:
    """Find rules that decide nothing, or more than was meant.

    Mistakes are warnings: a host that is no address, a rule that another one denies as a whole, everybody who may write,
    a prefix that reaches internal topics. What may be meant is info: rules for topics that do not exist, users without
    rules, rules without users.

    $ kctl acl audit --bootstrap-server kafka1:9092
    $ kctl acl audit --snapshot znodes.jsonl --server-properties server.properties
    """
    from formats.values import replace
    from kctl.access.audit import audit_access
    from kctl.cluster.rights import grant
    from kctl.cluster.visibility import WHOLE

    view = source.read()
    if view is None:
        with at.open(frame) as cluster:
            view = view_of(cluster)
            if cluster.can.ask_brokers:
                view = _with_users(cluster, view)
            if view.hidden:
                frame.fail(view.hidden, grant(WHOLE[-1:], cluster.principal))
    note_problems(frame, view.problems)
    view = replace(view, settings=told.over(view.settings))
    findings = (finding.row() for finding in audit_access(view))
    examined = "" if view.problems or view.hidden else "all rules were examined: none of them is a finding"
    return Outcome(findings, text=folding(finding_lines), nothing=examined)


def _with_users(cluster: Cluster, view: AccessView) -> AccessView:
    """The view with users and groups, as far as brokers tell them; the rest is a problem."""
    from formats.values import replace
    from kctl.cluster.state import unread
    from kctl.wire.acls import read_uses
    from kctl.wire.cluster import AdminCluster
    from kctl.wire.users import read_users

    assert isinstance(cluster, AdminCluster)
    problems: list[Problem] = []
    uses = read_uses(cluster.wire, problems)
    groups = None if problems else uses.groups
    users = None
    try:
        users = read_users(cluster.wire)
    except KctlError as error:
        problems.append(unread(USERS, error))
    return replace(view, groups=groups, users=users, problems=(*view.problems, *problems))


def finding_lines(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """A line a finding."""
    return (finding_line(row, page) for row in rows)


# --- changes --------------------------------------------------------------------------------------------

ACCEPT_LOCKOUT = flag(
    "--accept-lockout",
    "Accept that the change locks somebody out, or that a resource gets its first rule or loses its last one.",
)


@command("create", status=CHANGE_STATUS)
@changes(timeout=60)
@known
@choice("literal", "prefixed", verb="Rules")
@flag("--deny", "Create rules that deny.")
@flag("--producer", "What a producer needs: write, describe and create on topics, write and describe on ids.")
@flag("--consumer", "What a consumer needs: read and describe on topics, read on groups.")
@flag("--idempotent", "Add idempotent_write on the cluster, which producers before 3.0 need.")
@ACCEPT_LOCKOUT
def create(
    frame: Frame,
    how: How,
    told: Known,
    wanted: Choice,
    deny: bool,
    producer: bool,
    consumer: bool,
    idempotent: bool,
    accept_lockout: bool,
) -> Outcome:
    """Create rules of access.

    Shows beforehand who gains and who loses which operations on the topics and groups that exist. Without --operation
    a rule is about all operations; without --host about all hosts.

    $ kctl acl create --principal User:app --producer --topic orders
    $ kctl acl create --principal User:app --consumer --topic orders --group billing
    $ kctl acl create --principal User:app --operation read --topic orders- --pattern prefixed
    $ kctl acl create --principal 'User:*' --operation write --topic orders --deny --host 10.0.0.7
    """
    from kctl.access.acl import check_principal
    from kctl.access.expansion import expanded, rules_of

    if not wanted.principals:
        raise BadValue("no principal is named", "give --principal TYPE:NAME, for example User:app")
    is_expanded = producer or consumer or idempotent
    if is_expanded and (wanted.operations or deny):
        raise BadValue(
            "--producer, --consumer and --idempotent say which operations are allowed",
            "leave --operation and --deny out",
        )
    if not wanted.resources and not idempotent:
        raise BadValue("no resource is named", "give --topic, --group, --cluster or another resource")
    with open_for_change(frame) as cluster:
        view = known_view(frame, cluster, told)
        subjects = (
            expanded(
                wanted.resources,
                producer=producer,
                consumer=consumer,
                idempotent=idempotent,
                version=how.version or view.kafka_version,
            )
            if is_expanded
            else [
                (*resource, name) for resource in wanted.resources for name in wanted.operations or ("all",)
            ]
        )
        acls = rules_of(
            map(check_principal, wanted.principals),
            subjects,
            pattern=wanted.pattern or "literal",
            hosts=wanted.hosts,
            permission="deny" if deny else "allow",
        )
        title = "create rules: all of them are there"
        return change_rules(frame, how, cluster, view, acls, [], title, accepted=accept_lockout)


@command("delete", status=CHANGE_STATUS)
@changes(timeout=60)
@known
@choice("literal", "prefixed", "match", verb="Rules")
@option("--permission", "Only rules that allow, or that deny.", type=click.Choice(("allow", "deny")))
@ACCEPT_LOCKOUT
def delete(
    frame: Frame, how: How, told: Known, wanted: Choice, permission: str | None, accept_lockout: bool
) -> Outcome:
    """Delete rules of access: those that fit all that is given.

    Shows beforehand who gains and who loses which operations on the topics and groups that exist.

    $ kctl acl delete --principal User:app --topic orders
    $ kctl acl delete --principal User:app --operation write --topic orders --dry-run
    $ kctl acl delete --principal User:old
    """
    if wanted.is_empty:
        raise BadValue("nothing is named: that would be all rules", "give --principal or a resource")
    with open_for_change(frame) as cluster:
        view = known_view(frame, cluster, told)
        acls = wanted.of(view.acls, permission)
        title = "delete rules: there are no such rules"
        return change_rules(frame, how, cluster, view, [], acls, title, accepted=accept_lockout)


@command("copy", status=CHANGE_STATUS)
@changes(timeout=60)
@known
@click.argument("principal", metavar="FROM", shell_complete=completing.principals)
@click.argument("to", metavar="TO", shell_complete=completing.principals)
@ACCEPT_LOCKOUT
def copy(frame: Frame, how: How, told: Known, principal: str, to: str, accept_lockout: bool) -> Outcome:
    """Give a principal the rules of another one; those that it has already stay.

    $ kctl acl copy User:app User:app2
    """
    from kctl.access.acl import check_principal

    with open_for_change(frame) as cluster:
        view = known_view(frame, cluster, told)
        source = check_principal(principal)
        target = check_principal(to)
        acls = [acl._replace(principal=target) for acl in view.acls if acl.principal == source]
        if not acls:
            raise KctlError(f"no rule names {source}", "`kctl acl list` shows the rules; nothing was written")
        title = f"copy the rules of {source} to {target}: all of them are there"
        return change_rules(frame, how, cluster, view, acls, [], title, accepted=accept_lockout)


def known_view(frame: Frame, cluster: Cluster, told: Known) -> AccessView:
    """What a cluster says about access, with what the user knows of the brokers. Raises KctlError."""
    from formats.values import replace
    from kctl.cluster.visibility import grouped

    view = view_of(cluster)
    for problem in view.problems:
        if problem.place.startswith(
            "/kafka-acl"
        ):  # nobody knows what is decided with rules that cannot be read
            raise KctlError(
                f"{problem.place}: {problem.reason}; nothing was written", problem.hint or "repair it first"
            )
    for text, _ in grouped(view.problems):
        frame.note(f"warning: {text}")
    if view.hidden:
        frame.note(f"warning: {view.hidden}, and what is shown of topics is about the names in the rules")
    return replace(view, settings=told.over(view.settings))


class Effect(NamedTuple):
    """What a change of rules does: who gains or loses what, and in sentences whom it locks out."""

    changes: list[AccessChange]
    lockouts: list[str]


def effect_of(
    frame: Frame, cluster: Cluster, view: AccessView, added: Sequence[Acl], removed: Sequence[Acl]
) -> Effect:
    """What a change of rules does, as far as is known; says what is not. Raises KctlError."""
    from formats.values import replace
    from kctl.access.forecast import Uses, forecast, lockouts

    uses = Uses()
    own, brokers = connected_as(cluster)
    if cluster.can.ask_brokers:
        from kctl.wire.acls import read_uses
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        problems: list[Problem] = []
        uses = read_uses(cluster.wire, problems)
        for problem in problems:
            frame.note(f"warning: {problem.place}: {problem.reason}; who uses what is not known")
        view = replace(view, groups=None if problems else uses.groups)
        if own is None:
            frame.note(
                "warning: whom brokers take this connection for is not known, nor whether it is locked out"
            )
    if view.settings.super_users is None:
        frame.note("super users are not known: what follows does not concern them")
    changes = forecast(view, added, removed, uses)
    sentences = lockouts(view, added, removed, own=own, brokers=brokers)
    if any("is not known" in sentence for sentence in sentences):
        frame.note(
            "give --server-properties, or --allow-everyone or --no-allow-everyone, to settle what is not known"
        )
    return Effect(changes, list(sentences))


def change_rules(
    frame: Frame,
    how: How,
    cluster: Cluster,
    view: AccessView,
    added: list[Acl],
    removed: list[Acl],
    title: str,
    *,
    accepted: bool,
) -> Outcome:
    """Plan, show and carry out a change of rules, and say where somebody else changed them meanwhile."""
    from kctl.operations.acls import plan_acls

    known_acls = set(view.acls)
    added = [acl for acl in added if acl not in known_acls]
    effect = effect_of(frame, cluster, view, added, removed)
    rows = [access_row(change) for change in effect.changes]
    plan = plan_acls(
        cluster,
        view.acls,
        added,
        removed,
        title=title,
        lockouts=effect.lockouts,
        forecast=rows,
        accepted=accepted,
    )
    listed = [*map(acl_row, [*added, *removed])]
    outcome = carry_out(frame, how, cluster, plan, [*listed, *rows], text=change_rules_text)
    if not plan.is_empty and not how.dry_run and not plan.needs and not frame.status:
        note_others(frame, cluster, view.acls, added, removed)
    return outcome


def connected_as(cluster: Cluster) -> tuple[str | None, str | None]:
    """Whom brokers take this connection for, and each other; None where it is not known."""
    if not cluster.can.ask_brokers:
        return None, None
    from kctl.wire.acls import broker_principal, own_principal
    from kctl.wire.cluster import AdminCluster

    assert isinstance(cluster, AdminCluster)
    state = cluster.read_state((), partition_states=False, recent=True)
    return own_principal(cluster.wire.access), broker_principal(cluster.wire, state)


def guarded_undo(cluster: Cluster, plan: Plan, *, accepted: bool) -> Plan:
    """The plan of an undo, refused like any change where it takes rules away from whoever needs them."""
    from formats.values import replace
    from kctl.access.forecast import lockouts
    from kctl.changes.kinds.access import AlterAcls
    from kctl.operations.acls import ACCEPT

    intents = [stage.intent for stage in plan.stages if isinstance(stage.intent, AlterAcls)]
    if not intents:
        return plan
    own, brokers = connected_as(cluster)
    added = [acl for intent in intents for acl in intent.added]
    removed = [acl for intent in intents for acl in intent.removed]
    sentences = lockouts(view_of(cluster), added, removed, own=own, brokers=brokers, is_undo=True)
    needs = plan.needs or (ACCEPT if sentences and not accepted else "")
    return replace(plan, warnings=(*plan.warnings, *sentences), needs=needs)


def note_others(
    frame: Frame, cluster: Cluster, before: Iterable[Acl], added: Iterable[Acl], removed: Iterable[Acl]
) -> None:
    """Say where rules on the changed resources are not what they should be after the change."""
    resources = {acl.resource for acl in (*added, *removed)}
    expected = {acl for acl in before if acl.resource in resources} - set(removed) | set(added)
    try:
        present = {acl for acl in view_of(cluster, rules_only=True).acls if acl.resource in resources}
    except KctlError as error:
        frame.note(f"warning: the rules could not be read again: {error.message}")
        return
    for acl in sorted(present ^ expected):
        frame.note(
            f"warning: somebody else changed the rules meanwhile: {acl} {'is there' if acl in present else 'is gone'}"
        )


def access_row(change: AccessChange) -> Row:
    """The row of an operation that somebody gains or loses."""
    return ACCESS(
        principal=change.principal,
        host=change.host,
        operation=change.operation,
        resource=str(change.resource),
        resource_type=change.resource.resource_type,
        resource_name=change.resource.resource_name,
        before=change.before,
        after=change.after,
        used_by=list(change.used_by),
    )


def change_rules_text(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The rules, then who gains and who loses what, a line a principal and resource."""
    lines: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if row["kind"] == "acl":
            yield acl_line(row)
        else:
            key = tuple(str(row[name]) for name in ("principal", "host", "resource", "before", "after"))
            lines.setdefault(key, []).append(row)
    for (principal, host, resource, before, after), listed in lines.items():
        operations = ", ".join(str(row["operation"]) for row in listed)
        at = "" if host == "*" else f" from {host}"
        who = "everybody whom no rule names" if principal == "User:*" else principal
        style = "good" if after == "allowed" else "warning"
        yield f"{who}{at}: {operations} on {resource}: {before} -> {page.style(after, style)}"
        used = sorted({name for row in listed for name in cast(list[str], row["used_by"])})
        for name in used:
            reads = f"reads {row_topic}" if (row_topic := _topic(listed)) else "has members now"
            yield page.style(f"  consumer group {name} {reads} and would be denied if it is {who}", "warning")


def _topic(rows: Iterable[Row]) -> str | None:
    return next((str(row["resource_name"]) for row in rows if row["resource_type"] == "topic"), None)


def acl_line(row: Row) -> str:
    """A rule on one line."""
    pattern = f"{row['pattern_type']} " if row["pattern_type"] != "literal" else ""
    name = (
        "cluster"
        if row["resource_type"] == "cluster"
        else f"{pattern}{row['resource_type']} {row['resource_name']}"
    )
    host = "" if row["host"] == "*" else f" from {row['host']}"
    return f"{row['permission']} {row['principal']} {row['operation']} on {name}{host}"
