import fc from "fast-check";
import { expect, test } from "vitest";
import { html } from "../../../src/server/views/html.ts";

test("no text becomes markup, in content or in an attribute", () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.oneof(
          fc.constantFrom("<", ">", "&", '"', "'", "`"),
          fc.string({ unit: "binary", maxLength: 3 }),
        ),
      }),
      (text) => {
        const { text: page } = html`<p title="${text}">${[text, html`<b>${text}</b>`]}</p>`;
        const skeleton = page.replace(/&#\d+;|[^<>"&]/g, "");
        expect(skeleton).toBe('<""><><><>');
      },
    ),
  );
});

test("characters that turn the writing direction around are left out, absent parts are empty", () => {
  expect(html`<p>${"a\u202eb\u2066c\u0007"}${undefined}${1}</p>`.text).toBe("<p>abc1</p>");
});
