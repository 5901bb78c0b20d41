import type { Plugin } from "esbuild";

export const THREAD_TEXT: RegExp;
export function threadText(id: string): Promise<string>;
/** Takes the code of threads in as text, where esbuild makes a bundle. */
export declare const threadTexts: Plugin;
