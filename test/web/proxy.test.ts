import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { nodeWithSqlite } from "../support/node-with-sqlite.ts";

test("a proxy connects to public names, to its own, and to no private one", { tags: "node22" }, async () => {
  const port = await freePort();
  const address = `http://localhost:${port}`;
  const env = {
    PROXY_PORT: String(port),
    NODE_USE_ENV_PROXY: "1",
    HTTP_PROXY: address,
    HTTPS_PROXY: address,
  };
  const program = fileURLToPath(new URL("proxied.ts", import.meta.url));
  const args = ["--experimental-strip-types", "--no-warnings", program];
  const { stdout } = await promisify(execFile)(nodeWithSqlite() ?? "", args, { env });
  expect(stdout.trim().split("\n")).toEqual([
    "by proxy [GET http://unknown.test/robots.txt, GET http://unknown.test/]",
    "public.test could not be reached by the proxy. [CONNECT public.test:443, CONNECT public.test:443]",
    "private.test has a private address, and only the public internet is reached. []",
  ]);
});
