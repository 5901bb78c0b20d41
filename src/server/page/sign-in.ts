/** How a page knows whose browser asks. */
import type { IncomingMessage } from "node:http";
import type { Html } from "../views/html.ts";
import type { Reply } from "./responses.ts";
import type { PageSession } from "./sessions.ts";

/** The session of a request, or what the browser gets instead of the page. */
export type SignedIn =
  | { ok: true; session: PageSession }
  | { ok: false; status: number; page: Html; headers?: Readonly<Record<string, string>> };

export interface SignIn {
  /** Answers an address of its own, such as that of a form to log in; false: it is none. */
  answer(reply: Reply, url: URL): Promise<boolean>;
  /** Finds the session of a request. Called again before each update of an open page. */
  find(request: IncomingMessage, url: URL, runId: string | undefined): Promise<SignedIn>;
  /** The page for addresses that do not exist or that the session may not see. */
  readonly nothing: Html;
}
