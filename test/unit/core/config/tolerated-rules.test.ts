// What a start takes and `writ config check` refuses, and what both only warn of.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';
import type { HostLook } from '../../../../src/core/config/tolerated-rules.js';
import { given } from '../../../../src/core/given.js';

const absent: HostLook = {
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
    look: absent,
    defaults: { root, state: '/s', run: '/r', hostId: 'host-1' },
  });
}

function tolerated(given: Given): string[] {
  const parsed = parse(given);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.tolerated.map(mistakeLine);
}

describe('the group that may look', () => {
  it('is refused where this host has none of that name', () => {
    assert.match(tolerated({ top: 'read: { group: gone }' }).join(), /^2:\d+ \/read\/group: no group gone$/);
    for (const group of ['staff', '65534'])
      assert.deepEqual(tolerated({ top: `read: { group: ${group} }` }), []);
  });
});

describe('the root of a host', () => {
  it('is refused where it is not there, whether the file names it or not', () => {
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
      'of the candidate behind the swap',
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
  for (const [what, given, said] of refused)
    it(`${what} is named with its place`, () => {
      const found = tolerated(given);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', said);
    });

  it('that is one, or none of ours, is left alone', () => {
    const all = '"{candidate}", "{current}", "{bundle}", "{scratch}"';
    const others = ['"$', '{name}", "{}", "{ print }", "{A}"'].join('');
    assert.deepEqual(tolerated({ checks: ask(`[c, ${all}, ${others}]`) }), []);
    const probe = '[p, "{current}", "{bundle}", "{worker}", "{serial}", "{serial:access}", "{source}"]';
    assert.deepEqual(tolerated({ worker: hook('probe', probe) }), []);
  });
});

describe('a program or a file that is not on the host', () => {
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
  for (const [what, given, said] of cases)
    it(`${what} is named`, () => {
      assert.deepEqual(
        tolerated(given).map((line) => line.replace(/^\d+:\d+ /, '')),
        [said],
      );
    });

  it('is not looked for where it can only be known later: placeholders, outputs, files of the bundle', () => {
    const run = '[c, "{bundle}/gone", /run/gone.out, "{scratch}/gone"]';
    assert.deepEqual(tolerated({ checks: `{ name: c, run: ${run} }` }), []);
    assert.deepEqual(tolerated({ checks: '{ name: c, parse: ["*"], schema: "bundle:gone.json" }' }), []);
  });

  it('is told beside the mistakes that keep an agent from starting', () => {
    const parsed = parse({ checks: '{ name: c, run: [gone] }', top: 'unheard: {}' });
    assert.ok(!parsed.ok);
    assert.deepEqual([parsed.mistakes.length, parsed.tolerated.length], [1, 1]);
  });
});

describe('the old word of `confirm`', () => {
  it('is taken by a start, refused by a check, and offered to nobody', () => {
    const [line] = tolerated({ worker: 'reset: { signal: HUP }, confirm: optional' });
    assert.match(line ?? '', /\/workers\/0\/confirm: `optional` is taken as `warn`/);
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

  it('name a group whose daemon is known to lie, and what to add', () => {
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'early' }), [
      '/workers/0 group app: its daemon says yes before it has read a policy; add a `probe` that asks it, or a check to access',
    ]);
    assert.match(ofGroup({ ...unchecked, verdictClass: 'silent' })[0] ?? '', /says nothing/);
  });

  it('leave a group alone that answers truly, has a probe, or whose bundles are checked', () => {
    const worker = 'reset: { signal: HUP }, probe: { run: [ask] }';
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'true' }), []);
    assert.deepEqual(ofGroup({ ...unchecked, verdictClass: 'silent', worker }), []);
    assert.deepEqual(ofGroup({ verdictClass: 'silent' }), []);
  });

  it('name a group whose workers may be restarted unseen', () => {
    const unseen = (worker: string) => ofGroup({ hasIdentity: false, worker: `${worker}, when: [a]` });
    const reset = 'reset: { run: [reload] }';
    assert.deepEqual(unseen(reset), [
      '/workers/0 group app: a restart of its worker is not seen, so that its proof stays; add `process`, or a `probe` with `every`',
    ]);
    assert.equal(unseen(`${reset}, probe: { run: [ask] }`).length, 1);
    assert.deepEqual(unseen(`${reset}, probe: { run: [ask], every: 1m }`), []);
    assert.deepEqual(unseen(`${reset}, process: none`), []);
    assert.deepEqual(ofGroup({ hasIdentity: true, worker: reset }), []);
    assert.deepEqual(ofGroup({ worker: 'load: { run: [load] }' }), [], 'what a loader made has no process');
  });

  it('name a check without a sandbox that may judge what is in use already', () => {
    const ofCheck = (check: string, top: string) =>
      warnings({ checks: `{ name: parses, ${check} }`, top }).filter((one) => /checks/.test(one));
    const off = 'sandbox: "off"';
    assert.match(ofCheck('run: [nginx, -t]', off)[0] ?? '', /^\/bundles\/0\/checks\/0\/run names neither/);
    for (const run of ['run: [parse, "{candidate}"]', 'run: [parse, "file={bundle}/a"]'])
      assert.deepEqual(ofCheck(run, off), [], run);
    assert.deepEqual(ofCheck('run: [nginx, -t]', ''), []);
  });

  it('name places that a daemon has still to make, up to their first glob', () => {
    const pidFile = (path: string) => warnings({ worker: `reset: { signal: HUP, pidFile: "${path}" }` });
    assert.deepEqual(pidFile('/run/gone/a.pid'), [
      '/workers/0/reset/pidFile no directory /run/gone: nobody is found there',
    ]);
    assert.deepEqual(pidFile('/run/gone*/a.pid'), []);
    assert.deepEqual(warnings({ worker: 'reset: { kresd: "/run/gone/control/*" }' }), [
      '/workers/0/reset/kresd no directory /run/gone/control: nobody is found there',
    ]);
    assert.deepEqual(pidFile('/run/d/gone.pid'), [
      '/workers/0/reset/pidFile no file /run/d/gone.pid: until it is, its daemon counts as dead, and a no to the dead is none',
    ]);
    assert.deepEqual(pidFile('/run/d/gone-*.pid'), []);
  });

  it('name what excuses a no by words alone, which a policy may have a program repeat', () => {
    const hook = (key: string, more: string) =>
      warnings({ worker: `reset: { signal: HUP }, ${key}: { run: [ask], unreachable: { ${more} } }` });
    for (const key of ['canary', 'load', 'probe'])
      assert.match(
        hook(key, 'match: gone').join(),
        new RegExp(`^/workers/0/${key}/unreachable/match .*words alone`),
      );
    assert.deepEqual(hook('load', 'match: away, exit: [1]'), []);
    assert.deepEqual(hook('load', 'exit: [1]'), []);
    const withPid = 'load: { run: [l], unreachable: { match: away }, pidFile: /run/d.pid }';
    assert.deepEqual(warnings({ worker: `reset: { signal: HUP }, ${withPid}` }), []);
  });

  it('name no words of a reset whose group says which process the worker is', () => {
    const reset = 'reset: { run: [r], unreachable: { match: away } }';
    const isNamed = (more: string) => /words alone/.test(warnings({ worker: `${more}${reset}` }).join());
    assert.equal(isNamed(''), true);
    assert.equal(isNamed('process: { unit: d.service }, '), false);
    assert.equal(isNamed('process: { pidFile: /run/d.pid }, '), false);
    for (const unsure of ['{ listens: "127.0.0.1:9" }', '{ program: d }', 'none'])
      assert.equal(isNamed(`process: ${unsure}, `), true, unsure);
    // The command of a probe has a liveness of its own.
    const probe = 'reset: { run: [r] }, probe: { run: [p], unreachable: { match: away } }';
    assert.match(warnings({ worker: `process: { unit: d.service }, ${probe}` }).join(), /words alone/);
  });

  it('name a probe that may take longer than the time between two of them', () => {
    const probe = (times: string) => ofGroup({ worker: `probe: { run: [ask], ${times} }` });
    assert.deepEqual(probe('timeout: 1m, every: 30s'), [
      '/workers/0/probe/every 30s is less than its timeout of 1m: one that hangs is asked less often',
    ]);
    assert.deepEqual(
      [probe('timeout: 30s, every: 30s'), probe('every: 30s'), probe('timeout: 1h')],
      [[], [], []],
    );
  });
});
