"""Import kafka-python without consumers, producers and most of its 200 messages.

`import kafka` alone costs a third of the time of `kctl topic list`. A package entered here is only
a path to its modules; its own code runs when a name is read that it does not have yet.
A module of messages entered here creates a message when its name is read: each takes half a millisecond, since its
fields are read from JSON. Modules for TLS and SASL are imported where they are used. Other code in the process
that imports the library gets all of it.
"""

import importlib.util
import logging
import sys
import weakref
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, new_class
from typing import Any

from kctl.wire.shortcuts.schemas import read_schema

# Names that the library's own modules take from a package, and the module of it that has them.
FOUND_IN = {
    "kafka": {"errors": ""},
    "kafka.metrics": {},
    "kafka.metrics.stats": {"Avg": "avg", "Count": "count", "Max": "max_stat", "Rate": "rate"},
    "kafka.net": {},
    "kafka.net.sasl": {},
    "kafka.protocol.admin": {"ListGroupsRequest": "groups"},
    "kafka.protocol.consumer": {"OffsetFetchRequest": "group"},
    "ssl": {},
}
# Messages of a module that are classes without a body, requests without their ending; each comes with its answer.
# The body of DescribeCluster's answer only renames a field that is not used here.
PLAIN = {
    "kafka.protocol.admin.cluster": {"DescribeCluster", "DescribeLogDirs", "DescribeQuorum"},
    "kafka.protocol.admin.configs": {"DescribeConfigs", "IncrementalAlterConfigs"},
    "kafka.protocol.admin.groups": {"ListGroups"},
    "kafka.protocol.admin.topics": {
        "AlterPartitionReassignments",
        "DescribeTopicPartitions",
        "ElectLeaders",
        "ListPartitionReassignments",
    },
    "kafka.protocol.consumer.group": {"OffsetFetch"},
}
ENDINGS = ("Request", "Response")
# Functions of a package whose import waits until they are called.
CALLED_LATER = {"kafka.net.sasl": {"get_sasl_mechanism"}}
SCHEMAS = "kafka.protocol.schemas.load_json"


class Unopened(ModuleType):
    """A package, or a module of messages, whose code has not run."""

    def __getattr__(self, name: str) -> object:
        spec = self.__dict__["__spec__"]
        module = FOUND_IN.get(self.__name__, {}).get(name)
        if module is not None:
            imported = importlib.import_module(".".join(filter(None, (self.__name__, module or name))))
            return getattr(imported, name) if module else imported
        if name == "__path__":  # read by every import; a package has it
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if not spec.loader_state:
            if name in CALLED_LATER.get(self.__name__, ()):
                return lambda *args: self._opened(name)(*args)
            for ending in ENDINGS:
                if name.endswith(ending) and name.removesuffix(ending) in PLAIN.get(self.__name__, ()):
                    self._make(name.removesuffix(ending))
                    return self.__dict__[name]
        return self._opened(name)

    def _opened(self, name: str) -> Any:
        spec = self.__dict__["__spec__"]
        if not spec.loader_state:
            spec.loader_state = True
            assert spec.loader is not None
            made = {name: message for name, message in self.__dict__.items() if isinstance(message, type)}
            spec.loader.exec_module(self)
            self._keep(made)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None

    def _keep(self, made: dict[str, Any]) -> None:
        """Keep the classes made before the module was opened as the only ones of their name, for the library as well."""
        from kafka.protocol.api_header import ResponseClassRegistry

        self.__dict__.update(made)
        for name, message in made.items():
            if name.endswith("Response"):
                ResponseClassRegistry.register_response_class(weakref.proxy(message))

    def _make(self, message: str) -> None:
        """Create the request and its response, which the library looks up."""
        from kafka.protocol.api_message import ApiMessage

        for ending in ENDINGS:
            made = new_class(message + ending, (ApiMessage,), exec_body=self._named)
            self.__dict__[message + ending] = made

    def _named(self, namespace: dict[str, object]) -> None:
        namespace["__module__"] = self.__name__


def enter_packages() -> None:
    """Enter packages and modules that are not imported yet.

    Raises ModuleNotFoundError without the library.
    """
    for name in (*FOUND_IN, *PLAIN):
        if name in sys.modules:
            continue
        spec = _spec(name)
        module = Unopened(name)
        module.__spec__, module.__loader__ = spec, spec.loader
        module.__file__ = spec.origin
        module.__package__ = name
        if spec.submodule_search_locations is None:
            module.__package__ = name.rpartition(".")[0]
        else:
            module.__path__ = list(spec.submodule_search_locations)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    _read_schemas_quickly()
    logging.getLogger("kafka").addHandler(logging.NullHandler())  # as the package does


def _read_schemas_quickly() -> None:
    if SCHEMAS in sys.modules:
        return
    module = ModuleType(SCHEMAS)
    module.__spec__ = ModuleSpec(SCHEMAS, None)
    folder = Path(next(iter(sys.modules["kafka"].__path__)), "protocol", "schemas")

    def load_json(message: str, package: object = None) -> dict[str, Any]:
        if package is None:
            return read_schema(folder, message)
        spec = importlib.util.spec_from_file_location(SCHEMAS, folder / "load_json.py")
        assert spec is not None and spec.loader is not None
        spec.loader.exec_module(module)
        whole: dict[str, Any] = module.load_json(message, package)
        return whole

    vars(module)["load_json"] = load_json
    sys.modules[SCHEMAS] = module


def _spec(name: str) -> ModuleSpec:
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec
