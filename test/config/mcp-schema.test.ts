import { describe, expect, it } from "vitest";
import { ConfigSchema } from "../../src/config/schema.ts";

const read = (mcpServers: unknown) => ConfigSchema.safeParse({ dataDir: "/data", mcpServers });

describe("mcpServers", () => {
  it("takes what clients take, with our defaults", () => {
    const servers = {
      files: { command: "npx", args: ["-y", "server"], env: { KEY: "${KEY}" } },
      far: { type: "http", url: "https://example.com/mcp", headers: { Authorization: "Bearer ${TOKEN}" } },
    };
    expect(read(servers).data?.mcpServers).toEqual({
      files: { ...servers.files, approve: "writes", timeout: 120, notes: [] },
      far: {
        url: servers.far.url,
        headers: servers.far.headers,
        approve: "writes",
        timeout: 120,
        notes: [],
      },
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
    expect(Object.keys(found)).toEqual(["off", "switched-off", "cline", "old", "new"]);
    expect([found["off"]?.disabled, found["switched-off"]?.disabled]).toEqual([true, true]);
    expect(found["cline"]).toMatchObject({ alwaysAllow: ["look"], disabledTools: ["drop"] });
    expect(found["old"]).toMatchObject({ alwaysAllow: ["look"], isOlder: true });
    expect(found["new"]).not.toHaveProperty("isOlder");
  });
});
