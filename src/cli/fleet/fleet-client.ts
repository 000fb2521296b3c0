// The queries and changes that commands send to a fleet, through HTTP or directly to its store. Types alone.
import type { FleetSummary, HostDetail, HostsPage, LogPage, WaitFacts } from '../../core/fleet/answers.js';
import type { HistoryPage } from '../../core/fleet/history-answers.js';
import type { NewToken, RetiredHosts, TokenLine } from '../../core/fleet/token-answers.js';

export interface WaitQuery {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly sinceMs?: number;
  readonly exceptSilentMs?: number;
}

export type HistorySelector =
  | { readonly bundle: string; readonly channel: string; readonly serial: number }
  | { readonly host: string };

/** Each method throws the error of the server or of the store. */
export interface FleetClient {
  summary(): Promise<FleetSummary>;
  hosts(query: {
    readonly where: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<HostsPage>;
  host(name: string): Promise<HostDetail>;
  history(query: {
    readonly of: HistorySelector;
    readonly after?: string;
    readonly limit: number;
  }): Promise<HistoryPage>;
  wait(query: WaitQuery): Promise<WaitFacts>;
  log(query: { readonly before?: number; readonly limit: number }): Promise<LogPage>;
  tokens(): Promise<readonly TokenLine[]>;
  createToken(token: NewToken): Promise<{ readonly id: string; readonly token: string }>;
  revokeToken(id: string): Promise<void>;
  /** Retires a bounded number of the hosts that a token enrolled, in the order of their keys after `afterKey`. */
  retireHostsOf(tokenId: string, afterKey: string): Promise<RetiredHosts>;
  changeHost(
    name: string,
    verb: 'approve' | 'retire',
  ): Promise<{ readonly key: string; readonly host: string }>;
  close(): Promise<void>;
}
