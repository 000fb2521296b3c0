// Three people, each with a directory of their own, who share files by mail alone; and a host that follows them.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../../src/platform/time/clock.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import { matchesFile } from '../../kit/assert/golden.js';
import { jsonOf, runWrit, type WritRun } from '../../kit/cli/run-writ.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';

export const people = ['anna', 'ben', 'carol'] as const;

/** Runs writ where this person sits. */
export function writ(dir: TempDir, who: string, ...args: readonly string[]): Promise<WritRun> {
  return runWrit(args, { cwd: dir.join(who) });
}

export async function json(
  dir: TempDir,
  who: string,
  ...args: readonly string[]
): Promise<Record<string, unknown>> {
  return jsonOf(await writ(dir, who, ...args, '--json'));
}

export function mail(dir: TempDir, file: string, from: string, to: string, name = file): void {
  fs.copyFileSync(dir.join(from, file), dir.join(to, name));
}

/** The founder makes the repository, gives the keys away and keeps none of the root. */
export async function founded(dir: TempDir): Promise<void> {
  for (const who of [...people, 'founder', 'server', 'mallory']) fs.mkdirSync(dir.join(who));
  const names = people.flatMap((name) => ['--name', name]);
  const places = ['--repository', '../repo', '--keys', 'keys'];
  const init = await writ(dir, 'founder', 'init', ...places, ...names, '--no-passphrase');
  assert.equal(init.exitCode, 0, init.stderr);
  for (const [index, who] of people.entries()) {
    fs.renameSync(dir.join('founder', 'keys', `root-${index + 1}.key`), dir.join(who, `${who}.key`));
    mail(dir, 'keys/root.json', 'founder', who, 'root.json');
  }
  await publish(dir, 'one');
}

export async function publish(dir: TempDir, text: string): Promise<void> {
  writeTree(dir.join('founder', 'source'), { 'block.rpz': text });
  const places = ['--repository', '../repo', '--keys', 'keys', '--bundle', 'dns-edge'];
  const run = await writ(dir, 'founder', 'publish', 'source', ...places);
  assert.equal(run.exitCode, 0, run.stderr);
}

export function hostOf(dir: TempDir): RepositoryClient {
  const url = pathToFileURL(dir.join('repo')).href;
  const source = openRepositorySource(url, { clock: systemClock, version: 'test' });
  const root = fs.readFileSync(dir.join('repo', 'metadata', '1.root.json'));
  return openRepositoryClient({ source, store: memoryTrustStore(root), clock: systemClock });
}

export async function rootOn(host: RepositoryClient): Promise<number | undefined> {
  return (await host.refresh({ conditional: 'no' })).roles.root?.version;
}

/** What differs from run to run: key ids, codes, days and times. */
function steady(text: string): string {
  return text
    .replace(/\b[0-9a-f]{4}(?:-[0-9a-f]{4}){3}\b/g, 'CODE')
    .replace(/\([0-9a-f]{8}\)/g, '(KEYID)')
    .replace(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'TIME')
    .replace(/\d{4}-\d{2}-\d{2}/g, 'DAY');
}

export function isGolden(name: string, run: WritRun): void {
  matchesFile(`test/golden/ceremony/${name}.txt`, steady(`${run.stderr}${run.stdout}`));
}
