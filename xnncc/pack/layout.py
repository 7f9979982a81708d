"""The bytes of a package, as numbers: docs/package.md, whose section numbers are cited here.

That page, this file and ``runtime/src/open.c`` change together or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from struct import Struct

# Section 2: magic, version, sections, file bytes, build id, reserved, header CRC.
HEADER = Struct("<8sIIQq28sI")
MAGIC = b"\x89XNN\r\n\x1a\n"
FORMAT_VERSION = 1
HEADER_CRC_OFFSET = 60

# Section 3: kind, encoding, flags, CRC, offset, stored bytes, decoded bytes.
ENTRY = Struct("<4sIIIQQQ")
FLAG_REQUIRED = 1
ENCODING_RAW = 0
ENCODING_CODED = 1  # of WGHT: section 6.3

# Section 4.
ALIGNMENT = 64
KIND_META = b"META"
KIND_WGHT = b"WGHT"

# Section 6.1.
KIND_STAT = b"STAT"
STAT = Struct("<I")

# Section 6.2: contents as META.
KIND_VARI = b"VARI"

# Section 5.1: arena, scratch, ops, inputs, outputs, string bytes, model name, target name, prepared.
META = Struct("<QQIIIIIIQ")

# Section 5.2: name, dtype, rank, reserved, dims.
TENSOR = Struct("<IIII8Q")
TENSOR_DIMS = 16  # bytes before the dims

# Section 7: dtype name -> (code, bytes of an element).
DTYPES = {
    "float32": (1, 4), "float64": (2, 8), "float16": (3, 2), "bfloat16": (4, 2), "int8": (5, 1), "uint8": (6, 1),
    "int16": (7, 2), "uint16": (8, 2), "int32": (9, 4), "uint32": (10, 4), "int64": (11, 8), "uint64": (12, 8),
    "bool": (13, 1),
}  # fmt: skip
DTYPE_NAMES = {code: name for name, (code, _) in DTYPES.items()}

# Section 8.
MAX_SECTIONS = 64
MAX_TENSORS = 1024
MAX_RANK = 8
MAX_STRING_BYTES = 1 << 20
MAX_BYTES = 1 << 40
MAX_OPS = (1 << 31) - 1


@dataclass(frozen=True)
class Tensor:
    """An input or output: the model's own name, static shape, numpy dtype name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return prod(self.shape) * DTYPES[self.dtype][1]


@dataclass(frozen=True)
class Section:
    """A section beside META and WGHT: ``kind`` is four ASCII characters, ``data`` the stored bytes.

    ``decoded_bytes`` is None for raw contents (encoding 0), whose decoded length is their stored length.
    """

    kind: str
    data: bytes
    encoding: int = ENCODING_RAW
    required: bool = False
    decoded_bytes: int | None = None


@dataclass(frozen=True)
class Variant:
    """The network at further shapes: inputs and outputs as the package's, but for their dims. Sizes are in bytes."""

    arena_bytes: int
    op_count: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Package:
    """Everything a package says. ``weights`` is the blob as the kernels read it, or, when ``blob_bytes`` is not None,
    what ``pack.coding`` made of a blob of that length; sizes are in bytes.

    The last ``state_count`` inputs and outputs are pairs that the runtime keeps between runs. ``variants`` are the
    further shapes that the library was built for; the first are the package's own.
    """

    name: str
    target: str
    build_id: int  # [-2^63, 2^63)
    arena_bytes: int
    thread_scratch_bytes: int
    op_count: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights: bytes | memoryview = field(repr=False)
    extra: tuple[Section, ...] = ()
    prepared_bytes: int = 0  # memory that open fills once from the weights: what the kernels read instead of them
    state_count: int = 0
    variants: tuple[Variant, ...] = ()
    blob_bytes: int | None = None

    @property
    def weights_bytes(self) -> int:
        """Bytes of the blob that the kernels read."""
        return len(self.weights) if self.blob_bytes is None else self.blob_bytes


def aligned(offset: int) -> int:
    """Return ``offset`` rounded up to where a section may begin."""
    return (offset + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
