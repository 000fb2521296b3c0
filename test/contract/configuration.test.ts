import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { countUnexplained } from '../../src/agent/settled/evidence-rules.js';
import type { Bake, ProcessEnd } from '../../src/agent/state/ledger.js';
import type { Schema } from '../../src/core/config/config-keys.js';
import { commonResetKeys, configSchema } from '../../src/core/config/config-schema.js';
import { defaultPlaces } from '../../src/core/config/config-values.js';
import { parseConfig } from '../../src/core/config/parse-config.js';
import { driverKinds } from '../../src/workers/registry.js';

const page = readFileSync(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8');

function keysIn(schema: Schema, path: string): string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, inner]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return [at, ...keysIn(inner, at)];
  });
  return schema.items === undefined ? own : [...own, ...keysIn(schema.items, `${path}[]`)];
}

function documented(text: string): string[] {
  return [...text.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1] ?? '');
}

/** @returns how many short replacements of one worker take a release back with the default of `bake.restarts` */
function fatalReplacement(watchedForMs: number, more: Partial<ProcessEnd>): number {
  const startedAtMs = 1_000_000;
  const times = Array.from({ length: 20 }, (_, index) => index + 1);
  const isFatal = (count: number): boolean => {
    const ends = times.slice(0, count).map((afterMs): ProcessEnd => {
      return { atMs: startedAtMs + afterMs, livedMs: 1, kind: 'unrecorded', ...more };
    });
    const sinceMs = startedAtMs - watchedForMs;
    const runs = { process: '7', sinceMs, watchedSinceMs: sinceMs, bootId: 'b', ends };
    const bake = { startedAtMs } as Bake;
    const options = { bake, forMs: 600_000, restarts: 2, nowMs: startedAtMs + 1000 };
    return countUnexplained(runs, options)?.isExceeded === true;
  };
  return times.find(isFatal) ?? 0;
}

const [keysPart = '', driversAndLimits = ''] = page.split('### Drivers');
const [driversPart = '', limitsPart = ''] = driversAndLimits.split('## Limits');

describe('docs/configuration.md', () => {
  it('has every key that exists, and no other', () => {
    const common = Object.keys(commonResetKeys).map((key) => `workers[].reset.${key}`);
    assert.deepEqual(
      documented(keysPart + limitsPart).sort(),
      [...keysIn(configSchema, ''), ...common].sort(),
    );
  });

  it('has every key of every driver', () => {
    const keys = documented(driversPart);
    for (const driver of driverKinds) {
      for (const key of [driver.name, ...Object.keys(driver.properties)]) assert.ok(keys.includes(key), key);
    }
  });

  it('names the replacement without a recorded cause at which a release is taken back', () => {
    const row = (watchedForMs: number, name: string): string =>
      `| ${name} | ${fatalReplacement(watchedForMs, {})}th | ${fatalReplacement(watchedForMs, { wasNotified: true })}th |`;
    for (const text of [row(600_000, 'observed'), row(0, 'not observed')])
      assert.ok(page.includes(`\n${text}\n`), text);
  });

  it('shows a file that is accepted', () => {
    const yaml = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    const parsed = parseConfig(yaml, {
      drivers: driverKinds,
      validateCron: () => undefined,
      defaults: { ...defaultPlaces, hostId: 'host-1' },
    });
    assert.deepEqual(parsed.ok ? [] : parsed.mistakes, []);
  });

  it('names the defaults that a file of two keys gets', () => {
    const parsed = parseConfig(
      'repository: https://a/\nbundles: [{ name: a, checks: [{name: b, run: [c]}] }]',
      {
        drivers: driverKinds,
        validateCron: () => undefined,
        defaults: { ...defaultPlaces, hostId: 'host-1' },
      },
    );
    assert.ok(parsed.ok);
    const { config } = parsed;
    const defaultOf = (key: string): string =>
      page
        .split('\n')
        .find((line) => line.startsWith(`| \`${key}\` |`))
        ?.split(' | ')[1] ?? '';
    assert.equal(defaultOf('state'), `\`${config.state}\``);
    assert.equal(defaultOf('run'), `\`${config.run}\``);
    assert.equal(defaultOf('root'), `\`${config.root}\``);
    assert.equal(defaultOf('bundles[].channel'), `\`${config.bundles[0]?.channel}\``);
    const [check] = config.bundles[0]?.checks ?? [];
    assert.ok(check !== undefined && check.kind !== 'change');
    assert.equal(defaultOf('bundles[].checks[].timeout'), `\`${check.timeoutMs / 1000}s\``);
    assert.equal(defaultOf('keep.generations'), `\`${config.keep.generations}\``);
    assert.equal(defaultOf('keep.grace'), `\`${config.keep.graceMs / 60_000}m\``);
    assert.equal(defaultOf('refusals.retry'), `\`${config.refusals.retryMs / 3_600_000}h\``);
    assert.equal(defaultOf('scrub.every'), `\`${(config.scrub.everyMs ?? 0) / 3_600_000}h\``);
    assert.equal(defaultOf('scrub.rate'), `\`${config.scrub.bytesPerSecond / 1e6}MB\``);
    assert.equal(defaultOf('scrub.repair'), `\`${config.scrub.repair === 'yes'}\``);
    assert.equal(defaultOf('limits.archive'), `\`${config.limits.maxArchiveBytes / 1e9}GB\``);
    assert.equal(defaultOf('limits.file'), `\`${config.limits.maxFileBytes / 1e9}GB\``);
    assert.equal(defaultOf('limits.tree'), `\`${config.limits.maxTreeBytes / 1e9}GB\``);
    assert.equal(defaultOf('limits.entries'), `\`${config.limits.maxEntries}\``);
    assert.equal(defaultOf('limits.depth'), `\`${config.limits.maxDepth}\``);
    assert.equal(defaultOf('limits.ratio'), `\`${config.limits.maxRatio}\``);
    const { metadataLimits: metadata, transport } = config;
    assert.equal(defaultOf('limits.metadata.root'), `\`${metadata.maxRootBytes / 1000}kB\``);
    assert.equal(defaultOf('limits.metadata.timestamp'), `\`${metadata.maxTimestampBytes / 1000}kB\``);
    assert.equal(defaultOf('limits.metadata.snapshot'), `\`${metadata.maxSnapshotBytes / 1e6}MB\``);
    assert.equal(defaultOf('limits.metadata.targets'), `\`${metadata.maxTargetsBytes / 1e6}MB\``);
    assert.equal(defaultOf('limits.metadata.rotations'), `\`${metadata.maxRootRotations}\``);
    assert.equal(defaultOf('limits.timeouts.connect'), `\`${transport.connectTimeoutMs / 1000}s\``);
    assert.equal(defaultOf('limits.timeouts.idle'), `\`${transport.idleTimeoutMs / 1000}s\``);
    assert.equal(defaultOf('limits.timeouts.metadata'), `\`${transport.metadataTimeoutMs / 1000}s\``);
    assert.equal(defaultOf('limits.timeouts.refresh'), `\`${transport.refreshTimeoutMs / 60_000}m\``);
    assert.equal(defaultOf('limits.timeouts.archive'), `\`${transport.archiveTimeoutMs / 3_600_000}h\``);
  });
});
