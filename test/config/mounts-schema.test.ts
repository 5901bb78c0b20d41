import { describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { loadConfig } from "../../src/config/load.ts";
import { ConfigSchema } from "../../src/config/schema.ts";
import { join } from "node:path";

const problems = (mounts: unknown) =>
  ConfigSchema.safeParse({ dataDir: "/data", mounts }).error?.issues.map(({ message }) => message);
const s3 = { bucket: "archive" };

describe("mounts", () => {
  it("take a bucket or a table", () => {
    expect(problems({ "/archive/": { s3 }, "/notes": { postgres: {} } })).toBeUndefined();
  });

  it.each([
    [{ "/archive/": {} }, "needs either s3 or postgres"],
    [{ "/archive/": { s3, postgres: {} } }, "needs either s3 or postgres"],
    [{ "/archive/": { s3: { bucket: "s3://archive" } } }, "must be the name of a bucket"],
    [{ "/a/": { s3: { ...s3, endpoint: "localhost:9000" } } }, "must be an http or https address"],
    [
      { "/a/": { s3: { ...s3, accessKeyIdVariable: "KEY" } } },
      "needs accessKeyIdVariable and secretAccessKeyVariable together",
    ],
    [
      { "/a/": { postgres: { connectionStringVariable: "postgres://u:p@h/d" } } },
      "must be the name of an environment variable",
    ],
    [
      { "/a/": { postgres: { table: "a; drop table b" } } },
      "must be a name such as deepagent_files or schema.deepagent_files",
    ],
    [{ "/": { s3 } }, "mount a folder of the root, such as /archive/"],
    [{ "/..": { s3 } }, "mount a folder of the root, such as /archive/"],
    [{ archive: { s3 } }, "mount a folder of the root, such as /archive/"],
    [{ "/workspace/": { s3 } }, "is a folder of the server already; choose another name"],
    [{ "/a": { s3 }, "/a/": { s3 } }, "is mounted twice"],
  ])("explains what is wrong with %j", (mounts, message) => {
    expect(problems(mounts)).toEqual([message]);
  });

  it("names the variables that are not set, without values", () => {
    const settings = { ...s3, accessKeyIdVariable: "ARCHIVE_ID", secretAccessKeyVariable: "ARCHIVE_KEY" };
    const text = JSON.stringify({ mounts: { "/archive/": { s3: settings } } });
    const home = filesIn({ "config.json": text });
    const env = { DEEPAGENT_CONFIG: join(home, "config.json"), ARCHIVE_ID: "id" };
    const loaded = loadConfig({ flags: {}, env, cwd: home, home, platform: "linux" });
    expect(loaded).toEqual({
      ok: false,
      problems: [
        "mounts./archive/.s3.secretAccessKeyVariable: the environment variable ARCHIVE_KEY is not set",
      ],
    });
  });
});
