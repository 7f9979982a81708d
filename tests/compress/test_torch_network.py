"""The torch module computes what numpy does, for any number of samples, with numpy's gradients."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_network import network, samples
from channel_networks import ZOO, Net, op
from tvm import relax

from xnncc.compress.constants import constant_names
from xnncc.compress.numpy_network import NumpyNetwork
from xnncc.frontends.evaluate import evaluate
from xnncc.ir.coded import digest

torch = pytest.importorskip("torch", reason="training needs: pip install 'xnncc[train]'")

from xnncc.compress.torch_network import Head, TorchNetwork  # noqa: E402


@pytest.mark.parametrize("name", ZOO)
def test_numbers_equal_those_of_numpy_for_two_samples(name: str) -> None:
    mod = ZOO[name]()
    runner = TorchNetwork(mod)
    shape = [int(d) for d in mod["main"].params[0].ty.shape.values]
    x = np.random.default_rng(0).normal(size=(2, *shape)).astype("float32")
    (got,) = runner.run({"x": torch.from_numpy(x)})
    want = np.stack([evaluate(mod, [row])[0][0] for row in x])
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-4, atol=1e-5)


def test_gradients_equal_those_of_numpy() -> None:
    mod, one = network(), samples(1)
    numpy_side = NumpyNetwork(mod, np.float64)
    (feeds,) = numpy_side.feeds(one)
    trace = numpy_side.trace(feeds)
    (head,) = numpy_side.heads
    seed = np.random.default_rng(0).normal(size=trace.values[head].shape)
    by_numpy = trace.backward({head: seed})
    runner = TorchNetwork(mod)
    weights = {name: w.requires_grad_() for name, w in runner.weights.items()}
    (logits,) = runner.run(runner.tensors(one), weights)
    (torch.softmax(logits[0], -1) * torch.from_numpy(seed)).sum().backward()
    digests = {name: digest(constant.value.numpy()) for constant, name in constant_names(mod).items()}
    assert len(weights) == 9
    for name, weight in weights.items():
        want = by_numpy[digests[name]]
        np.testing.assert_allclose(weight.grad.numpy(), want, rtol=1e-3, atol=1e-5 * np.abs(want).max())


def test_looks_through_a_last_softmax() -> None:
    (head,) = TorchNetwork(network()).heads
    assert head.kind == "softmax" and head.logits != head.name


def test_looks_through_reshapes_after_a_softmax() -> None:
    n = Net()
    scores = n.emit(op.nn.softmax(n.emit(op.reshape(n.image(6, 4), (1, 48, 2)), "raw"), axis=2))
    mod = n.builder.finish([n.emit(op.reshape(n.emit(op.reshape(scores, (1, 96))), (1, 48, 2)), "scores")])
    assert TorchNetwork(mod).heads == [Head("scores", "softmax", "raw")]
    x = np.random.default_rng(0).normal(size=(3, 1, 6, 4, 4)).astype("float32")
    (logits,) = TorchNetwork(mod).run({"x": torch.from_numpy(x)})
    np.testing.assert_array_equal(logits.numpy(), x.reshape(3, 1, 48, 2))


def test_ends_before_an_operator_that_it_does_not_know() -> None:
    n = Net()
    y = n.conv(n.image(), 4, "a", 3)
    mod = n.builder.finish([n.emit(op.argmax(n.emit(op.mean(y, [2, 3]), "mean"), axis=1), "best")])
    assert TorchNetwork(mod).heads == [Head("mean", "values", "mean")]


def test_operands_can_be_replaced_sample_by_sample() -> None:
    runner = TorchNetwork(ZOO["chain"]())
    x = torch.randn(3, 1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    gates = torch.tensor([[1.0], [0.0], [1.0]])

    def watch(name: str, operands: list, row: torch.Tensor) -> list:
        return [operands[0] * row, *operands[1:]] if name == "logits#1" else operands

    (plain,) = runner.run({"x": x})
    (gated,) = runner.run({"x": x}, watch=watch, extra=gates)
    torch.testing.assert_close(gated[[0, 2]], plain[[0, 2]])
    torch.testing.assert_close(gated[1, 0], runner.weights["logits.1"])


@pytest.mark.parametrize("spelling", ["x*clip(x+3)/6", "clip(x/6+.5)*x"])
def test_hard_swish_is_one_step_however_it_is_spelt(spelling: str) -> None:
    n = Net()
    x, number = n.image(6, 4), lambda v: relax.const(np.array([v], "float32"))
    if spelling.startswith("x"):
        gate = n.emit(op.clip(n.emit(op.add(number(3), x)), 0, 6))
        y = n.emit(op.divide(n.emit(op.multiply(x, gate)), number(6)), "y")
    else:
        gate = n.emit(op.clip(n.emit(op.add(n.emit(op.multiply(x, number(1 / 6))), number(0.5))), 0, 1))
        y = n.emit(op.multiply(gate, x), "y")
    runner = TorchNetwork(n.builder.finish([n.emit(op.negative(y), "out")]))
    assert runner.step_names == ["y", "out"]
    x = torch.linspace(-6, 6, 96).reshape(1, 1, 6, 4, 4)
    torch.testing.assert_close(runner.run({"x": x})[0], -torch.nn.functional.hardswish(x))


def test_what_is_no_hard_swish_or_is_read_within_stays_as_it_is() -> None:
    n = Net()
    x, number = n.image(6, 4), lambda v: relax.const(np.array([v], "float32"))
    gate = n.emit(op.clip(n.emit(op.add(x, number(3)), "t"), 0, 6), "u")
    y = n.emit(op.divide(n.emit(op.multiply(x, gate), "v"), number(6)), "y")
    z = n.emit(op.divide(n.emit(op.multiply(x, n.emit(op.clip(x, 0, 6), "c")), "d"), number(6)), "z")
    runner = TorchNetwork(n.builder.finish([n.emit(op.add(n.emit(op.add(y, z), "sum"), gate), "out")]))
    assert runner.step_names == ["t", "u", "v", "y", "c", "d", "z", "sum", "out"]
