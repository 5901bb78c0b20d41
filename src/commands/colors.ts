import picocolors from "picocolors";

export type Colors = ReturnType<typeof picocolors.createColors>;

/** Colours for a terminal that can show them, none for anything else (https://no-color.org). */
export function colorsFor(
  output: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Colors {
  const wanted = output.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return picocolors.createColors(wanted);
}
