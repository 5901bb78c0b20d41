import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { program } from "../../support/harness-stdio.ts";
import { fakeKeychain } from "../../support/fake-keychain.ts";
import { startWireServer } from "../../support/wire-server.ts";
import { INITIALIZE, cleanEnv, runBin } from "../built-bin.ts";
import { terminalHome } from "../terminal-home.ts";

test.runIf(process.platform === "linux")(
  "a run has the key of its model from the keychain, and no output has it",
  async () => {
    const server = await startWireServer(() => ({ text: "Hello from the model." }));
    onTestFinished(() => server.close());
    const { ANTHROPIC_API_KEY: key = "", ANTHROPIC_BASE_URL: url = "" } = server.env("anthropic");
    const keychain = fakeKeychain({ ANTHROPIC_API_KEY: key });
    const home = terminalHome();
    const settings = { DEEPAGENT_MODEL: "", DEEPAGENT_LOG_LEVEL: "debug", ANTHROPIC_BASE_URL: url };
    const env = { ...home.env, ...settings, PATH: keychain.path };
    const options = { cwd: home.workspace, env, program: await program() };
    const run = await runBin(["run", "say hi", "--json"], options);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain("Hello from the model.");
    expect(server.refusals).toEqual([]);
    const checked = await runBin(["doctor"], options);
    expect(checked.stdout).toMatch(/✔ Model +anthropic:[^✔]*✔ Keys +ANTHROPIC_API_KEY, from the keychain\n/);
    expect(JSON.stringify([run, checked])).not.toContain(key);
    expect(keychain.calls().map(([action]) => action)).toEqual(["lookup", "lookup"]);
    // What only looks needs no key, and neither does a model without one, or one whose key is in the environment.
    await runBin(["runs", "list"], options);
    await runBin(["run", "list every TODO", "--yes", "--model", "offline"], options);
    await runBin(["run", "say hi"], { ...options, env: { ...env, ANTHROPIC_API_KEY: key } });
    expect(keychain.calls()).toHaveLength(2);
  },
);

test.runIf(process.platform === "linux")(
  "the handshake does not wait for a keychain that hangs",
  async () => {
    const home = terminalHome();
    const hanging = { DEEPAGENT_MODEL: "", PATH: fakeKeychain().path, KEYCHAIN_HANGS: "1" };
    const env = { ...cleanEnv(), ...home.env, ...hanging };
    const child = spawn(process.execPath, [await program()], { cwd: home.workspace, env });
    onTestFinished(() => void child.kill("SIGKILL"));
    child.stdin.write(INITIALIZE);
    const [answer] = await once(child.stdout, "data");
    expect(String(answer)).toContain('"serverInfo"');
  },
);
