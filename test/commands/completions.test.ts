import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.ts";
import { COMPLETION_SCRIPTS, complete } from "../../src/cli/completions.ts";
import { BIN, cleanEnv, runBin } from "./built-bin.ts";

const wordsOf = async (...words: string[]): Promise<string | readonly string[]> => {
  const runs = async () => [{ word: "last" }, { word: "run_Xy3k" }];
  const found = await complete(words, COMMANDS, runs);
  return typeof found === "string" ? found : found.map(({ word }) => word);
};

describe("words that could stand there", () => {
  it("are commands, actions, and what the command takes", async () => {
    expect(await wordsOf("")).toEqual(COMMANDS.map(({ name }) => name));
    expect(await wordsOf("un")).toEqual(["uninstall"]);
    expect(await wordsOf("runs", "p")).toEqual(["points", "prune"]);
    expect(await wordsOf("install", "cur")).toEqual(["cursor"]);
    expect(await wordsOf("storage", "")).toEqual(["copy"]);
    expect(await wordsOf("models", "add", "mis")).toEqual(["mistralai"]);
    expect(await wordsOf("keys", "set", "ANTH")).toEqual(["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"]);
    expect(await wordsOf("keys", "f")).toEqual(["forget"]);
    expect(await wordsOf("completions", "f")).toEqual(["fish"]);
    expect(await wordsOf("help", "do")).toEqual(["doctor"]);
    expect(await wordsOf("run", "")).toEqual([]);
    expect(await wordsOf("nonsense", "")).toEqual([]);
  });

  it("are runs, once, where a run is named", async () => {
    expect(await wordsOf("runs", "show", "")).toEqual(["last", "run_Xy3k"]);
    expect(await wordsOf("runs", "--json", "show", "run_")).toEqual(["run_Xy3k"]);
    expect(await wordsOf("run", "--resume", "l")).toEqual(["last"]);
    expect(await wordsOf("runs", "show", "last", "")).toEqual([]);
    expect(await wordsOf("runs", "list", "")).toEqual([]);
  });

  it("are flags of the command and action that are not given yet", async () => {
    expect(await wordsOf("runs", "answer", "last", "--re")).toEqual(expect.arrayContaining(["--reject"]));
    expect(await wordsOf("runs", "list", "--re")).not.toContain("--reject");
    expect(await wordsOf("run", "--yes", "--ye")).toEqual([]);
    expect(await wordsOf("--ht")).toContain("--http");
    // A list may be repeated.
    expect(await wordsOf("run", "--skills", "a", "--skil")).toEqual(["--skills"]);
    expect(await wordsOf("run", "--", "--y")).toEqual([]);
  });

  it("are values where a flag wants one", async () => {
    expect(await wordsOf("run", "--approvals-write", "")).toEqual(["workspace", "all", "none"]);
    expect(await wordsOf("run", "--approvals-write=a")).toEqual(["--approvals-write=all"]);
    expect(await wordsOf("run", "--workspace", "")).toBe("folders");
    expect(await wordsOf("run", "--config", "x")).toBe("files");
    expect(await wordsOf("run", "--system-prompt-file", "")).toBe("files");
    expect(await wordsOf("run", "--model", "")).toEqual([]);
  });

  it("exist for every command without an error", async () => {
    for (const { name, actions = [] } of COMMANDS) {
      const starts = [[name], ...actions.map((action) => [name, action.name])];
      for (const words of starts) {
        expect((await wordsOf(...words, "--hel"))[0]).toBe("--help");
        await wordsOf(...words, "");
      }
    }
  });
});

describe("the program", () => {
  it("says which shells it knows", async () => {
    const { code, stderr } = await runBin(["completions", "tcsh"]);
    expect(code).toBe(2);
    for (const shell of Object.keys(COMPLETION_SCRIPTS)) expect(stderr).toContain(shell);
  });
});

describe("in a shell", () => {
  let folder: string;
  let data: string;
  let run: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "completions-"));
    data = join(folder, "data of runs");
    mkdirSync(join(folder, "bin"));
    mkdirSync(join(folder, "a folder"));
    writeFileSync(join(folder, "a file"), "");
    const program = join(folder, "bin/deepagent-mcp");
    writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
    chmodSync(program, 0o755);
    const flags = ["--model", "offline", "--yes", "--data-dir", data, "--workspace", folder];
    await runBin(["run", ...flags, "Count the files"]);
    const { stdout } = await runBin(["runs", "list", "--json", "--data-dir", data]);
    ({ run_id: run } = JSON.parse(stdout));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Runs a script of a shell with the program in its path. */
  const inShell = (shell: string, args: readonly string[], script: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const env = {
        ...cleanEnv(),
        HOME: folder,
        DEEPAGENT_DATA_DIR: data,
        PATH: [join(folder, "bin"), process.env["PATH"]].join(delimiter),
      };
      execFile(shell, [...args, "-c", script], { cwd: folder, env }, (error, stdout, stderr) =>
        error === null && stderr === "" ? resolve(stdout) : reject(error ?? new Error(stderr)),
      );
    });

  describe.each([
    {
      shell: "bash",
      args: ["--norc"],
      // As readline splits the line: `=` is a word of its own.
      ask: (words: readonly string[]) =>
        `source <(deepagent-mcp completions bash)
         complete -p deepagent-mcp >/dev/null
         COMP_WORDS=(deepagent-mcp ${words.map((word) => `'${word}'`).join(" ")})
         COMP_CWORD=${words.length}
         _deepagent_mcp
         printf '%s\\n' "\${COMPREPLY[@]}"`,
    },
    {
      shell: "zsh",
      args: ["-f"],
      // The function of zsh that shows them needs a terminal; what it is given is shown here.
      ask: (words: readonly string[]) =>
        `compdef() { :; }
         _describe() { print -l -- "\${(@)\${(P)2}%%:*}"; }
         _files() { if [[ $1 == -/ ]]; then print -l -- *(/); else print -l -- *; fi; }
         source <(deepagent-mcp completions zsh)
         words=(deepagent-mcp ${words.map((word) => `'${word}'`).join(" ")})
         CURRENT=\${#words}
         _deepagent-mcp`,
    },
    {
      shell: "fish",
      args: ["--no-config"],
      ask: (words: readonly string[]) =>
        `deepagent-mcp completions fish | source; complete -C 'deepagent-mcp ${words.join(" ")}'`,
    },
  ])("$shell", ({ shell, args, ask }) => {
    const tags = shell === "bash" ? [] : [shell];
    const shown = async (...words: string[]): Promise<string[]> =>
      (await inShell(shell, args, ask(words)))
        .split("\n")
        // fish adds what each means.
        .map((line) => line.split("\t")[0] ?? "")
        .filter((line) => line !== "");

    it("completes commands, actions, flags and values", { tags }, async () => {
      expect(await shown("do")).toEqual(["doctor"]);
      expect(await shown("runs", "s")).toEqual(["show"]);
      expect(await shown("runs", "answer", "last", "--approve-s")).toEqual(["--approve-same"]);
      expect(await shown("run", "--approvals-write", "n")).toEqual(["none"]);
    });

    it("completes the ids of runs", { tags }, async () => {
      const [last, id = "", ...others] = await shown("runs", "show", "");
      expect([last, others]).toEqual(["last", []]);
      expect(run.startsWith(id)).toBe(true);
    });

    it("completes paths, with spaces in them", { tags }, async () => {
      const trimmed = (await shown("run", "--workspace", "a")).map((word) => word.replace(/\/$/, ""));
      expect(trimmed).toContain("a folder");
      expect(trimmed).not.toContain("a file");
      expect(await shown("run", "--config", "a")).toEqual(expect.arrayContaining(["a file"]));
    });
  });

  it("completes a value after = in bash", async () => {
    const script = `source <(deepagent-mcp completions bash)
      COMP_WORDS=(deepagent-mcp run --approvals-write =); COMP_CWORD=3; _deepagent_mcp
      COMP_WORDS+=(al); COMP_CWORD=4; printf '%s,' "\${COMPREPLY[@]}"; _deepagent_mcp; printf '%s' "\${COMPREPLY[@]}"`;
    expect(await inShell("bash", ["--norc"], script)).toBe("workspace,all,none,all");
  });

  it("makes no data folder and says nothing where there are no runs", async () => {
    const none = join(folder, "none");
    const { stdout, stderr } = await runBin(["completions", "words", "--", "runs", "show", ""], {
      env: { DEEPAGENT_DATA_DIR: none },
    });
    expect([stdout, stderr, existsSync(none)]).toEqual(["", "", false]);
    const { code } = await runBin(["completions", "words", "--", "runs", "--nonsense", "show", ""]);
    expect(code).toBe(0);
  });
});
