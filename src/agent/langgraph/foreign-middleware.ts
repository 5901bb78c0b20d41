import { AIMessage, ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import {
  getInteropZodObjectShape,
  interopSafeParse,
  isInteropZodObject,
  isInteropZodSchema,
} from "@langchain/core/utils/types";
import { type Command, isCommand } from "@langchain/langgraph";
import { ConfigurationError } from "../../core/errors.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { checkSpelling } from "../../core/options.ts";
import { toAgentTool } from "../calls/tool.ts";
import type {
  AgentMiddleware,
  AgentRuntime,
  HookName,
  Middleware,
  ModelRequest,
} from "../contracts/middleware.ts";
import type { AgentTool } from "../contracts/call.ts";
import type { JumpTarget, StateUpdate } from "../contracts/state.ts";
import { MiddlewareFailure, failureOf, hooked, noting } from "../layers/compose.ts";

type AnyHook = NonNullable<Middleware[HookName]>;

type Source = Omit<Middleware, HookName> &
  Partial<Record<HookName, AnyHook | { hook: AnyHook }>> & { contextSchema?: unknown };

const HOOKS: readonly HookName[] = ["beforeAgent", "beforeModel", "afterModel", "afterAgent"];
const WRAPPERS = ["wrapModelCall", "wrapToolCall", "gate", "finishRequest"] as const;
const FIELDS: readonly string[] = [...HOOKS, ...WRAPPERS, "stateSchema", "contextSchema", "tools"];

/**
 * Middleware in our form: LangChain's may wrap hooks in objects, carries LangChain tools, states what it
 * needs of the run's context, and may answer a model call with a command.
 */
export function adaptMiddleware(input: AgentMiddleware, log: Logger = silentLogger): Middleware {
  // Both forms agree on names and calling conventions; what differs is handled field by field here.
  const source = input as Source;
  const name: unknown = (input as Source | undefined)?.name; // what callers without types pass
  if (typeof name !== "string" || name === "") {
    throw new ConfigurationError("INVALID_MIDDLEWARE", "Each middleware needs a name, unique in its agent.");
  }
  checkSpelling(`The middleware '${name}'`, Object.keys(input), FIELDS);
  const hooks = Object.fromEntries(
    HOOKS.flatMap((name) => {
      const found = source[name];
      if (!found) return [];
      const hook: AnyHook = typeof found === "function" ? found.bind(source) : found.hook;
      const own: AnyHook = (state, runtime) =>
        hooked({ middleware: source.name, hook: name, runtime, log }, async () => {
          const update: unknown = await hook(state, withOwnContext(source, runtime));
          if ((update ?? undefined) === undefined) return undefined;
          if (typeof update === "object") return update as StateUpdate; // whose channels the graph checks
          throw new MiddlewareFailure(
            `Middleware ${source.name} must answer ${name} with an object or nothing.`,
          );
        });
      return [[name, own]];
    }),
  );
  return {
    name: source.name,
    ...(source.stateSchema ? { stateSchema: source.stateSchema } : {}),
    ...(source.tools ? { tools: source.tools.map(adaptTool) } : {}),
    ...adaptGate(source, log),
    ...adaptFinish(source, log),
    ...hooks,
    ...adaptWrappers(source, log),
  };
}

function adaptTool(tool: AgentTool | StructuredToolInterface): AgentTool {
  return "offered" in tool ? tool : toAgentTool(tool);
}

function adaptGate(source: Source, log: Logger): Pick<Middleware, "gate"> {
  const { name: middleware, gate } = source;
  if (gate === undefined) return {};
  return {
    gate: (request) =>
      hooked({ middleware, hook: "gate", runtime: request.runtime, log }, () => gate.call(source, request)),
  };
}

function adaptFinish(source: Source, log: Logger): Pick<Middleware, "finishRequest"> {
  const { name: middleware, finishRequest } = source;
  if (finishRequest === undefined) return {};
  return {
    finishRequest: (request) => {
      try {
        return finishRequest.call(source, request);
      } catch (error) {
        throw failureOf(error, { middleware, hook: "finishRequest", log });
      }
    },
  };
}

function adaptWrappers(source: Source, log: Logger): Pick<Middleware, "wrapModelCall" | "wrapToolCall"> {
  const { wrapModelCall, wrapToolCall, name } = source;
  return {
    ...(wrapModelCall && {
      wrapModelCall: adaptWrapper(source, log, "wrapModelCall", wrapModelCall, (reply, request, last) => {
        if (AIMessage.isInstance(reply)) return reply;
        if (isCommand(reply)) return applyCommand(name, reply, request, last);
        throw new MiddlewareFailure(`Middleware ${name} must answer a model call with an assistant message.`);
      }),
    }),
    ...(wrapToolCall && {
      wrapToolCall: adaptWrapper(source, log, "wrapToolCall", wrapToolCall, (outcome) => {
        if (ToolMessage.isInstance(outcome) || isCommand(outcome)) return outcome;
        throw new MiddlewareFailure(
          `Middleware ${name} must answer a tool call with a tool message or a command.`,
        );
      }),
    }),
  };
}

type Wrapper<Request, Result> = (
  request: Request,
  next: (request: Request) => Promise<Result>,
) => Promise<Result>;

/** `wrap` with its own context and a checked answer. `accept` also gets the last result of the inner handler. */
function adaptWrapper<Request extends { readonly runtime: AgentRuntime }, Result>(
  source: Source,
  log: Logger,
  hook: "wrapModelCall" | "wrapToolCall",
  wrap: Wrapper<Request, Result>,
  accept: (answer: unknown, request: Request, last: Result | undefined) => Result,
): Wrapper<Request, Result> {
  return (request, next) => {
    const { runtime } = request;
    const inner = noting(next);
    let last: Result | undefined;
    const noted = async (changed: Request): Promise<Result> => (last = await inner.next(changed));
    const work = async (): Promise<Result> => {
      const own = { ...request, runtime: withOwnContext(source, runtime) };
      return accept(await wrap.call(source, own, noted), request, last);
    };
    return hooked({ middleware: source.name, hook, runtime, log }, work, inner.thrown);
  };
}

/** The run's context as the middleware's own schema reads it, defaults included. */
function withOwnContext({ name, contextSchema }: Source, runtime: AgentRuntime): AgentRuntime {
  const context = runtime.context ?? {};
  if (!isInteropZodSchema(contextSchema)) return { ...runtime, context };
  const parsed = interopSafeParse(contextSchema, ownPart(contextSchema, context));
  if (parsed.success) return { ...runtime, context: parsed.data };
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ConfigurationError(
    "INVALID_CONTEXT",
    `The context of this run does not fit middleware ${name}: ${problems.join("; ")}`,
  );
}

/** The keys of a context that a schema declares; strict schemas would refuse those of other middleware. */
function ownPart(schema: unknown, context: object): object {
  if (!isInteropZodObject(schema)) return context;
  const known = Object.keys(getInteropZodObjectShape(schema));
  return Object.fromEntries(Object.entries(context).filter(([key]) => known.includes(key)));
}

/** Names that LangChain middleware uses for places in the loop. */
const PLACES: Readonly<Record<string, JumpTarget>> = {
  __end__: "end",
  end: "end",
  model: "model",
  model_request: "model",
  tools: "tools",
};

/** Takes the command's update along with the reply: the one of the model, or the last in the update. */
function applyCommand(
  name: string,
  { update, goto }: Command,
  request: ModelRequest,
  answered: AIMessage | undefined,
): AIMessage {
  const { messages = [], ...rest } = updateOf(update);
  const reply = answered ?? messages.findLast((message) => AIMessage.isInstance(message));
  if (!AIMessage.isInstance(reply)) {
    throw new MiddlewareFailure(
      `Middleware ${name} must call the model or answer with an assistant message.`,
    );
  }
  const others = messages.filter((message) => message !== reply);
  request.updateState({
    ...rest,
    ...(others.length > 0 ? { messages: others } : {}),
    ...jump(name, goto),
  });
  return reply;
}

function updateOf(update: Command["update"]): StateUpdate {
  return Array.isArray(update) ? Object.fromEntries(update) : (update ?? {});
}

function jump(name: string, goto: Command["goto"]): { jumpTo?: JumpTarget } {
  const [place, ...others] = [goto ?? []].flat();
  if (place === undefined) return {};
  const target = typeof place === "string" && others.length === 0 ? PLACES[place] : undefined;
  if (target) return { jumpTo: target };
  throw new MiddlewareFailure(`Middleware ${name} may go to the model, the tools or the end only.`);
}
