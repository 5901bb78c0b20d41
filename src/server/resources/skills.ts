import { ProtocolError, ProtocolErrorCode, type McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { guarded } from "./guarded.ts";
import type { ResourceScope } from "./scope.ts";
import { SkillCatalog } from "./skill-catalog.ts";
import { registerTemplate } from "./template.ts";

/** The Skills extension (SEP-2640), as servers declare it. */
export const SKILLS_EXTENSION = { "io.modelcontextprotocol/skills": { directoryRead: true } } as const;

/** Skills in one answer of `skills/list`. */
const PAGE = 50;
/** Skills named in `resources/list`. */
const LISTED = 50;
/** How long a client may keep a description. A file that has changed since does not fit its digest. */
const TTL_MS = 60_000;

const PageParams = z.looseObject({ cursor: z.string().optional() });
const UriParams = z.looseObject({ uri: z.string() });

/**
 * `skill://…`: what is below `/skills/`, file by file, and the methods that describe it. Instructions for
 * the client's own model; those of the agent are the same files.
 */
export function registerSkills(mcp: McpServer, scope: ResourceScope): void {
  const catalog = async (): Promise<SkillCatalog> =>
    new SkillCatalog(await (await scope.runs()).files(scope.principal), scope.logger);
  const cache = scope.era === "modern" ? { ttlMs: TTL_MS, cacheScope: "private" as const } : {};

  registerTemplate(mcp, scope, {
    name: "skills",
    uriTemplate: "skill://{+path}",
    title: "Skills",
    description: "Instructions for recurring work, each a folder with a SKILL.md.",
    list: async () => {
      const skills = await catalog();
      const uris = (await skills.uris()).slice(0, LISTED);
      const summaries = await Promise.all(uris.map((uri) => skills.summarize(uri)));
      return summaries.flatMap((summary) => summary ?? []);
    },
    complete: {
      path: async (typed) => {
        const paths = (await (await catalog()).uris()).map((uri) => uri.slice("skill://".length));
        return paths.filter((path) => path.startsWith(typed));
      },
    },
    read: async ({ uri }) => ({ contents: await (await catalog()).read(uri), ttlMs: TTL_MS }),
  });
  mcp.server.setRequestHandler("skills/list", { params: PageParams }, ({ cursor }) =>
    guarded("skills/list", scope, async () => ({ ...(await page(await catalog(), cursor)), ...cache })),
  );
  mcp.server.setRequestHandler("skills/get", { params: UriParams }, ({ uri }) =>
    guarded("skills/get", scope, async () => {
      const skill = await (await catalog()).describe(uri);
      if (skill === undefined)
        throw invalid(`No skill is served at ${uri}. List them with skills/list.`, uri);
      return { skill, ...cache };
    }),
  );
  mcp.server.setRequestHandler("resources/directory/read", { params: UriParams }, ({ uri }) =>
    guarded("resources/directory/read", scope, async () => {
      const resources = await (await catalog()).children(uri);
      if (resources === undefined) throw invalid(`${uri} is not a folder of a skill that is served.`, uri);
      return { resources, ...cache };
    }),
  );
}

/** One page of descriptions; the cursor is the URI before it, so that pages fit together when skills change. */
async function page(
  catalog: SkillCatalog,
  cursor?: string,
): Promise<{ skills: object[]; nextCursor?: string }> {
  const after = cursor === undefined ? "" : Buffer.from(cursor, "base64url").toString();
  if (cursor !== undefined && !after.startsWith("skill://")) {
    throw invalid("Invalid cursor: take it from the answer before, or leave it out.");
  }
  const rest = (await catalog.uris()).filter((uri) => uri > after);
  const shown = rest.slice(0, PAGE);
  const skills: object[] = [];
  for (const uri of shown) {
    const skill = await catalog.describe(uri);
    if (skill !== undefined) skills.push(skill);
  }
  const last = rest.length > PAGE ? shown.at(-1) : undefined;
  return { skills, ...(last === undefined ? {} : { nextCursor: Buffer.from(last).toString("base64url") }) };
}

function invalid(message: string, uri?: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message, uri === undefined ? undefined : { uri });
}
