// The releases that a worker group keeps waiting, as the ledger has them: which of them are not fetched yet, and when one
// is to be looked at again. Who waits, and until when, is pace-groups'.
import { WritError } from '../core/errors.js';
import type { ReleaseInfo } from '../core/release.js';
import type { WaitStatus } from '../core/status.js';
import type { Host } from './host.js';
import type { Ledger, WaitingRelease } from './ledger.js';

/** @returns why this release is not fetched yet: it was judged before, and its time has not come */
export function stillPaced(
  host: Pick<Host, 'ledger' | 'clock'>,
  release: ReleaseInfo,
): WritError | undefined {
  const wait = host.ledger.read().waiting?.[release.bundle];
  if (wait?.manifestDigest !== release.manifest.digest || wait.untilMs === undefined) return undefined;
  const isNow = wait.untilMs <= host.clock.nowMs() || wait.changedAtMs > host.clock.nowMs();
  return isNow ? undefined : pacedError(release.bundle, wait);
}

export function pacedError(bundle: string, { serial, groups, untilMs = 0 }: WaitingRelease): WritError {
  const until = new Date(untilMs).toISOString();
  const text = `${bundle} ${serial} waits until ${until}: ${groups.join(', ')} is not to be told before`;
  return new WritError('ACTIVATION_PACED', text, { facts: { bundle, serial, groups, untilMs } });
}

/** Notes that a wait is over, once for each. @returns true when a cycle is to look at what waited */
export function endWaitsThatAreOver({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): boolean {
  const { waiting = {}, ...rest } = ledger.read();
  const nowMs = clock.nowMs();
  const isOver = ({ untilMs }: WaitingRelease): boolean => untilMs !== undefined && untilMs <= nowMs;
  if (!Object.values(waiting).some(isOver)) return false;
  const next = Object.entries(waiting).map(([bundle, one]): [string, WaitingRelease] => {
    const { untilMs: _, ...over } = one;
    return [bundle, isOver(one) ? over : one];
  });
  ledger.write({ ...rest, waiting: Object.fromEntries(next) });
  return true;
}

/** @returns the releases that wait just now */
export function waitingNow({ waiting = {} }: Ledger, nowMs: number): WaitStatus[] {
  return Object.entries(waiting).flatMap(([bundle, { serial, groups, untilMs = 0 }]) =>
    untilMs > nowMs ? [{ bundle, serial, groups, untilMs }] : [],
  );
}
