import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT, runBin } from "../commands/built-bin.ts";

const manifest: { private?: boolean; scripts: object } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);
const texts = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);

it("what people read names npx only when npm has the package", async () => {
  const check = [join(ROOT, "scripts/readme-start.mjs"), "--check"];
  expect(() => execFileSync(process.execPath, check, { stdio: "pipe" })).not.toThrow();
  const told = (await Promise.all([runBin(["--help"]), runBin(["install", "cursor", "--print"])])).map(
    ({ stdout }) => stdout,
  );
  for (const text of [...texts.map((name) => readFileSync(join(ROOT, name), "utf8")), ...told])
    if (manifest.private)
      expect(text).not.toMatch(/npx (-y )?deepagent-mcp|"npx",\s*"args":\s*\["-y",\s*"deepagent-mcp"/);
});

it("every command of the README is one that the program knows", async () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const lines = [
    ...readme.matchAll(/(?:^|`)(?:node \S+deepagent-mcp\.js|deepagent-mcp) ([a-z][^`#\n]*)/gm),
  ].map(([, words = ""]) => words.trim());
  expect(lines.length).toBeGreaterThan(8);
  for (const line of new Set(lines.map((words) => words.split(" ")[0] ?? ""))) {
    expect(await runBin([line, "--help"])).toMatchObject({ code: 0, stderr: "" });
  }
  for (const [, script = ""] of readme.matchAll(/npm run (?:--silent )?([\w:-]+)/g))
    expect(manifest.scripts).toHaveProperty(script);
});
