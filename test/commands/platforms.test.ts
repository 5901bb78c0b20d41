// What differs on systems that the tests do not run on, tried here as far as it can be.
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { chooseExecutor } from "../../src/app/executors.ts";
import { signalTarget } from "../../src/backends/sandbox/process-runner.ts";
import { seatbeltProblem } from "../../src/backends/sandbox/seatbelt.ts";
import { hasDescriptorPaths, openRoot } from "../../src/backends/filesystem/handles.ts";
import { checkCommands } from "../../src/app/checks/commands.ts";
import { checkPlatform, platformLimits } from "../../src/app/checks/machine.ts";
import { openerOf } from "../../src/cli/browser.ts";
import { editorOf } from "../../src/cli/terminal/asker.ts";
import { raise } from "../../src/cli/terminal/keyboard.ts";
import { defaultWorkspace } from "../../src/config/paths.ts";
import { shellWord } from "../../src/config/program.ts";
import { ConfigSchema } from "../../src/config/schema.ts";

const ROOT = join(import.meta.dirname, "../..");

function folder(): string {
  const made = filesIn();
  return made;
}

const config = (execute: object = {}) =>
  ConfigSchema.parse({ dataDir: "/data", workspace: folder(), execute });

describe("commands", () => {
  it("are not run on Windows, but for those of a container or provider", async () => {
    const none = { kind: "none", reason: expect.stringContaining("WSL") };
    for (const execute of [{}, { mode: "sandbox" }, { sandbox: { provider: "local" } }])
      expect(await chooseExecutor(config(execute), "win32")).toEqual(none);
    expect(await chooseExecutor(config({ sandbox: { provider: "docker" } }), "win32")).toMatchObject({
      kind: "sandbox",
    });
  });

  it.skipIf(process.platform === "darwin")("run as the user on a macOS without its sandbox", async () => {
    const reason = "macOS did not start a command in its sandbox (sandbox-exec).";
    expect(await chooseExecutor(config(), "darwin")).toMatchObject({ kind: "host", reason });
    expect(await chooseExecutor(config({ mode: "sandbox" }), "darwin")).toEqual({ kind: "none", reason });
  });

  it("have the sandbox of their own system only", async () => {
    const linuxOnly = { kind: "none", reason: "Bubblewrap exists for Linux only." };
    const bubblewrap = { sandbox: { provider: "bubblewrap" } };
    expect(await chooseExecutor(config(bubblewrap), "darwin")).toEqual(linuxOnly);
    expect(await seatbeltProblem({ rootDir: folder() }, "linux")).toEqual({
      reason: "Seatbelt exists on macOS only.",
    });
  });

  it("are ended by their group, which Windows does not have", () => {
    expect(signalTarget(7, "darwin")).toBe(-7);
    expect(signalTarget(7, "win32")).toBe(7);
  });
});

describe("files", () => {
  it("are opened by descriptor on Linux only", () => {
    expect(hasDescriptorPaths("darwin")).toBe(false);
    expect(hasDescriptorPaths("win32")).toBe(false);
  });

  it("are not opened by a name that Windows takes for something else", () => {
    const root = folder();
    const handle = (platform: NodeJS.Platform) => openRoot(root, false, platform);
    for (const name of ["nul", "COM1.txt", "a.txt:stream", "a.txt.", "a "])
      expect(() => handle("win32").at(name)).toThrow(expect.objectContaining({ code: "EALIAS" }));
    expect(handle("win32").at("null.txt")).toBe(join(root, "null.txt"));
    expect(handle("darwin").at("nul")).toBe(join(root, "nul"));
    // Below the root too.
    mkdirSync(join(root, "below"));
    expect(() => handle("win32").openDirectory("below").at("nul")).toThrow();
  });

  it("are made safe from a power cut by their directory, which Windows cannot open", async () => {
    const root = folder();
    const [windows, mac] = [openRoot(root, false, "win32"), openRoot(root, false, "darwin")];
    await expect(mac.flush()).resolves.toBeUndefined();
    rmSync(root, { recursive: true });
    await expect(windows.flush()).resolves.toBeUndefined();
    await expect(mac.flush()).rejects.toThrow();
  });

  it("of Windows itself are no workspace", () => {
    const cwd = folder();
    const host = { cwd, home: "/home/me", env: { SystemRoot: cwd } };
    expect(defaultWorkspace({ ...host, platform: "win32" })).toBeUndefined();
    expect(defaultWorkspace({ ...host, platform: "darwin" })).toBe(cwd);
  });
});

describe("the terminal", () => {
  it("gives a signal to all that were started together, and Ctrl-C alone on Windows", () => {
    const given: unknown[] = [];
    const target = {
      kill: (...args: unknown[]) => given.push(["kill", ...args]) > 0,
      emit: (...args: unknown[]) => given.push(["emit", ...args]) > 0,
    };
    raise("SIGTSTP", "darwin", target);
    raise("SIGTSTP", "win32", target);
    raise("SIGINT", "win32", target);
    expect(given).toEqual([
      ["kill", 0, "SIGTSTP"],
      ["emit", "SIGINT"],
    ]);
  });

  it("edits with a program that is there", () => {
    expect(editorOf({}, "win32")).toEqual(["notepad"]);
    expect(editorOf({ EDITOR: " " }, "darwin")).toEqual(["vi"]);
    expect(editorOf({ EDITOR: "nano", VISUAL: "code --wait" }, "linux")).toEqual(["code", "--wait"]);
  });

  it("opens addresses with the program of the system", () => {
    expect(openerOf("linux")).toEqual(["xdg-open"]);
    expect(openerOf("darwin")).toEqual(["open"]);
    expect(openerOf("win32")[0]).toBe("rundll32");
  });

  it("quotes words as its shell reads them", () => {
    expect(shellWord("a b's", "linux")).toBe(`'a b'\\''s'`);
    expect(shellWord("C:/My Files", "win32")).toBe('"C:/My Files"');
    expect(shellWord("plain", "win32")).toBe("plain");
  });
});

describe("doctor", () => {
  it("says what is not isolated, and nothing on Linux", () => {
    expect(checkPlatform("linux")).toEqual(hasDescriptorPaths() ? [] : [expect.anything()]);
    for (const platform of ["darwin", "win32"] as const) {
      const [check, ...others] = checkPlatform(platform);
      expect(others).toEqual([]);
      expect(check?.ok).toBe(true);
      expect(check?.text).toContain("do not run on");
      for (const limit of platformLimits(platform).limits) expect(check?.text).toContain(limit);
    }
  });

  it("finds nothing wrong with a Windows that runs no commands, unless a sandbox is asked for", async () => {
    expect(await checkCommands(config(), "win32")).toMatchObject({
      ok: true,
      text: expect.stringMatching(/^are not run/),
    });
    expect(await checkCommands(config({ mode: "sandbox" }), "win32")).toMatchObject({ ok: false });
  });

  it("says the same as the documentation", () => {
    const text = readFileSync(join(ROOT, "docs/platforms.md"), "utf8");
    for (const platform of ["darwin", "win32"] as const)
      for (const limit of platformLimits(platform).limits) expect(text).toContain(limit);
  });
});
