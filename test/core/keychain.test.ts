import { describe, expect, test } from "vitest";
import { forgetSecret, keepSecret, readSecret } from "../../src/core/keychain.ts";
import { fakeKeychain } from "../support/fake-keychain.ts";

const NAME = "MISTRAL_API_KEY";
const KEY = "sk-o'\"$(x)\\;secret";

describe.each(["darwin", "linux"] as const)("the keychain of %s", (platform) => {
  test("gives a key as it was kept, which is never among the arguments of a program", async () => {
    const keychain = fakeKeychain();
    const options = { platform, env: { PATH: keychain.path } };
    expect(await readSecret(NAME, options)).toEqual({ ok: true, secret: undefined });
    expect(await keepSecret(NAME, "earlier", options)).toBe(undefined);
    expect(await keepSecret(NAME, KEY, options)).toBe(undefined);
    expect(keychain.secrets()).toEqual({ [NAME]: KEY });
    expect(await readSecret(NAME, options)).toEqual({ ok: true, secret: KEY });
    expect(JSON.stringify(keychain.calls())).not.toMatch(/secret"|earlier|736563726574/);
    expect(keychain.calls().flat()).toContain("deepagent-mcp");
  });

  test("forgets a key, and is content where it has none", async () => {
    const keychain = fakeKeychain({ [NAME]: KEY, OPENAI_API_KEY: "other" });
    const options = { platform, env: { PATH: keychain.path } };
    expect(await forgetSecret(NAME, options)).toBe(undefined);
    expect(keychain.secrets()).toEqual({ OPENAI_API_KEY: "other" });
    expect(await forgetSecret(NAME, options)).toBe(undefined);
  });

  test("that fails is told without what its program wrote", async () => {
    const env = { PATH: fakeKeychain().path, KEYCHAIN_FAILS: "1" };
    const kept = await readSecret(NAME, { platform, env });
    expect(kept).toEqual({ ok: false, problem: expect.stringContaining("could not be used") });
    expect(JSON.stringify(kept)).not.toContain("sk-secret");
    expect(await keepSecret(NAME, KEY, { platform, env })).toMatch(/could not be used/);
    expect(await forgetSecret(NAME, { platform, env })).toMatch(/could not be used/);
  });

  test("that does not answer is given up, and one whose program is missing is told", async () => {
    const env = { PATH: fakeKeychain().path, KEYCHAIN_HANGS: "1" };
    expect(await readSecret(NAME, { platform, env, timeout: 300 })).toEqual({
      ok: false,
      problem: expect.stringContaining("did not answer in time"),
    });
    expect(await readSecret(NAME, { platform, env: { PATH: "/nowhere" } })).toEqual({
      ok: false,
      problem: expect.stringMatching(/needs (security|secret-tool), which is not installed/),
    });
  });

  test.each(["two words", "line\nbreak", "ключ", ""])("refuses to keep %j", async (secret) => {
    const keychain = fakeKeychain();
    const options = { platform, env: { PATH: keychain.path } };
    expect(await keepSecret(NAME, secret, options)).toMatch(/without blanks/);
    expect(keychain.calls()).toEqual([]);
  });
});

test("on Windows there is none, which is told", async () => {
  const options = { platform: "win32", env: {} } as const;
  expect(await readSecret(NAME, options)).toEqual({
    ok: false,
    problem: expect.stringContaining("no keychain"),
  });
  expect(await keepSecret(NAME, KEY, options)).toContain("no keychain");
  expect(await forgetSecret(NAME, options)).toContain("no keychain");
});
