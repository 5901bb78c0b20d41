import { expect, test } from "vitest";
import { chooseDelivery, declaresForms } from "../../../src/server/delivery/choose.ts";

test.each([
  ["modern", true, "input_required"],
  ["modern", false, "handle"],
  ["legacy", true, "elicit"],
  ["legacy", false, "handle"],
] as const)("%s client, forms %s: %s", (era, forms, delivery) => {
  expect(chooseDelivery({ era, forms })).toBe(delivery);
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
