import { AIMessage, ToolMessage } from "@langchain/core/messages";
import {
  getInteropZodObjectShape,
  interopSafeParse,
  isInteropZodObject,
  isInteropZodSchema,
} from "@langchain/core/utils/types";
import { type Command, isCommand, isGraphBubbleUp } from "@langchain/langgraph";
import { ConfigurationError, DeepAgentError, errorMessage } from "../../core/errors.ts";
import { type Logger, silentLogger } from "../../core/logger.ts";
import { checkSpelling } from "../../core/options.ts";
import { isObject } from "../../core/unknown.ts";
import { MiddlewareFailure } from "../calls/govern.ts";
import type {
  AgentMiddleware,
  AgentRuntime,
  CallResult,
  HookName,
  Middleware,
  ModelRequest,
  ToolCallRequest,
} from "../contracts/middleware.ts";
import type { JumpTarget, StateUpdate } from "../contracts/state.ts";
import { textIn } from "../messages/messages.ts";
import { toAgentTool } from "./foreign-tool.ts";
import { type Outcome, fromOutcome, toOutcome } from "./outcome.ts";
import texts from "./texts.json" with { type: "json" };
import { fill } from "../../core/text.ts";

type AnyHook = NonNullable<Middleware[HookName]>;

type Source = Omit<Middleware, HookName> &
  Partial<Record<HookName, AnyHook | { hook: AnyHook }>> & { contextSchema?: unknown };

const HOOKS: readonly HookName[] = ["beforeAgent", "beforeModel", "afterModel", "afterAgent"];
/** Middleware in our form. LangChain's may wrap hooks in objects, and answer a model call with a command. */
export function adaptMiddleware(input: AgentMiddleware, log: Logger = silentLogger): Middleware {
  // Both forms agree on names and calling conventions; differences are handled field by field here.
  const source = input as Source;
  const name: unknown = (input as Source | undefined)?.name; // callers without types pass anything
  if (typeof name !== "string" || name === "")
    throw new ConfigurationError("INVALID_MIDDLEWARE", "Each middleware needs a name, unique in its agent.");
  const wrappers = ["wrapModelCall", "wrapCall", "wrapToolCall", "gate", "finishRequest"];
  const fields = [...HOOKS, ...wrappers, "stateSchema", "contextSchema", "tools", "followTools"];
  checkSpelling(`The middleware '${name}'`, Object.keys(input), fields);
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
          throw new MiddlewareFailure(fill(texts.invalidHookResult, source.name, name));
        });
      return [[name, own]];
    }),
  );
  const { gate, finishRequest } = source;
  return {
    name,
    ...(source.stateSchema ? { stateSchema: source.stateSchema } : {}),
    ...(source.tools ? { tools: source.tools.map((tool) => toAgentTool(tool)) } : {}),
    ...(source.followTools ? { followTools: source.followTools.bind(source) } : {}),
    ...(gate && {
      gate: (request: ToolCallRequest) =>
        hooked({ middleware: name, hook: "gate", runtime: request.runtime, log }, () =>
          gate.call(source, request),
        ),
    }),
    ...(finishRequest && {
      finishRequest: (request: ModelRequest) => {
        try {
          return finishRequest.call(source, request);
        } catch (error) {
          throw failureOf(error, { middleware: name, hook: "finishRequest", log });
        }
      },
    }),
    ...hooks,
    ...adaptWrappers(source, log),
  };
}

function adaptWrappers(source: Source, log: Logger): Pick<Middleware, "wrapModelCall" | "wrapCall"> {
  const { wrapModelCall, wrapCall, wrapToolCall, name } = source;
  if (wrapCall && wrapToolCall)
    throw new ConfigurationError("INVALID_MIDDLEWARE", fill(texts.twoToolWrappers, name));
  const wrap =
    wrapCall ??
    (wrapToolCall &&
      (async (request, next) => {
        const shown: CallResult[] = [];
        const show = async (changed: ToolCallRequest): Promise<Outcome> => {
          const result = await next(changed);
          shown.push(result, ...(result.further ?? []));
          return toOutcome(changed.toolCall, result);
        };
        const answer: unknown = await wrapToolCall.call(source, request, (changed) => handled(show(changed)));
        if (ToolMessage.isInstance(answer) || isCommand(answer)) return withWhole(fromOutcome(answer), shown);
        throw new MiddlewareFailure(fill(texts.invalidToolResult, source.name));
      }));
  return {
    ...(wrapModelCall && {
      wrapModelCall: adaptWrapper(source, log, "wrapModelCall", wrapModelCall, (reply, request, last) => {
        if (AIMessage.isInstance(reply)) return reply;
        if (isCommand(reply)) return applyCommand(name, reply, request, last);
        throw new MiddlewareFailure(`Middleware ${name} must answer a model call with an assistant message.`);
      }),
    }),
    ...(wrap && {
      wrapCall: adaptWrapper(source, log, wrapCall ? "wrapCall" : "wrapToolCall", wrap, (result) => {
        if (isObject(result) && "content" in result) return result as CallResult; // with content, it is one
        throw new MiddlewareFailure(`Middleware ${name} must answer a call with a result that has content.`);
      }),
    }),
  };
}

/**
 * An answer with the whole text of the result that it repeats. Words around the result's own text stand around the
 * preview of the whole one. With any other text the whole one is dropped: the wrapper may have redacted it.
 */
function withWhole({ further, ...answer }: CallResult, shown: readonly CallResult[]): CallResult {
  const text = textIn(answer.content);
  const isSame = ({ content }: CallResult): boolean => textIn(content) === text;
  const isWithin = ({ whole, content }: CallResult): boolean =>
    whole !== undefined && textIn(content) !== "" && text.includes(textIn(content));
  const { whole, content = "" } = shown.findLast(isSame) ?? shown.findLast(isWithin) ?? {};
  const others = further && { further: further.map((one) => withWhole(one, shown)) };
  if (!whole) return { ...answer, ...others };
  const own = textIn(content);
  const at = text.indexOf(own);
  const start = text.slice(0, at) + (whole.start ?? "");
  const end = whole.end + text.slice(at + own.length);
  return { ...answer, ...others, whole: { ...whole, start, end } };
}

type Handler<Request, Result> = (request: Request) => Promise<Result>;
type Wrapper<Request, Result> = (request: Request, next: Handler<Request, Result>) => Promise<Result>;

/** `wrap` with its own context and a checked answer. `accept` also gets the last result of the inner handler. */
function adaptWrapper<Request extends { readonly runtime: AgentRuntime }, Result>(
  source: Source,
  log: Logger,
  hook: "wrapModelCall" | "wrapCall" | "wrapToolCall",
  wrap: Wrapper<Request, Result>,
  accept: (answer: unknown, request: Request, last: Result | undefined) => Result,
): Wrapper<Request, Result> {
  return (request, next) => {
    const { runtime } = request;
    const thrown = new Set<unknown>();
    let last: Result | undefined;
    const noted = async (changed: Request): Promise<Result> => {
      try {
        return (last = await next(changed));
      } catch (error) {
        thrown.add(error);
        throw error;
      }
    };
    const work = async (): Promise<Result> => {
      const own = { ...request, runtime: withOwnContext(source, runtime) };
      return accept(await wrap.call(source, own, (changed) => handled(noted(changed))), request, last);
    };
    return hooked({ middleware: source.name, hook, runtime, log }, work, thrown);
  };
}

/** Lets a wrapper drop work without an unhandled rejection, which would end the process. */
function handled<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  return work;
}

/** The run's context as the middleware's own schema reads it, defaults included. */
function withOwnContext({ name, contextSchema }: Source, runtime: AgentRuntime): AgentRuntime {
  const context = runtime.context ?? {};
  if (!isInteropZodSchema(contextSchema)) return { ...runtime, context };
  // Strict schemas would refuse the keys of other middleware.
  const shape = isInteropZodObject(contextSchema) ? getInteropZodObjectShape(contextSchema) : context;
  const own = Object.entries(context).filter(([key]) => Object.hasOwn(shape, key));
  const parsed = interopSafeParse(contextSchema, shape === context ? context : Object.fromEntries(own));
  if (parsed.success) return { ...runtime, context: parsed.data };
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new ConfigurationError("INVALID_CONTEXT", fill(texts.invalidContext, name, problems.join("; ")));
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
  const changes: StateUpdate = Array.isArray(update) ? Object.fromEntries(update) : (update ?? {});
  const { messages = [], ...rest } = changes;
  const reply = answered ?? messages.findLast((message) => AIMessage.isInstance(message));
  if (!AIMessage.isInstance(reply)) throw new MiddlewareFailure(fill(texts.invalidModelResult, name));
  const [place, ...furtherPlaces] = [goto ?? []].flat();
  const jumpTo = typeof place === "string" && furtherPlaces.length === 0 ? PLACES[place] : undefined;
  if (place !== undefined && !jumpTo)
    throw new MiddlewareFailure(`Middleware ${name} may go to the model, the tools or the end only.`);
  const others = messages.filter((message) => message !== reply);
  request.updateState({ ...rest, ...(others.length > 0 && { messages: others }), ...(jumpTo && { jumpTo }) });
  return reply;
}

interface HookCall {
  middleware: string;
  hook: string;
  log: Logger;
}

/** Runs a hook, whose own errors become failures of the middleware. `passed`: failures from further in. */
async function hooked<Result>(
  call: HookCall & { runtime: AgentRuntime },
  run: () => Result | Promise<Result>,
  passed: ReadonlySet<unknown> = new Set(),
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (passed.has(error) || isGraphBubbleUp(error) || call.runtime.signal?.aborted === true) throw error;
    throw failureOf(error, call);
  }
}

/** Logs an error of a hook, and returns it as a failure of the middleware. Expected errors are returned unchanged. */
function failureOf(error: unknown, { middleware, hook, log }: HookCall): unknown {
  if (error instanceof DeepAgentError && !(error instanceof MiddlewareFailure)) return error;
  log.error("middleware_error", { middleware, hook, error });
  if (error instanceof MiddlewareFailure) return error;
  return new MiddlewareFailure(errorMessage(error), { cause: error });
}
