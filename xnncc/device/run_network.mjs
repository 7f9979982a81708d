// run_network.mjs: what runtime/tools/runner.c is for phones, for a WebAssembly artefact. run_node.mjs calls it in Node,
// run_browser.html in a page.

/**
 * Does `job` on the network of `module`, the artefact's ES module, which loads the library and the package beside it.
 *
 * job: { mode: "run" | "time" | "trace", variant: number, inputs: Uint8Array, repeat: number, perOp: boolean,
 * regions: string }, where inputs are all inputs one after the other, of several inferences in a row for "run", and
 * regions a line "OP SPACE INDEX OFFSET BYTES" for each region to trace.
 * Returns { text, parts }: the lines "run NS" or "op INDEX NS" of "time", and the outputs (or regions) as bytes.
 */
export async function runNetwork(module, job) {
  const net = await module.load();
  net.use(job.variant);
  const steps = tensorsOf(net.inputs, job.inputs);
  if (job.mode === "trace") {
    net.feed(steps[0]);
    return { text: "", parts: [...trace(net, job.regions)] };
  }
  const parts = steps.flatMap((feeds) => {
    const results = net.run(feeds);
    return net.outputs.map((tensor) => new Uint8Array(results[tensor.name].buffer));
  });
  return { text: job.mode === "time" ? time(net, job.repeat, job.perOp).join("\n") : "", parts };
}

/** Returns the feeds of each inference: at least of one. */
function tensorsOf(inputs, bytes) {
  let at = bytes.byteOffset;
  const end = at + bytes.byteLength, steps = [];
  do {
    steps.push(Object.fromEntries(inputs.map((t) => {
      const length = t.shape.reduce((a, b) => a * b, 1) * t.type.BYTES_PER_ELEMENT;
      const copy = bytes.buffer.slice(at, at + length);
      at += length;
      return [t.name, new t.type(copy)];
    })));
  } while (at < end);
  return steps;
}

/** Yields the bytes of each region, after its operator ran. */
function* trace(net, regions) {
  const spaces = { a: "arena", i: "input", o: "output" };
  let next = 0;
  for (const line of regions.split("\n").filter((l) => l)) {
    const [op, space, index, offset, length] = line.split(" ");
    if (+op >= next) net.runOps(next, (next = +op + 1));
    yield net.bytes(spaces[space], +index, +offset, +length);
  }
}

/** Returns a line for each inference, or for each operator of each. */
function time(net, repeat, perOp) {
  const count = net.opCount;
  const nanoseconds = (first, last) => {
    const start = performance.now();
    net.runOps(first, last);
    return Math.round((performance.now() - start) * 1e6);
  };
  const lines = [];
  for (let i = 0; i < repeat; i++) {
    if (!perOp) lines.push(`run ${nanoseconds(0, count)}`);
    else for (let op = 0; op < count; op++) lines.push(`op ${op} ${nanoseconds(op, op + 1)}`);
  }
  return lines;
}
