"""Each artefact of a release in an empty environment: `check.py FOLDER` installs or unpacks it, runs commands and the demo.

A standalone folder runs on this machine and, as root with debootstrap, in systems of Debian releases without a Python: there
by a user without rights, and everything but /tmp is read-only. What could not be tried is said at the end.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RELEASES = ("bullseye", "bookworm", "trixie")  # Debian 11 to 13
SYSTEMS = ROOT / "build" / "systems"
SLOWEST = 1.2
"""A standalone folder may take this much of the time that the wheel takes."""

INCIDENT = "examples/unclean-election"
LOG = f"{INCIDENT}/moments/during/broker-2/data/ledger-0"
STARTS: tuple[tuple[str, ...], ...] = (("--version",), ("segment", "verify", LOG))
ROWS = ("--output", "jsonl")
COMMANDS: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("doctor",), 0, "crc-32c"),
    (("replica", "loss", INCIDENT, *ROWS), 5, '"kind":"loss"'),
    (("segment", "verify", LOG, "--jobs", "2", *ROWS), 0, '"batches":13'),
    (("audit", "run", INCIDENT, "--out", "OUT", "--jobs", "2"), 5, ""),
    (("audit", "sql", "OUT", "SELECT 40 + count(*) * 0 AS n FROM batches", *ROWS), 0, '"n":40'),
    (("state-log", "timeline", INCIDENT, *ROWS), 5, '"kind":"leader"'),
    (("cluster", "describe", "--bootstrap-server", "127.0.0.1:1"), 3, "127.0.0.1:1"),
    (("cluster", "describe", "--zookeeper", "127.0.0.1:1"), 3, "127.0.0.1:1"),
    (("completion", "bash"), 0, "complete"),
)
"""A command, its exit status and a text that it prints; the core's libraries, kazoo and duckdb are behind them."""

NAMES = """
from commands.catalogue import COMMANDS, Group
for name, entry in COMMANDS.items():
    print(name)
    for verb in entry.verbs if isinstance(entry, Group) else ():
        print(name, verb)
"""
IMPORT = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
LIBRARIES = (
    "aws_msk_iam_sasl_signer cramjam cryptography ctypes duckdb google_crc32c isal kazoo lz4 msgspec numpy puresasl "
    "pyarrow.dataset pyarrow.fs pyarrow.parquet rich ssl yaml zlib zstandard"
)
SHARED = ("man/man1/kctl.1", "man/man1/kctl-topic.1", "bash-completion/completions/kctl")

# A system that is read-only but for /tmp, with the folder of kctl and the examples; then the command as nobody.
INSIDE = """
system=$1 kctl=$2 examples=$3; shift 3
mount --bind "$system" "$system" && mount -o remount,ro,bind "$system" &&
mount --bind "$kctl" "$system/opt" && mount -o remount,ro,bind "$system/opt" &&
mount --bind "$examples" "$system/srv" && mount -o remount,ro,bind "$system/srv" &&
mount --bind "$SCRATCH" "$system/tmp" && mount -t tmpfs tmpfs "$system/dev/shm" && mount -t proc proc "$system/proc" &&
exec chroot --userspec=65534:65534 "$system" env -i HOME=/ PATH=/usr/bin:/bin sh -c 'cd /srv && exec "$@"' sh "$@"
"""


def ran(words: Sequence[object], **more: object) -> subprocess.CompletedProcess[str]:
    """A command in the folder of the project, with none of this machine's variables."""
    few = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**few, **{name: str(value) for name, value in more.items()}},
    )


def expect(words: Sequence[object], status: int, text: str, **more: object) -> None:
    """End with what the command printed, if it printed or returned something else."""
    result = ran(words, **more)
    if result.returncode != status or text not in result.stdout + result.stderr:
        said = f"{' '.join(map(str, words))}: status {result.returncode}, expected {status} and {text!r}"
        sys.exit(f"{said}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")


def installed(artefact: Path, folder: Path) -> Path:
    """kctl of a wheel or an sdist in an environment that holds nothing else."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", f"kctl[sql] @ file://{artefact}"], check=True)
    return folder / "bin" / "kctl"


def unpacked(archive: Path, folder: Path) -> Path:
    """kctl of a standalone archive in a folder that the archive was not built in."""
    folder.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True)
    (top,) = folder.iterdir()
    return top / "bin" / "kctl"


def check_demo(kctl: Path, out: Path) -> None:
    expect(["examples/demo", kctl], 0, "report.html", KCTL_DEMO_OUT=out)
    assert (out / "report.html").stat().st_size > 10_000


def check_commands(before: Sequence[object], out: Path, **more: object) -> None:
    """The table above, with a folder to write to; `before` is what stands before a command's words."""
    for words, status, text in COMMANDS:
        expect([*before, *(out if word == "OUT" else word for word in words)], status, text, **more)


def check_folder(kctl: Path) -> list[str]:
    """What only a standalone folder can lack: libraries, the help of each command, pages. Faults of its Python are returned."""
    python, top = kctl.parent / "python3", kctl.parents[1]
    expect([python, "-I", "-c", IMPORT, *LIBRARIES.split()], 0, "")
    names = ran([python, "-I", "-c", NAMES]).stdout.splitlines()
    assert len(names) > 80, names
    for name in names:
        expect([kctl, *name.split(), "--help"], 0, "Usage: kctl")
    for page in SHARED:
        assert (top / "share" / page).is_file(), page
    link = top.parent / "kctl"
    link.symlink_to(kctl)
    expect([link, "--version"], 0, "kctl")
    print(f"  {len(names)} commands; {(top / 'PYTHON').read_text()}", end="")
    return [line for line in (top / "PYTHON").read_text().splitlines() if line.startswith("without")]


def system_of(release: str) -> Path:
    """The smallest system of a Debian release, made once."""
    system = SYSTEMS / release
    if not (system / "made").exists():
        shutil.rmtree(system, ignore_errors=True)
        system.mkdir(parents=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", release, system], check=True, stdout=subprocess.DEVNULL
        )
        (system / "made").touch()
    assert not list((system / "usr" / "bin").glob("python*")), f"{release} has a Python of its own"
    return system


def check_systems(kctl: Path, scratch: Path) -> list[str]:
    """In each release; what was not tried is returned."""
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        return [f"Debian {', '.join(RELEASES)}: needs root and debootstrap"]
    scratch.mkdir(mode=0o1777)
    scratch.chmod(0o1777)
    for release in RELEASES:
        system = system_of(release)
        before = ["unshare", "--mount", "sh", "-c", INSIDE, "sh", system, kctl.parents[1], ROOT]
        check_commands([*before, "/opt/bin/kctl"], Path("/tmp") / release, SCRATCH=scratch)
        print(f"  Debian {release}: all commands")
    return []


def compare_starts(kctl: Path, of_wheel: Path) -> None:
    """The shortest of twenty runs of both, in turns; of a hundred, where other load of the machine met one of them."""
    for words in STARTS:
        shortest = {kctl: 1e9, of_wheel: 1e9}
        for turn in range(100):
            for each in shortest:
                begin = time.perf_counter()
                ran([each, *words])
                shortest[each] = min(shortest[each], time.perf_counter() - begin)
            ratio = shortest[kctl] / shortest[of_wheel]
            if turn >= 20 and ratio <= SLOWEST:
                break
        print(
            f"  {' '.join(words[:2])}: {shortest[kctl]:.3f} s, {ratio:.2f} of the wheel's {shortest[of_wheel]:.3f} s"
        )
        if ratio > SLOWEST:
            sys.exit(f"the standalone folder is slower than {SLOWEST} of the wheel")


def check(dist: Path) -> None:
    """Every artefact of the folder."""
    wheels, sdists = (
        sorted(dist.glob("*.whl")),
        [path for path in sorted(dist.glob("kctl-*.tar.gz")) if path.name.count("-") == 1],
    )
    archives = sorted(dist.glob("kctl-*-linux-*.tar.*"))
    if not wheels:
        sys.exit(f"{dist}: no wheel is there; `make dist` or `make release` writes one")
    untried = [] if archives else ["standalone archives: none is there; `make standalone` writes them"]
    of_wheel = Path()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        for number, artefact in enumerate((*wheels, *sdists, *archives)):
            print(artefact.name, flush=True)
            place = folder / str(number)
            if artefact in archives:
                kctl = unpacked(artefact, place)
                untried += check_folder(kctl)
                compare_starts(kctl, of_wheel)
                untried += check_systems(kctl, folder / f"{number}-tmp")
            else:
                kctl = installed(artefact, place)
                of_wheel = of_wheel if of_wheel.name else kctl
            check_demo(kctl, folder / f"{number}-report")
            check_commands([kctl], folder / f"{number}-audit")
    print("every artefact works")
    for line in untried:
        print(f"NOT TRIED: {line}")


if __name__ == "__main__":
    check(Path(sys.argv[1]).resolve())
