"""One way to register functions by name: as decorators that refuse a name that is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function")


def registrar(table: dict[str, Function], what: str) -> Callable[..., Callable[[Function], Function]]:
    """Return a decorator ``(*names)`` that enters a function into ``table`` under each name.

    ``what`` is the sentence for a name that is there already, ``{}`` standing for it; it is raised as ValueError.
    """

    def named(*names: str) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            for name in names:
                if name in table:
                    raise ValueError(what.format(f"'{name}'"))
                table[name] = function
            return function

        return register

    return named
