// In which state a host is with the release that it has: the one rule behind every count, list, filter and sentence of a
// fleet. A report of the past proves nothing about now. Pure.
import type { HostLine, ReleaseCount, WaitFacts } from './answers.js';
import type { ActiveState, BakeState } from './report.js';

/**
 * `silent`: the host reported that it has the release, and is silent now. `stopped`: its agent ended in order. `cloned`: two
 * machines report with its key, and the other machine may have refused the release. What these run now is not known.
 */
export type DeliveryState = (typeof deliveryStates)[number];

export const deliveryStates = [
  'confirmed',
  'notified',
  'unconfirmed',
  'silent',
  'stopped',
  'cloned',
] as const;

/** The states of hosts that report by themselves now. */
export const provenStates: readonly DeliveryState[] = ['confirmed', 'notified', 'unconfirmed'];

/** @param presence as the server knows it now; @param state of the last report; @param cloned left out: false */
export function deliveryState({
  state,
  presence,
  cloned = false,
}: {
  readonly state: ActiveState;
  readonly presence: HostLine['presence'];
  readonly cloned?: boolean;
}): DeliveryState {
  if (presence === 'stopped') return presence;
  if (cloned) return 'cloned';
  return presence === 'silent' ? presence : state;
}

/** Hosts with the same last report of one release. */
export interface ReportedHosts {
  readonly state: ActiveState;
  readonly bake: BakeState | '';
  readonly presence: HostLine['presence'];
  readonly hosts: number;
}

type DeliveryCounts = Required<
  Pick<WaitFacts, 'confirmed' | 'notified' | 'unconfirmed' | 'silent' | 'settled'>
>;

/** A release without a bake time counts as settled. */
const settledStates: readonly (BakeState | '')[] = ['settled', 'unobserved', 'none'];

/** @returns the counts of a wait; stopped hosts are in none of them */
export function countDeliveries(groups: readonly ReportedHosts[]): DeliveryCounts {
  const inState = (...states: readonly DeliveryState[]): ReportedHosts[] =>
    groups.filter((one) => states.includes(deliveryState(one)));
  const done = inState('confirmed', 'notified');
  const baked = (list: readonly ReportedHosts[], ...bakes: readonly (BakeState | '')[]): number =>
    sumOf(list.filter(({ bake }) => bakes.includes(bake)));
  return {
    confirmed: sumOf(inState('confirmed')),
    notified: sumOf(inState('notified')),
    unconfirmed: sumOf(inState('unconfirmed')),
    silent: sumOf(inState('silent')),
    settled: {
      confirmed: baked(inState('confirmed'), ...settledStates),
      notified: baked(inState('notified'), ...settledStates),
      unobserved: baked(done, 'unobserved'),
      baking: baked(done, 'baking'),
      failed: baked(done, 'failed'),
      unknown: baked(done, ''),
    },
  };
}

function sumOf(groups: readonly ReportedHosts[]): number {
  return groups.reduce((sum, { hosts }) => sum + hosts, 0);
}

type ReleaseStates = Pick<
  ReleaseCount,
  'confirmed' | 'notified' | 'unconfirmed' | 'silent' | 'stopped' | 'cloned'
>;

/** @returns hosts that have a release, in whatever state; @param release of any server: older ones leave out three states */
export function hostsOfRelease({
  confirmed,
  notified,
  unconfirmed,
  silent = 0,
  stopped = 0,
  cloned = 0,
}: ReleaseStates): number {
  return confirmed + notified + unconfirmed + silent + stopped + cloned;
}
