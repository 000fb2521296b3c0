// Rebuilds a damaged or lost ledger from the other files of the host. Generation numbers continue above each number that
// any file contains, serials come from retained records and trusted metadata, and modification times continue above those
// of all trees. A notice names the data that no other file contains.
import * as fs from 'node:fs';
import { basename } from 'node:path';
import { isActivation } from '../../core/cycle/sync-machine.js';
import { isWritError, orUndefined } from '../../core/errors.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withLastKnownGood } from '../activation/commit-ledger.js';
import { readNamedReleases } from '../generations/generation-contents.js';
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
import { recordRebuiltFile, withNotice } from './notices.js';

/**
 * Rebuilds the ledger, the history and the refusals when they cannot be read, before any decision uses them. Idempotent:
 * a file stays damaged until its replacement is complete, so the next start repeats an interrupted repair.
 * @throws WritError STATE_DAMAGED for a `current` that Writ did not make; DISK_*
 */
export async function repairStateFiles(host: Host): Promise<void> {
  await repairLedger(host);
  repairHistory(host);
  const refusals = host.refusals.condition();
  if (!isWritError(refusals)) return;
  const text = `${refusals.message}; earlier refusals are lost, and their releases may be tried again`;
  recordRebuiltFile(host, { path: host.paths.rejected, text });
  host.refusals.replace({ writ: 1, refusals: [] });
}

/** Sets aside a history that is no regular file. Runs after the ledger, which is rebuilt from the readable history. */
function repairHistory(host: Host): void {
  for (const path of foreignInHistory(host.paths)) {
    recordRebuiltFile(host, { path, text: foreignText(path) });
    setAside(host.durable, path);
  }
}

async function repairLedger(host: Host): Promise<void> {
  const found = host.ledger.condition();
  if (found === 'intact' || (found === 'absent' && isNewHost(host.paths))) return;
  const ledger = await rebuildLedger(host);
  // The ledger recorded which workers were notified, so all are notified again. The journal is written first: a crash
  // between the two writes would otherwise leave an intact ledger and unnotified workers.
  writeNotificationJournal(host);
  const why = isWritError(found) ? found.message : `${host.paths.ledger} is gone`;
  const text = `${why}; lost: held releases and a pause that the history does not contain, blocks, counted crashes, answers of workers`;
  host.ledger.replace(withNotice(ledger, { path: host.paths.ledger, text }));
}

/** A host without generations and releases: a missing ledger is no loss there. */
export function isNewHost(paths: HostPaths): boolean {
  return greatestGeneration(paths) === 0 && listReleases(paths).length === 0;
}

/** Numbers skipped after the greatest known one: a worker may remember the number of a collected generation. */
const generationMargin = 1000;

async function rebuildLedger(host: Host): Promise<Ledger> {
  const { paths } = host;
  const records = readRetainedRecords(host);
  const active = activeGenerationNumber(paths);
  const activeReleases = active === undefined ? [] : readNamedReleases(paths, active);
  const good = lastKnownGood(host, active);
  const stagedSeconds = records.map((one) => Math.floor(one.stagedAtMs / 1000));
  const known = [...records.map((one) => one.release), ...listTrustedReleases(host)];
  const numbered = withNumbers(host.ledger.read(), {
    nextGeneration: greatestGeneration(paths) + 1 + generationMargin,
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

function readRetainedRecords({ paths }: Host): ReleaseRecord[] {
  return listReleases(paths).flatMap(({ bundle, name }) => asList(() => readRecord(paths, bundle, name)));
}

/** Releases in the trusted metadata: a host accepts no release that its repository has not listed, so none is older. */
function listTrustedReleases({ config, client }: Host): ReleaseInfo[] {
  return config.bundles.flatMap(({ name, channel }) =>
    asList(() => client.knownTarget(name, channel)?.release),
  );
}

/** A list with the value; an empty list where it is undefined or cannot be read. */
function asList<T>(read: () => T | undefined): T[] {
  const value = orUndefined(read);
  return value === undefined ? [] : [value];
}

function lastKnownGood(host: Host, active: number | undefined): number | undefined {
  const journal = orUndefined(() => readJournal(host.paths));
  return journal?.direction === 'forward' && journal.to === active ? journal.from : active;
}

/** Writes a journal that makes recovery notify all workers. An existing journal stays, because it has more facts. */
function writeNotificationJournal(host: Host): void {
  const { paths, durable } = host;
  const active = activeGenerationNumber(paths);
  const journal = rebuildJournal(active, active);
  if (journal !== undefined && !fs.existsSync(paths.journal)) writeJournal(paths, durable, journal);
}

export interface KnownReleases {
  readonly active: readonly ReleaseInfo[];
  /** Releases with a retained record. */
  readonly kept: readonly ReleaseInfo[];
}

/**
 * Finds the releases that operators rolled back and that did not become active again.
 * @param history newest first
 * @returns the hold with the highest serial for each bundle
 */
export function rebuildHolds(history: readonly HistoryEntry[], known: KnownReleases): Hold[] {
  const holds = new Map<string, Hold>();
  for (const entry of history.filter(isRollback)) {
    for (const { bundle, fromSerial } of entry.result.bundles) {
      const left = known.kept.find((one) => one.bundle === bundle && one.serial === fromSerial);
      if (left === undefined || !isAboveActive(left, known.active)) continue;
      // A hold blocks its own serial and all lower ones, so the highest hold covers the others.
      if (left.serial > (holds.get(bundle)?.serial ?? 0)) holds.set(bundle, createHold(left, entry));
    }
  }
  return [...holds.values()];
}

function isRollback({ result }: HistoryEntry): boolean {
  return result.type === 'rollback.result' && isActivation(result.outcome) && Array.isArray(result.bundles);
}

/** A release above the active one did not become active again, else it or a newer one would be active. */
function isAboveActive(left: ReleaseInfo, active: readonly ReleaseInfo[]): boolean {
  return active.some((one) => one.bundle === left.bundle && one.serial < left.serial);
}

function createHold({ bundle, serial, manifest }: ReleaseInfo, { by, reason, result }: HistoryEntry): Hold {
  return {
    bundle,
    serial,
    manifestDigest: manifest.digest,
    by: by ?? 'unknown',
    reason: reason ?? 'no reason given',
    atMs: result.startedAtMs,
  };
}

/** @returns the greatest generation number in any tree, link, journal, history or status of this host; 0 without one */
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

/** Greater numbers are ignored, because a manipulated history line must not use up the remaining numbers. */
const greatestUsed = 1e15;

function isGeneration(value: number | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) < greatestUsed;
}

type FoundNumbers = (number | undefined)[];

function treeNumbers(paths: HostPaths): FoundNumbers {
  return listTrees(paths).map(({ path }) => parseTreeName(basename(path))?.generation);
}

function linkNumbers(paths: HostPaths): FoundNumbers {
  const journal = orUndefined(() => readJournal(paths));
  return [orUndefined(() => activeGenerationNumber(paths)), journal?.from, journal?.to];
}

function historyNumbers(paths: HostPaths): FoundNumbers {
  return readHistory(paths, { limit: Number.MAX_SAFE_INTEGER }).flatMap(({ result }) => {
    const workers = Array.isArray(result.workers) ? result.workers : [];
    return [result.generation, result.fromGeneration, ...workers.map((one) => one.generation)];
  });
}

function statusNumbers(paths: HostPaths): FoundNumbers {
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
