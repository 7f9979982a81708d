"""Blocks of transformers that onnxruntime writes as one node, against onnxruntime."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx_models import const, random

X, SKIP = random(2, 5, 8), random(2, 5, 8, seed=1)
GAMMA, BETA, BIAS = (random(8, seed=seed) for seed in (2, 3, 4))
LENGTHS = np.array([5, 3], "int32")
FLAGS = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]], "int32")


@pytest.fixture
def block(matches):
    return functools.partial(matches, domain="com.microsoft", tolerance=5e-6)


@pytest.mark.parametrize("rest", [(), (const(BETA),), (const(BETA), const(BIAS))])
def test_skip_layer_normalization(block, rest):
    block("SkipLayerNormalization", X, SKIP, const(GAMMA), *rest, epsilon=1e-5)


def test_skip_layer_normalization_gives_the_sum_too(load):
    from onnx_models import info, model, node

    made = model(
        [node("SkipLayerNormalization", ["x", "s", "g", "b"], ["y", "", "", "sum"], domain="com.microsoft")],
        [info("x", X), info("s", SKIP)], [info("y"), info("sum")], {"g": GAMMA, "b": BETA},
        domains=("com.microsoft",),
    )  # fmt: skip
    assert load(made, {"x": X, "s": SKIP}).check.max_relative_error <= 5e-6


@pytest.mark.parametrize("rest", [(), (const(BIAS),)])
def test_skip_simplified_layer_normalization(block, rest):
    block("SkipSimplifiedLayerNormalization", X, SKIP, const(GAMMA), *rest, epsilon=1e-6)


def test_simplified_layer_normalization(matches):
    matches("SimplifiedLayerNormalization", X, const(GAMMA), epsilon=1e-6, axis=-1)


@pytest.mark.parametrize("has_segments", [False, True])
def test_embed_layer_normalization(block, has_segments):
    words = np.array([[1, 4, 2, 0, 3], [5, 5, 1, 2, 0]], "int32")
    segments = (words > 2).astype("int32") if has_segments else None
    table = const(random(2, 8, seed=7)) if has_segments else None
    block("EmbedLayerNormalization", words, segments, const(random(6, 8, seed=5)), const(random(5, 8, seed=6)), table,
          const(GAMMA), const(BETA), outputs=2)  # fmt: skip


@pytest.mark.parametrize("mask", [None, LENGTHS, FLAGS], ids=["no mask", "lengths", "flags"])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention(block, mask, unidirectional):
    block("Attention", X, const(random(8, 24, seed=1)), const(random(24, seed=2)), mask, num_heads=2,
          unidirectional=unidirectional)  # fmt: skip


@pytest.mark.parametrize("mask", [None, FLAGS], ids=["no mask", "flags"])
def test_multi_head_attention(block, mask):
    query, addend = random(2, 3, 8, seed=5), random(2, 2, 3, 5, seed=6)
    block("MultiHeadAttention", query, X, SKIP, const(random(24, seed=2)), mask, addend, num_heads=2, scale=0.4)


def test_refuses_a_cache(refuses):
    past = random(2, 2, 4, 3, 4)
    words = refuses("Attention", X, const(random(8, 24)), const(random(24)), None, past, domain="com.microsoft",
                    num_heads=2)  # fmt: skip
    assert "past and past_sequence_length are not supported. Export without the cache" in words
