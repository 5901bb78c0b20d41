import type { DirectoryHandle } from "./directory-handles.ts";

/**
 * Opens files below a directory, one after another. The directories on the way to the last one stay open,
 * so that files in path order cost one opening each. No link is followed. `root` itself stays open.
 */
export class DirectoryTrail {
  readonly #root: DirectoryHandle;
  readonly #open: { name: string; directory: DirectoryHandle }[] = [];

  constructor(root: DirectoryHandle) {
    this.#root = root;
  }

  /** A file descriptor, which the caller closes. Throws Node's file system errors. */
  openFile(path: string, flags: number): number {
    const names = path.split("/");
    const file = names.pop() ?? "";
    const shared = this.#open.findIndex(({ name }, index) => name !== names[index]);
    this.#closeFrom(shared === -1 ? Math.min(this.#open.length, names.length) : shared);
    let directory = this.#open.at(-1)?.directory ?? this.#root;
    for (const name of names.slice(this.#open.length)) {
      directory = directory.openDirectory(name);
      this.#open.push({ name, directory });
    }
    return directory.openFile(file, flags);
  }

  close(): void {
    this.#closeFrom(0);
  }

  #closeFrom(index: number): void {
    for (const { directory } of this.#open.splice(index)) directory.close();
  }
}
