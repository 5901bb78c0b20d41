import {
  type Stats,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { attempts } from "../../support/effort.ts";

/** Few names, so that links often lead to something and rules often fit. */
const NAMES = ["a", "b", "secret", "locked", "k.key"];
const RULES = { denyGlobs: ["secret", "/a/*.key"], denyPrefixes: ["/locked", "/b/locked"] };

const name = fc.constantFrom(...NAMES);
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
const target = fc.oneof(
  fc.tuple(fc.nat(2), path).map(([ups, to]) => "../".repeat(ups) + to),
  fc.constantFrom(".", "..", "a/..", "secret/../b"),
);

type Entry = { kind: "file"; at: string } | { kind: "link"; at: string; target: string; isAbsolute: boolean };

const entry: fc.Arbitrary<Entry> = fc.oneof(
  fc.record({ kind: fc.constant("file" as const), at: path }),
  fc.record({ kind: fc.constant("link" as const), at: path, target, isAbsolute: fc.boolean() }),
);
const change = fc.record({
  method: fc.constantFrom("write", "overwrite", "edit", "delete", "upload"),
  at: path,
});
const world = fc.record({
  entries: fc.array(entry, { maxLength: 14 }),
  asked: fc.array(path, { minLength: 1, maxLength: 8 }),
  changes: fc.array(change, { maxLength: 6 }),
});

/** Makes what is possible of the entries: a name that is taken, or below a file, is left out. */
function build(root: string, entries: readonly Entry[]): void {
  for (const each of entries) {
    const at = join(root, each.at);
    try {
      mkdirSync(dirname(at), { recursive: true });
      // Through a link, it could be made outside.
      if (!`${realpathSync(dirname(at))}/`.startsWith(`${root}/`)) continue;
      if (each.kind === "file") writeFileSync(at, `marker of ${each.at}`, { flag: "wx" });
      else symlinkSync(each.isAbsolute ? join(root, each.target) : each.target, at);
    } catch {
      continue;
    }
  }
}

const isHiddenPath = (at: string): boolean =>
  at.split("/").includes("secret") || /^\/a\/[^/]*\.key(\/|$)/.test(at);
const isLockedPath = (at: string): boolean => /^\/(b\/)?locked(\/|$)/.test(at);

/** The path from the root that the system itself gives; undefined if it is outside or nowhere. */
function placeOf(root: string, at: string): string | undefined {
  try {
    const below = relative(root, realpathSync(join(root, at)));
    return below === ".." || below.startsWith("../") ? undefined : `/${below}`;
  } catch {
    return undefined;
  }
}

/** Judges paths by the rules, which hold for the targets too where the paths that they name are links by now. */
function rulesIn(root: string): { isHidden(at: string): boolean; isLocked(at: string): boolean } {
  const named = ["/locked", "/b/locked", "/a"].flatMap((at) => {
    const real = placeOf(root, at);
    return real === undefined || real === at ? [] : [{ at, real: real === "/" ? "" : real }];
  });
  const namesOf = (path: string): string[] => [
    path,
    ...named.flatMap(({ at, real }) =>
      `${path}/`.startsWith(`${real}/`) ? [at + path.slice(real.length).replace(/^\/$/, "")] : [],
    ),
  ];
  return {
    isHidden: (path) => namesOf(path).some(isHiddenPath),
    isLocked: (path) => namesOf(path).some(isLockedPath),
  };
}

/** All entries that no link leads to, as paths. */
function entriesOf(root: string, at = ""): string[] {
  return readdirSync(join(root, at), { withFileTypes: true }).flatMap((each) => {
    const below = `${at}/${each.name}`;
    return each.isDirectory() ? [below, ...entriesOf(root, below)] : [below];
  });
}

/** The content of the files at some paths. */
const filesAt = (root: string, isMeant: (at: string) => boolean): Record<string, string> =>
  Object.fromEntries(
    entriesOf(root)
      .filter((at) => lstatSync(join(root, at)).isFile() && isMeant(at))
      .map((at) => [at, readFileSync(join(root, at), "utf8")]),
  );

async function withWorld(use: (root: string, backend: PolicyBackend) => Promise<void>): Promise<void> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "deepagent-links-")));
  try {
    const disk = new FilesystemBackend({ rootDir: root, virtualMode: true });
    await use(root, new PolicyBackend(disk, RULES));
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** What a path leads to, if the agent may see that: by the path, the entry's own place, and its target. */
function seen(root: string, at: string): "file" | "directory" | undefined {
  const { isHidden } = rulesIn(root);
  const place = placeOf(root, at);
  if (place === undefined || [at, ownPlace(root, at), place].some(isHidden)) return undefined;
  const stats = statSync(join(root, place));
  return stats.isFile() ? "file" : stats.isDirectory() ? "directory" : undefined;
}

const ownPlace = (root: string, at: string): string => {
  const folder = placeOf(root, dirname(at)) ?? dirname(at);
  return at === "/" ? at : join(folder, basename(at));
};

it("what can be read, listed and found is what no rule hides, by name and by place", async () => {
  await fc.assert(
    fc.asyncProperty(world, ({ entries, asked }) =>
      withWorld(async (root, backend) => {
        build(root, entries);
        for (const at of ["/", ...asked.map((each) => `/${each}`)]) {
          const kind = seen(root, at);
          const place = placeOf(root, at);
          const { content, code } = await backend.read(at);
          const text = kind === "file" ? readFileSync(join(root, place ?? ""), "utf8") : undefined;
          expect(content, at).toBe(text);
          const isSecretLink = kind === undefined && place !== undefined && !isHiddenPath(at);
          if (isSecretLink) expect(code, at).toBe("not_found");
          if (kind === undefined) expect((await backend.grep("marker", at)).matches, at).toBeUndefined();
          if (kind === "directory") await expectSearches(root, at, backend);
        }
      }),
    ),
    attempts(200),
  );
});

/** A listing has the entries of the real directory, and searches go on in it without following links. */
async function expectSearches(root: string, at: string, backend: PolicyBackend): Promise<void> {
  const place = placeOf(root, at) ?? "";
  const { isHidden } = rulesIn(root);
  const links = new FilesystemBackend({ rootDir: root, virtualMode: true });
  const isShown = (below: string): boolean => {
    const own = join(place, below);
    return ![join(at, below), own, links.followLinks(own) ?? own].some(isHidden);
  };
  const shown = (paths: readonly string[]): string[] =>
    paths
      .filter(isShown)
      .map((below) => join(at, below))
      .sort();
  const listed = (await backend.ls(at)).files?.map((each) => each.path.replace(/\/$/, ""));
  expect(listed?.sort(), `ls ${at}`).toEqual(shown(readdirSync(join(root, place))));
  const below = entriesOf(join(root, place));
  const isFile = (each: string): boolean => lstatSync(join(root, place, each)).isFile();
  const found = (await backend.grep("marker", at)).matches?.map((each) => each.path);
  expect(found?.sort(), `grep ${at}`).toEqual(shown(below.filter(isFile)));
  const leadsToFile = (each: string): boolean => isFile(each) || seen(root, join(place, each)) === "file";
  const entries = below.filter((each) => !statIfThere(join(root, place, each))?.isDirectory());
  const globbed = (await backend.glob("**", at)).files?.map((each) => each.path);
  expect(globbed?.sort(), `glob ${at}`).toEqual(shown(entries.filter(leadsToFile)));
}

const statIfThere = (at: string): Stats | undefined => {
  try {
    return statSync(at);
  } catch {
    return undefined;
  }
};

it("no change reaches a hidden or read-only file, whatever path it takes", async () => {
  await fc.assert(
    fc.asyncProperty(world, ({ entries, changes }) =>
      withWorld(async (root, backend) => {
        build(root, entries);
        for (const { method, at: given } of changes) {
          const at = `/${given}`;
          const { isHidden, isLocked } = rulesIn(root);
          const isProtected = (each: string): boolean => isHidden(each) || isLocked(each);
          const before = filesAt(root, isProtected);
          if (method === "edit") await backend.edit(at, "marker", "changed");
          else if (method === "delete") await backend.delete(at);
          else if (method === "upload") await backend.uploadFiles([[at, new TextEncoder().encode("new")]]);
          else await backend.write(at, "new", { mode: method === "write" ? "create" : "overwrite" });
          expect(filesAt(root, isProtected), `${method} ${at}`).toEqual(before);
        }
      }),
    ),
    attempts(400),
  );
});
