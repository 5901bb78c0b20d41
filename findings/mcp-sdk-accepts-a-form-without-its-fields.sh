#!/usr/bin/env bash
# @modelcontextprotocol/sdk 1.32.2 (`elicitInput` of a server): an answer `{ action: "accept" }` without `content` is handed
# to the server's code as accepted, although the form has a required field. An answer with an empty `content` is refused for
# that field.
# A good guess is that required fields are checked in every accepted answer, or in none.
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
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const requestedSchema = { type: "object", properties: { seats: { type: "number" } }, required: ["seats"] };
async function ask(answer) {
  const { server } = new McpServer({ name: "booking", version: "1" });
  const client = new Client({ name: "program", version: "1" }, { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler(ElicitRequestSchema, async () => answer);
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(other)]);
  return server.elicitInput({ message: "How many?", requestedSchema }).then(JSON.stringify, ({ message }) => message);
}
const [none, empty] = [await ask({ action: "accept" }), await ask({ action: "accept", content: {} })];
console.log("accepted without content:   ", none);
console.log("accepted with empty content:", empty);
if (none !== '{"action":"accept"}' || !empty.includes("must have required property 'seats'")) {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
