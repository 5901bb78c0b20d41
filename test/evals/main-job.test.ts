import { describe, expect, test } from "vitest";
import { main } from "../../evals/main-job.ts";

async function mainJob(...args: string[]) {
  const printed: string[] = [];
  const code = await main({ args, print: (text) => printed.push(text) });
  return { code, printed: printed.join("\n") };
}

describe("the main job is done and accounted for", { tags: "long" }, () => {
  test("on SQLite", async () => {
    const { code, printed } = await mainJob("--storage", "sqlite");
    expect(code, printed).toBe(0);
  });

  test("on Postgres with two servers", { tags: "postgres" }, async () => {
    const { code, printed } = await mainJob("--storage", "postgres");
    expect(code, printed).toBe(0);
  });
});

test("wrong options are answered with the usage", async () => {
  expect(await mainJob("--storage", "files")).toEqual({
    code: 2,
    printed: expect.stringContaining("--storage"),
  });
  expect(await mainJob("--seed", "x")).toEqual({ code: 2, printed: expect.stringContaining("--seed N") });
});
