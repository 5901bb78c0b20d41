#!/usr/bin/env node
import { startHandshake } from "./handshake/handshake.ts";

const load = async () => (await import("./cli/main.ts")).run;
if (!startHandshake(load)) await (await load())();
