import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultPlaces } from '../../../../src/core/config/config-values.js';
import { parseConfig } from '../../../../src/core/config/parse-config.js';
import { driverKinds } from '../../../../src/workers/registry.js';

function parse(worker: string) {
  return parseConfig(
    `repository: https://a/\nbundles: [{ name: a }]\nworkers: [{ name: w, uses: [a], ${worker} }]\n`,
    { drivers: driverKinds, validateCron: () => undefined, defaults: { ...defaultPlaces, hostId: 'h' } },
  );
}

function mistakesOf(worker: string): string[] {
  const parsed = parse(worker);
  return parsed.ok ? [] : parsed.mistakes.map(({ pointer, text }) => `${pointer} ${text}`);
}

function processOf(worker: string): unknown {
  const parsed = parse(worker);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.config.workers[0]?.process;
}

const run = 'reset: { run: [reload] }';

describe('the process of a worker in the configuration', () => {
  it('is a unit, a pid file, an address, none, or a program alone', () => {
    const places: readonly (readonly [string, object])[] = [
      ['{ unit: "app@{worker}.service" }', { place: { kind: 'unit', unit: 'app@{worker}.service' } }],
      ['{ pidFile: /run/app.pid }', { place: { kind: 'pidFile', path: '/run/app.pid' } }],
      ['{ listens: "127.0.0.1:80" }', { place: { kind: 'listens', address: '127.0.0.1:80' } }],
      ['{ listens: "[::1]:80" }', { place: { kind: 'listens', address: '[::1]:80' } }],
      [
        '{ listens: /run/app.sock, program: app }',
        {
          place: { kind: 'listens', address: '/run/app.sock' },
          program: 'app',
        },
      ],
      ['none', { place: { kind: 'none' } }],
      ['{ program: /usr/sbin/app }', { program: '/usr/sbin/app' }],
    ];
    for (const [text, expected] of places)
      assert.deepEqual(processOf(`${run}, process: ${text}`), expected, text);
    assert.equal(processOf(run), undefined);
  });

  it('has only one of them', () => {
    for (const text of [
      '{}',
      'other',
      '{ unit: "a b.service" }',
      '{ unit: app }',
      '{ pidFile: app.pid }',
      '{ listens: "80" }',
    ])
      assert.notDeepEqual(mistakesOf(`${run}, process: ${text}`), [], text);
    assert.deepEqual(mistakesOf(`${run}, process: { unit: a.service, pidFile: /run/a.pid }`), [
      '/workers/0/process has unit and pidFile: give one of them',
    ]);
  });

  it('must not differ from `reset.pidFile`', () => {
    const reset = 'reset: { signal: HUP, pidFile: /run/a.pid }';
    assert.deepEqual(mistakesOf(`${reset}, process: { pidFile: /run/a.pid }`), []);
    assert.deepEqual(mistakesOf(`${reset}, process: { program: a }`), []);
    for (const process of ['{ pidFile: /run/b.pid }', '{ unit: a.service }'])
      assert.deepEqual(mistakesOf(`${reset}, process: ${process}`), [
        '/workers/0/process and `reset.pidFile` name different processes: leave out `reset.pidFile`',
      ]);
  });

  it('is a glob only for the driver `signal`', () => {
    assert.deepEqual(mistakesOf('reset: { signal: HUP }, process: { pidFile: "/run/*.pid" }'), []);
    assert.match(mistakesOf(`${run}, process: { pidFile: "/run/*.pid" }`).join(), /may have \{worker\} only/);
    assert.match(
      mistakesOf('reset: { signal: HUP }, process: { pidFile: "/run/{worker}.pid" }').join(),
      /must not have/,
    );
  });

  it('is accepted only for a driver that needs it, and must name a process to signal', () => {
    assert.match(
      mistakesOf('load: { run: [load] }, process: { unit: a.service }').join(),
      /only used with `reset`/,
    );
    assert.match(mistakesOf('reset: { systemd: a.service }, process: none').join(), /not used with systemd/);
    assert.match(mistakesOf('reset: { signal: HUP }, process: none').join(), /must name a process/);
  });
});
