import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type BubblewrapOptions,
  openBubblewrap,
  probeBubblewrap,
} from "../../../src/backends/sandbox/bubblewrap.ts";
import { folder } from "./support.ts";

describe("openBubblewrap", () => {
  it("says what to install when the program is missing", async () => {
    const opened = await openBubblewrap({ rootDir: folder(), bwrap: "no-such-bwrap" });
    expect(opened).toMatchObject({ ok: false, reason: expect.stringContaining("install") });
    expect(opened).not.toHaveProperty("isTransient");
  });

  it("says when the program is there and does not work", async () => {
    const script =
      '[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit 0\necho "bwrap: No permissions" >&2; exit 1';
    const opened = await openBubblewrap(fakeBwrap(script));
    expect(opened).toMatchObject({ ok: false, reason: expect.stringContaining("bwrap: No permissions") });
    expect(opened).not.toHaveProperty("isTransient");
    const mute = await openBubblewrap(fakeBwrap("echo broken >&2; exit 1"));
    expect(mute).toMatchObject({ ok: false, reason: expect.stringContaining("broken") });
    expect(mute).not.toMatchObject({ reason: expect.stringContaining("missing") });
  });

  it.each([
    ["its version", "exec sleep 60"],
    ["a command", '[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit 0\nexec sleep 60'],
  ])("knows nothing yet when %s takes too long", async (_what, script) => {
    const probe = await probeBubblewrap(fakeBwrap(script), { timeoutMs: 300 });
    expect(probe).toMatchObject({
      ok: false,
      isTransient: true,
      reason: expect.stringContaining("within 0.3 s"),
    });
  });
});

function fakeBwrap(script: string): BubblewrapOptions {
  const rootDir = folder();
  const bwrap = join(rootDir, "bwrap");
  writeFileSync(bwrap, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return { rootDir, bwrap };
}
