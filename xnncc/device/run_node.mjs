// run_node.mjs: what runtime/tools/runner.c is for phones, for a WebAssembly artefact in Node.
//
//     node run_node.mjs MODE MODULE.mjs WASM PACKAGE INPUTS OUTPUTS [REPEAT PER_OP | REGIONS]
//
// MODE, INPUTS, OUTPUTS, REGIONS and the lines of "time" are as in runner.c. Exit code 1 with a sentence on stdout.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [mode, module, wasm, weights, inputsFile, outputsFile, ...more] = process.argv.slice(2);

async function main() {
  const { load, inputs, outputs } = await import(pathToFileURL(module));
  const net = await load(readFileSync(wasm), readFileSync(weights));
  net.feed(tensorsOf(inputs, readFileSync(inputsFile)));
  const count = net.opCount;
  if (mode === "trace") {
    const spaces = { a: "arena", i: "input", o: "output" };
    const parts = [];
    let next = 0;
    for (const line of readFileSync(more[0], "utf8").split("\n").filter((l) => l)) {
      const [op, space, index, offset, length] = line.split(" ");
      if (+op >= next) net.runOps(next, (next = +op + 1));
      parts.push(net.bytes(spaces[space], +index, +offset, +length));
    }
    writeFileSync(outputsFile, Buffer.concat(parts));
    return;
  }
  net.runOps(0, count);
  const results = net.results();
  writeFileSync(outputsFile, Buffer.concat(outputs.map((t) => new Uint8Array(results[t.name].buffer))));
  if (mode === "time") time(net, count, +more[0], more[1] === "1");
}

function tensorsOf(inputs, bytes) {
  let at = bytes.byteOffset;
  return Object.fromEntries(inputs.map((t) => {
    const length = t.shape.reduce((a, b) => a * b, 1) * t.type.BYTES_PER_ELEMENT;
    const copy = bytes.buffer.slice(at, at + length);
    at += length;
    return [t.name, new t.type(copy)];
  }));
}

function time(net, count, repeat, perOp) {
  const clock = (first, last) => {
    const start = process.hrtime.bigint();
    net.runOps(first, last);
    return process.hrtime.bigint() - start;
  };
  for (let i = 0; i < repeat; i++) {
    if (!perOp) console.log(`run ${clock(0, count)}`);
    else for (let op = 0; op < count; op++) console.log(`op ${op} ${clock(op, op + 1)}`);
  }
}

main().catch((error) => {
  console.log(error.message);
  process.exitCode = 1;
});
