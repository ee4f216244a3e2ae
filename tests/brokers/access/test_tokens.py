"""Delegation tokens on real brokers: clients log in with them, Kafka's tool lists the same, and no secret is left anywhere."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.brokers.access.conftest import MODULE, Guarded
from tests.brokers.access.test_acls import TOLD
from tests.brokers.access.test_users import SECRET, left_behind
from tests.brokers.processes import eventually
from tests.brokers.running import Kctl
from tests.commands.test_completing import proposed_by_a_cluster
from tests.conftest import rows

pytestmark = pytest.mark.brokers
HOUR = 3_600_000


@dataclass
class Login(Kctl):
    """kctl of a user who logs in with a password, at the listener for such users."""

    server: str
    user: str
    password: str = SECRET

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KCTL_BOOTSTRAP_SERVER": self.server,
            "KCTL_SASL_MECHANISM": "SCRAM-SHA-256",
            "KCTL_SASL_USERNAME": self.user,
            "KCTL_SASL_PASSWORD": self.password,
            "KCTL_JOURNAL": str(self.journal),
            "KCTL_CONFIG": os.devnull + "/none",
            "KCTL_ANSWER_TIMEOUT": "30",
        }


def properties(folder: Path, user: str, password: str, more: str = "") -> Path:
    """Client properties of Kafka's tools for a login."""
    file = folder / f"{user}.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={MODULE} required username="{user}" password="{password}"{more};\n'
        "request.timeout.ms=8000\ndefault.api.timeout.ms=12000\n"
    )
    return file


def lines_of_kafka(guarded: Guarded, login: Path) -> dict[str, str]:
    """The line of each token of the user that kafka-delegation-tokens lists."""
    is_old = guarded.cluster.version == "2.8"
    main = "kafka.admin.DelegationTokenCommand" if is_old else "org.apache.kafka.tools.DelegationTokenCommand"
    where = ("--bootstrap-server", guarded.sasl, "--command-config", login)
    printed = guarded.cluster.tool(main, *where, "--describe", "--owner-principal", f"User:{login.stem}")
    return {line.split()[0]: line for line in printed.splitlines() if re.match(r"[\w-]{22}\s", line)}


def by_kafka(guarded: Guarded, login: Path) -> dict[str, tuple[str, set[str]]]:
    """Owner and renewers of each token of the user that kafka-delegation-tokens lists."""
    first = 1 if guarded.cluster.version == "2.8" else 2  # behind the requester, where it is told
    tokens = {}
    for token_id, line in lines_of_kafka(guarded, login).items():
        principals = re.findall(r"User:[^\s,\])]+", line)
        tokens[token_id] = principals[0], set(principals[first:])
    return tokens


def times_by_kafka(guarded: Guarded, login: Path) -> dict[str, list[str]]:
    """When each token was issued, ends, and ends at the latest, to the minute of this machine's zone."""
    lines = lines_of_kafka(guarded, login).items()
    return {token_id: re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d", line) for token_id, line in lines}


def may_log_in_by(guarded: Guarded, folder: Path, token_id: str, hmac: str) -> bool:
    """Whether Kafka's own client gets in with the token."""
    login = properties(folder, token_id, hmac, " tokenauth=true")
    main = (
        "kafka.admin.ConsumerGroupCommand"
        if guarded.cluster.version < "3"
        else "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    )
    answer = guarded.cluster.tool(
        main, "--bootstrap-server", guarded.sasl, "--command-config", login, "--list", check=False
    )
    return "Exception" not in answer and "Error" not in answer


@pytest.fixture
def owner(guarded: Guarded, k: Kctl, name: str, tmp_path: Path) -> Login:
    """A user who has a password and no rights."""
    if guarded.is_before_protocol:
        pytest.skip("tokens came with Kafka 1.1")
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    k.change("user", "create", name, "--password-file", file, "--mechanism", "SCRAM-SHA-256")
    return Login(guarded.cluster, tmp_path / "own", guarded.sasl, name)


def listed(k: Kctl) -> dict[str, dict[str, Any]]:
    return {row["token_id"]: row for row in k("token", "list").of("token")}


def test_a_token_from_creation_to_its_end(guarded: Guarded, owner: Login, tmp_path: Path) -> None:
    refused = rows("token", "list", "--bootstrap-server", guarded.cluster.bootstrap)
    assert refused.status == 3 and "logged in with SASL" in refused.err
    login = properties(tmp_path, owner.user, SECRET)
    ran = owner("token", "create", "--renewer", "User:renewer", "--secret-to", tmp_path / "dry", "--dry-run")
    assert ran.status == 0 and len(ran.of("write")) == 1 and not (tmp_path / "dry").exists()
    assert listed(owner) == {} and owner.ids() == []

    began = time.time_ns() // 1_000_000
    ran = owner.change("token", "create", "--renewer", "User:renewer", "--lifetime", "3h")
    (issued,) = ran.of("issued_token")
    id, hmac = issued["token_id"], issued["hmac"]
    (token,) = listed(owner).values()
    assert (token["token_id"], token["owner"], token["renewers"]) == (
        id,
        f"User:{owner.user}",
        ["User:renewer"],
    )
    assert token["max_timestamp"] - token["issue_timestamp"] == 3 * HOUR and hmac not in str(token)
    assert by_kafka(guarded, login) == {id: (f"User:{owner.user}", {"User:renewer"})}
    cache = {**owner.environment, "XDG_CACHE_HOME": str(tmp_path)}
    assert proposed_by_a_cluster("kctl token renew ", **cache) == [id]
    assert may_log_in_by(guarded, tmp_path, id, hmac)

    def end(*args: object) -> int:
        """The minutes from the beginning after which the token ends, after a change."""
        owner.change(*args)
        return round((int(listed(owner)[id]["expiry_timestamp"]) - began) / 60_000)

    before = round((token["expiry_timestamp"] - began) / 60_000)
    assert end("token", "renew", id, "--for", "1h") in (60, 61)
    assert end("journal", "undo", owner.ids()[-1]) in (before, before + 1)
    assert end("token", "expire", id, "--after", "2h") in (120, 121)
    assert end("token", "renew", id) in (before, before + 1)
    assert end("token", "renew", id, "--for", "90m") in (90, 91)
    owner.change("journal", "undo", owner.ids()[2], status=4)  # it has been renewed since
    owner.change("token", "expire", id)
    assert listed(owner) == {} == by_kafka(guarded, login)
    assert not may_log_in_by(guarded, tmp_path, id, hmac)
    ran = owner.change("journal", "undo", owner.ids()[-1], status=4)
    assert "does not come back" in ran.err
    owner.change("token", "renew", id, status=3)

    owner.change("token", "create", "--secret-to", tmp_path / "secret")
    (other,) = listed(owner)
    secret = (tmp_path / "secret").read_text().strip()
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600 and may_log_in_by(
        guarded, tmp_path, other, secret
    )
    owner.change("journal", "undo", owner.ids()[-1])
    assert listed(owner) == {} == by_kafka(guarded, login)
    shown = [owner("journal", "show", id).out.decode() for id in owner.ids()]
    assert not [text for text in shown if hmac in text or secret in text]
    assert left_behind(owner.journal, hmac, secret, SECRET) == []


def test_a_token_for_somebody_else(guarded: Guarded, owner: Login, k: Kctl) -> None:
    """Whoever may not create it is told by which command an administrator lets them, and then may."""
    for_bob = ("token", "create", "--owner", f"User:{owner.user}-bob")
    if guarded.cluster.version == "2.8":
        assert "needs Kafka 3.3 (KIP-373)" in owner.change(*for_bob, status=4).err
        return
    ran = owner.change(*for_bob, status=3)
    assert f"CreateTokens on User User:{owner.user}-bob is missing for User:{owner.user}" in ran.err
    assert "nothing was written" in ran.err and listed(owner) == {}
    line = re.search("`kctl (acl create [^`]*)`", ran.err)
    assert line is not None
    k.change(*line[1].split(), *TOLD)
    for _ in eventually("the rule is known"):
        ran = owner(*for_bob, "--yes")
        if ran.status == 0:
            break
    assert "only User" in ran.err and "may expire it" in ran.err
    (token,) = listed(owner).values()
    assert (token["owner"], token["requester"]) == (f"User:{owner.user}-bob", f"User:{owner.user}")
    owner.change("token", "expire", token["token_id"], status=4)  # only the owner and its renewers may


POINTS = ("journalled", "before-write:0", "sent:1", "after-write:0", "written:0", "finished:0", "applied")


@pytest.mark.parametrize("way", ["resume", "undo"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("guarded", ["kraft-4.3"], indirect=True)
def test_a_creation_killed_and_gone_on_with(owner: Login, point: str, way: str, tmp_path: Path) -> None:
    """What was not sent is not sent by resume, since nobody would see the secret; what was sent is taken back by undo."""
    assert owner.killed("token", "create", "--renewer", "User:renewer", fault=point)
    (id,) = owner.ids()
    is_sent = point not in POINTS[:2]
    for _ in eventually("the broker shows the token"):
        if len(listed(owner)) == is_sent:
            break
    if way == "resume":
        ran = owner.change("journal", "resume", id, status=None)
        if is_sent:
            assert ran.status == (4 if point in POINTS[-2:] else 5), ran.err
            assert "told once" in ran.err and "then create another" in ran.err
        else:
            assert ran.status == 4 and "its secret is for the one who creates it" in ran.err
        assert len(listed(owner)) == is_sent
    owner.change("journal", "undo", id)
    assert listed(owner) == {}
    assert left_behind(owner.journal, SECRET) == [] and "hmac" not in "".join(
        file.read_text() for file in owner.journal.glob("*.json")
    )


@pytest.mark.parametrize("guarded", ["kraft-4.3"], indirect=True)
def test_of_two_tokens_that_a_killed_creation_may_have_made_none_is_ended(owner: Login) -> None:
    assert owner.killed("token", "create", fault="sent:1")
    for _ in eventually("the broker shows the token"):
        if len(listed(owner)) == 1:
            break
    (id,), (mine,) = owner.ids(), listed(owner)
    owner.change("token", "create")  # of the same owner and renewers, as somebody else would make it
    (other,) = set(listed(owner)) - {mine}
    for way in ("undo", "resume", "undo"):
        ran = owner.change("journal", way, id, status=4)
        assert "2 tokens may be it" in ran.err and mine in ran.err and other in ran.err
        assert "kctl token expire" in ran.err and set(listed(owner)) == {mine, other}
    owner.change("token", "create", "--renewer", "User:renewer")  # the same user, at the same time
    (third,) = set(listed(owner)) - {mine, other}
    owner.change("token", "expire", other)
    ran = owner.change("journal", "undo", id, status=4)
    assert f"1 token may be it: {mine}" in ran.err and "1 other token" in ran.err
    owner.change("token", "expire", third)
    owner.change("journal", "undo", id)
    assert listed(owner) == {} and owner.state(id) == "undone"


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("guarded", ["kraft-4.3"], indirect=True)
def test_an_end_killed_and_gone_on_with(owner: Login, point: str) -> None:
    owner.change("token", "create", "--lifetime", "2h")
    ((id, token),) = listed(owner).items()
    for change in (("renew", id, "--for", "1h"), ("expire", id, "--after", "30m"), ("expire", id)):
        before = listed(owner)[id]["expiry_timestamp"]
        assert owner.killed("token", *change, fault=point)
        for _ in eventually("what was sent is to be seen"):
            ends = [token["expiry_timestamp"] for token in listed(owner).values()]
            if point in POINTS[:2] or ends != [before]:
                break
        owner.change("journal", "resume", owner.ids()[-1], status=None)
        if change == ("expire", id):
            assert listed(owner) == {}
            return
        left = listed(owner)[id]["expiry_timestamp"] - time.time_ns() // 1_000_000
        assert abs(left - (HOUR if change[0] == "renew" else HOUR // 2)) < 120_000
        owner.change("journal", "undo", owner.ids()[-1])
        assert abs(listed(owner)[id]["expiry_timestamp"] - token["expiry_timestamp"]) < 120_000
