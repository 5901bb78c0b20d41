import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { programFolders } from "../../../src/backends/sandbox/program-folders.ts";
import {
  seatbeltArguments,
  seatbeltProfile,
  seatbeltProblem,
} from "../../../src/backends/sandbox/seatbelt.ts";
import { SHELL } from "../../../src/backends/sandbox/shell-backend.ts";
import { folder } from "./support.ts";

describe("seatbeltProfile", () => {
  const profile = seatbeltProfile(["/Users/a/project"], ["/Users/a/.nvm"]);
  const rules = profile.split("\n");

  it("forbids everything that no rule allows, network above all", () => {
    expect(rules.slice(0, 2)).toEqual(["(version 1)", "(deny default)"]);
    expect(rules.at(-1)).toBe("(deny network*)");
    expect(profile).not.toMatch(/\(allow (default|network|mach|file-write\*\))/);
  });

  it("lets commands change the folder and nothing else", () => {
    const writes = rules.filter((rule) => rule.includes("file-write*"));
    expect(writes).toEqual(['(allow file-write* (subpath "/Users/a/project"))']);
    expect(rules).toContain("(deny file-write-setugid)");
  });

  it("lets commands read programs, the folder and what is given, and no homes", () => {
    const reads = rules.filter((rule) => rule.includes("file-read*")).join("\n");
    for (const path of ["/usr/bin", "/usr/lib", "/Users/a/project", "/Users/a/.nvm"])
      expect(reads).toContain(`(subpath "${path}")`);
    for (const path of ["/Users", "/Users/a", "/private", "/private/var", "/Library"])
      expect(reads).not.toContain(`(subpath "${path}")`);
  });

  it("lets commands read added packages as far as their programs need them", () => {
    for (const path of ["/usr", "/usr/local", "/opt", "/opt/homebrew"])
      expect(profile).not.toContain(`"${path}"`);
    const root = folder();
    for (const name of ["bin", "lib", "Cellar", "etc", "var"])
      mkdirSync(join(root, "homebrew", name), { recursive: true });
    const { mounts } = programFolders({ PATH: join(root, "homebrew/bin") }, "/work", "/home/x");
    const reads = seatbeltProfile(
      ["/work"],
      mounts.map(({ at }) => at),
    );
    for (const name of ["bin", "lib", "Cellar"]) expect(reads).toContain(`"${join(root, "homebrew", name)}"`);
    for (const name of ["etc", "var"]) expect(reads).not.toContain(`"${join(root, "homebrew", name)}"`);
    expect(reads).not.toContain(`"${join(root, "homebrew")}"`);
  });

  it("hides what lies below the folder, and keeps what is above it in place", () => {
    const hidden = seatbeltProfile(["/Users/a"], [], ["/Users/a/data"]).split("\n");
    expect(hidden.slice(-4)).toEqual([
      '(deny file-read* file-write* (subpath "/Users/a/data"))',
      '(deny file-write* (literal "/Users/a"))',
      '(deny file-write* (literal "/Users"))',
      '(deny file-write* (literal "/"))',
    ]);
  });

  it("lets commands change nothing in a fixed place, whatever the case of its name, and not move it", () => {
    const fixed = seatbeltProfile(["/a"], [], [], ["/a/.git/hooks", '/a/x" y/.mcp.json']).split("\n");
    expect(fixed.slice(-6)).toEqual([
      '(deny file-write* (regex #"^/[aA]/[.][gG][iI][tT]/[hH][oO][oO][kK][sS](/.*)?$"))',
      '(deny file-write* (regex #"^/[aA]/[xX].*.*[yY]/[.][mM][cC][pP][.][jJ][sS][oO][nN](/.*)?$"))',
      '(deny file-write* (literal "/a/.git"))',
      '(deny file-write* (literal "/a"))',
      '(deny file-write* (literal "/"))',
      '(deny file-write* (literal "/a/x\\" y"))',
    ]);
  });

  it("quotes paths so that none becomes a rule", () => {
    const path = '/a") (allow default) ("\\';
    const [rule] = seatbeltProfile([path], [])
      .split("\n")
      .filter((line) => line.includes("file-write*"));
    expect(rule).toBe('(allow file-write* (subpath "/a\\") (allow default) (\\"\\\\"))');
  });
});

it("seatbeltArguments passes command and directory as arguments of their own", () => {
  const args = seatbeltArguments("(profile)", "echo '$1'; ls", "/a b");
  expect(args.slice(0, 2)).toEqual(["-p", "(profile)"]);
  expect(args.slice(-3)).toEqual(["/a b", SHELL, "echo '$1'; ls"]);
});

describe.skipIf(process.platform === "darwin")("seatbeltProblem", () => {
  it("says where the sandbox exists", async () => {
    expect(await seatbeltProblem({ rootDir: "/" })).toEqual({ reason: "Seatbelt exists on macOS only." });
  });
});
