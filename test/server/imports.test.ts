import { build } from "esbuild";
import { expect, test } from "vitest";

/** Packages that are loaded when `entry` is, without what is imported on demand. */
async function packagesLoadedBy(entry: string): Promise<string[]> {
  const form = { platform: "node", format: "esm", packages: "external", outdir: "unused" } as const;
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    metafile: true,
    write: false,
    ...form,
  });
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const { path, kind, external } of metafile.inputs[file]?.imports ?? []) {
      if (kind === "dynamic-import") continue;
      if (external === true) packages.add(path);
      else visit(path);
    }
  };
  visit(entry);
  return [...packages].filter((name) => !name.startsWith("node:")).sort();
}

test("what answers the handshake loads the protocol and nothing of the agent or the storage", async () => {
  expect(await packagesLoadedBy("src/server/stdio/stdio.ts")).toEqual([
    "@modelcontextprotocol/server",
    "@modelcontextprotocol/server/stdio",
    "zod",
  ]);
});
