import { describe, expect, it } from "vitest";
import { ConfigSchema } from "../../src/config/schema.ts";

const read = (mcpServers: unknown) => ConfigSchema.safeParse({ dataDir: "/data", mcpServers });
const problems = (mcpServers: unknown) => read(mcpServers).error?.issues.map(({ message }) => message);

describe("mcpServers", () => {
  it("takes what clients take, with our defaults", () => {
    const servers = {
      files: { command: "npx", args: ["-y", "server"], env: { KEY: "${KEY}" } },
      far: { type: "http", url: "https://example.com/mcp", headers: { Authorization: "Bearer ${TOKEN}" } },
    };
    expect(read(servers).data?.mcpServers).toEqual({
      files: { ...servers.files, approve: "writes", timeout: 120 },
      far: { url: servers.far.url, headers: servers.far.headers, approve: "writes", timeout: 120 },
    });
    expect(read(undefined).data?.mcpServers).toEqual({});
  });

  it("takes what single clients add: what is switched off, and what runs unasked", () => {
    const servers = {
      off: { command: "a", disabled: true },
      "switched off": { command: "a", disabled: true },
      cline: { command: "a", disabled: false, autoApprove: ["look"], disabledTools: ["drop"] },
      old: { type: "sse", url: "https://example.com/sse", alwaysAllow: ["look"] },
      new: { type: "streamableHttp", url: "https://example.com/mcp" },
    };
    const found = read(servers).data?.mcpServers ?? {};
    expect(Object.keys(found)).toEqual(["cline", "old", "new"]);
    expect(found["cline"]).toMatchObject({ alwaysAllow: ["look"], disabledTools: ["drop"] });
    expect(found["old"]).toMatchObject({ alwaysAllow: ["look"], isOlder: true });
    expect(found["new"]).not.toHaveProperty("isOlder");
  });

  it.each([
    [{}, "needs either a command or a url"],
    [{ command: "a", url: "http://b" }, "needs either a command or a url"],
    [{ command: "a", headers: {} }, "has a command; headers and oauth are for a url"],
    [{ url: "http://b", env: {} }, "has a url; args, env and cwd are for a command"],
    [{ type: "stdio", url: "http://b" }, "has type stdio; stdio goes with a command, the others with a url"],
    [{ command: "a", cwd: "relative" }, "must be an absolute path"],
  ])("explains what is wrong with %j", (server, message) => {
    expect(problems({ one: server })).toEqual([message]);
  });

  it.each(["", "a__b", "a_", "_a", "a b", "a.b", "a".repeat(33)])("refuses the name %j", (name) => {
    expect(problems({ [name]: { command: "a" } })).toHaveLength(1);
  });

  it.each(["a", "A-1", "git_hub", "a".repeat(32)])("takes the name %j", (name) => {
    expect(problems({ [name]: { command: "a" } })).toBeUndefined();
  });
});
