/** Programs that scripts start and wait for. */
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** All output of a command. `mayFail`: an exit code other than 0 is no error. */
export function output([command, ...args], { mayFail = false, ...options } = {}) {
  return new Promise((resolve, reject) => {
    const limits = { timeout: 900_000, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(command, args, { ...limits, ...options }, (error, stdout, stderr) => {
      if (error === null || (mayFail && typeof error.code === "number")) resolve(stdout + stderr);
      else reject(new Error(`${command} ${args.join(" ")} failed: ${stderr || error.message}\n${stdout}`));
    });
    child.stdin.end();
  });
}

/** Starts a server of ours with Node, and waits for the address that it prints. */
export async function startServer(args, env) {
  const child = spawn(process.execPath, args, { env, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const lines = [];
  const url = await new Promise((resolve, reject) => {
    const take = (line) => {
      lines.push(line);
      const address = /http:\/\/\S+\/mcp/.exec(line)?.[0];
      if (address !== undefined) resolve(address);
    };
    createInterface({ input: child.stdout }).on("line", take);
    createInterface({ input: child.stderr }).on("line", take);
    child.once("error", reject);
    child.once("close", () => reject(new Error(`${args[0]} ended: ${lines.join("\n")}`)));
  });
  return {
    url,
    close: async () => {
      child.stdin.end();
      child.kill("SIGTERM");
      await ended;
    },
  };
}
