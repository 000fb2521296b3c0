import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { describe, it } from 'node:test';
import { hostId, loadConfig, validateCron } from '../../src/agent/load-config.js';
import type { ConfigMistake } from '../../src/core/config-errors.js';
import { driverKinds } from '../../src/workers/registry.js';
import { throwsCode } from '../support/assert-code.js';
import { tempDir } from '../support/temp-dir.js';

const minimal = 'repository: https://policy.example.net/\nbundles: [{ name: dns-edge }]\n';

describe('the configuration of a host', () => {
  it('is read from its file', () => {
    using folder = tempDir();
    const path = folder.join('agent.yaml');
    writeFileSync(path, minimal);
    const { config, given } = loadConfig(path);
    assert.equal(config.state, '/var/lib/writ');
    assert.equal(config.host.id, hostId('/etc/machine-id'));
    assert.deepEqual(given, ['/repository', '/bundles']);
  });

  it('that is not there or no file is CONFIG_UNREADABLE', () => {
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

describe('a cron expression', () => {
  it('of five fields in a zone that exists is a schedule', () => {
    assert.equal(validateCron('*/5 * * * *', 'Europe/Berlin'), undefined);
    assert.equal(validateCron('*/5 * * * *', undefined), undefined);
  });

  it('that is none says why', () => {
    assert.match(validateCron('61 * * * *', undefined) ?? '', /minute/);
    assert.match(validateCron('* * *', undefined) ?? '', /fields/);
    assert.match(validateCron('* * * * *', 'Mars/Olympus') ?? '', /Mars/);
  });
});

describe('the id of a host', () => {
  it('is its machine id, or its name where that file has none', () => {
    using folder = tempDir();
    const path = folder.join('machine-id');
    assert.equal(hostId(path), hostname());
    writeFileSync(path, 'uninitialized\n');
    assert.equal(hostId(path), hostname());
    writeFileSync(path, '0123456789abcdef0123456789abcdef\n');
    assert.equal(hostId(path), '0123456789abcdef0123456789abcdef');
  });
});
