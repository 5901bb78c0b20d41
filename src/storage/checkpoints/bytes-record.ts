/** Bytes in the JSON of a value. LangGraph's serialiser makes a list of numbers of them, and a promise to read each. */
interface BytesRecord {
  lc: 2;
  type: typeof BYTES;
  base64: string;
}
export const BYTES = "deepagent_bytes";
export const bytesRecord = (base64: string): BytesRecord => ({ lc: 2, type: BYTES, base64 });
