import assert from "node:assert/strict";
import { test } from "node:test";
import { findStation, loadStations } from "../src/stations.js";

test("stations are found by id", () => {
  const stations = loadStations(new URL("../deploy/stations.json", import.meta.url));
  assert.equal(findStation(stations, "nor-1").name, "Norderhafen");
});

// TODO: ids in capitals; needs a decision on what an id is
test.skip("stations are found whatever the case of the id", () => {});
