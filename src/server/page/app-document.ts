import { Html, html } from "../views/html.ts";
import APP_STYLE from "./assets/app.css" with { type: "text" };
// oxlint-disable-next-line import/default -- the build inlines its text
import APP_SCRIPT from "./assets/app.browser.js" with { type: "text" };
import PAGE_STYLE from "./assets/page.css" with { type: "text" };

/** The MCP App as one self-contained document. Tool results carry the run's pictures under the key `viewMeta`. */
export function appDocument(viewMeta: string): string {
  // Behind `<!--`, a parser of HTML may not see where the element ends.
  const script = APP_SCRIPT.replaceAll("<!--", String.raw`\x3c!--`);
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>Deep agent run</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <style>
          ${new Html([PAGE_STYLE + APP_STYLE])}
        </style>
      </head>
      <body>
        <div class="app">
          <p id="note" class="brand" role="status">Starting …</p>
          <div id="view" data-meta="${viewMeta}"></div>
        </div>
        <script>
          ${new Html([script])};
        </script>
      </body>
    </html> `.text;
}
