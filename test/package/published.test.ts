import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { ROOT, runBin } from "../commands/built-bin.ts";

const manifest: { private?: boolean } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const texts = ["README.md", ...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith(".md"),
);

it("what people read names npx only when npm has the package", async () => {
  const check = [join(ROOT, "scripts/generate.mjs"), "--check"];
  expect(() => execFileSync(process.execPath, check, { stdio: "pipe" })).not.toThrow();
  const told = (await Promise.all([runBin(["--help"]), runBin(["install", "cursor", "--print"])])).map(
    ({ stdout }) => stdout,
  );
  for (const text of [...texts.map((name) => readFileSync(join(ROOT, name), "utf8")), ...told])
    if (manifest.private)
      expect(text).not.toMatch(
        /npx (-y )?deepagent-mcp|npm create deepagent|"npx",\s*"args":\s*\["-y",\s*"deepagent-mcp"/,
      );
});

it("every picture that people are shown is there, light and dark, and small", () => {
  const shown = texts.flatMap((name) =>
    [...readFileSync(join(ROOT, name), "utf8").matchAll(/(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)/g)]
      .map(([, html, markdown]) => html ?? markdown ?? "")
      .map((path) => join(dirname(name), path)),
  );
  const pictures = readdirSync(join(ROOT, "docs/pictures")).map((name) => `docs/pictures/${name}`);
  expect([...new Set(shown)].sort()).toEqual(pictures.sort());
  for (const path of pictures) expect(statSync(join(ROOT, path)).size).toBeLessThan(400_000);
  for (const path of shown.filter((path) => path.endsWith("-light.png"))) {
    expect(shown).toContain(path.replace("-light", "-dark"));
  }
});

it("the film of the terminal moves by itself, in light and dark, and loads nothing", () => {
  const film = readFileSync(join(ROOT, "docs/pictures/terminal.svg"), "utf8");
  // A person is asked, decides, and reads the answer.
  const wanted = ["agents at work", "wants to create", ">approve<", "Answer", "completed"];
  const moving = ["@keyframes", "prefers-color-scheme:dark", "prefers-reduced-motion:reduce"];
  expect([...wanted, ...moving].filter((text) => !film.includes(text))).toEqual([]);
  const foreign = /<script|<image|<foreignObject|url\(|href=|@import|\son\w+=|warning|\/tmp\/|\/home\//gi;
  expect(film.match(foreign)).toBeNull();
});
