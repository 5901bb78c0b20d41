import { createServer } from "node:http";
import { heightAt, highWaters } from "./harmonics.js";
import { findStation, loadStations } from "./stations.js";

const PORT = Number(process.env.PORT ?? 3000);
const DAY = 86_400_000;
const stations = loadStations(process.env.STATIONS ?? "deploy/stations.json");

const routes = {
  "/height": (station, query) => ({ height: heightAt(station, new Date(query.get("at") ?? Date.now())) }),
  "/high-waters": (station, query) => {
    const from = new Date(query.get("from") ?? Date.now());
    const days = Number(query.get("days") ?? 1);
    return { highWaters: highWaters(station, from, new Date(from.getTime() + days * DAY)) };
  },
};

createServer((request, response) => {
  const url = new URL(request.url, "http://localhost");
  const route = routes[url.pathname];
  const station = findStation(stations, url.searchParams.get("station"));
  if (route === undefined || station === undefined) {
    response.writeHead(404).end();
    return;
  }
  try {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(route(station, url.searchParams)));
  } catch {
    // HACK: a bad date lands here; answer something so that the display in the harbour goes on
    response.end("{}");
  }
}).listen(PORT);
