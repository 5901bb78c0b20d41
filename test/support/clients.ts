import { Client as ModernClient, type Transport as ModernTransport } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport as FirstTransport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CreateMessageRequestSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

/**
 * `v1`: the SDK of 2025, `v2-legacy`: the successor speaking 2025-11-25, `v2-modern`: the successor
 * speaking 2026-07-28.
 */
export const CLIENT_KINDS = ["v1", "v2-legacy", "v2-modern"] as const;
export type ClientKind = (typeof CLIENT_KINDS)[number];

/** A form as the client gets it. */
export interface Form {
  message: string;
  requestedSchema: { properties: Record<string, unknown> };
}

/** An alias, not an interface: the SDKs want an index signature. */
export type FormAnswer = {
  action: "accept" | "decline" | "cancel";
  content?: Record<string, string | number | boolean | string[]>;
};

/** Who answers forms. */
export type Person = (form: Form) => FormAnswer | Promise<FormAnswer>;

/** An address that the client is to open. */
export interface PageRequest {
  message: string;
  url: string;
}

/** Opens addresses for the person. */
export type Browser = (page: PageRequest) => FormAnswer | Promise<FormAnswer>;

export interface ClientOptions {
  kind: ClientKind;
  /** What it calls itself. Default: a name that nobody knows. */
  name?: string;
  /** Without one the client declares that it shows no forms. */
  person?: Person;
  /** Without one the client declares that it opens no addresses. */
  browser?: Browser;
  /** What its model replies; without it the client lends none. What it throws is the client's refusal. */
  model?: LentModel;
}

interface SampledMessage {
  role: string;
  content: unknown;
}

/** Parameters of a sampling request, as far as tests look at them. */
export interface Sampled {
  systemPrompt?: string | undefined;
  messages: SampledMessage[];
  tools?: { name: string }[] | undefined;
}

export type LentModel = (request: Sampled, signal: AbortSignal) => SampledReply | Promise<SampledReply>;

/** An alias, not an interface: the SDKs want an index signature. */
export type SampledReply = {
  role: "assistant";
  model: string;
  stopReason?: string;
  content:
    | { type: "text"; text: string }
    | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> }[];
};

interface CallOptions {
  /** Gets the lines of progress; without it no progress is asked for. */
  onProgress?: (line: string, progress: number) => void;
  signal?: AbortSignal;
  timeout?: number;
}

export interface CallOutcome {
  text: string;
  structured: Record<string, unknown>;
  isError: boolean;
  raw: unknown;
}

export interface TestClient {
  readonly kind: ClientKind;
  call(name: string, args: Record<string, unknown>, options?: CallOptions): Promise<CallOutcome>;
  listTools(): Promise<{ name: string }[]>;
  listResources(): Promise<{ uri: string; name: string }[]>;
  /** What the server answered, cache hints included where the era has them. */
  readResource(uri: string): Promise<ReadOutcome>;
  complete(
    template: string,
    argument: string,
    value: string,
    known?: Record<string, string>,
  ): Promise<string[]>;
  /** Asks for updates of a resource in the way of the era; call the result to end it. */
  watch(uri: string): Promise<() => Promise<void>>;
  /** Ids of the elicitations that the server called complete. */
  readonly completed: readonly string[];
  /** URIs of the updates that came in, in order; `*` for a change of the list. */
  readonly updates: readonly string[];
  close(): Promise<void>;
}

interface ReadOutcome {
  contents: Record<string, unknown>[];
  ttlMs?: number;
  cacheScope?: string;
}

/** How to reach a server: a fresh transport for either SDK. */
export interface Connector {
  first(): FirstTransport;
  modern(): ModernTransport;
}

const infoOf = ({ name = "test-client" }: ClientOptions) => ({ name, version: "1.0.0" });
const TIMEOUT = 100_000;

/** Connects a client, and makes sure that it speaks the era it is meant to speak. */
export async function connectClient(to: Connector, options: ClientOptions): Promise<TestClient> {
  return options.kind === "v1" ? connectFirst(to, options) : connectModern(to, options);
}

async function connectFirst(to: Connector, options: ClientOptions): Promise<TestClient> {
  const { kind, person, browser, model } = options;
  const capabilities = {
    // Of clients with forms alone, nothing but the name is all that was known at first.
    ...(person || browser ? { elicitation: browser ? elicitationOf(options) : {} } : {}),
    ...(model ? { sampling: { tools: {} } } : {}),
  };
  const client = new FirstClient(infoOf(options), { capabilities });
  if (model) {
    client.setRequestHandler(CreateMessageRequestSchema, async ({ params }, { signal }) =>
      model(params, signal),
    );
  }
  if (person || browser) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params, options));
  }
  const updates: string[] = [];
  const completed: string[] = [];
  client.setNotificationHandler(
    ElicitationCompleteNotificationSchema,
    ({ params }) => void completed.push(params.elicitationId),
  );
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }) => void updates.push(params.uri),
  );
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => void updates.push("*"));
  await client.connect(to.first());
  return {
    kind,
    updates,
    completed,
    call: async (name, args, call) =>
      outcomeOf(await client.callTool({ name, arguments: args }, undefined, requestOptions(call))),
    listTools: async () => (await client.listTools()).tools,
    listResources: async () => (await client.listResources()).resources,
    readResource: async (uri) => client.readResource({ uri }),
    complete: async (template, argument, value, known) => {
      const { completion } = await client.complete(completionOf(template, argument, value, known));
      return completion.values;
    },
    watch: async (uri) => {
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    close: () => client.close(),
  };
}

async function connectModern(to: Connector, options: ClientOptions): Promise<TestClient> {
  const { kind, person, browser, model } = options;
  const modern = kind === "v2-modern";
  const client = new ModernClient(infoOf(options), {
    capabilities: {
      ...(person || browser ? { elicitation: elicitationOf(options) } : {}),
      ...(model ? { sampling: { tools: {} } } : {}),
    },
    versionNegotiation: { mode: modern ? { pin: "2026-07-28" } : "legacy" },
  });
  if (model) {
    client.setRequestHandler("sampling/createMessage", async ({ params }, { mcpReq }) =>
      model(params, mcpReq.signal),
    );
  }
  if (person || browser) {
    client.setRequestHandler("elicitation/create", async ({ params }) => answer(params, options));
  }
  const updates: string[] = [];
  const completed: string[] = [];
  client.setNotificationHandler(
    "notifications/elicitation/complete",
    ({ params }) => void completed.push(params.elicitationId),
  );
  client.setNotificationHandler(
    "notifications/resources/updated",
    ({ params }) => void updates.push(params.uri),
  );
  client.setNotificationHandler("notifications/resources/list_changed", () => void updates.push("*"));
  await client.connect(to.modern());
  if (client.getProtocolEra() !== (modern ? "modern" : "legacy")) {
    throw new Error(`a client of kind ${kind} speaks ${client.getProtocolEra()}`);
  }
  return {
    kind,
    updates,
    completed,
    call: async (name, args, call) =>
      outcomeOf(await client.callTool({ name, arguments: args }, requestOptions(call))),
    listTools: async () => (await client.listTools()).tools,
    listResources: async () => (await client.listResources()).resources,
    readResource: async (uri) => client.readResource({ uri }, { cacheMode: "bypass" }),
    complete: async (template, argument, value, known) => {
      const { completion } = await client.complete(completionOf(template, argument, value, known));
      return completion.values;
    },
    watch: async (uri) => {
      if (modern) {
        const subscription = await client.listen({
          resourceSubscriptions: [uri],
          resourcesListChanged: true,
        });
        return () => subscription.close();
      }
      await client.subscribeResource({ uri });
      return async () => void (await client.unsubscribeResource({ uri }));
    },
    close: () => client.close(),
  };
}

const elicitationOf = ({ person, browser }: ClientOptions) => ({
  ...(person ? { form: {} } : {}),
  ...(browser ? { url: {} } : {}),
});

async function answer(params: object, { person, browser }: ClientOptions): Promise<FormAnswer> {
  // Both SDKs have checked the parameters.
  if ("requestedSchema" in params && person) return person(params as unknown as Form);
  if ("url" in params && browser) return browser(params as unknown as PageRequest);
  throw new Error("the server asked in a way that the client has not declared");
}

function completionOf(template: string, name: string, value: string, known?: Record<string, string>) {
  return {
    ref: { type: "ref/resource" as const, uri: template },
    argument: { name, value },
    ...(known === undefined ? {} : { context: { arguments: known } }),
  };
}

function requestOptions({ onProgress, signal, timeout = TIMEOUT }: CallOptions = {}) {
  return {
    timeout,
    ...(signal === undefined ? {} : { signal }),
    ...(onProgress === undefined
      ? {}
      : {
          onprogress: ({ message, progress }: { message?: string; progress: number }) =>
            onProgress(message ?? "", progress),
        }),
  };
}

function outcomeOf(result: object): CallOutcome {
  const { content, structuredContent, isError } = result as {
    content: { type: string; text?: string }[];
    structuredContent?: Record<string, unknown>;
    isError?: boolean;
  };
  return {
    text: content.map((block) => (block.type === "text" ? (block.text ?? "") : "")).join("\n"),
    structured: structuredContent ?? {},
    isError: isError === true,
    raw: result,
  };
}
