/** MCP clients as data: which part of a result reaches the model, and how results are built for it. */
import { hasName } from "../../core/text.ts";
import table from "./clients.json" with { type: "json" };

/** A client. Facts that were not measured are left out, and the client then gets the form that suits all. */
export interface McpClient {
  title: string;
  /** Its names in `clientInfo`; one with `*` at its end is the beginning of a name. */
  names: readonly string[];
  /** Its name for `install`. */
  install?: string;
  /** Reader of its results: the model alone, or a program too. */
  reader: "model" | "program";
  /** First version that was measured, and how. */
  measured?: { version: string; date: string; how: string };
  /** Part of a result with text and structured content that its model sees. */
  sees?: "text" | "structure" | "both";
  /** True if its model learns from `isError` that a call failed. */
  marksFailure?: boolean;
  /** Largest result that its model sees whole, and the rest of a larger one. */
  cuts?: { characters?: number; bytes?: number; lines?: number; shows: string };
  /** Effect of a resource link in a result; ours have none. */
  links?: "shown" | "dropped" | "breaks";
  /** Absent: it ends a call after 60 seconds, as most do. `pausesForForms`: a form of the call stops its clock. */
  waits?: { extendsOnProgress?: true; pausesForForms?: true; source: string };
  /** Arguments that it adds to calls. */
  adds?: readonly string[];
  notes?: readonly string[];
}

// Its schema is in test/server/clients.test.ts.
export const CLIENTS = table as readonly McpClient[];

/** Finds a client by its name in `clientInfo`. */
export const knownClient = (name = ""): McpClient | undefined =>
  CLIENTS.find(({ names }) => hasName(names, name));

/** Form of results for a client. Each of text and structured content is complete by itself. */
export interface ResultForm {
  /** True if results have structured content, and `tools/list` its schemas. */
  readonly structure: boolean;
  /** Bytes of the text, and of the structured content. */
  readonly room: number;
  /** True if the text has to name a failure, because the error mark does not reach the model. */
  readonly namesFailure: boolean;
}

/**
 * Returns the form of results for a client. A client whose results only its model reads gets text alone; programs get
 * both. So does a client that was not measured, in pages that no measured client cuts, even both together.
 */
export function resultForm({ reader, sees, cuts, marksFailure }: Partial<McpClient> = {}): ResultForm {
  const isKnown = sees !== undefined;
  return {
    structure: !isKnown || (reader === "program" && sees !== "both"),
    room: isKnown && cuts === undefined ? 64_000 : 9900,
    namesFailure: marksFailure === false,
  };
}
