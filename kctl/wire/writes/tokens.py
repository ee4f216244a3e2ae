"""Delegation tokens over the Admin protocol: created, renewed, expired; a token is named by its id.

Brokers want the HMAC of the token that is to change, and tell it to those who may change it: it is asked for just before,
and is in no plan and no journal.

Source: clients/src/main/resources/common/message/{Create,Renew,Expire}DelegationTokenRequest.json @ 4.3.0 (KIP-48, KIP-373);
metadata/src/main/java/org/apache/kafka/controller/DelegationTokenControlManager.java @ 4.0.0
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from formats.values import Struct
from formats.words import counted
from kctl.access.tokens import DelegationToken
from kctl.changes.kinds.tokens import CreateToken, ExpireToken, RenewToken
from kctl.cluster.intent import Intent
from kctl.cluster.interface import Conflict
from kctl.cluster.rights import USER, Right
from kctl.cluster.state import ClusterState
from kctl.errors import KctlError, Refused
from kctl.model import some
from kctl.times import iso
from kctl.wire.adapter import Wire
from kctl.wire.protocol.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kctl.wire.rights import failure
from kctl.wire.writes.requests import Quantifier, Request, RequestItem, ask

AUTHORIZATION_FAILED, NOT_FOUND = 65, 62
WHY = {
    NOT_FOUND: "there is no such token, or this user may not see it",
    63: "only its owner and its renewers may do that",
    66: "it has expired",
    67: "brokers take principals of the type User only",
}
UNTIL_BROKERS_SAY = -1  # milliseconds
REFUSALS = {
    61: ("brokers have none without a key for them", "set delegation.token.secret.key on all brokers"),
    64: (
        "brokers tell them only to a user who has logged in with SASL or a client certificate, and not with a token",
        "connect to another listener",
    ),
}


# --- the tokens that there are ---


def answered_tokens(wire: Wire) -> list[Any]:
    """The tokens that brokers show, as they answer, with their secrets. Raises KctlError."""
    answer = wire.read(DescribeDelegationTokenRequest(owners=None))
    if (refusal := REFUSALS.get(answer.error_code)) is not None:
        raise KctlError(f"delegation tokens: {refusal[0]}", refusal[1])
    if answer.error_code:
        raise failure(wire, "delegation tokens", "DescribeDelegationToken", answer.error_code)
    return list(answer.tokens)


def described_tokens(wire: Wire) -> Iterator[DelegationToken]:
    """The tokens that brokers show: the user's own, those that it may renew or describe. Raises KctlError."""
    for token in answered_tokens(wire):
        requester = None
        if token.token_requester_principal_name:
            requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
        yield DelegationToken(
            str(token.token_id),
            f"{token.principal_type}:{token.principal_name}",
            requester,
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in token.renewers),
            int(token.issue_timestamp),
            int(token.expiry_timestamp),
            int(token.max_timestamp),
        )


def token_named(wire: Wire, token_id: str) -> DelegationToken:
    """The token of this id. Raises KctlError where this user sees none."""
    for token in described_tokens(wire):
        if token.token_id == token_id:
            return token
    raise KctlError(
        f"token {token_id}: there is none, or this user may not see it; nothing was written",
        "`kctl token list` shows all that it may see",
    )


def made_by(intent: CreateToken, tokens: Iterable[DelegationToken]) -> list[DelegationToken]:
    """The tokens that a change may have created: those that were not there before, and are as it asked for."""
    requester = _requester(intent)
    owner = intent.owner or requester
    return [
        token
        for token in tokens
        if token.token_id not in intent.known
        and owner in (None, token.owner)
        and requester in (None, token.requester or requester)
        and sorted(token.renewers) == sorted(intent.renewers)
        and (intent.lifetime is None or token.max_timestamp - token.issue_timestamp <= intent.lifetime)
    ]


def _requester(intent: CreateToken) -> str | None:
    """Who asked for the token; None where it is not known, and the intent has words."""
    return intent.requester if " " not in intent.requester else None


# --- changes ---


NEAR = 10 * 60_000
"""Milliseconds within which a broker dates a token that was asked for as a change began, whatever its clock."""


def told_apart(
    intent: CreateToken, tokens: Iterable[DelegationToken], begun_ms: int
) -> DelegationToken | None:
    """The token that a change created which began at a time, and whose answer is not known; None where none fits.

    No request names the token that it asks for, so one is told by what it is, by whom, and when. Raises Refused where that
    may be one of somebody else: none of those that fit is of that time, or several are, or another was created then in the
    name of the same user, or who that is is not known.
    """
    tokens = list(tokens)
    fitting = made_by(intent, tokens)
    if not fitting:
        return None
    requester = _requester(intent)
    near = [token for token in fitting if abs(token.issue_timestamp - begun_ms) <= NEAR]
    others = [
        token
        for token in tokens
        if token not in fitting
        and token.token_id not in intent.known
        and (token.requester or token.owner) == requester
        and abs(token.issue_timestamp - begun_ms) <= NEAR
    ]
    if len(near) == 1 and not others and requester is not None:
        return near[0]
    may_be = near or fitting
    names = some([f"{token.token_id} of {iso(token.issue_timestamp)}" for token in may_be])
    why = (
        f"; {counted(len(others), 'other token')} of {requester} came at the same time"
        if others
        else "; whom brokers take this connection for is not known"
        if requester is None
        else ""
    )
    raise Refused(
        f"whether the change created a token, and which, cannot be judged: {counted(len(may_be), 'token')} may be it: {names}{why}",
        "`kctl token expire ID` ends the right one; then create another, as its secret is lost",
    )


def taken_back_by(wire: Wire, intent: Intent, begun_ms: int) -> tuple[Intent, ...] | None:
    """What takes back a change of a token that was carried out and began at a time, () where nothing of it is there.

    None where brokers do not show more than what was known before. Raises KctlError, Refused as `told_apart`.
    """
    tokens = sorted(described_tokens(wire))
    if isinstance(intent, CreateToken):
        if len(wire.token_hmacs) == 1:  # the answer named it, whether it is to be seen already or not
            (token_id,) = wire.token_hmacs
            owners = [token.owner for token in tokens if token.token_id == token_id]
            owner = owners[0] if owners else intent.owner or intent.requester
            return (ExpireToken(token_id=token_id, owner=owner),)
        token = told_apart(intent, tokens, begun_ms)
        if token is None:
            _refuse_another(wire, intent)
        return (ExpireToken(token_id=token.token_id, owner=token.owner),) if token else ()
    if isinstance(intent, RenewToken) or (isinstance(intent, ExpireToken) and intent.at is not None):
        former = intent.expiry_timestamp
        return (
            tuple(
                ExpireToken(
                    token_id=token.token_id,
                    owner=token.owner,
                    at=former,
                    expiry_timestamp=token.expiry_timestamp,
                )
                for token in tokens
                if token.token_id == intent.token_id and former is not None
            )
            or None
        )
    return None


def _refuse_another(wire: Wire, intent: CreateToken) -> None:
    """Raise Refused where this user is not the one who asked for a token, and may not see one that is there."""
    if wire.principal != intent.requester:
        raise Refused(
            f"{intent}: whether it was created cannot be judged as {wire.principal}: brokers show a token to who asked for it",
            f"connect as {intent.requester}",
        )


def secret_not_kept(intent: Intent) -> Refused:
    """The error that a token is not created by a change that goes on: its secret would be shown to nobody."""
    return Refused(
        f"{intent}: no token that it created is to be seen, and its secret is for the one who creates it; nothing was written",
        "run `kctl token create` again",
    )


class CreateDelegationToken(Request, frozen=True, kw_only=True):
    """A token that comes; `known` are those that were there before. Other tokens are no hindrance."""

    is_to_be_seen: ClassVar[bool] = True
    owner: str | None
    requester: str
    renewers: tuple[str, ...]
    lifetime_ms: int | None
    known: tuple[str, ...]

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        kind = CreateDelegationTokenRequest.CreatableRenewers
        renewers = [renewer.partition(":") for renewer in self.renewers]
        owner_type, _, owner_name = (self.owner or "").partition(":")
        message = CreateDelegationTokenRequest(
            owner_principal_type=owner_type or None,
            owner_principal_name=owner_name or None,
            renewers=[kind(principal_type=type, principal_name=name) for type, _, name in renewers],
            max_lifetime_ms=UNTIL_BROKERS_SAY if self.lifetime_ms is None else self.lifetime_ms,
            **({"min_version": 3} if self.owner else {}),  # the first that carries another owner
        )
        answer = ask(wire, message)
        owner = self.owner or self.requester
        what = f"token of {owner}"
        if answer.error_code == AUTHORIZATION_FAILED:
            right = Right("CreateTokens", USER, owner)
            yield RequestItem(what, answer.error_code, None, right=right, principal=wire.principal)
        elif answer.error_code:
            yield RequestItem(what, answer.error_code, WHY.get(answer.error_code))
        else:
            wire.token_hmacs[str(answer.token_id)] = bytes(answer.hmac)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        intent = CreateToken(
            owner=self.owner,
            requester=self.requester,
            renewers=self.renewers,
            lifetime=self.lifetime_ms,
            known=self.known,
        )
        is_made = bool(made_by(intent, described_tokens(wire)))
        if not is_made:
            _refuse_another(wire, intent)
        return is_made


class KnownEnd(Struct, frozen=True):
    """When the token ended that a request was computed from, in milliseconds."""

    expiry_timestamp: int


class RenewDelegationToken(Request, frozen=True, kw_only=True):
    """The end of a token put off."""

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownEnd
    id: str
    period_ms: int | None
    until: int | None
    expiry_timestamp: int

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        period = UNTIL_BROKERS_SAY if self.period_ms is None else self.period_ms
        yield from _change(wire, self.id, RenewDelegationTokenRequest, renew_period_ms=period)

    def refuse_other_answers(self, wire: Wire) -> None:
        _refuse_other_end(wire, self.id, self.expected)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        token = _find(wire, self.id)
        return token is not None and _has_other_end(token, self.until, self.expiry_timestamp)


class ExpireDelegationToken(Request, frozen=True, kw_only=True):
    """A token that ends, at once where no time is given."""

    is_to_be_seen: ClassVar[bool] = True
    expected: KnownEnd
    id: str
    until: int | None
    expiry_timestamp: int

    def send(self, wire: Wire, validate_only: bool) -> Iterator[RequestItem]:
        period = UNTIL_BROKERS_SAY if self.until is None else max(self.until - _now(), 0)
        yield from _change(wire, self.id, ExpireDelegationTokenRequest, expiry_time_period_ms=period)

    def refuse_other_answers(self, wire: Wire) -> None:
        _refuse_past(self.id, self.until)
        _refuse_other_end(wire, self.id, self.expected)

    def is_done(self, wire: Wire, state: ClusterState, of: Quantifier = all) -> bool:
        """Whether the token has another end; of one that was to end at once, whether it is gone."""
        token = _find(wire, self.id)
        if token is None or self.until is None:
            return token is None
        return _has_other_end(token, self.until, self.expiry_timestamp)


def _change(wire: Wire, token_id: str, message: Any, **period: int) -> Iterator[RequestItem]:
    what = f"token {token_id}"
    hmac = next((bytes(token.hmac) for token in answered_tokens(wire) if token.token_id == token_id), None)
    if hmac is None:
        yield RequestItem(what, NOT_FOUND, WHY[NOT_FOUND])
        return
    code = ask(wire, message(hmac=hmac, **period)).error_code
    yield RequestItem(what, code, WHY.get(code))


def _has_other_end(token: DelegationToken, until: int | None, former: int) -> bool:
    """Whether the token has another end than before, or the last that it can have and was to have one so late."""
    is_last = token.expiry_timestamp == token.max_timestamp <= (until or token.max_timestamp)
    return is_last or token.expiry_timestamp != former


def _refuse_other_end(wire: Wire, token_id: str, expected: KnownEnd) -> None:
    """Raise Conflict if the token does not end when it did, KctlError where there is none."""
    token = token_named(wire, token_id)
    if token.expiry_timestamp != expected.expiry_timestamp:
        raise _changed(token)


def _refuse_past(token_id: str, until: int | None) -> None:
    """Raise Refused for an end that has passed since: brokers would end the token now, for good."""
    if until is not None and until <= _now():
        raise Refused(
            f"token {token_id}: {iso(until)} has passed, and the token would end now, for good; nothing was written",
            f"`kctl token expire {token_id}` ends it",
        )


def _now() -> int:
    return time.time_ns() // 1_000_000


def _find(wire: Wire, token_id: str) -> DelegationToken | None:
    return next((token for token in described_tokens(wire) if token.token_id == token_id), None)


def _changed(token: DelegationToken) -> Conflict:
    return Conflict(
        f"token {token.token_id} ends {iso(token.expiry_timestamp)} now: somebody else changed it; nothing was written"
    )


# --- requests of intents ---


def create_token(wire: Wire, intent: Intent) -> list[Request]:
    """Nothing: the secret of a token goes to the command that creates it. Raises Refused."""
    raise secret_not_kept(intent)


def token_writes(intent: CreateToken) -> tuple[Request, ...]:
    """The request that creates a token."""
    return (
        CreateDelegationToken(
            about=f"of {intent.owner or intent.requester}",
            owner=intent.owner,
            requester=intent.requester,
            renewers=tuple(intent.renewers),
            lifetime_ms=intent.lifetime,
            known=tuple(intent.known),
        ),
    )


def renew_token(wire: Wire, intent: Intent) -> list[Request]:
    """The request that puts the end of a token off. Raises Conflict, KctlError."""
    assert isinstance(intent, RenewToken)
    until = None if intent.period is None else _now() + intent.period
    token = _as_planned(wire, intent)
    return [
        RenewDelegationToken(
            about=f"of {token.token_id}",
            expected=KnownEnd(token.expiry_timestamp),
            id=token.token_id,
            period_ms=intent.period,
            until=until,
            expiry_timestamp=token.expiry_timestamp,
        )
    ]


def expire_token(wire: Wire, intent: Intent) -> list[Request]:
    """The request that ends a token, where there is one. Raises Conflict, KctlError."""
    assert isinstance(intent, ExpireToken)
    _refuse_past(intent.token_id, intent.at)
    if intent.at is None and intent.expiry_timestamp is None and _find(wire, intent.token_id) is None:
        return []
    token = _as_planned(wire, intent)
    return [
        ExpireDelegationToken(
            about=f"of {token.token_id}",
            expected=KnownEnd(token.expiry_timestamp),
            id=token.token_id,
            until=intent.at,
            expiry_timestamp=token.expiry_timestamp,
        )
    ]


def _as_planned(wire: Wire, intent: RenewToken | ExpireToken) -> DelegationToken:
    token = token_named(wire, intent.token_id)
    if intent.expiry_timestamp not in (None, token.expiry_timestamp):
        raise _changed(token)
    return token
