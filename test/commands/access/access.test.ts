import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "../../../src/storage/sqlite/database.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { listed, terminalHome } from "../terminal-home.ts";

const WEEK = 7 * 86_400_000;

test(
  "links and subscriptions of all principals are listed, and revoked by the beginning of their ids",
  { tags: ["long"] },
  async () => {
    const home = terminalHome();
    expect((await home.bin("access")).stdout).toBe("There are no clients, links or subscriptions.\n");
    await home.bin("run", "list every TODO");
    const [run] = await listed(home);
    const database = openDatabase(join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "deepagent.db"));
    const { shares, news } = sqliteRuns(database);
    const now = Date.now();
    const times = { createdAt: now, expiresAt: now + WEEK };
    await shares.add({ id: "linkA", runId: run?.run_id ?? "", principal: "local", ...times, opened: 0 }, 1);
    const credential = JSON.stringify({ owner: '["alice",null]', sha256: "0".repeat(64) });
    const url = "https://hooks.example/secret-path";
    const about = {
      type: "run.finished" as const,
      url,
      secret: "whsec_x",
      credential,
    };
    const added = { id: "sub_1f0c", ...about, ...times, expiresAt: now + WEEK + 1 };
    await news.subscribe("alice\u001b[2J", added, { most: 9, now });
    database.close();

    const { stdout } = await home.bin("access", "list");
    const [link = "", subscription = ""] = stdout.split("\n");
    expect(link).toMatch(
      /^linkA {2}link {2}opened 0 times, made 2\d{3}-.*, ends in .*, by local: list every TODO$/,
    );
    expect(subscription).toMatch(
      /^sub_1f0c {2}subscription {2}run\.finished to hooks\.example, .*: all runs$/,
    );
    for (const hidden of ["secret-path", "whsec_x", "\u001b", "0000"]) expect(stdout).not.toContain(hidden);
    const json = (await home.bin("access", "list", "--json")).stdout
      .trim()
      .split("\n")
      .map((one) => JSON.parse(one) as object);
    expect(json).toMatchObject([
      { id: "linkA", kind: "link", run_id: run?.run_id, has_token: false, opened: 0 },
      { id: "sub_1f0c", kind: "subscription", host: "hooks.example", has_token: true, token: "refused" },
    ]);
    expect(subscription).toContain("ended: this configuration does not accept its token");

    const issued = JSON.stringify({ owner: '["alice",["run"]]', sealed: "a.b.c" });
    const again = openDatabase(join(home.env["DEEPAGENT_DATA_DIR"] ?? "", "deepagent.db"));
    await sqliteRuns(again).news.subscribe(
      "alice",
      { id: "sub_2", ...about, credential: issued, ...times },
      { most: 9, now },
    );
    again.close();
    expect((await home.bin("access", "list")).stdout).toMatch(
      /^sub_2 .*with an OAuth token that is not checked here and may have ended: all runs$/m,
    );

    const missing = await home.bin("access", "revoke", "nothing");
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringContaining("names no client, link or subscription"),
    ]);
    expect((await home.bin("access", "revoke")).code).toBe(2);
    expect((await home.bin("access", "revoke", "link", "sub_1", "sub_2")).stdout).toBe(
      "Revoked 3 entries.\n",
    );
    expect((await home.bin("access")).stdout).toBe("There are no clients, links or subscriptions.\n");
  },
);
