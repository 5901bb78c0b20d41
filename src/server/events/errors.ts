/** Errors of the Events extension, by the codes of its specification. */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { CallbackFailure } from "../../news/subscriber.ts";

export const notFound = (kind: "event" | "subscription", hint: string): ProtocolError =>
  new ProtocolError(-32_011, `NotFound: ${hint}`, { kind });

export const exhausted = (limit: string, max: number): ProtocolError =>
  new ProtocolError(-32_013, `ResourceExhausted: at most ${max} ${limit}`, { limit, max });

export const unsupported = (feature: string, value: string): ProtocolError =>
  new ProtocolError(-32_014, `Unsupported: ${feature} ${value}`, { feature, value });

export const callbackFailed = (reason: CallbackFailure): ProtocolError =>
  new ProtocolError(-32_015, "CallbackEndpointError: the address did not repeat the challenge", { reason });

export const invalid = (field: string, problem: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `InvalidParams: ${field} ${problem}`, { field });
