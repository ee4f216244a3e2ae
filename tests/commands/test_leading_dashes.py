"""Names that begin with `-`: ids of delegation tokens anywhere on a line, others behind `--`."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.access import token
from commands.catalogue import COMMANDS, Group, Verb
from commands.cli.frame import KctlCommand, global_options
from commands.cli.options import TOKEN_ID
from commands.main import load
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
        assert ran.status == 2 and "No such option" in ran.err and f"; {hint}" in ran.err, ran.err
    assert "? A name that begins with" in kctl("topic", "create", "--partition", "3").err
    ran = kctl("token", "list", "--orders")
    assert ran.status == 2 and "No such option" in ran.err and hint not in ran.err


def test_a_token_id_reaches_the_command() -> None:
    for words in ([OWN, "--for", "1h"], ["--for", "1h", OWN], ["--for", "1h", "--", OWN]):
        ran = kctl("token", "renew", "--bootstrap-server", "127.0.0.1:1", *words)
        assert ran.status == 3 and "127.0.0.1:1" in ran.err, ran.err
