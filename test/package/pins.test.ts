// Workflows, images and services load only things that nobody can replace.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { filesIn } from "../support/files-in.ts";
import { ROOT } from "../commands/built-bin.ts";

const script = pathToFileURL(join(ROOT, "scripts/pins.mjs")).href;
const { unpinnedUses } = (await import(script)) as { unpinnedUses(root: string): string[] }; // a script without types

/** The uses that the script finds in a project with one of these files. */
function usesIn(file: ".github/workflows/ci.yml" | "Dockerfile" | "compose.yaml", text: string): string[] {
  const files = { ".github/workflows/ci.yml": "", Dockerfile: "", "compose.yaml": "", [file]: text };
  const problems = unpinnedUses(filesIn(files));
  return problems.map((problem) => /uses (.*), which is not pinned/.exec(problem)?.[1] ?? problem);
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
