/** Asks the person at an AG-UI program, in the forms that its version and its tools know, and reads the answers. */
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import type { Interrupt, RunAgentInput } from "@ag-ui/core";
import { isoTime } from "../../core/clock.ts";
import { DeepAgentError } from "../../core/errors.ts";
import { defined, isRecord, parsedJson, recordOf } from "../../core/unknown.ts";
import type { Principal, Run, RunRequest } from "../../runs/run.ts";
import { isQuestion } from "../../runs/run.ts";
import { pageMessage } from "../delivery/answers.ts";
import { digestOf } from "../delivery/input-required.ts";
import { formFields, requestForm } from "../views/request-form.ts";
import type { SentEvent } from "./events.ts";

/** A front end that declares a tool of this name is asked by calls of it, and its results are the answers. */
const TOOL = "answer_request";
/** Name of the event that programs read as an interrupt before the protocol had one. */
const LEGACY_EVENT = "on_interrupt";

/** Forms of a request that a program can show. Clients know interrupts since 1.0, and some since 0.0.54. */
interface Forms {
  tool: boolean;
  interrupts: boolean;
  legacy: boolean;
}

/** `tools`: as the program declares them, whatever they are. */
export function formsFor({ protocolVersion = "", forwardedProps }: RunAgentInput, tools: unknown): Forms {
  const tool = [tools ?? []].flat().some((one) => recordOf(one)["name"] === TOOL);
  const legacy = !tool && !(Number.parseInt(protocolVersion, 10) >= 1);
  // Some clients that know interrupts want them answered in no other way.
  const isOff = legacy && recordOf(forwardedProps)["interrupts"] === false;
  return { tool, legacy, interrupts: !tool && !isOff };
}

interface Asking {
  run: Run;
  /** Command that opens the run; undefined if a terminal does not show it. */
  openCommand: string | undefined;
  key: Uint8Array;
}

/** Asks for answers. The last event is that of the run, with `finished`. */
export function askEvents(
  waiting: readonly RunRequest[],
  forms: Forms,
  finished: Extract<SentEvent, { type: "RUN_FINISHED" }>,
  asking: Asking,
): SentEvent[] {
  const interrupts = waiting.map((one) => toInterrupt(one, asking));
  const outcome = forms.interrupts ? { outcome: { type: "interrupt" as const, interrupts } } : {};
  const calls = interrupts.flatMap((interrupt): SentEvent[] => [
    { type: "TOOL_CALL_START", toolCallId: interrupt.id, toolCallName: TOOL },
    { type: "TOOL_CALL_ARGS", toolCallId: interrupt.id, delta: JSON.stringify(interrupt) },
    { type: "TOOL_CALL_END", toolCallId: interrupt.id },
  ]);
  const where = asking.openCommand === undefined ? "" : `, or run \`${asking.openCommand}\` in a terminal`;
  const delta = `${pageMessage(asking.run.id, waiting)}\n\nIf this program shows no form, open the page of the server${where}.`;
  const messageId = randomUUID();
  const events = interrupts.map((one) => ({ name: LEGACY_EVENT, value: JSON.stringify(one) }));
  const legacy: SentEvent[] = [
    { type: "TEXT_MESSAGE_START", messageId, role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId, delta },
    { type: "TEXT_MESSAGE_END", messageId },
    ...events.map((event) => ({ type: "CUSTOM" as const, ...event })),
  ];
  return [...(forms.tool ? calls : forms.legacy ? legacy : []), { ...finished, ...outcome }];
}

/** Converts a request to an interrupt, with the form of every other surface: the answer is for the message shown. */
function toInterrupt(waiting: RunRequest, { run, openCommand, key }: Asking): Interrupt {
  const elsewhere = openCommand && `open the page of the server, or run ${openCommand} in a terminal`;
  const place = { runId: waiting.runId, position: 1, total: 1, ...defined({ elsewhere }) };
  const form = requestForm(waiting, place, { urls: false, lists: true });
  const nonce = randomBytes(6).toString("base64url");
  return {
    id: `${waiting.id}.${nonce}.${signature(waiting, nonce, run.principal, key)}`,
    reason: isQuestion(waiting) ? "question" : "approval",
    message: form.message,
    ...(form.mode === "url" ? {} : { responseSchema: form.requestedSchema }),
    ...(waiting.expiresAt === undefined ? {} : { expiresAt: isoTime(waiting.expiresAt) }),
    ...(isQuestion(waiting) ? {} : { metadata: { tool: waiting.tool } }),
  };
}

/** Proves that this request was sent to the principal with this content. */
const signature = (waiting: RunRequest, nonce: string, principal: Principal, key: Uint8Array): string =>
  createHmac("sha256", key)
    .update(`ag-ui ${JSON.stringify([principal, waiting.runId, waiting.id, digestOf(waiting), nonce])}`)
    .digest("base64url")
    .slice(0, 22);

/** The answer of a person to the interrupt with this id. */
export interface SentAnswer {
  id: string;
  payload: unknown;
}

const ID = /^(.{1,300})\.([\w-]{8})\.([\w-]{22})$/;

/** Returns the content of the form for `waiting`; undefined if no answer is for what was shown of it. */
export function contentFor(
  waiting: RunRequest,
  answers: readonly SentAnswer[],
  principal: Principal,
  key: Uint8Array,
): { content: unknown } | undefined {
  // The newest counts.
  const found = answers.findLast(({ id }) => {
    const [, request, nonce = "", signed] = ID.exec(id) ?? [];
    return request === waiting.id && signed === signature(waiting, nonce, principal, key);
  });
  return found && { content: formContent(waiting, found.payload) };
}

/** Reads answers as programs write them: the members of the form, one value, or whether a call is `approved`. */
function formContent(waiting: RunRequest, payload: unknown): unknown {
  const [field] = formFields(waiting);
  const { approved = payload, ...members } = recordOf(payload);
  const said = String(approved);
  if (!isQuestion(waiting) && (said === "true" || said === "false"))
    return { decision: said === "true" ? "approve" : "reject", ...members };
  return isRecord(payload) ? payload : field && { [field.name]: payload };
}

/**
 * The answers that a program sends, in the form of 1.0 or in an older one: in place of a command of LangGraph's, or as
 * the results of tools at the end of the messages. Undefined if it sends a message instead.
 */
export function readAnswers(
  { resume = [], forwardedProps }: RunAgentInput,
  messages: unknown,
): SentAnswer[] | undefined {
  if (resume.length > 0)
    return resume.flatMap(({ interruptId: id, status, payload }) =>
      status === "cancelled" ? [] : [{ id, payload: payload as unknown }],
    );
  const { resume: given, interruptEvent } = recordOf(recordOf(forwardedProps)["command"]);
  if (given !== undefined && given !== null) {
    const payload = unquoted(given);
    const id = recordOf(payload)["interruptId"] ?? recordOf(unquoted(interruptEvent))["id"];
    if (typeof id === "string") return [{ id, payload }];
    const problem = "Send the id of the request as interruptId, or its whole value as interruptEvent.";
    throw new DeepAgentError("invalid_answer", problem);
  }
  const all = [messages ?? []].flat().map(recordOf);
  const results = all.slice(all.findLastIndex(({ role }) => role !== "tool") + 1);
  const answers = results.flatMap(({ toolCallId, content }) =>
    typeof toolCallId === "string" && ID.test(toolCallId)
      ? [{ id: toolCallId, payload: unquoted(content) }]
      : [],
  );
  return answers.length === 0 ? undefined : answers;
}

/** The value in a text of JSON, which some programs quote twice; other texts and values unchanged. */
function unquoted(value: unknown): unknown {
  const parsed = typeof value === "string" ? parsedJson(value) : undefined;
  return isRecord(parsed) || typeof parsed === "string" ? unquoted(parsed) : value;
}
