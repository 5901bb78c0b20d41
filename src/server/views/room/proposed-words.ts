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

export const branchText = ({ files }: ChosenCounts): string => `Create branch with ${counted(files, "file")}`;

export function refuseText({ files, all }: ChosenCounts): string {
  const rest = all - files;
  return files === 0 ? `Reject ${counted(rest, "file")}` : `Apply ${files}, reject ${rest}`;
}

export const boundText = ({ places }: ChosenCounts): string =>
  places < 2 ? "" : `${places} changes, applied together.`;

export const placesText = (chosen: number, all: number): string =>
  chosen < all
    ? `${chosen} of ${counted(all, "change")} selected`
    : (["Selected", "Both changes selected"][all - 1] ?? `All ${all} changes selected`);
