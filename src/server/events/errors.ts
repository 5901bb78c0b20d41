/** Errors of the Events extension, by the codes of its specification. */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { CallbackFailure } from "../../news/subscriber.ts";

const NOT_FOUND = -32_011;
const RESOURCE_EXHAUSTED = -32_013;
const UNSUPPORTED = -32_014;
const CALLBACK_ENDPOINT = -32_015;

export const notFound = (kind: "event" | "subscription", hint: string): ProtocolError =>
  new ProtocolError(NOT_FOUND, `NotFound: ${hint}`, { kind });

export const exhausted = (limit: string, max: number): ProtocolError =>
  new ProtocolError(RESOURCE_EXHAUSTED, `ResourceExhausted: at most ${max} ${limit}`, { limit, max });

export const unsupported = (feature: string, value: string): ProtocolError =>
  new ProtocolError(UNSUPPORTED, `Unsupported: ${feature} ${value}`, { feature, value });

export const callbackFailed = (reason: CallbackFailure): ProtocolError =>
  new ProtocolError(CALLBACK_ENDPOINT, "CallbackEndpointError: the address did not repeat the challenge", {
    reason,
  });

export const invalid = (field: string, problem: string): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, `InvalidParams: ${field} ${problem}`, { field });
