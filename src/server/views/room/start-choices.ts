/** The settings of a new run as chips below its task. Their menus change them for this run alone. */
import { tokens } from "../cost-words.ts";
import { displayText, oneLine } from "../../../core/text.ts";
import type { OfferedModel, RunLimits } from "../../../runs/choices.ts";
import type { Readiness } from "../../../runs/service.ts";
import { type Html, html, icon } from "../html.ts";
import words from "../words.json" with { type: "json" };
import { limitWords, price } from "../limit-words.ts";
import { FACT_ICONS, type Fact, type Refused } from "./pieces.ts";

/** Folder of new runs, and the setting for it. */
export interface StartSettings {
  folder?: string | undefined;
  /** One sentence. */
  folderSetBy?: string;
}

interface Chip {
  kind: Fact;
  /** Text of the chip where nothing is chosen. */
  plain: string;
  /** Words before those of the choices. */
  lead: string;
  menu: Html;
}

/** `chosen`: the fields of the form, and the one that was not taken. `whose`: such as `this run`. */
export function startChips(
  { folder, folderSetBy }: StartSettings,
  readiness: Readiness,
  { chosen = new URLSearchParams(), fault }: Pick<Refused, "chosen" | "fault"> = {},
  whose = "this run",
): Html {
  const { model, refusal, models = [], limits = {} } = readiness;
  const show = (one: Chip): Html => chip(one, fault === one.kind);
  const isMissing = model === undefined && refusal !== undefined;
  const hasChoice = (readiness.folders?.length ?? 0) > 1;
  const menu = html`<h2>${FOLDER}</h2>
    <p class="menu-text anywhere"><strong>${folder}</strong></p>
    <p class="note menu-text">${folderSetBy}</p>`;
  return html`${hasChoice ? show(folderChip(readiness, folder, chosen)) : folder && show({ kind: "folder", plain: folder, lead: "", menu })}
  ${model && show({ kind: "model", plain: model, lead: "", menu: modelMenu(models, chosen, whose) })}
  ${isMissing && html`<span class="chip still">${icon(FACT_ICONS.model)}No model yet</span>`}${readiness.changes && show(changesChip(readiness, chosen))}${show(goalChip(chosen))}${show(limitChip(limits, models, chosen))}`;
}

const chip = ({ kind, plain, lead, menu }: Chip, isWrong: boolean): Html =>
  html`<details
    class="chip drop${isWrong ? " fault" : ""}"
    name="menu"
    id="chip-${kind}"
    data-plain="${plain}"
    data-lead="${lead}"
  >
    <summary title="${plain}">
      ${icon(FACT_ICONS[kind])}<span class="cut" data-chip>${plain}</span>${icon("down")}
    </summary>
    <div class="menu">${menu}</div>
  </details>`;

/** One option of a menu. `word`: its text on the chip; absent for the server's choice. */
const option = ({
  name,
  value,
  title,
  end,
  note,
  word,
  isChosen,
  isOff = false,
}: {
  name: string;
  value: string;
  title: string;
  end?: string | undefined;
  note?: string | undefined;
  word?: string | undefined;
  isChosen: boolean;
  isOff?: boolean;
}): Html =>
  html`<label class="menu-item pick${isOff && " off"}" ${!isOff && html` data-closes`}>
    <input
      type="radio"
      class="hide"
      name="${name}"
      value="${value}"
      ${word !== undefined && html` data-word="${word}"`}
      ${isChosen && html` checked`}
      ${isOff && html` disabled`}
    />${icon("tick")}<span class="cut" title="${title}">${title}</span
    >${end && html`<span class="end num">${end}</span>`} ${note && html`<small>${note}</small>`}
  </label>`;

const FOLDER = "Folder the agent works in";

/** `own`: the folder of runs that choose none. */
function folderChip({ folders = [] }: Readiness, own: string | undefined, chosen: URLSearchParams): Chip {
  const wanted = chosen.get("folder") ?? "";
  const options = folders.map((path, index) => {
    const isOwn = index === 0 && own !== undefined;
    const title = oneLine(displayText(path.split(/[\\/]/).at(-1) ?? path), 100);
    const value = isOwn ? "" : path;
    const note = oneLine(displayText(path), 200);
    return option({
      name: "folder",
      value,
      title,
      note,
      ...(isOwn ? { end: "default" } : { word: title }),
      isChosen: value === wanted,
    });
  });
  const menu = html`<h2>${FOLDER}</h2>
    <div role="radiogroup" aria-label="${FOLDER}">${options}</div>`;
  return { kind: "folder", plain: own ?? "Choose a folder", lead: "", menu };
}

function modelMenu(models: readonly OfferedModel[], chosen: URLSearchParams, whose: string): Html {
  const wanted = chosen.get("model") ?? "";
  const isListed = models.some(({ spec }, index) => index > 0 && spec === wanted);
  const [main] = models;
  const options = models.map(({ spec, problem, price: cost }, index) => {
    const [, provider = "", name = ""] = /^(?:([^:]*):)?([^]*)$/.exec(spec) ?? [];
    const priced = cost === undefined ? "no price" : `$${cost.input} · $${cost.output}`;
    const lacking = problem?.split(" needs the environment variable ")[1]?.split(", which")[0];
    const note = [provider, index === 0 && "Default of this server"].filter(Boolean).join(". ");
    return option({
      name: "model",
      value: index === 0 ? "" : spec,
      title: name,
      end: problem === undefined ? priced : undefined,
      note: problem === undefined ? note : oneLine(lacking === undefined ? problem : `Needs ${lacking}`, 300),
      word: index === 0 ? undefined : spec,
      isChosen: index === 0 ? wanted === "" : spec === wanted,
      isOff: problem !== undefined,
    });
  });
  const other = {
    name: "model",
    value: wanted,
    title: oneLine(displayText(wanted), 200),
    note: wanted === main?.spec ? "Also if the default changes" : "This server does not allow it",
    word: oneLine(displayText(wanted), 200),
    isChosen: true,
  };
  const more = models.length > 1 ? "" : " To offer more models here, add them to allowedModels.";
  return html`<h2>Model of ${whose}</h2>
    <div role="radiogroup" aria-label="Model of ${whose}">
      ${options}${wanted !== "" && !isListed && option(other)}
    </div>
    <hr />
    <p class="note menu-text">
      Prices are for a million tokens, in and out. Subagents use the same model unless the server names
      another.${more}
    </p>`;
}

function changesChip({ changes: own = "direct", noProposals }: Readiness, chosen: URLSearchParams): Chip {
  const isWanted = words.changes.some(({ way }) => way !== own && way === chosen.get("changes"));
  const options = words.changes.map(({ way, title, note }) => {
    const off = way === "propose" ? noProposals : undefined;
    const look = way === own ? { value: "", end: "default" } : { value: way, word: title };
    return option({
      name: "changes",
      title,
      ...look,
      note: off === undefined ? note : oneLine(off, 300),
      isChosen: (way === own) !== isWanted,
      isOff: off !== undefined,
    });
  });
  const title = "File changes";
  const menu = html`<h2>${title}</h2>
    <div role="radiogroup" aria-label="${title}">${options}</div>`;
  const plain = words.changes.find(({ way }) => way === own)?.title ?? "";
  return { kind: "changes", plain, lead: "", menu };
}

function goalChip(chosen: URLSearchParams): Chip {
  const menu = html`<h2><label for="goal">Acceptance criteria, one per line</label></h2>
    <div class="goal-lines">
      <textarea class="field" id="goal" name="goal" rows="4" maxlength="20000" data-lines="criteria">
${chosen.get("goal") ?? ""}</textarea>
    </div>
    <p class="note menu-text">
      A read-only judge checks them after each answer. The agent keeps working on unmet criteria; you decide
      unclear ones.
    </p>`;
  return { kind: "goal", plain: "No goal", lead: "Goal: ", menu };
}

function limitChip(limits: RunLimits, models: readonly OfferedModel[], chosen: URLSearchParams): Chip {
  const words = limitWords(limits);
  const plain = words.length === 0 ? "No limit" : `Limit ${words.join(", ")}`;
  const minutes = limits.workTime && limits.workTime / 60;
  const menu = html`${costOptions(limits, models, chosen)}
    <h2>Other limits</h2>
    <div class="limits">
      ${amount("tokens", "Tokens", "tokens", limits.tokens, chosen)}
      ${amount("modelCalls", "Model calls", "model calls", limits.modelCalls, chosen)}
      ${amount("toolCalls", "Tool calls", "tool calls", limits.toolCalls, chosen)}
      ${amount("minutes", "Minutes of work", "min of work", minutes && Math.floor(minutes), chosen)}
    </div>
    <hr />
    <p class="note menu-text">
      At a limit the agents stop after their current step, and their work is kept. Leave a field empty to use
      the server’s limit.
    </p>`;
  return { kind: "limit", plain, lead: "Limit ", menu };
}

function costOptions({ costUsd }: RunLimits, models: readonly OfferedModel[], chosen: URLSearchParams) {
  // Without any price no run could keep such a limit.
  if (!models.some((one) => one.price !== undefined)) return undefined;
  const below = [0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100].filter(
    (cost) => costUsd === undefined || cost < costUsd,
  );
  const offered = costUsd === undefined ? [1, 5, 20] : below.slice(-3);
  const wanted = chosen.get("cost") ?? "";
  const other = chosen.get("costOther") ?? "";
  const title = "Cost limit";
  return html`<h2>${title}</h2>
    <div role="radiogroup" aria-label="${title}">
      ${offered.map((cost) =>
        option({
          name: "cost",
          value: String(cost),
          title: price(cost),
          word: price(cost),
          isChosen: wanted === String(cost),
        }),
      )}
      ${option({
        name: "cost",
        value: "",
        title: costUsd === undefined ? "No limit" : price(costUsd),
        end: "default",
        isChosen: ![...offered.map(String), "other"].includes(wanted),
      })}
      <div class="other">
        <label class="menu-item pick">
          <input
            type="radio"
            class="hide"
            name="cost"
            value="other"
            ${wanted === "other" && html` checked`}
          />${icon("tick")}<span>Other</span>
        </label>
        <input
          class="field"
          name="costOther"
          inputmode="decimal"
          maxlength="12"
          placeholder="$"
          aria-label="Other cost, in US dollars"
          value="${other}"
          data-other
          data-before="$"
        />
      </div>
    </div>
    <hr />`;
}

const amount = (
  name: string,
  label: string,
  unit: string,
  most: number | undefined,
  chosen: URLSearchParams,
): Html =>
  html`<label class="limit"
    ><span>${label}</span
    ><input
      class="field num"
      name="${name}"
      inputmode="numeric"
      maxlength="12"
      placeholder="${most === undefined ? "no limit" : `at most ${tokens(most)}`}"
      value="${chosen.get(name) ?? ""}"
      data-unit="${unit}"
  /></label>`;
