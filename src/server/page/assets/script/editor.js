/**
 * The editor of a request's arguments, over text fields that hold the submitted values. It is loaded on the first
 * edit. It lives in a shadow root: its styles need no exception from the page's policy, and updates of the page leave
 * it alone.
 */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { LOOKS, languageNamed } from "../../../views/content/highlight.ts";

/** Pause in typing, in milliseconds, after which the text is checked. */
const PAUSE_MS = 250;

const COLOURS = syntaxHighlighting(
  HighlightStyle.define([
    ...LOOKS.map(({ tag, color }) => ({ tag, color })),
    { tag: tags.heading, fontWeight: "600" },
  ]),
);

const LOOK = EditorView.theme({
  "&": {
    border: "1px solid var(--field)",
    borderRadius: "var(--r2)",
    background: "var(--surface)",
    color: "var(--text)",
    maxHeight: "var(--editor-height, 55vh)",
    overflow: "hidden",
  },
  "&.cm-focused": { outline: "2px solid var(--blue)", outlineOffset: "-1px" },
  ".cm-scroller": { font: "12.5px/20px var(--mono)", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", tabSize: "4", minHeight: "60px" },
  ".cm-gutters": {
    background: "var(--sunken)",
    color: "var(--text-3)",
    border: "0",
    borderRight: "1px solid var(--line)",
  },
  ".cm-specialChar": { color: "var(--red)" },
  ".cm-matchingBracket": { background: "var(--press)", outline: "1px solid var(--line-2)" },
  ".cm-problem": { textDecoration: "underline wavy var(--red)" },
});

const AROUND = new CSSStyleSheet();
AROUND.replaceSync(`
  :host { display: block; }
  p { margin: 4px 0 0; font-size: 12px; line-height: 18px; color: var(--text-2); }
  p.problem { color: var(--red); overflow-wrap: anywhere; }
  p:empty { display: none; }
  @media (hover: none) { #hint { display: none; } }
`);

/** Start of the problem; `null`: it has no place. */
const problemAt = StateEffect.define();
const PROBLEM = Decoration.mark({ class: "cm-problem" });
const problemMark = StateField.define({
  create: () => Decoration.none,
  update(marks, { changes, effects }) {
    const told = effects.find((effect) => effect.is(problemAt));
    if (told === undefined) return marks.map(changes);
    return told.value === null ? Decoration.none : Decoration.set([PROBLEM.range(...told.value)]);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** One argument that is edited. */
class CodeField {
  #problem = "";
  #told = document.createElement("p");

  constructor(box, { changed, leave }) {
    this.textarea = box.querySelector("textarea");
    const hadFocus = document.activeElement === this.textarea;
    const host = document.createElement("div");
    const root = host.attachShadow({ mode: "open" });
    const label = box.querySelector(".label").textContent;
    this.#told.className = "problem";
    this.#told.id = "problem";
    this.#told.setAttribute("role", "status");
    const hint = document.createElement("p");
    hint.id = "hint";
    hint.textContent = "Esc or Tab leaves the editor. Ctrl ] and Ctrl [ indent.";
    const language = languageNamed(box.dataset.language);
    this.view = new EditorView({
      doc: this.textarea.value,
      root,
      parent: root,
      extensions: [
        keymap.of([{ key: "Escape", run: () => leave() }, ...defaultKeymap, ...historyKeymap]),
        [history(), indentOnInput(), bracketMatching(), lineNumbers(), highlightSpecialChars()],
        [EditorView.lineWrapping, LOOK, COLOURS, problemMark, ...(language === undefined ? [] : [language])],
        EditorView.contentAttributes.of(() => ({
          "aria-label": label,
          "aria-describedby": "problem hint",
          "aria-invalid": String(this.#problem !== ""),
          spellcheck: "false",
        })),
        EditorView.updateListener.of(({ docChanged }) => {
          if (!docChanged) return;
          this.textarea.value = this.view.state.doc.toString();
          this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
          changed();
        }),
      ],
    });
    root.append(this.#told, hint);
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, AROUND];
    box.append(host);
    box.dataset.mounted = "";
    box.querySelector(".label").addEventListener("click", () => this.view.focus());
    if (hadFocus) this.view.focus();
  }

  /** Shows a problem below the field, and where it is; an empty one is none. */
  tell({ problem = "", line, column }) {
    this.#problem = problem;
    if (this.#told.textContent !== problem) this.#told.textContent = problem;
    this.view.dispatch({ effects: problemAt.of(line === undefined ? null : this.#rangeAt(line, column)) });
  }

  /** The character there; the last one before where nothing follows. */
  #rangeAt(line, column) {
    const { doc } = this.view.state;
    const { from, to } = doc.line(Math.min(line, doc.lines));
    const start = Math.min(from + column - 1, to);
    if (start < to) return [start, start + 1];
    return start > 0 ? [start - 1, start] : null;
  }
}

/**
 * Replaces the fields of an open form with editors. `refuse` gets the send button, with the reason why the text may
 * not be sent, or `undefined`; `request` asks the server, which checks the submitted text again.
 */
export function edit(fold, { refuse, request }) {
  const form = fold.closest("form");
  const send = form.querySelector("button[value=edit]");
  let newest = 0;
  let timer;

  const fields = [...fold.querySelectorAll("[data-code]:not([data-mounted])")].map(
    (box) => new CodeField(box, { changed, leave }),
  );

  function changed() {
    clearTimeout(timer);
    timer = setTimeout(() => void check(), PAUSE_MS);
  }

  async function check() {
    newest += 1;
    const own = newest;
    const body = new URLSearchParams(new FormData(form));
    const answer = await request(form.action.replace(/reply$/, "check"), { method: "POST", body })
      .then((response) => (response.ok ? response.json() : {}))
      .catch(() => ({}));
    if (own !== newest) return;
    const wrong = fields.find(({ textarea }) => textarea.name === answer.field) ?? fields.at(-1);
    for (const field of fields) field.tell(field === wrong ? answer : {});
    refuse(send, answer.problem);
  }

  function leave() {
    fold.querySelector("summary").focus();
    return true;
  }

  // The text was typed before the editor was loaded, or is shown again because it was wrong.
  if (fields.some(({ textarea }) => textarea.value !== "")) void check();
}
