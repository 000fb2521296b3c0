// Reports leave out what is not known, and never say `undefined`: two reports are compared as texts and member by member.

type OptionalMayBeUndefined<T> = {
  readonly [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? T[K] | undefined : T[K];
};

/** @returns the same members in their order, without those that are undefined */
export function withoutUndefined<T extends object>(members: OptionalMayBeUndefined<T>): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
