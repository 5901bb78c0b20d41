/** Signed messages, as the Standard Webhooks specification describes them. */
import { trimEndOf } from "../core/text.ts";

const PREFIX = "whsec_";

/** The problem with a secret; `undefined`: it can be used. Never repeats the secret. */
export function secretProblem(secret: string): string | undefined {
  const [least, most] = [24, 64] as const;
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : "";
  const bytes = Buffer.from(text, "base64");
  const isBase64 = text !== "" && trimEndOf(bytes.toString("base64"), "=") === trimEndOf(text, "=");
  return isBase64 && bytes.length >= least && bytes.length <= most
    ? undefined
    : `must be ${PREFIX} followed by ${least} to ${most} random bytes in base64`;
}

/** The headers of a message. `id` is the same at every attempt; the time is that of this one. */
export async function signedHeaders(
  { id, body, secret }: { id: string; body: string; secret: string },
  now: Date,
): Promise<Record<string, string>> {
  // Loaded with the first message: nothing is signed before the handshake.
  const { sign } = await import("./sign.ts");
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
    "webhook-signature": sign(id, now, body, secret),
  };
}
