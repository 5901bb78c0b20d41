import { expect, onTestFinished, test } from "vitest";
import { checkDatabases, effectsIn, newFolder } from "./checks.ts";
import { Fleet } from "./fleet.ts";
import { Person } from "./person.ts";
import { linesProgram, serverProgram } from "./process.ts";

/** How long servers are disturbed, in seconds: `DEEPAGENT_CRASH_SECONDS=3600 npx vitest run --mode long test/crash`. */
const SECONDS = Number(process.env["DEEPAGENT_CRASH_SECONDS"] ?? 5);
const STORIES_AT_ONCE = 3;
const SERVERS = 3;

test(
  "nothing acknowledged is lost and nothing is done twice, however often servers are killed, stopped and woken",
  // Afterwards all runs are brought to their end, and done once more undisturbed, however slow the machine is.
  { tags: "long", timeout: SECONDS * 10_000 + 600_000 },
  async () => {
    const programs = { script: await serverProgram(), linesServer: await linesProgram() };
    const folder = newFolder();
    const fleet = new Fleet(programs);
    onTestFinished(() => fleet.close());
    const person = new Person(fleet);
    const stories: string[] = [];
    const deadline = Date.now() + SECONDS * 1000;
    const disturbed = Promise.all(Array.from({ length: SERVERS }, () => fleet.disturb(folder, deadline)));
    do {
      for (let more = 0; more < STORIES_AT_ONCE; more += 1) stories.push(`run-${stories.length}`);
    } while (await person.work(stories.slice(-STORIES_AT_ONCE), deadline));
    await disturbed;
    await Promise.all([fleet.open(folder), fleet.open(folder)]);
    await person.work(stories);
    await fleet.close();

    const calm = newFolder();
    const undisturbed = new Fleet(programs);
    onTestFinished(() => undisturbed.close());
    await undisturbed.open(calm);
    await new Person(undisturbed).work(stories);

    const { late, lateElsewhere, ...effects } = effectsIn(folder);
    const { late: none, lateElsewhere: noneElsewhere, ...wanted } = effectsIn(calm);
    expect([effects, none, noneElsewhere]).toEqual([wanted, 0, 0]);
    const { runs, decisions } = person.promised;
    const unknown = checkDatabases(folder, person.promised);
    expect(late).toBeLessThanOrEqual(fleet.counts.sleeps === 0 ? 0 : unknown);
    expect(late + lateElsewhere).toBeLessThanOrEqual(unknown);
    console.log(
      `${JSON.stringify(fleet.counts)} of ${SERVERS} servers; ${runs.size} runs and ${decisions.size} decisions acknowledged, none lost; ${unknown} calls of unknown outcome, none made twice, ${late} came through after their server woke, ${lateElsewhere} after it was gone`,
    );
  },
);
