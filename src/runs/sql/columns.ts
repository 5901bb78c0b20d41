/** Rows as objects, and objects as rows: a field is named as its column, in the case of TypeScript. */
import { type Json, fromJson, toJson } from "../../core/json.ts";
import type { Value } from "./steps.ts";

/** Columns that hold JSON, in whichever table. */
const JSON_COLUMNS: ReadonlySet<string> = new Set(
  "agent allowed_decisions applied args body data decision goal limits preview ruled same structured todos".split(
    " ",
  ),
);

/** The columns of a list in SQL, such as `id, run_id`. */
export type Columns<List extends string> = List extends `${infer First}, ${infer Rest}`
  ? First | Columns<Rest>
  : List;

type FieldName<Column extends string> = Column extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<FieldName<Tail>>}`
  : Column;
type Parsed<Stored> = Exclude<Stored extends Json<infer T> ? T : Stored, null>;

/** The fields of a row; those of columns that may be null are optional. */
type RowFields<Row> = {
  [Column in keyof Row & string as null extends Row[Column] ? never : FieldName<Column>]: Parsed<Row[Column]>;
} & {
  [Column in keyof Row & string as null extends Row[Column] ? FieldName<Column> : never]?: Parsed<
    Row[Column]
  >;
};

/** The row of a table whose columns are named as the fields of `Fields`. */
export type RowOf<Fields> = {
  [Field in keyof Fields & string as ColumnName<Field>]-?: undefined extends Fields[Field]
    ? Stored<Exclude<Fields[Field], undefined>> | null
    : Stored<Fields[Field]>;
};

type ColumnName<Field extends string> = Field extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${ColumnName<Rest>}`
  : Field;
type Stored<Value> = Value extends string | number ? Value : Value extends boolean ? 0 | 1 : Json<Value>;

const fieldName = (column: string): string =>
  column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The fields of an object from the columns of a row: JSON is read, and null is an absent field. */
export function readFields<List extends string, Row extends Record<Columns<List>, unknown>>(
  row: Row,
  list: List,
): RowFields<Pick<Row, Columns<List>>> {
  const fields = list.split(", ").flatMap((column) => {
    const value: unknown = Reflect.get(row, column);
    if (value === null) return [];
    const isJson = JSON_COLUMNS.has(column);
    return [[fieldName(column), isJson ? fromJson(value as Json<unknown>) : value] as const]; // as written below
  });
  return Object.fromEntries(fields) as RowFields<Pick<Row, Columns<List>>>; // by the names of the list
}

/** The values of columns from the fields of an object: JSON is written, and an absent field is null. */
export function columnValues<List extends string>(
  object: { readonly [Field in FieldName<Columns<List>>]?: unknown },
  list: List,
): Record<Columns<List>, Value> {
  const values = list.split(", ").map((column) => {
    const value: unknown = Reflect.get(object, fieldName(column));
    return [column, value === undefined ? null : JSON_COLUMNS.has(column) ? toJson(value) : value];
  });
  return Object.fromEntries(values) as Record<Columns<List>, Value>; // texts, numbers and JSON
}
