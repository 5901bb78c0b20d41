/**
 * The elements of texts: the server sends a text as it was written, and the script formats Markdown and colours code
 * and diffs. Until then, and where that fails, the text stands there as it was written.
 */
let load;
let markdown;

/** Starts to show texts. `parts`: functions that load the Markdown reader and the syntax highlighter. */
export function showTexts(parts) {
  load = parts;
  customElements.define("md-text", MarkdownText);
  customElements.define("code-text", CodeText);
  customElements.define("diff-text", class extends CodeText {});
}

/** Loads the modules that determine the size of texts in trees. Colours may follow later. */
export async function prepare(trees) {
  if (trees.some(hasMarkdown)) markdown ??= await load.markdown().catch(() => undefined);
}
const hasMarkdown = (tree) =>
  tree[0] === "md-text" || (Array.isArray(tree) && tree.slice(2).some(hasMarkdown));

class ShownText extends HTMLElement {
  /** The text as the server sent it. */
  source;

  connectedCallback() {
    if (this.source !== undefined) return;
    this.source = this.textContent;
    void this.show();
  }
}

/** Puts a button beside a block of code that copies it. */
function addCopy(code) {
  const box = Object.assign(document.createElement("div"), { className: "code-box" });
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "btn small bare icon copy",
    title: "Copy code",
    innerHTML: '<svg class="i" aria-hidden="true"><use href="#i-copy" /></svg>',
  });
  button.setAttribute("aria-label", "Copy code");
  button.dataset.copy = code.textContent;
  code.replaceWith(box);
  box.append(code, button);
}

class MarkdownText extends ShownText {
  show() {
    if (markdown === undefined) return void prepare([["md-text"]]).then(() => markdown && this.show());
    const html = markdown.markdownHtml(this.source);
    if (html === undefined) return;
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "btn bare small as-written",
      textContent: "Source",
    });
    const dress = (isSource) => {
      button.setAttribute("aria-pressed", String(isSource));
      if (isSource) {
        const plain = Object.assign(document.createElement("pre"), { className: "plain", tabIndex: 0 });
        plain.textContent = this.source;
        this.replaceChildren(button, plain);
      } else {
        this.innerHTML = html;
        this.prepend(button);
        for (const code of this.querySelectorAll("pre")) addCopy(code);
      }
    };
    button.addEventListener("click", () => {
      dress(button.getAttribute("aria-pressed") === "false");
      button.focus();
    });
    dress(false);
    this.dataset.mounted = "";
  }
}

class CodeText extends ShownText {
  async show() {
    const code = await load.code().catch(() => undefined);
    if (code === undefined || "mounted" in this.dataset) return;
    this.dataset.mounted = "";
    code.colour(this);
  }
}

/** Colours a part of a document before it is put into the page. */
export const coloured = (element) =>
  load.code().then(
    ({ colour }) => colour(element),
    () => undefined,
  );
