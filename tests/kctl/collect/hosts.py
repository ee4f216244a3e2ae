"""Other machines that are this one: a local sshd with keys of its own, and stand-ins for docker and kubectl."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STAND_INS = {
    "docker": 'test "$1 $2" = "exec -i" || exit 9\nshift 3\nexec "$@"\n',
    "kubectl": (
        'test "$1 $2" = "-n kafka" || exit 9\nshift 2\n'
        'if test "$1 $2" = "get pod"; then echo sidecar kafka; exit; fi\n'
        'test "$1 $2" = "exec -i" || exit 9\n'
        'while test "$1" != --; do shift; done\nshift\nexec "$@"\n'
    ),
}


def stand_ins(folder: Path, shell: str = "") -> dict[str, str]:
    """An environment whose docker and kubectl run their command here; with `shell` in the place of `sh`."""
    folder.mkdir(exist_ok=True)
    for name, script in STAND_INS.items():
        path = folder / name
        path.write_text(
            "#!/bin/sh\n" + script.replace('exec "$@"', f"exec {shell}") if shell else "#!/bin/sh\n" + script
        )
        path.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def sshd_program() -> str | None:
    """Where Debian's openssh-server puts it."""
    return shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


@contextmanager
def sshd(folder: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """A running sshd: its port, and an environment whose ssh has the key for it."""
    program, client = sshd_program(), shutil.which("ssh")
    assert program and client
    folder.mkdir()
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    settings = folder / "sshd_config"
    settings.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    (folder / "ssh_config").write_text(
        f"Host *\nIdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking accept-new\nGlobalKnownHostsFile /dev/null\n"
    )
    (folder / "bin").mkdir()
    wrapper = folder / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {client} -F {folder}/ssh_config "$@"\n')
    wrapper.chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [program, "-f", str(settings), "-D", "-e"], stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        for _ in range(200):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield port, {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    finally:
        server.terminate()
        server.wait()


def user() -> str:
    """The name to log in with."""
    return getpass.getuser()
