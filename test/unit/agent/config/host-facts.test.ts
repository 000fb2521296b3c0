import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createHostFactSource } from '../../../../src/agent/config/host-facts.js';
import { checkConfig, loadConfig, loadForAgent } from '../../../../src/agent/config/load-config.js';
import { examineConfiguration } from '../../../../src/agent/doctor/check-host.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { logLines } from '../../../kit/assert/log-lines.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('the check of programs and files that a configuration names', () => {
  it('finds a program by its name in the directories of an agent, and by its path', () => {
    using dir = tempDir();
    const [program, text] = [dir.join('ask'), dir.join('text')];
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(text, '');
    chmodSync(text, 0o644);
    mkdirSync(dir.join('sub'));
    const facts = createHostFactSource(`/nowhere:${dir.path}`);
    for (const known of ['ask', program]) assert.equal(facts.program(known), undefined);
    for (const unknown of ['other', 'text', 'sub', text, dir.path, dir.join('other')])
      assert.match(facts.program(unknown) ?? '', new RegExp(unknown), unknown);
  });

  it('reports files of authorities that no connection could use', () => {
    using dir = tempDir();
    const path = dir.join('ca.pem');
    assert.match(createHostFactSource().authorities(path) ?? '', /^there is no /);
    writeFileSync(path, '');
    assert.equal(createHostFactSource().authorities(path), `${path} cannot be used: it is empty`);
  });

  it('finds files and directories', () => {
    using dir = tempDir();
    const facts = createHostFactSource();
    assert.deepEqual([facts.file(dir.path), facts.directory(dir.path)], [undefined, undefined]);
    assert.match(facts.file(dir.join('a')) ?? '', /there is no .*a$/);
    assert.match(facts.directory(dir.join('a')) ?? '', /there is no directory/);
  });
});

describe('the check of a group of users', () => {
  it('accepts groups of the system, and names how to write one of a directory service', () => {
    assert.equal(createHostFactSource().group('root'), undefined);
    assert.match(createHostFactSource().group('no-such-group') ?? '', /no-such-group/);
  });
});

describe('#checkConfig', () => {
  it('refuses a group with the right to read that does not exist; a start logs it, and doctor reports it', () => {
    using dir = tempDir();
    const path = dir.join('agent.yaml');
    const config = { repository: 'https://a/', bundles: [{ name: 'a' }], read: { group: 'no-such-group' } };
    writeFileSync(path, JSON.stringify(config));
    const { message } = throwsCode('CONFIG_INVALID', () => checkConfig(path));
    assert.match(message, /\/read\/group: .*no-such-group/);
    assert.equal(examineConfiguration(path).judged.state, 'FAIL');
    const log = logLines();
    assert.equal(loadForAgent(path, log.log).config.read?.group, 'no-such-group');
    assert.match(JSON.stringify(log.named('configuration: see writ config check')), /no-such-group/);
  });

  it('reports warnings and errors of a start together, in the order of the file', () => {
    using dir = tempDir();
    const path = dir.join('agent.yaml');
    const head =
      'repository: https://a/\nroot: /dev/null\nbundles:\n  - name: a\n    checks: [{ name: c, run: [no-such-program, "{candiate}"] }]\n';
    writeFileSync(path, head);
    assert.equal(loadConfig(path).tolerated.length, 1, 'nothing of the host is searched');
    const { facts } = throwsCode('CONFIG_INVALID', () => checkConfig(path));
    const places = (given: unknown) =>
      (given as { line: number; pointer: string }[]).map(({ line, pointer }) => [line, pointer]);
    const run = '/bundles/0/checks/0/run';
    assert.deepEqual(places(facts['mistakes']), [
      [5, `${run}/0`],
      [5, `${run}/1`],
    ]);
    writeFileSync(path, `${head}unheard: 5\n`);
    assert.equal(places(throwsCode('CONFIG_INVALID', () => checkConfig(path)).facts['mistakes']).length, 3);
    assert.equal(places(throwsCode('CONFIG_INVALID', () => loadConfig(path)).facts['mistakes']).length, 1);
  });
});

describe('a program that the sandbox runs as an unprivileged user', {
  skip: process.getuid?.() !== 0,
}, () => {
  it('is reported if other users cannot execute it or traverse a directory above it', () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const program = dir.join('ask');
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 });
    const facts = createHostFactSource();
    assert.match(facts.programForUnprivilegedUser?.(program) ?? '', /may not execute .*\/ask$/);
    chmodSync(program, 0o755);
    assert.equal(facts.programForUnprivilegedUser?.(program), undefined);
    chmodSync(dir.path, 0o700);
    assert.match(facts.programForUnprivilegedUser?.(program) ?? '', /may not execute /);
    assert.equal(facts.programForUnprivilegedUser?.('sh'), undefined);
  });

  it('is not reported a second time if it does not exist', () => {
    assert.equal(createHostFactSource().programForUnprivilegedUser?.('/nonexistent/ask'), undefined);
  });
});
