// What a fleet server answers about the past: which host ran or refused which release, from when to when. Members are a promise
// (additive within schema 1).

/** A time in which a host ran a release, or refused it; by the clock of the server. */
export interface ReleaseInterval {
  readonly key: string;
  /** Present name of the host, '' where its row is gone. */
  readonly host: string;
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** Left out where no report named it: of refusals, and of releases that were active between two reports. */
  readonly manifest?: string;
  readonly kind: 'active' | 'refused';
  /** The best that was proven while it was active, or how it was refused; left out where that is not known. */
  readonly state?: string;
  /** Of a refusal. */
  readonly code?: string;
  readonly sinceMs: number;
  /** Left out while it goes on. */
  readonly untilMs?: number;
  /** How many intervals of its day it stands for; left out for one. */
  readonly merged?: number;
}

export interface HistoryPage {
  readonly schema: 1;
  readonly type: 'fleet.history';
  /** The newest first. */
  readonly intervals: readonly ReleaseInterval[];
  /** Ask with it for the next page; left out on the last one. */
  readonly next?: string;
}

/** Hosts that had to do with a release at any time that is kept. */
export interface PastHosts {
  readonly ran: number;
  /** Of these, with a proof. */
  readonly confirmed: number;
  /** By state and code, the most hosts first, at most 20. */
  readonly refusals: readonly { readonly state: string; readonly code: string; readonly hosts: number }[];
}
