// A host for tests of repair: releases with trees and retained copies that a test damages, a network that it cuts, and an
// assertion that the policy is complete.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { examineActive } from '../../../src/agent/integrity/examine-active.js';
import { type RepairEnd, repairActive } from '../../../src/agent/integrity/repair.js';
import { type ScrubOptions, type ScrubResult, scrub } from '../../../src/agent/integrity/scrub.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { DamageFound } from '../../../src/core/status/scrub-state.js';
import { unboundedPace } from '../../../src/platform/time/rate-limit.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../workers/scripted-driver.js';
import { type TestHost, type TestHostOptions, testHost } from './test-host.js';

const signal = new AbortController().signal;

export interface Bench extends Disposable {
  readonly test: TestHost;
  readonly host: Host;
  readonly driver: ScriptedDriver;
  /** Requests fail with ECONNREFUSED while `isUp` is false. */
  readonly network: { isUp: boolean };
  /** @returns a path in the active tree */
  tree(path?: string): string;
  /** @returns a path in the retained copy of the active release */
  kept(name?: string): string;
}

export const files = (version: number) => ({
  'policy.yaml': `version: ${version}\n`,
  'views/a.rpz': 'a\n',
  'bin/tool!x': '#!/bin/sh\n',
});

/** @returns a host that pulled these releases in order; by default generation 2 is active and 1 is complete */
export async function bench(
  options: TestHostOptions = {},
  releases: readonly number[] = [1, 2],
): Promise<Bench> {
  const driver = scriptedDriver({ a: confirms });
  const network = { isUp: true };
  const test = testHost({
    groups: { app: { driver } },
    source: (source) => ({
      ...source,
      fetch: (path, given) => (network.isUp ? source.fetch(path, given) : Promise.reject(down())),
      stream: (path, given) => {
        if (!network.isUp) throw down();
        return source.stream(path, given);
      },
    }),
    ...options,
  });
  for (const serial of releases) {
    await test.publish('access', files(serial), { serial });
    assert.equal((await test.pull()).outcome, 'activated');
  }
  driver.notified.length = 0;
  const { host } = test;
  const treePath = releases.length === 0 ? '' : fs.realpathSync(join(host.paths.current, 'access'));
  const release = /([^/]+)\.\d+$/.exec(treePath)?.[1] ?? '';
  return {
    test,
    host,
    driver,
    network,
    tree: (path = '') => join(treePath, path),
    kept: (name = '') => join(host.paths.archives, 'access', release, name),
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}

function down(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
}

/** @returns the damage that a complete scan finds; empty without an active policy */
export async function findDamage(host: Host): Promise<readonly DamageFound[]> {
  const found = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  return found?.damage ?? [];
}

/** Runs one round of the scrub without downloads, including the repair. */
export function scrubOnce(host: Host, how: Pick<ScrubOptions, 'contents' | 'repair'>): Promise<ScrubResult> {
  const pace = unboundedPace(signal);
  const exclusive: ScrubOptions['exclusive'] = (job) => job(() => undefined);
  return scrub(() => host, { ...how, cycle: 'c-ab', download: 'no', pace, signal, exclusive });
}

/**
 * @param download whether the repair may request files from the repository
 * @returns the result of the repair; undefined if there was nothing to repair
 */
export function repair(host: Host, download: 'yes' | 'no' = 'yes'): Promise<RepairEnd | undefined> {
  return repairActive(host, { cycle: 'c-ab', signal, download });
}

export const short = ({ part, kind, path }: DamageFound): string => `${part} ${kind} ${path}`;

export const codes = (end: RepairEnd | undefined): (string | undefined)[] => [
  end?.result.outcome,
  ...(end?.result.problems ?? []).map((one) => one.code),
];

export interface Damage {
  readonly does: (bench: Bench) => void;
  readonly finds: readonly string[];
}

/** Asserts that the active policy is this version without damage, and that staging and journal are empty. */
export function assertWhole({ host, test }: Bench, version: number): void {
  assert.equal(test.read('access/policy.yaml'), `version: ${version}\n`);
  assert.equal(test.read('access/views/a.rpz'), 'a\n');
  assert.deepEqual(fs.readdirSync(join(host.paths.current, 'access')).sort(), [
    'bin',
    'policy.yaml',
    'views',
  ]);
  assert.deepEqual(fs.readdirSync(host.paths.staging), []);
  assert.equal(fs.existsSync(host.paths.journal), false);
}
