// The delivery state of a release on a host. Every count, list, filter and sentence about a fleet uses this one rule. A report of a
// silent host does not show what the host runs now. Pure.
import type { HostLine, ReleaseCount, WaitFacts } from './answers.js';
import type { ActiveState, BakeState } from './report.js';

/**
 * `silent`: the host reported the release, and is silent now. `stopped`: its agent announced its end. `cloned`: two machines report
 * with one key, and the other machine may have refused the release. In these three states the active release of the host is not
 * known.
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

/** The states of hosts that report now. */
export const provenStates: readonly DeliveryState[] = ['confirmed', 'notified', 'unconfirmed'];

/**
 * @param presence liveness of the host now, as the server knows it; `state` is of the last report, `cloned` whether two machines
 *   report with the key of the host
 * @returns the first that applies: `stopped` for that presence; `cloned`; `silent` for that presence; else `state` unchanged
 *   (`confirmed`, `notified` or `unconfirmed`). Every other presence leaves `state` as it is. Pure; throws nothing.
 */
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

/** Number of hosts with equal last reports about one release. */
export interface ReportedHosts {
  readonly state: ActiveState;
  readonly bake: BakeState | '';
  readonly presence: HostLine['presence'];
  readonly hosts: number;
}

type DeliveryCounts = Required<
  Pick<WaitFacts, 'confirmed' | 'notified' | 'unconfirmed' | 'silent' | 'settled'>
>;

/** A host without a bake time counts as settled. */
const settledStates: readonly (BakeState | '')[] = ['settled', 'unobserved', 'none'];

/** @returns the counts of a wait, without the stopped hosts */
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

/**
 * @param release from a server of any version: older servers leave out three states
 * @returns number of hosts that have the release, in any delivery state
 */
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
