/** The build takes the engine in as bytes. */
declare module "quickjs-wasi/quickjs.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}

/** Node has it; the types of Node only name its classes. */
declare namespace WebAssembly {
  function compile(bytes: BufferSource): Promise<Module>;
}
