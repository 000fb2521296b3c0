// Optional members of an object: what is not known is left out, and never there as undefined.

/** @returns the members that have a value; for those that may be absent, as `{ name, ...given({ note }) }` */
export function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const known = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
