/** Schema of the channels that get news of runs. */
import { optional, z } from "zod";
import { NEWS_TYPES, USUAL_NEWS } from "../runs/news.ts";
import { described, fields, hasOne, matching, secureUrl, nonEmptyText, variable } from "./sections.ts";

const types = described("newsTypes", {
  events: z
    .array(z.enum(NEWS_TYPES))
    .min(1)
    .default([...USUAL_NEWS]),
});

const address = described("newsAddress", { url: optional(secureUrl), urlVariable: optional(variable) });

const hasOneAddress = hasOne("url", "urlVariable");
const ONE_ADDRESS = { error: "needs either url or urlVariable" };

const channel = z.discriminatedUnion("kind", [
  fields("webhook", { kind: z.literal("webhook"), ...address, secretVariable: variable, ...types }).refine(
    hasOneAddress,
    ONE_ADDRESS,
  ),
  fields("slack", { kind: z.literal("slack"), ...address, ...types }).refine(hasOneAddress, ONE_ADDRESS),
  fields("ntfy", { kind: z.literal("ntfy"), ...address, tokenVariable: optional(variable), ...types }).refine(
    hasOneAddress,
    ONE_ADDRESS,
  ),
  fields("command", { kind: z.literal("command"), command: z.array(nonEmptyText).min(1), ...types }),
  fields("desktop", { kind: z.literal("desktop"), ...types }),
]);

const CHANNEL_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export const newsSchema = z
  .record(
    matching(CHANNEL_NAME, "name a channel with letters, digits, underscores and hyphens, at most 64"),
    channel,
  )
  .default({});
