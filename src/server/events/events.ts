/** The Events extension: clients poll, stream and subscribe to events of their principal's runs, in both eras. */
import { type McpServer, ProtocolError } from "@modelcontextprotocol/server";
import { z } from "zod";
import { memoized } from "../../core/concurrency.ts";
import { DeepAgentError } from "../../core/errors.ts";
import type { ConnectionDeps, ServerDeps } from "../contracts/deps.ts";
import { guarded } from "../resources/resource.ts";
import type { Answer } from "./answers.ts";

export interface EventsScope {
  deps: ConnectionDeps;
  answers: () => Promise<Readonly<Record<string, Answer>>>;
}

/** Returns the answers of a process, which are loaded once. */
export const eventAnswers = (deps: ServerDeps<unknown>): EventsScope["answers"] =>
  memoized(async () => (await import("./answers.ts")).answersTo(deps));

export function registerEvents(mcp: McpServer, { deps, answers }: EventsScope): void {
  for (const method of ["list", "poll", "stream", "subscribe", "unsubscribe"]) {
    mcp.server.setRequestHandler(`events/${method}`, { params: z.looseObject({}) }, (given, context) =>
      guarded(`events/${method}`, deps, async () => {
        const principal = deps.principalOf(context.http?.authInfo);
        const answer = (await answers())[method];
        const { news } = await deps.runs();
        try {
          return { ...(await answer?.(given, { news, principal, context, now: deps.clock() })) };
        } catch (error) {
          const isRefused = error instanceof DeepAgentError && error.code === "insufficient_scope";
          throw isRefused ? new ProtocolError(-32_012, `Forbidden: ${error.message}`) : error;
        }
      }),
    );
  }
}
