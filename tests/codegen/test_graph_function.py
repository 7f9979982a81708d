"""The graph function called from C, over kernels that write down how they were called."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernel_running import host
from object_linking import load_objects

from xnncc.codegen.emit import _write_object
from xnncc.codegen.graph_function import graph_function, graph_module
from xnncc.codegen.plan_memory import Buffer, Call, Layout, Operand

BUILD_ID = 0x1234_5678_9ABC_DEF0
WEIGHTS, ARENA, PREPARED = 0x1000_0000, 0x2000_0000, 0x3000_0000
INPUT, FIRST_OUT, SECOND_OUT = 0x4000_0000, 0x1800_0000, 0x7FFF_0000_0000  # before and far behind the arena
TWO, THREE, FOUR, OPENING = range(4)


def _layout() -> Layout:
    """two(in, t); three(t, w, out0); four(t, p, out1[64:], s), with p prepared by opening(w, p)."""
    t, scratch = Buffer(64, place=128), Buffer(64, kind="scratch", place=256)
    prepared = Buffer(64, place=64, is_prepared=True)
    first, whole = Buffer(64, output=0), Buffer(128, output=1)
    part = Buffer(64, base=whole, shift=64)
    data = {b: Operand((16,), "float32", b) for b in (t, prepared, first, part, whole)}
    weights = Operand((16,), "float32", weight=192)
    calls = [
        Call("two", None, [Operand((16,), "float32", input=0)], [data[t]]),
        Call("three", None, [data[t], weights], [data[first]]),
        Call("four", None, [data[t], data[prepared]], [data[part]], [scratch]),
    ]
    opening = [Call("opening", None, [weights], [data[prepared]])]
    return Layout(calls, opening, 128, b"", 320, 320, (), [data[first], data[whole]])


class Graph:
    """The compiled graph function and the book its kernels keep."""

    def __init__(self, folder: Path, layout: Layout) -> None:
        func = graph_function([layout], 1, "xnn_net_", "xnn_net_graph", BUILD_ID)
        _write_object(graph_module(func, host()), host(), folder / "graph.o")
        self.dll = load_objects(folder, [folder / "graph.o"], "fake_kernels.c")

    def run(self, first: int, last: int, arena: int = ARENA) -> int:
        """Call it as a runtime does."""
        io = (ctypes.c_int64 * 4)(*(p - arena for p in (INPUT, FIRST_OUT, SECOND_OUT, PREPARED)))
        self.number("calls").value = 0
        return self.dll.xnn_net_graph(ctypes.c_void_p(WEIGHTS), ctypes.c_void_p(arena), io, first, last)

    def number(self, name: str) -> ctypes.c_int64:
        """A variable of the fake kernels."""
        return ctypes.c_int64.in_dll(self.dll, name)

    @property
    def called(self) -> list[tuple[int, list[int]]]:
        """(kernel, its four arguments) of each call."""
        kernels = (ctypes.c_int64 * 64).in_dll(self.dll, "kernels")
        arguments = (ctypes.c_int64 * 4 * 64).in_dll(self.dll, "arguments")
        return [(kernels[i], list(arguments[i])) for i in range(self.number("calls").value)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    yield Graph(tmp_path_factory.mktemp("graph"), _layout())


def test_kernels_run_in_order_on_their_memory(graph: Graph) -> None:
    assert graph.run(0, 3) == 0
    assert graph.called == [
        (TWO, [INPUT, ARENA + 128, 0, 0]),
        (THREE, [ARENA + 128, WEIGHTS + 192, FIRST_OUT, 0]),
        (FOUR, [ARENA + 128, PREPARED + 64, SECOND_OUT + 64, ARENA + 256]),
    ]


@pytest.mark.parametrize(
    ("first", "last", "kernels"),
    [(0, 0, []), (0, 1, [TWO]), (1, 2, [THREE]), (1, 3, [THREE, FOUR]), (2, 99, [FOUR]), (3, 3, []), (2, 1, [])],
)
def test_stepping(graph: Graph, first: int, last: int, kernels: list[int]) -> None:
    assert graph.run(first, last) == 0
    assert [kernel for kernel, _ in graph.called] == kernels


def test_the_build_id_is_told_and_nothing_else_happens(graph: Graph) -> None:
    arena = (ctypes.c_int64 * 4)(7, 7, 7, 7)
    assert graph.run(-1, 0, ctypes.addressof(arena)) == 0
    assert list(arena) == [BUILD_ID, 7, 7, 7] and graph.called == []


def test_opening_fills_the_prepared_memory_given_as_the_arena(graph: Graph) -> None:
    assert graph.run(-2, 0, PREPARED) == 0
    assert graph.called == [(OPENING, [WEIGHTS + 192, PREPARED + 64, 0, 0])]


def test_a_failing_kernel_stops_the_network(graph: Graph) -> None:
    graph.number("failing").value = THREE
    try:
        assert graph.run(0, 3) == -1
        assert [kernel for kernel, _ in graph.called] == [TWO, THREE]
    finally:
        graph.number("failing").value = -1


def test_a_network_of_one_kernel_and_nothing_to_open(tmp_path: Path) -> None:
    layout = _layout()
    layout.calls, layout.opening = layout.calls[:1], []
    graph = Graph(tmp_path, layout)
    assert graph.run(0, 1) == 0 and [kernel for kernel, _ in graph.called] == [TWO]
    arena = (ctypes.c_int64 * 1)(7)
    assert graph.run(-1, 0, ctypes.addressof(arena)) == 0 and arena[0] == BUILD_ID
