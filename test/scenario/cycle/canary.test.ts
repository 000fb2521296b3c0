// Canaries that are commands: the effect of each of their verdicts on a release before its activation.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { CanaryConfig, HookConfig } from '../../../src/core/config/config.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, type TestHostOptions, testHost } from '../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const hook = (script: string): HookConfig => ({ run: ['sh', '-c', script], timeoutMs: 60_000 });
const canary = (script: string): CanaryConfig => ({ kind: 'run', hook: hook(script) });
const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);
/** Refuses every version but the first. */
const onlyFirst = canary('grep -q "version: 1" {bundle}/policy.yaml');

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
}

/** Version 1 is active, version 2 is published. */
async function secondRelease(asked: CanaryConfig, options: TestHostOptions = {}): Promise<Scene> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ ...options, groups: { app: { driver, config: { canary: asked } } } });
  await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
  await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
  return { test, driver };
}

describe('a canary', () => {
  it('refuses the release before any reader can see it', async () => {
    const { test, driver } = await secondRelease(onlyFirst);
    using _ = test;
    const before = fs.readdirSync(test.host.paths.generations);
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [3, 'CANARY_FAILED']);
    assert.equal(result.bundles[0]?.outcome, 'rejected');
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(driver.notified, ['a 1']);
    assert.deepEqual(fs.readdirSync(test.host.paths.generations), before);
    assert.equal(test.host.refusals.read().refusals[0]?.code, 'CANARY_FAILED');
    assert.equal((await test.pull()).problems[0]?.code, 'REMEMBERED_REFUSAL');
  });

  it('that accepts permits the release', async () => {
    const { test, driver } = await secondRelease(canary('grep -q version {bundle}/policy.yaml'));
    using _ = test;
    const { result, progress } = await test.sync();
    assert.equal(result.outcome, 'activated');
    assert.deepEqual(driver.notified, ['a 1', 'a 2']);
    const step = progress.steps.find((one) => one.step === 'canary');
    assert.deepEqual([step?.verdict, step?.text], ['ok', 'app: ok']);
  });

  it('that could not be run does not refuse: the release is tried again', async () => {
    const { test } = await secondRelease(canary('grep -q "version: 1" {bundle}/policy.yaml || exit 127'));
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'CANARY_BROKEN']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.equal(current(test), 'generations/1');
  });

  it('without a verdict is tried again as often as `retry` permits', async () => {
    using dir = tempDir();
    const counted = `echo >> ${dir.join('tries')}; test $(wc -l < ${dir.join('tries')}) -ge 3 || exit 127`;
    const { test } = await secondRelease({ kind: 'run', hook: { ...hook(counted), retry: 2 } });
    using _ = test;
    // The first release had all three tries, and each one after it has one more line to count.
    assert.equal((await test.pull()).exitCode, 0);
    assert.equal(fs.readFileSync(dir.join('tries'), 'utf8').length, 4);
    const never: HookConfig = { ...hook(`echo >> ${dir.join('starts')}; exit 127`), retry: 2 };
    const started = { kind: 'start', start: never, probe: hook('exit 1'), timeoutMs: 60_000 } as const;
    using only = testHost({
      groups: { app: { driver: scriptedDriver({ a: confirms }), config: { canary: started } } },
    });
    await only.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    assert.equal((await only.pull()).problems[0]?.code, 'CANARY_BROKEN');
    assert.equal(fs.readFileSync(dir.join('starts'), 'utf8').length, 3);
  });

  it('that exits with 75 defers the release', async () => {
    const { test } = await secondRelease(canary('grep -q "version: 1" {bundle}/policy.yaml || exit 75'));
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [8, 'CANARY_DEFERRED']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });

  it('that warns is reported', async () => {
    const { test } = await secondRelease(canary('exit 40'));
    using _ = test;
    const { result, progress } = await test.sync();
    assert.equal(result.outcome, 'activated');
    assert.equal(progress.steps.find((one) => one.step === 'canary')?.verdict, 'warn');
  });

  it('that changes the candidate is an error: the release is not activated', async () => {
    const { test } = await secondRelease(
      canary('grep -q "version: 1" {bundle}/policy.yaml || echo "version: 9" > {bundle}/policy.yaml'),
      { config: { sandbox: 'off' } },
    );
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'CANDIDATE_CHANGED']);
    assert.equal(current(test), 'generations/1');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('that is ended with the cycle has no verdict', async () => {
    using dir = tempDir();
    const asked = dir.join('asked');
    const { test } = await secondRelease(
      canary(`grep -q "version: 1" {bundle}/policy.yaml && exit; touch ${asked}; sleep 60`),
    );
    using _ = test;
    const ending = new AbortController();
    const cycle = cycleOn(test.host, 'poll', ending.signal);
    await until(() => fs.existsSync(asked));
    ending.abort();
    const { exitCode, problems } = await cycle;
    assert.deepEqual([exitCode, problems[0]?.code], [1, 'INTERRUPTED']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.equal(current(test), 'generations/1');
  });

  it('gets the candidate and the active policy, also where none is active', async () => {
    const out = fs.mkdtempSync('/tmp/writ-canary-');
    try {
      const see = `cat {bundle}/policy.yaml {candidate}/access/policy.yaml "$WRIT_GENERATION_DIR/access/policy.yaml"; ls {current}`;
      const { test } = await secondRelease(canary(`{ ${see}; } >> ${out}/seen`));
      using _ = test;
      await test.pull();
      const version = (n: number): string => `version: ${n}\n`.repeat(3);
      assert.equal(fs.readFileSync(`${out}/seen`, 'utf8'), `${version(1)}${version(2)}access\n`);
    } finally {
      fs.rmSync(out, { recursive: true });
    }
  });
});

describe('canaries of several groups', () => {
  const two = [{ name: 'access' }, { name: 'views' }];
  const no = canary('[ -z "$(grep -l bad {candidate}/*/*)" ]');

  it('hold back the bundles of their group; the others are checked again without them, and become active', async () => {
    const out = fs.mkdtempSync('/tmp/writ-canary-');
    try {
      const seen = hook(`cat {candidate}/*/* | tr "\\n" , >> ${out}/checks; echo >> ${out}/checks`);
      const check = { kind: 'run', name: 'see', ...seen } as const;
      const driver = scriptedDriver({ a: confirms });
      const views = scriptedDriver({ v: confirms });
      using test = testHost({
        bundles: [{ name: 'access' }, { name: 'views', checks: [check] }],
        groups: {
          app: { driver, config: { uses: ['access'], canary: no } },
          views: { driver: views, config: { uses: ['views'] } },
        },
      });
      await test.publish('access', { f: 'one\n' }, { serial: 1 });
      await test.publish('views', { f: 'one\n' }, { serial: 1 });
      await test.pull();
      await test.publish('access', { f: 'bad\n' }, { serial: 2 });
      await test.publish('views', { f: 'two\n' }, { serial: 2 });
      const result = await test.pull();
      assert.equal(result.exitCode, 3);
      assert.deepEqual(
        result.bundles.map((one) => [one.bundle, one.outcome]),
        [
          ['access', 'rejected'],
          ['views', 'activated'],
        ],
      );
      assert.deepEqual([driver.notified, views.notified], [['a 1'], ['v 1', 'v 2']]);
      assert.deepEqual(fs.readFileSync(`${out}/checks`, 'utf8').trim().split('\n'), [
        'one,one,',
        'bad,two,',
        'one,two,',
      ]);
      assert.deepEqual(
        test.host.refusals.read().refusals.map((one) => one.bundle),
        ['access'],
      );
    } finally {
      fs.rmSync(out, { recursive: true });
    }
  });

  it('hold back a whole set of bundles that move together', async () => {
    using test = testHost({
      bundles: two,
      config: { together: [['access', 'views']] },
      groups: { app: { driver: scriptedDriver({ a: confirms }), config: { uses: ['access'], canary: no } } },
    });
    await test.publish('access', { f: 'one' }, { serial: 1 });
    await test.publish('views', { f: 'one' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { f: 'bad' }, { serial: 2 });
    await test.publish('views', { f: 'two' }, { serial: 2 });
    assert.equal((await test.pull()).exitCode, 3);
    assert.equal(current(test), 'generations/1');
  });

  it('run only where the candidate affects their group, or in a forced pull', async () => {
    const out = fs.mkdtempSync('/tmp/writ-canary-');
    try {
      const asks = (name: string): CanaryConfig => canary(`echo ${name} >> ${out}/asked`);
      using test = testHost({
        groups: {
          all: { driver: scriptedDriver({ a: confirms }), config: { canary: asks('all') } },
          views: {
            driver: scriptedDriver({ v: confirms }),
            config: { canary: asks('views'), when: ['views/**'] },
          },
        },
      });
      const asked = (): string[] => {
        const text = fs.readFileSync(`${out}/asked`, 'utf8');
        fs.writeFileSync(`${out}/asked`, '');
        return text.trim().split('\n');
      };
      await test.publish('access', { 'views/eu': '1', rules: '1' }, { serial: 1 });
      await test.pull();
      assert.deepEqual(asked(), ['all', 'views']);
      await test.publish('access', { 'views/eu': '1', rules: '2' }, { serial: 2 });
      await test.pull();
      assert.deepEqual(asked(), ['all']);
      await test.pull({ force: 'yes' });
      assert.deepEqual(asked(), ['all', 'views']);
    } finally {
      fs.rmSync(out, { recursive: true });
    }
  });
});
