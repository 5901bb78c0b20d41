/** Rows as objects, and objects as rows: a field is named as its column, in the case of TypeScript. */
import { type Json, fromJson, toJson } from "../../core/json.ts";
import type { Value } from "./steps.ts";

/** Columns that hold JSON, in whichever table. */
const JSON_COLUMNS: ReadonlySet<string> = new Set(
  "agent allowed_decisions applied args body data decision goal limits preview same structured todos".split(
    " ",
  ),
);

/** The columns of a list in SQL, such as `id, run_id`. */
export type ColumnsOf<List extends string> = List extends `${infer First}, ${infer Rest}`
  ? First | ColumnsOf<Rest>
  : List;

type FieldOf<Column extends string> = Column extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<FieldOf<Tail>>}`
  : Column;
type Read<Stored> = Exclude<Stored extends Json<infer T> ? T : Stored, null>;

/** The fields of a row; those of columns that may be null are optional. */
type FieldsOf<Row> = {
  [Column in keyof Row & string as null extends Row[Column] ? never : FieldOf<Column>]: Read<Row[Column]>;
} & {
  [Column in keyof Row & string as null extends Row[Column] ? FieldOf<Column> : never]?: Read<Row[Column]>;
};

const fieldOf = (column: string): string =>
  column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The fields of an object from the columns of a row: JSON is read, and null is an absent field. */
export function fieldsOf<List extends string, Row extends Record<ColumnsOf<List>, unknown>>(
  row: Row,
  list: List,
): FieldsOf<Pick<Row, ColumnsOf<List>>> {
  const fields = list.split(", ").flatMap((column) => {
    const value: unknown = Reflect.get(row, column);
    if (value === null) return [];
    const isJson = JSON_COLUMNS.has(column);
    return [[fieldOf(column), isJson ? fromJson(value as Json<unknown>) : value] as const]; // as written below
  });
  return Object.fromEntries(fields) as FieldsOf<Pick<Row, ColumnsOf<List>>>; // by the names of the list
}

/** The values of columns from the fields of an object: JSON is written, and an absent field is null. */
export function valuesOf<List extends string>(
  object: { readonly [Field in FieldOf<ColumnsOf<List>>]?: unknown },
  list: List,
): Record<ColumnsOf<List>, Value> {
  const values = list.split(", ").map((column) => {
    const value: unknown = Reflect.get(object, fieldOf(column));
    return [column, value === undefined ? null : JSON_COLUMNS.has(column) ? toJson(value) : value];
  });
  return Object.fromEntries(values) as Record<ColumnsOf<List>, Value>; // texts, numbers and JSON
}
