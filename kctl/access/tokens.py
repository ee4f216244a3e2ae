"""Delegation tokens as every source tells them; never their secrets (KIP-48, KIP-373)."""

from typing import NamedTuple


class DelegationToken(NamedTuple):
    """A token; principals are TYPE:NAME, times milliseconds. `requester` is None where brokers do not tell it."""

    token_id: str
    owner: str
    requester: str | None
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
