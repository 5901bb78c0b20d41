import type { Principal } from "../../runs/run.ts";
import type { Era, ServerDeps } from "../deps.ts";
import type { ResourceListing } from "./listing.ts";

/** What the resources of one server instance need. */
export interface ResourceScope extends Pick<ServerDeps, "runs" | "changes" | "logger"> {
  era: Era;
  /** Whose resources they are: an instance serves one principal only. */
  principal: Principal;
  /** Collects what `resources/list` shows. */
  listing: ResourceListing;
}
