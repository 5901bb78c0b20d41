/** Reads the streams of chat completions as servers write them, and gives their pieces as the protocol has them. */
import { randomUUID } from "node:crypto";
import { isRecord, recordOf } from "../../core/unknown.ts";
import { listOf } from "./tool-schema.ts";

type Fields = Record<string, unknown>;

/** A call whose pieces arrive. */
interface OpenCall {
  /** Its id, and its index, as the server writes them. */
  id: string;
  index: unknown;
  name: string;
}

/** Gives every piece a role, plain text, and calls with an index, an id and a name. */
export async function* strictChunks(chunks: AsyncIterable<unknown>): AsyncGenerator {
  const calls: OpenCall[] = [];
  for await (const chunk of chunks) {
    const [choice] = listOf(recordOf(chunk)["choices"]);
    if (!isRecord(choice)) yield chunk;
    // Some gateways answer a request for a stream with the whole message.
    else yield { ...recordOf(chunk), choices: [{ ...choice, delta: strictDelta(choice, calls) }] };
  }
}

function strictDelta({ delta, message }: Fields, calls: OpenCall[]): Fields {
  const given = recordOf(delta ?? message);
  const { content, tool_calls, reasoning_content: thoughts, ...others } = given;
  const pieces = [tool_calls ?? []].flat().filter(isRecord);
  return {
    ...others,
    // LangChain takes a piece without a role for a message of somebody else, and drops its calls.
    role: "assistant",
    content: textOf(content),
    ...(typeof thoughts === "string" ? { reasoning_content: thoughts } : {}),
    ...(pieces.length > 0 ? { tool_calls: pieces.map((piece) => strictPiece(piece, calls)) } : {}),
  };
}

const textIn = (value: unknown): string => (typeof value === "string" ? value : "");

/** Thoughts stand beside the text in lists of blocks; they are left out. */
const textOf = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((block) => textIn(recordOf(block)["text"] ?? block)).join("")
    : textIn(content);

function strictPiece({ index, id: givenId, function: called, ...others }: Fields, calls: OpenCall[]): Fields {
  const [id, name] = [textIn(givenId), textIn(recordOf(called)["name"])];
  const { arguments: args = "" } = recordOf(called);
  const known = openCall({ id, index, name }, calls);
  const call = known ?? { id, index, name };
  if (known === undefined) calls.push(call);
  const isNamed = call.name !== "" && known !== undefined;
  call.id ||= id;
  call.name ||= name;
  return {
    ...others,
    index: calls.indexOf(call),
    // Later pieces belong to it by their index.
    ...(known === undefined ? { id: id || `call_${randomUUID().replaceAll("-", "")}` } : {}),
    function: {
      ...(isNamed ? {} : { name: call.name }),
      arguments: typeof args === "string" ? args : args === null ? "" : JSON.stringify(args),
    },
  };
}

/** The call that a piece continues; `undefined`: it begins one. Some servers repeat an index, and some an id. */
function openCall({ id, index, name }: OpenCall, calls: readonly OpenCall[]): OpenCall | undefined {
  const isOf = (call: OpenCall): boolean => call.id === id && (name === "" || call.index === index);
  const byId = id === "" ? undefined : calls.findLast(isOf);
  if (byId) return byId;
  const byIndex = calls.findLast((call) => call.index === index);
  if (name === "") return byIndex ?? calls.at(-1);
  const isContinued = byIndex?.name === "" || (id === "" && byIndex?.name === name);
  return isContinued ? byIndex : undefined;
}
