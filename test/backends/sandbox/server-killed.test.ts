import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { build } from "esbuild";
import { it } from "vitest";
import { folder, isAsleep, uniqueSleep, until } from "./support.ts";

it("a command of the local shell does not outlive a server that is killed", async () => {
  const root = folder();
  const program = join(root, "program.mjs");
  await build({
    entryPoints: [fileURLToPath(new URL("./shell-process.ts", import.meta.url))],
    outfile: program,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    logLevel: "error",
    external: ["@vscode/ripgrep"],
    banner: {
      js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
    },
  });
  const seconds = uniqueSleep();
  const server = spawn(process.execPath, [program, root, `sleep ${seconds} & echo begun; sleep ${seconds}`]);
  await once(server.stdout, "data");
  await until(() => isAsleep(seconds));
  server.kill("SIGKILL");
  await until(() => !isAsleep(seconds));
});
