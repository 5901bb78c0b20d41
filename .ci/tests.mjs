/**
 * Runs the tests of `npm test` with the optional programs hidden from PATH, then those that were skipped for it with
 * the programs. The second list is made of what the first run skipped, by tag, so that it cannot go stale: a test that
 * needs a program and has no tag fails in the first run. `CI_LONG=1` adds the long tests, as `npm run test:long` does.
 *
 * A test that fails is tried once more: on a machine that others use, a process may be stopped for seconds at any
 * moment. Ends with the failures, the tests that passed only when they were tried again, each with its first error, and
 * the numbers of both. Arguments: those of the first run, such as a folder of tests.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";

/** Tags of the tests that need a program that is hidden first. */
const TAGS = ["bwrap", "busybox", "chromium", "podman"];
const HIDDEN = new Set([...TAGS, "rg", "chromium-browser", "google-chrome"]);
const MODE = process.env.CI_LONG === "1" ? "long" : "daily";
const FOLDER = mkdtempSync(join(tmpdir(), "deepagent-ci-"));

try {
  const first = run("without", process.argv.slice(2), { PATH: pathWithout() });
  const waiting = first.tests.filter(({ status, tags }) => status === "skipped" && waitsForProgram(tags));
  const files = [...new Set(waiting.map(({ file }) => file))];
  const second = files.length === 0 ? undefined : run("with", ["--tags-filter", TAGS.join(" or "), ...files]);
  report(first, second);
} finally {
  rmSync(FOLDER, { recursive: true });
}

function waitsForProgram(tags) {
  return TAGS.some((tag) => tags.includes(tag)) && (MODE === "long" || !tags.includes("long"));
}

/** Runs Vitest; gives what it says of each test. */
function run(name, args, env = {}) {
  console.log(`\n--- tests ${name} the optional programs`);
  const outputFile = join(FOLDER, `${name}.json`);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${outputFile}`];
  const vitest = [
    "node_modules/vitest/vitest.mjs",
    "run",
    `--mode=${MODE}`,
    "--retry=1",
    ...reporters,
    ...args,
  ];
  const { status } = spawnSync(process.execPath, vitest, {
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  const { testResults } = existsSync(outputFile)
    ? JSON.parse(readFileSync(outputFile, "utf8"))
    : { testResults: [] };
  const tests = testResults.flatMap(({ name: path, assertionResults }) =>
    assertionResults.map((test) => ({ ...test, file: relative(process.cwd(), path) })),
  );
  // A file that cannot be loaded has no tests.
  const broken = testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0);
  return { status, tests, broken: broken.map((file) => `${file.name}: ${file.message}`) };
}

/** What a test that was run a second time said then counts. */
function report(...runs) {
  const done = runs.filter((one) => one !== undefined);
  const last = new Map();
  const retried = [];
  for (const { tests } of done) {
    // Tests of one file may have the same name.
    const times = new Map();
    for (const test of tests) {
      const name = `${test.file} > ${test.fullName}`;
      // A test that passed has the errors of its first try.
      const [error] = test.failureMessages;
      if (test.status === "passed" && error !== undefined) retried.push({ name, error });
      times.set(name, (times.get(name) ?? 0) + 1);
      const key = `${name} ${times.get(name)}`;
      if (test.status !== "skipped" || !last.has(key)) last.set(key, { ...test, name });
    }
  }
  const count = (status) => [...last.values()].filter((test) => test.status === status).length;
  for (const { name, status, failureMessages } of last.values()) {
    if (status === "failed") console.log(` FAIL ${name}\n      ${String(failureMessages[0]).slice(0, 400)}`);
  }
  for (const broken of done.flatMap((one) => one.broken)) console.log(` FAIL ${broken.slice(0, 400)}`);
  for (const { name, error } of retried) console.log(` RETRY ${name}: ${inOneLine(error)}`);
  // Counted, too: what a test loads may change the exit code of its process.
  const hasFailed =
    count("failed") > 0 || done.some(({ status, broken }) => status !== 0 || broken.length > 0);
  if (hasFailed) process.exitCode = 1;
  console.log(`\n${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped\n`);
}

/** The message and our own stack frames, which .ci/run finds in its log. */
function inOneLine(error) {
  const [own] = error.split(/\n\s+at (?=.*node_modules)/);
  return own.replaceAll(/\s+/g, " ").slice(0, 400);
}

/** A folder with links to all programs in PATH that are not hidden; the first of a name counts, as in a shell. */
function pathWithout() {
  const folder = join(FOLDER, "bin");
  mkdirSync(folder);
  const linked = new Set(HIDDEN);
  for (const place of (process.env.PATH ?? "").split(delimiter)) {
    for (const name of existsSync(place) ? readdirSync(place) : []) {
      const program = join(place, name);
      // What an entry links to may be missing: PATH also names places whose links lead nowhere.
      if (linked.has(name) || !existsSync(program)) continue;
      linked.add(name);
      symlinkSync(program, join(folder, name));
    }
  }
  return folder;
}
