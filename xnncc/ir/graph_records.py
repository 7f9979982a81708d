"""A Relax module as plain records, and back: the graph part of an ``.xq`` file.

    [inputs, kernels, nodes, outputs, names]

    inputs     [name, shape, dtype] each
    kernels    [name, body] of each kernel of our own (``kernel_records.py``)
    nodes      one for each binding, in order: [number, ...] (below)
    outputs    operands
    names      of the nodes' variables, "" for one that follows from the next named one (``y#1`` before ``y``)

A node begins with 0 (an element of a tuple: index, operand), 1 (a kernel: its index, shape, dtype, operands), 2 (the
recurrent layer: specification, operands) or 3 + an operator's place in ``OPERATORS``; then come a mask of the
attributes that are not the default, these attributes, and the operands. An operand is

    0          the next constant              [0, i]   constant i, once more
    n > 0      the value n back, inputs too   [1, ...] a shape        [2, ...] a tuple of operands
    number.0   a float                        [3, i]   an integer     text: a string    null: none

Constants lie elsewhere, in order of first use. Types are not stored: TVM infers them. ``module_of`` trusts nothing:
numbers are bounded here, operators are built by TVM's public constructors, which check them, and kernels pass
``kernel_records.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst, StringImm
from tvm.relax import TupleGetItem, Var

from ..errors import BadModel, UnsupportedModel
from .graph_operators import NUMBER_OF, OPERATORS, attributes_of, call
from .kernel_records import kernel_of, record_kernel
from .recurrent import NAME as RECURRENT
from .recurrent import Recurrent
from .recurrent_shapes import check_recurrent

_ELEMENT, _KERNEL, _RECURRENT, _FIRST = range(4)
_CONSTANT, _SHAPE, _TUPLE, _INTEGER = range(4)
MAX_RANK = 8
MAX_ELEMENTS = 1 << 31
DTYPES = ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "bool")  # fmt: skip


def record_module(mod: tvm.IRModule) -> tuple[list[Any], list[np.ndarray]]:
    """Return the records of ``mod`` and its constants in order of first use, equal ones once.

    Raises: UnsupportedModel, naming every operator that has no number.
    """
    writer = _Writer(mod)
    main = mod["main"]
    for var in main.params:
        writer.define(var)
    nodes, names = [], []
    returned = main.body.body
    for block in main.body.blocks:
        for binding in block.bindings:
            if binding.var.same_as(returned):
                returned = binding.value
                continue
            nodes.append(writer.node(binding.value))
            names.append(str(binding.var.name))
            writer.define(binding.var)
    if writer.unknown:
        raise UnsupportedModel(
            "compressed model", f"no number for {', '.join(sorted(writer.unknown))}",
            "Please report the operators: ir/graph_operators.py needs a line for each.",
        )  # fmt: skip
    outputs = [writer.operand(field) for field in returned.fields]
    inputs = [[str(var.name), [int(d) for d in var.ty.shape.values], str(var.ty.dtype)] for var in main.params]
    kernels = [[name, record_kernel(mod[name])] for name in writer.kernels]
    short = _shortened([str(var.name) for var in main.params], names)
    return [inputs, kernels, nodes, outputs, short], writer.constants


class _Writer:
    """Numbers values and constants as they come."""

    def __init__(self, mod: tvm.IRModule) -> None:
        self.mod = mod
        self.at: dict[Var, int] = {}
        self.constants: list[np.ndarray] = []
        self.index: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        self.kernels: list[str] = []
        self.unknown: set[str] = set()

    def define(self, var: Var) -> None:
        self.at[var] = len(self.at)

    def node(self, value: Any) -> list[Any]:
        if isinstance(value, TupleGetItem):
            return [_ELEMENT, int(value.index), self.operand(value.tuple_value)]
        if not isinstance(value, Call) or not hasattr(value.op, "name"):
            self.unknown.add(type(value).__name__)
            return []
        name = value.op.name.removeprefix("relax.")
        if name == "call_tir":
            kernel = value.args[0].name_hint
            if kernel not in self.kernels:
                self.kernels.append(kernel)
            shape = [int(d) for d in value.ty.shape.values]
            operands = [self.operand(arg) for arg in value.args[1].fields]
            return [_KERNEL, self.kernels.index(kernel), shape, str(value.ty.dtype), *operands]
        if name == "call_pure_packed" and value.args[0].global_symbol == RECURRENT:
            return [_RECURRENT, value.args[-1].value, *(self.operand(arg) for arg in value.args[1:-1])]
        if name not in NUMBER_OF:
            self.unknown.add(name)
            return []
        defaults = OPERATORS[NUMBER_OF[name]][1]
        found = attributes_of(value, defaults)
        changed = [key for key in defaults if found[key] != defaults[key]]
        mask = sum(1 << index for index, key in enumerate(defaults) if key in changed)
        attributes = [mask, *(found[key] for key in changed)] if defaults else []
        return [_FIRST + NUMBER_OF[name], *attributes, *(self.operand(arg) for arg in value.args)]

    def operand(self, arg: Any) -> Any:
        if isinstance(arg, Var):
            return len(self.at) - self.at[arg]
        if isinstance(arg, GenericConst):
            return self.constant(arg.value.numpy())
        if isinstance(arg, relax.ShapeExpr):
            return [_SHAPE, *(int(dim) for dim in arg.values)]
        if isinstance(arg, relax.Tuple):
            if all(isinstance(field, tvm.tirx.IntImm) for field in arg.fields):
                return [_SHAPE, *(int(field.value) for field in arg.fields)]
            return [_TUPLE, *(self.operand(field) for field in arg.fields)]
        if isinstance(arg, tvm.tirx.IntImm):
            return [_INTEGER, int(arg.value)]
        if isinstance(arg, tvm.tirx.FloatImm):
            return float(arg.value)
        self.unknown.add(f"operand {type(arg).__name__}")
        return None

    def constant(self, array: np.ndarray) -> Any:
        key = (str(array.dtype), array.shape, array.tobytes())
        if key in self.index:
            return [_CONSTANT, self.index[key]]
        self.index[key] = len(self.constants)
        self.constants.append(array)
        return 0


def module_of(records: Any, constants: Sequence[np.ndarray], what: str) -> tuple[tvm.IRModule, frozenset[str]]:
    """Return the module that ``records`` describe and the names in it that are the model's own.

    Raises: BadModel, when they describe none.
    """
    try:
        return _Reader(records, constants, what).module()
    except BadModel:
        raise
    except (
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        AttributeError,
        OverflowError,
        tvm.error.InternalError,
    ) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        raise BadModel(what, f"its graph makes no sense: {line[:200]}", "Get the file again.") from None


class _Reader:
    """Builds the module, one node at a time."""

    def __init__(self, records: Any, constants: Sequence[np.ndarray], what: str) -> None:
        self.what, self.arrays = what, constants
        self.inputs, self.kernel_records, self.nodes, self.outputs, self.names = _of_length(records, 5)
        self.block = relax.BlockBuilder()
        self.values: list[Any] = []
        self.constants: list[Any] = []

    def module(self) -> tuple[tvm.IRModule, frozenset[str]]:
        params = [
            Var(_text(name), relax.TensorType(_shape(shape), _dtype(dtype))) for name, shape, dtype in self.inputs
        ]
        self.values = list(params)
        self.kernels = [
            self.block.add_func(kernel_of(body, _text(name)), _text(name)) for name, body in self.kernel_records
        ]
        names, own = _expanded(
            [var.name for var in params], [_text(name) for name in _of_length(self.names, len(self.nodes))]
        )
        returned = self.returned()
        with self.block.function("main", params):
            with self.block.dataflow():
                for index, (record, name) in enumerate(zip(self.nodes, names, strict=True)):
                    value = self.block.normalize(self.node(record))
                    kind = Var if len(params) + index in returned else relax.DataflowVar
                    var = kind(name, value.ty)
                    self.block.emit_normalized(relax.VarBinding(var, value))
                    self.values.append(var)
                outputs = [self.operand(operand) for operand in self.outputs]
            self.block.emit_func_output(relax.Tuple(outputs))
        return self.block.get(), own

    def returned(self) -> set[int]:
        """Return the places, among all values, of those that are outputs."""
        count = len(self.values) + len(self.nodes)
        return {count - operand for operand in self.outputs if isinstance(operand, int)}

    def node(self, record: Any) -> Any:
        number, *rest = record
        if number == _ELEMENT:
            index, operand = rest
            return TupleGetItem(self.operand(operand), _whole(index))
        if number == _KERNEL:
            kernel, shape, dtype, *operands = rest
            out = relax.TensorType(_shape(shape), _dtype(dtype))
            return self.kernel_call(_whole(kernel), [self.operand(one) for one in operands], out)
        if number == _RECURRENT:
            spec, *operands = rest
            return _recurrent(_text(spec), [self.operand(one) for one in operands])
        defaults = OPERATORS[_whole(number) - _FIRST][1]
        attributes = dict(defaults)
        if defaults:
            mask, *rest = rest
            for index, key in enumerate(defaults):
                if _whole(mask) >> index & 1:
                    attributes[key], *rest = rest
        return call(number - _FIRST, [self.operand(one) for one in rest], attributes)

    def kernel_call(self, index: int, operands: list[Any], out: Any) -> Any:
        """Return the call of a kernel whose parameters fit operands and result: it would read past them otherwise."""
        where = self.kernels[index]
        params = self.block.get()[where].params
        types = [*(operand.ty for operand in operands), out]
        found = [([int(d) for d in ty.shape.values], str(ty.dtype)) for ty in types]
        wanted = [([int(d) for d in var.ty.shape], str(var.ty.dtype)) for var in params]
        if found != wanted:
            raise ValueError(f"kernel '{where.name_hint}' takes {wanted} and is given {found}")
        return relax.call_tir(where, operands, out)

    def operand(self, record: Any) -> Any:
        if record is None or isinstance(record, float):
            return record
        if isinstance(record, list):
            kind, *rest = record
            if kind == _CONSTANT:
                return self.constants[_whole(rest[0])]
            if kind == _SHAPE:
                return [_whole(dim) for dim in rest]
            if kind == _TUPLE:
                return [self.operand(one) for one in rest]
            return _whole(rest[0])
        if _whole(record) == 0:
            array = self.arrays[len(self.constants)]
            self.constants.append(relax.const(array, str(array.dtype)))
            return self.constants[-1]
        if not 0 < record <= len(self.values):
            raise ValueError(f"value {record} back, of {len(self.values)}")
        return self.values[-record]


def _recurrent(text: str, operands: list[Any]) -> Any:
    spec = Recurrent.from_json(text)
    check_recurrent(spec, [tuple(int(dim) for dim in one.ty.shape.values) for one in operands])
    steps, batch = (int(dim) for dim in operands[0].ty.shape.values[:2])
    types = [relax.TensorType(spec.shape(name, steps, batch), "float32") for name in spec.outputs]
    out = types[0] if len(types) == 1 else relax.TupleType(types)
    return relax.op.call_pure_packed(RECURRENT, *operands, StringImm(text), ty_args=[out])


def _of_length(value: Any, length: int) -> list[Any]:
    if not isinstance(value, list) or len(value) != length:
        raise ValueError(f"expected a list of {length}")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, found {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, found {value!r}")
    return value


def _dtype(value: Any) -> str:
    if value not in DTYPES:
        raise ValueError(f"no dtype {value!r}")
    return sys.intern(value)


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(_whole(dim) for dim in value)
    if len(shape) > MAX_RANK or any(dim < 0 for dim in shape) or np.prod(shape, dtype=object) > MAX_ELEMENTS:
        raise ValueError(f"shape {list(shape)} is too large")
    return shape


def _shortened(taken: list[str], names: list[str]) -> list[str]:
    """Return ``names`` with "" for each that ``_expanded`` finds again."""
    used, short, owner = set(taken), list(names), "t"
    for index in reversed(range(len(names))):
        if names[index] == _part(owner, used):
            short[index] = ""
        else:
            owner = names[index]
        used.add(names[index])
    return short


def _expanded(taken: list[str], short: list[str]) -> tuple[list[str], frozenset[str]]:
    """Return all names and those that were written out."""
    used, names, owner = set(taken), list(short), "t"
    for index in reversed(range(len(short))):
        names[index] = short[index] or _part(owner, used)
        owner = short[index] or owner
        used.add(names[index])
    return names, frozenset(name for name in short if name)


def _part(owner: str, used: set[str]) -> str:
    count = 1
    while f"{owner}#{count}" in used:
        count += 1
    return f"{owner}#{count}"
