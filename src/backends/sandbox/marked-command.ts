/**
 * Ending a command inside a machine of its own, where this process can send no signals: everything it
 * started has the mark of the command in its environment, whatever group or session it went to.
 */
export const MARK_NAME = "DEEPAGENT_COMMAND";

/** A script that ends every process with the mark `$1`. */
export const END_MARKED = `for p in /proc/[0-9]*; do grep -q "$1" "$p/environ" 2>/dev/null && kill -s KILL "\${p#/proc/}"; done; exit 0`;
