import { PAGE_STYLE, PALETTES } from "../page/page-assets.ts";
import { html, Html } from "../page/html.ts";
import { APP_SCRIPT } from "./app-script.ts";

/** The host may want another colour scheme than the system has. */
const STYLE = `${PAGE_STYLE}
:root[data-theme="light"] { color-scheme: light; ${PALETTES.light} }
:root[data-theme="dark"] { color-scheme: dark; ${PALETTES.dark} }
main { padding: 12px; }
`;

/** One self-contained document; the pictures of the run come with tool results. */
export function appDocument(): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>Deep agent run</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <style>
          ${new Html(STYLE)}
        </style>
      </head>
      <body>
        <main>
          <p id="note" class="brand" role="status">Starting …</p>
          <div id="view"></div>
        </main>
        <script>
          ${new Html(APP_SCRIPT)};
        </script>
      </body>
    </html> `.text;
}
