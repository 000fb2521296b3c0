// The responses of the fleet server about the past, as types: when each host ran or refused each release. Members are only added
// within schema 1.

/** The time from when to when a host ran or refused a release, by the clock of the server. */
export interface ReleaseInterval {
  readonly key: string;
  /** The current name of the host; '' if the host was deleted. */
  readonly host: string;
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** Undefined if no report named it: for refusals, and for releases that were active only between two reports. */
  readonly manifest?: string;
  readonly kind: 'active' | 'refused';
  /** The best confirmation while the release was active, or the kind of the refusal. Undefined if not known. */
  readonly state?: string;
  /** Error code of a refusal. */
  readonly code?: string;
  readonly sinceMs: number;
  /** Undefined while the interval has not ended. */
  readonly untilMs?: number;
  /** How many intervals of one day were merged into this one; undefined for one. */
  readonly merged?: number;
}

export interface HistoryPage {
  readonly schema: 1;
  readonly type: 'fleet.history';
  /** The newest first. */
  readonly intervals: readonly ReleaseInterval[];
  /** Cursor of the next page; undefined on the last page. */
  readonly next?: string;
}

/** Numbers of hosts that ran or refused a release at any time within the retention of the history. */
export interface PastHosts {
  readonly ran: number;
  /** Hosts of `ran` that confirmed it. */
  readonly confirmed: number;
  /** By state and code, the most hosts first, at most 20. */
  readonly refusals: readonly { readonly state: string; readonly code: string; readonly hosts: number }[];
}
