/** Sits between LangChain's models and their servers: applies rules to requests, repeats refused ones, mends answers. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { BaseMessage } from "@langchain/core/messages";
import type { ChatGenerationChunk } from "@langchain/core/outputs";
import { byIdentity } from "../../core/by-identity.ts";
import { fill } from "../../core/text.ts";
import { isObject, memberOf, recordOf } from "../../core/unknown.ts";
import { failureFacts } from "./failure.ts";
import { type Lesson, Lessons, learn } from "./profiles/learned.ts";
import { type Wire, outgoing, signatureDigests } from "./profiles/outgoing.ts";
import { type Profile, buildProfile, joinRules, knownWindow } from "./profiles/profile.ts";
import type { RequestRules } from "./profiles/schema.ts";
import { modelName } from "./reply.ts";
import { carryExtras, unpacked } from "./provider-extras.ts";
import { type Json, strictChunks, strictEvents } from "./strict-chunks.ts";
import texts from "./texts.json" with { type: "json" };
import { asArray } from "./tool-schema.ts";

/** Lessons that are applied to one request. */
const MOST_LESSONS = 6;
/** Statuses of refusals of a request's form; servers that render a template fail with the last two. */
const ABOUT_FORM: ReadonlySet<number | undefined> = new Set([400, 404, 415, 422, 500, 501]);

interface ExchangeOptions {
  /** Default: in memory, for this model only. */
  lessons?: Lessons | undefined;
  /** The window that the person set, in tokens. */
  window?: number | undefined;
  /** Asks the server for its window. */
  askWindow?: () => Promise<number | undefined>;
  /** The variable that the key is from, for the errors of requests. */
  keyVariable?: string | undefined;
}

export class Exchange {
  readonly profile: Profile;
  readonly #lessons: Lessons;
  readonly #options: ExchangeOptions;
  readonly #refusedSignatures = new Set<string>();
  readonly #told = new Set<string>();
  /** Lessons by which requests go to the responses API, until one is accepted or refused there. */
  #trial: Lesson[] = [];
  #hasAsked = false;
  #toldWindow: number | undefined;
  #notices: string[] = [];

  constructor(profile: Profile, options: ExchangeOptions = {}) {
    this.profile = profile;
    this.#lessons = options.lessons ?? new Lessons();
    this.#options = options;
  }

  /** Tokens that a request may have; `undefined`: not known. The server is asked once, after the first request. */
  get window(): number | undefined {
    const learned = this.#lessons.of(this.profile).window;
    return this.#options.window ?? learned ?? this.#toldWindow ?? knownWindow(this.profile);
  }

  /** Keeps the window that a refusal named, or at which the server cuts requests without a word. */
  learnWindow(window: number, notice?: string): void {
    if (this.#options.window !== undefined || this.#lessons.of(this.profile).window === window) return;
    this.#lessons.keep(this.profile, {}, window);
    if (notice !== undefined) this.note(notice);
  }

  /** Adds a notice about this server, each text once. */
  note(notice: string): void {
    if (this.#told.has(notice)) return;
    this.#told.add(notice);
    this.#notices.push(notice);
  }

  /** The rules of the profile and the learned ones. */
  get rules(): RequestRules {
    const tried = this.#trial.map(({ rules }) => rules);
    return joinRules(this.profile.rules, this.#lessons.of(this.profile).rules, ...tried);
  }

  takeNotices(): string[] {
    const notices = this.#notices;
    this.#notices = [];
    return notices;
  }

  /**
   * Sends a request by the rules. If its form is refused, sends it again without the refused part; the lesson is kept
   * once a request is accepted.
   *
   * @throws the error of the last refusal.
   */
  async send(body: Json, wire: Wire, post: (sent: Json) => Promise<unknown>): Promise<unknown> {
    const lessons: Lesson[] = [];
    for (;;) {
      const rules = joinRules(this.rules, ...lessons.map((lesson) => lesson.rules));
      const sent = outgoing(body, wire, rules, this.#refusedSignatures);
      try {
        const answer = await post(sent);
        const trial = wire === "responses" ? this.#trial.splice(0) : [];
        const taught = [...trial, ...lessons].filter(({ about }) => about !== "");
        if (taught.length > 0) {
          const request = joinRules(...taught.map((lesson) => lesson.rules));
          const { place, model } = this.profile;
          this.#lessons.keep(this.profile, request);
          const setting = JSON.stringify({ models: { NAME: { model, request } } });
          this.note(fill(texts.lesson, place, taught.map(({ about }) => about).join(", "), model, setting));
        }
        // Some servers know the window only once they have loaded the model.
        if (!this.#hasAsked) void this.#options.askWindow?.().then((window) => (this.#toldWindow = window));
        this.#hasAsked = true;
        return answer;
      } catch (error) {
        if (isObject(error)) Reflect.set(error, "keyVariable", this.#options.keyVariable);
        const lesson = lessons.length < MOST_LESSONS ? this.#lessonIn(error, sent, wire, rules) : undefined;
        if (lesson !== undefined) lessons.push(lesson);
        if (lesson !== undefined && lesson.rules.wire === undefined) continue;
        if (lesson !== undefined) this.#trial = lessons;
        else if (wire === "responses") this.#trial = [];
        throw error;
      }
    }
  }

  #lessonIn(error: unknown, body: Json, wire: Wire, rules: RequestRules): Lesson | undefined {
    const { status, kind, text, reason, reported } = failureFacts(error);
    const isAboutForm = kind === undefined || kind === "unsupported" || kind === "fault";
    // A refusal inside a stream may have no status.
    const isRefusal = status === undefined ? reported && reason === "model_error" : ABOUT_FORM.has(status);
    if (!isAboutForm || !isRefusal) return undefined;
    // Some servers want thinking that is missing, others refuse that of other models.
    if (wire === "messages" && /signature|thinking/i.test(text) && !/passed back/i.test(text)) {
      const refused = signatureDigests(body);
      refused.forEach((digest) => this.#refusedSignatures.add(digest));
      if (refused.length > 0) return { rules: {}, about: "" };
    }
    return learn({ text, body, wire, rules });
  }
}

const exchanges = new WeakMap<object, Exchange>();

/** Finds the exchange of a model that this program made, also for its copies; `undefined` for other models. */
export const findExchange = (model: BaseChatModel): Exchange | undefined =>
  exchanges.get(model) ?? exchanges.get(Object(memberOf(model, "completions")) as object);

/** The profile of any model, including models that the program did not make. */
const modelProfile = byIdentity(
  (model: BaseChatModel): Profile => findExchange(model)?.profile ?? buildProfile(modelName(model)),
);

/** Tokens that a request to a model may have; `undefined`: not known. */
export const contextWindow = (model: BaseChatModel): number | undefined =>
  findExchange(model)?.window ?? knownWindow(modelProfile(model)) ?? model.profile.maxInputTokens;

/** True if a model can be made to call a tool; some cannot, or not while they reason. */
export function canBeForced(model: BaseChatModel): boolean {
  const thinking = memberOf(memberOf(model, "thinking"), "type");
  const { enable_thinking: enabled, thinking: own } = recordOf(memberOf(model, "modelKwargs"));
  const isOff = enabled === false || memberOf(own, "type") === "disabled";
  const { forced = "unlessThinking" } = findExchange(model)?.rules ?? modelProfile(model).rules;
  const unlessEnabled = thinking !== "enabled";
  const unlessThinking = unlessEnabled && thinking !== "adaptive";
  return { no: false, unlessOff: isOff, unlessEnabled, unlessThinking, yes: true }[forced];
}

export function setExchange<Model extends object>(model: Model, exchange: Exchange): Model {
  exchanges.set(model, exchange);
  return model;
}

/** The events of an answer once one has content: servers refuse requests in streams that they began, too. */
async function begun(
  answer: unknown,
  convert = (events: AsyncIterable<unknown>): AsyncIterable<unknown> => events,
): Promise<unknown> {
  if (!isObject(answer) || !(Symbol.asyncIterator in answer)) return answer;
  const isPreamble = (event: unknown): boolean => {
    const { type, choices } = recordOf(event);
    if (typeof type === "string")
      return /^(?:ping|message_start|response\.(?:created|queued|in_progress))$/.test(type);
    const { delta, finish_reason: end } = recordOf(asArray(choices)[0]);
    const { role: _role, content, ...others } = recordOf(delta);
    return !end && !content && Object.keys(others).length === 0;
  };
  const source = convert(answer as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  const first: unknown[] = [];
  let next = await source.next();
  for (; next.done !== true && isPreamble(next.value); next = await source.next()) first.push(next.value);
  const events = (async function* () {
    try {
      yield* first;
      for (; next.done !== true; next = await source.next()) yield next.value;
    } finally {
      await source.return?.();
    }
  })();
  return Object.assign(events, { controller: memberOf(answer, "controller") });
}

type Send = (request: Json, ...more: unknown[]) => Promise<unknown>;

interface Completions {
  _streamResponseChunks(messages: BaseMessage[], ...more: unknown[]): AsyncGenerator<ChatGenerationChunk>;
  completionWithRetry: Send;
}

/**
 * Connects a chat completions model to its exchange; other kinds are returned unchanged. `responses`: the same model
 * over the responses API, for servers that require it.
 */
export function exchangeCompletions<Model extends object>(
  model: Model,
  exchange: Exchange,
  { origin, responses }: { origin: string; responses?: object },
): Model {
  if (typeof Reflect.get(model, "completionWithRetry") !== "function") return model;
  const completions = carryExtras(model, origin) as Model & Completions; // it has the method
  const send = completions.completionWithRetry.bind(completions);
  completions.completionWithRetry = async (request, ...more) => {
    const messages = asArray(request["messages"]).map((message) => unpacked(recordOf(message)));
    return exchange.send({ ...request, messages }, "chat", async (sent) =>
      begun(await send(sent, ...more), strictChunks),
    );
  };
  if (responses === undefined) return completions;
  const stream = completions._streamResponseChunks.bind(completions);
  const other = responses as Completions; // LangChain's class has it
  completions._streamResponseChunks = async function* (...call) {
    let hasBegun = false;
    try {
      if (exchange.rules.wire !== "responses") {
        for await (const piece of stream(...call)) {
          hasBegun = true;
          yield piece;
        }
        return;
      }
    } catch (error) {
      if (hasBegun || exchange.rules.wire !== "responses") throw error;
    }
    yield* other._streamResponseChunks(...call);
  };
  return completions;
}

export function exchangeMessages<Model extends object>(model: Model, exchange: Exchange): Model {
  const messages = model as Model & { createStreamWithRetry: Send }; // LangChain's class has it, that of a test may not
  if (typeof messages.createStreamWithRetry !== "function") return model;
  const open = messages.createStreamWithRetry.bind(messages);
  messages.createStreamWithRetry = (request, ...more) =>
    exchange.send(request, "messages", async (sent) => begun(await open(sent, ...more), strictEvents));
  return model;
}

/** A model of OpenAI's two APIs. Copies of it are made from its fields. */
export async function openAiModel(fields: Record<string, unknown>, exchange: Exchange, origin: string) {
  const loaded = await import("@langchain/openai");
  // Tests of a program may replace the package by one with this class only.
  if (!["ChatOpenAICompletions", "ChatOpenAIResponses"].every((name) => name in loaded))
    return new loaded.ChatOpenAI(fields);
  const { ChatOpenAI, ChatOpenAICompletions, ChatOpenAIResponses } = loaded;
  const responses = new ChatOpenAIResponses(fields);
  const params = responses.invocationParams.bind(responses);
  // The package leaves out here that any tool has to be called.
  responses.invocationParams = (options) =>
    options?.tool_choice === "any" ? { ...params(options), tool_choice: "required" } : params(options);
  const asking = responses as unknown as Completions; // LangChain's class has it
  const send = asking.completionWithRetry.bind(responses);
  asking.completionWithRetry = (request, ...more) =>
    exchange.send(request, "responses", async (sent) => begun(await send(sent, ...more)));
  const completions = exchangeCompletions(new ChatOpenAICompletions(fields), exchange, { origin, responses });
  return new ChatOpenAI({ ...fields, completions: setExchange(completions, exchange), responses });
}
