import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { WorkspaceProposals } from "../../src/proposals/proposals.ts";
import { copyOf } from "../../src/proposals/workspace-copy.ts";
import type { ReviewChoice } from "../../src/tools/request.ts";
import { attempts } from "../support/effort.ts";
import { filesIn } from "../support/files-in.ts";

const RUN = { id: "run_1", threadId: "thr_1", task: "Do it" };
type Files = Readonly<Record<string, string>>;

/** Texts of one kind are similar, those of two kinds are not. */
const text = fc
  .tuple(fc.constantFrom("x", "x", "y"), fc.array(fc.nat(2), { minLength: 3, maxLength: 3 }))
  .map(([kind, changes]) =>
    changes.flatMap((change, part) => [
      ...Array.from({ length: 9 }, (_, index) => `${kind}${part}${index}`),
      `change ${change}`,
    ]),
  )
  .map((lines) => `${lines.join("\n")}\n`);
const OLD = ["a.txt", "b.txt", "d/a.txt", "d/b.txt"];
const path = fc.constantFrom(...OLD);
const files = fc.dictionary(path, text, { noNullPrototype: true, minKeys: 2 });
/** Moves one file to another path, or gives one a text. */
const steps = fc.array(
  fc.tuple(path, fc.oneof(fc.constantFrom(...OLD, "b.md", "e/a.txt", "e/c.txt", "f.txt"), text)),
  { minLength: 1, maxLength: 6 },
);

/** The files after some steps. A file that is not there is not moved. */
function changed(before: Files, all: readonly (readonly [string, string])[]): Files {
  const after: Record<string, string> = { ...before };
  for (const [path, to] of all) {
    const text = to.endsWith("\n") ? to : after[path];
    if (text === undefined || to === path) continue;
    if (to !== text) delete after[path];
    after[to === text ? path : to] = text;
  }
  return after;
}

function put(root: string, files: Files): void {
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

const filesAt = (root: string): Files =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter((path) => statSync(join(root, path)).isFile())
      .map((path) => [path, readFileSync(join(root, path), "utf8")]),
  );

it("the folder becomes the copy, in whatever parts a change with renames is applied", async () => {
  let renamed = 0;
  const property = fc.asyncProperty(files, steps, fc.array(fc.nat(7)), async (before, all, numbers) => {
    const after = changed(before, all);
    const home = filesIn();
    const [workspace, dir] = [join(home, "workspace"), join(home, "copies")];
    put(workspace, before);
    const proposals = new WorkspaceProposals({ dir, without: [], maxBytes: 1e8 });
    await proposals.open(RUN, workspace);
    put(copyOf(dir, RUN.threadId), after);
    const change = async () => (await proposals.change(RUN))?.files ?? [];
    const review = async (choose: (places: number) => "all" | number[]): Promise<void> => {
      const found = await change();
      const chosen = found.map(({ path, places }) => [path, choose(places.length)] as const);
      const apply: ReviewChoice["apply"] = Object.fromEntries(chosen.filter(([, of]) => of.length > 0));
      const shown = Object.fromEntries(found.map(({ path, version }) => [path, version]));
      const about = { id: `review_${Math.random()}`, by: "test", shown };
      const outcome = await proposals.review(RUN, { apply }, about);
      expect(outcome).toMatchObject({ kind: "done", record: { unapplied: (await change()).length } });
    };
    renamed += (await change()).filter(({ from }) => from !== undefined).length;
    for (const number of numbers)
      await review((count) => {
        const some = Array.from({ length: count }, (_, place) => place).filter(
          (place) => (number >> place) & 1,
        );
        return count === 0 && number > 3 ? "all" : some;
      });
    await review(() => "all");
    expect(filesAt(workspace)).toEqual(after);
    expect(await change()).toEqual([]);
  });
  await fc.assert(property, attempts(160));
  expect(renamed).toBeGreaterThan(0);
});
