/**
 * File operations as shell commands, in what POSIX shells, GNU, BusyBox and BSD tools share. Everything
 * variable is base64; answers are lines behind a random mark, their values base64 where they are not plain
 * numbers or words, and the last one says that the answer is complete.
 */

const PRELUDE = `
LC_ALL=C; export LC_ALL
say() { printf '\\n%s %s %s\\n' "$mark" "$1" "$2"; }
finish() { say result "$1"; say end 1; exit 0; }
encode() { base64 | tr -d '\\n\\r'; }
if stat -c %s / >/dev/null 2>&1; then
  facts() { stat -c '%i %s %Y %y' "$1" 2>/dev/null; }
  many() { xargs -0 stat -c '%s %Y %F' 2>/dev/null; }
  mode() { stat -c %a "$1" 2>/dev/null; }
else
  facts() { stat -f '%i %z %m %c' "$1" 2>/dev/null; }
  many() { xargs -0 stat -f '%z %m %HT' 2>/dev/null; }
  mode() { stat -f %Lp "$1" 2>/dev/null; }
fi
`;

/** One piece of a file, or what is there instead; with the facts by which a changed file is noticed. */
export const READ = `
if [ -d "$file" ]; then finish directory
elif [ ! -e "$file" ]; then finish missing
elif [ ! -f "$file" ]; then finish other
elif [ ! -r "$file" ]; then finish denied
fi
before=$(facts "$file")
say facts "$before"
size=$(printf %s "$before" | cut -d' ' -f2)
if [ "$size" -gt "$limit" ]; then finish large; fi
printf '\\n%s data ' "$mark"
tail -c "+$from" "$file" | head -c "$count" | encode
[ "$before" = "$(facts "$file")" ] || finish changed
finish file
`;

/** Names below a directory, with sizes and times in the same order. */
export const LIST = `
if [ ! -e "$file" ]; then finish missing; fi
if [ ! -d "$file" ]; then say facts "$(facts "$file")"; finish file; fi
if [ ! -r "$file" ]; then finish denied; fi
names=$(mktemp) || finish failed
trap 'rm -f "$names"' EXIT
say skipped "$(find -H "$file" -mindepth 1 $depth \\( -type d -o -type f \\) ! -name '.deepagent-tmp-*' -print0 2>&1 >"$names" | wc -l)"
printf '\\n%s names ' "$mark"; encode <"$names"
printf '\\n%s stats ' "$mark"; [ ! -s "$names" ] || many <"$names" | encode
finish directory
`;

/** Which files contain a literal text; names with line ends are not told apart and always looked at. */
export const CONTAINING = `
printf '\\n%s names ' "$mark"
find -H "$file" -type f -exec grep -lF -e "$literal" {} + 2>/dev/null | encode
finish file
`;

/** Checks that a file may be put there, and makes its directory. */
export const BEGIN_WRITE = `
parent=\${file%/*}; [ -n "$parent" ] || parent=/
if [ -L "$file" ]; then finish symlink; fi
if [ -d "$file" ]; then finish directory; fi
if [ "$create" = 1 ] && [ -e "$file" ]; then finish exists; fi
if ! mkdir -p "$parent" 2>/dev/null || [ ! -d "$parent" ]; then
  while [ ! -e "$parent" ]; do parent=\${parent%/*}; [ -n "$parent" ] || parent=/; done
  [ -d "$parent" ] && finish denied
  finish parent
fi
: 2>/dev/null >"$temporary" || finish denied
`;

export const APPEND = `
printf %s "$data" | base64 -d >>"$temporary" || { rm -f "$temporary"; finish failed; }
`;

/**
 * Puts the file in its place: a new one only where there is none, another one at once and whole. With
 * `expected`, only while the file is the one that was read; those who do it like this take turns by a lock on
 * the directory, which ends with the script.
 */
export const END_WRITE = `
if [ -n "$expected" ]; then
  parent=\${file%/*}; [ -n "$parent" ] || parent=/
  if command -v flock >/dev/null 2>&1 && { : 9<"$parent"; } 2>/dev/null; then exec 9<"$parent"; flock 9; fi
  [ "$(facts "$file")" = "$expected" ] || { rm -f "$temporary"; finish changed; }
fi
if [ "$create" = 1 ]; then
  ln "$temporary" "$file" 2>/dev/null && done=1
  rm -f "$temporary"
  [ "$done" = 1 ] || finish exists
else
  [ ! -e "$file" ] || chmod "$(mode "$file")" "$temporary"
  mv -f "$temporary" "$file" || { rm -f "$temporary"; finish failed; }
fi
finish written
`;

export const PENDING = "\nfinish pending\n";

export const DELETE = `
if [ ! -e "$file" ] && [ ! -L "$file" ]; then finish missing; fi
rm -rf "$file" 2>/dev/null || finish denied
finish deleted
`;

/** The command line of a script with its variables, whose names are plain. */
export function commandFor(
  script: string,
  variables: Readonly<Record<string, string>>,
  mark: string,
): string {
  return [`mark='${mark}'`, PRELUDE, assignments(variables), script].join("\n");
}

/** Shell code that sets variables, whose names are plain and whose values may be anything. */
export const assignments = (variables: Readonly<Record<string, string>>): string => {
  const quoted = Object.entries(variables).map(
    ([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'`,
  );
  return `eval "${decoded(quoted.join("\n"))}"`;
};

/** A command line that runs a script as one argument of a shell of its own. */
export const scriptLine = (script: string): string => `sh -c "${decoded(script)}"`;

const decoded = (value: string): string =>
  `$(printf %s '${Buffer.from(value, "utf8").toString("base64")}' | base64 -d)`;

/** What a script said, by key; undefined when the answer is cut off or is none. */
export function parseAnswer(output: string, mark: string): Map<string, string> | undefined {
  const said = new Map<string, string>();
  for (const line of output.split("\n")) {
    if (!line.startsWith(`${mark} `)) continue;
    const [key = "", ...value] = line
      .slice(mark.length + 1)
      .trimEnd()
      .split(" ");
    said.set(key, value.join(" "));
  }
  return said.has("end") && said.has("result") ? said : undefined;
}
