// A front end in thirty lines: starts a run over the API, follows it, and decides on what it asks.
// Usage: DEEPAGENT_API=http://127.0.0.1:8808/api DEEPAGENT_TOKEN=… node examples/front-end.mjs [TASK]
import assert from "node:assert/strict";

const [task = "List every TODO and write a report."] = process.argv.slice(2);
const { DEEPAGENT_API: api = "http://127.0.0.1:8808/api", DEEPAGENT_TOKEN: token } = process.env;
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

async function call(path, body) {
  const response = await fetch(api + path, { headers, method: "POST", body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer;
}

async function* follow(run) {
  const { body } = await fetch(`${api}/runs/${run}/stream`, { headers });
  let rest = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + chunk).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/m.exec(frame) ?? [];
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}

const started = await call("/runs", { task, idempotency_key: crypto.randomUUID() });
const run = started.run.id;
let end;
for await (const { name, data } of follow(run)) {
  if (name === "end") end = data;
  if (name === "event" && data.line) console.log(data.line);
  for (const request of name === "snapshot" ? data.requests : [data.request]) {
    if (request?.kind !== "approval" || request.status !== "pending") continue;
    // A person would read this, and press a button.
    console.log(`approved: ${request.summary}\n${request.detail}`);
    await call(`/runs/${run}/requests/${encodeURIComponent(request.id)}`, {
      shown: request.shown,
      answer: { type: "approve" },
    });
  }
}
assert.equal(end?.status, "completed");
assert.ok(end.requests.every(({ status, decided_by }) => status === "approved" && decided_by === "api"));
console.log(end.answer);
