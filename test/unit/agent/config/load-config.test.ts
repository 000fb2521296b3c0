import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import {
  changeOfFile,
  hostIdOf,
  loadConfig,
  loadForAgent,
  loadToAct,
  validateCron,
} from '../../../../src/agent/config/load-config.js';
import type { ConfigMistake } from '../../../../src/core/config/config-errors.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { driverKinds } from '../../../../src/workers/registry.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const minimal = 'repository: https://policy.example.net/\nbundles: [{ name: dns-edge }]\n';

/** A host on which each named file, directory and program exists. */
const anything = {
  program: () => undefined,
  file: () => undefined,
  authorities: () => undefined,
  directory: () => undefined,
  group: () => undefined,
};

describe('the configuration of a host', () => {
  it('is read from its file', () => {
    using folder = tempDir();
    const path = folder.join('agent.yaml');
    writeFileSync(path, minimal);
    const { config, given } = loadConfig(path);
    assert.equal(config.state, '/var/lib/writ');
    assert.equal(config.host.id, hostIdOf(hostname()));
    assert.deepEqual(given, ['/repository', '/bundles']);
  });

  it('that does not exist or is not a file is CONFIG_UNREADABLE', () => {
    using folder = tempDir();
    throwsCode('CONFIG_UNREADABLE', () => loadConfig(folder.join('none.yaml')));
    throwsCode('CONFIG_UNREADABLE', () => loadConfig(folder.path));
  });

  for (const [code, text, count] of [
    ['CONFIG_SYNTAX', 'a: [', 1],
    ['CONFIG_INVALID', 'a: 1\nb: 2', 4],
    ['CONFIG_INVALID', `${minimal}socket: /${'s'.repeat(107)}\na: 1`, 2],
    ['SOCKET_PATH_TOO_LONG', `${minimal}socket: /${'s'.repeat(107)}`, 1],
    ['CONFIG_SYNTAX', `#${'x'.repeat(2_000_000)}`, 1],
  ] as const) {
    it(`with mistakes is ${code} with all ${count} of them: ${text.slice(0, 20)}`, () => {
      using folder = tempDir();
      const path = folder.join('agent.yaml');
      writeFileSync(path, text);
      const error = throwsCode(code, () => loadConfig(path));
      const { mistakes } = error.facts as unknown as { readonly mistakes: readonly ConfigMistake[] };
      assert.equal(mistakes.length, count);
      assert.equal(error.message.split('\n').length, 1 + count);
    });
  }
});

describe('the options of a driver', () => {
  for (const { name } of driverKinds) {
    it(`${name} are judged by a schema that compiles`, () => {
      using folder = tempDir();
      const path = folder.join('agent.yaml');
      writeFileSync(path, `${minimal}workers: [{ name: w, uses: [dns-edge], reset: { ${name}: null } }]\n`);
      const error = throwsCode('CONFIG_INVALID', () => loadConfig(path));
      assert.match(error.message, new RegExp(`/workers/0/reset/${name}: must be`));
    });
  }
});

describe('driver options without a schema rule', () => {
  /** @param group keys of a group that uses dns-edge, one a line */
  function mistakesOf(...group: readonly string[]): readonly ConfigMistake[] {
    using folder = tempDir();
    const path = folder.join('agent.yaml');
    const first = '  - { name: good, uses: [dns-edge], reset: { native: good } }';
    const lines = group.map((line) => `    ${line}`);
    const bad = ['  - name: bad', '    uses: [dns-edge]', ...lines];
    writeFileSync(path, [`${minimal}workers:`, first, ...bad, ''].join('\n'));
    try {
      loadConfig(path);
      return [];
    } catch (error) {
      return (error as { facts: { mistakes: readonly ConfigMistake[] } }).facts.mistakes;
    }
  }
  const placesOf = (found: readonly ConfigMistake[]) => found.map((one) => [one.code, one.line, one.pointer]);

  for (const reset of [
    '{ run: [rndc, "{bundle}"] }',
    '{ http: "http://anna@127.0.0.1/reload" }',
    '{ supervisord: /run/s.sock }',
    '{ line: /run/l.sock, send: reload, expectMatch: "(" }',
  ]) {
    it(`is a mistake with its line: ${reset}`, () => {
      const found = mistakesOf(`reset: ${reset}`);
      assert.deepEqual(placesOf(found), [['CONFIG_INVALID', 7, '/workers/1/reset']]);
    });
  }

  it('is a mistake where the path of its socket is too long', () => {
    const found = mistakesOf(`reset: { kresd: "/${'s'.repeat(107)}/*", command: x, expect: x }`);
    assert.deepEqual(placesOf(found), [['SOCKET_PATH_TOO_LONG', 7, '/workers/1/reset']]);
  });

  it('is reported together with the mistakes of other groups', () => {
    const worse = '\n  - { name: worse, uses: [dns-edge], rest: {} }';
    const found = mistakesOf(`reset: { supervisord: /run/s.sock }${worse}`);
    const pointers = found.map(({ line, pointer }) => `${line} ${pointer}`);
    assert.deepEqual(pointers, ['7 /workers/1/reset', '8 /workers/2/rest', '8 /workers/2/rest']);
  });

  it('include whether it can restart a worker', () => {
    const dead = mistakesOf('reset: { signal: HUP, pidFile: /run/d.pid }', 'onDead: restart');
    assert.deepEqual(placesOf(dead), [['CONFIG_INVALID', 8, '/workers/1/onDead']]);
    const asked = mistakesOf('reset: { signal: HUP, pidFile: /run/d.pid }', 'when: { restart: ["*"] }');
    assert.deepEqual(placesOf(asked), [['CONFIG_INVALID', 8, '/workers/1/when/restart']]);
    assert.deepEqual(mistakesOf('reset: { systemd: named.service }', 'onDead: restart'), []);
  });
});

describe('a cron expression', () => {
  it('of five fields in a zone that exists is a schedule', () => {
    assert.equal(validateCron('*/5 * * * *', 'Europe/Berlin'), undefined);
    assert.equal(validateCron('*/5 * * * *', undefined), undefined);
  });

  it('that is invalid is refused with the reason', () => {
    assert.match(validateCron('61 * * * *', undefined) ?? '', /minute/);
    assert.match(validateCron('* * *', undefined) ?? '', /fields/);
    assert.match(validateCron('* * * * *', 'Mars/Olympus') ?? '', /Mars/);
  });
});

describe('the id of a host', () => {
  it('is its name, as far as an id may contain it, and never a secret id of the machine', () => {
    assert.equal(hostIdOf('edge-fra1-03.example.net'), 'edge-fra1-03.example.net');
    assert.equal(hostIdOf('(none)'), 'none-');
    assert.equal(hostIdOf('kö ln'), 'k--ln');
    assert.equal(hostIdOf('x'.repeat(200)).length, 128);
    for (const name of ['', '---']) assert.equal(hostIdOf(name), 'host');
  });
});

describe('a configuration file that an agent has read', () => {
  it('counts as changed after any change of its text, and after its removal', () => {
    using folder = tempDir();
    const path = folder.join('agent.yaml');
    writeFileSync(path, minimal);
    const { digest } = loadConfig(path);
    assert.equal(changeOfFile(path, digest), undefined);
    writeFileSync(path, `${minimal}# mended\n`);
    assert.equal(changeOfFile(path, digest)?.code, 'CONFIG_CHANGED');
    writeFileSync(path, minimal);
    assert.equal(changeOfFile(path, digest), undefined);
    rmSync(path);
    assert.match(changeOfFile(path, digest)?.message ?? '', /^the agent continues, but .* it is not there$/);
  });
});

describe('the configuration of a root agent', { skip: process.getuid?.() !== 0 }, () => {
  const load = (path: string) => loadForAgent(path, silentLog(), anything).config;

  it('is refused where other users can write or replace it', () => {
    using folder = tempDir();
    const path = folder.join('agent.yaml');
    const change: Readonly<Record<string, () => void>> = {
      'mode of the file': () => chmodSync(path, 0o666),
      group: () => chmodSync(path, 0o664),
      owner: () => chownSync(path, 12345, 0),
      directory: () => chmodSync(folder.path, 0o777),
      link: () => {
        mkdirSync(folder.join('open'));
        chmodSync(folder.join('open'), 0o777);
        renameSync(path, folder.join('open', 'agent.yaml'));
        symlinkSync(folder.join('open', 'agent.yaml'), path);
      },
    };
    for (const [what, act] of Object.entries(change)) {
      rmSync(path, { force: true });
      writeFileSync(path, minimal, { mode: 0o644 });
      chmodSync(folder.path, 0o755);
      assert.equal(load(path).state, '/var/lib/writ');
      act();
      throwsCode('PATH_UNSAFE', () => load(path));
      throwsCode('PATH_UNSAFE', () => loadToAct(path));
      assert.equal(loadConfig(path).config.state, '/var/lib/writ', what);
    }
  });
});
