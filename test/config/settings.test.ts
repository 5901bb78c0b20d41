import { expect, it } from "vitest";
import { settingInfo, ConfigSchema } from "../../src/config/schema.ts";
import { SETTINGS, envName, flagName } from "../../src/config/settings.ts";
import { closestName } from "../../src/core/options.ts";

/** Paths of all settings of the schema that are no groups. */
function schemaPaths(): string[] {
  const parsed = ConfigSchema.parse({ dataDir: "/data", storageS3: { bucket: "values" } });
  return Object.keys(ConfigSchema.shape).flatMap((key) => {
    const value: unknown = Reflect.get(parsed, key);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return [key];
    return Object.keys(value).map((inner) => `${key}.${inner}`);
  });
}

it("covers every setting of the schema that needs no structure", () => {
  const covered = new Set([
    ...SETTINGS.map(({ path }) => path),
    ..."$schema delivery.clients modelParameters subagents permissions http.tokens".split(" "),
    // Its own settings are among those above, but for the command.
    "web.search",
  ]);
  expect(schemaPaths().filter((path) => !covered.has(path))).toEqual([]);
});

it("gives every setting a flag and a variable of its own", () => {
  expect(new Set(SETTINGS.map(flagName)).size).toBe(SETTINGS.length);
  expect(new Set(SETTINGS.map(envName)).size).toBe(SETTINGS.length);
  for (const setting of SETTINGS) {
    expect(["text", "path", "paths", "list", "number", "boolean"]).toContain(setting.kind);
    expect(flagName(setting)).toMatch(/^[a-z]+(-[a-z0-9]+)*$/);
    expect(envName(setting)).toMatch(/^DEEPAGENT_[A-Z]+(_[A-Z0-9]+)*$/);
  }
});

it("finds a description or default for every setting that help shows", () => {
  for (const { path } of SETTINGS) {
    const { description, defaultText, choices } = settingInfo(path);
    expect([path, description ?? defaultText ?? choices?.join()]).not.toEqual([path, undefined]);
  }
  expect(settingInfo("approvals.write")).toMatchObject({
    defaultText: "workspace",
    choices: ["workspace", "all", "none"],
  });
});

it.each([
  ["modle", "model"],
  ["approval", "approvals"],
  ["xyz", undefined],
])("takes %s for %s", (name, meant) => {
  expect(closestName(name, ["model", "approvals", "http"])).toBe(meant);
});
