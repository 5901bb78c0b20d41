/** A server of a world on a Postgres, in a process of its own. The world opens it, calls it and sets its clock. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorMessage } from "../../../src/core/errors.ts";
import type { Logger } from "../../../src/core/logger.ts";
import { memberOf, textMemberOf } from "../../../src/core/unknown.ts";
import type { News, SendResult } from "../../../src/runs/news.ts";
import { openPostgres } from "../../../src/storage/postgres/storage.ts";
import { type ActedOn, movesAgent, movesCheckpoints } from "../moves-agent.ts";
import { type OpenServer, openServer } from "../server.ts";
import { generator } from "../random.ts";
import { Workspace } from "../workspace.ts";
import { machine } from "./process-mark.ts";
import { later, worldTime } from "./real-machine.ts";
import { threadsInPostgres } from "./threads.ts";

export interface Settings {
  url: string;
  /** The folder of the world, with what its servers note. */
  home: string;
  seed: number;
  isOneMachine: boolean;
  tokenLimit: number;
}

export type Request = { id: number } & (
  | { kind: "open"; settings: Settings }
  | { kind: "call"; path: readonly string[]; args: readonly unknown[] }
  | { kind: "clock"; byMs: number }
  | { kind: "close" }
);

/** Names of files in the folder of a world, each with one JSON text per line. */
export type NoteFile = "acts" | "problems" | "claims" | "received" | "log";

let opened: (OpenServer & { close(): Promise<void> }) | undefined;
let aheadMs = 0;

const SystemDate = Date;
globalThis.Date = class extends SystemDate {
  constructor(...args: [] | [string]) {
    super(...((args.length === 0 ? [SystemDate.now() + aheadMs] : args) as [number]));
  }
  static override now = (): number => SystemDate.now() + aheadMs;
} as DateConstructor; // called as a function nowhere

async function open({ url, home, seed, isOneMachine, tokenLimit }: Settings): Promise<void> {
  aheadMs = 0;
  machine.isKnown = isOneMachine;
  const draw = generator(seed, process.pid);
  const place = { name: String(process.pid), isDead: false, stoppedUntil: 0, aheadMs: 0 };
  const note = (file: NoteFile, fact: unknown): void => {
    // A server that did not close in time outlives the folder of its world for a moment.
    if (existsSync(home)) appendFileSync(join(home, file), `${JSON.stringify(fact)}\n`);
  };
  const log = logTo(note);
  const storage = await openPostgres({ url, logger: log });
  const threads = threadsInPostgres(url);
  const workspace = new Workspace("", home);
  const world: ActedOn = {
    draw,
    tokenLimit,
    workspace,
    act: (key) => note("acts", key),
    problem: (text) => note("problems", text),
  };
  const send = async (news: News): Promise<SendResult> => {
    await later(draw() * 200);
    if (
      existsSync(join(home, "silent until")) &&
      worldTime() < Number(readFileSync(join(home, "silent until")))
    )
      return { ok: false, problem: "no answer", isUnreachable: true };
    note("received", [news.id, news.questions ?? 1]);
    await later(draw() * 200);
    return { ok: true };
  };
  const { runs } = storage;
  const claimNext: typeof runs.claimNext = async (...args) => {
    const began = worldTime();
    const claim = await runs.claimNext(...args);
    const now = worldTime();
    if (claim !== undefined) note("claims", { runId: claim.run.id, at: now, tookMs: now - began });
    return claim;
  };
  const server = openServer({
    runs: { ...runs, claimNext },
    workspace,
    agentAt: async () => movesAgent(world, threads, place),
    checkpoints: movesCheckpoints(threads, place),
    send,
    clock: storage.clock,
    log,
  });
  const close = async (): Promise<void> => {
    await server.courier.close();
    await server.service.close();
    await threads.close();
    await storage.close();
  };
  opened = { ...server, close };
}

function logTo(note: (file: NoteFile, fact: unknown) => void): Logger {
  const none = (): void => {};
  const messageIn = (facts?: object): string => {
    const { error: thrown } = { error: "", ...facts } as { error: unknown };
    return errorMessage(thrown);
  };
  /** An error that nobody expected, with the place where it was made. */
  const placeIn = (facts?: object): string =>
    textMemberOf(memberOf(facts, "error"), "stack") ?? messageIn(facts);
  const told = (event: string, facts?: object): void =>
    note("log", `${Math.round(worldTime()) % 1e7} ${process.pid} ${event} ${messageIn(facts)}`);
  const error = (event: string, facts?: object): void =>
    note("problems", `no-internal-errors: ${event} ${placeIn(facts)}`);
  return { debug: none, info: told, warn: told, error };
}

async function carryOut(request: Request): Promise<unknown> {
  switch (request.kind) {
    case "open":
      return open(request.settings);
    case "clock":
      aheadMs += request.byMs;
      return undefined;
    case "close":
      await opened?.close();
      opened = undefined;
      return undefined;
    case "call": {
      if (opened === undefined) throw new Error("This server is not open.");
      const { service } = opened;
      const { path, args } = request;
      const [first = "", method = ""] = path;
      const target: unknown =
        method === "" ? service : Reflect.get(service.as({ principal: "local" }), first);
      const called: unknown = Reflect.get(target as object, method === "" ? first : method);
      return Reflect.apply(called as (...args: unknown[]) => unknown, target, args); // named by the world
    }
  }
}

process.on("message", (request: Request) => {
  const answer = (reply: object): void => void process.send?.({ id: request.id, ...reply });
  carryOut(request).then(
    (result) => answer({ result }),
    (error: unknown) => answer({ error: errorMessage(error) }),
  );
});
process.on("disconnect", () => process.exit());
