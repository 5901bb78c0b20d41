/**
 * The URL that a text is, by itself or with `base`; `undefined` if it is none. Node's `URL.canParse` and `URL.parse` are not used: once compiled, the former
 * refuses characters from U+0080 to U+00FF (Node 20.20.2 and 22.23.3), so that a server stops reading `https://bücher.example` after some time, and Node 20
 * lacks the latter.
 */
export function parsedUrl(text: string, base?: string | URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
