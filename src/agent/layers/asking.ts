import { askUserTool } from "../../tools/ask-user.ts";
import { specTool } from "../calls/tool.ts";
import type { Middleware } from "../contracts/middleware.ts";

/** Questions to the person whom the agent works for: the tool `ask_user`. */
export const askingMiddleware = (): Middleware => ({
  name: "AskUserMiddleware",
  tools: [specTool(askUserTool)],
});
