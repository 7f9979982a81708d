"""Write tests/data/tflite: what LiteRT computes for each case of tflite_cases.py and for the real files that are there.

python tests/frontends/tflite/record_expected.py      in an environment with ai-edge-litert 2.3.0
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

from ai_edge_litert.interpreter import Interpreter, OpResolverType  # type: ignore[import-not-found]  # noqa: E402
from real_files import FLOAT, MODELS, SPOTTERS, feed, logit, sampled, stream  # noqa: E402
from tflite_cases import CASES  # noqa: E402

DATA = HERE.parents[1] / "data" / "tflite"


# Without a reference kernel, or with one that is wrong in LiteRT 2.3 (LRN leaves out the last channel of its window;
# SUM of int8 was 128 off): the optimised kernels are recorded.
OPTIMISED_ONLY = ("ELU", "CEIL", "ROUND", "lrn", "int8 sum")


def _run(name: str, data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    plain = any(name.endswith(kind) for kind in OPTIMISED_ONLY)
    kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if plain else OpResolverType.BUILTIN_REF
    runtime = Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=kernels)
    runtime.allocate_tensors()
    for detail in runtime.get_input_details():
        runtime.set_tensor(detail["index"], feeds[detail["name"]])
    runtime.invoke()
    return [runtime.get_tensor(detail["index"]) for detail in runtime.get_output_details()]


def cases() -> dict[str, np.ndarray]:
    """Return ``<case>/<output's number>`` for every case."""
    return {f"{name}/{i}": output for name, case in CASES.items() for i, output in enumerate(_run(name, *case()))}


def real() -> dict[str, np.ndarray]:
    """Return ``<network>/<output>`` for the networks of real numbers, the streams of the spotters by their names."""
    found: dict[str, np.ndarray] = {}
    for name, file in FLOAT.items():
        runtime = Interpreter(str(MODELS / file), num_threads=1)  # MediaPipe's operator has no reference kernel
        runtime.allocate_tensors()
        (detail,) = runtime.get_input_details()
        runtime.set_tensor(detail["index"], feed(name, tuple(detail["shape"])))
        runtime.invoke()
        found |= {f"{name}/{d['name']}": sampled(runtime.get_tensor(d["index"])) for d in runtime.get_output_details()}
    for name, file in SPOTTERS.items():
        kernels = OpResolverType.BUILTIN_REF
        runtime = Interpreter(
            str(MODELS / file),
            num_threads=1,
            experimental_op_resolver_type=kernels,
            experimental_preserve_all_tensors=True,
        )
        runtime.allocate_tensors()
        last = logit(MODELS / file)[0]
        found[name] = np.array([_spotted(runtime, features, last) for features in stream()])
    return found


def _spotted(runtime: Interpreter, features: np.ndarray, last: int) -> tuple[int, int]:
    """Return the spotter's output, and the number before its sigmoid."""
    runtime.set_tensor(runtime.get_input_details()[0]["index"], features)
    runtime.invoke()
    output = runtime.get_output_details()[0]["index"]
    return runtime.get_tensor(output).item(), runtime.get_tensor(last).item()


def main() -> None:
    """Run every case and every real file."""
    DATA.mkdir(parents=True, exist_ok=True)
    for file, outputs in (("expected.npz", cases()), ("real.npz", real())):
        np.savez_compressed(DATA / file, **outputs)
        print(f"{file}: {len(outputs)} outputs, {(DATA / file).stat().st_size} bytes")


if __name__ == "__main__":
    main()
