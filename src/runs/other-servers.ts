/** Other MCP servers, whose tools the agents of this process use, for people. */

export interface ServerState {
  name: string;
  /** Its host, or the program that starts it. */
  place: string;
  /** When it was last asked for its tools, in milliseconds since 1970. Absent: not yet. */
  askedAt?: number | undefined;
  tools: ReadonlyArray<{ name: string; isGated: boolean }>;
  /** Tools that cannot be offered, and other things that are not as configured, one sentence each. */
  notes: readonly string[];
  /** Why its tools are missing. */
  problem?: string | undefined;
  /** True if it waits for a person to log in. */
  needsLogin: boolean;
}

export interface OtherServers {
  states(): readonly ServerState[];
  /** Asks all of them for their tools. Never rejects. */
  ask(): Promise<void>;
  /** Begins a log-in. `redirectUrl`: where the browser comes back to. */
  beginLogin(
    server: string,
    redirectUrl: string,
  ): Promise<{ ok: true; address: URL } | { ok: false; problem: string }>;
  /** Ends the log-in to which a browser came back, and asks the server for its tools. */
  finishLogin(
    answer: URLSearchParams,
  ): Promise<{ ok: true; server: string } | { ok: false; problem: string; server?: string }>;
}

/** There are none. */
export const NO_OTHER_SERVERS: OtherServers = {
  states: () => [],
  ask: async () => undefined,
  beginLogin: async () => ({ ok: false, problem: "There is no such server." }),
  finishLogin: async () => ({ ok: false, problem: "There is no such log-in." }),
};
