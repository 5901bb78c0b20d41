/** The fields that have a value, for objects in which an absent field means something else than `undefined`. */
export const defined = <Fields extends object>(fields: Fields): Partial<Fields> =>
  // The fields that are left are of the same object.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<Fields>;
