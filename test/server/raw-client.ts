import type { ServerDeps } from "../../src/server/contracts/deps.ts";
import { FORMS, overMemory, type Reply } from "./tasks/raw.ts";

export interface Asked {
  resultType: string;
  inputRequests: Record<string, { params: { message: string } }>;
  requestState: string;
}

export interface Ended {
  resultType: string;
  isError?: boolean;
  content: { text: string }[];
  structuredContent: { run_id: string; status: string; approvals: { id: string }[]; answer: string };
}

/** What an accepted form says. */
export const APPROVE = { action: "accept", content: { decision: "approve" } };

/** A 2026-07-28 client that shows what is on the wire. */
export async function rawClient(deps: ServerDeps, capabilities: object = FORMS) {
  const rpc = await overMemory(deps);
  const call = (name: string, args: object, extra: object = {}): Promise<Reply> =>
    rpc("tools/call", { name, arguments: { ...args }, ...extra }, capabilities);
  const result = async <Result>(name: string, args: object, extra?: object): Promise<Result> =>
    (await call(name, args, extra)).result as Result; // each test names the shape it looks at
  return { call, result };
}
