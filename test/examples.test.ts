import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("the wire transcript of both eras is as it claims", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["examples/wire/transcript.mjs"]);
  expect(stdout.match(/as expected/g)).toHaveLength(4);
}, 120_000);
