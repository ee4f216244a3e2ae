"""SASL GSSAPI with a KDC of this machine; needs MIT Kerberos's `krb5kdc` and the package `gssapi`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.brokers import cluster as rig
from tests.brokers.processes import eventually, free_ports

pytestmark = [pytest.mark.brokers, pytest.mark.matrix]
REALM = "KCTL.TEST"
BROKER = f"kafka/127.0.0.1@{REALM}"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"


@dataclass
class Kdc:
    """A key distribution centre, and a broker that takes its tickets."""

    folder: Path
    port: int = 0

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'tickets'}",
        }

    def run(self, *command: object) -> str:
        ran = subprocess.run(
            [*map(str, command)], env=self.environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        return ran.stdout

    def kctl(self, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
        """`cluster describe` in a process of its own: the library of Kerberos reads its environment once."""
        env = {**self.environment, "KCTL_CONFIG": os.devnull + "/none", "KCTL_SASL_MECHANISM": "GSSAPI"}
        command = ("cluster", "describe", "--bootstrap-server", f"{host}:{self.port}", "--output", "jsonl")
        return subprocess.run(
            [sys.executable, "-m", "commands", *command, "--timeout", "12"],
            env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    pytest.importorskip("gssapi")
    if not shutil.which("krb5kdc"):
        pytest.skip("no krb5kdc on the PATH")
    folder = tmp_path_factory.mktemp("kerberos")
    made = Kdc(folder)
    (port,) = free_ports(1)
    (folder / "krb5.conf").write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_canonicalize_hostname = false\nrdns = false\n"
        f"udp_preference_limit = 1\n[realms]\n{REALM} = {{\n kdc = 127.0.0.1:{port}\n}}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[kdcdefaults]\nkdc_ports = {port}\nkdc_tcp_ports = {port}\n[realms]\n{REALM} = {{\n"
        f" database_name = {folder}/principal\n key_stash_file = {folder}/stash\n acl_file = {folder}/kadm5.acl\n}}\n"
    )
    made.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    for name, keytab in ((BROKER, "broker.keytab"), (f"ann@{REALM}", "ann.keytab")):
        made.run("kadmin.local", "-r", REALM, "addprinc", "-randkey", name)
        made.run("kadmin.local", "-r", REALM, "ktadd", "-k", folder / keytab, name)
    server = subprocess.Popen(["krb5kdc", "-n", "-r", REALM], env=made.environment)
    try:
        for _ in eventually("there are tickets"):
            tried = subprocess.run(
                ["kinit", "-k", "-t", folder / "ann.keytab", "ann"], env=made.environment, check=False
            )
            if tried.returncode == 0:
                break
        yield from with_broker(made)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def with_broker(kdc: Kdc) -> Iterator[Kdc]:
    """A broker with a listener that takes tickets alone."""
    plaintext, quorum, gss = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plaintext},GSS://127.0.0.1:{gss}"
    properties = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{quorum}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GSS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.gss.sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.gss.sasl.kerberos.service.name": "kafka",
        "listener.name.gss.gssapi.sasl.jaas.config": f"{MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{kdc.folder}/broker.keytab" principal="{BROKER}";',
    }
    flags = (f"-Djava.security.krb5.conf={kdc.folder}/krb5.conf",)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "free_ports", lambda count: [plaintext, quorum][:count])
        with rig.kraft_cluster("4.3", brokers=1, properties=properties, flags=flags):
            kdc.port = gss
            yield kdc


def test_a_ticket_lets_in(kdc: Kdc) -> None:
    ran = kdc.kctl()
    assert ran.returncode == 0 and '"brokers":1' in ran.stdout, ran.stderr
    assert BROKER in kdc.run("klist")


def test_what_kerberos_refuses_is_said(kdc: Kdc) -> None:
    stranger = kdc.kctl("localhost")
    assert stranger.returncode == 3 and "not found in Kerberos database" in stranger.stderr, stranger.stderr
    kdc.run("kdestroy")
    ran = kdc.kctl()
    assert ran.returncode == 3 and "no Kerberos ticket for kafka/127.0.0.1: " in ran.stderr, ran.stderr
