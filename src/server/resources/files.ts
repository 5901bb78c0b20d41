import { type McpServer, ResourceNotFoundError, ResourceTemplate } from "@modelcontextprotocol/server";
import { completePath, DIRECTORY_TYPE, readTarget } from "./contents.ts";
import type { ResourceScope } from "./scope.ts";
import { decodePath, fileUri, FILES_TEMPLATE } from "./uris.ts";

/**
 * `deepagent://files/{+path}`: what the agents of all threads share, by its virtual path, such as
 * `/workspace/…`, `/memories/…` and `/skills/…`. The list names the top-level folders only; reading a
 * folder lists it.
 */
export function registerFiles(mcp: McpServer, scope: ResourceScope): void {
  const files = async () => (await scope.runs()).files(scope.principal);
  const template = new ResourceTemplate(FILES_TEMPLATE, {
    list: async () => {
      const { files: mounts = [] } = await (await files()).ls("/");
      return {
        resources: mounts
          .filter((mount) => mount.is_dir)
          .map(({ path }) => ({ uri: fileUri(path), name: path, mimeType: DIRECTORY_TYPE })),
      };
    },
    complete: { path: async (typed) => completePath(await files(), typed) },
  });
  mcp.registerResource(
    "files",
    template,
    {
      title: "Agent files",
      description: "Files and folders the agent works with: /workspace/, /memories/ and /skills/.",
    },
    async ({ href }, variables, ctx) => {
      const path = decodePath(String(variables["path"]));
      if (path === undefined) throw new ResourceNotFoundError(href);
      const backend = await files();
      const target = { backend, path, uri: href, uriOf: fileUri, signal: ctx.mcpReq.signal };
      return { contents: [await readTarget(target)], ttlMs: 0, cacheScope: "private" };
    },
  );
}
