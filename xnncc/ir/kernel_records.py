"""A TensorIR kernel as plain records, and back, with proof that it stays inside its buffers.

Importers bring kernels of their own (resize tables, detection, requantisation). A file that carries them is not
trusted: a record can only say what stands in the tables below (arithmetic, loads, stores, loops, branches, blocks, a
few intrinsics of pure mathematics), never a foreign call or an address. Every index is proved to lie inside its buffer
by TVM's analyser; where that is impossible (an index read from data) it is clamped to the buffer, which changes
nothing in a kernel that is right.

Buffers and scalar variables are numbered in the order in which they appear. An expression or statement is a list that
begins with the place of its kind in ``_KINDS``.
"""

from __future__ import annotations

from typing import Any

from tvm import s_tir, tirx
from tvm.ir import Range
from tvm.sym import Analyzer

_BINARY = ("Add", "Sub", "Mul", "Div", "FloorDiv", "FloorMod", "Mod", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE",
           "And", "Or", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LShift", "RShift")  # fmt: skip
_KINDS = ("Var", "IntImm", "FloatImm", "Cast", "Not", "Select", "TensorLoad", "Call", "Let", *_BINARY,
          "BufferStore", "For", "SeqStmt", "IfThenElse", "While", "SBlockRealize", "Evaluate")  # fmt: skip
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}
_INTRINSICS = ("exp", "exp2", "log", "log2", "log10", "log1p", "pow", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin",
               "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "floor",
               "ceil", "round", "nearbyint", "trunc", "fabs", "fmod", "isnan", "isinf", "isfinite", "if_then_else",
               "likely", "popcount", "clz", "copysign", "hypot", "ldexp", "nextafter", "reinterpret")  # fmt: skip
_MARKS = ("tirx.noalias", "s_tir")
_ITER_DATA, _ITER_REDUCE, _ITER_OPAQUE, _ITER_ORDERED = 0, 2, 4, 1
_LARGEST_BUFFER = 1 << 31


class UnknownKernel(ValueError):
    """A kernel holds something that no record can say."""


def record_kernel(func: tirx.PrimFunc) -> list[Any]:
    """Return ``func`` as records: [parameters, marks, body]. ``marks``: places in ``_MARKS`` of attributes it has.

    Raises: UnknownKernel.
    """
    writer = _Writer()
    params = [writer.buffer(var) for var in func.params]
    attributes = dict(func.attrs.items()) if func.attrs else {}
    named = "global_symbol" in attributes
    if set(attributes) - {*_MARKS, "global_symbol"}:
        raise UnknownKernel(f"a kernel with attributes {sorted(attributes)}")
    marks = [place for place, mark in enumerate(_MARKS) if attributes.get(mark)]
    return [params, [len(_MARKS), *marks] if named else marks, writer.any(func.body)]


def kernel_of(records: Any, name: str) -> tirx.PrimFunc:
    """Return the kernel in ``records``, its accesses proved or clamped.

    Raises: ValueError, TypeError, tvm's InternalError, when they make no kernel.
    """
    params, marks, body = records
    reader = _Reader()
    buffers = [reader.buffer(record) for record in params]
    func = tirx.PrimFunc(buffers, reader.any(body))
    for mark in marks:
        func = func.with_attr("global_symbol", name) if mark == len(_MARKS) else func.with_attr(_MARKS[mark], True)
    return func


def _dtype(node: Any) -> str:
    return str(node.ty.dtype)


class _Writer:
    """Turns nodes into lists."""

    def __init__(self) -> None:
        self.buffers: dict[Any, int] = {}
        self.vars: dict[Any, int] = {}

    def buffer(self, var: Any) -> list[Any]:
        """Number a buffer and return its record: name, shape, dtype, are sizes int64, has it a layout."""
        self.buffers[var] = len(self.buffers)
        ty = var.ty
        if ty.storage_scope not in ("", "global") or ty.strides:
            raise UnknownKernel(f"buffer {var.name} in {ty.storage_scope} with strides {ty.strides}")
        is_long = any(_dtype(dim) == "int64" for dim in ty.shape)
        return [str(var.name), [int(dim) for dim in ty.shape], str(ty.dtype), is_long, ty.layout is not None]

    def variable(self, var: Any) -> list[Any]:
        self.vars[var] = len(self.vars)
        return [str(var.name), _dtype(var)]

    def any(self, node: Any) -> list[Any]:
        kind = type(node).__name__
        if kind not in _NUMBER:
            raise UnknownKernel(f"{kind} in a kernel")
        if kind in _BINARY:
            return [_NUMBER[kind], self.any(node.a), self.any(node.b)]
        return [_NUMBER[kind], *getattr(self, f"_{kind.lower()}")(node)]

    def _var(self, node: Any) -> list[Any]:
        return [self.vars[node]]

    def _intimm(self, node: Any) -> list[Any]:
        return [_dtype(node), int(node.value)]

    def _floatimm(self, node: Any) -> list[Any]:
        return [_dtype(node), float(node.value)]

    def _cast(self, node: Any) -> list[Any]:
        return [_dtype(node), self.any(node.value)]

    def _not(self, node: Any) -> list[Any]:
        return [self.any(node.a)]

    def _select(self, node: Any) -> list[Any]:
        return [self.any(node.condition), self.any(node.true_value), self.any(node.false_value)]

    def _tensorload(self, node: Any) -> list[Any]:
        return [self.buffers[node.source], *map(self.any, node.indices)]

    def _call(self, node: Any) -> list[Any]:
        name = node.op.name.rpartition(".")[2]
        if name not in _INTRINSICS:
            raise UnknownKernel(f"a call of {node.op.name} in a kernel")
        return [_INTRINSICS.index(name), node.op.name.rpartition(".")[0], _dtype(node), *map(self.any, node.args)]

    def _let(self, node: Any) -> list[Any]:
        value = self.any(node.value)
        return [self.variable(node.var), value, self.any(node.body)]

    def _bufferstore(self, node: Any) -> list[Any]:
        return [self.buffers[node.buffer], self.any(node.value), *map(self.any, node.indices)]

    def _for(self, node: Any) -> list[Any]:
        if int(node.kind) != 0 or node.thread_binding is not None or node.annotations:
            raise UnknownKernel("a loop that is not serial")
        low, extent = self.any(node.min), self.any(node.extent)
        return [self.variable(node.loop_var), low, extent, self.any(node.body)]

    def _seqstmt(self, node: Any) -> list[Any]:
        return [self.any(one) for one in node.seq]

    def _ifthenelse(self, node: Any) -> list[Any]:
        other = None if node.else_case is None else self.any(node.else_case)
        return [self.any(node.condition), self.any(node.then_case), other]

    def _while(self, node: Any) -> list[Any]:
        return [self.any(node.condition), self.any(node.body)]

    def _evaluate(self, node: Any) -> list[Any]:
        return [self.any(node.value)]

    def _sblockrealize(self, node: Any) -> list[Any]:
        block = node.block
        if block.match_buffers or block.annotations:
            raise UnknownKernel(f"block {block.name_hint} with annotations")
        values, predicate = [self.any(value) for value in node.iter_values], self.any(node.predicate)
        iters = [
            [int(one.iter_type), self.variable(one.var), self.any(one.dom.min), self.any(one.dom.extent)]
            for one in block.iter_vars
        ]
        allocated = [self.buffer(var) for var in block.alloc_buffers]
        regions = [[self.region(one) for one in side] for side in (block.reads, block.writes)]
        init = None if block.init is None else self.any(block.init)
        return [str(block.name_hint), iters, values, predicate, allocated, regions, init, self.any(block.body)]

    def region(self, node: Any) -> list[Any]:
        return [self.buffers[node.source], *([self.any(one.min), self.any(one.extent)] for one in node.region)]


class _Reader:
    """Turns lists into nodes; what an index may be is followed through loops and blocks."""

    def __init__(self) -> None:
        self.buffers: list[Any] = []
        self.vars: list[Any] = []
        self.analyser = Analyzer()

    def buffer(self, record: Any) -> Any:
        name, shape, dtype, is_long, has_layout = record
        if any(isinstance(dim, bool) or not isinstance(dim, int) or dim < 0 for dim in shape):
            raise ValueError(f"buffer {name!r} of shape {shape!r}")
        size = 1
        for dim in shape:
            size *= dim
        if size > _LARGEST_BUFFER:
            raise ValueError(f"buffer {name!r} of {size} elements")
        dims = [tirx.IntImm("int64" if is_long else "int32", dim) for dim in shape]
        self.buffers.append(tirx.decl_buffer(dims, dtype, name, layout="default" if has_layout else None))
        return self.buffers[-1]

    def variable(self, record: Any) -> Any:
        name, dtype = record
        self.vars.append(tirx.Var(name, dtype))
        return self.vars[-1]

    def any(self, record: Any) -> Any:
        number, *rest = record
        if isinstance(number, bool) or not 0 <= number < len(_KINDS):
            raise ValueError(f"no kind {number!r}")
        kind = _KINDS[number]
        if kind in _BINARY:
            left, right = rest
            return getattr(tirx, kind)(self.any(left), self.any(right))
        return getattr(self, f"_{kind.lower()}")(*rest)

    def _var(self, index: int) -> Any:
        return self.vars[_place(index, self.vars)]

    def _intimm(self, dtype: str, value: int) -> Any:
        return tirx.IntImm(dtype, value)

    def _floatimm(self, dtype: str, value: float) -> Any:
        return tirx.FloatImm(dtype, value)

    def _cast(self, dtype: str, value: Any) -> Any:
        return tirx.Cast(dtype, self.any(value))

    def _not(self, value: Any) -> Any:
        return tirx.Not(self.any(value))

    def _select(self, condition: Any, yes: Any, no: Any) -> Any:
        return tirx.Select(self.any(condition), self.any(yes), self.any(no))

    def _tensorload(self, buffer: int, *indices: Any) -> Any:
        where = self.buffers[_place(buffer, self.buffers)]
        return tirx.BufferLoad(where, self.inside(where, [self.any(index) for index in indices]))

    def _call(self, intrinsic: int, home: str, dtype: str, *operands: Any) -> Any:
        name = _INTRINSICS[_place(intrinsic, _INTRINSICS)]
        if home not in ("tirx", "prim", "tir"):
            raise ValueError(f"no intrinsics of {home!r}")
        return tirx.call_intrin(dtype, f"{home}.{name}", *(self.any(one) for one in operands))

    def _let(self, variable: Any, value: Any, body: Any) -> Any:
        bound = self.any(value)
        var = self.variable(variable)
        self.analyser.bind(var, bound)
        return tirx.Let(var, bound, self.any(body))

    def _bufferstore(self, buffer: int, value: Any, *indices: Any) -> Any:
        where = self.buffers[_place(buffer, self.buffers)]
        return tirx.BufferStore(where, self.any(value), self.inside(where, [self.any(index) for index in indices]))

    def _for(self, variable: Any, low: Any, extent: Any, body: Any) -> Any:
        low, extent = self.any(low), self.any(extent)
        var = self.variable(variable)
        self.analyser.bind(var, Range.from_min_extent(low, extent))
        return tirx.For(var, low, extent, tirx.ForKind.SERIAL, self.any(body))

    def _seqstmt(self, *statements: Any) -> Any:
        return tirx.SeqStmt([self.any(one) for one in statements])

    def _ifthenelse(self, condition: Any, yes: Any, no: Any) -> Any:
        checked = self.any(condition)
        with self.analyser.constraint_scope(checked):
            first = self.any(yes)
        return tirx.IfThenElse(checked, first, None if no is None else self.any(no))

    def _while(self, condition: Any, body: Any) -> Any:
        return tirx.While(self.any(condition), self.any(body))

    def _evaluate(self, value: Any) -> Any:
        return tirx.Evaluate(self.any(value))

    def _sblockrealize(
        self, name: str, iters: Any, values: Any, predicate: Any, allocated: Any, regions: Any, init: Any, body: Any
    ) -> Any:
        bound, condition = [self.any(value) for value in values], self.any(predicate)
        variables = [self.iteration(record, value) for record, value in zip(iters, bound, strict=True)]
        buffers = [self.buffer(record) for record in allocated]
        reads, writes = ([self.region(record) for record in side] for side in regions)
        with self.analyser.constraint_scope(condition):
            first = None if init is None else self.any(init)
            block = s_tir.SBlock(variables, reads, writes, name, self.any(body), first, buffers)
        return s_tir.SBlockRealize(bound, condition, block)

    def iteration(self, record: Any, value: Any) -> Any:
        """Return a block's variable. Its range is believed only where its value is proved to lie in it."""
        kind, variable, low, extent = record
        if kind not in (_ITER_DATA, _ITER_REDUCE, _ITER_OPAQUE, _ITER_ORDERED):
            raise ValueError(f"no iteration type {kind!r}")
        low, extent = self.any(low), self.any(extent)
        var = self.variable(variable)
        self.analyser.bind(var, value)
        return tirx.IterVar(Range.from_min_extent(low, extent), var, kind)

    def region(self, record: Any) -> Any:
        buffer, *ranges = record
        where = self.buffers[_place(buffer, self.buffers)]
        return tirx.BufferRegion(where, [Range.from_min_extent(self.any(low), self.any(size)) for low, size in ranges])

    def inside(self, buffer: Any, indices: list[Any]) -> list[Any]:
        """Return ``indices``, clamped where the analyser cannot prove that they lie inside ``buffer``."""
        shape = [int(dim) for dim in buffer.ty.shape]
        if len(indices) != len(shape):
            raise ValueError(f"{len(indices)} indices into {shape}")
        return [self.clamped(index, extent) for index, extent in zip(indices, shape, strict=True)]

    def clamped(self, index: Any, extent: int) -> Any:
        if not str(index.ty.dtype).startswith("int"):
            raise ValueError(f"an index of dtype {index.ty.dtype}")
        zero, last = tirx.IntImm(_dtype(index), 0), tirx.IntImm(_dtype(index), max(extent - 1, 0))
        if not self.analyser.can_prove(index >= zero):
            index = tirx.Max(index, zero)
        return index if self.analyser.can_prove(index <= last) else tirx.Min(index, last)


def _place(index: Any, table: Any) -> int:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(table):
        raise ValueError(f"no entry {index!r} of {len(table)}")
    return index
