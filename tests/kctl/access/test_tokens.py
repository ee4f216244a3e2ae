"""Delegation tokens in recordings: znodes and the metadata log hold the same."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from formats.values import replace
from kctl.access.tokens import DelegationToken
from kctl.changes.apply import ChangeRun, deadline, resume
from kctl.changes.entry import Entry, new_entry
from kctl.changes.intents import intent_from_json, intent_to_json
from kctl.changes.journal import Journal
from kctl.changes.kinds.tokens import CreateToken, ExpireToken, RenewToken
from kctl.changes.plan import Plan, Stage
from kctl.changes.undo import plan_undo
from kctl.cluster.intent import Intent, Write
from kctl.cluster.state import ClusterState
from kctl.cluster.versions import V2_3
from kctl.errors import NotFinished, Refused
from kctl.wire.writes import tokens
from kctl.wire.writes.table import request_of
from kctl.wire.writes.tokens import NEAR, made_by, told_apart
from tests.conftest import recording, rows

if TYPE_CHECKING:
    from kctl.cluster.interface import Cluster
    from kctl.wire.adapter import Wire

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


def test_a_token_that_another_may_have_made_is_not_claimed() -> None:
    """Another token in the name of the same user at that time, or a user whose name brokers alone know."""
    intent = CreateToken(owner=None, requester="User:a", renewers=(), lifetime=None, known=("old",))
    begun = 100 * NEAR

    def token(id: str, issued: int = 2000, **other: Any) -> DelegationToken:
        at = begun + issued
        return DelegationToken(id, "User:a", "User:a", (), at, at + NEAR, at + NEAR)._replace(**other)

    mine = token("mine")
    unlike = token("unlike", renewers=("User:r",))
    for_bob = token("bob", owner="User:b")
    for others in ([unlike], [for_bob], [unlike._replace(requester=None)]):
        with pytest.raises(Refused, match=r"1 token may be it: mine .* 1 other token of User:a came"):
            told_apart(intent, [mine, *others], begun)
    by_bob = unlike._replace(owner="User:b", requester="User:b")
    for others in (
        [token("old", renewers=("User:r",))],
        [unlike._replace(issue_timestamp=begun + 2 * NEAR)],
        [by_bob],
    ):
        assert told_apart(intent, [mine, *others], begun) == mine
    with pytest.raises(Refused, match="whom brokers take this connection for is not known"):
        told_apart(replace(intent, requester="this connection's principal"), [mine], begun)


class Showing:
    """Brokers that show these tokens."""

    backend = "wire"
    principal = "User:a"

    def __init__(self, *shown: DelegationToken) -> None:
        self.shown = list(shown)
        self.token_hmacs: dict[str, bytes] = {}

    def read_state(self, *_: object, **__: object) -> ClusterState:
        return ClusterState(cluster_id="c", kafka_version=V2_3, brokers={}, controller=None)

    def taken_back_by(self, intent: Intent, begun_ms: int) -> tuple[Intent, ...] | None:
        return tokens.taken_back_by(self, intent, begun_ms)  # type: ignore[arg-type]

    def is_written(self, writes: Sequence[Write]) -> bool:
        (write,) = writes
        return request_of(write).is_done(cast("Wire", self), self.read_state())

    def is_begun(self, writes: Sequence[Write]) -> bool:
        return self.is_written(writes)

    def writes_for(self, intent: Intent, state: ClusterState) -> tuple[Write, ...]:
        if isinstance(intent, CreateToken):
            raise tokens.secret_not_kept(intent)
        return ()

    def log_ends(self, state: ClusterState) -> dict[Any, int]:
        return {}

    def close(self) -> None:
        """Nothing."""


CREATION = CreateToken(owner=None, requester="User:a", renewers=(), lifetime=None, known=())


def killed(folder: Path, cluster: Showing, monkeypatch: pytest.MonkeyPatch) -> tuple[Entry, ChangeRun]:
    """A creation that was killed as its request was sent, and a run that may go on with it."""
    monkeypatch.setattr(tokens, "described_tokens", lambda wire: iter(wire.shown))
    plan = Plan(title="create", stages=(Stage(intent=CREATION, writes=tokens.token_writes(CREATION)),))
    entry = new_entry(
        plan, command="test", reason=None, cluster_id=None, backend="wire", location="", kafka_version=None
    )
    entry.stages[0].state = "writing"
    run = ChangeRun(cluster=cast("Cluster", cluster), journal=Journal(folder), wait=True, until=deadline(5))
    run.journal.write(entry)
    return entry, run


def shown(id: str, seconds: int = 1) -> DelegationToken:
    at = time.time_ns() // 1_000_000 + seconds * 1000
    return DelegationToken(id, "User:a", "User:a", (), at, at + NEAR, at + NEAR)


def test_a_resumed_creation_says_that_the_secret_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, run = killed(tmp_path, Showing(shown("mine")), monkeypatch)
    with pytest.raises(NotFinished, match="is carried out") as lost:
        resume(entry, run)
    assert (
        "told once" in lost.value.hint and f"`kctl journal undo {entry.id}` takes it back" in lost.value.hint
    )
    assert "create another" in lost.value.hint and entry.is_finished
    assert entry.stages[0].undo == (ExpireToken(token_id="mine", owner="User:a"),)
    with pytest.raises(Refused, match="is finished") as finished:
        resume(entry, run)
    assert "told once" in finished.value.hint and "nothing is left to do" not in finished.value.hint


def test_a_creation_of_which_nothing_is_to_be_seen_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, run = killed(tmp_path, Showing(), monkeypatch)
    with pytest.raises(Refused, match="no token that it created is to be seen") as refused:
        resume(entry, run)
    assert "run `kctl token create` again" in refused.value.hint
    assert plan_undo(entry, run).is_empty


def test_which_of_two_it_is_is_asked_anew_until_it_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = shown("mine"), shown("other", 2)
    cluster = Showing(mine, other)
    entry, run = killed(tmp_path, cluster, monkeypatch)
    for step in (resume, plan_undo, resume):
        with pytest.raises(Refused, match=r"2 tokens may be it: mine .*, other ") as refused:
            step(entry, run)  # type: ignore[operator]
        assert (
            refused.value.hint.startswith("`kctl token expire ID`") and "create another" in refused.value.hint
        )
        entry = run.journal.find(entry.id)
        assert not entry.is_finished
    entry.stages[0].state, entry.stages[0].undo_refused = (
        "finished",
        "2 tokens may be it",
    )  # as of an earlier run
    cluster.shown = [mine]
    (stage,) = plan_undo(entry, run).stages
    assert stage.intent == ExpireToken(token_id="mine", owner="User:a")
    entry.stages[0].undo_refused = "2 tokens may be it"
    cluster.shown = []
    assert plan_undo(entry, run).is_empty


def test_who_may_not_see_a_token_is_not_told_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Showing()
    entry, run = killed(tmp_path, cluster, monkeypatch)
    cluster.principal = "User:admin"
    for step in (resume, plan_undo):
        with pytest.raises(Refused, match="cannot be judged as User:admin") as refused:
            step(entry, run)  # type: ignore[operator]
        assert refused.value.hint == "connect as User:a"
    cluster.shown = [shown("mine")]
    (stage,) = plan_undo(entry, run).stages
    assert stage.intent == ExpireToken(token_id="mine", owner="User:a")


def test_a_token_that_the_answer_named_is_taken_back_before_it_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "described_tokens", lambda wire: iter(wire.shown))
    cluster = Showing(shown("other"))
    cluster.token_hmacs["mine"] = b"secret"
    assert cluster.taken_back_by(CREATION, 0) == (ExpireToken(token_id="mine", owner="User:a"),)


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
