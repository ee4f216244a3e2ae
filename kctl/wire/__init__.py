"""Clusters over Kafka's own protocol: the second backend of `kctl.cluster`, and reading logs from live brokers."""

from kctl.errors import KctlError
from kctl.wire.shortcuts.imports import enter_packages

try:
    enter_packages()
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "kafka":
        raise
    raise KctlError(
        "--bootstrap-server needs kafka-python, which is not installed", "pip install 'kctl[wire]'"
    ) from None
