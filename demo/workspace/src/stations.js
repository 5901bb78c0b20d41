import { readFileSync } from "node:fs";

/** Reads the stations file; every station gets its epoch as a Date. */
export function loadStations(path) {
  const { stations } = JSON.parse(readFileSync(path, "utf8"));
  return new Map(stations.map((station) => [station.id, { ...station, epoch: new Date(station.epoch) }]));
}

/** The station, or undefined. */
export function findStation(stations, id) {
  // FIXME: ids differ in case between harbour offices; "NOR-1" and "nor-1" are the same place
  return stations.get(id);
}
