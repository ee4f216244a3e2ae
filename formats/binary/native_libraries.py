"""Native libraries that make things faster and that kctl can do without.

Executors of a cluster often have numpy and pyarrow only: each caller has a fallback.
"""

from functools import cache
from importlib import import_module
from typing import Any
from warnings import catch_warnings, simplefilter


@cache
def optional(name: str) -> Any | None:
    """The module of that name, or None where it is not installed or does not load."""
    try:
        # google-crc32c warns when its C part is missing; the caller looks at that itself.
        with catch_warnings():
            simplefilter("ignore")
            return import_module(name)
    except ImportError:
        return None
