import { createSandbox, type CreateSandboxOptions } from "../../../src/backends/sandbox/create-sandbox.ts";

/** A process that runs a command in a sandbox and is killed by its parent while that goes on. */
const [options = "{}", command = ""] = process.argv.slice(2);
const sandbox = await createSandbox(JSON.parse(options) as CreateSandboxOptions); // as the test wrote them
process.stdout.write(`${sandbox.id}\n`);
await sandbox.execute(command, { keepPrograms: true, onOutput: (chunk) => void process.stdout.write(chunk) });
