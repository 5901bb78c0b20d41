import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { agUiEndpoint } from "../../../src/server/ag-ui/ag-ui.ts";
import { note } from "../../runs/support.ts";
import { approvalRuns, depsFor } from "../support.ts";

test("a program that went while its request was read is not waited for", async () => {
  const { service } = approvalRuns(note("a"));
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  response.destroy();
  const message = { id: "m1", role: "user", content: "note it" };
  const nothing = { tools: [], context: [], state: {}, forwardedProps: {} };
  const body = { threadId: "t", runId: "r", messages: [message], ...nothing };
  await agUiEndpoint(depsFor(service))(body, undefined, response);
  expect(response.destroyed).toBe(true);
});
