/** The media of messages, in whichever form they came, as a model can be shown them: checked, or in words. */
import { Buffer } from "node:buffer";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { byIdentity } from "../../core/by-identity.ts";
import type { MediaLimits } from "../../core/media.ts";
import { fileBytes, describeMedia, mediaFacts, mediaKind, mediaProblem } from "../../core/media.ts";
import { headOf, oneLine } from "../../core/text.ts";
import { type MediaRefusal, mediaLimits } from "./media-limits.ts";
import { withoutSecrets } from "./failure.ts";
import { isRecord, recordOf } from "../../core/unknown.ts";
import type { TextsByName } from "../contracts/state.ts";
import { type Block, copyMessage, toBlocks } from "../messages/messages.ts";

const MEDIA = new Set("image image_url input_image audio input_audio video file document media".split(" "));

export const isMedia = ({ type }: Block): boolean => MEDIA.has(type);

const mediaBlocks = (message: BaseMessage): Block[] => toBlocks(message.content).filter(isMedia);

const hasMedia = (message: BaseMessage): boolean => mediaBlocks(message).length > 0;

/** Names a media block that cannot be shown: its MIME type, or its kind. */
export function mediaName(block: Block): string {
  const type = carriedBy(block)?.claimed ?? block["mimeType"] ?? block["mime_type"];
  return typeof type === "string" && type !== "" ? type : block.type;
}

/** The key of a message that can be shown otherwise; for results it is the call's id. */
export function messageKey(message: BaseMessage): string | undefined {
  if (ToolMessage.isInstance(message)) return message.tool_call_id;
  return HumanMessage.isInstance(message) ? message.id : undefined;
}

/** The data of a block, its claimed type, and the block with other data. */
interface Carried {
  claimed: string;
  data: string | Uint8Array;
  put: (mimeType: string, data: string) => Block;
}

/** Finds data in the forms of LangChain and of providers; not that behind an address. */
function carriedBy(block: Block): Carried | undefined {
  const { data, source, image_url: image, file } = block as Record<string, unknown>; // of whichever tool
  if (typeof data === "string" || data instanceof Uint8Array) {
    if (block.type === "input_audio" || !["base64", undefined].includes(block["source_type"] as string))
      return undefined;
    const key = "mime_type" in block ? "mime_type" : "mimeType";
    return {
      claimed: mimeType(block[key]),
      data,
      put: (type, text) => ({ ...block, [key]: type, data: text }),
    };
  }
  if (isRecord(source) && source["type"] === "base64" && typeof source["data"] === "string") {
    const { data, media_type: claimed } = source;
    const put: Carried["put"] = (media_type, data) => ({ ...block, source: { ...source, media_type, data } });
    return { claimed: mimeType(claimed), data, put };
  }
  const url = typeof image === "string" ? image : (recordOf(image)["url"] ?? recordOf(file)["file_data"]);
  const comma = typeof url === "string" && url.startsWith("data:") ? url.indexOf(",") : -1;
  if (typeof url !== "string" || comma < 0) return undefined;
  const put = (type: string, encoded: string): Block => {
    const address = `data:${type};base64,${encoded}`;
    if (isRecord(file)) return { ...block, file: { ...file, file_data: address } };
    return { ...block, image_url: isRecord(image) ? { ...image, url: address } : address };
  };
  return { claimed: mimeType(url.slice("data:".length, comma)), data: url.slice(comma + 1), put };
}

const mimeType = (value: unknown): string =>
  typeof value === "string" ? value.replace(/;.*/s, "").trim().toLowerCase() : "";

export const NO_LIMITS: MediaLimits = { accepts: () => true };

/** A block as a model with these limits is shown it: with the type of its bytes, or in words. */
export function shownBlock(block: Block, limits: MediaLimits): Block {
  const carried = isMedia(block) ? carriedBy(block) : undefined;
  if (carried === undefined) return block;
  const { claimed, data, put } = carried;
  const kind = mediaKind(claimed) ?? KIND_ALIASES[block.type] ?? block.type;
  const bytes = fileBytes(data);
  if (bytes === undefined) return inWords(block, claimed, "Its data is not base64. Fetch it again.");
  const facts = mediaFacts(bytes, claimed);
  const { mimeType, damage } = facts;
  if (mimeType === "image/svg+xml")
    return textBlock(block, headOf(Buffer.from(bytes).toString("utf8"), 100_000));
  // Documents of other types are the provider's to judge.
  const isOther =
    mimeType === undefined && !["image", "audio", "video"].includes(kind) && claimed !== "application/pdf";
  if (isOther && damage === undefined) return block;
  const problem = mediaProblem(facts, limits);
  if (problem !== undefined)
    return inWords(block, describeMedia(facts, claimed || block.type), `Not shown. ${problem}`);
  const encoded = Buffer.from(bytes).toString("base64");
  if (mimeType === undefined || (mimeType === claimed && encoded === data)) return block;
  const found = mediaKind(mimeType);
  return found === kind ? put(mimeType, encoded) : { type: found ?? "file", mimeType, data: encoded };
}

const KIND_ALIASES: Readonly<Record<string, string>> = { image_url: "image", document: "file" };

const textBlock = (block: Block, text: string): Block => ({
  type: "text",
  text,
  ...("cache_control" in block && { cache_control: block["cache_control"] }),
});

const inWords = (block: Block, name: string, why: string): Block =>
  textBlock(block, `[${name || block.type}: ${why}]`);

function withBlocks(message: BaseMessage, change: (block: Block) => Block): BaseMessage {
  const before = toBlocks(message.content);
  const content = before.map(change);
  return content.every((block, at) => block === before[at]) ? message : copyMessage(message, { content });
}

/** Replaces the media of a message by words about why they are left out. */
export const mediaLeftOut = (message: BaseMessage, why: string): BaseMessage =>
  withBlocks(message, (block) =>
    isMedia(block) ? textBlock(block, `[${mediaName(block)} left out: ${why}]`) : block,
  );

/** Each message is looked at once for the same limits. */
const shownFor = byIdentity((limits: MediaLimits) =>
  byIdentity((message: BaseMessage) => withBlocks(message, (block) => shownBlock(block, limits))),
);

/** Messages with the media that a model takes. If one request cannot have them all, the oldest are left out. */
export function messagesFor(model: BaseChatModel, messages: BaseMessage[]): BaseMessage[] {
  const { each, crowded, images = Infinity, request = Infinity } = mediaLimits(model);
  if (messages.every(({ content }) => typeof content === "string")) return messages;
  const count = messages.flatMap(mediaBlocks).length;
  if (count === 0) return messages;
  const shown = messages.map(shownFor(crowded && count > crowded.above ? crowded.each : each));
  let size = 0;
  const newest = shown.flatMap(mediaBlocks).reverse().slice(0, images);
  const kept = new Set(newest.filter((block) => (size += carriedBy(block)?.data.length ?? 0) <= request));
  const why = "left out, because the conversation has more media than the model accepts";
  return shown.map((message) =>
    withBlocks(message, (block) =>
      isMedia(block) && !kept.has(block) ? inWords(block, mediaName(block), why) : block,
    ),
  );
}

/** `refused`: messages whose media a provider refused, by `messageKey` the message, with its words. */
export function withoutRefused(messages: BaseMessage[], refused: TextsByName): BaseMessage[] {
  if (Object.keys(refused).length === 0) return messages;
  return messages.map((message) => {
    const words = refused[messageKey(message) ?? ""];
    const why = `the model's provider refused it (${words}). Continue without it, or convert it to another format or size, and read that`;
    return words === undefined ? message : mediaLeftOut(message, why);
  });
}

/**
 * Chooses which media to leave out of a refused request: in the first attempts the block that the provider names, else
 * all since the last reply, else all. Empty: nothing is left that could be the cause.
 */
export function mediaToLeaveOut(sent: readonly BaseMessage[], refusal: MediaRefusal, attempt: number) {
  const suspects = sent.filter((message) => messageKey(message) !== undefined && hasMedia(message));
  const named = attempt > 3 ? [] : namedBy(refusal.text, sent).filter((one) => suspects.includes(one));
  const since = sent.findLastIndex((message) => AIMessage.isInstance(message));
  const recent = suspects.filter((message) => sent.indexOf(message) > since);
  const chosen = [named, recent, refusal.isSure ? suspects : []].find(({ length }) => length > 0) ?? [];
  const words = oneLine(withoutSecrets(refusal.text), 200);
  return Object.fromEntries(chosen.map((message) => [messageKey(message) ?? "", words]));
}

/** The message that `messages.2.content.0` names: neighbours of one role are one message for the provider. */
function namedBy(text: string, sent: readonly BaseMessage[]): BaseMessage[] {
  const [, index, place] = /messages\.(\d+)\.content\.(\d+)/.exec(text) ?? [];
  let group = -1;
  let role: boolean | undefined;
  const blocks = sent.flatMap((message) => {
    if (message.type === "system") return [];
    const isReply = AIMessage.isInstance(message);
    if (isReply !== role) group += 1;
    role = isReply;
    const count = ToolMessage.isInstance(message) ? 1 : Math.max(toBlocks(message.content).length, 1);
    return group === Number(index) ? Array.from({ length: count }, () => message) : [];
  });
  const exact = blocks[Number(place)];
  return exact && hasMedia(exact) ? [exact] : [...new Set(blocks)];
}
