import type { McpServer } from "@modelcontextprotocol/server";
import { mimeTypeOf } from "../../backends/mime.ts";
import type { ResourceScope } from "./scope.ts";
import { DIRECTORY_TYPE, completePath, readTarget, registerTemplate } from "./template.ts";
import { FILES_TEMPLATE, fileUri } from "./uris.ts";

/**
 * `deepagent://files/{+path}`: what the agents of all threads share, by its virtual path, such as
 * `/workspace/…`, `/memories/…` and `/skills/…`. The list names the top-level folders, and `listMemories`
 * adds the memories; reading a folder lists it.
 */
export function registerFiles(mcp: McpServer, scope: ResourceScope): void {
  const files = async () => (await scope.runs()).files(scope.principal);
  registerTemplate(mcp, scope, {
    name: "files",
    uriTemplate: FILES_TEMPLATE,
    title: "Agent files",
    description:
      "Files and folders the agent works with: /workspace/, /memories/, /skills/ and the mounts of the configuration.",
    list: async () => {
      const { files: mounts = [] } = await (await files()).ls("/");
      return mounts
        .filter((mount) => mount.is_dir)
        .map(({ path }) => ({ uri: fileUri(path), name: path, mimeType: DIRECTORY_TYPE }));
    },
    complete: { path: async (typed) => completePath(await files(), typed) },
    read: async ({ uri, variables, signal }) => {
      const path = `/${variables["path"] ?? ""}`;
      const target = { backend: await files(), path, uri, uriOf: fileUri, signal };
      return { contents: await readTarget(target), ttlMs: 0 };
    },
  });
}

const MEMORIES = "/memories";

/** Lists the memories one by one, for people who pick resources from a list. */
export function listMemories(scope: ResourceScope): void {
  scope.listing.addSection(async ({ limit, after = "" }) => {
    const backend = await (await scope.runs()).files(scope.principal);
    const { files = [] } = await backend.glob("**", MEMORIES);
    const paths = files.filter((file) => !file.is_dir).map(({ path }) => path);
    const next = paths.toSorted().filter((path) => path > after);
    return next.slice(0, limit).map((path) => ({
      id: path,
      resource: {
        uri: fileUri(path),
        name: path,
        description: "A memory of the agent.",
        mimeType: mimeTypeOf(path),
      },
    }));
  });
}
