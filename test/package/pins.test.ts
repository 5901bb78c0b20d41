// Workflows, images and services load only things that nobody can replace.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { ROOT } from "../commands/built-bin.ts";

const PINNED_ACTION = /^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/;
const PINNED_IMAGE = /@sha256:[0-9a-f]{64}$/;
const WORKFLOWS = ".github/workflows";

/** Each use that is not pinned, in the project at `root`, after its file. */
function unpinnedUses(root: string): string[] {
  const checks: [string, (text: string) => string[]][] = [
    ...readdirSync(join(root, WORKFLOWS)).map((name): [string, (text: string) => string[]] => [
      join(WORKFLOWS, name),
      unpinnedActions,
    ]),
    ["Dockerfile", unpinnedBases],
    ["compose.yaml", unpinnedImages],
  ];
  return checks.flatMap(([file, unpinned]) =>
    unpinned(readFileSync(join(root, file), "utf8")).map((use) => `${file}: ${use}`),
  );
}

/** Actions of a workflow without a whole commit, or without a comment that says its version. Local ones are ours. */
function unpinnedActions(workflow: string): string[] {
  return [...workflow.matchAll(/^[\s-]*["']?uses["']?:\s*(.*)$/gm)].flatMap(([, value = ""]) => {
    const [, use = "", version] = /^["']?([^"'\s#]*)["']?\s*(?:#\s*(v\d\S*))?/.exec(value) ?? [];
    const isPinned = use.startsWith("./") || (PINNED_ACTION.test(use) && version !== undefined);
    return isPinned ? [] : [use || value];
  });
}

/** Base images of a Dockerfile without a digest; a variable stands for its default. Its own stages have names. */
function unpinnedBases(dockerfile: string): string[] {
  const defaults = new Map(
    [...dockerfile.matchAll(/^ARG\s+(\w+)=(\S+)/gim)].map(([, name, value]) => [name, value]),
  );
  const resolved = (image: string): string =>
    image
      .replaceAll(/\$\{?(\w+)\}?/g, (whole, name: string) => defaults.get(name) ?? whole)
      .replaceAll(/["']/g, "");
  const bases = [...dockerfile.matchAll(/^FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/gim)];
  const copied = [...dockerfile.matchAll(/^(?:COPY|ADD|RUN)\s.*?--(?:from=|mount=\S*from=)([^\s,]+)/gim)];
  const stages = new Set(bases.flatMap(([, , name]) => (name === undefined ? [] : [name])));
  return [...bases, ...copied]
    .map(([, image = ""]) => resolved(image))
    .filter((image) => !stages.has(image) && image !== "scratch" && !/^\d+$/.test(image))
    .filter((image) => !PINNED_IMAGE.test(image));
}

/** Images of services without a digest. One that the operator names with a variable is theirs. */
function unpinnedImages(compose: string): string[] {
  return [...compose.matchAll(/^\s*image:\s*["']?([^"'\s#]+)/gm)]
    .map(([, image = ""]) => image)
    .filter((image) => !image.startsWith("${") && !PINNED_IMAGE.test(image));
}

/** The uses that are found in a project with one of these files. */
function usesIn(file: ".github/workflows/ci.yml" | "Dockerfile" | "compose.yaml", text: string): string[] {
  const files = { ".github/workflows/ci.yml": "", Dockerfile: "", "compose.yaml": "", [file]: text };
  return unpinnedUses(filesIn(files)).map((use) => use.replace(`${file}: `, ""));
}

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const DIGEST = `sha256:${COMMIT}${COMMIT.slice(0, 24)}`;

it("nothing of this project is loaded by a name alone", () => {
  expect(unpinnedUses(ROOT)).toEqual([]);
});

describe("an action", () => {
  it.each([
    `      - uses: actions/checkout@${COMMIT} # v6.1.0`,
    `      - uses: "actions/cache/restore@${COMMIT}" # v4`,
    "      - uses: ./.github/actions/own",
    "      - run: echo uses: nothing",
  ])("is pinned: %s", (line) => expect(usesIn(".github/workflows/ci.yml", line)).toEqual([]));

  it.each([
    "      - uses: actions/checkout@v6",
    "      - uses: actions/checkout@main # v6.1.0",
    "      - uses: actions/checkout",
    `      - uses: actions/checkout@${COMMIT.slice(1)} # v6.1.0`,
    `      - uses: actions/checkout@${COMMIT}`,
    "        uses: docker://alpine:3",
    "      - 'uses': 'actions/checkout@v6'",
  ])("is not pinned: %s", (line) => expect(usesIn(".github/workflows/ci.yml", line)).toHaveLength(1));
});

it.each([
  [`FROM node:22@${DIGEST} AS build\nFROM build\nCOPY --from=build /a /a\nCOPY --from=0 /a /a`, []],
  [`ARG IMAGE=node:22@${DIGEST}\nFROM \${IMAGE} AS one\nFROM $IMAGE`, []],
  ["FROM scratch", []],
  ["ARG IMAGE=node:22\nFROM ${IMAGE} AS one\nFROM one", ["node:22"]],
  ["FROM --platform=linux/amd64 node:22", ["node:22"]],
  ["from node", ["node"]],
  ["FROM ${UNKNOWN}", ["${UNKNOWN}"]],
  [`FROM node@${DIGEST}\nCOPY --from=busybox:1 /bin/sh /bin/sh`, ["busybox:1"]],
  [`FROM node@${DIGEST}\nRUN --mount=type=bind,from=alpine,target=/a true`, ["alpine"]],
  [`FROM node@${DIGEST.slice(0, -1)}`, [`node@${DIGEST.slice(0, -1)}`]],
])("the base images of a Dockerfile: %j", (text, unpinned) => {
  expect(usesIn("Dockerfile", text)).toEqual(unpinned);
});

it("the images of services", () => {
  const text = `services:\n  a:\n    image: postgres:17@${DIGEST}\n  b:\n    image: "redis:8"\n  c:\n    image: \${OURS:-own}\n`;
  expect(usesIn("compose.yaml", text)).toEqual(["redis:8"]);
});
