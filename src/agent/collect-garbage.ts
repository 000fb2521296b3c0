// Removes old generations, trees and kept releases that nobody needs any more. Keeps the active and previous
// ones, the last known good, what a worker is to use or last proved, the newest `keep.generations`, and all
// that is younger than `keep.grace`: a reader in another name space cannot be seen.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import {
  type Generation,
  listGenerations,
  readActive,
  readGeneration,
  unreferencedTrees,
} from './generations.js';
import type { Host } from './host.js';
import { listReleases } from './release-records.js';

/**
 * @param staging a directory of this cycle: deletion begins by renaming into it, so that nobody meets half a tree
 * @returns how many generations were removed
 */
export function collectGarbage(host: Host, staging: string): number {
  const { paths, durable } = host;
  const kept = keptNumbers(host);
  const old = listGenerations(paths).filter(
    (number) => !kept.has(number) && !isYoung(host, join(paths.generations, String(number))),
  );
  for (const number of old) {
    discard(host, join(paths.generations, String(number)), join(staging, `old-generation-${number}`));
  }
  if (old.length === 0) return 0;
  const left = listGenerations(paths).map((number) => readGeneration(paths, number));
  for (const { bundle, path } of unreferencedTrees(paths, left)) {
    if (!isYoung(host, path)) discard(host, path, join(staging, `old-tree-${bundle}-${basename(path)}`));
  }
  discardReleases(host, left, staging);
  durable.flushDirectory('commit.collect-flush', paths.generations);
  return old.length;
}

function keptNumbers(host: Host): ReadonlySet<number> {
  const ledger = host.ledger.read();
  const workers = Object.values(ledger.workers).flatMap((one) => [one.wanted, one.confirmed]);
  const newest = listGenerations(host.paths).slice(-host.config.keep.generations);
  const named = [
    readActive(host.paths)?.number,
    ledger.previous,
    ledger.lastKnownGood,
    ...workers,
    ...newest,
  ];
  return new Set(named.filter((one) => one !== undefined));
}

function isYoung(host: Host, path: string): boolean {
  // ctime, not mtime: the mtimes of a tree are set on purpose.
  return host.clock.nowMs() - fs.statSync(path).ctimeMs < host.config.keep.graceMs;
}

function discardReleases(host: Host, left: readonly Generation[], staging: string): void {
  const used = new Set(
    left.flatMap((one) => one.entries.map((entry) => `${entry.bundle}/${entry.tree.release}`)),
  );
  for (const { bundle, name, path } of listReleases(host.paths)) {
    if (!used.has(`${bundle}/${name}`)) discard(host, path, join(staging, `old-release-${bundle}-${name}`));
  }
}

function discard(host: Host, path: string, to: string): void {
  host.durable.rename('commit.collect', path, to);
  host.durable.removeTree('commit.collect-remove', to);
}
