"""kctl: what an Apache Kafka cluster did and does, for programs and notebooks.

    import kctl
    kctl.open_segment("orders-0/00000000000000000000.log").records(from_offset=40).to_arrow()
    kctl.Evidence("evidence/").losses()
    kctl.connect(bootstrap_server="kafka1:9092").plan_reassignment(drain=[2]).diff()

What `__all__` names is stable; all other modules are private and change without notice. Everything raises KctlError, and
`Refused` where a change was not made. Rows are `Value`s, whose attributes are the keys that `kctl schema` documents.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kctl.version import __version__

if TYPE_CHECKING:
    from kctl.api.clusters import Cluster, Plan, connect
    from kctl.api.evidence import Evidence
    from kctl.api.segments import Columns, Segment, open_segment
    from kctl.api.values import Value, Values
    from kctl.errors import KctlError, Refused

__all__ = [
    "Cluster",
    "Columns",
    "Evidence",
    "KctlError",
    "Plan",
    "Refused",
    "Segment",
    "Value",
    "Values",
    "__version__",
    "connect",
    "open_segment",
]  # fmt: skip

_HOME = {
    "Cluster": "api.clusters", "Plan": "api.clusters", "connect": "api.clusters",
    "Evidence": "api.evidence",
    "Columns": "api.segments", "Segment": "api.segments", "open_segment": "api.segments",
    "Value": "api.values", "Values": "api.values",
    "KctlError": "errors", "Refused": "errors",
}  # fmt: skip
"""Where a name is; its module is imported when it is asked for, since every command imports this package."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kctl' has no attribute {name!r}")
    return getattr(import_module(f"kctl.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
