/**
 * True for an absolute URL, or one that is complete with `base`. Node's `URL.canParse` is not used: once compiled, it refuses characters from U+0080 to
 * U+00FF (Node 20.20.2 and 22.23.3), so that a server stops reading `https://bücher.example` after some time.
 */
export function isUrl(text: string, base?: string | URL): boolean {
  try {
    return new URL(text, base).href !== "";
  } catch {
    return false;
  }
}
