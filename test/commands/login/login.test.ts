import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { logInAs, protectedServer } from "../../support/oauth-server.ts";
import { terminalHome } from "../terminal-home.ts";

test("a person logs in at a server with the browser, and out again", async () => {
  const { url, grants } = await protectedServer();
  const home = terminalHome();
  const config = join(home.workspace, "config.json");
  const servers = {
    notes: { url },
    local: { command: "node" },
    keyed: { url, headers: { authorization: "x" } },
  };
  writeFileSync(config, JSON.stringify({ mcpServers: servers }));
  const withConfig = ["--config", config];

  const wrong = await home.bin("login", "note", ...withConfig);
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toContain('mcpServers has no server "note". Did you mean notes?');
  expect((await home.bin("login", "local", ...withConfig)).stderr).toContain("started by a command");
  expect((await home.bin("login", "keyed", ...withConfig)).stderr).toContain("headers.Authorization");
  expect((await home.bin("login", ...withConfig)).stderr).toContain("Servers with a url: notes, keyed.");

  const child = await home.start("login", "notes", "--no-browser", ...withConfig);
  let said = "";
  const address = await new Promise<string>((resolve) => {
    child.stdout.on("data", (chunk) => {
      said += String(chunk);
      const found = /^http\S+$/m.exec(said)?.[0];
      if (found !== undefined) resolve(found);
    });
  });
  const redirect = new URL(address).searchParams.get("redirect_uri") ?? "";
  expect(redirect).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  // A page of another site does not end the log-in.
  expect((await fetch(`${redirect}?state=other&code=x`)).status).toBe(404);
  const back = await logInAs("ada", address, redirect);
  const page = await fetch(back);
  expect(await page.text()).toContain("You can close this tab");
  const [code] = await new Promise<unknown[]>((resolve) => child.once("close", (...end) => resolve(end)));
  expect(code).toBe(0);
  expect(said).toMatch(/You are logged in at notes\. notes: running, 1 tool, 1 of them with approval\n/);

  const doctor = await home.bin("doctor", "--offline", ...withConfig);
  expect(doctor.stdout).toContain("notes: running, 1 tool");
  expect(grants()).toBe(1);
  expect((await home.bin("logout", "notes", ...withConfig)).stdout).toBe("You are logged out at notes.\n");
  expect((await home.bin("logout", "notes", ...withConfig)).stdout).toBe(
    "You were not logged in at notes.\n",
  );
  expect((await home.bin("doctor", "--offline", ...withConfig)).stdout).toMatch(
    /notes: not running, no tools; it needs a log-in or headers\.Authorization \(HTTP 401\); run deepagent-mcp login notes/,
  );
});
