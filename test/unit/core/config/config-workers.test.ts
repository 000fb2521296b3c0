import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { WorkerGroupConfig } from '../../../../src/core/config/config.js';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { defaultHookSandbox } from '../../../../src/core/config/hook-sandbox.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';

/** A file with one group that uses `access`, or with these keys. */
function parse(keys: string): ParsedConfig {
  const uses = keys.includes('uses:') ? '' : 'uses: [access], ';
  const text = `repository: https://a/
bundles: [{ name: access }, { name: dns-edge }]
workers:
  - { name: app, ${uses}${keys} }
`;
  return parseConfig(text, {
    drivers: [{ name: 'signal', properties: { signal: { enum: ['HUP'] } }, required: [] }],
    validateCron: () => undefined,
    defaults: { root: '/root.json', state: '/s', run: '/r', hostId: 'host-1' },
  });
}

function group(keys: string): WorkerGroupConfig {
  const parsed = parse(keys);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  const [first] = parsed.config.workers;
  assert.ok(first);
  return first;
}

function mistakes(keys: string): string[] {
  const parsed = parse(keys);
  if (parsed.ok) return [];
  assert.ok(parsed.mistakes.every((one) => one.code === 'CONFIG_INVALID'));
  return parsed.mistakes.map(mistakeLine);
}

function holdTo(cases: readonly (readonly [what: string, keys: string, message: RegExp])[]): void {
  for (const [what, keys, message] of cases) {
    it(`refuses ${what}`, () => {
      const found = mistakes(keys);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', message);
    });
  }
}

describe('a canary in the configuration', () => {
  it('is a command, or a started worker and its probe', () => {
    const box = defaultHookSandbox;
    assert.deepEqual(group('reset: {signal: HUP}, canary: {run: [try, "{candidate}"]}').canary, {
      kind: 'run',
      hook: { run: ['try', '{candidate}'], timeoutMs: 30_000, box },
    });
    assert.deepEqual(group('reset: {signal: HUP}, canary: {start: [d], probe: [ask], timeout: 2s}').canary, {
      kind: 'start',
      start: { run: ['d'], timeoutMs: 2000, box },
      probe: { run: ['ask'], timeoutMs: 2000, box },
      timeoutMs: 2000,
    });
    assert.equal(group('reset: {signal: HUP}').canary, undefined);
  });

  holdTo([
    ['neither', 'reset: {signal: HUP}, canary: {timeout: 2s}', /needs either `run` or `start`/],
    ['both', 'reset: {signal: HUP}, canary: {run: [a], start: [b], probe: [c]}', /needs either/],
    ['a started worker without a probe', 'reset: {signal: HUP}, canary: {start: [b]}', /needs `probe`/],
    [
      'a probe without a started worker',
      'reset: {signal: HUP}, canary: {run: [a], probe: [c]}',
      /only used with `start`/,
    ],
    ['a relative program', 'reset: {signal: HUP}, canary: {start: [./a], probe: [c]}', /absolute path/],
    [
      'a timeout of more than an hour',
      'reset: {signal: HUP}, canary: {run: [a], timeout: 2h}',
      /from 0.001 to 3600/,
    ],
    [
      '{bundle} of several',
      'uses: [access, dns-edge], reset: {signal: HUP}, canary: {run: [a, "{bundle}"]}',
      /canary\/run\/1: .*\{candidate\}\/BUNDLE/,
    ],
    ['a group with a canary only', 'canary: {run: [a]}', /no worker would be notified/],
  ]);
});

describe('the notification of a group', () => {
  it('goes to all workers at once and is not retried by default', () => {
    const { rolling, onDead, when, restartWhen, reset } = group('reset: {signal: HUP}');
    assert.deepEqual([rolling, onDead, when, restartWhen], [undefined, undefined, [], undefined]);
    const times = { timeoutMs: 5000, notNowForMs: 60_000 };
    assert.deepEqual(reset, { driver: 'signal', options: { signal: 'HUP' }, ...times, min: 1 });
  });

  it('may be rolling, with retries and a deadline for all workers', () => {
    const { rolling, onDead, reset, probe } = group(
      'rolling: 3, onDead: restart, reset: {signal: HUP, retry: 2, deadline: 1m}, probe: {run: [a], deadline: 5s, every: 30s}',
    );
    assert.deepEqual([rolling, onDead], [3, 'restart']);
    assert.deepEqual([reset?.retry, reset?.deadlineMs], [2, 60_000]);
    assert.deepEqual([probe?.retry, probe?.deadlineMs, probe?.everyMs], [undefined, 5000, 30_000]);
  });

  it('may depend on the changed files', () => {
    const of = (when: string): unknown[] => {
      const { when: reset, restartWhen } = group(`reset: {signal: HUP}, when: ${when}`);
      return [reset, restartWhen];
    };
    assert.deepEqual(of('["a", "b/**"]'), [['a', 'b/**'], undefined]);
    assert.deepEqual(of('{reset: [a], restart: [b]}'), [['a'], ['b']]);
    assert.deepEqual(of('{restart: [b]}'), [[], ['b']]);
    assert.deepEqual(of('{reset: [a]}'), [['a'], undefined]);
  });

  holdTo([
    ['0 workers at a time', 'reset: {signal: HUP}, rolling: 0', /from 1 to 10000/],
    ['rolling without `reset`', 'load: {run: [a]}, rolling: 1', /only used with `reset`/],
    ['onDead without workers', 'load: {run: [a]}, onDead: restart', /only used with `reset`/],
    ['another word for onDead', 'reset: {signal: HUP}, onDead: kill', /known: restart, report/],
    ['a restart without `reset`', 'load: {run: [a]}, when: {restart: [b]}', /only used with `reset`/],
    ['an unknown action in `when`', 'reset: {signal: HUP}, when: {reload: [b]}', /unknown key "reload"/],
    ['an action in `when` without globs', 'reset: {signal: HUP}, when: {reset: []}', /1 to 100 entries/],
    [
      'a glob of another bundle',
      'reset: {signal: HUP}, when: {restart: ["dns-edge:*"]}',
      /when\/restart\/0: unknown bundle "dns-edge"/,
    ],
    ['a probe with an interval of less than 30 s', 'probe: {run: [a], every: 29s}', /from 30 to 86400/],
    [
      'a deadline of a group of more than an hour',
      'reset: {signal: HUP, deadline: 2h}',
      /from 0.001 to 3600/,
    ],
  ]);
});

describe('the activation delay of a group', () => {
  it('accepts its bounds', () => {
    const { settleMs, minIntervalMs } = group('reset: {signal: HUP}, settle: 1d, minInterval: 30d');
    assert.deepEqual([settleMs, minIntervalMs], [86_400_000, 30 * 86_400_000]);
  });

  holdTo([
    ['a delay of more than a day', 'reset: {signal: HUP}, settle: 99999999d', /settle: must be from/],
    [
      'an interval of more than 30 days',
      'reset: {signal: HUP}, minInterval: 31d',
      /minInterval: must be from/,
    ],
  ]);
});
