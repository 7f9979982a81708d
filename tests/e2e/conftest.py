"""What the end-to-end tests share: the tools folder, fetched models, artefacts built once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# For small_network and command_line; chromium; engines, real_models and judges.
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "tools")]

from real_models import MODELS, REAL_MODELS, RealModel  # noqa: E402 (the path is set above)


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], RealModel]:
    """A real network by name; skips when it was not fetched, and says what to type."""

    def find(name: str) -> RealModel:
        model = REAL_MODELS[name]
        if model.absent():
            pytest.skip(f"not fetched: tools/fetch_models.py {' '.join(model.absent())}")
        return model

    return find


@pytest.fixture(scope="session")
def built(
    tmp_path_factory: pytest.TempPathFactory, real_model: Callable[[str], RealModel]
) -> Callable[[str, str], Path]:
    """Directory of a real network built for a target, made once a session."""
    done: dict[tuple[str, str], Path] = {}

    def build_once(name: str, target: str) -> Path:
        from xnncc.build import build

        if (name, target) not in done:
            model = real_model(name)
            out = tmp_path_factory.mktemp("built") / f"{name}-{target}"
            build(model.path(), target, out, shapes=model.shapes or None, samples=model.sample(MODELS), verify=False)
            done[name, target] = out
        return done[name, target]

    return build_once
