/** Asks the built server for its answers to a client's first requests, which its entry then gives without loading it. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSources } from "./sources.mjs";

const ID = "@id@";
const REVISION = "@revision@";
/** Asked for in place of `REVISION`: a server answers with a revision that it knows. */
const SESSION_REVISION = "2025-11-25";
const request = (method, params) => ({ jsonrpc: "2.0", id: ID, method, ...(params && { params }) });

function sessionRequests(clientInfo) {
  const params = { protocolVersion: SESSION_REVISION, capabilities: {}, clientInfo };
  return [request("initialize", params), request("tools/list"), request("ping")];
}

function latestRequests(clientInfo) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return [request("server/discover", { _meta }), request("tools/list", { _meta })];
}

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
  const { CLIENTS, resultForm } = await loadSources('export * from "./src/server/calls/known-clients.ts";');
  const textClients = CLIENTS.filter((client) => !resultForm(client).structure).flatMap(({ names }) => names);
  const ask = (name, requests) =>
    Promise.all(
      [[], ["--codex-tools"]].map((flags) => answersTo(starter, flags, requests({ name, version: "0" }))),
    );
  const session = await ask("build", sessionRequests);
  const latest = await ask("build", latestRequests);
  const [name] = textClients;
  const asText = { session: await ask(name, sessionRequests), latest: await ask(name, latestRequests) };
  await rm(starter);
  const lists = (answers) => answers.map(([, list]) => list);
  const answers = {
    initialize: session[0][0].replace(JSON.stringify(SESSION_REVISION), JSON.stringify(REVISION)),
    discover: latest[0][0],
    ping: session[0][2],
    textClients,
    tools: {
      session: { structure: lists(session), text: lists(asText.session) },
      latest: { structure: lists(latest), text: lists(asText.latest) },
    },
  };
  await writeFile(join(bin, "handshake.json"), JSON.stringify(answers));
}
