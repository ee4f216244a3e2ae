"""Names that begin with `-`: ids of delegation tokens anywhere on a line, others behind `--`."""

import re
import shlex
from base64 import urlsafe_b64encode
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from hypothesis import given
from hypothesis import strategies as st

from commands.access import acl, token
from commands.catalogue import COMMANDS, Group, Verb
from commands.cli import completing
from commands.cli.evidence_options import EvidenceOptions
from commands.cli.frame import KctlCommand, global_options
from commands.cli.options import TOKEN_ID
from commands.main import load, root
from commands.replica.compare import loss
from kctl.cluster.names import topic_exists
from kctl.cluster.rights import Right, command_for
from kctl.model import command_line
from tests.conftest import kctl

OWN = "-1i-ozzSTJSVJE6K81WZ6w"
IDS = st.one_of(
    st.binary(min_size=16, max_size=16).map(lambda id: urlsafe_b64encode(id).decode().rstrip("=")),
    st.from_regex(r"--?[A-Za-z0-9_-]{19}[AQgw]", fullmatch=True).filter(lambda id: len(id) == 22),
    st.sampled_from([OWN, "-vqvqvqvqvqvqvqvqvqvqw", "--renew-the-token-thig", "-" * 21 + "A"]),
)


def parsed(command: click.Command, words: list[str]) -> dict[str, object]:
    """The values of the line that were given. Raises UsageError."""
    with click.Context(command, info_name="kctl") as ctx:
        command.parse_args(ctx, list(words))
        return {name: value for name, value in ctx.params.items() if value not in (None, (), False)}


def commands() -> Iterator[click.Command]:
    for entry in COMMANDS.values():
        if isinstance(entry, Verb):
            yield load(entry)
        elif isinstance(entry, Group):
            yield from map(load, filter(None, (*entry.verbs.values(), entry.own)))


@pytest.mark.slow
@given(IDS, st.integers(0, 4), st.booleans())
def test_an_id_of_a_token_is_one_wherever_it_stands(id: str, place: int, is_marked: bool) -> None:
    for options, command, own in (
        (["--for 1h", "-v", "--output json", "--context=c"], token.renew, {"period": 3600.0}),
        (["--after 1h", "-qv", "--output=json", "--context c"], token.expire, {"after": 3600.0}),
    ):
        before, after = (" ".join(some).split() for some in (options[:place], options[place:]))
        line = [*before, *after, "--", id] if is_marked else [*before, id, *after]
        given = parsed(command, line)
        assert given.pop("token_id") == id
        assert given.items() >= {**own, "verbose": True, "output": "json", "context": "c"}.items()


@pytest.mark.slow
@given(IDS, IDS)
def test_the_value_of_an_option_is_no_id(id: str, value: str) -> None:
    for option in (["--context", value], [f"--context={value}"]):
        assert parsed(token.renew, [*option, id]) == parsed(token.renew, [id, *option])
        assert parsed(token.renew, [*option, id])["context"] == value
    with pytest.raises(click.MissingParameter):
        parsed(token.renew, ["--context", value])
    with pytest.raises(click.UsageError, match="requires an argument"):
        parsed(token.renew, [id, "--context"])
    with pytest.raises(click.UsageError, match="unexpected extra argument"):
        parsed(token.renew, [id, "--for", "1h", value])


def test_no_option_has_the_form_of_a_token_id() -> None:
    for command in commands():
        for param in command.params:
            names = (*param.opts, *param.secondary_opts) if isinstance(param, click.Option) else ()
            assert not [name for name in names if TOKEN_ID.fullmatch(name)]
    for option in (*token.renew.params, *token.expire.params, *global_options()):
        short = [name for name in option.opts if len(name) == 2 and isinstance(option, click.Option)]
        assert not short or (option.is_flag and not TOKEN_ID.fullmatch("-" * 20 + short[0]))


def test_an_option_that_is_not_there_says_where_such_names_go() -> None:
    hint = "a name that begins with - goes behind --"
    assert isinstance(token.renew, KctlCommand)
    for words in (["topic", "describe", "-x"], ["token", "renew", "-1"], ["group", "describe", "--orders"]):
        ran = kctl(*words)
        assert ran.status == 2 and re.search(f"No such option '[^ ]+'; {hint}", ran.err), ran.err
    assert "? A name that begins with" in kctl("topic", "create", "--partition", "3").err
    ran = kctl("token", "list", "--orders")
    assert ran.status == 2 and "No such option" in ran.err and hint not in ran.err


def test_a_token_id_reaches_the_command() -> None:
    for words in ([OWN, "--for", "1h"], ["--for", "1h", OWN], ["--for", "1h", "--", OWN]):
        ran = kctl("token", "renew", "--bootstrap-server", "127.0.0.1:1", *words)
        assert ran.status == 3 and "127.0.0.1:1" in ran.err, ran.err


# --- what kctl proposes ---


@pytest.mark.parametrize(
    ("command", "names", "options", "line"),
    [
        ("kctl topic delete", ["orders"], [], "kctl topic delete orders"),
        ("kctl topic delete", ["-x"], [], "kctl topic delete -- -x"),
        ("kctl group describe", ["a b"], [], "kctl group describe 'a b'"),
        ("kctl user set-password", ["a"], ["--iterations", "8192"], "kctl user set-password a --iterations 8192"),
        ("kctl user set-password", ["-a"], ["--iterations", "8192"], "kctl user set-password --iterations 8192 -- -a"),
        ("kctl acl delete", [], ["--principal", "-a"], "kctl acl delete --principal -a"),
    ],
)  # fmt: skip
def test_a_proposed_line_puts_names_where_they_are_read(
    command: str, names: list[str], options: list[str], line: str
) -> None:
    assert command_line(command, names, options) == line


NAMES = st.text("-abq x$", min_size=1).filter(lambda name: name.strip("-"))


@given(st.lists(NAMES, min_size=1, max_size=3), NAMES)
def test_a_shell_and_a_command_read_a_proposed_line_back(names: list[str], topic: str) -> None:
    line = command_line("kctl replica loss", names, ["--broker", "1=-x", "--topic", topic])
    given = parsed(loss, shlex.split(line)[3:])
    assert (given["paths"], given["topics"], given["brokers"]) == (tuple(names), (topic,), ("1=-x",))


def test_rules_that_grant_a_right_take_names_with_dashes() -> None:
    for resource, key in (("Topic", "topics"), ("Group", "groups"), ("TransactionalId", "transactional_ids")):
        line = command_for(Right("Read", resource, "-x"), "-Type:-a")
        given = parsed(acl.create, shlex.split(line)[3:])
        assert (given[key], given["principals"]) == (("-x",), ("-Type:-a",)), line


def test_proposals_over_evidence_that_begins_with_a_dash() -> None:
    following: list[str] = []
    propose = EvidenceOptions(("-x-0", "b"), brokers=("1=b",)).proposing(following)
    propose("kctl log-dir start")
    propose("kctl replica loss", "--export", "lost")
    assert following == [
        "kctl log-dir start --broker 1=b -- -x-0 b",
        "kctl replica loss --broker 1=b --export lost -- -x-0 b",
    ]
    assert (
        "Did you mean" not in topic_exists("-x").hint
        and "kctl topic describe -- -x" in topic_exists("-x").hint
    )


def test_shells_get_names_that_begin_with_a_dash_where_they_are_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As an argument behind `--`, as the value of an option anywhere; ids of tokens anywhere."""
    monkeypatch.setattr(completing, "_of_cluster", lambda *_: ["-x", "orders", OWN])
    for line, wanted in (
        ("topic describe ", ["orders"]),
        ("topic describe -- -", ["-x", OWN]),
        ("topic config get --output ", []),
        ("replica verify --topic ", ["-x", "orders", OWN]),
        ("token renew ", ["-x", "orders", OWN]),
        (f"token renew {OWN[:3]}", [OWN]),
    ):
        *args, incomplete = line.split(" ")
        proposed = [
            item.value for item in ShellComplete(root, {}, "kctl", "").get_completions(args, incomplete)
        ]
        if wanted:
            assert proposed == wanted, line
        else:
            assert not {"-x", OWN} & {*proposed}
