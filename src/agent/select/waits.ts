// The releases that wait, as the ledger has them: for the pace of a group (pace.ts has the times), or because a command after the
// swap gave no verdict or deferred them. This file has the times of these.
import { computeBackoffMs } from '../../core/backoff.js';
import { type ErrorCode, isImplicitRefusal } from '../../core/errors.js';
import type { NamedRelease, NewRelease } from '../../core/release/release.js';
import type { DelayedReleaseStatus } from '../../core/status/status.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection, type WaitingRelease } from '../state/ledger.js';

const changeWaiting = ledgerSection('waiting');

/** Each try moves the link to the release and back, which its readers see, and notifies all workers twice. */
const vainBackoff = { firstMs: 60_000, maxMs: 3_600_000 };
/** A slow command and one that never answers give the same result: a few tries distinguish them, more would only move the link. */
const maxSilentTries = 3;
/** A command that defers everything may be ready soon, so that it is tried more often. */
const maxRepeatedTries = 5;

/**
 * Adds a try of these releases without a verdict: they wait for a minute, doubling to an hour.
 * @param why.groups with the command: the releases of their bundles wait, or all new ones where the groups use none of them
 * @returns epoch milliseconds until which they wait; undefined where they are held after too many tries without a verdict
 */
export function noteFailedAttempt(
  { ledger, clock, config }: Pick<Host, 'ledger' | 'clock' | 'config'>,
  releases: readonly NamedRelease[],
  { code, groups }: { readonly code: ErrorCode; readonly groups: readonly string[] },
): number | undefined {
  const { waiting = {} } = ledger.read();
  const nowMs = clock.nowMs();
  const uses = config.workers.filter((one) => groups.includes(one.name)).flatMap((one) => one.uses);
  const used = releases.filter((one) => uses.includes(one.bundle));
  const held = used.length > 0 ? used : releases;
  const isSilence = isImplicitRefusal(code);
  const before = held.map(({ bundle, manifest }) => {
    const known = waiting[bundle];
    // Tries of another release, or with another code, show nothing about this one.
    const isOther = known?.manifestDigest !== manifest.digest || known.vain?.code !== code;
    return isSilence && isOther ? 0 : (known?.vain?.tries ?? 0);
  });
  const tries = 1 + Math.max(0, ...before);
  const maxTries = code === 'REFUSAL_REPEATED' ? maxRepeatedTries : maxSilentTries;
  const isHeld = isSilence && tries >= maxTries;
  const untilMs = isHeld ? undefined : nowMs + computeBackoffMs(tries, vainBackoff);
  const waits = held.map(({ bundle, serial, manifest }): [string, WaitingRelease] => {
    const known = waiting[bundle];
    const isSame = known?.manifestDigest === manifest.digest;
    // A time in the future is of a clock that was set back since.
    const sinceMs = Math.min(known?.sinceMs ?? nowMs, nowMs);
    const changedAtMs = isSame ? Math.min(known.changedAtMs, nowMs) : nowMs;
    const times = { sinceMs, changedAtMs, ...(untilMs === undefined ? {} : { untilMs }) };
    const vain = { tries, code, ...(isHeld ? { isHeld } : {}) };
    return [bundle, { serial, manifestDigest: manifest.digest, groups, ...times, vain }];
  });
  ledger.write(withWaiting(ledger.read(), [...Object.entries(waiting), ...waits]));
  return untilMs;
}

/** @param waiting by bundle; @returns the ledger in which these releases wait, and no other */
export function withWaiting(ledger: Ledger, waiting: readonly (readonly [string, WaitingRelease])[]): Ledger {
  return changeWaiting(ledger, { waiting: waiting.length === 0 ? undefined : Object.fromEntries(waiting) });
}

/** @returns the ledger without the waits of these releases, which have become active */
export function withoutWaits(ledger: Ledger, releases: readonly NewRelease[]): Ledger {
  const waiting = Object.entries(ledger.waiting ?? {});
  const left = waiting.filter(([name]) => !releases.some(({ bundle }) => bundle === name));
  return withWaiting(ledger, left);
}

/** Ends the waits that are over, each once. @returns true where there was one, so that a cycle is needed */
export function endWaitsThatAreOver({ ledger, clock }: Pick<Host, 'ledger' | 'clock'>): boolean {
  const nowMs = clock.nowMs();
  return endWaits(ledger, ({ untilMs }) => untilMs !== undefined && untilMs <= nowMs);
}

/** Ends the waits after tries without a verdict, because another configuration may have other commands. */
export function endFailedWaits({ ledger }: Pick<Host, 'ledger'>): void {
  endWaits(
    ledger,
    ({ untilMs, vain }) => vain !== undefined && (untilMs !== undefined || vain.isHeld === true),
  );
}

/** @returns the releases that are held because tries without an answer count as a refusal, as `dns-edge 42` */
export function heldBySilence({ waiting = {} }: Pick<Ledger, 'waiting'>): string[] {
  const held = Object.entries(waiting).filter(([, { vain }]) => vain?.isHeld === true);
  return held.map(([bundle, { serial }]) => `${bundle} ${serial}`);
}

/** @returns the ledger without the holds because of tries without an answer */
export function withoutSilence(ledger: Ledger): Ledger {
  const left = Object.entries(ledger.waiting ?? {}).filter(([, { vain }]) => vain?.isHeld !== true);
  return withWaiting(ledger, left);
}

function endWaits(ledger: Host['ledger'], isOver: (wait: WaitingRelease) => boolean): boolean {
  const { waiting = {} } = ledger.read();
  if (!Object.values(waiting).some(isOver)) return false;
  const next = Object.entries(waiting).map(([bundle, one]): [string, WaitingRelease] => {
    if (!isOver(one)) return [bundle, one];
    const { untilMs: _, vain, ...over } = one;
    if (vain === undefined) return [bundle, over];
    const { isHeld: _held, ...tried } = vain;
    return [bundle, { ...over, vain: tried }];
  });
  ledger.write(withWaiting(ledger.read(), next));
  return true;
}

/** @returns the releases that wait at this time */
export function waitingNow({ waiting = {} }: Ledger, nowMs: number): DelayedReleaseStatus[] {
  return Object.entries(waiting).flatMap(([bundle, { serial, groups, untilMs = 0 }]) =>
    untilMs > nowMs ? [{ bundle, serial, groups, untilMs }] : [],
  );
}
