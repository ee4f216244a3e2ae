"""`kctl completion`: the script that makes a shell complete kctl's commands and options."""

import click
from click.shell_completion import get_completion_class

from commands.frame import Frame, command
from commands.render import Outcome

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    examples="""
    kctl completion bash > /etc/bash_completion.d/kctl
    kctl completion zsh > "${fpath[1]}/_kctl"
    kctl completion fish > ~/.config/fish/completions/kctl.fish
    """,
    status="0 printed · 2 not a shell that kctl knows",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(frame: Frame, shell: str) -> Outcome:
    """Print the completion script of a shell."""
    from commands.main import root

    found = get_completion_class(shell)
    assert found is not None, shell
    script = found(root, {}, "kctl", "_KCTL_COMPLETE").source()
    if shell == "fish":  # click's cuts descriptions at their first comma
        script = script.replace('string split ","', 'string split --max 1 ","')
    return Outcome(encoded=lambda _: [script.encode()])
