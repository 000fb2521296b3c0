import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { type CheckAnswer, runParseCheck } from '../../../../src/agent/checks/parse-check.js';
import type { ParseCheckConfig } from '../../../../src/core/config/config.js';
import { type Clock, systemClock } from '../../../../src/platform/time/clock.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

interface Setup {
  readonly files: Readonly<Record<string, string | Buffer>>;
  readonly config?: Partial<ParseCheckConfig>;
  /** Content of a schema on the host. */
  readonly hostSchema?: string;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

async function check({ files, config = {}, hostSchema, clock, signal }: Setup): Promise<CheckAnswer> {
  using dir = tempDir();
  using host = tempDir();
  for (const [path, content] of Object.entries(files)) writeFileSync(dir.join(path), content);
  if (hostSchema !== undefined) writeFileSync(host.join('schema.json'), hostSchema);
  return await runParseCheck({
    config: {
      kind: 'parse',
      name: 'parse',
      files: ['*.yaml', '*.json'],
      timeoutMs: 20_000,
      maxMemoryBytes: 64_000_000,
      ...(hostSchema === undefined ? {} : { schema: host.join('schema.json') }),
      ...config,
    },
    treePath: dir.path,
    manifest: { files: Object.entries(files).map(([path, content]) => manifestFile({ path, content })) },
    clock: clock ?? systemClock,
    ...(signal === undefined ? {} : { signal }),
  });
}

const schema = JSON.stringify({
  type: 'object',
  properties: { port: { type: 'integer' }, host: { type: 'string', format: 'ipv4' } },
  required: ['port'],
});

describe('runParseCheck', () => {
  it('passes files that parse', async () => {
    const { verdict, text } = await check({ files: { 'a.yaml': 'a: 1\n', 'b.json': '{}', 'c.txt': ': [' } });
    assert.equal(verdict.kind, 'ok');
    assert.match(text, /2 files/);
  });

  it('refuses with file, line and column of every mistake', async () => {
    const { verdict, text } = await check({
      files: { 'a.yaml': 'a: 1\na: 2\n', 'b.json': '{\n "x": 1,\n}', 'c.yaml': 'ok: 1\n' },
    });
    assert.equal(verdict.kind, 'refused');
    assert.deepEqual(
      text.split('\n').map((line) => line.split(': ')[0]),
      ['a.yaml:2:1', 'b.json:3:1'],
    );
  });

  it('refuses what does not fit the schema, with line, column and pointer', async () => {
    const files = { 'a.yaml': 'port: 53\nhost: 10.0.0.1\n', 'b.yaml': 'host: here\nport: many\n' };
    const { verdict, text } = await check({ files, hostSchema: schema });
    assert.equal(verdict.kind, 'refused');
    assert.deepEqual(
      text
        .split('\n')
        .map((line) => line.split(' ').slice(0, 2).join(' '))
        .sort(),
      ['b.yaml:1:7: /host', 'b.yaml:2:7: /port'],
    );
  });

  it('takes a schema of the bundle, and does not hold it against itself', async () => {
    const config = { schema: 'bundle:s.json' };
    const good = await check({ files: { 's.json': schema, 'a.yaml': 'port: 1\n' }, config });
    assert.equal(good.verdict.kind, 'ok');
    const bad = await check({ files: { 's.json': schema, 'a.yaml': 'x: 1\n' }, config });
    assert.equal(bad.verdict.kind, 'refused');
  });

  it('blames the bundle for its own schema, and the host for the host’s', async () => {
    const files = { 'a.yaml': 'port: 1\n' };
    const own = { ...files, 's.json': '{"type":"strnig"}' };
    const config = { schema: 'bundle:s.json' };
    assert.equal((await check({ files: own, config })).verdict.kind, 'refused');
    assert.equal((await check({ files, config })).verdict.kind, 'refused');
    assert.equal((await check({ files, hostSchema: '{"type":"strnig"}' })).verdict.kind, 'broken');
    assert.equal((await check({ files, hostSchema: '{' })).verdict.kind, 'broken');
    const missing = await check({ files, config: { schema: '/nonexistent/schema.json' } });
    assert.equal(missing.verdict.kind, 'broken');
  });

  it('names at most twenty mistakes', async () => {
    const lines = Array.from({ length: 50 }, (_, index) => `a${index}: 1\na${index}: 2\n`).join('');
    const { verdict, text } = await check({ files: { 'a.yaml': lines, 'b.yaml': lines } });
    assert.equal(verdict.kind, 'refused');
    assert.equal(text.split('\n').length, 21);
  });

  it('warns when no file matches', async () => {
    const { verdict } = await check({ files: { 'a.txt': '' } });
    assert.equal(verdict.kind, 'warned');
  });

  it('gives no verdict when the memory does not suffice', async () => {
    const list = `[${'"x", '.repeat(1_500_000)}"x"]`;
    const config = { maxMemoryBytes: 32_000_000 };
    const parsed = await check({ files: { 'a.yaml': list }, config });
    assert.equal(parsed.verdict.kind, 'broken');
    assert.equal(parsed.verdict.reason, 'out of memory');
    const large = await check({ files: { 'a.yaml': Buffer.alloc(8_000_001, '#') }, config });
    assert.equal(large.verdict.reason, 'out of memory');
  });

  it('gives no verdict when the time is over', async () => {
    // A pattern that backtracks for ever: only the end of the thread ends it.
    const slow = JSON.stringify({ type: 'string', pattern: '^(a+)+$' });
    const files = { 'a.yaml': `"${'a'.repeat(50)}!"\n` };
    const { verdict } = await check({ files, hostSchema: slow, clock: fakeClock({ mode: 'skip' }) });
    assert.equal(verdict.kind, 'broken');
    assert.equal(verdict.reason, 'timed out');
  });

  it('ends when it is interrupted', async () => {
    const { verdict } = await check({ files: { 'a.yaml': '' }, signal: AbortSignal.abort() });
    assert.equal(verdict.reason, 'interrupted');
  });
});
