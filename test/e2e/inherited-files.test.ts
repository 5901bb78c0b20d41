import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { connect, openHome } from "../support/harness.ts";
import { answersOf, play } from "../support/harness-brain.ts";
import { program, stdioServer } from "../support/harness-stdio.ts";
import { APPROVE, person, repeat } from "./support.ts";

/** A program that starts another one with its own standard streams, and with `folder` open as 40. */
const launcher = (folder: string, script: string): string => `
import { spawn } from "node:child_process";
import { openSync } from "node:fs";
const stdio = ["inherit", "inherit", "inherit", ...Array(37).fill("ignore"), openSync(${JSON.stringify(folder)}, "r")];
spawn(process.execPath, [${JSON.stringify(script)}], { stdio });
`;

test.runIf(process.platform === "linux")(
  "a folder that the launcher of the server left open reaches no command and no other MCP server",
  async () => {
    const folder = filesIn();
    const [config, seen, start] = ["config.json", "seen", "start.mjs"].map((name) => join(folder, name));
    if (config === undefined || seen === undefined || start === undefined) throw new Error("three names");
    const list = "for each in /proc/$$/fd/*; do readlink $each; done";
    const server = { command: "/bin/sh", args: ["-c", `(${list}) > ${seen}.new; mv ${seen}.new ${seen}`] };
    writeFileSync(config, JSON.stringify({ mcpServers: { nosy: server } }));
    writeFileSync(start, launcher(folder, await program()));
    const home = await openHome({
      env: { DEEPAGENT_CONFIG: config },
      think: play({ Look: [{ toolCalls: [{ name: "execute", args: { command: list } }] }, repeat] }),
    });
    const { answer } = person({ readlink: APPROVE });
    const client = await connect(stdioServer(start, home.env), "v2-modern", answer);
    const { structured } = await client.call("run_deep_agent", { task: "Look" });
    expect(structured["status"]).toBe("completed");
    const told = home.brain.thoughts.flatMap((thought) => answersOf(thought).map(({ text }) => text));
    expect(told.join("\n")).toMatch(/pipe:|socket:/);
    expect(told.join("\n")).not.toContain(folder);
    expect(existsSync(seen)).toBe(true);
    expect(readFileSync(seen, "utf8")).toMatch(/pipe:|socket:/);
    expect(readFileSync(seen, "utf8")).not.toContain(folder);
  },
);
