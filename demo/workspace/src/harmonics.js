/**
 * Predicts the height of the tide as a sum of cosine waves, one for each constituent: the moon's pull
 * (M2), the sun's (S2), and the smaller ones.
 */

/** Degrees an hour. */
export const SPEEDS = { M2: 28.984, S2: 30.0, N2: 28.44, K1: 15.041, O1: 13.943 };

const HOUR = 3_600_000;

/** Height over chart datum in metres at `time`, a Date. */
export function heightAt(station, time) {
  const hours = (time.getTime() - station.epoch.getTime()) / HOUR;
  return station.constituents.reduce((height, { name, amplitude, phase }) => {
    const angle = ((SPEEDS[name] * hours - phase) * Math.PI) / 180;
    return height + amplitude * Math.cos(angle);
  }, station.meanLevel);
}

/** Times of high water between two Dates, to the minute. */
export function highWaters(station, from, to) {
  const found = [];
  const step = 60_000;
  // TODO: ten times faster with a coarse search first and a fine one around each maximum
  for (let at = from.getTime() + step; at < to.getTime(); at += step) {
    const before = heightAt(station, new Date(at - step));
    const height = heightAt(station, new Date(at));
    const after = heightAt(station, new Date(at + step));
    if (height >= before && height > after) found.push({ time: new Date(at), height });
  }
  return found;
}
