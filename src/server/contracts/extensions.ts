/** Extensions of the protocol that server and clients declare. */
/** Extension of 2026-07-28 under which a call may answer with a task; client and server both declare it. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** The Events extension: clients poll, stream or subscribe to events. */
export const EVENTS_EXTENSION = "io.modelcontextprotocol/events";

/** The MCP Apps extension: a host shows this document beside the results of the tool that links it. */
export const APPS_EXTENSION = "io.modelcontextprotocol/ui";
export const RUN_APP_URI = "ui://deepagent/run";

/** Key of the run's picture in the `_meta` of a result; it is for the app, and models do not see it. */
export const APP_VIEW_META = "deepagent-mcp/view";
