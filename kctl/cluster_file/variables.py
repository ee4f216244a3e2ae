"""Variables in values and names: `${name}`, `${env:NAME}`; `$${` stands for `${`."""

import re
from collections.abc import Collection, Iterable, Mapping

from kctl.cluster_file.document import Items, Node, Place, Scalar, Table, wrong
from kctl.errors import BadValue, near_names

REFERENCE = re.compile(r"(\$?)\$\{([^{}]*)\}")
LONGEST = 1 << 16  # characters of a value


def refuse_unused(given: Iterable[str], known: Collection[str]) -> None:
    """Raise BadValue for the first given variable that is not among those that files use or define."""
    for name in given:
        if name not in known:
            there_are = f"they use {', '.join(sorted(known))}" if known else "they use no variables"
            hint = near_names(name, known, otherwise=there_are)
            raise BadValue(f"no file uses ${{{name}}}, to which --set gives a value", hint)


class Variables:
    """The values of variables: `given` stand above those of files."""

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._given, self._environment = dict(given), environment
        self._defined: dict[str, str] = {}
        self._used: set[str] = set()

    @property
    def known(self) -> set[str]:
        """The variables that files use or define."""
        return self._used | self._defined.keys()

    def define(self, table: Table) -> None:
        """Take in the section `variables` of a file; what an earlier file defined stays. Raises BadValue."""
        for name, node in table.entries.items():
            if not isinstance(node, Scalar):
                raise wrong(
                    node.place, f"the value of variable {name} is not a text", f"write `{name}: VALUE`"
                )
            self._defined.setdefault(name, self.filled(node.text, node.place))

    def filled(self, text: str, place: Place) -> str:
        """The text with values in the place of references. Raises BadValue for an unknown one."""
        if "${" not in text:
            return text
        filled = REFERENCE.sub(lambda match: self._value(match, place), text)
        if len(filled) > max(LONGEST, len(text)):
            raise wrong(
                place, f"a value of {len(filled):,} characters", "no value is so long: look at its variables"
            )
        return filled

    def _value(self, match: re.Match[str], place: Place) -> str:
        is_escaped, name = match.groups()
        if is_escaped:
            return f"${{{name}}}"
        of_environment = name.removeprefix("env:") if name.startswith("env:") else None
        if of_environment is not None:
            if not of_environment:
                raise wrong(place, "${env:} names no variable of the environment", "write `${env:NAME}`")
            if (value := self._environment.get(of_environment)) is None:
                raise wrong(
                    place,
                    f"{of_environment} is not in the environment",
                    f"run `export {of_environment}=VALUE` before kctl",
                )
            return value
        self._used.add(name)
        values = {**self._defined, **self._given}
        if name not in values:
            hint = near_names(
                name, values, otherwise=f"give `--set {name}=VALUE`, or write `variables: {{{name}: VALUE}}`"
            )
            raise wrong(place, f"${{{name}}} has no value", hint)
        return values[name]

    def mention(self, node: Node) -> None:
        """Take the variables that a part refers to which is ignored, as labels are, for used."""
        if isinstance(node, Scalar):
            self._used.update(name for escape, name in REFERENCE.findall(node.text) if not escape)
        elif isinstance(node, Items):
            for item in node.items:
                self.mention(item)
        else:
            for child in node.entries.values():
                self.mention(child)

    def fill(self, node: Node) -> Node:
        """The tree with values in the place of references, in names too. Raises BadValue."""
        if isinstance(node, Scalar):
            return node if "${" not in node.text else node._replace(text=self.filled(node.text, node.place))
        if isinstance(node, Items):
            return node._replace(items=tuple(map(self.fill, node.items)))
        entries: dict[str, Node] = {}
        places: dict[str, Place] = {}
        for key, child in node.entries.items():
            place = node.places[key]
            name = self.filled(key, place)
            if name in entries:
                raise wrong(
                    place,
                    f"{name} stands twice here, first in line {places[name].line}",
                    "leave one of the two",
                )
            entries[name], places[name] = self.fill(child), place
        return Table(entries, places, node.place)
