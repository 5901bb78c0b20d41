// Loaded into the server: tells its parent, when asked, how long the event loop was held up at most since it was asked
// last, in milliseconds of the main thread on a processor: what else is at work on the machine does not count.
import { threadTime } from "../event-loop/turns.mjs";

let longest = 0;
let last = threadTime();
setInterval(() => {
  const now = threadTime();
  longest = Math.max(longest, now - last);
  last = now;
}, 1).unref();
process.on("message", () => {
  process.send?.(longest);
  longest = 0;
});
process.channel?.unref();
