export const PAGE_ASSET: RegExp;
export function pageAsset(path: string): Promise<string>;
