import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { beginLogin } from "../../src/agent/mcp-tools/authorize.ts";
import { McpConnection } from "../../src/agent/mcp-tools/connection.ts";
import type { RemoteMcpServer } from "../../src/agent/mcp-tools/server-config.ts";
import type { Login } from "../../src/agent/mcp-tools/login.ts";
import { loginsOf } from "../../src/app/logins.ts";
import { webSchema } from "../../src/config/sections.ts";
import { createLogger } from "../../src/core/logger.ts";
import { type ProtectedServer, logInAs, protectedServer } from "../support/oauth-server.ts";
import { fakeKeychain } from "../support/fake-keychain.ts";
import { json, refuse, sloppyHttp } from "../support/sloppy-mcp-server.ts";

const BACK = "http://127.0.0.1:9/callback";

function person(folder = mkdtempSync(join(tmpdir(), "logins-"))) {
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  let now = Date.now();
  const logins = { ...loginsOf({ dataDir: folder, web: webSchema.parse({}) }, {}), clock: () => now };
  const usual = { headers: {}, approve: "none", timeout: 20 } as const;
  const config = (url: string, oauth?: RemoteMcpServer["oauth"]): RemoteMcpServer => ({
    url,
    ...usual,
    oauth,
  });
  const logIn = async ({ url }: ProtectedServer, oauth?: RemoteMcpServer["oauth"]): Promise<void> => {
    const { fetchFor, clock } = logins;
    const begin = { server: config(url, oauth), redirectUrl: BACK, fetch: fetchFor(url), clock };
    const pending = await beginLogin(begin);
    const back = await logInAs("ada", pending.address.href, BACK);
    const login = await pending.finish(back.searchParams);
    await logins.store.change("notes", async () => login);
  };
  const lines: string[] = [];
  const connect = (url: string) => {
    const log = createLogger("debug", (line) => void lines.push(line));
    const connection = new McpConnection("notes", config(url), { env: {}, version: "0", log, logins });
    onTestFinished(() => connection.close());
    const call = async (): Promise<unknown> => {
      const tool = { name: "a", inputSchema: { type: "object" as const } };
      const answer = await connection.call(tool, {}, new AbortController().signal);
      return "unsent" in answer ? answer.unsent : "blocks" in answer ? answer.blocks : "asked";
    };
    const list = async (): Promise<string> => {
      try {
        return (await connection.listTools()).tools.map(({ name }) => name).join();
      } catch (error) {
        return connection.reason(error);
      }
    };
    return { list, call };
  };
  return {
    folder,
    logins,
    logIn,
    connect,
    log: () => lines.join(""),
    pass: (ms: number) => void (now += ms),
  };
}

const FINE = [{ type: "text", text: "fine" }];

test("a server that wants a log-in says so, is logged in at, and is used from then on", async () => {
  const server = await protectedServer();
  const { logIn, connect, folder, log } = person();
  const before = connect(server.url);
  expect(await before.list()).toBe(
    "it needs a log-in or headers.Authorization (HTTP 401); run deepagent-mcp login notes",
  );
  await logIn(server);
  // The same connection, and one of another process.
  expect(await before.list()).toBe("a");
  expect(await connect(server.url).call()).toEqual(FINE);
  const [file = ""] = readdirSync(join(folder, "logins")).filter((name) => name === "notes");
  const kept = readFileSync(join(folder, "logins", file));
  expect(kept.includes("access_token")).toBe(false);
  expect(statSync(join(folder, "logins", file)).mode & 0o777).toBe(0o600);
  expect(log()).not.toMatch(/Bearer|access_token/);
});

test("a token that is refused or about to expire is renewed once, whoever asks at the same time", async () => {
  const server = await protectedServer({ lifetime: 600 });
  const first = person();
  await first.logIn(server);
  // Another process with the same data directory.
  const second = person(first.folder);
  const connections = [first.connect(server.url), second.connect(server.url)];
  await Promise.all(connections.map(({ list }) => list()));
  expect(server.grants()).toBe(1);
  server.expire();
  expect(await Promise.all(connections.map(({ call }) => call()))).toEqual([FINE, FINE]);
  expect(server.grants()).toBe(2);
  second.pass(580_000);
  expect(await connections[1]?.call()).toEqual(FINE);
  expect(server.grants()).toBe(3);
});

test("a renewal that the authorization server refuses needs a person, and one that fails is tried again", async () => {
  const server = await protectedServer();
  const { logIn, connect } = person();
  await logIn(server);
  const { list, call } = connect(server.url);
  await list();
  server.expire();
  server.breakTokens(503);
  expect(await call()).toBe(
    "its log-in could not be renewed: the authorization server answered with HTTP 503",
  );
  server.breakTokens(undefined);
  expect(await call()).toEqual(FINE);
  server.expire();
  server.forget();
  expect(await call()).toBe("its log-in has expired; run deepagent-mcp login notes");
  const asked = server.grants();
  expect(await call()).toBe("its log-in has expired; run deepagent-mcp login notes");
  expect(server.grants()).toBe(asked);
});

test("a call that lacks a permission says which, and how to get it", async () => {
  const server = await protectedServer();
  const { logIn, connect } = person();
  await logIn(server);
  const { list, call } = connect(server.url);
  await list();
  server.require("more notes");
  expect(await call()).toBe(
    'it needs further permissions (more notes); run deepagent-mcp login notes --scope "notes more"',
  );
});

test("a permission with signs of a shell is told, and is no part of the line that a person pastes", async () => {
  const server = await protectedServer();
  const { logIn, connect } = person();
  await logIn(server);
  const { list, call } = connect(server.url);
  await list();
  server.require("notes $(touch /tmp/owned) `id`");
  expect(await call()).toMatch(/permissions \(notes .*\); run deepagent-mcp login notes$/);
});

test("a log-in that the disk cannot give says so without a path, and is not forgotten", async () => {
  const server = await protectedServer();
  const { logIn, connect, folder, logins } = person();
  await logIn(server);
  const file = join(folder, "logins", "notes");
  renameSync(file, `${file}.kept`);
  // A folder in its place cannot be read as a file.
  mkdirSync(file);
  expect(await connect(server.url).list()).toBe(
    "its log-in cannot be read or kept (EISDIR); check the folder logins of the data directory",
  );
  await expect(logins.store.change("notes", async () => undefined)).rejects.toThrow(/EISDIR/);
  rmdirSync(file);
  renameSync(`${file}.kept`, file);
  expect(await connect(server.url).list()).toBe("a");
});

test("a client that is registered is used with its secret, and a wrong one is told", async () => {
  const clients = [{ client_id: "ours", client_secret: "s3cret-s3cret", redirect_uris: [BACK] }];
  const server = await protectedServer({ clients });
  const { logIn, connect } = person();
  await expect(logIn(server)).rejects.toThrow(/did not accept this client.*set oauth\.clientId/);
  await expect(logIn(server, { clientId: "ours", clientSecret: "wrong" })).rejects.toThrow(/invalid_client/);
  await logIn(server, { clientId: "ours", clientSecret: "s3cret-s3cret" });
  expect(await connect(server.url).list()).toBe("a");
});

test("a browser that comes back from elsewhere, or with a refusal, logs nobody in", async () => {
  const { url } = await protectedServer();
  const { logins } = person();
  const server: RemoteMcpServer = { url, headers: {}, approve: "none", timeout: 20 };
  const begin = () =>
    beginLogin({ server, redirectUrl: BACK, fetch: logins.fetchFor(url), clock: logins.clock });
  const pending = await begin();
  await expect(pending.finish(new URLSearchParams({ code: "c", state: "other" }))).rejects.toThrow(
    /from another log-in/,
  );
  const denied = { state: pending.state, error: "access_denied", error_description: "The person\nsaid no." };
  await expect(pending.finish(new URLSearchParams(denied))).rejects.toThrow(
    "The authorization server did not log you in: access_denied The person said no..",
  );
  const other = await logInAs("ada", (await begin()).address.href, BACK);
  const code = other.searchParams.get("code") ?? "";
  // The code of one log-in does not count for another: it was asked for with another verifier.
  await expect(pending.finish(new URLSearchParams({ code, state: pending.state }))).rejects.toThrow();
});

test("a log-in counts for its address alone, and one that cannot be read needs a new one", async () => {
  const [server, moved] = [await protectedServer(), await protectedServer()];
  const { logIn, connect, folder } = person();
  await logIn(server);
  expect(await connect(moved.url).list()).toMatch(/^it needs a log-in/);
  writeFileSync(join(folder, "logins", "logins.key"), Buffer.alloc(32, 1));
  const later = person(folder);
  expect(await later.connect(server.url).list()).toBe(
    "its log-in cannot be read, because its key has changed; run deepagent-mcp login notes",
  );
  await later.logIn(server);
  expect(await later.connect(server.url).list()).toBe("a");
});

test("a server cannot send this client to addresses inside the network, or to a program", async () => {
  const { logins } = person();
  const begin = (metadata: object) => async (): Promise<unknown> => {
    const { url } = await sloppyHttp(({ request, response }) => {
      if (request.url?.includes("oauth-protected-resource"))
        return json(response, { resource: url, ...metadata });
      if (request.url?.includes("oauth-authorization-server"))
        return json(response, {
          issuer: new URL(url).origin,
          authorization_endpoint: "javascript:alert(1)",
          token_endpoint: `${new URL(url).origin}/token`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
        });
      return refuse(response, 401);
    });
    const server: RemoteMcpServer = { url, headers: {}, approve: "none", timeout: 20 };
    return beginLogin({ server, redirectUrl: BACK, fetch: logins.fetchFor(url), clock: logins.clock });
  };
  await expect(begin({ authorization_servers: ["http://169.254.169.254"] })).rejects.toThrow(
    /not on the public internet/,
  );
  await expect(begin({ authorization_servers: ["http://localhost:1"] })).rejects.toThrow(
    /not on the public internet/,
  );
  await expect(begin({})).rejects.toThrow();
});

test("a server without OAuth says so", async () => {
  const { logins } = person();
  const { url } = await sloppyHttp(({ response }) => refuse(response, 401));
  const server: RemoteMcpServer = { url, headers: {}, approve: "none", timeout: 20 };
  await expect(
    beginLogin({ server, redirectUrl: BACK, fetch: logins.fetchFor(url), clock: logins.clock }),
  ).rejects.toThrow(/describes no log-in by OAuth\. Set headers\.Authorization instead/);
});

const settings = (dataDir: string) => ({ dataDir, web: webSchema.parse({}) });
const LOGIN = { url: "https://a.example/", authorizationServer: "https://b.example/" };
const login = (token: string): Login => ({
  ...LOGIN,
  client: { client_id: "c" },
  tokens: { access_token: token, token_type: "Bearer" },
});

test("of many that find the lock of a process that ended, one at a time changes a log-in", async () => {
  const dataDir = filesIn();
  const lock = join(dataDir, "logins", "notes.lock");
  mkdirSync(join(dataDir, "logins"));
  let [inside, most] = [0, 0];
  for (let round = 0; round < 5; round += 1) {
    writeFileSync(lock, "");
    // The clock may have been set back since then.
    const time = round % 2 === 0 ? 1000 : Date.now() / 1000 + 3600;
    utimesSync(lock, time, time);
    const changes = Array.from({ length: 8 }, (_, number) =>
      loginsOf(settings(dataDir), {}).store.change("notes", async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inside -= 1;
        return login(`token ${number}`);
      }),
    );
    await Promise.all(changes);
  }
  expect(most).toBe(1);
});

test("first log-ins at several servers at once share one key in the keychain", async () => {
  const dataDir = filesIn();
  const { path } = fakeKeychain();
  const store = () => loginsOf(settings(dataDir), { PATH: path }).store;
  const names = ["one", "two", "three"];
  await Promise.all(names.map((name) => store().change(name, async () => login(name))));
  const read = await Promise.all(names.map((name) => store().read(name)));
  expect(read.map((one) => one?.tokens.access_token)).toEqual(names);
});
