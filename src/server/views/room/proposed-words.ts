/** Words of the review of a proposed change, which the script of the page says again when somebody chooses. */

/** Numbers of what is chosen. */
export interface ChosenCounts {
  /** Files of which something is applied. */
  files: number;
  /** All files that are proposed. */
  all: number;
  /** Places that are applied. */
  places: number;
}

export const filesText = (count: number): string => `${count} ${count === 1 ? "file" : "files"}`;

/** `mayWait`: the person may decide later. */
export function applyText({ files, all }: ChosenCounts, mayWait: boolean): string {
  if (files === 0 && mayWait) return "Apply nothing now";
  return files === all
    ? `Apply ${all === 1 ? "the file" : `all ${all} files`}`
    : `Apply ${files} of ${all} files`;
}

export const branchText = ({ files }: ChosenCounts): string => `Make a branch of ${filesText(files)}`;

export function refuseText({ files, all }: ChosenCounts): string {
  const rest = all - files;
  return files === 0 ? `Refuse ${filesText(rest)}` : `Apply ${files}, refuse ${rest}`;
}

export const boundText = ({ places }: ChosenCounts): string =>
  places < 2 ? "" : `${places} places, all at once or not at all.`;

/** The choice of places in one file. */
export const placesText = (chosen: number, all: number): string =>
  chosen === all ? (all === 1 ? "Chosen" : `All ${all} places chosen`) : `${chosen} of ${all} places chosen`;
