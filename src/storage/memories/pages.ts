/** Reads memories a page at a time. */
import type { Item } from "@langchain/langgraph-checkpoint";
import { ownTurn } from "../../core/concurrency.ts";
import { type Statement, all } from "../../runs/sql/steps.ts";
import type { MemoryDatabase } from "./contracts.ts";
import type { ItemPosition, ItemRow, ItemStatements, Start, Stretch, TextRow } from "./items.ts";
import { toItem } from "./items.ts";
import { MAX_COUNT } from "./namespaces.ts";

/** Bytes or characters that are read in one turn of the event loop, or nearly. */
const PAGE_LENGTH = 500_000;

/** The items of a stretch that have not expired at a time. */
type Wanted = Stretch & { now: number };
type ReadPage<Row> = (
  start: Start,
  page: Wanted & { limit: number },
) => Promise<{
  rows: Row[];
  /** The last place that was looked at; absent after all of them. */
  last: ItemPosition | undefined;
  length: number;
}>;

export function itemPages({ engine, contains }: MemoryDatabase, sql: ItemStatements) {
  const readRows = <Row extends object>(text: string, values: Statement["values"]): Promise<Row[]> =>
    engine.read(() => all<Row>(text, values));
  const listed: ReadPage<ItemRow> = async (start, page) => {
    const rows = await readRows<ItemRow>(sql.listed(start), page);
    return { rows, last: lastRow(rows, page), length: totalLength(rows.map(({ value }) => value)) };
  };
  const texts: ReadPage<TextRow> = async (start, page) => {
    const rows = await readRows<TextRow>(sql.texts(start), page);
    return { rows, last: lastRow(rows, page), length: totalLength(rows.map(({ body }) => body)) };
  };
  /** The items of one namespace whose stored value has one of the texts: in JSON, where each character has its escape. */
  const containing = (wanted: readonly string[]): ReadPage<ItemRow> => {
    const inJson = wanted.map((text) => JSON.stringify(text).slice(1, -1));
    const named = Object.fromEntries(inJson.map((text, index) => [`text${index}`, contains.value(text)]));
    return async (start, page) => {
      const [found] = await readRows<{ last: string | null; bytes: number }>(sql.extent(start), page);
      if (found === undefined || found.last === null) return { rows: [], last: undefined, length: 0 };
      const values = { ...page, last: found.last, ...named };
      const rows = await readRows<ItemRow>(sql.containing(start, wanted.length), values);
      return { rows, last: { namespace: page.namespace, key: found.last }, length: found.bytes };
    };
  };
  /**
   * Items of a stretch, of which those in the folder that `skip` names for an item before them are left out: from its
   * slash to the next character. Ends early after long values; empty only at the end.
   */
  const firstInFolders = (
    wanted: Wanted & { start: Start; limit: number },
    skip: (item: Item) => string | undefined,
  ): Promise<FoundItem[]> =>
    engine.read(function* () {
      const found: FoundItem[] = [];
      let [{ start, key }, folder, length] = [wanted, undefined as string | undefined, 0];
      for (let limit = Math.min(32, wanted.limit); found.length < wanted.limit && length < PAGE_LENGTH;) {
        const rows = yield* all<ItemRow>(sql.listed(start), { ...wanted, key, limit });
        for (const row of rows) {
          length += row.value.length;
          if (folder !== undefined && row.key.startsWith(folder)) continue;
          const item = toItem(row);
          found.push({ row, item });
          folder = skip(item);
        }
        const last = lastRow(rows, { limit });
        if (last === undefined) break;
        const isSkipped = folder !== undefined && last.key.startsWith(folder);
        [start, key] =
          folder !== undefined && isSkipped ? [">=", `${folder.slice(0, -1)}0`] : [">", last.key];
        // A folder is often followed by another folder, and a file by more files.
        limit = isSkipped ? 1 : Math.min(limit * 4, wanted.limit - found.length);
      }
      return found;
    });
  return { listed, texts, containing, firstInFolders };
}

type FoundItem = { row: ItemRow; item: Item };

/** Yields all pages in order, one in each turn of the event loop. The caller needs only the first `most` items. */
export async function* readPages<Row>(
  read: ReadPage<Row>,
  wanted: Wanted,
  { start = ">", most = MAX_COUNT }: { start?: Start; most?: number } = {},
): AsyncGenerator<Row[]> {
  let place: ItemPosition = wanted;
  // 64 items are one statement, which shows one moment. Pages of short values grow.
  for (let limit = Math.min(most, 64); limit > 0;) {
    const page = { ...wanted, namespace: place.namespace, key: place.key, limit };
    const { rows, last, length } = await read(place === wanted ? start : ">", page);
    yield rows;
    if (last === undefined) return;
    place = last;
    limit = length > PAGE_LENGTH ? Math.max(1, limit >> 1) : Math.min(limit * 2, 512);
    await ownTurn();
  }
}

const totalLength = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

const lastRow = <Row>(rows: readonly Row[], { limit }: { limit: number }): Row | undefined =>
  rows.length < limit ? undefined : rows.at(-1);
