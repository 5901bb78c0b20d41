/** A vector of length 1: the product of two is their cosine, from -1 to 1. */
export function unitVector(numbers: readonly number[]): Float32Array {
  let squares = 0;
  for (const number of numbers) squares += number * number;
  const length = Math.sqrt(squares) || 1;
  return Float32Array.from(numbers, (number) => number / length);
}

export const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Undefined for a vector of another length: it was made by another model. */
export function product(wanted: Float32Array, stored: Uint8Array): number | undefined {
  if (stored.byteLength !== wanted.byteLength) return undefined;
  // SQLite's bytes may begin anywhere; floats begin at multiples of their size.
  const aligned = stored.byteOffset % 4 === 0 ? stored : stored.slice();
  const other = new Float32Array(aligned.buffer, aligned.byteOffset, wanted.length);
  let sum = 0;
  for (let index = 0; index < wanted.length; index += 1) sum += (wanted[index] ?? 0) * (other[index] ?? 0);
  return sum;
}
