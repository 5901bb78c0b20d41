import { afterAll, beforeAll } from "vitest";
import { startWireServer, type WireServer } from "./wire-server.ts";

/** Posts to a wire server of the test file. */
export function wirePost() {
  let server: WireServer;
  beforeAll(async () => {
    server = await startWireServer(() => ({ text: "hello" }));
  });
  afterAll(() => server.close());
  return async (
    path: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<{ status: number; text: string }> => {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
}
