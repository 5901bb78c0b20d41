import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openWorld } from "../support/harness.ts";
import {
  enter,
  ENTRIES,
  hostileModel,
  hostilePerson,
  hostileSettings,
  textsFor,
} from "../support/hostile-text.ts";

const SIZE = 100_000;
/** A result tells what it has to in fewer characters. */
const LONGEST_RESULT = 500_000;

test.each(ENTRIES)("long text by $name ends in a clear text, and the server lives", async (entry) => {
  const folder = mkdtempSync(join(tmpdir(), "deepagent-hostile-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { think, say } = hostileModel();
  const { workspace, connect } = await openWorld("memory", { think, env: hostileSettings(folder) });
  const person = hostilePerson();
  const to = await connect("v2-modern", person.answer);
  for (const { name, text } of textsFor(entry, SIZE)) {
    person.expect(entry, text);
    const { raw, structured, isError } = await enter(entry, text, { workspace, folder, to, say });
    expect(["completed", "failed", undefined], name).toContain(structured["status"]);
    if (structured["status"] === "failed") expect(isError, name).toBe(true);
    const shown = JSON.stringify(raw);
    expect(shown.length, name).toBeLessThan(LONGEST_RESULT);
    expect(shown, name).not.toMatch(/unexpectedly|\\n\s+at |Maximum call stack/);
    expect((await to.listTools()).length, name).toBeGreaterThan(0);
  }
});
