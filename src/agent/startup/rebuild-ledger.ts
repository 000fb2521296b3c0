// A ledger that is damaged or lost, made again from what is on the disk: numbers above everything ever seen, serials
// from the kept records and from trust, times above every tree's. What nobody else wrote down is lost, and said.
import * as fs from 'node:fs';
import { basename } from 'node:path';
import { isActivation } from '../../core/cycle/sync-machine.js';
import { isWritError, orUndefined } from '../../core/errors.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withLastKnownGood } from '../activation/commit-ledger.js';
import { releasesNamedBy } from '../generations/generation-contents.js';
import {
  activeGenerationNumber,
  listGenerations,
  listTrees,
  withNumbers,
} from '../generations/generations.js';
import { listReleases, type ReleaseRecord, readRecord } from '../generations/release-records.js';
import { walkTree } from '../generations/walk-tree.js';
import { foreignInHistory, foreignText, readHistory } from '../job/history.js';
import { readStatusFile } from '../report/status-file.js';
import { withAccepted, withChannel } from '../select/accepted-releases.js';
import { withHolds } from '../select/holds-and-blocks.js';
import { withPauseOf } from '../select/pause.js';
import type { Host } from '../state/host.js';
import { readJournal, writeJournal } from '../state/journal.js';
import type { Hold, Ledger } from '../state/ledger.js';
import { type HostPaths, parseTreeName } from '../state/paths.js';
import { rebuildJournal } from '../state/recovery-rules.js';
import { setAside } from '../state/set-aside.js';
import { noteRebuilt, withNotice } from './notices.js';

/**
 * Repairs the state files that could not be read, before anything is decided by them. Idempotent: until it has ended the
 * files are as broken as they were.
 * @throws WritError STATE_DAMAGED for a `current` that Writ did not make; DISK_*
 */
export async function mendStateFiles(host: Host): Promise<void> {
  await mendLedger(host);
  mendHistory(host);
  const refusals = host.refusals.condition();
  if (!isWritError(refusals)) return;
  const text = `${refusals.message}; earlier refusals are lost, and their releases may be tried again`;
  noteRebuilt(host, { path: host.paths.rejected, text });
  host.refusals.replace({ writ: 1, refusals: [] });
}

/** The ledger is made again from it before, as far as it can be read. */
function mendHistory(host: Host): void {
  for (const path of foreignInHistory(host.paths)) {
    noteRebuilt(host, { path, text: foreignText(path) });
    setAside(host.durable, path);
  }
}

async function mendLedger(host: Host): Promise<void> {
  const found = host.ledger.condition();
  if (found === 'intact' || (found === 'absent' && isNewHost(host.paths))) return;
  const ledger = await rebuildLedger(host);
  // Which worker was notified of what is lost with the ledger. Before it, or a crash between the two would notify nobody.
  notifyEverybodyAgain(host);
  const why = isWritError(found) ? found.message : `${host.paths.ledger} is gone`;
  const text = `${why}; lost: held releases and a pause that the history does not contain, blocks, counted crashes, answers of workers`;
  host.ledger.replace(withNotice(ledger, { path: host.paths.ledger, text }));
}

/** Nothing that a ledger would have protected was ever made. */
export function isNewHost(paths: HostPaths): boolean {
  return greatestGeneration(paths) === 0 && listReleases(paths).length === 0;
}

/** Generations that were rolled back and collected may have left no trace; workers may still know their numbers. */
const margin = 1000;

async function rebuildLedger(host: Host): Promise<Ledger> {
  const { paths } = host;
  const records = keptRecords(host);
  const active = activeGenerationNumber(paths);
  const activeReleases = active === undefined ? [] : releasesNamedBy(paths, active);
  const good = lastKnownGood(host, active);
  const stagedSeconds = records.map((one) => Math.floor(one.stagedAtMs / 1000));
  const known = [...records.map((one) => one.release), ...knownToTrust(host)];
  const numbered = withNumbers(host.ledger.read(), {
    nextGeneration: greatestGeneration(paths) + 1 + margin,
    lastMtimeSeconds: Math.max(await latestMtimeSeconds(paths), ...stagedSeconds),
  });
  const history = readHistory(paths, { limit: Number.MAX_SAFE_INTEGER });
  const holds = rebuildHolds(history, {
    active: activeReleases,
    kept: records.map((one) => one.release),
  });
  const held = withHolds(withLastKnownGood(withPauseOf(numbered, history), good), holds);
  return known.reduce(withAccepted, activeReleases.reduce(withChannel, held));
}

function keptRecords({ paths }: Host): ReleaseRecord[] {
  return listReleases(paths).flatMap(({ bundle, name }) => orNothing(() => readRecord(paths, bundle, name)));
}

/** What the repository lists is no older than what was accepted from it. */
function knownToTrust({ config, client }: Host): ReleaseInfo[] {
  return config.bundles.flatMap(({ name, channel }) =>
    orNothing(() => client.knownTarget(name, channel)?.release),
  );
}

/** What can still be read counts; what cannot is one trace less. */
function orNothing<T>(read: () => T | undefined): T[] {
  const value = orUndefined(read);
  return value === undefined ? [] : [value];
}

function lastKnownGood(host: Host, active: number | undefined): number | undefined {
  const journal = orUndefined(() => readJournal(host.paths));
  return journal?.direction === 'forward' && journal.to === active ? journal.from : active;
}

/** As a journal that could not be read: one that tells of a swap is left as it is, and says more. */
function notifyEverybodyAgain(host: Host): void {
  const { paths, durable } = host;
  const active = activeGenerationNumber(paths);
  const journal = rebuildJournal(active, active);
  if (journal !== undefined && !fs.existsSync(paths.journal)) writeJournal(paths, durable, journal);
}

export interface KnownReleases {
  readonly active: readonly ReleaseInfo[];
  /** Those whose records are kept. */
  readonly kept: readonly ReleaseInfo[];
}

/** @param history newest first */
export function rebuildHolds(history: readonly HistoryEntry[], known: KnownReleases): Hold[] {
  const holds = new Map<string, Hold>();
  for (const entry of history.filter(isRollback)) {
    for (const { bundle, fromSerial } of entry.result.bundles) {
      const left = known.kept.find((one) => one.bundle === bundle && one.serial === fromSerial);
      if (left === undefined || !isStillLeft(left, known.active)) continue;
      // A hold keeps out what is at or below its serial: the highest one covers those below it.
      if (left.serial > (holds.get(bundle)?.serial ?? 0)) holds.set(bundle, holdOn(left, entry));
    }
  }
  return [...holds.values()];
}

function isRollback({ result }: HistoryEntry): boolean {
  return result.type === 'rollback.result' && isActivation(result.outcome) && Array.isArray(result.bundles);
}

/** A release above what is active: had it come back since, it or a newer one would be active. */
function isStillLeft(left: ReleaseInfo, active: readonly ReleaseInfo[]): boolean {
  return active.some((one) => one.bundle === left.bundle && one.serial < left.serial);
}

function holdOn({ bundle, serial, manifest }: ReleaseInfo, { by, reason, result }: HistoryEntry): Hold {
  return {
    bundle,
    serial,
    manifestDigest: manifest.digest,
    by: by ?? 'unknown',
    reason: reason ?? 'no reason given',
    atMs: result.startedAtMs,
  };
}

/** @returns the greatest generation number that anything on this host speaks of; 0 when nothing does */
export function greatestGeneration(paths: HostPaths): number {
  const numbers = [
    ...listGenerations(paths),
    ...treeNumbers(paths),
    ...linkNumbers(paths),
    ...historyNumbers(paths),
    ...statusNumbers(paths),
  ];
  return numbers.filter(isGeneration).reduce((most, one) => Math.max(most, one), 0);
}

/** A line that somebody spoilt must not take away the numbers that are left. */
const greatestUsed = 1e15;

function isGeneration(value: number | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) < greatestUsed;
}

type Found = (number | undefined)[];

function treeNumbers(paths: HostPaths): Found {
  return listTrees(paths).map(({ path }) => parseTreeName(basename(path))?.generation);
}

function linkNumbers(paths: HostPaths): Found {
  const journal = orUndefined(() => readJournal(paths));
  return [orUndefined(() => activeGenerationNumber(paths)), journal?.from, journal?.to];
}

function historyNumbers(paths: HostPaths): Found {
  return readHistory(paths, { limit: Number.MAX_SAFE_INTEGER }).flatMap(({ result }) => {
    const workers = Array.isArray(result.workers) ? result.workers : [];
    return [result.generation, result.fromGeneration, ...workers.map((one) => one.generation)];
  });
}

function statusNumbers(paths: HostPaths): Found {
  const status = readStatusFile(paths);
  return [status?.generation, ...(status?.workers ?? []).flatMap((one) => [one.wanted, one.confirmed])];
}

/** @returns the latest modification time of any file of any tree, in whole seconds; 0 without one */
export async function latestMtimeSeconds(paths: HostPaths): Promise<number> {
  let latest = 0n;
  for (const tree of listTrees(paths)) {
    for await (const { stats } of walkTree(tree.path)) {
      const seconds = stats.mtimeMs / 1000n;
      if (stats.isFile() && seconds > latest) latest = seconds;
    }
  }
  return Number(latest);
}
