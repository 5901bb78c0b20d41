import { html, type Html } from "./html.ts";

export const ASSETS = { style: "/page.css", script: "/page.js", opener: "/open.js" } as const;

/** A whole document around `body`. */
export function layout(title: string, body: Html, script?: string): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${title}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <link rel="stylesheet" href="${ASSETS.style}" />
        ${script === undefined ? undefined : html`<script src="${script}" defer></script>`}
      </head>
      <body>
        ${body}
      </body>
    </html> `;
}
