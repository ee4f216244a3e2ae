"""ZooKeeper behind TLS, SASL and access lists, and one that is cut off from its quorum."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import make_acl, make_digest_acl

from tests.brokers.cluster import Cluster, cluster
from tests.brokers.processes import eventually, free_ports
from tests.brokers.running import Kctl
from tests.brokers.wire.test_rights import NEVER_OVER_A_PART
from tests.brokers.zookeeper import ZooKeeper

pytestmark = pytest.mark.brokers
LOGIN = {"sasl_options": {"mechanism": "DIGEST-MD5", "username": "kafka", "password": "hush"}}
JAAS = """Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="hush" user_other="else"; };
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="hush"; };
"""
SASL = {"KCTL_SASL_MECHANISM": "DIGEST-MD5", "KCTL_SASL_USERNAME": "kafka", "KCTL_SASL_PASSWORD": "hush"}


def as_digest(name: str) -> dict[str, str]:
    """The settings of a session with ZooKeeper's own digests."""
    return {"KCTL_SASL_MECHANISM": "digest", "KCTL_SASL_USERNAME": name, "KCTL_SASL_PASSWORD": "hush"}


def certificates(folder: Path) -> dict[str, Path]:
    """A CA, and certificates of the server and of a client, each a PEM file with its key."""

    def openssl(*args: object) -> None:
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, cwd=folder)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", 2,
            "-subj", "/CN=test-ca")  # fmt: skip
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-subj", f"/CN={name}")  # fmt: skip
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-out", f"{name}.crt", "-days", 2, "-extfile", "names")  # fmt: skip
        (folder / f"{name}.pem").write_text(
            (folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text()
        )
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module", params=["3.9", pytest.param("2.8", marks=pytest.mark.matrix)])
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, int, dict[str, Path]]]:
    """A broker with zookeeper.set.acl, and a ZooKeeper that wants SASL; its TLS port; certificates."""
    folder = tmp_path_factory.mktemp("security")
    (folder / "jaas.conf").write_text(JAAS)
    files = certificates(folder)
    (tls_port,) = free_ports(1)
    settings = {
        "authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "authProvider.2": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "sessionRequireClientSASLAuth": "true",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": tls_port,
        "secureClientPortAddress": "127.0.0.1",
        "ssl.keyStore.location": files["server.pem"],
        "ssl.trustStore.location": files["ca.pem"],
    }
    jaas = f"-Djava.security.auth.login.config={folder / 'jaas.conf'}"
    with cluster(
        request.param,
        brokers=1,
        properties={"zookeeper.set.acl": "true"},
        zookeeper_settings=settings,
        zookeeper_flags=(jaas,),
        flags=(jaas,),
        login=LOGIN,
    ) as c:
        yield c, tls_port, files


def tls(files: dict[str, Path]) -> dict[str, str]:
    return {
        "KCTL_TLS_CA": str(files["ca.pem"]),
        "KCTL_TLS_CERTIFICATE": str(files["client.crt"]),
        "KCTL_TLS_KEY": str(files["client.key"]),
    }


def test_what_brokers_protect_kctl_protects(
    secured: tuple[Cluster, int, dict[str, Path]], tmp_path: Path
) -> None:
    c, _, _ = secured
    k = Kctl(c, tmp_path / "journal")
    k.change("topic", "create", "guarded", "--partitions", 1, "--replication-factor", 1, **SASL)
    k.change("topic", "config", "set", "guarded", "flush.ms=5", **SASL)
    k.change("config", "set", "--entity-type", "users", "--entity-name", "u", "producer_byte_rate=5", **SASL)
    with c.client() as client:
        for path in ("/brokers/topics/guarded", "/config/topics/guarded"):
            ours = client.get_acls(path)[0]
            assert {(one.perms, one.id.scheme) for one in ours} == {(31, "sasl"), (1, "world")}, path
            assert set(client.get_acls("/config/topics")[0]) == set(ours)
        assert [one.id.scheme for one in client.get_acls("/config/users/u")[0]] == ["sasl"]
    k.change("topic", "delete", "guarded", **SASL)
    with c.client() as client:
        assert not client.exists("/config/topics/guarded")


def test_the_wrong_credentials(secured: tuple[Cluster, int, dict[str, Path]], tmp_path: Path) -> None:
    c, _, _ = secured
    k = Kctl(c, tmp_path / "journal")
    wrong = {**SASL, "KCTL_SASL_PASSWORD": "wrong"}
    ran = k("topic", "list", "--timeout", "3s", **wrong)
    assert ran.status == 3 and len(ran.errors) == 1, ran.err
    assert "wrong" not in ran.err
    assert k("topic", "list", "--timeout", "3s").status == 3  # none at all
    other = {**SASL, "KCTL_SASL_USERNAME": "other", "KCTL_SASL_PASSWORD": "else"}
    ran = k("topic", "create", "x", "--partitions", 1, "--replication-factor", 1, "--yes", **other)
    assert ran.status in (3, 4) and "nothing was written" in ran.err
    with c.client() as client:
        assert not client.exists("/brokers/topics/x")


# What a session without the brokers' credentials does not see, by command: brokers hide the configurations of users and
# brokers (`zookeeper.set.acl`); of the topic `hidden` the content is hidden too.
NOT_SEEN = {
    "topic list": "/brokers/topics/hidden",
    "topic describe": "/brokers/topics/hidden",
    "topic describe shown": "/config/brokers",  # of min.insync.replicas
    "topic describe hidden": "/brokers/topics/hidden",
    "topic config get shown": "",
    "topic config get hidden": "/config/topics/hidden",
    "config get --entity-type topics": "/config/topics/hidden",
    "config get --entity-type users": "/config/users",
    "config get --entity-type brokers": "/config/brokers",
    "cluster describe": "/brokers/topics/hidden",
    "cluster brokers": "/brokers/topics/hidden",
    "cluster controller": "",
    "cluster health": "/brokers/topics/hidden",
    "cluster predict --stop 1": "/brokers/topics/hidden",
    "cluster rolling": "/brokers/topics/hidden",
    "elect status": "/brokers/topics/hidden",
    "reassign status": "/brokers/topics/hidden",
    "reassign throttle list": "/config/brokers",
    "user list": "/config/users",
    "quota list": "/config/users",
    "acl list": "",
    "acl check User:a Read topic:shown --no-allow-everyone --super-user User:b": "",
    "acl audit": "/config/users",
}


def test_a_session_that_sees_a_part(secured: tuple[Cluster, int, dict[str, Path]], tmp_path: Path) -> None:
    """What is hidden is unknown, not absent, and named by its path."""
    c, _, _ = secured
    k = Kctl(c, tmp_path / "journal")
    for topic in ("shown", "hidden"):
        k.change("topic", "create", topic, "--partitions", 2, "--replication-factor", 1, **SASL)
        k.change("topic", "config", "set", topic, "flush.ms=5", **SASL)
    rate = "leader.replication.throttled.rate=5"
    k.change("config", "set", "--entity-type", "users", "--entity-name", "u", "producer_byte_rate=5", **SASL)
    k.change("config", "set", "--entity-type", "brokers", "--entity-name", "1", rate, **SASL)
    with c.client() as client:
        for path in ("/brokers/topics/hidden", "/config/topics/hidden"):
            owner = [entry for entry in client.get_acls(path)[0] if entry.id.scheme == "sasl"]
            client.set_acls(path, owner)
    other = {**SASL, "KCTL_SASL_USERNAME": "other", "KCTL_SASL_PASSWORD": "else"}
    wrong = {}
    for command, hidden in NOT_SEEN.items():
        seen_by_owner, ran = k(*command.split(), **SASL), k(*command.split(), **other)
        said = ran.err + ran.out.decode()
        is_named = f"{hidden}" in said and "does not allow this session to read" in said
        if seen_by_owner.status not in (0, 5) or "does not allow" in seen_by_owner.err:
            wrong[command, "owner"] = (seen_by_owner.status, seen_by_owner.err)
        expected = (
            (3, 5) if hidden and command != "topic list" else (0,)
        )  # of the list what is left out is a note
        if ran.status not in expected or (hidden and not is_named) or NEVER_OVER_A_PART.search(said):
            wrong[command, "other"] = (ran.status, ran.err)
    assert not wrong
    listed = k("topic", "list", **other)
    assert "shown" in [row["topic"] for row in listed.of("topic")]
    user_u = ("--entity-type", "users", "--entity-name", "u")
    ran = k("config", "set", *user_u, "producer_byte_rate=9", "--yes", **other)
    assert ran.status == 3 and "/config/users/u" in ran.err and "nothing was written" in ran.err
    for topic in ("shown", "hidden"):
        k.change("topic", "delete", topic, **SASL)


# --- six sessions -------------------------------------------------------------------------------------

# Whom znodes name, and the paths below which each may read.
READERS = {
    "topics": ("/brokers", "/controller"),
    "no-config": ("",),
    "no-topic": ("",),
}
NOT_FOR = {"no-config": ("/config",), "no-topic": ("/brokers/topics/hidden", "/config/topics/hidden")}
SESSIONS = {
    "full": SASL,
    **{name: as_digest(name) for name in (*READERS, "other")},
    "none": {},
}


def divide(c: Cluster) -> None:
    """Let the readers read their paths, and nobody else but the brokers anything."""
    with c.client() as client:
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            children = client.get_children(path)
            waiting += [f"{path.rstrip('/')}/{child}" for child in children]
            acl = [make_acl("sasl", "kafka", all=True)]
            for name, paths in READERS.items():
                is_kept = any(f"{path}/".startswith(f"{kept}/") for kept in NOT_FOR.get(name, ()))
                if not is_kept and (path == "/" or any(f"{path}/".startswith(f"{of}/") for of in paths)):
                    acl.append(make_digest_acl(name, "hush", read=True))
            client.set_acls(path, acl)


@pytest.fixture(scope="module", params=["2.8", pytest.param("3.9", marks=pytest.mark.matrix)])
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with zookeeper.set.acl, topics `shown` and `hidden`, values of each kind; and znodes that few may read."""
    jaas = tmp_path_factory.mktemp("divided") / "jaas.conf"
    jaas.write_text(JAAS)
    flag = f"-Djava.security.auth.login.config={jaas}"
    provider = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    with cluster(
        request.param, brokers=1, properties={"zookeeper.set.acl": "true"}, zookeeper_settings=provider,
        zookeeper_flags=(flag,), flags=(flag,), login=LOGIN,
    ) as c:  # fmt: skip
        k = Kctl(c, c.folder / "journal")
        for topic in ("shown", "hidden"):
            k.change("topic", "create", topic, "--partitions", 2, "--replication-factor", 1, **SASL)
            k.change("topic", "config", "set", topic, "flush.ms=5", **SASL)
        of_user = ("--entity-type", "users", "--entity-name", "u")
        k.change("config", "set", *of_user, "producer_byte_rate=5", **SASL)
        with c.client() as client:
            client.create("/consumers/old/offsets/shown/0", b"5", makepath=True)
            for path in ("/consumers/old/ids", "/consumers/old/owners/shown", "/delegation_token/tokens"):
                client.ensure_path(path)
        divide(c)
        yield c


LETTERS = {
    "m": ("/admin/delete_topics", "/cluster/id", "/controller_epoch"),
    "e": ("/controller_epoch",),
    "x": ("/brokers/topics/hidden",),
    "h": ("/config/topics/hidden",),
    "s": ("/config/topics/shown",),
    "T": ("/config/topics",),
    "B": ("/config/brokers",),
    "U": ("/config/users",),
    "L": ("/config/clients",),
    "N": ("/config/changes",),
}
# What is named as hidden, in the order of SESSIONS: nothing (-), or a letter for each path; D: all of it, and no row.
SEEN_BY = """
topic list                                     -  m     -    x   D  D
topic describe                                 -  mBT   BT   xh  D  D
topic describe shown                           -  mBs   Bs   -   D  D
topic describe hidden                          -  mBh   Bh   xh  D  D
topic config get shown                         -  ms    s    -   D  D
topic config get hidden                        -  mh    h    h   D  D
config get --entity-type topics                -  mT    T    xh  D  D
config get --entity-type users                 -  mU    U    -   D  D
config get --entity-type brokers               -  mB    B    -   D  D
top                                            -  mBNT  BNT  xh  D  D
cluster describe                               -  mBT   BT   xh  D  D
cluster brokers                                -  m     -    x   D  D
cluster controller                             -  e     -    -   D  D
cluster health                                 -  mBNT  BNT  xh  D  D
cluster predict --stop 1                       -  mBT   BT   xh  D  D
cluster rolling                                -  m     BT   x   D  D
elect status                                   -  m     -    x   D  D
reassign plan --topics hidden --to TO PLACED   -  m     -    x   D  D
reassign verify PLAN                           -  BT    BT   xh  D  D
reassign status                                -  BT    BT   xh  D  D
reassign throttle list                         -  mBT   BT   xh  D  D
user list                                      -  U     U    -   D  D
quota list                                     -  mLU   LU   -   D  D
acl list                                       -  m     -    -   D  D
acl check User:a Read topic:shown TOLD         -  m     -    -   D  D
acl audit                                      -  mU    U    -   D  D
quota check u c                                -  mLU   LU   -   D  D
token list                                     -  D     -    -   D  D
diff FILE                                      -  mh    h    xh  D  D
UNSET                                          -  U     U    -   D  D
consumer list                                  -  D     -    -   D  D
consumer describe old                          -  D     -    -   D  D
consumer assign old                            -  D     -    -   D  D
znode tree                                     -  D     D    D   D  D
znode show /brokers/topics/hidden              -  -     -    D   D  D
znode export OUT                               -  D     D    D   D  D
migration status                               -  D     -    -   D  D
migration check                                -  D     D    h   D  D
"""
UNSET = "config unset --entity-type users --entity-name u producer_byte_rate --dry-run --zookeeper"
# Of a cluster of one broker, which is not prepared for a migration.
WRONG_ANYWAY = ("cluster rolling", "migration check")
HIDDEN = re.compile(r"(/[\w/-]+): ZooKeeper does not allow this session to read it")


@pytest.mark.parametrize("session", SESSIONS)
def test_what_each_session_sees(divided: Cluster, tmp_path: Path, session: str) -> None:
    k = Kctl(divided, tmp_path / "journal")
    plan = tmp_path / "plan.json"
    moves = [{"topic": topic, "partition": 0, "replicas": [1]} for topic in ("shown", "hidden")]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    file = tmp_path / "cluster.yaml"
    file.write_text("topics: {hidden: {configs: {flush.ms: 5}}}\n")
    words = {
        "PLAN": plan, "TO": tmp_path / "planned.json", "PLACED": "--brokers 1",
        "TOLD": "--no-allow-everyone --super-user User:b",
        "FILE": file, "OUT": tmp_path / "znodes.jsonl", "UNSET": f"{UNSET} {divided.connect}",
    }  # fmt: skip
    wrong: dict[str, list[object]] = {}
    for line in SEEN_BY.strip().split("\n"):
        command, *cells = re.split(" {2,}", line)
        cell = dict(zip(SESSIONS, cells, strict=True))[session].strip("-")
        ran = k(
            *" ".join(str(words.get(word, word)) for word in command.split()).split(), **SESSIONS[session]
        )
        said = ran.out.decode() + ran.err
        named = set(HIDDEN.findall(said))
        if cell == "D":
            is_named = "ZooKeeper does not allow this session to read it" in said
            is_so = ran.status == 3 and not ran.rows and len(ran.errors) == 1 and is_named
        else:
            statuses = (
                {3} if cell and (command, session) != ("topic list", "no-topic") else {0}
            )  # that is a note
            statuses |= {5} if command in WRONG_ANYWAY else set()
            is_so = ran.status in statuses and named == {path for letter in cell for path in LETTERS[letter]}
        if not is_so or (cell and NEVER_OVER_A_PART.search(said)):
            wrong[command] = [ran.status, named, ran.err]
    assert not wrong, "\n".join(f"{command}: {faults}" for command, faults in wrong.items())


def test_tls_with_a_clients_certificate(
    secured: tuple[Cluster, int, dict[str, Path]], tmp_path: Path
) -> None:
    c, port, files = secured
    k = Kctl(c, tmp_path / "journal")
    at = ("--zookeeper", f"127.0.0.1:{port}{c.chroot}", "--timeout", "5s")
    ran = k("topic", "list", *at, **SASL, **tls(files))
    assert ran.status == 0, ran.err
    k.change(
        "topic",
        "create",
        "by-tls",
        "--partitions",
        1,
        "--replication-factor",
        1,
        *at[:2],
        **SASL,
        **tls(files),
    )
    k.change("topic", "delete", "by-tls", *at[:2], **SASL, **tls(files))
    without_client = {**tls(files), "KCTL_TLS_CERTIFICATE": "", "KCTL_TLS_KEY": ""}
    for environment in (without_client, {}, {"KCTL_TLS": "true"}):
        ran = k("topic", "list", *at, **{**SASL, **environment})
        assert ran.status == 3 and len(ran.errors) == 1, ran.err


@pytest.fixture
def cut_off(tmp_path: Path) -> Iterator[ZooKeeper]:
    """One server of three, the others never up, with the znodes of a small cluster in it."""
    server = ZooKeeper(tmp_path / "zookeeper", "3.9", flags=("-Dreadonlymode.enabled=true",))
    (tmp_path / "log4j.properties").write_text("log4j.rootLogger=WARN, stdout\n")
    server.start()
    client = server.client()
    for path in (
        "/brokers/ids",
        "/brokers/topics",
        "/admin/delete_topics",
        "/config/topics",
        "/config/changes",
    ):
        client.create(path, b"", makepath=True)
    client.create("/brokers/topics/a", b'{"version":1,"partitions":{"0":[1]}}')
    client.stop()
    client.close()
    server.stop()
    ports = free_ports(6)
    lines = [f"server.{n + 1}=127.0.0.1:{ports[2 * n]}:{ports[2 * n + 1]}" for n in range(3)]
    server.config.write_text(
        server.config.read_text()
        + "\n".join([*lines, "initLimit=4", "syncLimit=4", "localSessionsEnabled=true\n"])
    )
    (server.folder / "data" / "myid").write_text("1")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_a_server_without_its_quorum(cut_off: ZooKeeper, tmp_path: Path) -> None:
    k = Kctl(Cluster("3.9", tmp_path, cut_off), tmp_path / "journal")
    stale = k("topic", "list", "--timeout", "3s")
    for _ in eventually("the server serves reads", pause=1):
        stale = k("topic", "list", "--allow-stale", "--timeout", "5s")
        if stale.status == 0:
            break
        print(stale.err, cut_off.folder)
    assert [t["topic"] for t in stale.of("topic")] == ["a"]
    assert "may be stale" in stale.err
    ran = k("topic", "list", "--timeout", "3s")
    assert ran.status == 3 and len(ran.errors) == 1, ran.err
    create = ("topic", "create", "b", "--partitions", 1, "--replication-factor", 1, "--yes")
    ran = k(*create, KCTL_ANSWER_TIMEOUT="3s")
    assert ran.status == 3, ran.err
