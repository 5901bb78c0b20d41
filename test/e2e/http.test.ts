import { describe, expect, test } from "vitest";
import { INITIALIZE, send } from "../support/clients-raw.ts";
import { connect, openHome } from "../support/harness.ts";
import { play, type Think } from "../support/harness-brain.ts";
import { deferred } from "../support/harness-deferred.ts";
import { serveHttp } from "../support/harness-http-process.ts";
import { processesWith } from "../support/harness-process.ts";
import { APPROVE, inWorkspace, person, untilStatus, writeFile } from "./support.ts";

async function serve(think: Think, env: Record<string, string> = {}) {
  const home = await openHome({ think, env });
  return { home, ...(await serveHttp(home)) };
}

test("the command puts the guards before everything else", async () => {
  const { url } = await serve(play({}), { DEEPAGENT_HTTP_ALLOWED_HOSTS: "agent.test" });
  const status = async (headers: Record<string, string>, body = INITIALIZE) =>
    (await send(url, { headers, body })).status;
  expect(await status({ host: "attacker.example" }, "{")).toBe(403);
  expect(await status({ origin: "https://attacker.example" })).toBe(403);
  expect(await status({ host: "agent.test" })).toBe(200);
  expect(await status({}, "{")).toBe(400);
  expect(await status({})).toBe(200);
});

test("who still sends what is refused gets to read why", async () => {
  const { url } = await serve(play({}));
  for (let n = 0; n < 20; n += 1) {
    expect((await send(url, { body: " ".repeat(4 * 1024 * 1024 + 1) })).status).toBe(413);
  }
});

describe.each(["v1", "v2-modern"] as const)("%s", (kind) => {
  test("an answered, a dropped and a cancelled call leave their run alone", async () => {
    const asked = deferred();
    const { connector, home } = await serve(
      play({
        "Write one file": [
          async () => {
            asked.resolve();
            await release.promise;
            return { toolCalls: [writeFile("/workspace/new.md", "new\n")] };
          },
          { text: "written" },
        ],
      }),
    );
    const release = deferred();
    const silent = await connect(connector, kind);
    const abort = new AbortController();
    const dropped = silent.call("run_deep_agent", { task: "Write one file" }, { signal: abort.signal });
    const given = expect(dropped).rejects.toThrow();
    await asked.promise;
    abort.abort();
    await given;
    const [run] = (await silent.listResources()).filter(({ uri }) => uri.includes("/runs/"));
    const runId = String(run?.name);
    release.resolve();
    // Answered with a question open: the stream of that call has ended when the next one comes.
    expect(await untilStatus(silent, runId, "input_required")).toMatchObject({ approvals: [{}] });

    const report = `deepagent://runs/${runId}/report`;
    await silent.watch(report);
    const { answer } = person({ "new.md": APPROVE });
    const asking = await connect(connector, kind, answer);
    expect(await untilStatus(asking, runId, "completed")).toMatchObject({ answer: "written" });
    await expect.poll(() => silent.updates).toContain(report);
    expect((await silent.readResource(report)).contents[0]).toMatchObject({ text: "written" });
    expect(inWorkspace(home, "new.md")).toBe("new\n");
  });
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  const tags = signal === "SIGTERM" ? [] : ["long"];
  test(`${signal} ends the server with calls and streams open`, { tags }, async () => {
    const asked = deferred();
    const { child, connector, home } = await serve(
      play({
        "Think hard": [
          () => {
            asked.resolve();
            return { fault: "hang" };
          },
        ],
      }),
    );
    const first = await connect(connector, "v1");
    const modern = await connect(connector, "v2-modern");
    await modern.watch("deepagent://files/workspace/");
    const calling = first.call("run_deep_agent", { task: "Think hard" }, { onProgress: () => undefined });
    const cut = calling.catch(() => undefined);
    await asked.promise;
    child.process.kill(signal);
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(processesWith(home.dataDir)).toEqual([]);
    await first.close();
    await cut;
  });
}
