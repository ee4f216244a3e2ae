"""Paths in arguments and options. Shells complete them; whoever opens them says what is wrong with one, with status 3.

click would look first, and end with 2, wrong usage, where a folder stands in place of a file or a file is unreadable.
"""

from pathlib import Path

import click

GIVEN = click.Path(readable=False)
"""A path as it was given, a text."""

GIVEN_PATH = click.Path(readable=False, path_type=Path)
"""The same as a `Path`."""
