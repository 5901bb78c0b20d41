/** Reads pages through the proxy of its environment, and prints what came of it and what the proxy was asked. */
import { createServer } from "node:http";
import { PageReader } from "../../src/web/page-reader.ts";
import type { Resolve } from "../../src/web/request.ts";

// Without it the requests would go out directly.
if (!process.allowedNodeEnvironmentFlags.has("--use-env-proxy")) throw new Error("this Node has no proxies");

const asked: string[] = [];
const proxy = createServer(({ method, url }, response) => {
  asked.push(`${method} ${url}`);
  response.writeHead(200, { "content-type": "text/plain" }).end("by proxy");
});
proxy.on("connect", ({ url }, socket) => {
  asked.push(`CONNECT ${url}`);
  socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
});
await new Promise<void>((resolve) => proxy.listen(Number(process.env["PROXY_PORT"]), "127.0.0.1", resolve));

const here = { address: "127.0.0.1", family: 4 };
const resolve: Resolve = async (name) => {
  if (name === "unknown.test") throw Object.assign(new Error(name), { code: "ENOTFOUND" });
  return name === "public.test" ? [{ address: "93.184.216.34", family: 4 }] : [here];
};
const reader = new PageReader({ network: { isNamed: () => false, resolve }, userAgent: "test/1" });
for (const address of ["http://unknown.test/", "https://public.test/", "http://private.test/"]) {
  const { signal } = new AbortController();
  const outcome = await reader.read(new URL(address), { signal, follows: () => true }).then(
    ({ text }) => text,
    (error: Error) => error.message,
  );
  console.log(`${outcome} [${asked.splice(0).join(", ")}]`);
}
proxy.close();
proxy.closeAllConnections();
