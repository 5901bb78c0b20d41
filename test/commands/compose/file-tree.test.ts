import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveBackend, snapshotFiles } from "../../../src/backends/runtime.ts";
import { FileTree, memoryNamespace, skillFolders } from "../../../src/app/file-tree.ts";

/** Nothing is hidden or read-only. */
const ALL = { hide: [], readOnly: [], maxFileSizeMb: 10 };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tree-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function make(path: string, content?: string): string {
  const at = join(folder, path);
  mkdirSync(content === undefined ? at : join(at, ".."), { recursive: true });
  if (content !== undefined) writeFileSync(at, content);
  return at;
}

function tree(store = new InMemoryStore()): FileTree {
  return new FileTree(
    { workspace: make("project"), skills: [make("skills/team")], respectGitignore: true, files: ALL },
    store,
  );
}

describe("FileTree", () => {
  it("has workspace, memories and skills, with the thread's files around them", async () => {
    make("skills/team/review/SKILL.md", "Look twice.");
    const files = snapshotFiles();
    const backend = await resolveBackend(tree().withThread("local"), { files });
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
    const backend = tree().mounts("local");
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
    const backend = tree().mounts("local");
    expect((await backend.glob("**", "/workspace")).files?.map(({ path }) => path)).toEqual([
      "/workspace/.gitignore",
    ]);
    expect((await backend.read("/workspace/out/a.md")).content).toBe("built");
  });

  it("keeps each principal's memories apart", async () => {
    const files = tree();
    await files.mounts("alice").write("/memories/a.md", "hers");
    expect(await files.mounts("alice").read("/memories/a.md")).toMatchObject({ content: "hers" });
    expect(await files.mounts("bob").read("/memories/a.md")).toMatchObject({ code: "not_found" });
  });

  it("has no workspace without one", async () => {
    const backend = new FileTree(
      { skills: [], respectGitignore: false, files: ALL },
      new InMemoryStore(),
    ).mounts("local");
    expect((await backend.ls("/")).files?.map(({ path }) => path)).toEqual(["/memories/", "/skills/"]);
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

describe("skillFolders", () => {
  it("mounts folders by name, and gives a taken name a number", () => {
    const bundled = make("bundled");
    make("bundled/review");
    expect(skillFolders({ globalSkills: "/a/team", skills: ["/b/team", "/c/review"] }, bundled)).toEqual([
      ["/skills", bundled],
      ["/skills/team", "/a/team"],
      ["/skills/team-2", "/b/team"],
      ["/skills/review-2", "/c/review"],
    ]);
  });

  it("does without bundled skills", () => {
    expect(skillFolders({ skills: [] }, join(folder, "missing"))).toEqual([]);
  });
});
