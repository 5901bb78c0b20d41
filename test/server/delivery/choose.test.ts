import { expect, test } from "vitest";
import { declaresForms, declaresUrls } from "../../../src/server/calls/client.ts";
import { chooseDelivery } from "../../../src/server/delivery/deliver.ts";
import { revisionOf } from "../../../src/server/contracts/revisions.ts";

test.each([
  ["modern", { forms: true, page: false }, "input_required"],
  ["modern", { forms: false, page: true }, "input_required"],
  ["modern", { forms: false, page: false }, "handle"],
  ["legacy", { forms: true, page: false }, "elicit"],
  ["legacy", { forms: false, page: true }, "elicit_page"],
  ["legacy", { forms: false, page: false }, "handle"],
] as const)("%s client that is asked by %j: %s", (era, asked, delivery) => {
  const client = { revision: revisionOf(era), ...asked, tasks: false, models: true };
  expect(chooseDelivery(client, { asTask: true, lends: false })).toBe(delivery);
});

test.each([
  ["modern", true, "task", "input_required"],
  ["modern", false, "task", "handle"],
  ["legacy", true, "elicit", "elicit"],
  ["legacy", false, "handle", "handle"],
] as const)("%s client with tasks, forms %s: %s, or %s where no task fits", (era, forms, task, other) => {
  expect(
    chooseDelivery(
      { revision: revisionOf(era), forms, page: false, tasks: true, models: false },
      { asTask: true, lends: true },
    ),
  ).toBe(task);
  expect(
    chooseDelivery(
      { revision: revisionOf(era), forms, page: false, tasks: true, models: false },
      { asTask: false, lends: true },
    ),
  ).toBe(other);
});

test.each([
  ["modern", "task"],
  ["legacy", "handle"],
] as const)("a %s client that lends its model is asked in its way, by its task too", (era, delivery) => {
  const client = { revision: revisionOf(era), forms: false, page: false, tasks: true, models: true };
  expect(chooseDelivery(client, { asTask: true, lends: true })).toBe(delivery);
});

test.each([
  [undefined, false],
  [{}, false],
  ["elicitation", false],
  [{ elicitation: null }, false],
  [{ elicitation: {} }, true],
  [{ elicitation: { form: {} } }, true],
  [{ elicitation: { form: {}, url: {} } }, true],
  [{ elicitation: { url: {} } }, false],
  [{ roots: {}, sampling: {} }, false],
])("capabilities %j show forms: %s", (capabilities, shows) => {
  expect(declaresForms(capabilities)).toBe(shows);
});

test.each([
  [undefined, false],
  [{ elicitation: {} }, false],
  [{ elicitation: { form: {} } }, false],
  [{ elicitation: { url: {} } }, true],
  [{ elicitation: { form: {}, url: {} } }, true],
])("capabilities %j open addresses: %s", (capabilities, opens) => {
  expect(declaresUrls(capabilities)).toBe(opens);
});
