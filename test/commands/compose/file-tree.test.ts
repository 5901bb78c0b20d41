import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { beforeEach, describe, expect, it } from "vitest";
import { filesIn } from "../../support/files-in.ts";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import {
  FileTree,
  ServerMounts,
  linkedSkills,
  memoryNamespace,
  skillFolders,
} from "../../../src/app/file-tree.ts";
import { ownedPath } from "../../../src/app/owned-places.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";

/** Nothing is hidden or read-only. */
const ALL = { hide: [] as string[], readOnly: [] as string[], maxFileSizeMb: 10 };

const PLACES = { dataDir: "/nowhere", proposals: { maxMegabytes: 1 } };

let folder: string;
beforeEach(() => void (folder = filesIn()));

function make(path: string, content?: string): string {
  const at = join(folder, path);
  mkdirSync(content === undefined ? at : join(at, ".."), { recursive: true });
  if (content !== undefined) writeFileSync(at, content);
  return at;
}

function tree(workspaceFolder?: string, rules: Partial<typeof ALL> = {}): FileTree {
  const folders = { workspace: make("project"), workspaceFolder, skills: [make("skills/team")] };
  const config = { ...folders, ...PLACES, respectGitignore: true, files: { ...ALL, ...rules } };
  const store = new InMemoryStore();
  return new FileTree(config, () => store);
}

describe("FileTree", () => {
  it("has workspace, memories and skills, with the thread's files around them", async () => {
    make("skills/team/review/SKILL.md", "Look twice.");
    const files = snapshotFiles();
    const backend = await resolveBackend(tree().withThread({ principal: "local" }), { files });
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual([
      "/memories/",
      "/skills/",
      "/workspace/",
    ]);
    expect(await backend.write("/workspace/a.md", "on disk")).toMatchObject({ path: "/workspace/a.md" });
    expect(readFileSync(join(folder, "project/a.md"), "utf8")).toBe("on disk");
    expect((await backend.write("/notes.md", "in the thread")).filesUpdate).toHaveProperty(["/notes.md"]);
    expect(files.get("/notes.md")).toMatchObject({ content: "in the thread" });
    expect(await backend.read("/skills/team/review/SKILL.md")).toMatchObject({ content: "Look twice." });
    expect(await backend.write("/skills/team/new.md", "")).toMatchObject({ code: "permission_denied" });
    expect(await backend.write("/skills/new.md", "")).toMatchObject({ code: "permission_denied" });
  });

  it("takes nothing outside the folders when there is no thread", async () => {
    const backend = tree().mounts({ principal: "local" });
    expect(await backend.write("/notes.md", "lost")).toMatchObject({ code: "permission_denied" });
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual([
      "/memories/",
      "/skills/",
      "/workspace/",
    ]);
  });

  it("passes over what .gitignore files say, when that is configured", async () => {
    make("project/.gitignore", "out/");
    make("project/out/a.md", "built");
    const backend = tree().mounts({ principal: "local" });
    expect((await backend.glob("**", "/workspace")).files?.map(({ path }) => path)).toEqual([
      "/workspace/.gitignore",
    ]);
    expect((await backend.read("/workspace/out/a.md")).content).toBe("built");
  });

  it("keeps links of the workspace from leading around the rules for files", async () => {
    make("project/.env", "KEY=1");
    make("project/vendor/v.txt", "vendor");
    symlinkSync(".env", join(folder, "project/env.txt"));
    symlinkSync("vendor", join(folder, "project/v"));
    const files = tree(undefined, { hide: ["sensitive"], readOnly: ["/vendor"] });
    const owner = { principal: "local" };
    const runtime = { files: snapshotFiles() };
    // The page and the resources read the mounts, and agents the tree with their thread.
    for (const backend of [files.mounts(owner), await resolveBackend(files.withThread(owner), runtime)]) {
      expect(await backend.read("/workspace/env.txt")).toEqual({
        code: "not_found",
        error: "File '/workspace/env.txt' not found",
      });
      expect((await backend.ls("/workspace")).files?.map(({ path }) => path)).toEqual([
        "/workspace/v/",
        "/workspace/vendor/",
      ]);
      expect((await backend.read("/workspace/v/v.txt")).content).toBe("vendor");
      expect(await backend.write("/workspace/v/new.txt", "")).toMatchObject({ code: "permission_denied" });
    }
  });

  it("keeps each principal's memories apart", async () => {
    const files = tree();
    await files.mounts({ principal: "alice" }).write("/memories/a.md", "hers");
    expect(await files.mounts({ principal: "alice" }).read("/memories/a.md")).toMatchObject({
      content: "hers",
    });
    expect(await files.mounts({ principal: "bob" }).read("/memories/a.md")).toMatchObject({
      code: "not_found",
    });
  });

  it("gives each principal a workspace of its own, when that is configured", async () => {
    const files = tree("teams/{principal}");
    await files.mounts({ principal: "alice" }).write("/workspace/a.md", "hers");
    expect(readFileSync(join(folder, "project/teams/alice/a.md"), "utf8")).toBe("hers");
    const others = files.mounts({ principal: "bob", threadId: "thr_1" });
    expect(await others.read("/workspace/a.md")).toMatchObject({ code: "not_found" });
    expect(await others.read("/workspace/../alice/a.md")).toMatchObject({ code: "invalid_path" });
  });

  it("gives each thread a workspace of its own, which nobody has without the thread", async () => {
    const files = tree("{principal}/{thread}");
    await files.mounts({ principal: "alice", threadId: "thr_1" }).write("/workspace/a.md", "hers");
    expect(readFileSync(join(folder, "project/alice/thr_1/a.md"), "utf8")).toBe("hers");
    const shared = files.mounts({ principal: "alice" });
    expect((await shared.ls("/")).files?.map(({ path }) => path)).toEqual(["/memories/", "/skills/"]);
  });

  it("says why a folder cannot be made, without its place on the host", async () => {
    const files = tree("{principal}/deep");
    make("project/alice", "a file in its place");
    const open = () => files.mounts({ principal: "alice" });
    expect(open).toThrow("The folder of workspaceFolder cannot be created below the workspace (ENOTDIR).");
  });

  it("has no workspace without one", async () => {
    const backend = new FileTree(
      { skills: [], ...PLACES, respectGitignore: false, files: ALL },
      () => new InMemoryStore(),
    ).mounts({ principal: "local" });
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/memories/", "/skills/"]);
  });
});

describe("ownedPath", () => {
  it("is a folder of its own for every principal, wherever the files are", () => {
    const digest = ownedPath("{principal}", { principal: "Alice" }) ?? "";
    const principals = ["alice", "Alice", "ALICE", "auth0|1", "auth0:1", "a/b", ..."..|.|| |~1|é".split("|")];
    principals.push("e\u0301", "x".repeat(65), "x".repeat(64), digest, "alice/../bob", "a\0b", "con{thread}");
    const folders = principals.map((principal) => ownedPath("{principal}", { principal }) ?? "");
    expect(new Set(folders.map((name) => name.toLowerCase())).size).toBe(principals.length);
    for (const name of folders) expect(name).toMatch(/^[a-z0-9_+~-][a-z0-9_.@+-]*$/);
    expect(folders[0]).toBe("alice");
  });

  it("needs a thread where the template has one", () => {
    const owner = { principal: "alice", threadId: "thr_1" };
    expect(ownedPath("a/{principal}/{thread}", owner)).toBe("a/alice/thr_1");
    expect(ownedPath("a/{principal}/{thread}", { principal: "alice" })).toBeUndefined();
  });

  const wrong = "shared /{principal} ../{principal} a/../{thread} a//{thread} {principal}/ {other}";
  it.each(wrong.split(" "))("is not configured by %s", (workspaceFolder) => {
    expect(ConfigSchema.safeParse({ dataDir: "/data", workspaceFolder }).success).toBe(false);
  });
});

describe("ServerMounts", () => {
  it("fills in whose the files are, and has none of a thread without one", () => {
    const { mounts } = ConfigSchema.parse({
      dataDir: "/data",
      mounts: {
        "/all/": { s3: { bucket: "files" } },
        "/own/": { s3: { bucket: "files", prefix: "x/{principal}" } },
        "/run/": { postgres: { prefix: "/{thread}" } },
      },
    });
    const served = new ServerMounts(mounts, {});
    expect(Object.keys(served.of({ principal: "alice" }))).toEqual(["/all/", "/own/"]);
    const alices = served.of({ principal: "alice", threadId: "thr_1" });
    const bobs = served.of({ principal: "bob", threadId: "thr_1" });
    expect(alices["/all/"]).toBe(bobs["/all/"]);
    expect(alices["/own/"]).not.toBe(bobs["/own/"]);
    expect(alices["/run/"]).toBe(bobs["/run/"]);
    expect(served.paths).toEqual(["/all/", "/own/", "/run/"]);
  });
});

describe("memoryNamespace", () => {
  it("is a name of its own for every principal, in the alphabet of namespaces", () => {
    const principals = ["local", "auth0|1", "auth0:1", "sha256:x", "ä", "a.b@c", "", " "];
    const owners = principals.map((principal) => memoryNamespace(principal)[1] ?? "");
    expect(new Set(owners).size).toBe(principals.length);
    for (const owner of owners) expect(owner).toMatch(/^[A-Za-z0-9_.@+:~-]+$/);
    expect(owners[0]).toBe("local");
  });
});

const NOBODY = { principal: "nobody" };

describe("skillFolders", () => {
  it("mounts folders by name, and gives a taken name a number", () => {
    const bundled = make("bundled");
    make("bundled/review");
    expect(
      skillFolders({ globalSkills: "/a/team", skills: ["/b/team", "/c/review"] }, NOBODY, bundled),
    ).toEqual([
      ["/skills", bundled],
      ["/skills/team", "/a/team"],
      ["/skills/team-2", "/b/team"],
      ["/skills/review-2", "/c/review"],
    ]);
  });

  it("does without bundled skills", () => {
    expect(skillFolders({ skills: [] }, NOBODY, join(folder, "missing"))).toEqual([]);
  });
});

describe("linkedSkills", () => {
  const skill = (path: string): string => join(make(`${path}/SKILL.md`, "Look."), "..");

  it("mounts skills that links of configured folders lead to, also for commands", async () => {
    const [skills, far] = [make("home/.claude/skills"), skill("home/.agents/skills/far")];
    symlinkSync("../../.agents/skills/far", join(skills, "far"));
    symlinkSync(make("home/secrets"), join(skills, "secrets"));
    symlinkSync(skill("data/hidden"), join(skills, "hidden"));
    symlinkSync(join(folder, "gone"), join(skills, "gone"));
    const privatePaths = [join(folder, "data")];
    const config = { workspace: make("project"), skills: [skills], privatePaths };
    expect(linkedSkills(config, skillFolders(config, NOBODY))).toEqual([["/skills/skills/far", far]]);
    const files = { ...ALL };
    const mounts = new FileTree({ ...config, ...PLACES, respectGitignore: true, files }).mounts({
      principal: "local",
    });
    expect(await mounts.read("/skills/skills/far/SKILL.md")).toMatchObject({ content: "Look." });
    expect(await mounts.write("/skills/skills/far/new.md", "")).toMatchObject({ code: "permission_denied" });
    const listed = (await mounts.ls("/skills/skills")).files ?? [];
    expect(listed.filter(({ path }) => path.includes("far"))).toMatchObject([
      { path: "/skills/skills/far/", is_dir: true },
    ]);
  });

  it("leaves out the links of a folder in the workspace", () => {
    const workspace = make("project");
    symlinkSync(skill("elsewhere/x"), join(make("project/skills"), "x"));
    const own = { workspace, skills: [join(workspace, "skills")] };
    expect(linkedSkills(own, skillFolders(own, NOBODY))).toEqual([]);
  });
});
