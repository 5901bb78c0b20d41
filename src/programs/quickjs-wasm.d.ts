/** The build takes the engine in as bytes. */
declare module "quickjs-wasi/quickjs.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}
