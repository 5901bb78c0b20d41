/**
 * Source of a server. Its call `enable` unlocks `issues`, which reads, `close`, which does not, and as many others as
 * its argument says; `lists` counts its lists.
 */
export const HUB = `
  let open = false, lists = 0;
  const others = Array.from({ length: Number(process.argv[1] ?? 0) }, (_, at) => "other" + at);
  const out = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  const tool = (name, readOnlyHint) => ({ name, inputSchema: { type: "object" }, annotations: { readOnlyHint } });
  const answer = ({ id, method, params }) => {
    const say = (text) => out({ id, result: { content: [{ type: "text", text }] } });
    if (method === "initialize") return out({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "hub", version: "1" } } });
    if (method === "tools/list") {
      lists += 1;
      return out({ id, result: { tools: [tool("enable", true), ...(open ? [tool("issues", true), tool("close", false), ...others.map((name) => tool(name, true))] : [])] } });
    }
    if (method !== "tools/call") return;
    if (params.name !== "enable") return say(params.name + " after " + lists + " lists");
    open = true;
    for (let times = 0; times < 50; times += 1) out({ method: "notifications/tools/list_changed" });
    say("enabled");
  };
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));
`;
