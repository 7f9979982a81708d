"""Pages from templates beside this file: strict, escaped, offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def render_template(name: str, filters: Mapping[str, Callable[..., str]], facts: Mapping[str, Any]) -> str:
    """Return the template ``name`` filled with ``facts``; a fact that it names and does not get is an error."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters.update(filters)
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return environment.from_string(text).render(**facts)
