import { expect, test } from "vitest";
import { connect, mine, note, openServer, reach } from "../../runs/support.ts";
import { breakable, type Breaking } from "../../support/breaking-database.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { APPROVE, type Asked, type Ended, rawClient } from "../raw-client.ts";
import { approvalRuns, depsFor } from "../support.ts";

/** Only answers, and does nothing by itself. */
const FRONT = { concurrentRuns: 0, timing: { pollMs: 1_000_000, heartbeatMs: 1_000_000 } };

test.each<Breaking>(["killed", "failing"])(
  "a server %s between any two statements leaves answers as they were, or carried out",
  async (how) => {
    const { service, notes, file } = approvalRuns(note("a"), note("b"));
    const asking = await rawClient(depsFor(service));
    const first = await asking.result<Asked>("run_deep_agent", { task: "note" });
    const all = Object.fromEntries(Object.keys(first.inputRequests).map((key) => [key, APPROVE]));
    const again = { inputResponses: all, requestState: first.requestState };
    const look = connect(file);
    const used = look.prepare("SELECT count(*) FROM used_answers").pluck();
    const decided = look.prepare("SELECT count(*) FROM questions WHERE status = 'approved'").pluck();

    let broken = 0;
    for (let number = 1; used.get() === 0; number += 1) {
      const database = connect(file);
      const breaking = breakable(database);
      const { service: front } = openServer(
        file,
        { model: scriptedModel(() => ({ text: "" })) },
        { ...FRONT, database },
      );
      const client = await rawClient(depsFor(front));
      breaking.breakAt(number, how);
      await client.result<Ended>("run_deep_agent", { task: "note" }, again);
      expect(breaking.isBroken).toBe(true);
      expect(decided.get()).toBe(used.get() === 0 ? 0 : 2);
      broken += 1;
      await front.close();
    }
    expect(broken).toBeGreaterThan(10);
    const { run } = await reach(
      service,
      (await mine(service).read.list({ limit: 1 }))[0]?.id ?? "",
      "completed",
    );
    expect(notes.toSorted()).toEqual(["a", "b"]);
    const replayed = await asking.result<Ended>("run_deep_agent", { task: "note" }, again);
    expect(replayed.content[0]?.text).toContain(run.id);
    expect(notes).toHaveLength(2);
  },
);
