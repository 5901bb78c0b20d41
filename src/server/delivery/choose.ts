import type { ClientFacts } from "../client.ts";
import { elicitPageDelivery } from "./elicit-page.ts";
import { elicitDelivery } from "./elicit.ts";
import { handleDelivery } from "./handle.ts";
import { inputRequiredDelivery } from "./input-required.ts";
import type { Delivery } from "./session.ts";
import { taskDelivery } from "./task.ts";

export type DeliveryName = "task" | "input_required" | "elicit" | "elicit_page" | "handle";

export const DELIVERIES: Readonly<Record<DeliveryName, Delivery>> = {
  task: taskDelivery,
  input_required: inputRequiredDelivery,
  elicit: elicitDelivery,
  elicit_page: elicitPageDelivery,
  handle: handleDelivery,
};

/**
 * The best way for this client. Chosen before anything is answered, by capability and never by name.
 * `asTask`: whether this call may answer with a task; `lends`: whether runs here ask for the client's model.
 */
export function chooseDelivery(
  client: Pick<ClientFacts, "era" | "forms" | "page" | "tasks" | "models">,
  { asTask, lends }: DeliveryWishes,
): DeliveryName {
  const { era, forms, page, tasks, models } = client;
  const serves = lends && models;
  if (asTask && tasks && era === "modern") return "task";
  if (era === "modern") return forms || page || serves ? "input_required" : "handle";
  if (forms) return "elicit";
  return page ? "elicit_page" : "handle";
}

export interface DeliveryWishes {
  asTask: boolean;
  lends: boolean;
}
