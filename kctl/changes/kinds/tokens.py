"""Delegation tokens: created, renewed, expired."""

from collections.abc import Mapping
from typing import ClassVar

from kctl.changes.kinds.codecs import NAMES
from kctl.cluster.intent import Intent, IntentCodec
from kctl.times import iso


class CreateToken(Intent, frozen=True, kw_only=True):
    """Create a delegation token. Inverse: expire it, once brokers have said which one it is.

    `owner` is a principal, None for the one that connects; `lifetime` is in milliseconds, None for as long as brokers
    allow. `known` are the tokens before.
    """

    kind: ClassVar[str] = "create-token"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"renewers": NAMES, "known": NAMES}
    is_answered: ClassVar[bool] = True
    final: ClassVar[str] = "whether it was created, and which token it is, is not known yet"
    told_once: ClassVar[str] = "the secret of its token was told once, to the command that created it"
    owner: str | None
    requester: str  # who connects, in words where it is not known
    renewers: tuple[str, ...]
    lifetime: int | None
    known: tuple[str, ...]

    def __str__(self) -> str:
        renewers = f", which {' and '.join(self.renewers)} may renew" if self.renewers else ""
        return f"create a delegation token of {self.owner or self.requester}{renewers}"


class RenewToken(Intent, frozen=True, kw_only=True):
    """Put off the end of a token, by a time in milliseconds or by the time of the brokers. Inverse: the former end."""

    kind: ClassVar[str] = "renew-token"
    is_answered: ClassVar[bool] = True
    does: ClassVar[str] = "renew token {token_id} of {owner}"
    token_id: str
    owner: str
    period: int | None
    expiry_timestamp: int  # before

    def inverse(self) -> Intent:
        return ExpireToken(token_id=self.token_id, owner=self.owner, at=self.expiry_timestamp)


class ExpireToken(Intent, frozen=True, kw_only=True):
    """End a token at once, which has no inverse; or at a time. Inverse: the former end.

    Refused where `expiry_timestamp` is not the present end of the token.
    """

    kind: ClassVar[str] = "expire-token"
    is_answered: ClassVar[bool] = True
    final: ClassVar[str] = (
        "a token that has expired does not come back: create another with `kctl token create`"
    )
    token_id: str
    owner: str
    at: int | None = None  # None: at once
    expiry_timestamp: int | None = None  # before; None: whatever it is

    def __str__(self) -> str:
        return f"expire token {self.token_id} of {self.owner} {'now' if self.at is None else f'at {iso(self.at)}'}"

    def inverse(self) -> Intent:
        if self.at is None or self.expiry_timestamp is None:
            return Intent.inverse(self)
        return ExpireToken(token_id=self.token_id, owner=self.owner, at=self.expiry_timestamp)
