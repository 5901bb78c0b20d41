import { build } from "esbuild";
import { expect, it } from "vitest";
import { ROOT } from "../commands/built-bin.ts";

const bundle = (platform: "browser" | "node") =>
  build({
    stdin: {
      contents: 'import { createDeepAgent } from "deepagent-mcp"; createDeepAgent();',
      resolveDir: ROOT,
    },
    bundle: true,
    write: false,
    platform,
    external: ["@langchain/*", "langchain", "zod"],
    loader: { ".node": "empty" },
    logLevel: "silent",
    metafile: true,
    format: "esm",
  });

it("a bundle for browsers says that the library needs Node, and what to do", async () => {
  const { outputFiles } = await bundle("browser");
  const page = `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? "")}`;
  await expect(import(page)).rejects.toThrow(/runs on Node only.*@langchain\/langgraph-sdk/);
});

it("a bundle for Node has the library in it", async () => {
  const { metafile } = await bundle("node");
  expect(Object.keys(metafile.inputs)).toContain("dist/index.js");
  expect(Object.keys(metafile.inputs)).not.toContain("dist/browser.cjs");
});
