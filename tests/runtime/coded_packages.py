"""Packages with coded weights: random tensors in random layouts."""

from __future__ import annotations

import numpy as np

from xnncc import pack
from xnncc.ir.coded import CodedTensor, coded_table
from xnncc.ir.placement import Change, CodedTable, Placement
from xnncc.pack.coding import encode_blob

LAYOUTS: dict[str, Change] = {
    "plain": lambda w: w,
    "transposed": lambda w: w.transpose(),
    "reversed": lambda w: w[::-1],
    "blocks of 8 rows": lambda w: _blocks(w.reshape(w.shape[0], -1)),
}


def _blocks(w: np.ndarray) -> np.ndarray:
    full = np.zeros((-(-w.shape[0] // 8) * 8, w.shape[1] + 1), w.dtype)
    full[: w.shape[0], :-1] = w
    return full.reshape(-1, 8, full.shape[1]).transpose(0, 2, 1)


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> CodedTensor:
    """Return a coded tensor; ``kind``: "one", "codebook", or "steps" along a random axis."""
    integers = np.rint(rng.laplace(size=shape) * rng.choice([0.3, 1, 20])).astype(np.int32)
    if kind == "codebook":
        return CodedTensor(np.abs(integers) % 9, codebook=rng.standard_normal(9).astype(np.float32))
    axis = int(rng.integers(len(shape)))
    dtype = rng.choice([np.float16, np.float32])
    steps = rng.random(1 if kind == "one" else shape[axis]).astype(dtype).astype(np.float32)
    return CodedTensor(integers, steps, axis=axis)


def place_in(tensor: CodedTensor, change: Change, offset: int, placements: list[Placement]) -> np.ndarray:
    """Return the values of ``tensor`` as ``change`` packs them, and add where they are."""
    table = CodedTable(coded_table([tensor]))
    array = np.ascontiguousarray(table.follow(tensor.values(), change))
    found = table.place(offset, array)
    assert found is not None
    placements.append(found[1])
    return array


def coded_package(
    seed: int, coder: str, shapes: tuple[tuple[int, ...], ...], prepared_bytes: int = 64
) -> tuple[pack.Package, bytes]:
    """Return a package of build id 5 whose weights are tensors of ``shapes`` and plain bytes between, and its blob."""
    rng = np.random.default_rng(seed)
    blob, placements = bytearray(rng.bytes(64)), list[Placement]()
    for i, shape in enumerate(shapes):
        tensor = random_tensor(rng, shape, ["one", "steps", "codebook"][i % 3])
        change = LAYOUTS[str(rng.choice(list(LAYOUTS)))]
        array = place_in(tensor, change, len(blob), placements)
        blob += array.tobytes()
        blob += bytes(-len(blob) % 64)
        blob += rng.bytes(64 * int(rng.integers(2)))
    package = pack.Package(
        name="coded", target="linux-x86-64", build_id=5, arena_bytes=64, thread_scratch_bytes=0, op_count=1, inputs=(),
        outputs=(), weights=encode_blob(bytes(blob), placements, (coder,)).data, prepared_bytes=prepared_bytes,
        blob_bytes=len(blob),
    )  # fmt: skip
    return package, bytes(blob)
