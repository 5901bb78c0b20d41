/**
 * Secrets of browser tabs. A tab keeps its secret and sends it in a header, which unlike a cookie goes to one origin
 * only. The key is made with the server and never stored, so no other server accepts a secret of this one.
 */
import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { SCOPES, type Scope } from "../../runs/run.ts";
import type { Clock } from "../../core/clock.ts";
import { defined } from "../../core/unknown.ts";
import { isSame } from "./find-page.ts";
import { LIFETIME_MS, type PageLink, type PageSession } from "../contracts/viewer.ts";

/**
 * The script of the page sends this header with each request: the secret of its tab, or a word that is none where
 * the browser has a cookie instead. Other sites cannot send it, and documents are requested without it.
 */
export const SECRET_HEADER = "page-session";

/** Carries the proof that an answer comes from the server that issued the tab's secret. */
export const PROOF_HEADER = "page-proof";

/** A secret, and the proof that answers to it carry. */
interface TabSecret {
  secret: string;
  proof: string;
}

/** Instructs the script after a sign-in or a log-out: the session to keep, and the next address. */
export interface Entrance {
  at: string;
  /** Absent: the tab keeps none, because there is a cookie or the session has ended. */
  session?: TabSecret | LinkedTab;
}

/** A tab secret created from a link, with the data that other tabs check before they adopt it. */
export interface LinkedTab extends TabSecret {
  decides: boolean;
  run?: string;
  /** When the session of a shared link ends. */
  until?: number;
}

/** The header's value; `undefined`: the request is for a document, or from elsewhere. */
export const secretOf = ({ headers }: IncomingMessage): string | undefined => {
  const value = headers[SECRET_HEADER];
  return typeof value === "string" ? value : undefined;
};

const Ticket = z.object({
  principal: z.string(),
  purpose: z.enum(["watch", "decide"]),
  run: z.string().optional(),
  expires: z.number(),
  id: z.string(),
});

export class TabSecrets {
  readonly #key = randomBytes(32);
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  open({ principal, purpose, run }: PageLink): LinkedTab {
    const shown = defined({ run });
    const id = randomBytes(16).toString("base64url");
    const ticket = { principal, purpose, expires: this.#clock() + LIFETIME_MS, id, ...shown };
    const text = Buffer.from(JSON.stringify(ticket)).toString("base64url");
    const secret = `${text}.${this.#sign("secret", text)}`;
    return { secret, proof: this.proofOf(secret), decides: purpose === "decide", ...shown };
  }

  /** Returns the session of a secret, or undefined if this server did not issue it or it has expired. */
  read(secret: string): PageSession | undefined {
    const [text = "", signature = ""] = secret.split(".");
    if (!isSame(signature, this.#sign("secret", text))) return undefined;
    const { id, principal, purpose, run, expires } = Ticket.parse(
      JSON.parse(Buffer.from(text, "base64url").toString("utf8")),
    );
    if (expires <= this.#clock()) return undefined;
    const scopes: readonly Scope[] = purpose === "decide" ? SCOPES : ["read"];
    return { id, principal, scopes, ...defined({ run }) };
  }

  /** Sent from server to tab only, so that others who receive the secret cannot know it. */
  proofOf(secret: string): string {
    return this.#sign("proof", secret);
  }

  #sign(use: string, text: string): string {
    return createHmac("sha256", this.#key).update(`page ${use} ${text}`).digest("base64url");
  }
}
