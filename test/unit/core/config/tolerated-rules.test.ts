// Mistakes that a start accepts and `writ config check` rejects, and warnings of both.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';
import type { HostFactSource } from '../../../../src/core/config/tolerated-rules.js';
import { given } from '../../../../src/core/given.js';

const absent: HostFactSource = {
  program: (name) => (name.includes('gone') ? `no program ${name}` : undefined),
  file: (path) => (path.includes('gone') ? `no file ${path}` : undefined),
  authorities: (path) => (path.includes('gone') ? `no authorities in ${path}` : undefined),
  directory: (path) => (path.includes('gone') ? `no directory ${path}` : undefined),
  group: (name) => (name.includes('gone') ? `no group ${name}` : undefined),
};

interface Given {
  readonly checks?: string;
  readonly worker?: string;
  readonly top?: string;
  /** Where the root of a configuration lies that names none. */
  readonly root?: string;
  readonly verdictClass?: 'true' | 'early' | 'silent';
  readonly hasIdentity?: boolean;
}

function parse({
  checks = '{ name: c, run: [c] }',
  worker,
  top = '',
  root = '/root.json',
  verdictClass,
  hasIdentity,
}: Given): ParsedConfig {
  const text = `repository: https://a/
${top}
bundles: [{ name: access, checks: [${checks}] }]
workers: [{ name: app, uses: [access], ${worker ?? 'reset: { signal: HUP }'} }]
`;
  const properties = {
    ...{ signal: { enum: ['HUP'] }, pidFile: { type: 'string' }, authorizationFile: { type: 'string' } },
    members: { type: 'object' },
  };
  return parseConfig(text, {
    drivers: [
      { name: 'signal', properties, required: [] },
      { name: 'kresd', properties: { kresd: { type: 'string' } }, required: [] },
      {
        name: 'run',
        properties: { run: { type: 'array' }, restart: { type: 'object' }, unreachable: { type: 'object' } },
        required: [],
      },
    ],
    validateCron: () => undefined,
    tryDriver: () => ({ kind: 'made', canRestart: true, verdictClass, ...given({ hasIdentity }) }),
    hostFacts: absent,
    defaults: { root, state: '/s', run: '/r', hostId: 'host-1' },
  });
}

function tolerated(given: Given): string[] {
  const parsed = parse(given);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.tolerated.map(mistakeLine);
}

describe('the group that may read the status', () => {
  it('is rejected when the host has no group of that name', () => {
    assert.match(tolerated({ top: 'read: { group: gone }' }).join(), /^2:\d+ \/read\/group: no group gone$/);
    for (const group of ['staff', '65534'])
      assert.deepEqual(tolerated({ top: `read: { group: ${group} }` }), []);
  });
});

describe('the root of a host', () => {
  it('is rejected when its file is missing, also for the default path', () => {
    assert.match(
      tolerated({ top: 'root: /gone.json' }).join(),
      /^2:\d+ \/root: no file \/gone\.json: a new host /,
    );
    assert.deepEqual(tolerated({ top: 'root: /there.json' }), []);
    assert.match(tolerated({ root: '/gone/root.json' }).join(), /\/root: no file \/gone\/root\.json: /);
  });
});

describe('a placeholder', () => {
  const ask = (run: string) => `{ name: c, run: ${run} }`;
  const hook = (key: string, run: string) => `reset: { signal: HUP }, ${key}: { run: ${run} }`;
  const refused: readonly (readonly [string, Given, RegExp])[] = [
    [
      'mistyped',
      { checks: ask('[c, "{candiate}"]') },
      /^3:\d+ \/bundles\/0\/checks\/0\/run\/1: unknown placeholder "candiate"; did you mean "candidate"\?$/,
    ],
    [
      'of the candidate after the swap',
      { worker: hook('load', '[l, "{candidate}/x"]') },
      /placeholder "candidate"/,
    ],
    ['of a worker in a loader', { worker: hook('load', '[l, "{worker}"]') }, /placeholder "worker"/],
    ['in a canary', { worker: hook('canary', '[l, "{generation}"]') }, /placeholder "generation"/],
    [
      'of the command for stale policy',
      { top: 'maxStale: 1d\nonStale: { run: [s, "{state}"] }' },
      /\/onStale\/run\/1: unknown placeholder "state"/,
    ],
  ];
  for (const [what, given, message] of refused)
    it(`${what} is named with its place`, () => {
      const found = tolerated(given);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', message);
    });

  it('is accepted when it is known, or is not a placeholder of Writ', () => {
    const all = '"{candidate}", "{current}", "{bundle}", "{scratch}"';
    const others = ['"$', '{name}", "{}", "{ print }", "{A}"'].join('');
    assert.deepEqual(tolerated({ checks: ask(`[c, ${all}, ${others}]`) }), []);
    const probe = '[p, "{current}", "{bundle}", "{worker}", "{serial}", "{serial:access}", "{source}"]';
    assert.deepEqual(tolerated({ worker: hook('probe', probe) }), []);
  });
});

describe('a missing program or file of the host', () => {
  const cases: readonly (readonly [string, Given, string])[] = [
    ['of a check', { checks: '{ name: c, run: [gone] }' }, '/bundles/0/checks/0/run/0: no program gone'],
    ['of a loader', { worker: 'load: { run: [/opt/gone] }' }, '/workers/0/load/run/0: no program /opt/gone'],
    ['of a driver', { worker: 'reset: { run: [gone] }' }, '/workers/0/reset/run/0: no program gone'],
    [
      'of a restart',
      { worker: 'reset: { run: [a], restart: { run: [gone] } }' },
      '/workers/0/reset/restart/run/0: no program gone',
    ],
    [
      'of a secret',
      { worker: 'reset: { signal: HUP, authorizationFile: /gone }' },
      '/workers/0/reset/authorizationFile: no file /gone',
    ],
    [
      'of the credentials of a proxy',
      { top: 'proxy: { url: "http://proxy.test", credentialsFile: /gone }' },
      '/proxy/credentialsFile: no file /gone',
    ],
    [
      'of a bind',
      { checks: '{ name: c, run: [a], binds: [/srv/gone] }' },
      '/bundles/0/checks/0/binds/0: no file /srv/gone',
    ],
    [
      'of a schema',
      { checks: '{ name: c, parse: ["*"], schema: /gone.json }' },
      '/bundles/0/checks/0/schema: no file /gone.json',
    ],
    [
      'of the authorities of the fleet server',
      { top: 'fleet: { url: "https://f/", ca: /gone.pem, tokenFile: /token }' },
      '/fleet/ca: no authorities in /gone.pem',
    ],
    [
      'among installed arguments',
      { checks: '{ name: c, run: [a, /etc/gone.conf] }' },
      '/bundles/0/checks/0/run/1: no file /etc/gone.conf',
    ],
  ];
  for (const [what, given, message] of cases)
    it(`${what} is named`, () => {
      assert.deepEqual(
        tolerated(given).map((line) => line.replace(/^\d+:\d+ /, '')),
        [message],
      );
    });

  it('is not reported when it is known only later: placeholders, outputs, files of the bundle', () => {
    const run = '[c, "{bundle}/gone", /run/gone.out, "{scratch}/gone"]';
    assert.deepEqual(tolerated({ checks: `{ name: c, run: ${run} }` }), []);
    assert.deepEqual(tolerated({ checks: '{ name: c, parse: ["*"], schema: "bundle:gone.json" }' }), []);
  });

  it('is reported together with the mistakes that prevent a start', () => {
    const parsed = parse({ checks: '{ name: c, run: [gone] }', top: 'unheard: {}' });
    assert.ok(!parsed.ok);
    assert.deepEqual([parsed.mistakes.length, parsed.tolerated.length], [1, 1]);
  });
});

describe('the retired value of `confirm`', () => {
  it('is accepted by a start, rejected by a check, and not listed in messages', () => {
    const [line] = tolerated({ worker: 'reset: { signal: HUP }, confirm: optional' });
    assert.match(line ?? '', /\/workers\/0\/confirm: `optional` means `warn`/);
    const parsed = parse({ worker: 'reset: { signal: HUP }, confirm: optoinal' });
    assert.ok(!parsed.ok);
    assert.match(parsed.mistakes[0]?.text ?? '', /known: required, warn, accept$/);
  });
});

describe('the warnings of a configuration', () => {
  const unchecked = { checks: '' };
  const warnings = (what: Given) => {
    const parsed = parse(what);
    assert.ok(parsed.ok, JSON.stringify(parsed));
    return parsed.warnings.map(({ pointer, text }) => `${pointer} ${text}`);
  };
  const ofGroup = (given: Given) => warnings(given).filter((one) => one.startsWith('/workers'));

  it('name a group with a daemon that answers before it reads policy, and what to add', () => {
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'early' }), [
      '/workers/0 group app: its daemon answers before it has read a policy; add a `probe` that asks it, or a check to access',
    ]);
    assert.match(ofGroup({ ...unchecked, verdictClass: 'silent' })[0] ?? '', /does not answer/);
  });

  it('do not name a group with a true answer, a probe, or checks of all its bundles', () => {
    const worker = 'reset: { signal: HUP }, probe: { run: [ask] }';
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'true' }), []);
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'silent', worker }), []);
    assert.deepEqual(ofGroup({ verdictClass: 'silent' }), []);
  });

  it('name a group with workers that can restart unnoticed', () => {
    const unseen = (worker: string) => ofGroup({ hasIdentity: false, worker: `${worker}, when: [a]` });
    const reset = 'reset: { run: [reload] }';
    assert.deepEqual(unseen(reset), [
      '/workers/0 group app: a restart of its worker is not noticed, so that it stays confirmed; add `process`, or a `probe` with `every`',
    ]);
    assert.equal(unseen(`${reset}, probe: { run: [ask] }`).length, 1);
    assert.deepEqual(unseen(`${reset}, probe: { run: [ask], every: 1m }`), []);
    assert.deepEqual(unseen(`${reset}, process: none`), []);
    assert.deepEqual(ofGroup({ hasIdentity: true, worker: reset }), []);
    assert.deepEqual(ofGroup({ worker: 'load: { run: [load] }' }), [], 'what a loader made has no process');
  });

  it('name a check without a sandbox that may judge the active policy', () => {
    const ofCheck = (check: string, top: string) =>
      warnings({ checks: `{ name: parses, ${check} }`, top }).filter((one) => /checks/.test(one));
    const off = 'sandbox: "off"';
    assert.match(ofCheck('run: [nginx, -t]', off)[0] ?? '', /^\/bundles\/0\/checks\/0\/run names neither/);
    for (const run of ['run: [parse, "{candidate}"]', 'run: [parse, "file={bundle}/a"]'])
      assert.deepEqual(ofCheck(run, off), [], run);
    assert.deepEqual(ofCheck('run: [nginx, -t]', ''), []);
  });

  it('name missing paths that a daemon creates, up to their first glob', () => {
    const pidFile = (path: string) => warnings({ worker: `reset: { signal: HUP, pidFile: "${path}" }` });
    assert.deepEqual(pidFile('/run/gone/a.pid'), [
      '/workers/0/reset/pidFile no directory /run/gone: no worker is found there',
    ]);
    assert.deepEqual(pidFile('/run/gone*/a.pid'), []);
    assert.deepEqual(warnings({ worker: 'reset: { kresd: "/run/gone/control/*" }' }), [
      '/workers/0/reset/kresd no directory /run/gone/control: no worker is found there',
    ]);
    assert.deepEqual(pidFile('/run/d/gone.pid'), [
      '/workers/0/reset/pidFile no file /run/d/gone.pid: until it exists, its daemon counts as dead, and a refusal by a dead daemon is ignored',
    ]);
    assert.deepEqual(pidFile('/run/d/gone-*.pid'), []);
  });

  it('name a condition that ignores a refusal by its text alone', () => {
    const hook = (key: string, more: string) =>
      warnings({ worker: `reset: { signal: HUP }, ${key}: { run: [ask], unreachable: { ${more} } }` });
    for (const key of ['canary', 'load', 'probe'])
      assert.match(
        hook(key, 'match: gone').join(),
        new RegExp(`^/workers/0/${key}/unreachable/match .*its text alone`),
      );
    assert.deepEqual(hook('load', 'match: away, exit: [1]'), []);
    assert.deepEqual(hook('load', 'exit: [1]'), []);
    const withPid = 'load: { run: [l], unreachable: { match: away }, pidFile: /run/d.pid }';
    assert.deepEqual(warnings({ worker: `reset: { signal: HUP }, ${withPid}` }), []);
  });

  it('do not name the text condition of a reset when the group has a `process`', () => {
    const reset = 'reset: { run: [r], unreachable: { match: away } }';
    const isNamed = (more: string) => /its text alone/.test(warnings({ worker: `${more}${reset}` }).join());
    assert.equal(isNamed(''), true);
    assert.equal(isNamed('process: { unit: d.service }, '), false);
    assert.equal(isNamed('process: { pidFile: /run/d.pid }, '), false);
    for (const unsure of ['{ listens: "127.0.0.1:9" }', '{ program: d }', 'none'])
      assert.equal(isNamed(`process: ${unsure}, `), true, unsure);
    // The command of a probe has a liveness of its own.
    const probe = 'reset: { run: [r] }, probe: { run: [p], unreachable: { match: away } }';
    assert.match(warnings({ worker: `process: { unit: d.service }, ${probe}` }).join(), /its text alone/);
  });

  it('name a probe with a timeout longer than its interval', () => {
    const probe = (times: string) => ofGroup({ worker: `probe: { run: [ask], ${times} }` });
    assert.deepEqual(probe('timeout: 1m, every: 30s'), [
      '/workers/0/probe/every 30s is less than its timeout of 1m: a probe that hangs runs less often',
    ]);
    assert.deepEqual(
      [probe('timeout: 30s, every: 30s'), probe('every: 30s'), probe('timeout: 1h')],
      [[], [], []],
    );
  });
});
