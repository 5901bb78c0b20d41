/** The build takes the engine in as bytes. */
declare module "quickjs-wasi/quickjs.wasm" {
  const bytes: Uint8Array<ArrayBuffer>;
  export default bytes;
}

/** Node has it, its types do not. */
declare namespace WebAssembly {
  function compile(bytes: BufferSource): Promise<object>;
}

/** The build takes code for the engine in as text. */
declare module "*.vm.js" {
  const text: string;
  export default text;
}
