// Optional members of an object. An unknown member is absent and never `undefined`, because reports are compared as texts and member
// by member.

/** @returns the members that have a value, for optional members as `{ name, ...given({ note }) }` */
export function given<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const known = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

type OptionalMayBeUndefined<T> = {
  readonly [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? T[K] | undefined : T[K];
};

/** @returns the members in the same order, without those that are undefined */
export function withoutUndefined<T extends object>(members: OptionalMayBeUndefined<T>): T {
  return given(members) as T;
}
