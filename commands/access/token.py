"""`kctl token`: delegation tokens of a cluster."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.access.sources import Recorded, recorded
from commands.access.user import SecretFile, new_secret_file, write_secret
from commands.cli import completing
from commands.cli.changing import CHANGE_STATUS, How, carry_out, changes
from commands.cli.connecting import At, open_for_change, reads
from commands.cli.frame import Frame, command
from commands.cli.options import WRITTEN, Duration, TokenId, option
from commands.cli.render import Outcome, Row
from commands.topic import note_problems
from kctl.cluster.state import Problem
from kctl.errors import KctlError, NotFinished, Refused
from kctl.rows.access import ISSUED_TOKEN, TOKEN

if TYPE_CHECKING:
    from kctl.access.tokens import DelegationToken
    from kctl.changes.kinds.tokens import CreateToken
    from kctl.cluster.interface import Cluster
    from kctl.wire.adapter import Wire


@command("list", paged=True, status="0 listed · 2 wrong usage · 3 no connection, something could not be read")
@reads
@recorded
@option(
    "--owner PRINCIPAL...",
    "Only tokens of this owner; repeatable.",
    into="owners",
    shell_complete=completing.principals,
)
def list_tokens(frame: Frame, at: At, source: Recorded, owners: tuple[str, ...]) -> Outcome:
    """List delegation tokens, with their owners, renewers and times.

    Brokers show a user its own tokens, and of others those that it may renew, or describe by a rule. The secret of a token
    is never read or shown.

    $ kctl token list --bootstrap-server kafka1:9093 --command-config client.properties
    $ kctl token list --owner User:app --output jsonl
    $ kctl token list --metadata /var/lib/kafka/__cluster_metadata-0
    """
    from commands.cli.evidence_options import bound_of
    from kctl.access.acl import check_principal
    from kctl.access_sources.live import tokens_of
    from kctl.access_sources.recorded import recorded_tokens

    wanted = {check_principal(owner) for owner in owners}
    problems: list[Problem] = []
    source.check()
    if source.folders:
        tokens = recorded_tokens(source.logs(), bound_of(source.as_of), problems)
        nothing = "there is no token"
    else:
        with at.open(frame) as cluster:
            tokens = tokens_of(cluster, problems)
            nothing = "there is no token that this user may see"
    note_problems(frame, problems)
    rows = (TOKEN.of(token) for token in tokens if not wanted or token.owner in wanted)
    return Outcome(rows, nothing=nothing)


@command("create", status=CHANGE_STATUS)
@changes(timeout=60)
@option("--owner PRINCIPAL", "Whose token it is; without it the user who connects.")
@option("--renewer PRINCIPAL...", "Who else may renew and expire it; repeatable.", into="renewers")
@option("--lifetime", "The longest time that it can be renewed for, if brokers allow it.", type=Duration())
@option(
    "--secret-to FILE", "Write the secret to this new file, of mode 600, and do not show it.", type=WRITTEN
)
def create(
    frame: Frame,
    how: How,
    owner: str | None,
    renewers: tuple[str, ...],
    lifetime: float | None,
    secret_to: str | None,
) -> Outcome:
    """Create a delegation token, and show its secret once.

    A client logs in by SCRAM with the id of the token as user, its secret (the HMAC) as password and `tokenauth=true`. The
    secret is not in the journal. Brokers give tokens only to a user who has logged in with SASL or a client certificate, and
    not with a token. A token ends after a day (`delegation.token.expiry.time.ms`) unless it is renewed. `journal undo` expires
    it.

    $ kctl token create --command-config client.properties
    $ kctl token create --renewer User:scheduler --lifetime 2d --secret-to job.secret
    $ kctl token create --owner User:job
    """
    from kctl.access.acl import check_principal
    from kctl.changes.kinds.tokens import CreateToken
    from kctl.changes.plan import Plan, Stage
    from kctl.cluster.requests import needs
    from kctl.wire.protocol.messages import CreateDelegationTokenRequest
    from kctl.wire.writes.tokens import described_tokens, token_writes

    for principal in (*renewers, *((owner,) if owner else ())):
        check_principal(principal)
    with open_for_change(frame) as cluster:
        wire = _brokers(cluster)
        owner = None if owner == wire.principal else owner
        if owner and (wire.version_of(CreateDelegationTokenRequest) or 0) < FIRST_FOR_OTHERS:
            raise Refused(
                f"{needs('creating tokens for others')}; nothing was written",
                "connect as the owner, without --owner",
            )
        intent = CreateToken(
            owner=owner,
            requester=wire.principal,
            renewers=renewers,
            lifetime=None if lifetime is None else round(lifetime * 1000),
            known=tuple(sorted(token.token_id for token in described_tokens(wire))),
        )
        is_others = owner is not None and wire.principal not in renewers
        warning = f"only {owner} and renewers may expire it: nothing takes this back as {wire.principal}"
        plan = Plan(
            title=str(intent),
            stages=(Stage(intent=intent, writes=token_writes(intent)),),
            warnings=(warning,) if is_others else (),
        )
        with secret_file(None if how.dry_run else secret_to) as file:
            try:
                outcome = carry_out(frame, how, cluster, plan)
            finally:  # the secret is told once
                issued = [issued_row(token_id, hmac, file) for token_id, hmac in wire.token_hmacs.items()]
            if not issued and not how.dry_run and frame.status == 0:
                frame.report(answer_lost(wire, intent))
    return outcome._replace(rows=[*issued, *outcome.rows])


def answer_lost(wire: Wire, intent: CreateToken) -> NotFinished:
    """The error of a creation whose answer did not arrive just now, and which token is the one, where that can be told."""
    from kctl.wire.writes.tokens import described_tokens, told_apart

    try:
        token = told_apart(intent, described_tokens(wire), round(time.time() * 1000))
    except KctlError as error:
        return NotFinished(f"the answer with the secret did not arrive: {error.message}", error.hint)
    return NotFinished(
        f"{f'token {token.token_id}' if token else 'a token'} was created, and the answer with its secret did not arrive",
        "`kctl journal undo` expires it; then create another",
    )


def issued_row(token_id: str, hmac: bytes, file: SecretFile | None) -> Row:
    """The row of a token that was created; its secret goes to the file where there is one."""
    secret = b64encode(hmac).decode()
    if file is not None:
        write_secret(file, secret)
    return ISSUED_TOKEN(token_id=token_id, hmac=secret if file is None else None)


@contextmanager
def secret_file(path: str | None) -> Iterator[SecretFile | None]:
    """A new file for the secret during the block, which is taken away where nothing was written to it."""
    if path is None:
        yield None
        return
    file = new_secret_file(Path(path))
    try:
        yield file
    finally:
        if not file.path.stat().st_size:
            file.path.unlink()


FIRST_FOR_OTHERS = 3  # version of CreateDelegationToken


def token_rows(token: DelegationToken) -> list[Row]:
    """The row of a token as it is before a change."""
    return [TOKEN.of(token)]


@command("renew", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("token_id", type=TokenId(), shell_complete=completing.tokens)
@option(
    "--for",
    "For how long from now; without it as long as brokers renew tokens.",
    into="period",
    type=Duration(),
)
def renew(frame: Frame, how: How, token_id: str, period: float | None) -> Outcome:
    """Put off the end of a delegation token.

    The owner and the renewers of a token may do this, up to its longest lifetime. A time that is shorter than what is left
    brings the end forward.

    $ kctl token renew 7f1OlNLgSvGsQ3qTGZMNtQ
    $ kctl token renew 7f1OlNLgSvGsQ3qTGZMNtQ --for 12h
    """
    from kctl.changes.kinds.tokens import RenewToken
    from kctl.changes.plan import plan_of
    from kctl.wire.writes.tokens import token_named

    with open_for_change(frame) as cluster:
        token = token_named(_brokers(cluster), token_id)
        intent = RenewToken(
            token_id=token.token_id,
            owner=token.owner,
            period=None if period is None else round(period * 1000),
            expiry_timestamp=token.expiry_timestamp,
        )
        plan = plan_of([intent], cluster, cluster.read_state((), partition_states=False, recent=True))
        return carry_out(frame, how, cluster, plan, token_rows(token))


@command("expire", status=CHANGE_STATUS)
@changes(timeout=60)
@click.argument("token_id", type=TokenId(), shell_complete=completing.tokens)
@option("--after", "After this time; without it now.", into="after", type=Duration())
def expire(frame: Frame, how: How, token_id: str, after: float | None) -> Outcome:
    """End a delegation token, now or at a time.

    The owner and the renewers of a token may do this. Clients that are connected with it stay until their connections end. A
    token that has ended does not come back; with --after, `journal undo` sets the former end.

    $ kctl token expire 7f1OlNLgSvGsQ3qTGZMNtQ
    $ kctl token expire 7f1OlNLgSvGsQ3qTGZMNtQ --after 1h
    """
    from kctl.changes.kinds.tokens import ExpireToken
    from kctl.changes.plan import plan_of
    from kctl.wire.writes.tokens import token_named

    with open_for_change(frame) as cluster:
        token = token_named(_brokers(cluster), token_id)
        at = None if after is None else round((time.time() + after) * 1000)
        intent = ExpireToken(
            token_id=token.token_id, owner=token.owner, at=at, expiry_timestamp=token.expiry_timestamp
        )
        plan = plan_of([intent], cluster, cluster.read_state((), partition_states=False, recent=True))
        return carry_out(frame, how, cluster, plan, token_rows(token))


def _brokers(cluster: Cluster) -> Wire:
    """The connections to brokers, which alone make tokens: ZooKeeper holds no key for them. Raises Refused."""
    from kctl.wire.cluster import AdminCluster

    if not isinstance(cluster, AdminCluster):
        raise Refused("only brokers change delegation tokens; nothing was written", "give --bootstrap-server")
    return cluster.wire
