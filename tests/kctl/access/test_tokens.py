"""Delegation tokens in recordings: znodes and the metadata log hold the same."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from formats.values import replace
from kctl.access.tokens import DelegationToken
from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.kinds.tokens import CreateToken, ExpireToken, RenewToken
from kctl.errors import Refused
from kctl.wire.writes import tokens
from kctl.wire.writes.tokens import NEAR, made_by, told_apart
from tests.conftest import recording, rows

RECORDED = recording("migration/3.9.1-clean")


def test_znodes_and_the_metadata_log_list_the_same() -> None:
    by_znodes = rows("token", "list", "--snapshot", RECORDED / "hybrid" / "znodes.jsonl")
    by_log = rows("token", "list", "--metadata", RECORDED / "hybrid" / "__cluster_metadata-0")
    (token,) = by_znodes.of("token")
    assert (by_znodes.status, by_log.status, by_log.of("token")) == (0, 0, [token])
    assert (token["owner"], token["renewers"]) == ("User:alice", [])
    assert token["issue_timestamp"] < token["expiry_timestamp"] < token["max_timestamp"]
    assert not [key for key in token if "hmac" in key]
    other = rows(
        "token", "list", "--owner", "User:bob", "--metadata", RECORDED / "hybrid" / "__cluster_metadata-0"
    )
    assert (other.status, other.rows) == (0, [])


def test_what_an_export_leaves_out_is_said(tmp_path: Path) -> None:
    export = tmp_path / "znodes.jsonl"
    text = (RECORDED / "hybrid" / "znodes.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["path"].startswith("/delegation_token/tokens/"):
            line["data"] = b64encode(b"(redacted)").decode()
    export.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = rows("token", "list", "--snapshot", export)
    assert ran.status == 3 and ran.of("token") == []
    assert "the export leaves out its content" in ran.err and "/delegation_token/tokens/" in ran.err


def test_which_token_a_change_created() -> None:
    """The one that was not there before and is as it was asked for; brokers may shorten its lifetime, and not lengthen it."""
    intent = CreateToken(owner=None, requester="User:a", renewers=("User:r",), lifetime=1000, known=("old",))

    def token(
        id: str = "new", owner: str = "User:a", renewer: str = "User:r", lifetime: int = 1000
    ) -> DelegationToken:
        return DelegationToken(id, owner, owner, (renewer,), 5000, 5000 + lifetime, 5000 + lifetime)

    others = [
        token("old"),
        token("b", owner="User:b"),
        token("c", renewer="User:x"),
        token("d", lifetime=1001),
    ]
    assert made_by(intent, others) == []
    assert made_by(intent, [*others, token(), token("short", lifetime=500)]) == [
        token(),
        token("short", lifetime=500),
    ]
    for_bob = replace(intent, owner="User:b")
    by_others = [token("e", owner="User:b")._replace(requester=who) for who in ("User:ci", "User:a", None)]
    assert made_by(for_bob, by_others) == by_others[1:]  # until 3.3 brokers do not say who asked
    unknown = replace(intent, requester="this connection's principal")
    assert [made.token_id for made in made_by(unknown, others)] == ["b"]


def test_a_token_of_somebody_else_is_not_taken_for_the_one_that_a_change_created() -> None:
    """Only one that a broker dates near the beginning of the change, and the only such one."""
    intent = CreateToken(owner=None, requester="User:a", renewers=(), lifetime=None, known=("old",))

    def token(id: str, issued: int) -> DelegationToken:
        return DelegationToken(id, "User:a", "User:a", (), issued, issued + 9 * NEAR, issued + 9 * NEAR)

    begun = 100 * NEAR
    mine, later = token("mine", begun + 2000), token("later", begun + 2 * NEAR)
    assert told_apart(intent, [token("old", begun), later, mine], begun) == mine
    assert told_apart(intent, [token("old", begun)], begun) is None
    for shown in ([later], [mine, token("twin", begun + 3000), later]):
        with pytest.raises(Refused, match="cannot be judged") as refused:
            told_apart(intent, shown, begun)
        assert "kctl token expire ID" in refused.value.hint
        assert all(t.token_id in str(refused.value) for t in shown if t is not later or len(shown) == 1)


def test_what_takes_a_change_back_and_what_does_not() -> None:
    former = ExpireToken(token_id="t", owner="User:a", at=7)
    renewal = RenewToken(token_id="t", owner="User:a", period=None, expiry_timestamp=7)
    later = ExpireToken(token_id="t", owner="User:a", at=9, expiry_timestamp=7)
    assert renewal.inverse() == former == later.inverse()
    now = ExpireToken(token_id="t", owner="User:a", expiry_timestamp=7)
    creation = CreateToken(owner="User:b", requester="User:a", renewers=(), lifetime=None, known=("x",))
    for intent in (now, creation):
        with pytest.raises(Refused):
            intent.inverse()
    for change in (former, renewal, later, now, creation):
        assert intent_from_json(json.loads(json.dumps(intent_to_json(change)))) == change


def test_an_end_that_has_passed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers would end the token now, for good: of a renewal that is taken back too late, or gone on with."""
    token = DelegationToken("t", "User:a", "User:a", (), 1000, 9000, 9000)
    monkeypatch.setattr(tokens, "token_named", lambda wire, token_id: token)
    for now, is_refused in ((6999, False), (7000, True)):
        monkeypatch.setattr(tokens, "_now", lambda now=now: now)
        steps = (
            lambda: tokens.expire_token(None, ExpireToken(token_id="t", owner="User:a", at=7000)),  # type: ignore[arg-type]
            lambda: tokens.ExpireDelegationToken(
                about="of t", expected=tokens.KnownEnd(9000), id="t", until=7000, expiry_timestamp=9000
            ).refuse_other_answers(None),  # type: ignore[arg-type]
        )
        for step in steps:
            if is_refused:
                with pytest.raises(Refused, match="would end now, for good"):
                    step()
            else:
                step()


def test_wrong_usage(tmp_path: Path) -> None:
    nobody = ("--bootstrap-server", "127.0.0.1:1", "--timeout", "1", "--yes")
    env = {"KCTL_JOURNAL": str(tmp_path / "journal")}
    assert rows("token", "create", "--renewer", "app", *nobody, env=env).status == 2
    assert rows("token", "create", "--owner", "app", *nobody, env=env).status == 2
    assert rows("token", "renew", *nobody, env=env).status == 2
    assert rows("token", "expire", "t", "--after", "soon", *nobody, env=env).status == 2
