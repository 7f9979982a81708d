"""Operators of the user's own: functions that emit TE or TensorIR for an operator that xnncc does not know.

    @xnncc.custom_op("com.example::Swirl", reference=swirl_in_numpy)
    def swirl(call, x):                       # x: te.Tensor, of call.shapes[0] and call.dtypes[0]
        return te.compute(x.shape, lambda *i: ...)

The name is an ONNX operator (``domain::Name``, the bare name in the standard domain), a type of Caffe layer, a
TensorFlow operator or a TFLite custom operator. All importers look into the same table: ``custom.py`` of each format
enters an operator into the format's own registry and gives it a ``CustomCall``. ``docs/plugins.md`` is the manual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import PluginError, XnnccError
from ..ir.names import c_identifier
from .refused import Refused, last_line

if TYPE_CHECKING:
    import numpy as np
    from tvm.relax import Expr

    from .network import NetworkBuilder

FORMATS = ("onnx", "caffe", "tensorflow", "tflite")
_MANUAL = "See docs/plugins.md."


@dataclass(frozen=True)
class CustomCall:
    """One node of the model, as the user's function sees it."""

    kind: str  # the operator's name, as it was registered
    name: str  # the node's
    attributes: dict[str, Any]  # as the format has them; docs/plugins.md says how for each
    shapes: tuple[tuple[int, ...], ...]  # of the operands
    dtypes: tuple[str, ...]
    constants: tuple[np.ndarray | None, ...]  # the value of each operand that is known at import


@dataclass(frozen=True)
class CustomOp:
    """A registered operator."""

    kind: str
    emit: Callable[..., Any]  # (call, *te.Tensor) -> te.Tensor, a tuple of them, or a tirx.PrimFunc
    reference: Callable[..., Any] | None  # (call, *ndarray) -> ndarray or a tuple of them
    source: str  # the plugin's file, for messages
    formats: tuple[str, ...] = field(default=FORMATS)


_TABLE: dict[str, CustomOp] = {}
_LOADING: list[str] = []  # the plugin that is being executed


def custom_op(
    kind: str, *, reference: Callable[..., Any] | None = None, formats: Sequence[str] = FORMATS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as what emits operator ``kind``; it is returned unchanged.

    ``reference`` computes the same in numpy: what the import check and ``xnncc verify`` compare with. ``formats``: for
    which importers; xnncc's own operators cannot be replaced.

    Raises: PluginError.
    """

    def register(emit: Callable[..., Any]) -> Callable[..., Any]:
        source = _LOADING[-1] if _LOADING else getattr(emit, "__module__", "") or "this program"
        op = CustomOp(kind.replace("::", "."), emit, reference, source, tuple(formats))
        known = _TABLE.get(op.kind)
        if known is not None and known.source != op.source:
            why = f"{known.source} and {op.source} both register it"
            raise PluginError(f"operator '{kind}'", why, "Give one plugin for it.")
        for name in op.formats:
            if name not in FORMATS:
                raise PluginError(f"operator '{kind}'", f"no format '{name}'", f"Known: {', '.join(FORMATS)}.")
            if known is None or name not in known.formats:
                _enter(name, op)
        _TABLE[op.kind] = op
        return emit

    return register


def _enter(name: str, op: CustomOp) -> None:
    """Enter ``op`` into the registry of a format."""
    try:
        import_module(f".{name}.custom", __package__).register(op.kind)
    except ValueError:
        others = ", ".join(repr(other) for other in FORMATS if other != name)
        why = f"xnncc has its own for {name}"
        raise PluginError(f"operator '{op.kind}'", why, f"Choose other formats: formats=({others})") from None


def custom_named(kind: str) -> CustomOp | None:
    """Return the operator registered under that name."""
    return _TABLE.get(kind)


def load_plugins(paths: Iterable[str | Path]) -> list[CustomOp]:
    """Execute each of the user's files and return the operators that they register. Loading a file again is fine.

    Raises: PluginError: no such file, it raises something, or it registers nothing.
    """
    found: list[CustomOp] = []
    for path in map(Path, paths):
        source = str(path)
        spec = spec_from_file_location(f"xnncc_plugin_{c_identifier(path.stem)}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise PluginError(f"--plugin {path}", "no such Python file", f"Give a file that ends in .py. {_MANUAL}")
        for kind in [kind for kind, op in _TABLE.items() if op.source == source]:
            _TABLE[kind] = CustomOp(kind, _forgotten, None, source, _TABLE[kind].formats)
        _LOADING.append(source)
        try:
            spec.loader.exec_module(module_from_spec(spec))
        except XnnccError:
            raise
        except Exception as error:  # a user's file raises whatever it likes
            why = f"{type(error).__name__}: {last_line(error)}"
            raise PluginError(f"--plugin {path}", why, f"Correct the file. {_MANUAL}") from error
        finally:
            _LOADING.pop()
        mine = [op for op in _TABLE.values() if op.source == source and op.emit is not _forgotten]
        if not mine:
            why = "it registers no operator"
            raise PluginError(f"--plugin {path}", why, f"Decorate a function with @xnncc.custom_op. {_MANUAL}")
        found += mine
    return found


def _forgotten(call: CustomCall, *tensors: Any) -> Any:
    raise Refused("the plugin no longer registers it")


def emit_custom(build: NetworkBuilder, call: CustomCall, args: Sequence[Expr]) -> list[Expr]:
    """Return the results of a node as expressions.

    Raises:
        Refused: the user's function raises, or gives back something else.
    """
    from tvm import relax, te, tirx

    op = _TABLE[call.kind]
    made = _called(op, call, _placeholders(call))
    name = c_identifier(call.kind)
    if isinstance(made, tirx.PrimFunc):
        return [_kernel_call(build, op, made, args, name)]
    if not made or not all(isinstance(tensor, te.Tensor) for tensor in made):
        raise Refused(f"{op.source} gives {made!r} for it, no te.Tensor and no PrimFunc", _MANUAL)
    results = build.emit(build.call_te(lambda *tensors: _called(op, call, tensors), *args, name=name))
    return [results] if len(made) == 1 else [relax.TupleGetItem(results, i) for i in range(len(made))]


def _kernel_call(build: NetworkBuilder, op: CustomOp, kernel: Any, args: Sequence[Expr], name: str) -> Expr:
    if len(kernel.params) != len(args) + 1:
        why = f"the PrimFunc of {op.source} has {len(kernel.params)} parameters, expected {len(args)} and the result"
        raise Refused(why, _MANUAL)
    result = kernel.params[-1]
    return build.call_kernel(kernel, args, [int(dim) for dim in result.shape], str(result.dtype), name)


def run_reference(call: CustomCall, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return what a node computes: by the user's reference, or else by what the function emits, compiled by TVM.

    Raises:
        Refused: the user's function raises.
    """
    import numpy as np

    op = _TABLE[call.kind]
    if op.reference is None:
        return _compiled(op, call, arrays)
    try:
        results = op.reference(call, *arrays)
    except Exception as error:  # a user's function raises whatever it likes
        raise Refused(f"the reference of {op.source} raises {type(error).__name__}: {last_line(error)}") from error
    return [np.asarray(result) for result in (results if isinstance(results, tuple | list) else [results])]


def _compiled(op: CustomOp, call: CustomCall, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    import numpy as np
    import tvm
    from tvm import te, tirx

    placeholders = _placeholders(call)
    made = _called(op, call, placeholders)
    if isinstance(made, tirx.PrimFunc):
        kernel, types = made, [(made.params[-1].shape, made.params[-1].dtype)]
    else:
        kernel, types = te.create_prim_func([*placeholders, *made]), [(t.shape, t.dtype) for t in made]
    main = tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    results = [tvm.runtime.tensor(np.empty([int(d) for d in shape], str(dtype))) for shape, dtype in types]
    feeds = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in arrays]
    tvm.compile(main, target=tvm.target.Target("llvm"))["main"](*feeds, *results)
    return [result.numpy() for result in results]


def _placeholders(call: CustomCall) -> list[Any]:
    from tvm import te

    pairs = zip(call.shapes, call.dtypes, strict=True)
    return [te.placeholder(shape, dtype, name=f"x{i}") for i, (shape, dtype) in enumerate(pairs)]


def _called(op: CustomOp, call: CustomCall, tensors: Sequence[Any]) -> Any:
    """Return what the user's function gives: a PrimFunc, or a list of tensors."""
    from tvm import tirx

    try:
        made = op.emit(call, *tensors)
    except Refused:
        raise
    except Exception as error:  # a user's function raises whatever it likes
        raise Refused(f"{op.source} raises {type(error).__name__}: {last_line(error)}") from error
    if isinstance(made, tirx.PrimFunc):
        return made
    return list(made) if isinstance(made, tuple | list) else [made]
