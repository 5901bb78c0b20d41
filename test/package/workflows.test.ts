// What runs on GitHub cannot be tried here; what it refers to can.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const read = (name: string): string => readFileSync(join(ROOT, name), "utf8");

const Permissions = z.record(z.string(), z.enum(["read", "write", "none"]));
const Step = z.strictObject({
  name: z.string().optional(),
  uses: z.string().optional(),
  with: z.record(z.string(), z.unknown()).optional(),
  run: z.string().optional(),
  env: z.record(z.string(), z.string()).optional(),
});
const Job = z.strictObject({
  "runs-on": z.string(),
  "timeout-minutes": z.number(),
  "continue-on-error": z.boolean().optional(),
  needs: z.string().optional(),
  environment: z.string().optional(),
  permissions: Permissions.optional(),
  strategy: z
    .strictObject({ "fail-fast": z.boolean(), matrix: z.record(z.string(), z.array(z.unknown())) })
    .optional(),
  steps: z.array(Step).min(1),
});
const Workflow = z.strictObject({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: Permissions,
  concurrency: z.record(z.string(), z.unknown()).optional(),
  jobs: z.record(z.string(), Job),
});
const Manifest = z.object({
  engines: z.object({ node: z.string() }),
  scripts: z.record(z.string(), z.string()),
});

const FOLDER = ".github/workflows";
const workflows = Object.fromEntries(
  readdirSync(join(ROOT, FOLDER)).map((name) => [name, Workflow.parse(parse(read(`${FOLDER}/${name}`)))]),
);
const manifest = Manifest.parse(JSON.parse(read("package.json")));
const jobsOf = (name: string) => Object.values(workflows[name]?.jobs ?? {});
const linesOf = (jobs: readonly z.output<typeof Job>[]): string =>
  jobs.flatMap(({ steps }) => steps.map(({ run = "" }) => run)).join("\n");

it.each(Object.keys(workflows))("%s refers to what exists", (name) => {
  const lines = linesOf(jobsOf(name));
  const scripts = [...lines.matchAll(/npm (?:run )?(test|[\w:-]+)( --if-present)?/g)]
    .filter(([whole]) => whole.startsWith("npm run") || whole === "npm test")
    .filter(([, , optional]) => optional === undefined)
    .map(([, script = ""]) => script);
  expect(scripts.filter((script) => manifest.scripts[script] === undefined)).toEqual([]);
  const files = [...lines.matchAll(/node ((?:scripts|\.ci)\/\S+)/g)].map(([, file = ""]) => file);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  expect(scripts.length + files.length).toBeGreaterThan(0);
});

it.each(Object.keys(workflows))("%s has few rights, and takes actions by commit", (name) => {
  const { permissions, jobs } = workflows[name] ?? { permissions: {}, jobs: {} };
  const granted = [permissions, ...Object.values(jobs).map((job) => job.permissions ?? {})].flatMap((all) =>
    Object.entries(all).flatMap(([right, access]) => (access === "write" ? [right] : [])),
  );
  const needed: Record<string, string[]> = {
    "audit.yml": ["issues"],
    "release.yml": ["contents", "id-token"],
  };
  expect(granted.sort()).toEqual(needed[name] ?? []);
  for (const { uses } of Object.values(jobs).flatMap(({ steps }) => steps))
    if (uses !== undefined) expect(uses).toMatch(/^actions\/[\w-]+@[0-9a-f]{40}$/);
});

describe("the tests", () => {
  it("run on every version of Node that is supported, and on three systems", () => {
    const [, oldest] = /^>=(\d+)$/.exec(manifest.engines.node) ?? [];
    const { linux, others } = workflows["ci.yml"]?.jobs ?? {};
    expect(linux?.strategy?.matrix["node"]).toEqual([Number(oldest), 22, 24]);
    expect(others?.strategy?.matrix["os"]).toEqual([
      expect.stringMatching(/^macos-/),
      expect.stringMatching(/^windows-/),
    ]);
  });

  it("have the programs that .ci/run installs", () => {
    const wanted = [...read(".ci/run").matchAll(/packages\+=\((\S+)\)/g)].map(([, name = ""]) => name);
    expect(wanted).toContain("bubblewrap");
    const installed = linesOf([workflows["ci.yml"]?.jobs["linux"]].filter((job) => job !== undefined));
    // The machines of GitHub have a Chrome; Ubuntu's chromium is a snap.
    expect(wanted.filter((name) => name !== "chromium" && !installed.includes(` ${name}`))).toEqual([]);
  });
});

describe("the text of a release", () => {
  const section = (version: string) =>
    spawnSync(process.execPath, [join(ROOT, "scripts/changelog-section.mjs"), version], { encoding: "utf8" });

  it("is the section of its version", () => {
    const versions = [...read("CHANGELOG.md").matchAll(/^## \[(.+?)\]/gm)].map(([, version = ""]) => version);
    const { stdout, status } = section(versions.find((version) => section(version).status === 0) ?? "");
    expect(status).toBe(0);
    expect(read("CHANGELOG.md")).toContain(stdout.trim());
    expect(stdout).not.toMatch(/^## /m);
  });

  it("fails for a version without one", () => {
    expect(section("0.0.99")).toMatchObject({ status: 1, stdout: "" });
  });
});

it("the tag of a release is compared with the version of the package", () => {
  const script = linesOf(jobsOf("release.yml"))
    .split("\n")
    .find((line) => line.startsWith("test "));
  const { version }: { version: string } = JSON.parse(read("package.json"));
  const compare = (tag: string): void => {
    execFileSync("sh", ["-c", script ?? "exit 1"], {
      cwd: ROOT,
      env: { ...process.env, GITHUB_REF_NAME: tag },
    });
  };
  expect(() => compare(`v${version}`)).not.toThrow();
  expect(() => compare("v0.0.99")).toThrow();
});

it("a release has the starter of projects, after the package that those need", () => {
  const [pack = ""] = /npm pack .*/.exec(linesOf(jobsOf("release.yml"))) ?? [];
  expect(pack).toMatch(/ release \.\/build\/package \.\/create > release\/packages\.txt$/);
  expect(linesOf(jobsOf("release.yml"))).toContain("for name in $(cat release/packages.txt); do npm publish");
});

it("the audit runs every day, and opens an issue for what it finds", () => {
  const audit = workflows["audit.yml"];
  const { schedule } = z.object({ schedule: z.array(z.object({ cron: z.string() })) }).parse(audit?.on);
  expect(schedule.map(({ cron }) => cron)).toEqual([expect.stringMatching(/^\d+ \d+ \* \* \*$/)]);
  const lines = linesOf(jobsOf("audit.yml"));
  expect(lines).toMatch(/node scripts\/audit\.mjs > findings\.md/);
  expect(lines).toMatch(/gh issue create .*--body-file findings\.md/);
  expect(jobsOf("audit.yml").map(({ permissions }) => permissions?.["issues"])).toEqual(["write"]);
  expect(read("scripts/audit.mjs")).toMatch(/npm.*audit/s);
});
