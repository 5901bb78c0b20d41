/** One question in a review: its words, and the form that answers it. Texts of others are plain text. */
import { grouped } from "../cost-words.ts";
import { domainToUnicode } from "node:url";
import { sumOfCounts } from "../../../core/diff.ts";
import { cutMiddle, displayBlock, displayName, displayText, oneLine } from "../../../core/text.ts";
import type { OpenQuestion, RunRequest } from "../../../runs/run.ts";
import { fieldsOf, requestText, wanted } from "../../../tools/check-answer.ts";
import { counted } from "../../../tools/format.ts";
import type { Field, Question } from "../../../tools/request.ts";
import { isShared, mayDecide, runPath } from "../../contracts/viewer.ts";
import { type Html, html, textArea, icon } from "../html.ts";
import { addressOf, isJsonWanted, webAddress } from "../request-form.ts";
import { nearTime } from "./figures.ts";
import { choiceInput, copyButton, labelled, terms } from "./pieces.ts";
import { fieldInput } from "./question-fields.ts";
import type { CardParts, Complaint, RequestLook } from "./request.ts";
import { anchorOf, fold, onlyLooks, requestForm } from "./request.ts";

const MAX = { line: 200, title: 160, value: 60_000, server: 80 };

const serverName = ({ server }: Extract<Question, { kind: "elicitation" }>): string =>
  displayName(oneLine(server, MAX.server));

/** True if the run asks what of its change is applied. */
export const isReview = (asked: RunRequest): asked is Extract<OpenQuestion, { kind: "review" }> =>
  asked.kind === "review";

/** The words of a question on one line, with the name of the server that asks. */
export function questionLine(question: OpenQuestion): string {
  if (question.kind === "review") {
    const { added = 0, removed = 0 } = sumOfCounts(question.files) ?? {};
    const files = counted(question.files.length + question.more, "file");
    return `Review the change of ${files}, +${grouped(added)} −${grouped(removed)}`;
  }
  const text = oneLine(displayText(requestText(question)), MAX.line);
  if (question.kind !== "elicitation") return text;
  const host = addressOf(question)?.host ?? "an address";
  return `${serverName(question)} ${question.mode === "url" ? `asks to open ${host}` : `asks: ${text}`}`;
}

export function questionCard(asked: OpenQuestion, look: RequestLook): CardParts {
  const { viewer } = look;
  const { session } = viewer;
  if (asked.kind === "review") {
    const isLink = session !== "app" && !isShared(session);
    // It leads to the screen that shows the whole change; nothing is decided here.
    const content = isLink
      ? html`<div class="ask-foot">
          <div class="decide">
            <a class="btn ink" href="${runPath(asked.runId)}/review">Review the change</a
            ><span class="note">The folder is unchanged.</span>
          </div>
        </div>`
      : onlyLooks(viewer);
    return { tag: "proposed change", title: html`${questionLine(asked)}`, content };
  }
  const rows = fieldsOf(asked)?.map((field) => [fieldLabel(field), displayText(wanted(field))] as const);
  const form = mayDecide(session)
    ? answerForm(asked, look)
    : html`${terms("kv", rows ?? [])}${due(asked, look.now)}${onlyLooks(viewer)}`;
  return {
    tag: asked.kind === "elicitation" ? "MCP server" : "question",
    ...titleWords(asked),
    content: html`${renderValue(asked)} ${addressPart(asked)} ${form}`,
  };
}

/** Builds the title in words of the page, unless the agent's own are short. Texts of others are quotations. */
function titleWords(question: Question): { title: Html; more?: Html } {
  const text = displayBlock(requestText(question).trim());
  if (question.kind === "elicitation") {
    const name = html`<code>${serverName(question)}</code>`;
    const title =
      question.mode === "url"
        ? html`MCP server ${name} asks you to open an address`
        : html`Question from MCP server ${name}`;
    const more = html`<blockquote class="ask-why">
      <span class="label">What the server says</span>
      <p class="lines">${text}</p>
    </blockquote>`;
    return { title, more };
  }
  if (text.length <= MAX.title && !text.includes("\n")) return { title: html`${text}` };
  const title = question.kind === "ask" ? html`Question from the agent` : html`A tool needs your input`;
  return { title, more: html`<p class="ask-text lines">${text}</p>` };
}

/** All that a tool asks with, where that is more than a text. */
function renderValue(question: Question): Html | undefined {
  if (question.kind !== "interrupt" || typeof question.value === "string") return undefined;
  const json = JSON.stringify(question.value, null, 2) ?? "";
  if (json === requestText(question)) return undefined;
  return html`<pre class="json" tabindex="0" role="region" aria-label="What the tool sent">
${displayText(cutMiddle(json, MAX.value))}</pre>`;
}

/** The host, then the whole address as a text, and the other hosts that it names. */
function addressPart(question: Question): Html | undefined {
  if (question.kind !== "elicitation" || question.mode !== "url") return undefined;
  const url = addressOf(question);
  if (url === undefined) {
    return html`<p class="notice red">
        ${icon("fail", "red")}This is not a web address, so it cannot be opened here.
      </p>
      <code class="address">${displayText(question.url)}</code>`;
  }
  const { host, hostname, protocol, href } = url;
  const reading = domainToUnicode(hostname);
  const start = href.indexOf(host, protocol.length);
  const others = new Set(
    [...url.searchParams.values()]
      .flatMap((value) => webAddress(value)?.host ?? [])
      .filter((one) => one !== host),
  );
  const isReading = reading !== hostname && reading !== "";
  const security = protocol === "https:" ? "https" : "http, which is not encrypted";
  const shown = html`<b>${host}</b>
    <span class="dim">${isReading && `· reads as ${displayName(reading)} `}· ${security}</span>`;
  const named = `${[...others].join(", ")} (${others.size === 1 ? "a different host" : "different hosts"})`;
  return html`${terms("kv", [["Host", shown], ...(others.size === 0 ? [] : [["Also refers to", named] as const])])}
    <code class="address">${href.slice(0, start)}<b>${host}</b>${href.slice(start + host.length)}</code>`;
}

const due = ({ expiresAt }: OpenQuestion, now: number): Html | false =>
  expiresAt !== undefined &&
  html`<p class="due">
    ${icon("clock")}<span
      >If there is no answer by ${nearTime(expiresAt, now)}, the agent continues without one.</span
    >
  </p>`;

const fieldLabel = ({ name, title }: Field): string => displayName(oneLine(title ?? name, MAX.line));

function answerForm(asked: OpenQuestion, look: RequestLook): Html {
  const { complaint, now } = look;
  const isUrl = asked.kind === "elicitation" && asked.mode === "url";
  const warning =
    asked.kind === "elicitation" &&
    !isUrl &&
    html`<p class="due">
      ${icon("eye")}<span
        >This form comes from the server, which receives what you enter. Don’t enter passwords or keys.</span
      >
    </p>`;
  const fields = html`${!isUrl && inputs(asked, complaint)} ${due(asked, now)} ${warning}
    <div class="ask-foot">
      <div class="decide two">
        ${isUrl ? openButtons(asked.url) : html`<button class="btn ink" name="act" value="answer">${asked.kind === "elicitation" ? html`Send to ${serverName(asked)}` : "Send answer"}</button>`}
        ${declining(asked, complaint)}
      </div>
    </div>`;
  return requestForm(asked, look, "answer", fields);
}

function inputs(asked: OpenQuestion, complaint: Complaint | undefined): Html {
  const fields = fieldsOf(asked);
  const id = anchorOf(asked);
  if (fields === undefined) return freeAnswer(asked, id, complaint);
  const suggested = fields.flatMap((field, index) =>
    [field.suggested ?? []].flat().map((value): [string, string] => {
      const choice = field.type === "choice" ? String(field.options.indexOf(String(value))) : String(value);
      return [`v${index}`, value === true ? "yes" : value === false ? "no" : choice];
    }),
  );
  const typed = complaint?.form ?? new URLSearchParams(suggested);
  const shown = fields.map((field, index) =>
    fieldInput(field, {
      name: `v${index}`,
      id: `${id}-${index}`,
      label:
        fields.length === 1 && field.title === undefined && field.name === "answer"
          ? "Your answer"
          : fieldLabel(field),
      typed,
      problem: complaint?.fields?.get(field.name),
    }),
  );
  return html`<div class="fields">${shown}</div>`;
}

/** A field for text or JSON, for a tool without a schema of its answer. */
function freeAnswer(question: OpenQuestion, id: string, complaint: Complaint | undefined): Html {
  const schema = question.kind === "interrupt" ? question.schema : undefined;
  const isJson = complaint === undefined ? isJsonWanted(question) : complaint.form.get("as") === "json";
  return html`<div class="fields">
    ${
      schema &&
      html`<details class="rest">
        <summary>Expected answer (JSON Schema)</summary>
        <pre class="json">${displayText(cutMiddle(JSON.stringify(schema, null, 2), MAX.value))}</pre>
      </details>`
    }
    <div>
      <label class="label" for="${id}-0">Your answer</label>
      ${textArea(html`id="${id}-0" class="field" name="v0" rows="3" required`, complaint?.form.get("v0") ?? "")}
    </div>
    <fieldset class="choices inline">
      <legend class="label">Send as</legend>
      ${choiceInput("as", "text", "Text", !isJson)} ${choiceInput("as", "json", "JSON", isJson)}
    </fieldset>
  </div>`;
}

function openButtons(url: string): Html | undefined {
  const safe = webAddress(url);
  if (safe === undefined) return undefined;
  return html`<button class="btn ink" name="act" value="opened">Done, I opened it</button>
    <a class="btn" href="${safe.href}" target="_blank" rel="noopener noreferrer"
      >${icon("link")}Open ${safe.host}</a
    >
    ${copyButton("Copy address", { text: safe.href })}`;
}

/** The agent reads the reason; a tool and another server only learn that there is no answer. */
function declining(asked: OpenQuestion, complaint: Complaint | undefined): Html {
  const press = html`<button class="btn" name="act" value="decline" formnovalidate>
    Skip this question
  </button>`;
  if (asked.kind !== "ask") return press;
  const typed = complaint?.form.get("message") ?? "";
  const field = textArea(html`class="field" name="message" rows="2" maxlength="2000"`, typed);
  const label = "Reason (the agent sees this and continues without an answer)";
  const body = html`${labelled(label, field)}
    <p>${press}</p>`;
  return fold("reject", asked, typed !== "", html`Skip this question<kbd aria-hidden="true">X</kbd>`, body);
}
