"""A plugin of pytest for `make test-newest`: kafka-python as it is installed, taken for the version that is pinned.

It tells whether the pin can move: what fails is what has changed in the library.
"""

import re
import sys
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).parents[1] / "kctl" / "wire" / "__init__.py"
PINNED = re.findall(r'(?m)^TESTED = "(.+?)"', SOURCE.read_text("utf-8"))[0]

stand_in = ModuleType("kafka.version")
stand_in.__dict__["__version__"] = PINNED
sys.modules["kafka.version"] = stand_in


def pytest_report_header() -> str:
    found = version("kafka-python")
    return f"kafka-python {found}, pinned is {PINNED}" + (": there is none newer" if found == PINNED else "")
