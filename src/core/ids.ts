import { randomBytes } from "node:crypto";

/** The kind of thing that an id names; the part before the underscore. */
type IdPrefix = "run" | "thr" | "evt" | "msg" | "srv" | "held" | "sch" | "review";

/** Makes ids; injected, so that tests are deterministic. */
export type IdSource = (prefix: IdPrefix) => string;

/** `prefix_` and 144 random bits in base64url: not guessable, safe in URIs and file names. */
export const randomId: IdSource = (prefix) => `${prefix}_${randomBytes(18).toString("base64url")}`;
