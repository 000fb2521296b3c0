// A host after a crash that interrupted a swap, with a chosen journal, link and crash count; and its recovery.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { pointCurrentAt } from '../../../src/agent/generations/generations.js';
import { recoverHost } from '../../../src/agent/startup/recover-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { writeJournal } from '../../../src/agent/state/journal.js';
import { type HostPaths, parseTreeName } from '../../../src/agent/state/paths.js';
import type { Journal } from '../../../src/agent/state/recovery-rules.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../workers/scripted-driver.js';
import { setLedger } from './set-ledger.js';
import { type TestHost, testHost } from './test-host.js';

export const signal: AbortSignal = new AbortController().signal;
export const policy = (version: number) => ({ 'policy.yaml': `version: ${version}\n` });

interface Crashed {
  readonly test: TestHost;
  readonly host: Host;
  readonly driver: ScriptedDriver;
}

/**
 * @param journal members of the journal of a swap from generation 1 to 2
 * @param current generation that the link names
 * @param crashes number of counted crashes
 * @returns a reopened host before its recovery
 */
export async function crashed(journal: Partial<Journal>, current: number, crashes = 0): Promise<Crashed> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver } } });
  for (const serial of [1, 2]) {
    await test.publish('access', policy(serial), { serial });
    await test.pull();
  }
  const { paths, durable } = test.host;
  journalOf(test, { from: 1, to: 2, ...journal });
  pointCurrentAt(paths, durable, { generation: current, cycle: 'c-0' });
  driver.notified.length = 0;
  const host = test.reopen();
  if (crashes > 0) setLedger(host.ledger, { ...crashCount(test, crashes) });
  return { test, host, driver };
}

/**
 * Recovers the host and asserts that staging is empty.
 * @returns the result of the recovery; undefined if there was nothing to recover
 */
export async function recover(host: Host): Promise<CycleResult | undefined> {
  const end = await recoverHost(host, { cycle: 'c-ab', signal });
  assert.deepEqual(fs.readdirSync(host.paths.staging), []);
  return end?.result;
}

export const codes = (result: CycleResult | undefined): (string | undefined)[] => [
  result?.outcome,
  ...(result?.problems ?? []).map((one) => one.code),
];

/**
 * Writes the journal of an update from one generation to another.
 * @param move members that replace those of the journal
 */
export function journalOf(
  { host }: TestHost,
  move: Partial<Journal> & { readonly from: number; readonly to: number },
): void {
  const base = { writ: 1, cycle: 'c-0', direction: 'forward', startedAtMs: 0, kind: 'update' } as const;
  writeJournal(host.paths, host.durable, { ...base, ...move });
}

/** @returns the ledger member that counts these crashes of the newest release of `access`, which must be trusted */
export function crashCount(
  test: TestHost,
  count: number,
): Required<Pick<ReturnType<Host['ledger']['read']>, 'crashes'>> {
  const access = test.host.client.knownTarget('access', 'stable')!.release.manifest.digest;
  return { crashes: { manifestDigests: { access }, count } };
}

/** Changes a file in the tree of a generation. */
export function spoil({ host: { paths } }: TestHost, generation: number): void {
  fs.writeFileSync(join(paths.bundles, 'access', treeOf(paths, generation), 'policy.yaml'), 'VERSION: 9\n');
}

/** Changes a file in the tree of a generation and removes its archive, so that this host cannot repair it alone. */
export function ruin(test: TestHost, generation: number): void {
  const { paths } = test.host;
  const release = parseTreeName(treeOf(paths, generation))!.release;
  const kept = join(paths.archives, 'access', release);
  for (const name of fs.readdirSync(kept)) if (name.startsWith('archive')) fs.rmSync(join(kept, name));
  spoil(test, generation);
}

function treeOf(paths: HostPaths, generation: number): string {
  return fs.readdirSync(join(paths.bundles, 'access')).find((name) => name.endsWith(`.${generation}`))!;
}
