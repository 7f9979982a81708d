"""What a kernel is to its tuned record: its rule, its operands, and a hash of everything that it computes."""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.tirx.buffer import is_buffer_var


def kernel_key(func: tirx.PrimFunc, rule: Any) -> str:
    """Return ``rule.version operands hash`` of an unscheduled kernel, equal for equal kernels of any network.

    The hash covers the loops, the rule's numbers and the fused tail, but no name. ``VERSION`` of a rule rises when a
    configuration comes to mean another schedule.
    """
    operands = [
        f"{p.dtype}[{','.join(str(int(d)) for d in p.shape)}]" if is_buffer_var(p) else str(p.ty) for p in func.params
    ]
    bare = tirx.PrimFunc(func.params, func.body, func.ret_type)
    digest = tvm_ffi.structural_hash(bare) & (1 << 64) - 1
    return f"{rule.NAME}.{getattr(rule, 'VERSION', 1)} {' '.join(operands)} {digest:016x}"
