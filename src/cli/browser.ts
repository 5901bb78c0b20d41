/** Opens addresses in the browser of the person at this machine. */
import { startChild } from "../core/child-process.ts";

type Opener = readonly [command: string, ...args: string[]];

const OPENERS: Partial<Record<NodeJS.Platform, Opener>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** The program that opens an address, which follows its arguments. */
export const openerOf = (platform: NodeJS.Platform): Opener => OPENERS[platform] ?? ["xdg-open"];

/** Opens an address in a browser. Without one, the person can use the printed address. */
export function openInBrowser(address: string): void {
  const [command, ...args] = openerOf(process.platform);
  const child = startChild(command, [...args, address], { stdio: "ignore", detached: true });
  child.once("error", () => undefined);
  child.unref();
}
