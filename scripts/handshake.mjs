/** Asks the built server for its answers to a client's first requests, which its entry then gives without loading it. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ID = "@id@";
const REVISION = "@revision@";
const clientInfo = { name: "build", version: "0" };
const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {},
};
/** Asked for in place of `REVISION`: a server answers with a revision that it knows. */
const SESSION_REVISION = "2025-11-25";
const request = (method, params) => ({ jsonrpc: "2.0", id: ID, method, ...(params && { params }) });
const SESSION = [
  request("initialize", { protocolVersion: SESSION_REVISION, capabilities: {}, clientInfo }),
  request("tools/list"),
  request("ping"),
];
const LATEST = [request("server/discover", { _meta }), request("tools/list", { _meta })];

/** The lines that a server with `flags` answers `requests` with. */
async function answersTo(program, flags, requests) {
  const folder = await mkdtemp(join(tmpdir(), "deepagent-build-"));
  try {
    const args = [program, "serve", "--workspace", folder, "--data-dir", `${folder}-data`, ...flags];
    const server = spawn(process.execPath, args, {
      stdio: ["pipe", "pipe", "ignore"],
      env: { PATH: process.env.PATH, HOME: folder },
    });
    server.stdin.end(requests.map((one) => `${JSON.stringify(one)}\n`).join(""));
    const lines = (await server.stdout.setEncoding("utf8").toArray()).join("").trimEnd().split("\n");
    const isComplete = lines.length === requests.length && lines.every((line) => line.includes('"result"'));
    if (!isComplete) throw new Error(`the handshake was answered with ${lines.join(" ") || "nothing"}`);
    for (const line of lines)
      if (line.split(JSON.stringify(ID)).length !== 2) throw new Error("an answer does not have its id once");
    return lines;
  } finally {
    await rm(folder, { recursive: true, force: true });
    await rm(`${folder}-data`, { recursive: true, force: true });
  }
}

/** Writes the answers of the program `bin/main.js` to `bin/handshake.json`; see `Answers` in src/handshake. */
export async function writeHandshake(bin) {
  const starter = join(bin, "ask.mjs");
  await writeFile(starter, 'await (await import("./main.js")).run();\n');
  const ask = (flags, requests) => answersTo(starter, flags, requests);
  const codex = ["--codex-tools"];
  const [session, withCodex, latest, latestWithCodex] = await Promise.all([
    ask([], SESSION),
    ask(codex, SESSION),
    ask([], LATEST),
    ask(codex, LATEST),
  ]);
  await rm(starter);
  const answers = {
    initialize: session[0].replace(JSON.stringify(SESSION_REVISION), JSON.stringify(REVISION)),
    discover: latest[0],
    ping: session[2],
    tools: { session: [session[1], withCodex[1]], latest: [latest[1], latestWithCodex[1]] },
  };
  await writeFile(join(bin, "handshake.json"), JSON.stringify(answers));
}
