"""kafka-python without what its packages import by the way: consumers, producers, and most of its 200 messages.

`import kafka` alone costs a third of the time in which `kctl topic list` is done. A package entered here is only
a place that its modules are found in; its own code runs when somebody asks it for a name that it does not have.
Whatever else in the process imports the library finds it whole.
"""

import importlib.util
import logging
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

# Names that the library's own modules take from a package, and the module of it that has them.
FOUND_IN = {
    "kafka": {"errors": ""},
    "kafka.net": {},
    "kafka.protocol.admin": {"ListGroupsRequest": "groups"},
    "kafka.protocol.consumer": {"OffsetFetchRequest": "group"},
}


class Unopened(ModuleType):
    """A package whose code has not run."""

    def __getattr__(self, name: str) -> object:
        spec = self.__dict__["__spec__"]
        module = FOUND_IN[self.__name__].get(name)
        if module is not None:
            found = importlib.import_module(".".join(filter(None, (self.__name__, module or name))))
            return getattr(found, name) if module else found
        if not spec.loader_state:
            spec.loader_state = True
            assert spec.loader is not None
            spec.loader.exec_module(self)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def enter_packages() -> None:
    """Put the packages in place, those that nobody has imported yet. Raises ModuleNotFoundError without the library."""
    for name in FOUND_IN:
        if name in sys.modules:
            continue
        spec = _spec(name)
        module = Unopened(name)
        module.__spec__, module.__loader__, module.__package__ = spec, spec.loader, name
        module.__file__, module.__path__ = spec.origin, list(spec.submodule_search_locations or ())
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    logging.getLogger("kafka").addHandler(logging.NullHandler())  # as the package does


def _spec(name: str) -> ModuleSpec:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec
