"""Cutting neurons gives the numbers of masking them, on every kind of tie; which neurons go, and why others cannot."""

from __future__ import annotations

from collections.abc import Collection

import channel_networks
import numpy as np
import pytest
import tvm
from channel_networks import ZOO, op
from hypothesis import given, settings
from hypothesis import strategies as st

from xnncc.compress.channel_groups import ChannelGroups, channel_groups
from xnncc.compress.constants import constant_arrays, rebuilt
from xnncc.compress.cut_channels import cut_channels
from xnncc.frontends.evaluate import evaluate

FOUND = {name: (make(), channel_groups(make())) for name, make in ZOO.items()}


def masked(mod: tvm.IRModule, groups: ChannelGroups, gone: Collection[int]) -> tvm.IRModule:
    """Return ``mod`` at full size with every slice zero that a cut of ``gone`` takes away."""
    arrays = constant_arrays(mod)
    for name, axes in groups.constants.items():
        if arrays[name].dtype != np.float32:
            continue
        arrays[name] = arrays[name].copy()
        for axis, classes in enumerate(axes):
            np.moveaxis(arrays[name], axis, 0)[np.isin(classes, list(gone))] = 0
    return rebuilt(mod, arrays)


def outputs(mod: tvm.IRModule, seed: int = 0) -> list[np.ndarray]:
    """Return what ``mod`` computes on random input."""
    rng = np.random.default_rng(seed)
    feeds = [rng.normal(size=[int(d) for d in p.ty.shape.values]).astype("float32") for p in mod["main"].params]
    return evaluate(mod, feeds)[0]


def sizes(mod: tvm.IRModule) -> int:
    """Return the number of elements of all constants."""
    return sum(array.size for array in constant_arrays(mod).values())


@pytest.mark.parametrize("name", ZOO)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_random_cut_of_every_group_equals_masking(name: str, data: st.DataObject) -> None:
    mod, groups = FOUND[name]
    gone: set[int] = set()
    for group in groups.groups:
        gone |= data.draw(st.sets(st.sampled_from(group.neurons), max_size=len(group.neurons) - 1))
    small = cut_channels(mod, groups, gone)
    for got, want in zip(outputs(small), outputs(masked(mod, groups, gone)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert (sizes(small) < sizes(mod)) == bool(gone)


GROUPS = {
    "chain": {"a#1": 6, "b#1": 8, "c#1": 12},
    "residual": {"stem#1": 8, "a1#1": 12, "b1#1": 12},
    "inverted": {"stem#1": 6, "expand#1": 18},
    "grouped": {"a#1": 4, "b#1": 6, "c#1": 10},
    "joined": {"stem#1": 8, "a#1": 6, "b#1": 10, "c#1": 7, "d#1": 5},
    "shuffled": {"a#1": 4, "b#1": 4, "c#1": 9},
    "squeezed": {"stem#1": 12, "down#1": 4, "after#1": 8},
    "detector": {"a#1": 10, "b#1": 12},
    "transformer": {"qkv#1": 6, "wide#1": 20},
    "lstm": {"first": 8, "second": 5},
    "gru": {"first": 8, "second": 5},
    "upsampled": {"a#1": 8, "up#1": 6, "c#1": 9},
}


@pytest.mark.parametrize("name", ZOO)
def test_groups(name: str) -> None:
    assert {g.name: len(g.neurons) for g in FOUND[name][1].groups} == GROUPS[name]


def test_a_flatten_takes_all_pixels_of_a_channel() -> None:
    mod, groups = FOUND["chain"]
    (channel,) = (g for g in groups.groups if g.name == "b#1")
    small = constant_arrays(cut_channels(mod, groups, channel.neurons[:3]))
    assert small["b#1.1"].shape == (5, 6, 3, 3) and small["c#1.1"].shape == (5 * 16, 12)


def test_an_addition_ties_all_layers_of_a_trunk() -> None:
    (trunk,) = (g for g in FOUND["residual"][1].groups if g.name == "stem#1")
    assert trunk.makers == ("stem#1", "a2#1", "b2#1")


@pytest.mark.parametrize(
    "name, maker, why",
    [
        ("chain", "logits#1", "an output of the network"),
        ("detector", "head0#1", "tied to a fixed tensor"),
        ("transformer", "out#1", "tied to a fixed tensor"),
    ],
)
def test_says_why_neurons_stay(name: str, maker: str, why: str) -> None:
    assert FOUND[name][1].left_alone[maker] == why


def test_sums_over_products_of_activations_are_marked() -> None:
    groups = FOUND["transformer"][1]
    (heads,) = (g for g in groups.groups if g.name == "qkv#1")
    assert set(heads.neurons) <= groups.in_products


def test_an_operator_without_a_rule_fixes_what_it_reads() -> None:
    n = channel_networks.Net()
    y = n.conv(n.image(), 8, "a", 3)
    groups = channel_groups(n.pooled(n.emit(op.cumsum(n.relu(y), axis=1))))
    assert not groups.groups and groups.left_alone["a#1"] == "a running sum goes over it"


def test_one_constant_that_two_layers_read_is_cut_for_both() -> None:
    n = channel_networks.Net()
    x, w = n.image(), n.w(6, 3, 1, 1)
    y = n.emit(op.add(n.emit(op.nn.conv2d(x, w), "a"), n.emit(op.nn.conv2d(n.relu(x), w), "b")))
    mod = n.pooled(y)
    groups = channel_groups(mod)
    (group,) = groups.groups
    small = cut_channels(mod, groups, group.neurons[:4])
    np.testing.assert_allclose(
        outputs(small)[0], outputs(masked(mod, groups, group.neurons[:4]))[0], rtol=1e-4, atol=1e-5
    )
    assert group.makers == ("a", "b")


def test_cutting_nothing_changes_nothing() -> None:
    mod, groups = FOUND["residual"]
    assert cut_channels(mod, groups, []) is mod
