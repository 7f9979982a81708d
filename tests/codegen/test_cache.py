"""The cache folder: written once, whole or not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from xnncc.codegen.cache import cache_folder, cached, content_key
from xnncc.errors import OutputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_makes_once() -> None:
    calls = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "a").write_text("x")

    assert cached("kind", "key", make) == cached("kind", "key", make) == cache_folder() / "kind" / "key"
    assert len(calls) == 1


def test_failure_leaves_nothing() -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached("kind", "key", make)
    assert list((cache_folder() / "kind").iterdir()) == []


def test_two_at_once_agree() -> None:
    def make(folder: Path) -> None:
        (folder / "a").write_text("x")

    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: cached("kind", "key", make), range(32)))
    assert [(f / "a").read_text() for f in folders] == ["x"]
    assert [p.name for p in (cache_folder() / "kind").iterdir()] == ["key"]


def test_key_follows_contents_and_not_paths(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    assert content_key([tmp_path / "a"]) == content_key([tmp_path / "b"])
    assert content_key(["ab", "c"]) != content_key(["a", "bc"])


def test_unwritable_cache_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="Set XDG_CACHE_HOME"):
        cached("kind", "key", lambda folder: None)
