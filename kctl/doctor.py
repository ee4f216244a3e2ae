"""Is this machine set up: settings with their origin, codecs, CRC providers, Java, Spark, optional libraries."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from formats.secrets import redact_text
from kctl.settings import KEYS, SECRET_KEYS, Context, read_context, settings_path


class Setting(NamedTuple):
    """A setting in force."""

    name: str
    value: str | None
    origin: str


class Check(NamedTuple):
    """One thing looked at: `ok`, `slow` (a fallback is used), `missing` (an extra), `wrong` (kctl cannot work)."""

    name: str
    state: str
    detail: str
    advice: str | None = None


def settings_in_force(values: Mapping[str, object], origins: Mapping[str, str]) -> Iterator[Setting]:
    """The settings file, then every key of the context in force with where its value comes from."""
    path = settings_path()
    yield Setting(
        "settings file",
        f"{path}{'' if path.is_file() else ' (not there)'}",
        "environment" if "KCTL_CONFIG" in os.environ else "default",
    )
    context = read_context(values, warn=lambda _: None)
    plain = read_context(
        {"context": context.name} if context.name else {},
        warn=lambda _: None,
        environ={"KCTL_CONFIG": str(path)},
    )
    yield Setting("context", context.name, origins.get("context", "context" if context.name else "default"))
    for key in KEYS:
        value = getattr(context, key)
        if value == Context._field_defaults[key]:
            continue
        is_secret = key in SECRET_KEYS or "-----BEGIN" in str(value)
        shown = "(set)" if is_secret else redact_text(str(value))
        if value == getattr(plain, key):
            origin = "context"
        else:
            origin = "environment" if os.environ.get(f"KCTL_{key.upper()}") == value else "flag"
        yield Setting(key, shown, origin)
    for key in ("output", "color"):
        origin = (
            "default"
            if values.get(key) is None
            else "environment"
            if f"KCTL_{key.upper()}" in os.environ
            else "flag"
        )
        yield Setting(key, str(values.get(key) or {"output": "text", "color": "auto"}[key]), origin)


def machine_checks() -> Iterator[Check]:
    """Everything kctl can use here, whether it is there or not."""
    for check in CHECKS:
        yield check()
    if _version("pyspark"):
        yield from _spark_settings()


def _spark_settings() -> Iterator[Check]:
    """What kctl sets for Spark, each with its reason."""
    from kctl.spark.session import DONE_BY_KCTL, SETTINGS

    for name, (value, reason) in SETTINGS.items():
        yield Check("spark setting", "ok", f"{name}={value}: {reason}")
    for subject, reason in DONE_BY_KCTL.items():
        yield Check("spark setting", "ok", f"{subject}: {reason}")


def pip_install() -> str:
    """The command that installs into the environment of kctl, whichever that of the shell is."""
    pip = shutil.which("pip")
    if pip and os.path.dirname(pip) == os.path.dirname(sys.executable):
        return "pip install"
    # `uv tool install` leaves pip out
    return (
        f"{sys.executable} -m pip install"
        if find_spec("pip")
        else f"uv pip install --python {sys.executable}"
    )


def _python() -> Check:
    text = f"{sys.version.split()[0]} at {sys.executable}"
    return Check("python", "ok" if sys.version_info >= (3, 11) else "wrong", text)


def _crc() -> Check:
    from formats.binary.crc import provider

    name, _ = provider()
    if name == "numpy":
        return Check(
            "crc-32c", "slow", "numpy", f"{pip_install()} google-crc32c: checksums run ten times faster"
        )
    return Check("crc-32c", "ok", name)


def _codec(name: str, module: str, package: str) -> Callable[[], Check]:
    def check() -> Check:
        try:
            import_module(module)
        except ImportError:
            return Check(
                name,
                "slow",
                "through pyarrow",
                f"{pip_install()} {package}: small batches decompress several times faster",
            )
        return Check(name, "ok", f"{package} {_version(package)}")

    return check


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _gzip() -> Check:
    if _version("isal"):
        return Check("gzip", "ok", f"isal {_version('isal')}")
    return Check("gzip", "ok", "zlib of the standard library", f"{pip_install()} 'kctl[fast]': faster gzip")


def _extra(name: str, package: str, extra: str, purpose: str) -> Callable[[], Check]:
    def check() -> Check:
        installed = _version(package)
        if installed:
            return Check(name, "ok", f"{package} {installed}")
        return Check(
            name, "missing", f"{package} is not installed", f"{pip_install()} 'kctl[{extra}]' for {purpose}"
        )

    return check


def _java() -> Check:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return Check(
            "java", "missing", "no java on the PATH", "only Spark needs it: install Java 17 or later"
        )
    try:
        output = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("java", "missing", f"{java}: {error}", "only Spark needs it: install Java 17 or later")
    number = output.split('"')[1] if output.count('"') >= 2 else ""
    major = int(number.split(".")[0]) if number.split(".")[0].isdigit() else 0
    if major < 17:
        return Check(
            "java", "missing", f"{java} is version {number or 'unknown'}", "Spark 4 needs Java 17 or later"
        )
    return Check("java", "ok", f"{number} at {java}")


CHECKS: tuple[Callable[[], Check], ...] = (
    _python,
    _crc,
    _codec("snappy", "cramjam", "cramjam"),
    _codec("lz4", "lz4.frame", "lz4"),
    _codec("zstd", "zstandard", "zstandard"),
    _gzip,
    _extra("pyarrow", "pyarrow", "core", "tables"),
    _java,
    _extra("spark", "pyspark", "spark", "scans on a Spark cluster"),
    lambda: Check("admin protocol", "ok", "part of kctl"),
    _extra("sql", "duckdb", "sql", "kctl audit sql"),
)
