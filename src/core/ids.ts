import { randomBytes } from "node:crypto";

/** Makes ids; injected, so that tests are deterministic. The part before the underscore names the kind of thing. */
export type IdSource = (
  prefix: "run" | "thr" | "evt" | "msg" | "server" | "held" | "sch" | "review",
) => string;

/** `prefix_` and 144 random bits in base64url: not guessable, safe in URIs and file names. */
export const randomId: IdSource = (prefix) => `${prefix}_${randomBytes(18).toString("base64url")}`;
