/** Links and subscriptions of runs with names that a screen has to cope with. */
import type { RunService } from "../../../src/runs/service.ts";
import { mine, databaseFile, openServer, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const TASKS = [
  "Find out how an alarm gets to the pager",
  "Watch the tide",
  "a-name-without-an-end-".repeat(8),
];
const HOSTS = ["hooks.example", `${"very-long-name.".repeat(9)}example`];

export async function accessRuns(now: number): Promise<RunService> {
  const { service } = openServer(
    databaseFile(),
    { model: scriptedModel(() => ({ text: "done" })) },
    { clock: () => now, concurrentRuns: 0 },
  );
  for (const [at, task] of TASKS.entries()) {
    const { id } = await startRun(service, task);
    const made = await mine(service).access.share(id, (at + 1) * 86_400_000);
    if (made.ok) for (let times = 0; times < at; times += 1) await service.shareOpened(made.share);
  }
  for (const host of HOSTS) {
    const times = { createdAt: now, expiresAt: now + 5 * 86_400_000 };
    const about = { type: "approval.requested" as const, url: `https://${host}/hook`, secret: "whsec_x" };
    await mine(service).news.subscribe({ id: `sub_${host}`, ...about, ...times }, { most: 9, now });
  }
  return service;
}
