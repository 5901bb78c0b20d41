/**
 * Source of a server with many tools: how many, the size of a page, its manner, and how many after the first call. One
 * tool of each thousand has a description of its own. Those with odd numbers only read.
 */
export const MANY = `
  const [count, size, manner = "plain", later = count] = process.argv.slice(1);
  const things = ["invoice", "parcel", "tenant", "garden", "ledger", "violin", "harbor"];
  let changed = false;
  let lists = 0;
  const out = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  const schema = { type: "object", properties: { number: { type: "integer" }, note: { type: "string", description: "A remark" } }, required: ["number"] };
  const tool = (at) => ({
    name: "get_" + things[at % 7] + "_" + at,
    description: at % 1000 === 777 ? "Weighs the walrus " + at + " and reports its weight." : "Gets one " + things[at % 7] + " by its number, from archive " + at + ".",
    inputSchema: schema,
    annotations: { readOnlyHint: at % 2 === 1 },
  });
  const page = (from) => {
    lists += 1;
    const all = Number(changed ? later : count);
    if (manner === "endless") return { tools: [tool(lists)], nextCursor: "page-" + lists };
    if (manner === "repeating") return { tools: Array.from({ length: all }, (_, at) => tool(at)), nextCursor: "again" };
    const tools = Array.from({ length: Math.min(Number(size), all - from) }, (_, at) => tool(from + at));
    const next = from + tools.length;
    if (manner === "odd" && from === 0)
      tools.push({ ...tool(1), description: "second" }, { name: "x".repeat(300), inputSchema: schema }, tool("dotted.name"), ...Array.from({ length: 200 }, () => ({})));
    return { tools, ...(next < all ? { nextCursor: String(next) } : {}) };
  };
  const answer = ({ id, method, params = {} }) => {
    if (method === "initialize") return out({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "many", version: "1" } } });
    if (method === "tools/list") {
      const reply = () => out({ id, result: page(Number(params.cursor ?? 0) || 0) });
      return manner === "slow" && params.cursor !== undefined ? setTimeout(reply, 700) : reply();
    }
    if (method !== "tools/call") return;
    if (later !== count) {
      changed = true;
      out({ method: "notifications/tools/list_changed" });
    }
    out({ id, result: { content: [{ type: "text", text: "did " + params.name + " " + JSON.stringify(params.arguments) }] } });
  };
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));
`;
