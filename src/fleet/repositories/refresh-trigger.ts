// Requests a refresh of every repository before its interval ends, for clients that wait for a release. The loops in
// follow-repositories decide how soon one refresh may follow another.

export interface RefreshTrigger {
  /** Requests one more refresh of every repository. */
  request(): void;
  /** @returns a signal that aborts at the next call of `request` */
  nextRequest(): AbortSignal;
}

/** @returns a trigger without a pending request. A request reaches only signals that were taken before it. */
export function createRefreshTrigger(): RefreshTrigger {
  let next = new AbortController();
  return {
    request: () => {
      next.abort();
      next = new AbortController();
    },
    nextRequest: () => next.signal,
  };
}
