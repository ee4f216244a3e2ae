"""The row type that a name of the catalogue stands for."""

from importlib import import_module

from kctl.rows import RowType


def row_type(name: str) -> RowType:
    """The row type named `MODULE.NAME`, for example `common.FINDING`."""
    module, attribute = name.split(".")
    found = getattr(import_module(f"kctl.rows.{module}"), attribute)
    assert isinstance(found, RowType), name
    return found
