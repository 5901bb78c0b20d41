/** Loads the data for the screen of other MCP servers, and carries out its forms. */
import { serversPath } from "../contracts/viewer.ts";
import { type ServerNotice, renderServers } from "../views/room/servers.ts";
import { type Picture, type ScreenContext, livePicture, waitingFor } from "./screen-context.ts";

/** The part of its address to which a browser comes back from a log-in. */
const CALLBACK = "/callback";

export async function serversScreen(context: ScreenContext, notice?: ServerNotice): Promise<Picture> {
  const { runs, session, ownAddress } = context;
  const [servers, waiting] = await Promise.all([runs.agents.otherServers(), waitingFor(context)]);
  const screen = { session, servers: servers.states(), mayLogIn: ownAddress !== undefined, notice };
  const about = { title: "MCP servers", place: "servers", waiting } as const;
  return livePicture(context, about, () => renderServers(screen));
}

/** True for the address to which a browser comes back. */
export const isCallback = (path: string): boolean => path === serversPath() + CALLBACK;

/** Ends the log-in to which a browser came back. */
export async function afterLogin(context: ScreenContext, answer: URLSearchParams): Promise<Picture> {
  const servers = await context.runs.agents.otherServers();
  const ended = await servers.finishLogin(answer);
  const done = { done: "You are logged in. Runs that begin now use its tools." };
  return serversScreen(context, { server: ended.server, ...(ended.ok ? done : { problem: ended.problem }) });
}

/** Starts a log-in, and returns the address to continue at, or the reason of a failure. */
export async function beginAt({ runs, ownAddress }: ScreenContext, server: string): Promise<ServerNotice> {
  if (ownAddress === undefined) return { server, problem: "Log in on the machine of this server." };
  const begun = await (
    await runs.agents.otherServers()
  ).beginLogin(server, ownAddress() + serversPath() + CALLBACK);
  return { server, ...(begun.ok ? { address: begun.address } : { problem: begun.problem }) };
}
