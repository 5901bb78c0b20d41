#!/usr/bin/env bash
# @modelcontextprotocol/sdk 1.32.2: `maxTotalTimeout` of a request, "regardless of any progress notifications", is looked at
# only when a progress notification arrives. A tool that says nothing for two seconds is waited for to its end with a total
# timeout of half a second; the same tool is given up after half a second if it reports progress.
# A good guess is that a silent server is the one for which the total timeout certainly holds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @modelcontextprotocol/sdk@1.32.2 zod@4.6.7
cat >run.mjs <<'JS'
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

async function call(reports) {
  const server = new McpServer({ name: "slow", version: "1" });
  server.registerTool("work", { inputSchema: {} }, async (_args, { _meta, sendNotification }) => {
    for (let progress = 0; progress < 20; progress += 1) {
      await new Promise((done) => setTimeout(done, 100));
      const params = { progressToken: _meta?.progressToken, progress };
      if (reports) await sendNotification({ method: "notifications/progress", params });
    }
    return { content: [{ type: "text", text: "done" }] };
  });
  const client = new Client({ name: "program", version: "1" });
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(other)]);
  const options = { timeout: 10_000, maxTotalTimeout: 500, resetTimeoutOnProgress: true, onprogress: () => {} };
  return client.callTool({ name: "work", arguments: {} }, undefined, options).then(
    ({ content }) => content[0].text,
    ({ message }) => message,
  );
}
const [silent, reporting] = [await call(false), await call(true)];
console.log("total timeout 0.5 s, two seconds of work, no progress:", silent);
console.log("total timeout 0.5 s, two seconds of work, progress:   ", reporting);
if (silent !== "done" || !reporting.includes("Maximum total timeout exceeded")) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
