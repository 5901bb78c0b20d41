/** One question in a review: its words, and the form that answers it. Texts of others are plain text. */
import { domainToUnicode } from "node:url";
import { cutMiddle, displayBlock, displayName, displayText, oneLine } from "../../../core/text.ts";
import { type OpenQuestion, type Waiting, isQuestion } from "../../../runs/run.ts";
import { fieldsOf, questionText, wanted } from "../../../tools/check-answer.ts";
import type { Field, Question } from "../../../tools/tool.ts";
import { isShared, mayDecide, runPath } from "../../contracts/viewer.ts";
import { type Html, html, textArea } from "../html.ts";
import type { RequestLook } from "./approval.ts";
import { dayAndTime, grouped, timeOf } from "./figures.ts";
import { type IconName, icon } from "./icons.ts";
import { copyButton } from "./pieces.ts";
import { filesText } from "./proposed-words.ts";
import { fieldInput } from "./question-fields.ts";
import {
  type Complaint,
  NO_DEFAULT,
  type Request,
  anchorOf,
  fold,
  onlyLooks,
  requestHead,
} from "./request.ts";

const MAX = { line: 200, title: 160, value: 60_000, server: 80 };

type Elicitation = Extract<Question, { kind: "elicitation" }>;

const serverName = ({ server }: Elicitation): string => displayName(oneLine(server, MAX.server));

/** True if the run asks what of its change is applied. */
export const isReview = (asked: Waiting): asked is OpenQuestion =>
  isQuestion(asked) && asked.question.kind === "review";

export const questionIcon = ({ question }: OpenQuestion): IconName => {
  if (question.kind === "review") return "diff";
  if (question.kind !== "elicitation") return "help";
  return question.mode === "url" ? "link" : "plug";
};

/** The words of a question on one line, with the name of the server that asks. */
export function questionLine({ question }: OpenQuestion): string {
  if (question.kind === "review") return reviewLine(question);
  const text = oneLine(displayText(questionText(question)), MAX.line);
  if (question.kind !== "elicitation") return text;
  return `${serverName(question)} ${question.mode === "url" ? `asks to open ${hostOf(question.url)}` : `asks: ${text}`}`;
}

function reviewLine({ files, more }: Extract<Question, { kind: "review" }>): string {
  const sum = (of: "added" | "removed"): number => files.reduce((total, file) => total + file[of], 0);
  return `Review the change of ${filesText(files.length + more)}, +${grouped(sum("added"))} −${grouped(sum("removed"))}`;
}

/** Leads to the screen that shows the whole change; nothing is decided here. */
function renderReviewLink(
  asked: OpenQuestion,
  about: Omit<Request, "asked">,
  { viewer, place }: RequestLook,
): Html {
  const anchor = anchorOf(asked);
  const title = html`${questionLine(asked)}`;
  const { session } = viewer;
  return html`<article
    class="panel ask"
    id="${anchor}"
    data-approval="${asked.id}"
    aria-labelledby="${anchor}-h"
    tabindex="-1"
  >
    ${requestHead({ asked, ...about }, { sign: "diff", tag: "proposed change", place, title })}
    ${
      session === "app" || isShared(session)
        ? onlyLooks(viewer)
        : html`<div class="ask-foot">
            <div class="decide">
              <a class="btn ink" href="${runPath(asked.runId)}/review">Review the change</a
              ><span class="note">Nothing in the folder has changed yet.</span>
            </div>
          </div>`
    }
  </article>`;
}

export function renderQuestion(
  asked: OpenQuestion,
  about: Omit<Request, "asked">,
  { viewer, place, complaint, now }: RequestLook & { now: number },
): Html {
  const { question } = asked;
  if (question.kind === "review") return renderReviewLink(asked, about, { viewer, place });
  const anchor = anchorOf(asked);
  const tag = question.kind === "elicitation" ? "MCP server" : "question";
  const head = { sign: questionIcon(asked), tag, place, ...wordsOf(question) };
  const { session } = viewer;
  const isForm = session !== "app" && mayDecide(session);
  return html`<article
    class="panel ask"
    id="${anchor}"
    data-approval="${asked.id}"
    aria-labelledby="${anchor}-h"
    tabindex="-1"
  >
    ${requestHead({ asked, ...about }, head)} ${valueOf(question)} ${addressOf(question)}
    ${isForm ? answerForm(asked, { complaint, now, isOfAll: about.task !== undefined }) : html`${asking(question)}${due(asked, now)}${onlyLooks(viewer)}`}
  </article>`;
}

/** The title in words of the page, unless the agent's own are short, and what others say as a quotation. */
function wordsOf(question: Question): { title: Html; more?: Html } {
  const text = displayBlock(questionText(question).trim());
  if (question.kind === "elicitation") {
    const name = html`<code>${serverName(question)}</code>`;
    const title =
      question.mode === "url"
        ? html`The MCP server ${name} asks you to open an address`
        : html`Asked by the MCP server ${name}`;
    return {
      title,
      more: html`<blockquote class="ask-why"><p class="lines">${text}</p></blockquote>`,
    };
  }
  if (text.length <= MAX.title && !text.includes("\n")) return { title: html`${text}` };
  const title =
    question.kind === "ask" ? html`The agent asks you` : html`A tool stopped and waits for an answer`;
  return { title, more: html`<p class="ask-text lines">${text}</p>` };
}

/** All that a tool asks with, where that is more than a text. */
function valueOf(question: Question): Html | undefined {
  if (question.kind !== "interrupt" || typeof question.value === "string") return undefined;
  const json = JSON.stringify(question.value, null, 2) ?? "";
  if (json === questionText(question)) return undefined;
  return html`<pre class="json" tabindex="0" role="region" aria-label="What the tool sent">
${displayText(cutMiddle(json, MAX.value))}</pre>`;
}

/** The address as a browser would open it; `undefined`: a browser is not to open it. */
function opened(url: string): URL | undefined {
  const read = URL.canParse(url) ? new URL(url) : undefined;
  return read !== undefined && /^https?:$/.test(read.protocol) ? read : undefined;
}

const hostOf = (url: string): string => opened(url)?.host ?? "an address";

/** The host, then the whole address as a text, and the other hosts that it names. */
function addressOf(question: Question): Html | undefined {
  if (question.kind !== "elicitation" || question.mode !== "url") return undefined;
  const url = opened(question.url);
  if (url === undefined) {
    return html`<p class="notice red">
        ${icon("fail", "red")}This is not an address of the web, so the page does not offer to open it.
      </p>
      <code class="address">${displayText(question.url)}</code>`;
  }
  const { host, hostname, protocol, href } = url;
  const reading = domainToUnicode(hostname);
  const start = href.indexOf(host, protocol.length);
  const others = new Set(
    [...url.searchParams.values()]
      .flatMap((value) => opened(value)?.host ?? [])
      .filter((one) => one !== host),
  );
  return html`<dl class="kv">
      <dt>Host</dt>
      <dd>
        <b>${host}</b>
        <span class="dim"
          >${reading === hostname || reading === "" ? undefined : `· reads as ${displayName(reading)} `}·
          ${protocol === "https:" ? "https" : "http, which is not encrypted"}</span
        >
      </dd>
      ${
        others.size === 0
          ? undefined
          : html`<dt>Names</dt>
              <dd>
                ${[...others].join(", ")}, which ${others.size === 1 ? "is another host" : "are other hosts"}
              </dd>`
      }
    </dl>
    <code class="address">${href.slice(0, start)}<b>${host}</b>${href.slice(start + host.length)}</code>`;
}

const DAY_MS = 86_400_000;

function due({ expiresAt }: OpenQuestion, now: number): Html | undefined {
  if (expiresAt === undefined) return undefined;
  const time = expiresAt - now > DAY_MS / 2 ? dayAndTime(expiresAt) : timeOf(expiresAt);
  return html`<p class="due">
    ${icon("clock")}<span>The agent continues without an answer at ${time}.</span>
  </p>`;
}

/** The fields, for those who only look. */
function asking(question: Question): Html | undefined {
  const fields = fieldsOf(question) ?? [];
  if (fields.length === 0) return undefined;
  return html`<dl class="kv">
    ${fields.map(
      (field) =>
        html`<dt>${labelOf(field)}</dt>
          <dd>${displayText(wanted(field))}</dd>`,
    )}
  </dl>`;
}

const labelOf = ({ name, title }: Field): string => displayName(oneLine(title ?? name, MAX.line));

interface FormLook {
  complaint: Complaint | undefined;
  now: number;
  /** Answered among the requests of all runs. */
  isOfAll: boolean;
}

function answerForm(asked: OpenQuestion, { complaint, now, isOfAll }: FormLook): Html {
  const { question } = asked;
  const isUrl = question.kind === "elicitation" && question.mode === "url";
  return html`<form class="answer" method="post" action="${runPath(asked.runId)}/reply" autocomplete="off">
    <input type="hidden" name="question" value="${asked.id}" />
    <input type="hidden" name="back" value="${isOfAll ? "all" : "run"}" />
    ${NO_DEFAULT}
    ${complaint && html`<p class="notice red" role="alert">${icon("fail", "red")}${complaint.problem}</p>`}
    ${isUrl ? undefined : inputs(asked, complaint)} ${due(asked, now)} ${warning(question)}
    <div class="ask-foot">
      <div class="decide two">
        ${isUrl ? openButtons(question.url) : sendButton(question)} ${declining(asked, complaint)}
      </div>
    </div>
  </form>`;
}

const warning = (question: Question): Html | undefined =>
  question.kind === "elicitation" && question.mode === "form"
    ? html`<p class="due">
        ${icon("eye")}<span
          >These words and fields are the server’s. Enter no password or key here: it reads what you
          send.</span
        >
      </p>`
    : undefined;

function inputs(asked: OpenQuestion, complaint: Complaint | undefined): Html {
  const fields = fieldsOf(asked.question);
  const id = anchorOf(asked);
  if (fields === undefined) return freeAnswer(asked, id, complaint);
  const typed = complaint?.form;
  const shown = fields.map((field, index) =>
    fieldInput(field, {
      name: `v${index}`,
      id: `${id}-${index}`,
      label:
        fields.length === 1 && field.title === undefined && field.name === "answer"
          ? "Your answer"
          : labelOf(field),
      typed,
      problem: complaint?.fields?.get(field.name),
    }),
  );
  return html`<div class="fields">${shown}</div>`;
}

/** A text or JSON, for a tool that says nothing of the form of its answer. */
function freeAnswer({ question }: OpenQuestion, id: string, complaint: Complaint | undefined): Html {
  const schema = question.kind === "interrupt" ? question.schema : undefined;
  const isJson =
    complaint === undefined
      ? schema !== undefined && schema["type"] !== "string"
      : complaint.form.get("as") === "json";
  const kind = (value: string, label: string, isChosen: boolean): Html =>
    html`<label class="choice"
      ><input type="radio" name="as" value="${value}" ${isChosen ? html` checked` : undefined} /><span
        >${label}</span
      ></label
    >`;
  return html`<div class="fields">
    ${
      schema &&
      html`<details class="rest">
        <summary>The form that the tool asks for, as JSON Schema</summary>
        <pre class="json">${displayText(cutMiddle(JSON.stringify(schema, null, 2), MAX.value))}</pre>
      </details>`
    }
    <div>
      <label class="label" for="${id}-0">Your answer</label>
      ${textArea(html`id="${id}-0" class="field" name="v0" rows="3" required`, complaint?.form.get("v0") ?? "")}
    </div>
    <fieldset class="choices inline">
      <legend class="label">The tool gets it</legend>
      ${kind("text", "as text", !isJson)} ${kind("json", "as JSON", isJson)}
    </fieldset>
  </div>`;
}

const sendButton = (question: Question): Html =>
  html`<button class="btn ink" name="act" value="answer">
    ${question.kind === "elicitation" ? html`Send to ${serverName(question)}` : "Send answer"}
  </button>`;

function openButtons(url: string): Html | undefined {
  const safe = opened(url);
  if (safe === undefined) return undefined;
  return html`<button class="btn ink" name="act" value="opened">I have opened it</button>
    <a class="btn" href="${safe.href}" target="_blank" rel="noopener noreferrer"
      >${icon("link")}Open ${safe.host}</a
    >
    ${copyButton("Copy address", { text: safe.href })}`;
}

/** The agent reads why; a tool and another server are told that there is no answer. */
function declining(asked: OpenQuestion, complaint: Complaint | undefined): Html {
  const press = html`<button class="btn" name="act" value="decline" formnovalidate>
    Decline to answer
  </button>`;
  if (asked.question.kind !== "ask") return press;
  const typed = complaint?.form.get("message") ?? "";
  const body = html`<label
      ><span class="label">Message to the agent, which continues without an answer</span>
      ${textArea(html`class="field" name="message" rows="2" maxlength="2000"`, typed)}
    </label>
    <p>${press}</p>`;
  return fold("reject", asked, typed !== "", html`Decline to answer<kbd aria-hidden="true">X</kbd>`, body);
}
