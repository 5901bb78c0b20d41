import { LocalShellBackend } from "../../../src/backends/sandbox/local-shell.ts";

/** A process that runs a command and is killed by its parent while that goes on. */
const [rootDir = "", command = ""] = process.argv.slice(2);
const shell = new LocalShellBackend({ rootDir, virtualMode: true });
await shell.execute(command, { onOutput: (chunk) => void process.stdout.write(chunk) });
