"""The text of `sasl.jaas.config`: a login module, a flag, options, a semicolon.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="a;b\\"c";

Source: clients/src/main/java/org/apache/kafka/common/security/JaasConfig.java @ 4.1.0, and java.io.StreamTokenizer
(Java 17), whose rules apply: values in single or double quotes with Java's escapes, or bare words; `/` begins a comment.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from formats.errors import MalformedLine

FLAGS = ("required", "requisite", "sufficient", "optional")
TOKEN = re.compile(
    r"""(?P<blank>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
    |"(?P<double>(?:\\.|[^"\\\r\n])*)(?:"|(?=[\r\n])|\Z)
    |'(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|(?=[\r\n])|\Z)
    |(?P<sign>[;=])
    |(?P<word>[^\x00-\x20/"';=]+)""",
    re.DOTALL | re.VERBOSE,
)
ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LoginModule(NamedTuple):
    """A login module and its options."""

    name: str
    options: dict[str, str]

    @property
    def short_name(self) -> str:
        """The class without its package."""
        return self.name.rpartition(".")[2]


def parse_jaas(text: str) -> LoginModule:
    """The only login module of the text. MalformedLine, without the text, where Kafka refuses it as well."""
    tokens = list(_tokens(text))
    if not tokens:
        raise MalformedLine("no login module is named", 1)
    if tokens[-1] != (";", True):
        raise MalformedLine("no semicolon at the end", 1)
    if tokens.index((";", True)) != len(tokens) - 1:
        raise MalformedLine("more than one login module", 1)
    words = tokens[:-1]
    if len(words) < 2 or words[1][0].lower() not in FLAGS:
        raise MalformedLine(f"no {', '.join(FLAGS[:-1])} or {FLAGS[-1]} after the login module", 1)
    options = {}
    for at in range(2, len(words), 3):
        option = words[at : at + 3]
        key = option[0][0]
        if [is_sign for _, is_sign in option] != [False, True, False]:
            raise MalformedLine(
                f"option {key} has no value" if not option[0][1] else "an option has no name", 1
            )
        options[key] = option[2][0]
    return LoginModule(words[0][0], options)


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Words and values, and with True the signs between them."""
    position = 0
    while match := TOKEN.match(text, position):
        position = max(match.end(), position + 1)
        kind = match.lastgroup
        if kind in ("double", "single"):
            yield ESCAPE.sub(_character, match[kind]), False
        elif kind != "blank":
            yield match[0], kind == "sign"


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else ESCAPED.get(escape, escape)
