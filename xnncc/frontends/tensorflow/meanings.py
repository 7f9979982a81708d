"""What TensorFlow's operators mean, in numpy: the registry that ``meaning_*.py`` fill, and one step of a run.

These formulas are TensorFlow's own (NHWC, its rounding and its order of operations) and share nothing with the
converters (``ops_*.py``): constants are folded with them, and without TensorFlow they are the reference runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..refused import Refused
from ..registering import registrar
from .graph import Operation
from .tensor_list import TensorList
from .tensors import MAX_ELEMENTS

Array: TypeAlias = np.ndarray
Meaning: TypeAlias = Callable[..., Any]

MEANINGS: dict[str, Meaning] = {}

# For functions ``(operation, *inputs) -> array or tuple of arrays``.
meaning = registrar(MEANINGS, "operator {} has two meanings")


def compute(operation: Operation, inputs: Sequence[Any]) -> list[Any]:
    """Return the outputs of one operation.

    Raises:
        Refused: it has no meaning here, or its operands do not fit.
    """
    if operation.kind not in MEANINGS:
        raise Refused("the operator is not supported")
    try:
        with np.errstate(all="ignore"):
            results = MEANINGS[operation.kind](operation, *inputs)
    except MemoryError:
        raise Refused("it needs more memory than there is") from None
    except (ValueError, TypeError, IndexError, ArithmeticError, AttributeError, KeyError) as error:
        raise Refused(f"its result cannot be computed ({type(error).__name__}: {error})") from error
    every = results if isinstance(results, tuple | list) else [results]
    return [r if isinstance(r, TensorList) else np.asarray(r) for r in every]


def sized(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that a constant may have.

    Raises:
        Refused: it is too large or negative.
    """
    shape = tuple(int(size) for size in shape)
    if any(size < 0 for size in shape) or np.prod(np.array(shape, "float64")) > MAX_ELEMENTS:
        raise Refused(f"its result would have shape {list(shape)}")
    return shape
