"""Two models in one program, by two shared libraries and by two archives, on this machine."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny import EXPECTED, INPUT, tiny_artefact

from xnncc.device.network import load
from xnncc.target import load_target

MAIN = """
#include <stdio.h>
#include "xnnrt.h"
int32_t xnn_one_graph(const void *, void *, const int64_t *, int32_t, int32_t);
int32_t xnn_two_graph(const void *, void *, const int64_t *, int32_t, int32_t);
static float x[64], y[64];
static float last(xnnrt_graph graph, const char *path) {
    const void *in[] = {x};
    void *out[] = {y};
    xnnrt_options options = {2, 0, 0, 0};
    xnnrt_net *net;
    int i;
    for (i = 0; i < 64; i++) x[i] = (float)i / 63 * 2;
    if (xnnrt_open_file(&net, graph, path, &options) || xnnrt_run(net, in, out)) return -1;
    xnnrt_close(net);
    return y[63];
}
int main(int argc, char **argv) {
    (void)argc;
    printf("%.4f %.4f", last(xnn_one_graph, argv[1]), last(xnn_two_graph, argv[2]));
    return 0;
}
"""


def test_two_archives_in_one_program(tmp_path: Path) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is missing")
    base = load_target("linux-x86-64")
    target = replace(base, toolchain=replace(base.toolchain, output=("a",)))
    one, two = (tiny_artefact(target, tmp_path / stem, stem) for stem in ("one", "two"))
    (tmp_path / "main.c").write_text(MAIN)
    include = Path(__file__).parent.parent.parent / "xnncc" / "runtime" / "include"
    libraries = [one / "libone.a", two / "libtwo.a"]
    argv = [gcc, f"-I{include}", tmp_path / "main.c", *libraries, "-lm", "-pthread", "-o", tmp_path / "main"]
    subprocess.run([str(a) for a in argv], check=True)
    argv = [str(tmp_path / "main"), str(one / "one.xnn"), str(two / "two.xnn")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "7.3891 7.3891"  # e^2


def test_two_libraries_in_one_process(tmp_path: Path) -> None:
    folders = [tiny_artefact(load_target("host"), tmp_path / stem, stem) for stem in ("one", "two")]
    with load(folders[0]) as one, load(folders[1]) as two:
        for net in (one, two, one):
            np.testing.assert_allclose(net(INPUT)["y"], EXPECTED, rtol=1e-6)
