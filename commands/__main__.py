"""`python -m commands` is kctl, also where its script is not on the PATH."""

from commands.main import run

run()
