// The releases that this host misses, in its ledger: recorded during a long download, and at the end of each cycle with a verified
// refresh; judged at each request. A pause and a hold count from their start. Fetches nothing.
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError } from '../../core/errors.js';
import {
  judgeMissedRelease,
  type MissedRelease,
  type MissedStatus,
} from '../../core/status/missed-release.js';
import type { CycleRecord } from '../job/cycle-result.js';
import { pauseNow } from '../select/why-not-now-rules.js';
import type { Host } from '../state/host.js';
import { ledgerSection } from '../state/ledger.js';
import type { FreshnessView } from './contact-memory.js';
import { missedAfter } from './missed-release-rules.js';

const changeMissed = ledgerSection('missed');

type Missed = Readonly<Record<string, MissedRelease>>;

/** Records at the end of a cycle since when each bundle misses its release. Errors of the disk are logged. */
export function noteMissedReleases(host: Host, { bundles, refresh, error }: CycleRecord): void {
  // Unverified metadata offers nothing; the last verified metadata still does.
  if (refresh === undefined || refresh.error !== undefined || bundles.size === 0) return;
  const facts = { atMs: refresh.atMs, error: error && problemOf(error) };
  const { missed: before = {} } = host.ledger.read();
  const missed: Record<string, MissedRelease> = {};
  for (const { name } of host.config.bundles) {
    const result = bundles.get(name);
    const one = result === undefined ? before[name] : missedAfter(before[name], result, facts);
    if (one === undefined) continue;
    missed[name] = one;
    if (result !== undefined) bundles.set(name, { ...result, missedSinceMs: one.sinceMs });
  }
  writeMissed(host, missed);
}

/** Records releases during their download, because a server can make a download as slow as its deadline permits. */
export function noteDownloading(host: Host, results: readonly BundleResult[], atMs: number): void {
  const { missed: before = {} } = host.ledger.read();
  const begun = results.flatMap(({ bundle, toSerial, fromSerial }): [string, MissedRelease][] => {
    if (toSerial === undefined || toSerial === fromSerial) return [];
    return [[bundle, { ...(before[bundle] ?? { sinceMs: atMs }), serial: toSerial }]];
  });
  writeMissed(host, { ...before, ...Object.fromEntries(begun) });
}

function writeMissed(host: Host, missed: Missed): void {
  // Without the lock the files may belong to another process.
  if (host.lock?.isInPlace() === false) return;
  const ledger = host.ledger.read();
  const next = Object.keys(missed).length === 0 ? undefined : missed;
  if (JSON.stringify(next) === JSON.stringify(ledger.missed)) return;
  try {
    host.ledger.write(changeMissed(ledger, { missed: next }));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error }, 'the releases that this host misses could not be recorded');
  }
}

/** @returns by bundle what this host misses now; nothing of what is paused or held. @throws what reading the trust store throws */
export function missedNow({
  config,
  ledger,
  clock,
  client,
}: FreshnessView): ReadonlyMap<string, MissedStatus> {
  const known = ledger.read();
  const { missed = {}, holds, stale } = known;
  const nowMs = Math.max(clock.nowMs(), client.status()?.clockFloorMs ?? 0);
  if (pauseNow(known, clock.nowMs()) !== undefined) return new Map();
  const overdueNotedMs = stale?.phase === 'stale' && stale.of === 'release' ? stale.sinceMs : undefined;
  const facts = { ...config.freshness.release, nowMs, overdueNotedMs };
  const counting = config.bundles.flatMap(({ name }): [string, MissedStatus][] => {
    const one = missed[name];
    const isHeld = holds.some(({ bundle, serial }) => bundle === name && serial >= (one?.serial ?? Infinity));
    return one === undefined || isHeld ? [] : [[name, judgeMissedRelease(one, facts)]];
  });
  return new Map(counting);
}
