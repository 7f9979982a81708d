"""``xnncc.load(DIR)``: a network that this very process runs, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from xnncc.device.artefact import (
    check_inputs,
    inputs_by_name,
    library_file,
    numpy_dtype,
    package_file,
    variant_for,
)
from xnncc.errors import BadPackage, BadTarget, DeviceError
from xnncc.host_cpu import host_abi, host_architecture
from xnncc.ir.plan import TensorInfo
from xnncc.pack import read_manifest, variant_manifests

if TYPE_CHECKING:
    import numpy as np

_PACKAGE_FAULTS = range(3, 14)  # xnnrt_status NO_FILE .. TOO_LARGE: the package's fault, not the device's


class _Options(ctypes.Structure):
    _fields_ = [
        ("threads", ctypes.c_int),
        ("arena", ctypes.c_void_p),
        ("arena_bytes", ctypes.c_size_t),
        ("core_mask", ctypes.c_uint64),
    ]


def load(folder: str | Path, threads: int = 0) -> Network:
    """Return the network of an artefact's folder, open and ready; ``threads`` 0 means one a core.

    Raises: BadPackage, DeviceError (the artefact is for another kind of machine).
    """
    return Network(Path(folder), threads=threads)


def check_host(manifest: dict[str, Any]) -> None:
    """Raise DeviceError unless this machine runs artefacts like the one of ``manifest``."""
    from xnncc.target import load_target

    name = str(manifest["target"])
    abi = manifest.get("abi")
    if name == "host":
        abi = abi or host_abi()
        system, arch = "linux", "aarch64" if abi == "arm64" else "x86_64"
    else:
        try:
            target = load_target(name)
        except BadTarget:
            return  # a target of the user's own: what it needs shows when it runs
        abi, arch = abi or target.abi, target.arch
        system = "linux" if target.toolchain.libc == "glibc" else target.toolchain.libc
    if system != "linux" or arch != host_architecture():
        why = f"it is built for '{name}' and this machine is Linux on {host_architecture()}"
        next_step = "Use --device emulator, or build it with --target host."
        raise DeviceError("the artefact does not run here", why, next_step)
    if str(abi).startswith("x86-64-") and str(abi) > host_abi():
        why = f"it needs {abi} instructions and this CPU has {host_abi()}"
        raise DeviceError("the artefact does not run here", why, "Build it again on this machine with --target host.")


class Network:
    """An open network. Call it with a table of arrays by name, or with the arrays in order; close it when done.

    >>> with xnncc.load("net-host") as net:              # doctest: +SKIP
    ...     scores = net({"image": image})["scores"]
    """

    def __init__(self, folder: Path, manifest: dict[str, Any] | None = None, threads: int = 1) -> None:
        self.manifest = manifest or read_manifest(folder)
        check_host(self.manifest)
        self._choose(variant_manifests(self.manifest)[0])
        self._net = ctypes.c_void_p()
        library = library_file(folder, self.manifest)
        try:
            self._library = ctypes.CDLL(str(library))
            graph = ctypes.cast(getattr(self._library, self.manifest["graph_symbol"]), ctypes.c_void_p)
            self._declare()
        except (OSError, AttributeError) as error:
            raise DeviceError(f"'{library}' cannot be loaded", str(error), "Build the folder again.") from None
        package = package_file(folder, self.manifest)
        status = self._library.xnnrt_open_file(
            ctypes.byref(self._net), graph, str(package).encode(), ctypes.byref(_Options(threads, None, 0, 0))
        )
        if status in _PACKAGE_FAULTS:
            raise BadPackage(f"'{package}'", self._explain(status), "Build the folder again with 'xnncc build'.")
        self._check(status, f"opening '{package}'")

    def _declare(self) -> None:
        """Tell ctypes the types of the functions that are called (xnnrt.h)."""
        lib, pointer = self._library, ctypes.c_void_p
        lib.xnnrt_open_file.argtypes = [pointer, pointer, ctypes.c_char_p, pointer]
        lib.xnnrt_run.argtypes = [pointer, pointer, pointer]
        lib.xnnrt_run_ops.argtypes = [pointer, pointer, pointer, ctypes.c_int32, ctypes.c_int32]
        lib.xnnrt_reset.argtypes = [pointer]
        lib.xnnrt_use_variant.argtypes = [pointer, ctypes.c_int]
        lib.xnnrt_op_count.argtypes = [pointer]
        lib.xnnrt_op_count.restype = ctypes.c_int32
        lib.xnnrt_arena.argtypes = [pointer]
        lib.xnnrt_arena.restype = pointer
        lib.xnnrt_close.argtypes = [pointer]
        lib.xnnrt_close.restype = None
        lib.xnnrt_strerror.restype = ctypes.c_char_p

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, np.ndarray]:
        """Return the outputs by name. Takes one table of arrays, arrays in order, or arrays by keyword.

        Of an artefact that was built for several shapes it runs the variant that the arrays fit; ``inputs`` and
        ``outputs`` are those of the variant that ran last.

        Raises: BadInput, DeviceError.
        """
        if len(arrays) == 1 and isinstance(arrays[0], dict) and not named:
            feeds = inputs_by_name(self.manifest, arrays[0])
        elif named and not arrays:
            feeds = inputs_by_name(self.manifest, named)
        else:
            feeds = check_inputs(self.manifest, arrays)
        self.use(variant_for(self.manifest, feeds)["variant"])
        return dict(zip((t.name for t in self.outputs), self.run(feeds), strict=True))

    def use(self, variant: int) -> None:
        """Let the network take the shapes of that variant from now on; states go on."""
        if variant != self.variant:
            self._check(self._library.xnnrt_use_variant(self._open_net(), variant), f"choosing variant {variant}")
            self._choose(variant_manifests(self.manifest)[variant])

    def _choose(self, manifest: dict[str, Any]) -> None:
        self.variant: int = manifest["variant"]
        self.inputs, self.outputs = _tensors(manifest["inputs"]), _tensors(manifest["outputs"])

    def run(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs in order, given checked inputs in order, of the present variant's shapes."""
        outputs, ins, outs = self.bind(feeds)
        self._check(self._library.xnnrt_run(self._open_net(), ins, outs), "running the network")
        return outputs

    def bind(self, feeds: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Any, Any]:
        """Return fresh output arrays and the two pointer tables for ``run_ops``; keep the arrays alive meanwhile."""
        import numpy as np

        outputs = [np.empty(t.shape, numpy_dtype(t.dtype)) for t in self.outputs]
        ins = (ctypes.c_void_p * len(feeds))(*(a.ctypes.data for a in feeds))
        outs = (ctypes.c_void_p * len(outputs))(*(a.ctypes.data for a in outputs))
        return outputs, ins, outs

    def run_ops(self, ins: Any, outs: Any, first: int, last: int) -> None:
        """Run operators first <= i < last on the tables of ``bind``."""
        self._check(self._library.xnnrt_run_ops(self._open_net(), ins, outs, first, last), "running the network")

    def reset(self) -> None:
        """Make every state (``xnncc build --state``) zero, as after loading."""
        self._check(self._library.xnnrt_reset(self._open_net()), "resetting the network")

    @property
    def op_count(self) -> int:
        """Operators of one inference."""
        return int(self._library.xnnrt_op_count(self._open_net()))

    @property
    def arena(self) -> int:
        """Address of the arena, for dumps between two ``run_ops``."""
        return int(self._library.xnnrt_arena(self._open_net()))

    def close(self) -> None:
        """Give the memory and the threads back; a second call does nothing."""
        if self._net:
            self._library.xnnrt_close(self._net)
            self._net = ctypes.c_void_p()

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_net", None):
            self.close()

    def _open_net(self) -> ctypes.c_void_p:
        if not self._net:
            raise DeviceError("the network is closed", "", "Load it again with xnncc.load.")
        return self._net

    def _explain(self, status: int) -> str:
        return bytes(self._library.xnnrt_strerror(status)).decode()

    def _check(self, status: int, what: str) -> None:
        if status != 0:
            raise DeviceError(what, self._explain(status))


def _tensors(entries: list[dict[str, Any]]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(str(e["name"]), tuple(e["shape"]), str(e["dtype"])) for e in entries)
