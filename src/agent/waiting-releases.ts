// The releases that a worker group keeps waiting, as the ledger has them: which of them are not fetched yet, and when one
// is to be looked at again. Who waits for the pace of a group, and until when, is pace-groups'; for how long a loader is
// left alone that said "not now" is said here.
import { WritError } from '../core/errors.js';
import type { ReleaseInfo } from '../core/release.js';
import type { WaitStatus } from '../core/status.js';
import type { Host } from './host.js';
import type { Ledger, WaitingRelease } from './ledger.js';
import type { NewRelease } from './remember-refusals.js';

/** @returns why this release is not fetched yet: it was judged or tried before, and its time has not come */
export function stillWaiting(
  host: Pick<Host, 'ledger' | 'clock'>,
  release: ReleaseInfo,
): WritError | undefined {
  const wait = host.ledger.read().waiting?.[release.bundle];
  if (wait?.manifestDigest !== release.manifest.digest || wait.untilMs === undefined) return undefined;
  const isNow = wait.untilMs <= host.clock.nowMs() || wait.changedAtMs > host.clock.nowMs();
  if (isNow) return undefined;
  return wait.deferrals === undefined
    ? pacedError(release.bundle, wait)
    : deferredError(release.bundle, wait);
}

export function pacedError(bundle: string, { serial, groups, untilMs = 0 }: WaitingRelease): WritError {
  const until = new Date(untilMs).toISOString();
  const text = `${bundle} ${serial} waits until ${until}: ${groups.join(', ')} is not to be told before`;
  return new WritError('ACTIVATION_PACED', text, { facts: { bundle, serial, groups, untilMs } });
}

function deferredError(bundle: string, { serial, groups, untilMs = 0 }: WaitingRelease): WritError {
  const until = new Date(untilMs).toISOString();
  const text = `${bundle} ${serial} waits until ${until}: the loader of ${groups.join(', ')} said "not now"`;
  return new WritError('LOADER_DEFERRED', text, { facts: { bundle, serial, groups, untilMs } });
}

/** Each try moves the link there and back under everybody who reads it. */
const firstDeferralMs = 60_000;
const maxDeferralMs = 3_600_000;

/**
 * Notes that a loader said "not now" to these releases: they are left alone for a minute, doubling to an hour.
 * @param groups whose loader it was: those of their bundles wait, or all that are new where it uses none of them
 * @returns epoch milliseconds until which they wait
 */
export function noteDeferral(
  { ledger, clock, config }: Pick<Host, 'ledger' | 'clock' | 'config'>,
  releases: readonly NewRelease[],
  groups: readonly string[],
): number {
  const { waiting = {}, ...rest } = ledger.read();
  const nowMs = clock.nowMs();
  const uses = config.workers.filter((one) => groups.includes(one.name)).flatMap((one) => one.uses);
  const used = releases.filter((one) => uses.includes(one.bundle));
  const held = used.length > 0 ? used : releases;
  const deferrals = 1 + Math.max(0, ...held.map(({ bundle }) => waiting[bundle]?.deferrals ?? 0));
  const untilMs = nowMs + Math.min(firstDeferralMs * 2 ** Math.min(deferrals - 1, 10), maxDeferralMs);
  const waits = held.map(({ bundle, serial, manifest }): [string, WaitingRelease] => {
    const known = waiting[bundle];
    const isSame = known?.manifestDigest === manifest.digest;
    // A time of the future was noted by a clock that was set back since.
    const sinceMs = Math.min(known?.sinceMs ?? nowMs, nowMs);
    const changedAtMs = isSame ? Math.min(known.changedAtMs, nowMs) : nowMs;
    const times = { sinceMs, changedAtMs, untilMs };
    return [bundle, { serial, manifestDigest: manifest.digest, groups, ...times, deferrals }];
  });
  ledger.write({ ...rest, waiting: { ...waiting, ...Object.fromEntries(waits) } });
  return untilMs;
}

/** @returns the ledger in which these releases, which have become active, wait for nothing */
export function withoutWaits(ledger: Ledger, releases: readonly NewRelease[]): Ledger {
  const { waiting = {}, ...rest } = ledger;
  const left = Object.entries(waiting).filter(([name]) => !releases.some(({ bundle }) => bundle === name));
  return left.length === 0 ? rest : { ...rest, waiting: Object.fromEntries(left) };
}

/** Notes that a wait is over, once for each. @returns true when a cycle is to look at what waited */
export function endWaitsThatAreOver({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): boolean {
  const nowMs = clock.nowMs();
  return endWaits(ledger, ({ untilMs }) => untilMs !== undefined && untilMs <= nowMs);
}

/** Loaders that said "not now" are asked again at once: another configuration may have another one. */
export function endDeferrals({ ledger }: Pick<Host, 'ledger'>): void {
  endWaits(ledger, ({ untilMs, deferrals }) => untilMs !== undefined && deferrals !== undefined);
}

function endWaits(ledger: Host['ledger'], isOver: (wait: WaitingRelease) => boolean): boolean {
  const { waiting = {}, ...rest } = ledger.read();
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
