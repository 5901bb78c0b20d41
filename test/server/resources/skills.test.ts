import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { MemoryStore } from "@langchain/langgraph-checkpoint";
import { expect, describe, test } from "vitest";
import { z } from "zod";
import { FileTree } from "../../../src/app/file-tree.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { cleanUpWith, databaseFile, openServer } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { depsFor, inMemory } from "../support.ts";

const BUNDLED = ["change-review", "codebase-research", "failure-analysis", "report-writing"];
const manifest = (name: string, more = ""): string =>
  `---\nname: ${name}\ndescription: How to ${name}.\n${more}---\n\n# ${name}\n`;

const TEAM: Record<string, string | Uint8Array> = {
  "deploy/SKILL.md": `\uFEFF${manifest("deploy", "metadata:\n  version: 2.1.0\nowner: [ops, dev]\n")}`,
  "deploy/references/ROLL BACK.md": "back\r\n",
  "deploy/assets/logo.png": new Uint8Array([137, 80, 78, 71, 0, 255]),
  "deploy/.env": "TOKEN=secret",
  "misnamed/SKILL.md": manifest("other"),
  "linked/SKILL.md": manifest("linked"),
  "notes/readme.md": "no skill",
};

/** A server with the bundled skills, a folder of skills and a folder that is one skill. */
function open() {
  const root = dirname(databaseFile());
  const write = (path: string, content: string | Uint8Array): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  for (const [path, content] of Object.entries(TEAM)) write(`team/${path}`, content);
  write("solo/SKILL.md", manifest("solo"));
  write("outside.md", "not for clients");
  symlinkSync(join(root, "outside.md"), join(root, "team/linked/outside.md"));
  const tree = new FileTree(
    {
      workspace: undefined,
      skills: [join(root, "team"), join(root, "solo")],
      dataDir: "/nowhere",
      proposals: { maxMegabytes: 1 },
      respectGitignore: false,
      files: { hide: [], readOnly: [], maxFileSizeMb: 10 },
    },
    () => new MemoryStore(),
  );
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "hello" })) },
    { tree: (principal) => Promise.resolve(tree.mounts({ principal })) },
  );
  const log: string[] = [];
  const deps = {
    ...depsFor(service),
    logger: createLogger("warn", (line) => void log.push(line)),
  };
  return { deps, root, write, log };
}

async function connectHost(deps: ReturnType<typeof open>["deps"], era: "legacy" | "modern") {
  const mode = era === "modern" ? ({ pin: "2026-07-28" } as const) : "legacy";
  const client = new Client({ name: "host", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(inMemory(deps).modern());
  cleanUpWith(() => client.close());
  expect(client.getProtocolEra()).toBe(era);
  return { client, skills: new SkillsClient(client) };
}

const failure = (asking: Promise<unknown>): Promise<unknown> =>
  asking.then(
    () => "answered",
    (error: unknown) => error,
  );

describe.each(["legacy", "modern"] as const)("%s", (era) => {
  test("lists bundled and configured skills, whose files all verify", async () => {
    const { deps, log } = open();
    const { skills } = await connectHost(deps, era);
    expect(skills.supported && skills.directoryRead).toBe(true);
    const { skills: entries, ...cache } = await skills.list();
    expect(entries.map(({ uri }) => uri)).toEqual([
      ...BUNDLED.map((name) => `skill://${name}/SKILL.md`),
      "skill://solo/SKILL.md",
      "skill://team/deploy/SKILL.md",
    ]);
    expect(cache).toMatchObject(era === "modern" ? { ttlMs: 60_000, cacheScope: "private" } : {});
    for (const entry of entries) {
      if (entry.resources === "dynamic") throw new Error("every skill here has files");
      for (const { uri } of entry.resources)
        expect(await skills.read(entry, uri)).toMatchObject({ verified: true });
    }
    const deploy = entries.at(-1);
    expect(deploy?.frontmatter).toEqual({
      name: "deploy",
      description: "How to deploy.",
      metadata: { version: "2.1.0" },
      owner: ["ops", "dev"],
    });
    expect(deploy?.resources).toMatchObject([
      { uri: "skill://team/deploy/SKILL.md" },
      { uri: "skill://team/deploy/assets/logo.png", size: 6 },
      { uri: "skill://team/deploy/references/ROLL%20BACK.md", size: 6 },
    ]);
    expect(log.join("")).toContain("misnamed");
    expect(log.join("")).toContain("linked");
  });

  test("a skill that changes is read anew", async () => {
    const { deps, write } = open();
    const { skills } = await connectHost(deps, era);
    const uri = "skill://solo/SKILL.md";
    const { skill: before } = await skills.get(uri);
    write("solo/SKILL.md", manifest("solo", "license: MIT\n"));
    expect(await failure(skills.read(before))).toMatchObject({
      reason: expect.stringMatching(/size|digest/) as string,
    });
    const { skill: after } = await skills.get(uri);
    expect((await skills.read(after)).frontmatter).toMatchObject({ license: "MIT" });
  });

  test("shows the folders of a skill", async () => {
    const { deps } = open();
    const { skills } = await connectHost(deps, era);
    const { resources } = await skills.readDirectory("skill://team/deploy");
    expect(resources).toMatchObject([
      { uri: "skill://team/deploy/SKILL.md", name: "SKILL.md", mimeType: "text/markdown" },
      { uri: "skill://team/deploy/assets", name: "assets", mimeType: "inode/directory" },
      { uri: "skill://team/deploy/references", mimeType: "inode/directory" },
    ]);
    const asFile = skills.readDirectory("skill://team/deploy/SKILL.md");
    expect(await failure(asFile)).toMatchObject({ code: -32602 });
    const { resources: inner } = await skills.readDirectory("skill://team/deploy/references");
    expect(inner).toMatchObject([
      { uri: "skill://team/deploy/references/ROLL%20BACK.md", name: "ROLL BACK.md" },
    ]);
  });

  test("names skills among the resources, their template and its completion", async () => {
    const { deps } = open();
    const { client } = await connectHost(deps, era);
    const { resources } = await client.listResources();
    expect(resources.find(({ uri }) => uri === "skill://solo/SKILL.md")).toMatchObject({
      name: "solo",
      description: "How to solo.",
      mimeType: "text/markdown",
    });
    const { resourceTemplates } = await client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain("skill://{+path}");
    const { completion } = await client.complete({
      ref: { type: "ref/resource", uri: "skill://{+path}" },
      argument: { name: "path", value: "team/d" },
    });
    expect(completion.values).toEqual(["team/deploy/SKILL.md"]);
  });

  test.each([
    "skill://nothing/SKILL.md",
    "skill://team/misnamed/SKILL.md",
    "skill://team/notes/readme.md",
    "skill://team/deploy/none.md",
    "skill://team/deploy/.env",
    "skill://team/deploy",
    "skill://team/linked/outside.md",
    "skill://team/deploy/%2e%2e/%2e%2e/%2e%2e/outside.md",
    "skill://team/deploy/..%2F..%2F..%2Foutside.md",
    "skill://team/deploy/%zz",
  ])("does not serve %s", async (uri) => {
    const { deps, root } = open();
    const { client, skills } = await connectHost(deps, era);
    for (const error of [await failure(client.readResource({ uri })), await failure(skills.get(uri))]) {
      expect(error).toMatchObject({ code: -32602 });
      expect(String(error)).not.toContain(root);
    }
    if (uri !== "skill://team/deploy") {
      expect(await failure(skills.readDirectory(uri))).toMatchObject({ code: -32602 });
    }
  });

  test("lists in pages, and refuses a cursor that is none", async () => {
    const { deps, write } = open();
    const names = Array.from({ length: 120 }, (_, index) => `skill-${String(index).padStart(3, "0")}`);
    for (const name of names) write(`team/${name}/SKILL.md`, manifest(name));
    const { skills } = await connectHost(deps, era);
    const { skills: all } = await skills.list();
    expect(all.map(({ frontmatter }) => frontmatter.name)).toEqual([...BUNDLED, "solo", "deploy", ...names]);
    expect(await failure(skills.list({ cursor: "nonsense" }))).toMatchObject({ code: -32602 });
  });
});

test("a client of the first SDK lists and reads skills as well", async () => {
  const { deps } = open();
  const client = new FirstClient({ name: "host", version: "1" });
  await client.connect(inMemory(deps).first());
  cleanUpWith(() => client.close());
  const listing = z.object({ skills: z.array(z.object({ uri: z.string() })) });
  const { skills } = await client.request({ method: "skills/list", params: {} }, listing);
  expect(skills).toHaveLength(2 + BUNDLED.length);
  const { contents } = await client.readResource({ uri: "skill://solo/SKILL.md" });
  expect(contents[0]).toMatchObject({ text: manifest("solo") });
});

test("a skill with more files than clients have to take is left out", async () => {
  const { deps, write, log } = open();
  for (let count = 0; count < 600; count++) write(`solo/data/${count}.txt`, "x");
  const { skills } = await connectHost(deps, "modern");
  const { skills: entries } = await skills.list();
  expect(entries.map(({ uri }) => uri)).not.toContain("skill://solo/SKILL.md");
  expect(log.join("")).toContain("more than 512 files");
});
