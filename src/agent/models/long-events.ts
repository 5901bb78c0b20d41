import { headOf } from "../../core/text.ts";
import { argumentsIn, dataOf, field, only, parsed, type Place } from "./joined-arguments.ts";

/** About how many characters of a stream are read at once: client libraries look at each of them several times. */
const PART = 16_384;
/**
 * Events in groups that are read in a moment each. A long text is divided among several events, the words of an
 * error are cut. Others are passed as they are.
 */
export function* inGroups(events: readonly string[]): Generator<string[], undefined> {
  let group: string[] = [];
  let length = 0;
  for (const event of events) {
    for (const part of event.length <= PART ? [event] : partsOf(event)) {
      group.push(part);
      length += part.length;
      if (length < PART) continue;
      yield group;
      [group, length] = [[], 0];
    }
  }
  if (length > 0) yield group;
}

function* partsOf(raw: string): Generator<string> {
  const { before, json, after } = dataOf(raw);
  const event = parsed(json);
  const withText = ({ parent, key }: Place, text: string): string => {
    Reflect.set(parent, key, text);
    return `${before} ${JSON.stringify(event)}${after}`;
  };
  const place = textIn(event);
  const text = field(place?.parent, place?.key ?? "");
  const error = errorIn(event);
  if (place && typeof text === "string") {
    for (let at = 0; at < text.length; at += PART) yield withText(place, text.slice(at, at + PART));
  } else if (error) {
    yield withText(error, headOf(String(field(error.parent, error.key)), PART));
  } else {
    yield raw;
  }
}

/** Where an event of the three protocols has a piece of text or of arguments, if it has nothing but that. */
function textIn(event: unknown): Place | undefined {
  const type = field(event, "type");
  if (type === "response.output_text.delta") return { parent: Object(event), key: "delta" };
  const delta = type === "content_block_delta" ? field(event, "delta") : undefined;
  if (field(delta, "type") === "text_delta") return { parent: Object(delta), key: "text" };
  if (field(delta, "type") === "thinking_delta") return { parent: Object(delta), key: "thinking" };
  const choice = only(field(event, "choices"));
  const said = field(choice, "delta");
  const isText =
    typeof field(said, "content") === "string" &&
    !field(said, "tool_calls") &&
    !field(choice, "finish_reason");
  return isText ? { parent: Object(said), key: "content" } : argumentsIn(event);
}

/** Where a failure is told in words. */
function errorIn(event: unknown): Place | undefined {
  const holders = [event, field(event, "error"), field(field(event, "response"), "error")];
  const parent = holders.find((holder) => typeof field(holder, "message") === "string");
  return parent === undefined ? undefined : { parent: Object(parent), key: "message" };
}
