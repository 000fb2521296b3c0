import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AgentConfig, HookConfig } from '../../../../src/core/config/config.js';
import { mistakeLine } from '../../../../src/core/config/config-errors.js';
import { defaultHookSandbox } from '../../../../src/core/config/hook-sandbox.js';
import { type ParsedConfig, parseConfig } from '../../../../src/core/config/parse-config.js';

function parse(config: Readonly<Record<string, unknown>>): ParsedConfig {
  const file = { repository: 'https://a/', bundles: [{ name: 'a' }], ...config };
  return parseConfig(JSON.stringify(file), {
    drivers: [],
    validateCron: () => undefined,
    defaults: { root: '/etc/writ/root.json', state: '/var/lib/writ', run: '/run/writ', hostId: 'h' },
  });
}

function accepted(config: Readonly<Record<string, unknown>>): AgentConfig {
  const parsed = parse(config);
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.config;
}

function mistakes(config: Readonly<Record<string, unknown>>): string[] {
  const parsed = parse(config);
  return parsed.ok ? [] : parsed.mistakes.map(mistakeLine);
}

const check = (keys: Readonly<Record<string, unknown>>) => ({
  bundles: [{ name: 'a', checks: [{ name: 'c', run: ['true'], ...keys }] }],
});
const worker = (keys: Readonly<Record<string, unknown>>) => ({
  workers: [{ name: 'w', uses: ['a'], ...keys }],
});

const everything = {
  user: 'unbound',
  network: true,
  binds: ['/run/knot'],
  writable: ['/var/log/nginx'],
  userNamespace: false,
  nestedNamespaces: true,
  memory: '64MB',
  processes: 7,
  reject: '^ERROR',
  retry: 2,
};

const asked: Pick<HookConfig, 'box' | 'reject' | 'retry'> = {
  box: {
    user: 'unbound',
    network: 'yes',
    binds: ['/run/knot'],
    writable: ['/var/log/nginx'],
    userNamespace: 'no',
    canNestNamespaces: true,
    maxMemoryBytes: 64_000_000,
    maxProcesses: 7,
  },
  reject: '^ERROR',
  retry: 2,
};

describe('the sandbox in a configuration', () => {
  it('has the mode auto and default keys', () => {
    const config = accepted(check({}));
    assert.equal(config.sandbox, 'auto');
    const [first] = config.bundles[0]?.checks ?? [];
    assert.deepEqual(first, {
      kind: 'run',
      name: 'c',
      run: ['true'],
      timeoutMs: 10_000,
      box: defaultHookSandbox,
    });
    assert.equal(defaultHookSandbox.network, 'no');
  });

  it('has the mode of the file', () => {
    for (const sandbox of ['required', 'auto', 'off']) assert.equal(accepted({ sandbox }).sandbox, sandbox);
    assert.match(mistakes({ sandbox: true }).join(), /\/sandbox: must be required, auto or off/);
  });

  it('has the same keys in checks, canaries, loaders and probes', () => {
    const [first] = accepted(check(everything)).bundles[0]?.checks ?? [];
    assert.deepEqual(first, { kind: 'run', name: 'c', run: ['true'], timeoutMs: 10_000, ...asked });
    const hook = { run: ['true'], ...everything };
    const asks = { load: hook, probe: hook, canary: hook };
    const [group] = accepted(worker(asks)).workers;
    assert.deepEqual(group?.canary, {
      kind: 'run',
      hook: { run: ['true'], timeoutMs: 30_000, ...asked },
    });
    assert.deepEqual(group?.load, { run: ['true'], timeoutMs: 30_000, ...asked });
    assert.deepEqual(group?.probe, { run: ['true'], timeoutMs: 10_000, ...asked });
  });

  it('can be off for a loader and a probe, and for no check', () => {
    const hook = { run: ['true'], sandbox: 'off' };
    const [group] = accepted(worker({ load: hook, probe: hook })).workers;
    assert.deepEqual([group?.load?.sandbox, group?.probe?.sandbox], ['off', 'off']);
    assert.match(mistakes(check({ sandbox: 'off' })).join(), /unknown key "sandbox"/);
  });

  const wrong: readonly [name: string, config: Readonly<Record<string, unknown>>, message: RegExp][] = [
    ['root as the user', check({ user: 'root' }), /checks\/0\/user: must not be root/],
    ['the number of root', check({ user: 0 }), /checks\/0\/user: must not be root/],
    ['a loader of root', worker({ load: { run: ['a'], user: 'root' } }), /load\/user: must not be root/],
    [
      'the state directory',
      check({ binds: ['/var/lib/writ'] }),
      /binds\/0: must not meet the state directory/,
    ],
    [
      'a parent of the state directory',
      check({ writable: ['/var'] }),
      /writable\/0: must not meet the state/,
    ],
    ['everything', check({ writable: ['/./'] }), /writable\/0: must be an absolute path without/],
    ['a part of the state', check({ binds: ['/var/lib/writ/trust'] }), /must not meet the state directory/],
    [
      'the policy directory',
      { ...check({ writable: ['/srv/p'] }), policy: '/srv/p' },
      /meet the policy directory/,
    ],
    ['the control socket', check({ binds: ['/run'] }), /must not meet the control socket/],
    ['a path with ..', check({ binds: ['/run/x/../writ'] }), /without \. and \.\./],
    ['a double slash', check({ binds: ['/run//other'] }), /without \. and \.\./],
    ['a relative path', check({ binds: ['run'] }), /an absolute path/],
    ['an invalid pattern', check({ reject: '(' }), /checks\/0\/reject: is not a regular expression/],
    ['too little memory', check({ memory: '1kB' }), /memory: must be from 1000 kB/],
    ['0 processes', check({ processes: 0 }), /a whole number from 1/],
    ['a network that is no boolean', check({ network: 'yes' }), /true or false/],
    [
      'a user for the built-in check',
      { bundles: [{ name: 'a', checks: [{ name: 'c', parse: ['*'], user: 'x' }] }] },
      /user: is only used with `run`/,
    ],
    [
      'further tries of the built-in check',
      { bundles: [{ name: 'a', checks: [{ name: 'c', parse: ['*'], retry: 1 }] }] },
      /retry: is only used with `run`/,
    ],
    ['more than 100 retries', check({ retry: 101 }), /a whole number from 0 to 100/],
    ['a user without a sandbox', { ...check({ user: 'x' }), sandbox: 'off' }, /only used in a sandbox/],
    [
      'memory for an unconfined loader',
      worker({ load: { run: ['a'], sandbox: 'off', memory: '9MB' } }),
      /load\/memory: is only used in a sandbox/,
    ],
  ];
  for (const [name, config, message] of wrong) {
    it(`refuses ${name}`, () => {
      const found = mistakes(config);
      assert.equal(found.length, 1, found.join('\n'));
      assert.match(found[0] ?? '', message);
    });
  }

  it('permits memory for a built-in check, and `reject` without a sandbox', () => {
    accepted({
      bundles: [{ name: 'a', checks: [{ name: 'c', parse: ['*'], memory: '9MB' }] }],
      sandbox: 'off',
    });
    accepted({ ...check({ reject: 'x' }), sandbox: 'off' });
  });

  it('permits a directory next to the control socket', () => {
    accepted(check({ binds: ['/run/writ/workers', '/run/writ2'] }));
  });
});

describe('a glob of the configuration', () => {
  const hostile = ['*a*a*a*a*b', '(a+)+b', '*a*a*a*a/*a*a*a*b'];
  for (const glob of hostile) {
    it(`is refused with its place where it could run for hours: ${glob}`, () => {
      const places = {
        '/bundles/0/checks/0/parse/1': {
          bundles: [{ name: 'a', checks: [{ name: 'c', parse: ['ok', glob] }] }],
        },
        '/bundles/0/checks/0/change/files/0': {
          bundles: [{ name: 'a', checks: [{ name: 'c', change: { files: [glob] } }] }],
        },
        '/workers/0/when/0': worker({ load: { run: ['true'] }, when: [glob] }),
      };
      for (const [place, config] of Object.entries(places)) {
        const found = mistakes(config);
        assert.equal(found.length, 1, JSON.stringify(found));
        assert.ok(found[0]?.includes(place), found[0]);
        assert.match(found[0] ?? '', /stars|repeats a group/);
      }
    });
  }

  it('is accepted with four stars in one segment', () => {
    accepted({ bundles: [{ name: 'a', checks: [{ name: 'c', parse: ['zones/*-*-*.*'] }] }] });
  });
});
