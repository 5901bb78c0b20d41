/** Signs by the package of Standard Webhooks. Loaded with the first message: nothing is signed before the handshake. */
import { Webhook } from "standardwebhooks";

/** The signature header of a message. @throws for a secret that is not base64 */
export const signatureOf = (id: string, time: Date, body: string, secret: string): string =>
  new Webhook(secret).sign(id, time, body);
