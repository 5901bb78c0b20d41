import { isApproval } from "../../src/runs/run.ts";
import { expect, test } from "vitest";
import { pages, startSite } from "../web/site.ts";
import { mine, callingInTurn, databaseFile, follow, openServer, reach, startRun } from "./support.ts";

test("a host that was approved for the run is not asked about again, also after the server was killed", async () => {
  const text = (body: string) => ({ type: "text/plain", body });
  const [first, second] = [
    await startSite(pages({ "/1": text("one"), "/2": text("two"), "/3": text("three") })),
    await startSite(pages({ "/4": text("four") })),
  ];
  const fetching = (port: number, path: string) => ({
    name: "web_fetch",
    args: { url: `http://127.0.0.1:${port}${path}` },
  });
  const calls = [
    [fetching(first, "/1")],
    [fetching(first, "/2")],
    [fetching(second, "/4")],
    [fetching(first, "/3")],
  ];
  const agent = { model: callingInTurn(...calls), web: { hosts: ["127.0.0.1"] } };
  const file = databaseFile();
  const before = openServer(file, agent);
  const run = await startRun(before.service, "Read about tides");
  const decide = async ({ service }: typeof before, type: "approve_same" | "reject"): Promise<string> => {
    const approvals = (await reach(service, run.id, "input_required")).requests.filter(isApproval);
    const open = approvals.find(({ status }) => status === "pending");
    expect(
      await mine(service).requests.answer(run.id, { requestId: open?.id ?? "", answer: { type } }, "person"),
    ).toMatchObject({
      ok: true,
    });
    return String(open?.args["url"]);
  };
  expect(await decide(before, "approve_same")).toBe(`http://127.0.0.1:${first}/1`);
  const { grants } = await reach(before.service, run.id, "input_required");
  expect(grants.map((grant) => grant.text)).toEqual([`reading any page of 127.0.0.1:${first}`]);
  before.kill();
  const after = openServer(file, agent);
  expect(await decide(after, "reject")).toBe(`http://127.0.0.1:${second}/4`);
  const { run: ended } = await reach(after.service, run.id, "completed");
  expect(ended.answer).toMatch(/one[^]*two[^]*rejected[^]*three/);
  const decided = (await follow(after.service, run.id)).filter(({ kind }) => kind === "approval_decided");
  expect(decided.map(({ data }) => Reflect.get(data, "decision"))).toEqual([
    "approve_same",
    "approve",
    "reject",
    "approve",
  ]);
});
