/** Where the shared folders are in the tree of files an agent sees. */
export const WORKSPACE_MOUNT = "/workspace";
/** Files of a sandbox that does not see the workspace. */
export const SANDBOX_MOUNT = "/sandbox";
export const MEMORIES_MOUNT = "/memories";
export const SKILLS_MOUNT = "/skills";
