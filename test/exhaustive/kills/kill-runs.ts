// Kills a real process at one call, or fails that call, starts the real program again, and checks the host's invariant: right
// after it, after the restart, and after a cycle without faults. Owns the verdict on one strike.
import assert from 'node:assert/strict';
import { openHost } from '../../../src/agent/startup/open-host.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { holdInvariant, requireSwept, wholePolicy } from '../../kit/assert/host-invariant.js';
import type { Place, Scene } from './kill-scenes.js';
import { type KillSite, sitesOf, unwatchedCalls } from './kill-sites.js';
import { type CycleRun, runCycle } from './traced-writ.js';

/** The calls of one successful cycle. */
export interface Enumerated {
  /** Calls at which a kill can make a difference. */
  readonly sites: readonly KillSite[];
  /** Calls at which an error can make a difference, with files that are opened to be read. */
  readonly fallible: readonly KillSite[];
}

export interface Strike {
  readonly scene: Scene;
  readonly site: KillSite;
  /** All sites of the same run. */
  readonly among: readonly KillSite[];
  /** True when the site is one of `fallible`. */
  readonly reads: boolean;
  /** `kill`, or the error that the call returns, such as `EIO`. */
  readonly with: string;
  /** Policies that may be active right after the strike. */
  readonly allowed: readonly string[];
}

export interface Verdict {
  readonly strike: Strike;
  /**
   * `held`: the strike hit its call, and the invariant held. `elsewhere`: it hit another call of the same name, and the
   * invariant held. `not-reached`: the run had no such call, so nothing was tried.
   */
  readonly kind: 'held' | 'elsewhere' | 'not-reached' | 'violated';
  readonly message?: string;
}

/**
 * Runs the cycle twice without a strike: once to count calls as strace does, once to verify that no other process
 * changes a file.
 */
export async function enumerate(scene: Scene): Promise<Enumerated> {
  const filter = ['-e', `trace=!${unwatchedCalls.join(',')}`];
  const sitesIn = async (options: readonly string[], also?: 'reading'): Promise<KillSite[][]> => {
    using place = await scene.place();
    const run = await runCycle(place, commandOf(scene), [...options, ...filter]);
    const what = `${run.exitCode} ${run.outcome} ${run.output}`;
    assert.equal(run.exitCode, 0, what);
    assert.equal(wholePolicy(place.paths, scene.expectation.policies), scene.expectation.to, what);
    const { root } = place;
    return [sitesOf(run.trace, { root }), sitesOf(run.trace, { root, ...(also ? { also } : {}) })];
  };
  const runs = [sitesIn([], 'reading'), sitesIn(['-f'])] as const;
  const [[main = [], fallible = []], [everybody = []]] = await Promise.all(runs);
  return { sites: withChildren(main, everybody), fallible };
}

/** Only `sync` may act for the main thread, because strace counts for each thread and would strike another call. */
function withChildren(main: readonly KillSite[], everybody: readonly KillSite[]): KillSite[] {
  const others = everybody.filter(({ thread }) => thread === 'child');
  for (const { call, what } of others)
    assert.equal(call, 'syncfs', `another thread or process changes a file: ${what}`);
  const together = everybody.map((site) => (site.thread === 'child' ? site : nextOf(main, site)));
  assert.equal(together.length, main.length + others.length, 'the same calls in both runs');
  return together.map((site, index) => ({ ...site, index }));
}

function nextOf(main: readonly KillSite[], { what, ordinal }: KillSite): KillSite {
  const found = main.find((one) => one.what === what && one.ordinal === ordinal);
  assert.ok(found, `the second run makes a call that the first has not made: ${what}`);
  return found;
}

/**
 * The old policy before the rename of `current` and at it, because the killed call does not happen; the new one after
 * it.
 */
export function killsOf(scene: Scene, { sites }: Enumerated): Strike[] {
  const { from, to } = scene.expectation;
  const swap = sites.findLastIndex(({ what }) => /^rename .*policy\/current$/.test(what));
  assert.ok(swap > 0, 'the cycle has a swap');
  return sites.map((site, index) => {
    const allowed = [index <= swap ? from : to];
    return { scene, site, among: sites, reads: false, with: 'kill', allowed };
  });
}

const errorOfCall: Readonly<Record<string, readonly string[]>> = {
  ...{ fsync: ['EIO'], fdatasync: ['EIO'], syncfs: ['EIO'], ftruncate: ['EIO'] },
  ...{ write: ['ENOSPC'], pwrite64: ['ENOSPC'], openat: ['EMFILE'], rename: ['EROFS'], link: ['ENOSPC'] },
  ...{ symlink: ['ENOSPC'], mkdir: ['ENOSPC'], unlink: ['EROFS'], rmdir: ['EROFS'] },
  ...{ chmod: ['EROFS'], fchmod: ['EROFS'], utimensat: ['EROFS'], bind: ['EROFS'] },
};

export function errorsOf(scene: Scene, { sites, fallible }: Enumerated): Strike[] {
  const { from, to } = scene.expectation;
  const all = [...fallible, ...sites.filter(({ thread }) => thread === 'child')];
  return all.flatMap((site) =>
    (errorOfCall[site.call] ?? []).map((error) => ({
      scene,
      site,
      among: all,
      reads: true,
      with: error,
      allowed: [from, to],
    })),
  );
}

function commandOf({ case: { by, cycle } }: Scene): Parameters<typeof runCycle>[1] {
  return { by, argv: cycle.argv };
}

/**
 * The number of tries. Runs of a cycle differ in a few calls, such as those that wake threads, and the count of a
 * common call shifts. A strike that hit another call is repeated with the count of the last run.
 */
const maxTries = 12;

export async function tryStrike(strike: Strike): Promise<Verdict> {
  let shift = 0;
  for (let tries = 1; ; tries++) {
    const end = await strikeOnce(strike, shift, tries === maxTries ? 'last' : 'more');
    if ('kind' in end) return end;
    shift = end.shift;
  }
}

/** @returns the verdict; or the shift of the next try, if the strike hit another call and this was not the last try */
async function strikeOnce(
  strike: Strike,
  shift: number,
  tries: 'more' | 'last',
): Promise<Verdict | { readonly shift: number }> {
  using place = await strike.scene.place();
  try {
    const nth = Math.max(1, strike.site.nth + shift);
    const run = await runCycle(place, commandOf(strike.scene), injecting(strike, nth));
    const hit = hitOf(strike, nth, { run, place });
    if (hit !== 'held' && tries === 'more') return { shift: nextShift(strike, shift, { run, place }) };
    if (hit === 'not-reached') return { strike, kind: hit };
    await judge(strike, { run, place, hit });
    return { strike, kind: hit };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { strike, kind: 'violated', message: message.replaceAll(place.root, '') };
  }
}

/** The error in the count of the last known call; a run that died before any known call must run longer. */
function nextShift(strike: Strike, shift: number, { run, place }: Pick<Struck, 'run' | 'place'>): number {
  const seen = sitesSeen(strike, run, place).at(-1);
  const planned = strike.among.find((one) => one.what === seen?.what && one.ordinal === seen.ordinal);
  return seen === undefined || planned === undefined ? shift + 1 : seen.nth - planned.nth;
}

function injecting({ site, with: what }: Strike, nth: number): string[] {
  const how = what === 'kill' ? 'signal=KILL' : `error=${what}`;
  const follow = site.thread === 'child' ? ['-f'] : [];
  return [...follow, '-e', `trace=${site.call}`, '-e', `inject=${site.call}:${how}:when=${nth}`];
}

function hitOf(strike: Strike, nth: number, { run, place }: Pick<Struck, 'run' | 'place'>): Verdict['kind'] {
  const { site, with: what } = strike;
  const mark = what === 'kill' ? '+++ killed by SIGKILL +++' : '(INJECTED)';
  if (!run.trace.includes(mark)) return 'not-reached';
  if (site.thread === 'child') return 'held';
  const struck = sitesSeen(strike, run, place).find((one) => one.nth === nth);
  return struck?.what === site.what && struck.ordinal === site.ordinal ? 'held' : 'elsewhere';
}

/** The sites in a trace of this call alone; counts opened files again when they were counted before. */
function sitesSeen({ reads }: Strike, { trace }: CycleRun, { root }: Place): KillSite[] {
  return sitesOf(trace, { root, ...(reads ? { also: 'reading' } : {}) });
}

interface Struck {
  readonly run: CycleRun;
  readonly place: Place;
  readonly hit: Verdict['kind'];
}

async function judge(strike: Strike, { run, place, hit }: Struck): Promise<void> {
  const { policies, ends, succeeds = ['activated', 'unchanged'], to } = strike.scene.expectation;
  const active = wholePolicy(place.paths, policies);
  const notified = run.outcome !== undefined && succeedsAt(run.outcome);
  const allowed = notified ? [to] : hit === 'elsewhere' ? anyOf(strike) : strike.allowed;
  assert.ok(allowed.includes(active), `right after it '${active}' is active, not ${allowed.join(' or ')}`);
  const expected = ends(active);
  const restart = await runCycle(place, { by: strike.scene.case.by, argv: ['pull'] });
  const what = `restart: ${restart.exitCode} ${restart.outcome} ${restart.output.slice(0, 2000)}`;
  assert.ok(succeeds.includes(restart.outcome ?? ''), what);
  assert.equal(wholePolicy(place.paths, policies), expected, `after the restart; ${what}`);
  requireSwept(place.paths);
  const options = { clock: systemClock, log: silentLog(), version: 'test' };
  const open = () => openHost(place.config, options);
  await holdInvariant(place.paths, { policies, allowed: [expected], ends: expected, open, succeeds });
}

/** Where the result was reported to the caller: from here on it must not be lost. */
function succeedsAt(outcome: string): boolean {
  return outcome === 'activated' || outcome === 'degraded' || outcome === 'unchanged';
}

function anyOf({ scene: { expectation } }: Strike): readonly string[] {
  return [expectation.from, expectation.to];
}
