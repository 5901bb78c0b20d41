import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { CompositeBackend } from "../../src/backends/composite/composite.ts";
import { CODES_WITHOUT_PATH } from "../../src/backends/errors.ts";
import { FilesystemBackend } from "../../src/backends/filesystem/filesystem.ts";
import { addPrefix, validatePath } from "../../src/backends/paths.ts";
import { resolveBackend, snapshotFiles } from "../../src/backends/runtime.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import { attempts } from "../support/effort.ts";

const clock = (): number => 0;

/** Two alike: one to ask directly, one to mount. */
const KINDS = [
  {
    kind: "StateBackend",
    open: (): { pair: [Backend, Backend]; close(): void } => ({
      pair: [
        new StateBackend({ files: snapshotFiles() }, { clock }),
        new StateBackend({ files: snapshotFiles() }, { clock }),
      ],
      close: () => {},
    }),
  },
  {
    kind: "FilesystemBackend",
    open: (): { pair: [Backend, Backend]; close(): void } => {
      const roots = [1, 2].map(() => mkdtempSync(join(tmpdir(), "deepagent-routing-")));
      const [one, two] = roots.map(
        (rootDir) => new FilesystemBackend({ rootDir, virtualMode: true, ripgrep: false }),
      );
      if (one === undefined || two === undefined) throw new Error("two roots");
      return { pair: [one, two], close: () => roots.forEach((root) => rmSync(root, { recursive: true })) };
    },
  },
];

const name = fc.constantFrom("a", "b", "a b", "m", "é", "'q'", "a.txt", "b.png");
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join("/")}`);
const text = fc.constantFrom("", "hit", "hit hit\n", "one\r\nhit\r\n", "/a is 'here'");
const operation = fc.oneof(
  fc.record({ method: fc.constant("write" as const), path, text, overwrite: fc.boolean() }),
  fc.record({ method: fc.constant("edit" as const), path, text, overwrite: fc.boolean() }),
  fc.record({
    method: fc.constantFrom("read", "readRaw", "ls", "glob", "grep", "delete", "upload", "download"),
    path: fc.oneof(path, fc.constantFrom("/", "/m/", "//a", "/missing", "/x\0", "/a/../b")),
    text: fc.constantFrom("hit", "**", "*.txt", "{a,b}/**", "[", ""),
    overwrite: fc.boolean(),
  }),
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

async function run(
  backend: Backend,
  at: string,
  { method, text: given, overwrite }: Operation,
): Promise<unknown> {
  const bytes = new TextEncoder().encode(given);
  switch (method) {
    case "write":
      return backend.write(at, given, { mode: overwrite ? "overwrite" : "create" });
    case "edit":
      return backend.edit(at, "hit", given, overwrite);
    case "read":
      return backend.read(at, overwrite ? 1 : 0, 1);
    case "readRaw":
      return backend.readRaw(at);
    case "ls":
      return backend.ls(at);
    case "glob":
      return backend.glob(given, at);
    case "grep":
      return backend.grep(given, at, overwrite ? "*.txt" : null, 2, { regex: overwrite });
    case "delete":
      return backend.delete?.(at);
    case "upload":
      return backend.uploadFiles?.([[at, bytes]]);
    default:
      return backend.downloadFiles?.([at]);
  }
}

const PREFIX = "/mnt/deep";

/** Differ from file to file, not from mount to mount. */
const VOLATILE = new Set(["version", "modified_at", "created_at"]);

/** An answer with a prefix put before its paths: what a mount is expected to say. */
function prefixed(value: unknown, prefix: string, asked: string): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => prefixed(item, prefix, asked));
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const namesPath = !("code" in value && CODES_WITHOUT_PATH.has(value.code));
  const parts = Object.entries(value).filter(([key]) => !VOLATILE.has(key));
  return Object.fromEntries(
    parts.map(([key, part]: [string, unknown]) => {
      if (key === "path" && typeof part === "string") return [key, addPrefix(prefix, part)];
      if (key === "error" && typeof part === "string" && namesPath)
        return [key, prefix === "/" ? part : part.replace(asked, () => addPrefix(prefix, asked))];
      if (key === "filesUpdate" && typeof part === "object" && part !== null) {
        const files = Object.entries(part).map(([at, data]) => [
          addPrefix(prefix, at),
          prefixed(data, "/", at),
        ]);
        return [key, Object.fromEntries(files)];
      }
      return [key, prefixed(part, prefix, asked)];
    }),
  );
}

describe.each(KINDS)("a mounted $kind", ({ open }) => {
  it("answers every operation as it does by itself, with the prefix in front", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 12 }), async (operations) => {
        const { pair, close } = open();
        try {
          const [alone, mounted] = pair;
          const tree = new CompositeBackend(new StateBackend(), { [PREFIX]: mounted });
          const composite = await resolveBackend(tree, { files: snapshotFiles() });
          for (const step of operations) {
            const valid = validatePath(step.path);
            const asked = valid.ok ? valid.path : step.path;
            const expected = await run(alone, step.path, step);
            const at = step.path === "/" ? PREFIX : PREFIX + step.path;
            const given = await run(composite, at, step);
            expect(withoutEmpty(prefixed(given, "/", asked)), JSON.stringify(step)).toEqual(
              withoutEmpty(prefixed(expected, PREFIX, asked)),
            );
          }
        } finally {
          close();
        }
      }),
      attempts(80),
    );
  });
});

/** A composite adds up what its parts left out or cut short; nothing of both is the same as not said. */
function withoutEmpty(answer: unknown): unknown {
  if (answer === null || typeof answer !== "object" || Array.isArray(answer)) return answer;
  return Object.fromEntries(
    Object.entries(answer).filter(([key, part]) => !((key === "truncated" || key === "skipped") && !part)),
  );
}
