import assert from "node:assert/strict";
import { test } from "node:test";
import { heightAt, highWaters } from "../src/harmonics.js";

const station = {
  epoch: new Date("2026-01-01T00:00:00Z"),
  meanLevel: 2,
  constituents: [{ name: "M2", amplitude: 1.5, phase: 0 }],
};

test("the height is highest at the epoch when the phase is zero", () => {
  assert.equal(heightAt(station, station.epoch), 3.5);
});

test("there are two high waters a day", () => {
  const found = highWaters(station, new Date("2026-01-01T06:00:00Z"), new Date("2026-01-02T06:00:00Z"));
  assert.equal(found.length, 2);
});
