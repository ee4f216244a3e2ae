"""Every command that changes a cluster, by each of the users: carried out, or refused as a whole with the right named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers.cluster import Cluster, eventually
from tests.brokers.wire.conftest import WireKctl, fill
from tests.brokers.wire.halfway.test_half_allowed import group_at
from tests.brokers.wire.test_groups import member
from tests.brokers.wire.test_rights import (
    CLUSTERS,
    NEVER_OVER_A_PART,
    PARAMS,
    TOLD,
    USERS,
    AsUser,
    fill_in,
    give,
    grants,
)
from tests.brokers.wire.test_transactions import open_transaction
from tests.conftest import kctl

pytestmark = pytest.mark.brokers

LETTERS = {
    "C": "Describe on Cluster",
    "c": "DescribeConfigs on Cluster",
    "A": "Alter on Cluster",
    "a": "AlterConfigs on Cluster",
    "M": "ClusterAction on Cluster",
    "T": "Describe on Topic *",
    "t": "Describe on Topic orders",
    "k": "AlterConfigs on Topic orders",
    "d": "Delete on Topic orders",
    "o": "Describe on Topic own-USER",
    "l": "Alter on Topic own-USER",
    "e": "Delete on Topic own-USER",
    "n": "Create on Topic new-USER",
    "G": "Describe on Group *",
    "g": "Describe on Group group-USER",
    "r": "Read on Group group-USER",
    "x": "Delete on Group group-USER",
    "X": "Describe on TransactionalId *",
    "s": "Describe on Topic",  # of what brokers store
}
# What is named as missing, in the order of USERS: nothing (-: carried out), or a letter for each right: nothing was written.
# What begins with + is carried out all the same, with a warning; = is refused for another reason.
CHANGED_BY = """
topic create new-USER --replica-assignment 1                                -    n    n    n    n    n    n
topic alter own-USER --partitions 2                                         -    l    o    o    o    o    o
topic delete own-USER                                                       -    e    o    o    o    o    o
topic config set orders retention.ms=90000N                                 -    k    k    t    t    t    -
topic config unset orders flush.ms                                          -    k    k    t    t    t    -
topic delete-records orders --partition 0 --to-offset N --accept-loss       -    Cd   Cd   t    t    t    -
config set --entity-type brokers --entity-name 1 log.cleaner.threads=1      -    c    c    c    c    c    -
config unset --entity-type brokers --entity-name 2 log.cleaner.threads      -    c    c    c    c    c    -
config set --entity-type users --entity-name USER producer_byte_rate=9      -    c    c    c    c    c    -
config unset --entity-type users --entity-name u-USER producer_byte_rate    -    c    c    c    c    c    -
quota set --user USER consumer_byte_rate=9                                  -    c    c    c    c    c    -
quota unset --user u-USER consumer_byte_rate                                -    c    c    c    c    c    -
reassign execute MOVED                                                      -    A    A    t    t    t    -
reassign execute MOVED --throttle 50MiB                                     -    c    c    t    t    t    -
reassign cancel MOVING                                                      -    C    C    t    t    t    -
reassign throttle set MOVING 1MiB                                           -    c    c    t    t    t    -
reassign throttle clear MOVING                                              -    k    k    ct   ct   ct   -
elect preferred --topics orders                                             -    A    A    t    t    t    -
elect unclean orders --accept-loss                                          -    -    -    t    t    t    -
cluster unregister 2                                                        =    C    C    C    s    C    s
quorum add 2                                                                =    C    C    C    =    C    =
quorum remove 1                                                             =    C    C    C    =    C    =
feature upgrade FEATURE                                                     -    C    C    C    A    C    -
feature downgrade FEATURE --accept-downgrade                                -    C    C    C    A    C    -
group remove-member group-USER MEMBER                                       -    g    g    r    g    g    -
group reset group-USER --topic orders --to-offset 2 --execute               -    g    g    t    g    g    -
group delete-offsets group-USER --topic orders:1 --accept-loss              -    g    g    t    g    g    -
group delete group-USER --accept-loss                                       -    g    g    Tx   g    g    +T
acl create --principal User:new-USER --operation read --topic orders TOLD   -    C    C    C    AcTG C    +T
acl copy User:bob User:other-USER TOLD                                      -    C    C    C    AcTG C    +T
acl delete --principal User:old-USER TOLD                                   -    C    C    C    AcTG C    +T
user create new-USER --password-command hostname                            -    C    C    C    A    C    -
user set-password old-USER --password-command hostname                      -    C    C    C    A    C    -
user delete old-USER                                                        -    C    C    C    A    C    -
transactions abort orders-0 --force                                         -    CMX  CMX  t    t    t    +X
apply FILE TOLD                                                             -    k    k    t    t    t    -
journal undo UNDONE                                                         -    c    c    c    c    c    -
journal resume RESUMED                                                      -    c    c    c    c    c    -
"""
# What changes where `facts` does not look.
UNSEEN = (
    "topic delete-records",
    "elect",
    "feature",
    "user set-password",
    "transactions abort",
    "cluster unregister",
)
ONLY_KRAFT = ("quorum", "feature", "cluster unregister")
FILE = "topics: {orders: {configs: {retention.bytes: 90000N}}}\n"
Words = dict[str, object]
MISSING = re.compile(r"(\w+ on \w+(?: [\w.*, -]*[\w*])?)(?:, or [\w ]+,)? is missing for")


@dataclass
class Prepared:
    """What the administrator makes for a command of a user, before it and after it; `number` differs by user."""

    c: Cluster
    k: WireKctl
    folder: Path
    user: str
    number: int

    def plan(self, partition: int, *replicas: int) -> Path:
        path = self.folder / f"plan-{partition}-{'-'.join(map(str, replicas))}.json"
        path.write_text(
            json.dumps(
                {
                    "version": 1,
                    "partitions": [{"topic": "orders", "partition": partition, "replicas": replicas}],
                }
            )
        )
        return path

    def moved(self) -> Path:
        """A plan that adds a replica, which the partition has not now."""
        self.k.change("reassign", "execute", self.plan(1, 1))
        return self.plan(1, 1, 2)

    @contextmanager
    def moving(self) -> Iterator[Path]:
        """A move that goes on for as long as the command."""
        self.k.change("reassign", "execute", self.plan(0, 1))
        plan = self.plan(0, 1, 2)
        self.k.change("reassign", "execute", plan, "--throttle", "1000", "--no-wait")
        yield plan
        self.k.change("reassign", "cancel", plan)
        self.k.change("reassign", "throttle", "clear", plan)

    @contextmanager
    def for_command(self, command: str) -> Iterator[dict[str, object]]:
        """The words of a command that are not known before."""
        k, user = self.k, self.user
        match command.split()[:3]:
            case ["topic", "config", "unset"]:
                k.change("topic", "config", "set", "orders", "flush.ms=5")
            case ["config", "unset", *_] if "brokers" in command:
                k.change(
                    "config", "set", "--entity-type", "brokers", "--entity-name", 2, "log.cleaner.threads=1"
                )
            case ["config" | "quota", "unset", *_]:
                k.change(
                    "quota", "set", "--user", f"u-{user}", "producer_byte_rate=5", "consumer_byte_rate=5"
                )
            case ["reassign", "execute", _]:
                yield {"MOVED": self.moved()}
                return
            case ["reassign", *_]:
                with self.moving() as plan:
                    yield {"MOVING": plan}
                return
            case ["elect", "preferred", _]:
                k.change("reassign", "execute", self.plan(1, 1, 2))
                (leader,) = [
                    row["leader"]
                    for row in k("topic", "describe", "orders").of("partition")
                    if row["partition"]
                ]
                k.change("reassign", "execute", self.plan(1, 3 - leader, leader))
            case ["feature", verb, _]:
                level = ("0", "1") if verb == "downgrade" else ("1", "0")
                k.change(
                    "feature",
                    "downgrade" if level[1] == "0" else "upgrade",
                    f"group.version={level[1]}",
                    *(["--accept-downgrade"] if level[1] == "0" else []),
                )
                yield {"FEATURE": f"group.version={level[0]}"}
                return
            case ["group", "remove-member", _]:
                with member(self.c, f"group-{user}", "orders"):
                    (row,) = k("group", "describe", f"group-{user}").of("member")
                    yield {"MEMBER": row["member_id"]}
                return
            case ["acl", "delete", _]:
                give(self.c, {f"old-{user}": grants("Read Topic orders")})
            case ["user", "set-password" | "delete", _]:
                k("user", "create", f"old-{user}", "--password-command", "hostname", "--yes")
            case ["transactions", *_]:
                with open_transaction(self.c, "orders"):
                    yield {}
                return
            case ["journal", "undo", _]:
                k.change("quota", "set", "--user", f"j-{user}", "producer_byte_rate=5")
                yield {"UNDONE": k.ids()[-1]}
                return
            case ["journal", "resume", _]:
                assert k.killed(
                    "quota", "set", "--user", f"r-{user}", "producer_byte_rate=5", fault="before-write:0"
                )
                yield {"RESUMED": k.ids()[-1]}
                return
        yield {}


def facts(k: WireKctl, user: str) -> object:
    """What commands of a user might have changed, as the administrator sees it."""
    described = k("group", "describe", f"group-{user}")
    return (
        kctl("export", env=k.environment).out,
        described.of("member"),
        [(row["topic"], row["partition"], row["offset"]) for row in described.of("group_offset")],
        k("reassign", "throttle", "list").of("throttle"),
    )


@pytest.fixture(scope="module", params=PARAMS)
def changed(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster with an authorizer and the users; a topic and a group for each; much in one partition."""
    with CLUSTERS[request.param](tuple(USERS)) as c:
        fill_in(c)
        give(c, {user: grants(text) for user, text in (*USERS.items(), ("bob", "Read Topic payments"))})
        fill(c, "orders", records=20, size=50_000)
        k = WireKctl(c, c.folder / "journal")
        for user in USERS:
            k.change("topic", "create", f"own-{user}", "--replica-assignment", "1")
            group_at(c, f"group-{user}", ["orders"], 3)
        for _ in eventually("the rights of the first user are known"):
            if AsUser(c, c.folder / "journal", "all")("cluster", "describe").status == 0:
                break
        yield c


@pytest.mark.parametrize("user", USERS)
def test_what_each_user_changes(changed: Cluster, tmp_path: Path, user: str) -> None:
    k, number = WireKctl(changed, tmp_path / "journal"), list(USERS).index(user) + 1
    as_user = AsUser(changed, tmp_path / "journal", user)
    prepared = Prepared(changed, k, tmp_path, user, number)
    file = tmp_path / "cluster.yaml"
    file.write_text(FILE.replace("N", str(number)))
    wrong: dict[str, list[object]] = {}
    for line in CHANGED_BY.strip().split("\n"):
        command, cells = re.split(" {2,}", line, maxsplit=1)
        cell = dict(zip(USERS, cells.split(), strict=True))[user]
        if (command.startswith(ONLY_KRAFT) and changed.zookeeper) or (
            command.startswith("feature") and changed.version < "4"
        ):
            continue
        with prepared.for_command(command) as words:
            words = {"FILE": file, "TOLD": TOLD, **words}
            listed = [
                str(words.get(word, word.replace("USER", user) if "-USER" in word else word))
                for word in command.split()
            ]
            args = [user if word == "USER" else re.sub(r"(?<=0)N$|^N$", str(number), word) for word in listed]
            before = facts(k, user)
            ran = as_user(*" ".join(args).split(), "--yes")
            is_same = facts(k, user) == before
        said = ran.out.decode() + ran.err
        named = {
            re.sub(r"(?<=on Group )[\w-]+", "*", right) if command.startswith("acl") else right
            for right in MISSING.findall(said)
        }
        expected = {LETTERS[letter].replace("USER", user) for letter in cell.strip("-+=")}
        is_carried_out = cell[0] in "-+"
        faults = [
            named != expected and (named, expected),
            ran.status not in ((0,) if is_carried_out else (3, 4)) and ran.status,
            is_carried_out and "nothing was written" in said and "it was written",
            cell[0] not in "-+=" and "nothing was written" not in said and "was it written?",
            not is_carried_out and not is_same and "something was written",
            is_carried_out
            and is_same
            and not command.startswith(UNSEEN)
            and "nothing to do" not in said
            and "nothing is changed",
            *re.findall("ask again|org.apache|AUTHORIZATION", ran.err),
            bool(expected) and f"User:{user}" not in said and "nobody",
            *NEVER_OVER_A_PART.findall(said),
        ]
        if any(faults):
            wrong[command] = [*filter(None, faults), ran.err]
    assert not wrong, "\n".join(f"{command}: {faults}" for command, faults in wrong.items())
