/** Where the shared folders are in the tree of files an agent sees. */
export const WORKSPACE_MOUNT = "/workspace";
export const MEMORIES_MOUNT = "/memories";
export const SKILLS_MOUNT = "/skills";
