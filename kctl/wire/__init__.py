"""Clusters over Kafka's own protocol: the second backend of `kctl.cluster`, and reading logs from live brokers."""

from kctl.errors import KctlError
from kctl.wire.shortcuts.imports import enter_packages

TESTED = "3.0.12"  # of kafka-python: `kctl.wire.shortcuts` takes the place of parts of it

try:
    enter_packages()
    from kafka.version import __version__ as found
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "kafka":
        raise
    raise KctlError(
        "--bootstrap-server needs kafka-python, which is not installed", "pip install 'kctl[wire]'"
    ) from None
if found != TESTED:
    raise KctlError(
        f"--bootstrap-server works with kafka-python {TESTED}, and {found} is installed",
        f"pip install kafka-python=={TESTED}",
    )
