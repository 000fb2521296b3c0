// What a fleet can be asked on the command line, whoever is asked. Types alone.
import type { FleetSummary, HostDetail, HostsPage, LogPage, WaitFacts } from '../../core/fleet/answers.js';
import type { HistoryPage } from '../../core/fleet/history-answers.js';
import type { NewToken, RetiredHosts, TokenLine } from '../../core/fleet/token-answers.js';

export interface WaitAsked {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly sinceMs?: number;
  readonly exceptSilentMs?: number;
}

export type HistoryOf =
  | { readonly bundle: string; readonly channel: string; readonly serial: number }
  | { readonly host: string };

/** Each throws what the one who was asked says. */
export interface FleetDoor {
  summary(): Promise<FleetSummary>;
  hosts(question: {
    readonly where: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<HostsPage>;
  host(name: string): Promise<HostDetail>;
  history(question: {
    readonly of: HistoryOf;
    readonly after?: string;
    readonly limit: number;
  }): Promise<HistoryPage>;
  wait(question: WaitAsked): Promise<WaitFacts>;
  log(question: { readonly before?: number; readonly limit: number }): Promise<LogPage>;
  tokens(): Promise<readonly TokenLine[]>;
  createToken(wanted: NewToken): Promise<{ readonly id: string; readonly token: string }>;
  revokeToken(id: string): Promise<void>;
  /** Retires a bounded number of the hosts that a token enrolled, those behind `afterKey`. */
  retireHostsOf(tokenId: string, afterKey: string): Promise<RetiredHosts>;
  changeHost(
    name: string,
    verb: 'approve' | 'retire',
  ): Promise<{ readonly key: string; readonly host: string }>;
  close(): Promise<void>;
}
