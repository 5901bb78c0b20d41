/** The page: a task, what happens, and two buttons for each call that waits. Texts are set as text, never as HTML. */
export const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>Cowork</title>
<form id="ask"><input name="task" size="60" placeholder="What is to be done?" required> <button>Go</button></form>
<ol id="events"></ol>
<p id="answer"></p>
<div id="waiting"></div>
<script type="module">
const show = (id, text) => { const item = document.createElement("li"); item.textContent = text; document.getElementById(id).append(item); };
const answer = document.getElementById("answer");

async function follow(path, body) {
  answer.textContent = "";
  document.getElementById("waiting").replaceChildren();
  const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
  let rest = "";
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + part).split("\\n\\n");
    rest = events.pop();
    for (const event of events) tell(JSON.parse(event.slice(6)));
  }
}

function tell(event) {
  if (event.kind === "token") answer.textContent += event.text;
  else if (event.kind === "paused") event.interrupts.forEach(question);
  else if (event.kind === "finished") answer.textContent = event.answer;
  else if (event.kind === "failed") answer.textContent = event.message;
  else if (event.summary) show("events", event.summary);
}

function question({ id, request }) {
  const [call] = request.actionRequests;
  const box = document.createElement("pre");
  box.textContent = call.name + "\\n" + JSON.stringify(call.args, null, 2) + "\\n";
  for (const type of ["approve", "reject"]) {
    const button = document.createElement("button");
    button.textContent = type;
    button.onclick = () => follow("/resume", { decisions: { [id]: { type } } });
    box.append(button, " ");
  }
  document.getElementById("waiting").append(box);
}

document.getElementById("ask").onsubmit = (submitted) => {
  submitted.preventDefault();
  follow("/task", { task: new FormData(submitted.target).get("task") });
};
const state = await (await fetch("/state")).json();
answer.textContent = state.answer;
state.waiting.forEach(question);
</script>
`;
