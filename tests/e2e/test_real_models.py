"""Real networks, end to end: what the compiler built gives the right answer on the platform it was built for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from engines import artefact_engine, onnxruntime_engine
from real_models import MODELS, REAL_MODELS, RealModel

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("name", REAL_MODELS)
def test_onnxruntime_is_judged_right(name: str, real_model: Callable[[str], RealModel]) -> None:
    """The judges themselves: the source model's own runtime must pass them."""
    model = real_model(name)
    verdict = model.judge(onnxruntime_engine(model.path()), MODELS, False)
    assert verdict.right, verdict.said


@pytest.mark.parametrize("target", ["host", "linux-arm64", "android-arm64", "web-wasm"])
def test_blazeface_finds_the_face(target: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    _verify_and_judge("blazeface", target, built, real_model)


@pytest.mark.parametrize("name", ["efficientnet-lite0", "silero-vad"])
def test_host_gives_the_right_answer(name: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    _verify_and_judge(name, "host", built, real_model)


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL_MODELS)
def test_all_twelve_on_the_avx2_floor(name: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    _verify_and_judge(name, "linux-x86-64", built, real_model)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["linux-arm64", "android-arm64", "web-wasm"])
@pytest.mark.parametrize("name", [name for name, model in REAL_MODELS.items() if model.everywhere])
def test_four_on_every_platform(
    name: str, target: str, built: Callable[[str, str], Path], real_model: Callable
) -> None:
    _verify_and_judge(name, target, built, real_model)


def _verify_and_judge(name: str, target: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    """Within 1e-4 of onnxruntime on the sample, and the right answer."""
    from xnncc.target import load_target
    from xnncc.verify import verify

    model: RealModel = real_model(name)
    directory = built(name, target)
    result = verify(model.path(), directory, samples=model.sample(MODELS))
    assert result.passed, result.outputs
    quick = load_target(target).device != "host"
    verdict = model.judge(artefact_engine(directory), MODELS, quick)
    assert verdict.right, verdict.said
