"""Tune one tiny task from search to saved record: run by tests/test_tvm_pins.py in a process of its own.

Builder and runner are in-process, and tvm.s_tir.tensor_intrin is kept out: importing it takes 20 to 40 CPU seconds, and
this space needs no intrinsics.
"""

from __future__ import annotations

import sys
import tempfile
import time
import types

import numpy as np
import tvm
from tvm import te
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms

SIZE, TRIALS = 64, 4
sys.modules["tvm.s_tir.tensor_intrin"] = types.ModuleType("tvm.s_tir.tensor_intrin")


@derived_object
class InProcessBuilder(ms.builder.PyBuilder):
    """Compiles where it is called."""

    def build(self, build_inputs: list) -> list:
        results = []
        for item in build_inputs:
            path = f"{tempfile.mkdtemp(dir=sys.argv[1])}/built.so"  # MetaSchedule removes its folder
            tvm.compile(item.mod, target=item.target).export_library(path)
            results.append(ms.builder.BuilderResult(path, None))
        return results


@derived_object
class Done(ms.runner.PyRunnerFuture):
    """A measurement that is there already."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def done(self) -> bool:
        return True

    def result(self) -> ms.runner.RunnerResult:
        return ms.runner.RunnerResult([self.seconds], None)


@derived_object
class InProcessRunner(ms.runner.PyRunner):
    """Times where it is called, and checks the numbers."""

    def run(self, runner_inputs: list) -> list:
        return [Done(_time(str(item.artifact_path))) for item in runner_inputs]


def _time(path: str) -> float:
    main = tvm.runtime.load_module(path)["main"]
    a = np.arange(SIZE, dtype="float32")
    out = tvm.runtime.tensor(np.zeros(SIZE, "float32"))
    start = time.perf_counter()
    main(tvm.runtime.tensor(a), out)
    seconds = time.perf_counter() - start
    np.testing.assert_allclose(out.numpy(), np.exp(a - SIZE), rtol=1e-5)  # float32 expf, two roundings
    return seconds


def _split(schedule: tvm.s_tir.Schedule) -> None:
    """The space: one loop, cut at a sampled factor."""
    (loop,) = schedule.get_loops(schedule.get_sblock("out"))
    _, inner = schedule.split(loop, schedule.sample_perfect_tile(loop, n=2, max_innermost_factor=16))
    schedule.vectorize(inner)


def main() -> None:
    x = te.placeholder((SIZE,), "float32", name="x")
    out = te.compute((SIZE,), lambda i: te.exp(x[i] - float(SIZE)), name="out")
    ms.tune_tir(
        te.create_prim_func([x, out]),
        target=tvm.target.Target({"kind": "llvm", "num-cores": 1}),
        work_dir=sys.argv[1],
        max_trials_global=TRIALS,
        num_trials_per_iter=2,
        builder=InProcessBuilder(),
        runner=InProcessRunner(),
        cost_model="random",
        strategy="replay-trace",
        space=ms.space_generator.ScheduleFn(_split, sch_rules=[], postprocs=[], mutator_probs={}),
        num_tuning_cores=1,
        seed=1,
    )
    saved = ms.database.JSONDatabase(work_dir=sys.argv[1])
    assert len(saved) >= 1, "no record was saved"
    tvm.ir.load_json(tvm.ir.save_json(saved.get_all_tuning_records()[0].workload.mod))
    print(f"tuned: {len(saved)} records")


if __name__ == "__main__":
    main()
