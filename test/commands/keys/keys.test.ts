import { expect, test } from "vitest";
import { program } from "../../support/harness-stdio.ts";
import { fakeKeychain, type FakeKeychain } from "../../support/fake-keychain.ts";
import { openTerminal } from "../../support/pseudo-terminal.ts";
import { cleanEnv, runBin, type Outcome } from "../built-bin.ts";

const KEY = "sk-ant-typed-0123456789";

const keys = async (
  keychain: FakeKeychain,
  args: readonly string[],
  { input = "", env = {} }: { input?: string; env?: Record<string, string> } = {},
): Promise<Outcome> =>
  runBin(["keys", ...args], {
    program: await program(),
    input,
    env: { PATH: keychain.path, HOME: "/nowhere", ...env },
  });

const onLinux = test.runIf(process.platform === "linux");

onLinux("a key is kept from standard input, listed by its name, changed and forgotten", async () => {
  const keychain = fakeKeychain({ MISTRAL_API_KEY: "other" });
  const kept = await keys(keychain, ["set", "ANTHROPIC_API_KEY"], { input: `${KEY}x\n` });
  expect(kept).toMatchObject({ code: 0, stderr: "" });
  const changed = await keys(keychain, ["set", "ANTHROPIC_API_KEY"], { input: KEY });
  expect(keychain.secrets()).toEqual({ ANTHROPIC_API_KEY: KEY, MISTRAL_API_KEY: "other" });
  const listed = await keys(keychain, ["list"]);
  expect(listed.stdout).toBe("ANTHROPIC_API_KEY\nMISTRAL_API_KEY\n");
  const gone = await keys(keychain, ["forget", "ANTHROPIC_API_KEY"]);
  expect(gone).toEqual({
    code: 0,
    stdout: "ANTHROPIC_API_KEY is not in the keychain any more.\n",
    stderr: "",
  });
  expect(keychain.secrets()).toEqual({ MISTRAL_API_KEY: "other" });
  expect(await keys(fakeKeychain(), ["forget", "ANTHROPIC_API_KEY"])).toMatchObject({ code: 0, stderr: "" });
  expect((await keys(fakeKeychain(), [])).stdout).toContain("The keychain has no key.");
  expect(JSON.stringify([kept, changed, listed, gone])).not.toMatch(/sk-|other"/);
  expect(JSON.stringify(keychain.calls())).not.toContain("sk-");
});

onLinux("a key of the environment is used before that of the keychain, which is told", async () => {
  const keychain = fakeKeychain();
  const env = { OPENAI_API_KEY: "sk-of-the-environment" };
  const { stdout } = await keys(keychain, ["set", "OPENAI_API_KEY"], { input: KEY, env });
  expect(stdout).toContain("the environment here has another, which is used instead");
  expect(stdout).not.toContain("sk-");
});

onLinux("a key that is typed is not shown; Enter and Ctrl-C keep none", { tags: "python3" }, async () => {
  const keychain = fakeKeychain();
  const script = await program();
  const open = () =>
    openTerminal([process.execPath, script, "keys", "set", "GROQ_API_KEY"], {
      columns: 80,
      cwd: "/",
      env: { ...cleanEnv(), PATH: keychain.path },
    });
  for (const keys of ["\r", "sk-half\u0003"]) {
    const left = open();
    await left.until(/GROQ_API_KEY \(not shown\)/);
    left.type(keys);
    expect(await left.exited).toBe(1);
    expect(left.output()).toContain("nothing was changed");
    expect(left.output()).not.toContain("sk-");
  }
  expect(keychain.secrets()).toEqual({});
  const terminal = open();
  await terminal.until(/GROQ_API_KEY \(not shown\)/);
  terminal.type("two words\r");
  await terminal.until(/A key consists of/);
  terminal.type(`${KEY}\r`);
  expect(await terminal.exited).toBe(0);
  expect(terminal.output()).toContain("GROQ_API_KEY is in the keychain.");
  expect(terminal.output()).not.toMatch(/sk-|two words/);
  expect(keychain.secrets()).toEqual({ GROQ_API_KEY: KEY });
});

onLinux.each([
  [["set", "ANTHROPIC_API_KEY", KEY], "Don't pass a key as an argument"],
  [["set", `ANTHROPIC_API_KEY=${KEY}`], "Don't pass a key as an argument"],
  [["set", KEY], "Say whose key it is: ANTHROPIC_API_KEY"],
  [["set", "ANTROPIC_API_KEY"], "Did you mean ANTHROPIC_API_KEY?"],
  [["set", "HOME"], "No model or search provider has its key in HOME. Known: ANTHROPIC_API_KEY"],
  [["set"], "keys has three actions"],
  [["show", "ANTHROPIC_API_KEY"], "keys has three actions"],
])("%j is refused, and nothing is asked of the keychain", async (args, message) => {
  const keychain = fakeKeychain();
  const { code, stdout, stderr } = await keys(keychain, args, { input: KEY });
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
  expect(stderr).not.toContain(KEY);
  expect(keychain.calls()).toEqual([]);
});

onLinux.each([
  ["two words", "A key consists of"],
  ["", "There was no key to keep"],
])("%j is no key", async (input, message) => {
  const keychain = fakeKeychain();
  const { code, stderr } = await keys(keychain, ["set", "XAI_API_KEY"], { input });
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) });
  expect(keychain.secrets()).toEqual({});
});

onLinux.each([[["list"]], [["set", "XAI_API_KEY"]], [["forget", "XAI_API_KEY"]]])(
  "%j without a keychain names other places",
  async (args) => {
    const keychain = fakeKeychain();
    const without: Record<string, string>[] = [{ PATH: "/nowhere" }, { KEYCHAIN_FAILS: "1" }];
    for (const env of without) {
      const { code, stdout, stderr } = await keys(keychain, args, { input: KEY, env });
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(
        /^deepagent-mcp: The keychain .*environment of the server.* init asks where\.\n$/,
      );
      expect(stderr).not.toContain("sk-");
    }
  },
);
