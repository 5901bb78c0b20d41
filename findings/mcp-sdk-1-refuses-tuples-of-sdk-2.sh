#!/usr/bin/env bash
# @modelcontextprotocol/server 2.4.0 with @modelcontextprotocol/sdk 1.32.2 as the client: a tool whose output has a tuple
# (`z.tuple`) is listed with `prefixItems` and `items: false`, and with `$schema` of draft 2020-12. The client reads the
# schema as draft 7, where that is a list that must be empty, and refuses every result of the tool after the server has
# carried out the call: its text is lost to the caller, who may call again. Before `listTools` was called, the same call
# succeeds, because the client has no schema then. A tuple of a server of 1.32.2 is listed in draft 7, and accepted.
# A good guess is that a client understands the schemas that the next release of the same SDK writes from zod.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/server@2.4.0 zod@4.6.7
cat >run.mjs <<'JS'
import { McpServer } from "@modelcontextprotocol/server";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as OlderServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const amount = z.tuple([z.number(), z.string()]);
async function payments(server, schemas) {
  let made = 0;
  server.registerTool("pay", schemas, async () => ({
    content: [{ type: "text", text: `paid ${(made += 1)}` }],
    structuredContent: { amount: [5, "EUR"] },
  }));
  const client = new Client({ name: "program", version: "1" });
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(other)]);
  const pay = () =>
    client.callTool({ name: "pay", arguments: {} }).then(
      ({ content }) => content[0].text,
      ({ message }) => message,
    );
  const before = await pay();
  await client.listTools();
  return { before, after: await pay(), made };
}
const about = { name: "bank", version: "1" };
const newer = await payments(new McpServer(about), { outputSchema: z.object({ amount }) });
const older = await payments(new OlderServer(about), { outputSchema: { amount } });
console.log("server 2.4.0:  before listTools:", newer.before, "| after it:", newer.after, "| payments made:", newer.made);
console.log("server 1.32.2: before listTools:", older.before, "| after it:", older.after, "| payments made:", older.made);
const isRefused = newer.before === "paid 1" && newer.after.includes("does not match the tool's output schema");
if (!isRefused || newer.made !== 2 || older.after !== "paid 2") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
