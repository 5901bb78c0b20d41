# File operations, background jobs and commands as shell commands that POSIX shells, GNU, BusyBox and BSD tools understand. Variables are
# base64. Answers are lines behind a random mark; values other than plain numbers or words are base64. The last
# line marks the answer as complete.

# Script: prelude
inherited=$LC_ALL; LC_ALL=C; export LC_ALL
say() { printf '\n%s %s %s\n' "$mark" "$1" "$2"; }
finish() { say result "$1"; say end 1; exit 0; }
encode() { base64 | tr -d '\n\r'; }
if stat -c %s / >/dev/null 2>&1; then
  facts() { stat -c '%i %s %Y %y' "$1" 2>/dev/null; }
  many() { xargs -0 stat -c '%s %Y %F' 2>/dev/null; }
  mode() { stat -c %a "$1" 2>/dev/null; }
else
  facts() { stat -f '%i %z %m %c' "$1" 2>/dev/null; }
  many() { xargs -0 stat -f '%z %m %HT' 2>/dev/null; }
  mode() { stat -f %Lp "$1" 2>/dev/null; }
fi

# Script: read
# Reads a piece of a file, with the facts that reveal a change.
if [ -d "$file" ]; then finish directory
elif [ ! -e "$file" ]; then finish missing
elif [ ! -f "$file" ]; then finish other
elif [ ! -r "$file" ]; then finish denied
fi
before=$(facts "$file")
say facts "$before"
size=$(printf %s "$before" | cut -d' ' -f2)
if [ "$size" -gt "$limit" ]; then finish large; fi
printf '\n%s data ' "$mark"
tail -c "+$from" "$file" | head -c "$count" | encode
[ "$before" = "$(facts "$file")" ] || finish changed
finish file

# Script: list
# Lists the names below a directory, and their sizes and times in the same order.
if [ ! -e "$file" ]; then finish missing; fi
if [ ! -d "$file" ]; then say facts "$(facts "$file")"; finish file; fi
if [ ! -r "$file" ]; then finish denied; fi
names=$(mktemp) || finish failed
trap 'rm -f "$names"' EXIT
say skipped "$(find -H "$file" -mindepth 1 $depth \( -type d -o -type f \) ! -name '.deepagent-tmp-*' -print0 2>&1 >"$names" | wc -l)"
printf '\n%s names ' "$mark"; encode <"$names"
printf '\n%s stats ' "$mark"; [ ! -s "$names" ] || many <"$names" | encode
finish directory

# Script: containing
# Lists the files that contain a literal text or the mark of UTF-16, in which it has other bytes. Names with
# line ends cannot be read from the answer.
printf '\n%s names ' "$mark"
find -H "$file" -type f -exec grep -lF -e "$(printf %b "$forms")" -e "$(printf '\377\376')" -e "$(printf '\376\377')" {} + 2>/dev/null | encode
finish file

# Script: begin write
# Checks that a file may be put there, and makes its directory.
parent=${file%/*}; [ -n "$parent" ] || parent=/
if [ -L "$file" ]; then finish symlink; fi
if [ -d "$file" ]; then finish directory; fi
if [ "$create" = 1 ] && [ -e "$file" ]; then finish exists; fi
if ! mkdir -p "$parent" 2>/dev/null || [ ! -d "$parent" ]; then
  while [ ! -e "$parent" ]; do parent=${parent%/*}; [ -n "$parent" ] || parent=/; done
  [ -d "$parent" ] && finish denied
  finish parent
fi
: 2>/dev/null >"$temporary" || finish denied

# Script: append
printf %s "$data" | base64 -d >>"$temporary" || { rm -f "$temporary"; finish failed; }

# Script: end write
# Puts the file in its place in one step. A new file must not replace another. With `expected`, the old file
# must have these facts; such writes take turns by a lock on the directory, which ends with the script.
if [ -n "$expected" ]; then
  parent=${file%/*}; [ -n "$parent" ] || parent=/
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

# Script: delete
if [ ! -e "$file" ] && [ ! -L "$file" ]; then finish missing; fi
rm -rf "$file" 2>/dev/null || finish denied
finish deleted

# Script: start job
# Starts a command beside a supervisor, in a session of their own. Each has a mark by which it can be ended.
(umask 077; mkdir -p "$jobs/$id") 2>/dev/null || finish failed
if command -v setsid >/dev/null 2>&1; then session=setsid; else session=nohup; fi
if command -v bash >/dev/null 2>&1; then shell=bash; else shell=sh; fi
if [ -n "$inherited" ]; then LC_ALL=$inherited; else unset LC_ALL; fi
DEEPAGENT_COMMAND=${group}s$id $session sh -c "$supervise" sh "$jobs/$id" "$group-$id-" "$shell" "$command" "$most" "$ending" \
  </dev/null >/dev/null 2>&1 &
finish started

# Script: supervise job
# Keeps the beginning of the output, and notes the exit code when the last program of the job has ended. Ends the
# job if nobody has renewed it for half an hour: then the server that started it is gone.
folder=$1 job=$2 most=$5 ending=$6
end_marked() { eval "$ending"; }
keep() {
  size=-1
  while now=$(wc -c <"$folder/output"); [ "$now" -gt "$size" ] && [ "$now" -lt "$most" ]; do
    size=$now
    dd bs=65536 count=64 >>"$folder/output" 2>/dev/null
  done
  cat >/dev/null
}
: >"$folder/output"
(
  idle=0
  while [ "$idle" -lt 30 ] && sleep 60 && [ ! -e "$folder/exit" ]; do
    idle=$((idle + 1))
    if rm "$folder/renewed" 2>/dev/null; then idle=0; fi
  done
  [ -e "$folder/exit" ] || end_marked "$job"
) &
{ DEEPAGENT_COMMAND=$job "$3" -c "$4" </dev/null 2>&1; echo "$?" >"$folder/code"; } | keep
while grep -qs -e "$job" /proc/[0-9]*/environ; do sleep 1; done
mv "$folder/code" "$folder/exit"

# Script: list jobs
# Lists the exit codes of the jobs that have ended, and renews the others.
for folder in "$jobs"/*; do
  if [ -e "$folder/exit" ]; then say "${folder##*/}" "$(cat "$folder/exit")"; else : >"$folder/renewed"; fi
done
finish listed

# Script: read job
# Reads a piece of the output. A job that had ended before has no more.
[ -e "$jobs/$id/output" ] || finish missing
[ ! -e "$jobs/$id/exit" ] || say exit "$(cat "$jobs/$id/exit")"
printf '\n%s data ' "$mark"
tail -c "+$from" "$jobs/$id/output" | head -c "$count" | encode
finish read

# Script: stop job
# Asks the programs of a job to end, and ends those that have not after two seconds.
end_marked() { eval "$ending"; }
await() {
  count=0
  while [ ! -e "$jobs/$id/exit" ] && [ "$count" -lt 20 ]; do
    count=$((count + 1))
    sleep 0.1 2>/dev/null || { sleep 1; count=$((count + 9)); }
  done
}
for marked in $(cd /proc && grep -ls -e "$group-$id-" [0-9]*/environ); do
  kill -s TERM "${marked%/environ}" 2>/dev/null
done
await
[ -e "$jobs/$id/exit" ] || end_marked "$group-$id-"
await
[ -e "$jobs/$id/exit" ] || echo 137 >"$jobs/$id/exit"
finish stopped

# Script: start in container
# Runs the command $2 in the directory $1.
cd -- "$1" || exit 1
if command -v bash >/dev/null 2>&1; then exec bash -c "$2"; fi
exec sh -c "$2"

# Script: start at provider
# Chooses bash where there is one, because models write for it, and goes to the directory.
if command -v bash >/dev/null 2>&1; then shell=bash; else shell=sh; fi
cd -- "$directory" || exit 1
