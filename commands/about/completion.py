"""`kctl completion`: the script for shell completion."""

import click
from click.shell_completion import get_completion_class

from commands.cli.frame import Frame, command
from commands.cli.render import Outcome

SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    examples="""
    kctl completion bash > /etc/bash_completion.d/kctl
    kctl completion zsh > "${fpath[1]}/_kctl"
    kctl completion fish > ~/.config/fish/completions/kctl.fish
    """,
    status="0 printed · 2 unknown shell",
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(frame: Frame, shell: str) -> Outcome:
    """Print the completion script for a shell."""
    from commands.main import root

    completion_class = get_completion_class(shell)
    assert completion_class is not None, shell
    script = completion_class(root, {}, "kctl", "_KCTL_COMPLETE").source()
    if shell == "fish":  # click's cuts descriptions at their first comma
        script = script.replace('string split ","', 'string split --max 1 ","')
    return Outcome(encoded=lambda _: [script.encode()])
