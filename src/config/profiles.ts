const ASK_ALL = { "approvals.write": "all", "approvals.execute": "all" } as const;

/** Settings that a profile has other defaults for, by their path. */
export const PROFILE_DEFAULTS = {
  deepcowork: {
    ...ASK_ALL,
    "execute.timeout": 60,
    "execute.maxOutputBytes": 50_000,
    "limits.modelCalls": 25,
  },
  production: { ...ASK_ALL, "files.maxFileSizeMb": 5 },
} as const satisfies Record<string, Readonly<Record<string, string | number>>>;

export const PROFILE_NAMES = ["deepcowork", "production"] as const satisfies ReadonlyArray<
  keyof typeof PROFILE_DEFAULTS
>;

/** The settings of the profile `name`; none for anything else. */
export const profileDefaults = (name: unknown): Array<[path: string, value: string | number]> => {
  const known = PROFILE_NAMES.find((profile) => profile === name);
  return known === undefined ? [] : Object.entries(PROFILE_DEFAULTS[known]);
};
