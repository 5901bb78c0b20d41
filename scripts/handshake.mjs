/** Asks the built server for its answers to a client's first requests, which its entry then gives without loading it. */
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSources } from "./sources.mjs";

const ID = "@id@";
const REVISION = "@revision@";
const request = (method, params) => ({ jsonrpc: "2.0", id: ID, method, ...(params && { params }) });

function sessionRequests(protocolVersion, clientInfo) {
  const params = { protocolVersion, capabilities: {}, clientInfo };
  return [request("initialize", params), request("tools/list"), request("ping")];
}

function latestRequests(revision, clientInfo) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": revision,
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
  const { CLIENTS, REVISIONS, resultForm } = await loadSources(`
    export * from "./src/server/calls/known-clients.ts";
    export { REVISIONS } from "./src/server/contracts/revisions.ts";`);
  const idsOf = (withSessions) =>
    REVISIONS.filter(({ sessions }) => sessions === withSessions).map(({ id }) => id);
  // A server answers with the revision that it is asked for; any with a handshake serves.
  const [sessions, [newest]] = [idsOf(true), idsOf(false)];
  const asked = sessions[0];
  const textClients = CLIENTS.filter((client) => !resultForm(client).structure).flatMap(({ names }) => names);
  /** The answers to a client of this name: without the tools of Codex, and with them. */
  const ask = (requests) =>
    Promise.all([[], ["--codex-tools"]].map((flags) => answersTo(starter, flags, requests)));
  const inSession = (name) => ask(sessionRequests(asked, { name, version: "0" }));
  const inLatest = (name) => ask(latestRequests(newest, { name, version: "0" }));
  const [textClient] = textClients;
  const session = await inSession("build");
  const latest = await inLatest("build");
  const asText = { session: await inSession(textClient), latest: await inLatest(textClient) };
  await rm(starter);
  const lists = (answers) => answers.map(([, list]) => list);
  const answers = {
    initialize: session[0][0].replace(JSON.stringify(asked), JSON.stringify(REVISION)),
    discover: latest[0][0],
    ping: session[0][2],
    revisions: { session: sessions, latest: newest },
    textClients,
    tools: {
      session: { structure: lists(session), text: lists(asText.session) },
      latest: { structure: lists(latest), text: lists(asText.latest) },
    },
  };
  await writeFile(join(bin, "handshake.json"), JSON.stringify(answers));
}
