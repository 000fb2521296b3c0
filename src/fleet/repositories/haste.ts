// Who waits for a release asks for a reading before its turn; readers ask what was asked for since they began. Owns no time:
// how soon one reading may follow another is the readers'.

export interface Haste {
  /** Every repository is read again soon. */
  ask(): void;
  /** @returns ends with the first word of `ask` from now on */
  next(): AbortSignal;
}

export function createHaste(): Haste {
  let next = new AbortController();
  return {
    ask: () => {
      next.abort();
      next = new AbortController();
    },
    next: () => next.signal,
  };
}
