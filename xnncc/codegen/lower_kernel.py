"""One scheduled kernel -> LLVM-ready TensorIR with a plain C signature.

    Given:                                          Result:
      @T.prim_func                                    int32 conv(float* x, float* w, float* y, float* pad)
      def conv(x: T.Buffer, w: T.Buffer,                ... the same loops over flat pointers ...
               y: T.Buffer):                            return 0
          pad = T.sblock_alloc_buffer(...)

Scratch that the whole kernel uses becomes a trailing parameter, so that the memory plan of the network can place it;
scratch inside a parallel body stays with the thread (``TVMBackendAllocWorkspace``).

TVM 0.27 has only a packed calling convention, so its list of passes stands here once more with
``MakeUnpackedApi`` at the place of ``MakePackedAPI``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import tvm
from tvm import s_tir, tirx
from tvm.tirx.buffer import is_buffer_var

from ..ir.plan import DTYPE_BYTES

# LowerTVMBuiltin keeps constant-size buffers up to this many bytes on the stack (runtime::kMaxStackAlloca).
STACK_BYTES = 1024


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel ready for LLVM: ``scratch_bytes`` of each trailing scratch parameter, and what a thread needs inside."""

    module: tvm.IRModule
    scratch_bytes: tuple[int, ...]
    thread_scratch_bytes: int


@tirx.transform.prim_func_pass(opt_level=0)
class HoistScratch:
    """Turn buffers that the root block allocates into trailing parameters; small ones stay on the stack."""

    def transform_function(self, func: tirx.PrimFunc, mod: tvm.IRModule, ctx: object) -> tirx.PrimFunc:
        """Return ``func`` with its root scratch as parameters and their sizes in attribute ``xnn.scratch``."""
        root = func.body.block
        hoisted = [b for b in root.alloc_buffers if _bytes(b) > STACK_BYTES]
        kept = [b for b in root.alloc_buffers if _bytes(b) <= STACK_BYTES]
        block = s_tir.SBlock(
            root.iter_vars, root.reads, root.writes, root.name_hint, root.body, root.init, kept, [], root.annotations
        )
        body = s_tir.SBlockRealize(func.body.iter_values, func.body.predicate, block)
        new = tirx.PrimFunc([*func.params, *hoisted], body, func.ret_type, func.attrs)
        return new.with_attr("xnn.scratch", [_bytes(b) for b in hoisted])


@tirx.transform.prim_func_pass(opt_level=0)
class MakeUnpackedApi:
    """Give a function the signature ``int32 f(T0* p0, T1* p1, ...)``; the result is always 0."""

    def transform_function(self, func: tirx.PrimFunc, mod: tvm.IRModule, ctx: object) -> tirx.PrimFunc:
        """Return ``func`` over bare pointers. Functions that already run elsewhere (calling_conv != 0) stay."""
        if "global_symbol" not in func.attrs or int(func.attrs.get("calling_conv", 0)) != 0:
            return func
        params, declared = [], []
        for p in func.params:
            if is_buffer_var(p):
                pointer = tirx.Var(p.name + "_p", tvm.ir.PointerType(p.ty.dtype, "global"))
                declared.append(tirx.DeclBuffer(p, data=pointer))
                params.append(pointer)
            else:
                params.append(p)
        body = func.body
        for key, value in (("device_type", 1), ("device_id", 0)):  # LowerTVMBuiltin asks for the current device
            body = tirx.AttrStmt(tvm.ir.StringImm("default"), key, tirx.IntImm("int32", value), body)
        body = tirx.SeqStmt([*declared, body, tirx.Return(tirx.IntImm("int32", 0))])
        return tirx.PrimFunc(params, body, tvm.ir.PrimType("int32"), func.attrs)


def lower_kernel(func: tirx.PrimFunc, symbol: str, target: tvm.target.Target) -> LoweredKernel:
    """Return ``func`` lowered for ``target`` under the C symbol ``symbol``."""
    func = _without_offsets(func).with_attr("global_symbol", symbol)
    mod = tvm.IRModule({tvm.ir.GlobalVar(symbol): func})
    mod = tirx.transform.BindTarget(target.with_host(target))(mod)
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.ir.transform.Sequential(_blocks_to_buffers())(mod)
        mod = tvm.ir.transform.Sequential([HoistScratch()])(mod)
        (hoisted,) = mod.functions.values()
        scratch = tuple(int(n) for n in hoisted.attrs["xnn.scratch"])
        mod = tvm.ir.transform.Sequential(_buffers_to_llvm())(mod)
    (lowered,) = mod.functions.values()
    for attr in ("tirx.is_entry_func", "xnn.scratch"):
        lowered = lowered.without_attr(attr)
    mod = tvm.IRModule({tvm.ir.GlobalVar(symbol): lowered})
    return LoweredKernel(mod, scratch, _workspace_bytes(lowered))


def _without_offsets(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return ``func`` with every parameter's data starting at its pointer: te.extern leaves the offset open."""
    exact = {
        p: tirx.decl_buffer(p.shape, p.dtype, p.name)
        for p in func.params
        if is_buffer_var(p) and not isinstance(p.elem_offset, tirx.IntImm)
    }
    return func.specialize(exact) if exact else func


def _blocks_to_buffers() -> list:
    """Passes up to the point where every buffer stands at its final place with its final shape."""
    t = s_tir.transform
    return [
        t.CanonicalizeLoop(),
        t.LowerCrossThreadReduction(),
        t.LowerInitBlock(),
        t.PlanAndUpdateBufferAllocationLocation(),
        t.ConvertBlocksToOpaque(),
        t.LiftThreadBinding(),
        t.CompactBufferAllocation(),
    ]


def _buffers_to_llvm() -> list:
    """The rest of TVM's default list for a CPU, in its order, with our calling convention."""
    t, x = s_tir.transform, tirx.transform
    return [
        t.LowerMatchBuffer(),
        t.StmtSimplify(),
        t.AnnotateIrregularLoop(),
        t.LowerOpaqueBlock(),
        x.FlattenBuffer(),
        x.BF16ComputeLegalize(),
        x.NarrowDataType(32),
        t.LoopPartition(),
        x.VectorizeLoop(True),
        x.StorageRewrite(),
        t.HoistIfThenElse(),
        x.UnrollLoop(),
        t.RenormalizeSplitPattern(),
        x.StmtSimplify(),
        x.RemoveNoOp(),
        t.RewriteUnsafeSelect(),
        x.CommonSubexprElim(),
        x.FP8ComputeLegalize(),
        x.VerifyMemory(),
        x.AnnotateEntryFunc(),
        x.SplitHostDevice(),
        MakeUnpackedApi(),
        x.LowerTVMBuiltin(),
        x.LowerIntrin(),
    ]


def _bytes(buffer: tirx.Buffer) -> int:
    return prod(int(d) for d in buffer.shape) * DTYPE_BYTES[str(buffer.dtype)]


def _workspace_bytes(func: tirx.PrimFunc) -> int:
    """Bytes of workspace that one thread can hold at once: the sum of all requests, each rounded up to 64."""
    sizes = re.findall(r"TVMBackendAllocWorkspace\(\d+, \d+, T\.uint64\((\d+)\)", func.script())
    return sum(-(-int(size) // 64) * 64 for size in sizes)
