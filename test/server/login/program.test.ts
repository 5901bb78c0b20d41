/** The program: people are named at a terminal, and a server that was killed keeps what they granted. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { Secret, TOTP } from "otpauth";
import { expect, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { openHome } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";
import { startProgram } from "../../support/harness-process.ts";
import { program } from "../../support/harness-stdio.ts";
import { type Owner, PASSWORD, flow, refresh, registered, status } from "./support.ts";

test("a person is added, logs in, keeps access after a kill, and loses it by a command", async () => {
  const home = await openHome({ think: play({}) });
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}`;
  const bin = await program();
  const command = async (args: string[], input = "") => {
    const child = spawn(process.execPath, [bin, ...args], { env: home.env });
    child.stdin.end(input);
    const [out, errors] = [text(child.stdout), text(child.stderr)];
    const [code] = (await once(child, "close")) as [number];
    return { code, out: await out, errors: await errors };
  };
  expect((await command(["owner"])).out).toContain("Nobody can log in yet");
  expect((await command(["owner", "add", "alice"], "short\n")).errors).toContain("at least 10 characters");
  expect((await command(["owner", "add", "alice", "password"])).code).toBe(2);
  expect((await command(["owner", "add", "al ice"], PASSWORD)).code).toBe(2);
  const added = await command(["owner", "add", "alice"], `${PASSWORD}\n`);
  const [address = ""] = /otpauth:\S+/.exec(added.out) ?? [];
  const secret = Secret.fromBase32(new URL(address).searchParams.get("secret") ?? "");
  const owner: Owner = { name: "alice", totp: new TOTP({ secret }) };
  expect((await command(["owner", "add", "alice"], PASSWORD)).errors).toContain("already");
  expect((await command(["owner"])).out).toMatch(/^alice {2}added 20/);

  const args = ["serve", "--http", "--owner", "--port", String(port)];
  const serve = async () => {
    const child = await startProgram(args, home.env);
    await expect.poll(() => child.errors(), { timeout: 60_000 }).toContain("Serving MCP at");
    return child;
  };
  const first = await serve();
  const site = { issuer, url: `${issuer}/mcp` } as Parameters<typeof flow>[0];
  const client_id = await registered(site);
  const granted = await flow(site, { client_id, owner });
  expect(granted.status).toBe(200);
  expect((await status(site, granted.access_token)).status).not.toBe(401);
  // The build leaves out notices of the library, which the bundle of tests has.
  const lines = first.errors().split("\n");
  for (const line of lines.filter((one) => one !== "" && !/^(?:Serving|oidc-provider) /.test(one)))
    expect(() => JSON.parse(line) as unknown).not.toThrow();
  first.process.kill("SIGKILL");
  await first.exited;

  await serve();
  expect((await status(site, granted.access_token)).status).not.toBe(401);
  const renewed = await refresh(site, client_id, granted.refresh_token);
  expect(renewed.status).toBe(200);
  const listed = await command(["access", "list"]);
  expect(listed.out).toMatch(
    /client {2}run read to a program on your computer \(localhost:3999\), .*: Test client/,
  );
  expect((await command(["owner", "logout", "alice"])).out).toContain("logged out everywhere");
  expect((await status(site, renewed.body["access_token"] ?? "")).status).toBe(401);
  expect((await command(["access", "list"])).out).toContain("There are no clients");
}, 240_000);

test("without an address that clients use, a server beyond this machine does not start", async () => {
  const home = await openHome({ think: play({}) });
  const child = await startProgram(["serve", "--http", "--owner", "--host", "0.0.0.0"], home.env);
  expect(await child.exited).toMatchObject({ code: 2 });
  expect(child.errors()).toContain("--owner needs http.publicUrl");
});
