/** Identifies the person whose browser asks. */
import type { IncomingMessage } from "node:http";
import type { Html } from "../views/html.ts";
import type { Reply } from "./responses.ts";
import type { PageSession } from "../contracts/viewer.ts";

/** Returns the session of a request, or the response that replaces the screen. */
export type SignedIn = (
  | { ok: true; session: PageSession }
  | { ok: false; status: number; page: Html; headers?: Readonly<Record<string, string>> }
) & {
  /** Proves to the tab that this server issued its secret. Absent: it did not, or there is only a cookie. */
  proof?: string | undefined;
};

export interface SignIn {
  /** Answers a form of its own, such as that of the log-in; false: it is none. */
  answer(reply: Reply, url: URL): Promise<boolean>;
  /** Finds the session of a request. Called again before each update of an open page. */
  find(request: IncomingMessage, url: URL, runId: string | undefined): Promise<SignedIn>;
  /** The empty document that every address answers to a browser that opens it. */
  readonly shell: Html;
  /** The page for addresses that do not exist or that the session may not see. */
  readonly nothing: Html;
}
