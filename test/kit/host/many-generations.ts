// A host with several generations that are old enough to collect, for tests of garbage collection.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { type Collected, collectGarbage } from '../../../src/agent/generations/collect-garbage.js';
import type { FindGenerationUsers } from '../../../src/agent/generations/collectable.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { GenerationUser } from '../../../src/core/status/mount-table.js';
import { type TestHost, type TestHostOptions, testHost } from './test-host.js';

export const keepAll = { keep: { generations: 1000, graceMs: 0 } };

/** Name of a tree for a release that is in no generation. */
export const orphanTree = `9-${'a'.repeat(12)}.9`;

/** @returns a host that pulled the releases 1 to `count`, each in a generation of its own */
export async function generations(count: number, options: TestHostOptions = {}): Promise<TestHost> {
  // Bake times are zero, so that no release waits for another one.
  const bundles = [{ name: 'access', bake: { forMs: 0, restarts: 2 } }];
  const test = testHost({ bundles, config: keepAll, ...options });
  for (let serial = 1; serial <= count; serial += 1) {
    await test.publish('access', { 'policy.yaml': `version: ${serial}\n` }, { serial });
    assert.equal((await test.pull()).exitCode, 0);
  }
  return test;
}

/** @returns the host after `afterMs`, when each generation is older than its grace time, with fewer retained generations */
export function later(host: Host, keep = { generations: 1, graceMs: 600_000 }, afterMs = 3_600_000): Host {
  const nowMs = host.clock.nowMs() + afterMs;
  return { ...host, config: { ...host.config, keep }, clock: { ...host.clock, nowMs: () => nowMs } };
}

/** Collects garbage while these generation users exist. */
export function collect(host: Host, ...holders: GenerationUser[]): Promise<Collected> {
  const find: FindGenerationUsers = async () => ({ holders, isComplete: true, processes: 1, unseen: 0 });
  return collectGarbage(host, { staging: () => staging(host), find });
}

/** @returns the staging directory of a cycle, which is created */
export function staging(host: Host): string {
  const path = join(host.paths.staging, 'c-1');
  fs.mkdirSync(path, { recursive: true });
  return path;
}

export const serialsIn = (path: string): number[] =>
  fs
    .readdirSync(path)
    .map((name) => Number(name.split('-')[0]))
    .sort((a, b) => a - b);

/** @returns the name of the tree with this serial; '' if there is none */
export function treeOf({ paths }: Host, serial: number): string {
  const [tree] = fs
    .readdirSync(join(paths.bundles, 'access'))
    .filter((name) => name.startsWith(`${serial}-`));
  return tree ?? '';
}
