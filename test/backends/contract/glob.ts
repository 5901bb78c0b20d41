import { expect } from "vitest";
import { climbingGlob, directoryNotFound, notDirectory } from "../../../src/backends/errors.ts";
import { type Bench, type Suite, pathsOf } from "./contract.ts";

const TREE = ["/.env", "/a.md", "/b.ts", "/src/.hidden/x.ts", "/src/a-b.ts", "/src/a/c.ts", "/src/d.md"];

async function plant({ put }: Bench): Promise<void> {
  for (const path of TREE) await put(path, path);
}

async function expectFound(bench: Bench, pattern: string, path: string, expected: string[]): Promise<void> {
  const result = await bench.backend.glob(pattern, bench.at(path));
  expect(pathsOf(result), pattern).toEqual(expected.map((found) => bench.at(found)));
}

export const globSuite: Suite = {
  subject: "glob",
  cases: {
    "a pattern without slash matches in the directory itself": async (bench) => {
      await plant(bench);
      await expectFound(bench, "*.ts", "/", ["/b.ts"]);
      await expectFound(bench, "*", "/", ["/.env", "/a.md", "/b.ts"]);
      await expectFound(bench, "*.ts", "/src", ["/src/a-b.ts"]);
    },
    "two stars match at any depth, sorted by path": async (bench) => {
      await plant(bench);
      await expectFound(bench, "**", "/", TREE);
      await expectFound(bench, "**/*.ts", "/", ["/b.ts", "/src/.hidden/x.ts", "/src/a-b.ts", "/src/a/c.ts"]);
      await expectFound(bench, "src/**/*.ts", "/", ["/src/.hidden/x.ts", "/src/a-b.ts", "/src/a/c.ts"]);
      await expectFound(bench, "**/a/*", "/", ["/src/a/c.ts"]);
    },
    "sets, alternatives, single characters and negation": async (bench) => {
      await plant(bench);
      await expectFound(bench, "[ab].{md,ts}", "/", ["/a.md", "/b.ts"]);
      await expectFound(bench, "[!a].*", "/", ["/b.ts"]);
      await expectFound(bench, "?.md", "/src", ["/src/d.md"]);
      await expectFound(bench, "{src/*.md,*.md}", "/", ["/a.md", "/src/d.md"]);
      await expectFound(bench, "!**/*.ts", "/", ["/.env", "/a.md", "/src/d.md"]);
    },
    "gives files, never directories": async (bench) => {
      await plant(bench);
      await expectFound(bench, "src", "/", []);
      const all = (await bench.backend.glob("**", bench.at("/"))).files ?? [];
      expect(all.every((file) => file.is_dir !== true && !file.path.endsWith("/"))).toBe(true);
    },
    "nothing matching is an empty result": async (bench) => {
      await plant(bench);
      await expectFound(bench, "*.py", "/", []);
    },
    "a wrong pattern is an error value": async (bench) => {
      for (const pattern of ["", "[a", "{a", "a\\", "x".repeat(2000), "{a,b}".repeat(20)]) {
        expect(await bench.backend.glob(pattern, bench.at("/")), pattern).toMatchObject({
          code: "invalid_pattern",
          error: expect.stringMatching(/^Invalid glob pattern: /),
        });
      }
    },
    "a climbing pattern is refused, and an absolute one too or taken from the root": async (bench) => {
      for (const pattern of ["../x", "a/../../x", "{..,a}/x", "~/x"]) {
        expect(await bench.backend.glob(pattern, bench.at("/"))).toEqual(climbingGlob(pattern));
      }
      const { code, files = [] } = await bench.backend.glob("/etc/*", bench.at("/"));
      expect([undefined, "invalid_pattern"]).toContain(code);
      expect(files).toEqual([]);
    },
    "a missing directory and a file are told": async (bench) => {
      await plant(bench);
      const { backend, at } = bench;
      expect(await backend.glob("*", at("/nowhere"))).toEqual(directoryNotFound(at("/nowhere")));
      expect(await backend.glob("*", at("/a.md"))).toEqual(notDirectory(at("/a.md")));
    },
  },
};
