"""`kctl completion`: the script for shell completion."""

import click
from click.shell_completion import get_completion_class

from commands.cli.frame import Frame, command
from commands.cli.render import Outcome

FILES = {"bash": "bash/kctl", "zsh": "zsh/_kctl", "fish": "fish/kctl.fish"}
"""Where `make man` keeps the script of each shell; the wheel puts it where the shell looks."""


def script(shell: str) -> str:
    """The completion script for a shell."""
    from commands.main import root

    completion_class = get_completion_class(shell)
    assert completion_class is not None, shell
    text = completion_class(root, {}, "kctl", "_KCTL_COMPLETE").source()
    # click's cuts descriptions at their first comma
    return text.replace('string split ","', 'string split --max 1 ","') if shell == "fish" else text


@command("completion", status="0 printed · 2 unknown shell")
@click.argument("shell", type=click.Choice([*FILES]))
def completion(frame: Frame, shell: str) -> Outcome:
    """Print the completion script for a shell.

    $ kctl completion bash > /etc/bash_completion.d/kctl
    $ kctl completion zsh > "${fpath[1]}/_kctl"
    $ kctl completion fish > ~/.config/fish/completions/kctl.fish
    """
    return Outcome(encoded=lambda _: [script(shell).encode()])
