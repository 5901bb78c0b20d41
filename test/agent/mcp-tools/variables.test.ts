import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import {
  type McpServerConfig,
  expandServer,
  takesLogin,
} from "../../../src/agent/mcp-tools/server-config.ts";
import { filesIn } from "../../support/files-in.ts";

const ENV = {
  KEY: "s3cr3t-Value",
  REGION: "eu-west-1",
  NESTED: "${KEY} $KEY %KEY%",
  HOME: "/home/me",
  EMPTY: "",
};
const policy = { approve: "writes", timeout: 120 } as const;
const local = (given: object = {}): McpServerConfig => ({
  command: "npx",
  args: [],
  env: {},
  ...policy,
  ...given,
});
const filled = (value: string, env: object = ENV) => {
  const { server } = expandServer(local({ env: { A: value } }), { ...ENV, ...env }, "/work/shop");
  return "env" in server ? server.env["A"] : undefined;
};

it.each([
  ["${KEY}", "s3cr3t-Value"],
  ["${KEY:-other}", "s3cr3t-Value"],
  ["${NONE:-other}", "other"],
  ["${env:KEY}", "s3cr3t-Value"],
  ["{env:KEY}", "s3cr3t-Value"],
  ["$KEY", "s3cr3t-Value"],
  ["Bearer $KEY", "Bearer s3cr3t-Value"],
  ["%KEY%", "s3cr3t-Value"],
  ["${userHome}/x", "/home/me/x"],
  ["${workspaceFolder}/x", "/work/shop/x"],
  ["${workspaceFolderBasename}", "shop"],
  ["${NESTED}", "${KEY} $KEY %KEY%"],
  ["p$ssw0rd", "p$ssw0rd"],
  ["pa$$KEY", "pa$$KEY"],
  ["x$KEY", "x$KEY"],
  ["postgres://u:p%C3%A4ss%20@h", "postgres://u:p%C3%A4ss%20@h"],
  ["${NONE:-open", "${NONE:-open"],
  ["100%", "100%"],
])("%s is filled in as %s", (value, expected) => expect(filled(value)).toBe(expected));

it.each([
  ["${NONE}", "the environment variable NONE,"],
  ["$NONE", "the environment variable NONE,"],
  ["%NONE%", "the environment variable NONE,"],
  ["{env:NONE}", "the environment variable NONE,"],
  ["${EMPTY}", "the environment variable EMPTY,"],
  ["${input:key}", "its entry has ${input:key}"],
  ["${user_config.key}", "its entry has ${user_config.key}"],
  ["{file:~/.key}", "its entry has {file:~/.key}"],
  ["$(cat key)", "its entry has $(…)"],
])("%s leaves the entry out, by name", (value, reason) => {
  expect(() => filled(value)).toThrow(reason);
});

test("a shell and a script of several lines have variables of their own", () => {
  const { server } = expandServer(
    local({ command: "/bin/bash", args: ["-c", "for F in *; do echo $F $REGION; done"] }),
    ENV,
  );
  expect(server).toMatchObject({ args: ["-c", "for F in *; do echo $F eu-west-1; done"] });
  const script = "const $NONE = 1;\nserve($NONE, '$REGION');";
  expect(expandServer(local({ args: ["-e", script] }), ENV).server).toMatchObject({
    args: ["-e", script.replace("$REGION", "eu-west-1")],
  });
  expect(() => expandServer(local({ args: ["$NONE"] }), ENV)).toThrow("NONE");
});

test("a variable that is passed on is left out if it is not set", () => {
  const { server } = expandServer(local({ env: { NONE: "${NONE:-}", KEY: "${KEY:-}" } }), ENV);
  expect(server).toMatchObject({ env: { KEY: "s3cr3t-Value" } });
  expect("env" in server && Object.keys(server.env)).toEqual(["KEY"]);
});

test("a folder has to be absolute once it is filled in", () => {
  expect(expandServer(local({ cwd: "${workspaceFolder}/x" }), ENV, "/work").server).toMatchObject({
    cwd: "/work/x",
  });
  expect(() => expandServer(local({ cwd: "$REGION" }), ENV)).toThrow("cwd must be an absolute path");
});

describe("an env file", () => {
  const FILES = {
    "a.env": '\ufeffTOKEN="t0ken value"\nexport PLAIN=word # note\nREF=$KEY\n__proto__=x\n',
    "nul.env": "A=\0",
    "large.env": "A=".padEnd(200_000, "x"),
    "work/b.env": "NODE_OPTIONS=--require /x",
    "folder.env/c": "",
  };
  const open = (name: string, env = {}) => {
    const folder = filesIn(FILES);
    symlinkSync(join(folder, "work/b.env"), join(folder, "link.env"));
    const envFile = name.startsWith("/") ? name : join(folder, name);
    return expandServer(local({ envFile, env }), ENV, join(folder, "work"));
  };

  it("adds its variables, as they stand there; env counts before it", () => {
    const { server, secrets } = open("a.env", { PLAIN: "own" });
    expect(server).toMatchObject({ env: { TOKEN: "t0ken value", PLAIN: "own", REF: "$KEY" } });
    expect(secrets).toContain("t0ken value");
  });

  it.each([
    "work/b.env",
    "link.env",
    "x/../work/b.env",
    "none.env",
    "nul.env",
    "large.env",
    "folder.env",
    "/dev/zero",
  ])("%s leaves the entry out, without its path", (name) => {
    const reason = /^its envFile is (?:in the workspace|not a text file)(?:(?!tmp|dev\/zero).)*$/;
    expect(() => open(name)).toThrow(reason);
  });
});

test("nobody logs in where it is switched off", () => {
  const remote = { url: "https://a.b", headers: {}, ...policy };
  expect(
    [remote, { ...remote, noLogin: true }, { ...remote, headers: { authorization: "x" } }].map(takesLogin),
  ).toEqual([true, false, false]);
  expect(takesLogin({ ...remote, headers: { "bad name ü": "x" } })).toBe(true);
});
