"""Delegation tokens of a cluster, whatever the backend; never their secrets.

Source: KIP-48, KIP-373; core/src/main/scala/kafka/server/DelegationTokenManagerZk.scala @ 3.9.0-rc3
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.errors import FormatError
from formats.secrets import WITHHELD
from kctl.changes.intents import CreateToken, ExpireToken, Intent, RenewToken
from kctl.cluster.state import Problem
from kctl.errors import KctlError, Refused

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.internal_topics.reading import AsOf
    from kctl.wire.adapter import Wire
    from kctl.zookeeper.store import ZnodeReader

REFUSALS = {
    61: ("brokers have none without a key for them", "set delegation.token.secret.key on all brokers"),
    64: (
        "brokers tell them only to a user who has logged in with SASL or a client certificate, and not with a token",
        "connect to another listener",
    ),
}


class DelegationToken(NamedTuple):
    """A token; principals are TYPE:NAME, times milliseconds. `requester` is None where brokers do not tell it."""

    token_id: str
    owner: str
    requester: str | None
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int


def tokens_of(cluster: Cluster, problems: list[Problem]) -> list[DelegationToken]:
    """The tokens of a cluster, as far as this user may see them. Raises KctlError."""
    if cluster.backend == "admin":
        from kctl.wire.cluster import AdminCluster

        assert isinstance(cluster, AdminCluster)
        return sorted(described_tokens(cluster.wire))
    from kctl.zookeeper.cluster import RecordedCluster

    assert isinstance(cluster, RecordedCluster)
    return sorted(_stored_tokens(cluster.reader, problems))


def answered_tokens(wire: Wire) -> list[Any]:
    """The tokens that brokers show, as they answer, with their secrets. Raises KctlError."""
    from kctl.wire.messages import DescribeDelegationTokenRequest
    from kctl.wire.rights import failure

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


def _stored_tokens(reader: ZnodeReader, problems: list[Problem]) -> Iterator[DelegationToken]:
    from formats.znodes.security import parse_delegation_token
    from kctl.zookeeper.access import TOKENS

    names = reader.children(TOKENS) or []
    paths = [f"{TOKENS}/{name}" for name in names]
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            token = parse_delegation_token(node.data)
        except FormatError as error:
            is_withheld = node.data.startswith(WITHHELD)
            problems.append(Problem(path, "the export leaves out its content" if is_withheld else error.what))
            continue
        yield DelegationToken(
            name, token.owner, token.requester, token.renewers,
            token.issue_timestamp, token.expiration_timestamp, token.max_timestamp,
        )  # fmt: skip


def recorded_tokens(folders: Iterable[Path], as_of: AsOf, problems: list[Problem]) -> list[DelegationToken]:
    """The tokens in the copy of the metadata log that reaches furthest. Raises KctlError where none can be read."""
    from kctl.internal_topics.metadata_rows import furthest_image

    image, trouble = furthest_image(folders, as_of)
    problems += [Problem(f"{part.file.name} at {part.position}", part.what) for part in trouble]
    return sorted(
        DelegationToken(
            name, token["owner"], token["requester"] or None, tuple(token["renewers"]),
            token["issue_timestamp"], token["expiration_timestamp"], token["max_timestamp"],
        )
        for name, token in image.delegation_tokens.items()
    )  # fmt: skip


# --- changes --------------------------------------------------------------------------------------------


def writable(cluster: Cluster) -> Wire:
    """The connections to brokers, which alone make tokens: ZooKeeper holds no key for them. Raises Refused."""
    from kctl.wire.cluster import AdminCluster

    if not isinstance(cluster, AdminCluster):
        raise Refused("only brokers change delegation tokens; nothing was written", "give --bootstrap-server")
    return cluster.wire


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
    owner = intent.owner or (intent.requester if " " not in intent.requester else None)
    return [
        token
        for token in tokens
        if token.token_id not in intent.known
        and owner in (None, token.owner)
        and sorted(token.renewers) == sorted(intent.renewers)
        and (intent.lifetime is None or token.max_timestamp - token.issue_timestamp <= intent.lifetime)
    ]


def undo_of(intent: Intent, cluster: Cluster) -> tuple[Intent, ...]:
    """What takes back a change of a token that was carried out; nothing where that cannot be told. Raises KctlError."""
    from kctl.wire.cluster import AdminCluster

    if not isinstance(cluster, AdminCluster):
        return ()
    tokens = tokens_of(cluster, [])
    if isinstance(intent, CreateToken):
        made = [token for token in tokens if token.token_id in cluster.wire.token_hmacs]
        made = made or made_by(intent, tokens)
        return tuple(
            ExpireToken(token_id=token.token_id, owner=token.owner) for token in made if len(made) == 1
        )
    if isinstance(intent, RenewToken) or (isinstance(intent, ExpireToken) and intent.at is not None):
        former = intent.expiry_timestamp
        return tuple(
            ExpireToken(
                token_id=token.token_id, owner=token.owner, at=former, expiry_timestamp=token.expiry_timestamp
            )
            for token in tokens
            if token.token_id == intent.token_id and former is not None
        )
    return ()


def secret_not_kept(intent: Intent) -> Refused:
    """The error that a token is not created by a change that goes on: its secret would be shown to nobody."""
    return Refused(
        f"{intent}: its secret is for the one who creates it; nothing was written",
        "run `kctl token create` again",
    )
