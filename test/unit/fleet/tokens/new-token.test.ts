// Rules of a new token: checkNewToken, the API and the command on the store refuse the same tokens.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NewToken } from '../../../../src/core/fleet/token-answers.js';
import { checkNewToken } from '../../../../src/fleet/tokens/new-token.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';
import { listeningApp } from '../../../kit/fleet/listening-app.js';

const tooMany = Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`l${at}`, '']));

const refused: readonly (readonly [name: string, wanted: object])[] = [
  ['no kind', { note: 'a' }],
  ['an unknown kind', { kind: 'root' }],
  ['an unknown role', { kind: 'people', role: 'admin' }],
  ['a role for hosts', { kind: 'hosts', role: 'operate' }],
  ['a long note', { kind: 'hosts', note: 'n'.repeat(201) }],
  ['a note that steers a terminal', { kind: 'hosts', note: 'a\u009b2J' }],
  ['no use', { kind: 'hosts', uses: 0 }],
  ['too many uses', { kind: 'hosts', uses: 1_000_001 }],
  ['uses for people', { kind: 'people', uses: 1 }],
  ['no lifetime', { kind: 'hosts', lifetimeMs: 999 }],
  ['a lifetime of eleven years', { kind: 'hosts', lifetimeMs: 11 * 366 * 86_400_000 }],
  ['an empty glob', { kind: 'hosts', hosts: '' }],
  ['a long glob', { kind: 'hosts', hosts: 'h'.repeat(256) }],
  ['a glob for OPAs', { kind: 'opa', hosts: 'a*' }],
  ['too many labels', { kind: 'hosts', labels: tooMany }],
  ['a label without a name', { kind: 'hosts', labels: { '': 'a' } }],
  ['a long label', { kind: 'hosts', labels: { site: 'v'.repeat(256) } }],
  ['a label that turns the text around it', { kind: 'hosts', labels: { site: '\u202e' } }],
  ['what is no member', { kind: 'hosts', admin: true }],
];

describe('a new token', () => {
  for (const [name, wanted] of refused)
    it(`is not made with ${name}`, () => {
      throwsCode('USAGE', () => checkNewToken(wanted as NewToken));
    });

  it('is accepted with all options of its kind, up to each bound', () => {
    const labels = Object.fromEntries(Object.entries(tooMany).slice(1));
    const text = { note: 'ü'.repeat(200), hosts: 'h'.repeat(255) };
    checkNewToken({ kind: 'hosts', uses: 1_000_000, lifetimeMs: 10 * 366 * 86_400_000, labels, ...text });
    checkNewToken({ kind: 'people', role: 'operate', lifetimeMs: 1000 });
    checkNewToken({ kind: 'opa' });
  });

  it('is refused by the API as by the rule', longCase, async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), systemClock);
    await using app = await listeningApp(bench.store);
    const { token } = await bench.token({ kind: 'people', role: 'operate' });
    for (const [name, wanted] of refused) {
      const answer = await fetch(new URL('/v1/tokens', app.url), {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(wanted),
      });
      const { code } = (await answer.json()) as { readonly code: string };
      assert.deepEqual([answer.status, code], [400, 'USAGE'], name);
    }
  });

  it('is refused by the command on the store, before anything is stored', async () => {
    using directory = tempDir(memory());
    const store = ['--store', directory.join('store')];
    const create = (...flags: readonly string[]) =>
      runWrit(['fleet', 'token', 'create', ...flags, ...store, '--json']);
    const ofHosts = ['--for', 'hosts'];
    for (const flags of [
      ['--for', 'people', '--uses', '1'],
      ['--for', 'opa', '--role', 'view'],
      [...ofHosts, '--note', 'n'.repeat(201)],
      [...ofHosts, '--hosts', ''],
      [...ofHosts, '--expires', '999ms'],
      [...ofHosts, '--expires', '4000d'],
      [...ofHosts, '--label', `site=${'v'.repeat(256)}`],
      [...ofHosts, ...Object.keys(tooMany).flatMap((name) => ['--label', `${name}=`])],
    ]) {
      const run = await create(...flags);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE'], flags.join(' ').slice(0, 60));
    }
    const listed = await runWrit(['fleet', 'token', 'list', ...store, '--json']);
    assert.deepEqual(jsonOf(listed)['tokens'], []);
  });
});
