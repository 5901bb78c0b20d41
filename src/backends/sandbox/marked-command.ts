/**
 * Ending a command also where a signal to its group is not enough: everything it started has the mark of the
 * command in its environment, whatever group or session it went to.
 */
export const MARK_NAME = "DEEPAGENT_COMMAND";

/**
 * A script that ends every process with the mark `$1`, which has to mean itself as a regular expression:
 * BusyBox looks for fixed strings in the first variable only. It looks again until it finds none twice: those it
 * ends may just have started others, and a process that becomes another program shows no environment.
 */
export const END_MARKED = `
pass=0 none=0
while [ "$none" -lt 2 ] && [ "$pass" -lt 50 ]; do
  pass=$((pass + 1)) none=$((none + 1))
  for marked in $(cd /proc && grep -l -e "$1" [0-9]*/environ 2>/dev/null); do
    none=0
    kill -s KILL "\${marked%/environ}" 2>/dev/null
  done
done
`;
