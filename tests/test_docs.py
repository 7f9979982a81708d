"""What README and docs say is true: targets and tiers, files that are linked, commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_readme_lists_every_target_with_its_tier() -> None:
    from xnncc.target import list_targets, load_target

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+ \| (\d) \|", text, flags=re.M))
    assert listed == {name: str(load_target(name).tier) for name in list_targets()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    from xnncc.cli.main import _COMMANDS, app

    known = {name for name, _, _ in _COMMANDS} | {str(group.name) for group in app.registered_groups}
    for command in re.findall(r"`xnncc ([a-z]+)[ `]", page.read_text(encoding="utf-8")):
        assert command in known, f"{page.name}: xnncc {command}"


def test_every_error_that_the_docs_describe_exists() -> None:
    from xnncc import errors

    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    for name in re.findall(r"^## (\w+)$", text, flags=re.M):
        assert hasattr(errors, name) or name == "MemoryError", name
