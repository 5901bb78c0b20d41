import { InMemoryStore } from "@langchain/langgraph-checkpoint";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { memoryStoreContract } from "./memory-store.contract.ts";
import { storeContract } from "./store.contract.ts";
import { storedMemoriesContract } from "./memories/store.contract.ts";
import { opened } from "./support.ts";

storeContract("InMemoryStore", () => new InMemoryStore());
storeContract("SqliteStore", () => createStore(opened()));
memoryStoreContract("SQLite", (options) => createStore(opened(), options));
storedMemoriesContract("SQLite", (options) => createStore(opened(), options));
