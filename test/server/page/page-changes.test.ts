import { expect, test } from "vitest";
import { SECRET_HEADER } from "../../../src/server/page/tab-secrets.ts";
import { mine, calling, databaseFile, openServer, reach, startRun } from "../../runs/support.ts";
import { linkTo, openPages, visit } from "./support.ts";

/** A run that writes one file, then changes it twice; and the browser of someone who watches. */
async function watched() {
  const path = "/notes & plans.md";
  const { service } = openServer(databaseFile(), {
    model: calling(
      { name: "write_file", args: { file_path: path, content: "one\n<script>two</script>\n" } },
      { name: "write_file", args: { file_path: "/other.md", content: "elsewhere" } },
      { name: "edit_file", args: { file_path: "/missing.md", old_string: "a", new_string: "never" } },
    ),
  });
  const { id } = await startRun(service, "write it down");
  await reach(service, id, "completed");
  return { path, id, visitor: await visit(linkTo(await openPages(service), id, "watch")) };
}

test("every changed file leads to what was changed in it, and by whom", async () => {
  const { id, visitor } = await watched();
  const { body } = await visitor.get(`${visitor.path}/work`);
  const links = [...body.matchAll(/href="(\/runs\/[^"]*view=changes)"/g)].map(([, link = ""]) => link);
  expect(links).toEqual([
    `/runs/${id}/files/notes%20%26%20plans.md?view=changes`,
    `/runs/${id}/files/other.md?view=changes`,
  ]);
  const { status, body: changes } = await visitor.get(links[0] ?? "");
  expect(status).toBe(200);
  expect(changes).toContain(">Main agent</a>");
  expect(changes).toMatch(/<tr class="a">[^]*one/);
  expect(changes).not.toContain("<script>two");
  expect(changes).not.toContain("elsewhere");
});

test("a file that the run did not change has no changes, and nobody else sees any", async () => {
  const { path, id, visitor } = await watched();
  for (const [file, secret, expected] of [
    ["/missing.md", undefined, [200, true, false]],
    ["/nowhere", undefined, [200, true, false]],
    [encodeURI(path), "a.b", [401, false, false]],
  ] as const) {
    const headers: Record<string, string> = secret === undefined ? {} : { [SECRET_HEADER]: secret };
    const { status, body } = await visitor.get(`/runs/${id}/files${file}?view=changes`, headers);
    expect([status, body.includes("has not changed this file"), body.includes('<tr class="a">')]).toEqual(
      expected,
    );
  }
});

test("the journal keeps the beginning and the end of a large change only", async () => {
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "write_file", args: { file_path: "/big.md", content: "line\n".repeat(20_000) } }),
  });
  const { id } = await startRun(service, "write much");
  await reach(service, id, "completed");
  const [event] = ((await mine(service).read.events(id)) ?? []).filter(({ kind }) => kind === "file_changed");
  const diff = event?.kind === "file_changed" ? String(event.data.diff) : "";
  expect(diff).toContain("+++ /big.md");
  expect(diff).toMatch(/not shown\]$/);
  expect(diff.length).toBeLessThan(4200);
});

test("the answer shows the newest changes, and leads to those that would make it too long", async () => {
  const write = (index: number) => ({
    name: "write_file",
    args: { file_path: `/part-${index}.md`, content: `line of ${index}\n`.repeat(400) },
  });
  const { service } = openServer(databaseFile(), {
    model: calling(...Array.from({ length: 60 }, (_, index) => write(index))),
  });
  const { id } = await startRun(service, "write very much");
  await reach(service, id, "completed");
  const visitor = await visit(linkTo(await openPages(service), id, "watch"));
  const { body } = await visitor.get(`${visitor.path}/answer`);
  const links = [...body.matchAll(/href="([^"]*)">Show this change/g)].map(([, link]) => link);
  expect(links).toContain(`/runs/${id}/files/part-0.md?view=changes`);
  expect(links).not.toContain(`/runs/${id}/files/part-59.md?view=changes`);
  expect(body).toMatch(/<tr class="a">[^]*line of 59/);
  expect(body).not.toContain("line of 0");
});
