"""The wrappers: readable text, C that compiles, an ES module that runs in Node and in a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import need_chromium, visit
from tiny import COUNT, EXPECTED, WEIGHTS, tiny_artefact

from xnncc.bindings import BINDINGS, write_bindings, write_demo_page, write_header
from xnncc.bindings.names import arguments, class_name
from xnncc.bindings.write import image_layout
from xnncc.codegen.link_elf import link_shared_elf
from xnncc.errors import OutputError
from xnncc.ir.plan import TensorInfo
from xnncc.target import load_target

INPUTS = (TensorInfo("x:0", (1, COUNT), "float32"),)
OUTPUTS = (TensorInfo("y", (1, COUNT), "float32"),)
MIXED = (TensorInfo("class", (2,), "int64"), TensorInfo("a/b", (3,), "uint8"), TensorInfo("a.b", (), "float32"))


@pytest.mark.parametrize("kind", BINDINGS)
def test_same_network_same_text(kind: str, tmp_path: Path, golden: Any) -> None:
    files = write_bindings(kind, tmp_path, "my-net.v2", MIXED, OUTPUTS)
    text = "".join(f"==> {file.relative_to(tmp_path)}\n{file.read_text()}" for file in files)
    golden(f"bindings_{kind}.txt", text)


WIDE = ((TensorInfo("x:0", (1, 2 * COUNT), "float32"),), (TensorInfo("y", (1, 2 * COUNT), "float32"),))


@pytest.mark.parametrize("kind", BINDINGS)
def test_several_shapes(kind: str, tmp_path: Path, golden: Any) -> None:
    files = write_bindings(kind, tmp_path, "wide", INPUTS, OUTPUTS, [WIDE])
    text = "".join(f"==> {file.relative_to(tmp_path)}\n{file.read_text()}" for file in files)
    golden(f"bindings_{kind}_shapes.txt", text)


def test_the_header_names_every_shape(tmp_path: Path) -> None:
    header, _ = write_header(tmp_path, "wide", INPUTS, OUTPUTS, [WIDE])
    assert " * variant 1: x:0 float32[1, 128], 512 bytes -> y float32[1, 128], 512 bytes\n" in header.read_text()


def test_unknown_binding_suggests() -> None:
    with pytest.raises(OutputError, match="unknown binding 'kotlni'; did you mean 'kotlin'"):
        write_bindings("kotlni", Path("."), "net", INPUTS, OUTPUTS)


def test_names_are_identifiers_and_unique() -> None:
    assert [a.ident for a in arguments(MIXED)] == ["class_", "a_b", "a_b_"]
    assert class_name("mobilenet-v2.1") == "MobilenetV21" and class_name("2net") == "Net2net"


def test_name_cannot_end_a_comment(tmp_path: Path) -> None:
    evil = (TensorInfo("x */ int main\n// y", (1,), "float32"),)
    for kind in ("kotlin", "swift"):
        for file in write_bindings(kind, tmp_path, "net", evil, evil):
            assert "*/ int main" not in file.read_text()


JNI = """
#include <stdint.h>
typedef int32_t jint; typedef int64_t jlong; typedef void *jobject, *jclass, *jstring, *jobjectArray;
typedef const struct functions *JNIEnv;
struct functions {
  const char *(*GetStringUTFChars)(JNIEnv *, jstring, void *);
  void (*ReleaseStringUTFChars)(JNIEnv *, jstring, const char *);
  jclass (*FindClass)(JNIEnv *, const char *);
  jint (*ThrowNew)(JNIEnv *, jclass, const char *);
  jobject (*GetObjectArrayElement)(JNIEnv *, jobjectArray, jint);
  void *(*GetDirectBufferAddress)(JNIEnv *, jobject);
};
#define JNIEXPORT __attribute__((visibility("default")))
#define JNICALL
"""


def test_jni_compiles_and_links_for_android(tmp_path: Path) -> None:
    """Against the six functions of jni.h that it calls; no Kotlin compiler is at hand."""
    from xnncc.codegen.build_runtime import RUNTIME
    from xnncc.codegen.compile import compile_file

    target = load_target("android-arm64")
    folder = tiny_artefact(target, tmp_path / "net")
    source = write_bindings("kotlin", tmp_path, "tiny", INPUTS, OUTPUTS, [WIDE])[1]
    (tmp_path / "jni.h").write_text(JNI)
    flags = [f"-I{tmp_path}", f"-I{RUNTIME / 'include'}", "-Wall", "-Wextra", "-Werror"]
    compile_file(target, source, tmp_path / "jni.o", flags)
    objects = [tmp_path / "jni.o", folder / "libtiny.so"]
    library = link_shared_elf(target, objects, "Java_xnn_Tiny_*", "tiny_jni", tmp_path)
    for name in (
        b"Java_xnn_Tiny_open",
        b"Java_xnn_Tiny_run",
        b"Java_xnn_Tiny_reset",
        b"Java_xnn_Tiny_close",
        b"Java_xnn_Tiny_use",
        b"libtiny.so",
    ):
        assert name in library.read_bytes()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a web artefact whose network sees its 64 numbers as a grey picture of 8 x 8."""
    folder = tiny_artefact(load_target("web-wasm"), tmp_path_factory.mktemp("web"))
    image = (TensorInfo("x:0", (1, 1, 8, 8), "float32"),)
    write_bindings("js", folder, "tiny", image, OUTPUTS)
    assert [p.name for p in write_demo_page(folder, "tiny", image, OUTPUTS)] == ["index.html"]
    return folder


def node(code: str, folder: Path) -> str:
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is missing: apt-get install nodejs")
    argv = [program, "--input-type=module", "-e", code]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_module_runs_in_node(web: Path) -> None:
    code = """
    import { load } from "./tiny.mjs";
    const net = await load();
    const x = Float32Array.from({ length: 64 }, (_, i) => Math.fround(i / 63 * 2));
    console.log(net.run({ "x:0": x })["y"].join(" "));
    net.close();
    """
    values = np.array(node(code, web).split(), dtype="float32")
    np.testing.assert_allclose(values, EXPECTED.ravel(), rtol=1e-6)


def test_module_takes_bytes_and_runs_many_times(web: Path) -> None:
    code = """
    import { load } from "./tiny.mjs";
    import { readFileSync } from "node:fs";
    const net = await load(readFileSync("tiny.wasm"), readFileSync("tiny.xnn"));
    const x = new Float32Array(64).fill(1);
    const first = net.run({ "x:0": x }).y;
    for (let i = 0; i < 1000; i++) net.run({ "x:0": x });
    console.log(first[63], net.opCount);
    """
    value, count = node(code, web).split()
    assert (round(float(value), 5), count) == (2.71828, "2")


def test_module_says_what_is_wrong(web: Path) -> None:
    code = """
    import { load } from "./tiny.mjs";
    import { readFileSync } from "node:fs";
    const net = await load();
    const say = (f) => { try { f(); } catch (e) { console.log(e.message); } };
    say(() => net.run({ x: 1 }));
    say(() => net.run({ "x:0": new Float32Array(3) }));
    const bad = readFileSync("tiny.xnn"); bad[bad.length - 1] ^= 1;
    await load(readFileSync("tiny.wasm"), bad).catch((e) => console.log(e.message));
    """
    first, second, third = node(code, web).splitlines()
    assert first == "no input 'x'; the network has: x:0"
    assert second == "input 'x:0' must be a Float32Array of 64 = 1 x 1 x 8 x 8"
    assert len(third) > 10


def test_layouts_of_images() -> None:
    assert image_layout((1, 3, 224, 224)) == "NCHW" and image_layout((1, 128, 128, 3)) == "NHWC"
    assert image_layout((1, 16)) is None and image_layout((2, 3, 8, 8)) is None


@pytest.fixture(scope="module")
def site(web: Path) -> dict[str, bytes | Path]:
    """Return the page's folder with a grey ramp to look at."""
    need_chromium()
    pillow = pytest.importorskip("PIL.Image", reason="pillow is missing: pip install pillow")
    pillow.fromarray(np.stack([PIXELS] * 3, axis=-1)).save(web / "grey.png")
    return {file.name: file for file in web.iterdir()}


PIXELS = np.arange(0, 256, 4, dtype="uint8").reshape(8, 8)
SCORES = np.exp(PIXELS.ravel() / 127.5 * WEIGHTS.astype("float64"))  # what the tiny network says of grey.png
BEST = np.argsort(-SCORES)[:5].tolist()
ADDRESS = "index.html?mean=0&std=127.5"


def test_page_classifies_in_chromium(site: dict[str, bytes | Path]) -> None:
    said = visit(site, f"{ADDRESS}&image=grey.png", "return await answer()")
    rows = said["rows"]
    assert [row["index"] for row in rows] == BEST and said["answered"] == "yes"
    np.testing.assert_allclose([row["score"] for row in rows], SCORES[BEST], rtol=1e-5)
    shares = np.exp(SCORES - SCORES.max()) / np.exp(SCORES - SCORES.max()).sum()
    assert [row["share"] for row in rows] == [f"{100 * shares[i]:.1f} %" for i in BEST]
    np.testing.assert_allclose([float(row["bar"].rstrip("%")) for row in rows], 100 * shares[BEST], rtol=1e-3)
    assert rows[0]["name"] == f"class {BEST[0]}" and "ms on one thread" in said["status"]


@pytest.mark.parametrize(
    "how", ["drop(await file('grey.png'))", "choose(page().querySelector('#drop input'), await file('grey.png'))"]
)
def test_page_takes_a_photo(how: str, site: dict[str, bytes | Path]) -> None:
    said = visit(site, ADDRESS, f"{how}; return await answer()")
    assert [row["index"] for row in said["rows"]] == BEST


def test_page_takes_names(site: dict[str, bytes | Path]) -> None:
    """Beside the page, by drop; and says when they are too few."""
    names = {"labels.txt": "".join(f"thing {i}\n" for i in range(64)).encode(), "few.json": b'["one", "two"]'}
    script = "drop(await file('grey.png')); const first = await answer(); drop(await file('few.json')); "
    first, second = visit({**site, **names}, ADDRESS, f"{script} return [first, await answer()]")
    assert [row["name"] for row in first["rows"]] == [f"thing {i}" for i in BEST]
    assert second["rows"][0]["name"] == f"class {BEST[0]}"
    assert "2 names for 64 classes: is it the right list?" in second["status"]


def test_page_says_what_is_wrong(site: dict[str, bytes | Path]) -> None:
    script = (
        "drop(await file('tiny.wasm')); const first = await answer(); drop(await file('grey.png')); await answer(); "
    )
    script += "const mean = page().getElementById('mean'); mean.value = 'x'; mean.onchange(); "
    first, second = visit(site, ADDRESS, f"{script} return [first, await answer()]")
    assert first["status"] == "tiny.wasm is no picture that this browser can read."
    assert second["status"] == "'x' is no mean: write 1 numbers, such as 127.5"


def test_only_classifiers_get_a_page(tmp_path: Path) -> None:
    image, sound = (TensorInfo("x", (1, 3, 8, 8), "float32"),), (TensorInfo("x", (1, 16), "float32"),)
    scores, boxes = TensorInfo("y", (1, 10), "float32"), TensorInfo("b", (1, 512, 16), "float32")
    for inputs, outputs in ((sound, (scores,)), (image, (boxes,)), (image, (scores, boxes)), (image * 2, (scores,))):
        assert write_demo_page(tmp_path, "net", inputs, outputs) == []
    assert write_demo_page(tmp_path, "net", image, (TensorInfo("y", (1, 10, 1, 1), "float32"),)) != []
