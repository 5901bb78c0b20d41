import { expect, test } from "vitest";
import { expressionWords, skipText, timeIn } from "../../src/server/views/schedule-words.ts";

test.each([
  ["* * * * *", "every minute"],
  ["*/15 * * * *", "every 15 minutes"],
  ["*/7 * * * *", "at minutes */7 of every hour"],
  ["0 * * * *", "every hour"],
  ["5 */2 * * *", "every 2 hours at :05"],
  ["0,30 * * * *", "at minutes 0,30 of every hour"],
  ["*/10 9-17 * * 1-5", "every 10 minutes from 09:00 to 17:59, Monday to Friday"],
  ["30 9-17 * * *", "every hour from 09:30 to 17:30 every day"],
  ["* 9 * * *", "every minute of hours 9 every day"],
  ["0 7 * * *", "at 07:00 every day"],
  ["0 7,19 * * *", "at 07:00 and 19:00 every day"],
  ["0 7 * * 1-5", "at 07:00, Monday to Friday"],
  ["0 7 * * MON-fri", "at 07:00, Monday to Friday"],
  ["0 7 * * 6,0", "at 07:00, Saturday and Sunday"],
  ["0 7 1 * *", "at 07:00, on day 1 of the month"],
  ["0 7 1,15 * *", "at 07:00, on days 1 and 15 of the month"],
  ["0 7 L * *", "at 07:00, on the last day of the month"],
  ["0 7 15W * *", "at 07:00, on the working day nearest to day 15 of the month"],
  ["0 7 */2 * *", "at 07:00, every 2 days of the month"],
  ["0 7 * * 5#2", "at 07:00, on the second Friday of the month"],
  ["0 7 * * FRI#L", "at 07:00, on the last Friday of the month"],
  ["0 7 13 * 5", "at 07:00, on day 13 of the month or Friday"],
  ["0 7 13 * +5", "at 07:00, on day 13 of the month if it is also Friday"],
  ["0 7 * 1,jun *", "at 07:00 in January and June"],
  ["0 7 ? * 1/2", "at 07:00, on weekdays 1/2"],
  ["@daily", "at 00:00 every day"],
  ["@Weekly", "at 00:00, Sunday"],
  ["@yearly", "at 00:00, on day 1 of the month in January"],
])("%s is read as %j", (expression, words) => {
  expect(expressionWords(expression)).toBe(words);
});

test("times are those of the schedule's zone, and skips say when and why", () => {
  const time = Date.parse("2026-01-05T23:30:00Z");
  expect(timeIn("Europe/Berlin", time)).toBe("Tue 6 Jan 2026, 00:30");
  expect(timeIn("America/New_York", time)).toBe("Mon 5 Jan 2026, 18:30");
  expect(timeIn("UTC", Date.parse("2026-09-05T00:00:00Z"))).toBe("Sat 5 Sep 2026, 00:00");
  expect(skipText("UTC", { from: time, to: time, reason: "paused" })).toBe(
    "Mon 5 Jan 2026, 23:30: the schedule was paused",
  );
  expect(skipText("UTC", { from: time, to: time + 86_400_000, reason: "previous_waits" })).toBe(
    "Mon 5 Jan 2026, 23:30 to Tue 6 Jan 2026, 23:30: the previous run was waiting for a person",
  );
});
