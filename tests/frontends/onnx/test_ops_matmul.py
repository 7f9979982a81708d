"""Matrix products against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, info, model, node, random


@pytest.mark.parametrize(
    ("left", "right"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)),
                        ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))],
)  # fmt: skip
def test_matmul(matches, left, right):
    matches("MatMul", random(*left), const(random(*right, seed=1)))
    matches("MatMul", random(*left), random(*right, seed=1))


def test_matmul_refuses_what_does_not_fit(refuses):
    assert "matrices [3, 4] and [5, 2] do not fit" in refuses("MatMul", random(3, 4), const(random(5, 2)))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5, "beta": 2.0}, {"transA": 1, "transB": 1}, {"beta": 0.0}])
def test_gemm(matches, attributes, constant):
    a = random(4, 3) if attributes.get("transA") else random(3, 4)
    b = random(5, 4, seed=1) if attributes.get("transB") else random(4, 5, seed=1)
    wrap = const if constant else np.asarray
    matches("Gemm", a, wrap(b), wrap(random(5, seed=2)), **attributes)


def test_gemm_without_c(matches, operators):
    assert operators(matches("Gemm", random(3, 4), const(random(5, 4)), transB=1)) == ["matmul"]


def test_weights_that_many_nodes_read_are_held_once(load):
    nodes = [node("Gemm", ["x", "w"], ["a"], transB=1), node("Gemm", ["a", "w"], ["y"], transB=1)]
    imported = load(model(nodes, [info("x", random(1, 4))], [info("y")], {"w": random(4, 4)}), {"x": random(1, 4)})
    weights = [b.value.args[1] for block in imported.mod["main"].body.blocks for b in block.bindings]
    assert weights[0].same_as(weights[1])


@pytest.mark.parametrize("equation", ["ij,jk->ik", "bij, bkj -> bik", "ij,ij->"])
def test_einsum(matches, equation):
    shapes = [(2, 3, 4), (2, 5, 4)] if "b" in equation else [(3, 4), (4, 5)] if "jk" in equation else [(3, 4), (3, 4)]
    matches("Einsum", random(*shapes[0]), random(*shapes[1], seed=1), equation=equation)


def test_einsum_refuses_a_wrong_equation(refuses):
    assert "do not fit" in refuses("Einsum", random(3, 4), random(5, 6), equation="ij,jk->ik")
