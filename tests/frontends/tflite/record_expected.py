"""Write tests/data/tflite/expected.npz: what LiteRT's reference kernels compute for every case of cases.py.

    python tests/frontends/tflite/record_expected.py      in an environment with ai-edge-litert 2.3.0

Cases that LiteRT itself cannot run are named and left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

from ai_edge_litert.interpreter import Interpreter, OpResolverType  # type: ignore[import-not-found]  # noqa: E402
from cases import CASES  # noqa: E402

EXPECTED = HERE.parents[1] / "data" / "tflite" / "expected.npz"


def main() -> None:
    """Run every case."""
    found: dict[str, np.ndarray] = {}
    for name, case in CASES.items():
        data, feeds = case()
        try:
            runtime = Interpreter(
                model_content=data, num_threads=1, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
            )
            runtime.allocate_tensors()
            for detail in runtime.get_input_details():
                runtime.set_tensor(detail["index"], feeds[detail["name"]])
            runtime.invoke()
        except (RuntimeError, ValueError) as error:
            print(f"left out: {name}: {error}")
            continue
        for i, detail in enumerate(runtime.get_output_details()):
            found[f"{name}/{i}"] = runtime.get_tensor(detail["index"])
    EXPECTED.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(EXPECTED, **found)
    print(f"{len(found)} outputs of {len(CASES)} cases in {EXPECTED.name}, {EXPECTED.stat().st_size} bytes")


if __name__ == "__main__":
    main()
