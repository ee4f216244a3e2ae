"""`Struct`, the class of values: msgspec's, whose classes are made in a tenth of the time that dataclasses take.

Where msgspec is missing, as on an executor of Spark that has numpy and pyarrow alone, a dataclass does the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import Struct, field
    from msgspec.structs import replace
else:
    try:
        from msgspec import Struct, field
        from msgspec.structs import replace
    except ImportError:
        from dataclasses import dataclass, field, fields, replace

        class Struct:
            def __init_subclass__(cls, frozen: bool = False, kw_only: bool = False, **_: Any) -> None:
                dataclass(frozen=frozen, kw_only=kw_only)(cls)
                cls.__struct_fields__ = tuple(item.name for item in fields(cls))


__all__ = ["Struct", "field", "replace"]
