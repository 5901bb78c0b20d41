import { describe, expect, test } from "vitest";
import { SCOPES, type Scope } from "../../src/runs/run.ts";
import { DEMANDS } from "../../src/runs/scopes.ts";
import type { GivenAnswer, SignedAnswer } from "../../src/runs/ports.ts";
import type { PrincipalRuns } from "../../src/runs/service.ts";
import { plainRuns } from "../server/support.ts";

const SIGNED: SignedAnswer<GivenAnswer> = { id: "x", answers: [], replies: [], by: "test" };
const ANSWERING = { ...SIGNED, answers: [{ requestId: "q", answer: { type: "decline" as const } }] };
const REPLYING = {
  ...SIGNED,
  replies: [{ callId: "c", reply: { kind: "declined" as const, message: "no" } }],
};
const signal = AbortSignal.abort();
const request = { expression: "0 9 * * *", task: "x" };
const subscription = { id: "s", type: "run.failed" as const, url: "https://example.com", secret: "whsec_x" };

type Calls = {
  readonly [Group in keyof PrincipalRuns]: {
    readonly [Name in keyof PrincipalRuns[Group]]: (
      group: PrincipalRuns[Group],
    ) => AsyncIterable<unknown> | Promise<unknown>;
  };
};

/** A call of each method. One that is missing here is a type error. */
const CALLS: Calls = {
  read: {
    view: (read) => read.view("r"),
    list: (read) => read.list({ limit: 1 }),
    summaries: (read) => read.summaries({}, { limit: 1 }),
    counts: (read) => read.counts(),
    pending: (read) => read.pending(1),
    countPending: (read) => read.countPending(),
    children: (read) => read.children("r"),
    modelCalls: (read) => read.modelCalls("r"),
    events: (read) => read.events("r"),
    recentEvents: (read) => read.recentEvents("r", { limit: 1 }),
    points: (read) => read.points("r"),
    callTexts: (read) => read.callTexts("r", 1),
  },
  watch: {
    events: (watch) => watch.events("r", { signal }),
    live: (watch) => watch.live("r", { signal }),
    starts: (watch) => watch.starts({ signal }),
  },
  control: {
    start: (control) => control.start({ task: "x" }),
    answered: (control) => control.answered("r", 0),
    tell: (control) => control.tell("r", { text: "x" }),
    replyToModel: (control) => control.replyToModel("r", "c", { kind: "declined", message: "no" }),
    cancel: (control) => control.cancel("r", "x"),
    rename: (control) => control.rename("r", "x"),
    delete: (control) => control.delete("r"),
  },
  requests: {
    answer: (requests) => requests.answer("r", { requestId: "q", answer: { type: "decline" } }, "test"),
    problemOf: (requests) => requests.problemOf("r", { requestId: "a", answer: { type: "approve" } }),
    useAnswer: (requests) => requests.useAnswer("r", SIGNED),
  },
  changes: {
    proposed: (changes) => changes.proposed("r"),
    hasCopy: (changes) => changes.hasCopy("r"),
    review: (changes) => changes.review("r", { apply: {} }, "test"),
    discard: (changes) => changes.discard("r"),
  },
  schedules: {
    list: (schedules) => schedules.list(),
    add: (schedules) => schedules.add(request),
    edit: (schedules) => schedules.edit("s", {}),
    pause: (schedules) => schedules.pause("s"),
    resume: (schedules) => schedules.resume("s"),
    remove: (schedules) => schedules.remove("s"),
    runNow: (schedules) => schedules.runNow("s"),
  },
  rules: { list: (rules) => rules.list(), remove: (rules) => rules.remove("r") },
  access: {
    share: (access) => access.share("r", 1),
    list: (access) => access.list(),
    revoke: (access) => access.revoke("s"),
  },
  news: {
    occurrences: (news) => news.occurrences({ type: "run.failed", since: 0, limit: 1 }),
    subscription: (news) => news.subscription("s", 0),
    subscribe: (news) => news.subscribe({ ...subscription, expiresAt: 1 }, { most: 1, now: 0 }),
    unsubscribe: (news) => news.unsubscribe("s"),
  },
  files: {
    ofRun: (files) => files.ofRun("r"),
    mounts: (files) => files.mounts(),
    searchMemories: (files) => files.searchMemories("x", 1),
  },
  agents: {
    readiness: (agents) => agents.readiness(),
    drawing: (agents) => agents.drawing(),
    otherServers: (agents) => agents.otherServers(),
  },
};

const members = Object.entries(CALLS).flatMap(([group, calls]) =>
  Object.entries(calls).map(([name, call]) => {
    const own = call as (of: unknown) => unknown; // each is called with its own group only
    return {
      member: `${group}.${name}`,
      call: (runs: PrincipalRuns) => own(runs[group as keyof PrincipalRuns]),
    };
  }),
);

/** Methods that the holder of one scope alone may call, besides those that every holder may call. */
const ALLOWED: Readonly<Record<Scope, readonly string[]>> = {
  run: [
    "read.modelCalls",
    "control.start",
    "control.tell",
    "control.replyToModel",
    "control.cancel",
    "control.rename",
    "control.delete",
    "changes.discard",
    ...["list", "add", "edit", "pause", "resume", "remove", "runNow"].map((name) => `schedules.${name}`),
    "access.share",
    "access.revoke",
    "agents.readiness",
  ],
  approve: ["requests.problemOf", "requests.answer", "rules.remove", "changes.review"],
  read: [
    ...["list", "summaries", "counts", "pending", "countPending", "children"].map((name) => `read.${name}`),
    ...["events", "recentEvents", "points", "callTexts"].map((name) => `read.${name}`),
    "watch.starts",
    "changes.proposed",
    "changes.hasCopy",
    "access.list",
    "rules.list",
    "news.occurrences",
    "news.subscription",
    "news.subscribe",
    "files.ofRun",
    "files.mounts",
    "files.searchMemories",
    "agents.drawing",
    "agents.otherServers",
  ],
};
const ALWAYS = [
  "read.view",
  "watch.events",
  "watch.live",
  "control.answered",
  "requests.useAnswer",
  "news.unsubscribe",
];

const isRefused = async (call: () => unknown): Promise<boolean> => {
  try {
    await call();
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: "insufficient_scope" });
    return true;
  }
};

test("every method of a handle has its scopes, and nothing else is on it", () => {
  const namesIn = (groups: object) =>
    Object.entries(groups).flatMap(([group, rows]) =>
      Object.keys(rows as object).map((name) => `${group}.${name}`),
    );
  const names = members.map(({ member }) => member);
  expect(namesIn(DEMANDS)).toEqual(names);
  // A holder reaches nothing that is for the operator of the server.
  expect(namesIn(plainRuns().as({ principal: "p", scopes: SCOPES }))).toEqual(names);
  expect([...Object.values(ALLOWED).flat(), ...ALWAYS].sort()).toEqual([...names].sort());
});

describe.each(members)("$member", ({ member, call }) => {
  test("needs its scope", async () => {
    const service = plainRuns();
    const as = (...scopes: readonly Scope[]) => service.as({ principal: "p", scopes });
    for (const scope of SCOPES) {
      const isAllowed = ALWAYS.includes(member) || ALLOWED[scope].includes(member);
      expect([scope, await isRefused(() => call(as(scope)))]).toEqual([scope, !isAllowed]);
      const others = SCOPES.filter((other) => other !== scope);
      if (ALLOWED[scope].includes(member)) expect(await isRefused(() => call(as(...others)))).toBe(true);
    }
    expect(await isRefused(() => call(as()))).toBe(true);
    expect(await isRefused(() => call(as(...SCOPES)))).toBe(false);
    expect(await isRefused(() => call(service.as({ principal: "p" })))).toBe(false);
  });
});

test("a signed answer needs the scopes of everything that it carries", async () => {
  const service = plainRuns();
  const isAllowed = async (answer: SignedAnswer<GivenAnswer>, ...scopes: readonly Scope[]) =>
    !(await isRefused(() => service.as({ principal: "p", scopes }).requests.useAnswer("r", answer)));
  for (const scope of SCOPES) {
    expect(await isAllowed(SIGNED, scope)).toBe(true);
    expect(await isAllowed(ANSWERING, scope)).toBe(scope === "approve");
    expect(await isAllowed(REPLYING, scope)).toBe(scope === "run");
    expect(await isAllowed({ ...ANSWERING, replies: REPLYING.replies }, scope)).toBe(false);
  }
  expect(await isAllowed({ ...ANSWERING, replies: REPLYING.replies }, "run", "approve")).toBe(true);
});

test("streams are refused at once, before anybody reads them", () => {
  const { watch } = plainRuns().as({ principal: "p", scopes: [] });
  expect(() => watch.events("r", { signal })).toThrow("does not have the scope run or approve or read");
  expect(() => watch.live("r", { signal })).toThrow("does not have the scope");
  expect(() => watch.starts({ signal })).toThrow("does not have the scope read");
});

test("a handle has the scopes that its holder has at the time of each call", async () => {
  const holder = { principal: "p", scopes: ["read"] };
  const { control } = plainRuns().as(holder);
  await expect(control.rename("r", "x")).rejects.toThrow("does not have the scope run");
  holder.scopes = ["read", "run"];
  expect(await control.rename("r", "x")).toBe(false);
});
