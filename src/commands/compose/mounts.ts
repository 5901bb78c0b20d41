/** Where the shared folders are in the tree of files an agent sees. */
export const WORKSPACE_MOUNT = "/workspace";
export const MEMORIES_MOUNT = "/memories";
export const SKILLS_MOUNT = "/skills";

/** Folders of the workspace whose files describe subagents, lowest priority first. */
export const AGENT_FILES = ["/.claude/agents", "/.deepagent/agents"];
