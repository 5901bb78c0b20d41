/** Takes the place of `src/proposals/branch.ts`: the folder of a world is no repository, and starts no programs. */

export const isRepository = async (): Promise<boolean> => false;

export const makeBranch = async (): Promise<never> => {
  throw new Error("The folder is no repository.");
};
