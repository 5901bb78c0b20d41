/** Words for the review of a proposed change. The page's script repeats those about choices. */
import { applyFilesText, counted } from "../../../tools/format.ts";

export interface ChosenCounts {
  /** Files of which something is applied. */
  files: number;
  all: number;
  places: number;
}

/** `mayWait`: the person may decide later. */
export const applyText = ({ files, all }: ChosenCounts, mayWait: boolean): string =>
  files === 0 && mayWait ? "Apply nothing now" : applyFilesText(files, all);

export const branchText = ({ files }: ChosenCounts): string => `Make a branch of ${counted(files, "file")}`;

export function refuseText({ files, all }: ChosenCounts): string {
  const rest = all - files;
  return files === 0 ? `Refuse ${counted(rest, "file")}` : `Apply ${files}, refuse ${rest}`;
}

export const boundText = ({ places }: ChosenCounts): string =>
  places < 2 ? "" : `${places} places, all at once or not at all.`;

export const placesText = (chosen: number, all: number): string =>
  chosen === all ? (all === 1 ? "Chosen" : `All ${all} places chosen`) : `${chosen} of ${all} places chosen`;
