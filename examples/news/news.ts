// News of a run: a receiver of signed webhooks, and a run in the terminal that tells it of its end. Needs no key.
// Usage: npm run build && node examples/run.mjs news
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";

interface News {
  type: string;
  data: { run_id: string; name: string; summary: string };
}

const secret = `whsec_${randomBytes(32).toString("base64")}`;
const webhook = new Webhook(secret);
const seen = new Map<string, News>();

/** Gives the status of the answer. */
async function receive(request: IncomingMessage): Promise<number> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk as Uint8Array);
  const headers = {
    "webhook-id": String(request.headers["webhook-id"]),
    "webhook-timestamp": String(request.headers["webhook-timestamp"]),
    "webhook-signature": String(request.headers["webhook-signature"]),
  };
  try {
    const news = webhook.verify(Buffer.concat(chunks), headers) as News; // signed by the server that we started
    // The same id is the same message.
    seen.set(headers["webhook-id"], news);
    return 204;
  } catch {
    return 401;
  }
}

const receiver = createServer((request, response) => {
  void receive(request).then((status) => response.writeHead(status).end());
});
await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const address = receiver.address();
assert(typeof address === "object" && address !== null);

const folder = mkdtempSync(join(tmpdir(), "news-"));
const workspace = join(folder, "workspace");
mkdirSync(workspace);
writeFileSync(join(workspace, "notes.md"), "# Notes\n\nTODO: buy tea\n");
const config = join(folder, "config.json");
const url = `http://127.0.0.1:${address.port}/`;
writeFileSync(
  config,
  JSON.stringify({ news: { hook: { kind: "webhook", url, secretVariable: "NEWS_SECRET" } } }),
);

const program = join(dirname(fileURLToPath(import.meta.resolve("deepagent-mcp"))), "bin/deepagent-mcp.js");
await promisify(execFile)(
  process.execPath,
  [program, "run", "list every TODO", "--config", config, "--approvals-write", "none"],
  {
    cwd: workspace,
    env: {
      ...process.env,
      NEWS_SECRET: secret,
      DEEPAGENT_MODEL: "offline",
      DEEPAGENT_DATA_DIR: join(folder, "data"),
    },
  },
);
receiver.close();
rmSync(folder, { recursive: true, force: true });

const [news, ...others] = seen.values();
assert(news);
assert.deepEqual(others, []);
assert.equal(news.type, "run.finished");
console.log(`${news.data.name}: ${news.data.summary}`);
