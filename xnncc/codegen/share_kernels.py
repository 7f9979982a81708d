"""Kernels that variants of a network have in common: the same code for the same shapes is compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx
from tvm_ffi import structural_equal, structural_hash


def share_kernels(
    networks: Sequence[Mapping[str, tirx.PrimFunc]],
) -> tuple[dict[str, tirx.PrimFunc], list[dict[str, str]]]:
    """Return every different kernel under a name of its own, and for each network the kernel of each of its names.

    The first network's kernels keep their names.
    """
    kernels: dict[str, tirx.PrimFunc] = {}
    names: list[dict[str, str]] = []
    alike: dict[int, list[str]] = {}  # structural hash -> kernels
    for variant, network in enumerate(networks):
        taken = {}
        for name, func in network.items():
            bare = func.without_attr("global_symbol") if "global_symbol" in (func.attrs or {}) else func
            found = alike.setdefault(structural_hash(bare), [])
            same = None if variant == 0 else next((n for n in found if _is_same(kernels[n], bare)), None)
            if same is None:
                same = name if variant == 0 else _free(f"{name}_shape{variant}", kernels)
                kernels[same] = bare
                found.append(same)
            taken[name] = same
        names.append(taken)
    return kernels, names


def _is_same(one: tirx.PrimFunc, two: tirx.PrimFunc) -> bool:
    return bool(structural_equal(one, two))


def _free(name: str, taken: Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name
