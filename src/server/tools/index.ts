import type { Config } from "../../config/schema.ts";
import type { ServerTool } from "../protocol/tool.ts";
import { answerDeepAgent } from "./answer-deep-agent.ts";
import { cancelDeepAgent } from "./cancel-deep-agent.ts";
import { checkDeepAgent } from "./check-deep-agent.ts";
import { readAgentFile } from "./read-agent-file.ts";
import { runDeepAgent } from "./run-deep-agent.ts";
import { searchMemories } from "./search-memories.ts";

/** Every tool of the server, in the order clients list them. */
export const SERVER_TOOLS: readonly ServerTool[] = [
  runDeepAgent,
  checkDeepAgent,
  answerDeepAgent,
  cancelDeepAgent,
  readAgentFile,
  searchMemories,
];

/** Returns the tools that a server with this configuration lists. */
export const toolsFor = ({ approvals }: Pick<Config, "approvals">): readonly ServerTool[] =>
  SERVER_TOOLS.filter((tool) => tool !== answerDeepAgent || approvals.allowModelAnswers);
