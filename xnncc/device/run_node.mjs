// run_node.mjs: run_network.mjs on files, in Node.
//
//     node run_node.mjs MODE MODULE.mjs VARIANT INPUTS OUTPUTS [REPEAT PER_OP | REGIONS]
//
// MODE, INPUTS, OUTPUTS, REGIONS and the lines of "time" are as in runner.c. Exit code 1 with a sentence on stdout.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { runNetwork } from "./run_network.mjs";

const [mode, module, variant, inputs, outputs, ...more] = process.argv.slice(2);

try {
  const { text, parts } = await runNetwork(await import(pathToFileURL(module)), {
    mode,
    variant: +variant,
    inputs: readFileSync(inputs),
    repeat: +more[0],
    perOp: more[1] === "1",
    regions: mode === "trace" ? readFileSync(more[0], "utf8") : "",
  });
  writeFileSync(outputs, Buffer.concat(parts));
  console.log(text);
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
}
