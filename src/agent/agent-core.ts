/**
 * The only door between runs and the agent: five functions and the types they speak.
 */
export type {
  ActionRequest,
  AgentEvent,
  AgentPath,
  AgentPathSegment,
  AgentSnapshot,
  Decision,
  DecisionType,
  HitlRequest,
  HitlResponse,
  PendingInterrupt,
  ReviewConfig,
  TokenUsage,
} from "./events.ts";
