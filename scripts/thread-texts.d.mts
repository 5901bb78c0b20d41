export const THREAD_TEXT: RegExp;
export function threadText(id: string): Promise<string>;
