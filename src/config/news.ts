/** Schema of the channels that get news of runs. */
import { optional, z } from "zod";
import { NEWS_TYPES, USUAL_NEWS } from "../runs/news.ts";
import { hasOne, matching, onOff, secureUrl, nonEmptyText, variable } from "./sections.ts";

const types = {
  events: z
    .array(z.enum(NEWS_TYPES))
    .min(1)
    .default([...USUAL_NEWS])
    .describe(
      "Events that it gets. `budget.reached` comes besides `run.finished` if a run ended at one of its limits.",
    ),
};

const address = {
  url: optional(secureUrl).describe("Address: https, or http on this machine."),
  urlVariable: optional(variable).describe(
    "Environment variable with the address, if the address is a secret itself.",
  ),
};

const hasOneAddress = hasOne("url", "urlVariable");
const ONE_ADDRESS = { error: "needs either url or urlVariable" };

const channel = z.discriminatedUnion("kind", [
  z
    .strictObject({
      kind: z.literal("webhook").describe("JSON, signed as Standard Webhooks describes it."),
      ...address,
      secretVariable: variable.describe(
        "Environment variable with the secret: `whsec_` and 24 to 64 random bytes in base64.",
      ),
      ...types,
    })
    .refine(hasOneAddress, ONE_ADDRESS),
  z
    .strictObject({
      kind: z.literal("slack").describe("An incoming webhook of Slack."),
      ...address,
      ...types,
    })
    .refine(hasOneAddress, ONE_ADDRESS),
  z
    .strictObject({
      kind: z.literal("ntfy").describe("A topic of ntfy, such as `https://ntfy.sh/my-topic`."),
      ...address,
      tokenVariable: optional(variable).describe("Environment variable with an access token."),
      ...types,
    })
    .refine(hasOneAddress, ONE_ADDRESS),
  z.strictObject({
    kind: z.literal("command").describe("A program that gets the JSON on standard input."),
    command: z.array(nonEmptyText).min(1).describe("The program with its arguments."),
    ...types,
  }),
  z.strictObject({ kind: z.literal("desktop").describe("A notification on this machine."), ...types }),
]);

const CHANNEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export const newsSchema = z
  .record(
    matching(CHANNEL_NAME, "name a channel with letters, digits, underscores and hyphens, at most 64"),
    channel,
  )
  .default({})
  .describe(
    'Channels that get news of runs, such as `{ "phone": { "kind": "ntfy", "url": "https://ntfy.sh/my-topic" } }`. Messages have the name of the run and the needed action, but no contents. Default: none.',
  );

export const eventWebhooksSchema = onOff(true).describe(
  "Lets MCP clients over HTTP subscribe an https address of the public internet to events of their runs, as ChatGPT does. Off leaves only polling and streams.",
);
