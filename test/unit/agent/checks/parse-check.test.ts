import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { type CheckAnswer, runParseCheck } from '../../../../src/agent/checks/parse-check.js';
import type { ParseCheckConfig } from '../../../../src/core/config/config.js';
import { type Clock, systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
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
  readonly cpuMs?: (threadId: number) => number | undefined;
}

async function check({ files, config = {}, hostSchema, clock, ...others }: Setup): Promise<CheckAnswer> {
  using dir = tempDir();
  using host = tempDir();
  for (const [path, content] of Object.entries(files)) writeFileSync(dir.join(path), content);
  if (hostSchema !== undefined) writeFileSync(host.join('schema.json'), hostSchema);
  return await runParseCheck({
    config: {
      kind: 'parse',
      name: 'parse',
      files: ['*.yaml', '*.json'],
      timeoutMs: 60_000,
      maxMemoryBytes: 64_000_000,
      ...(hostSchema === undefined ? {} : { schema: host.join('schema.json') }),
      ...config,
    },
    treePath: dir.path,
    manifest: { files: Object.entries(files).map(([path, content]) => manifestFile({ path, content })) },
    clock: clock ?? systemClock,
    ...others,
  });
}

const schema = JSON.stringify({
  type: 'object',
  properties: { port: { type: 'integer' }, host: { type: 'string', format: 'ipv4' } },
  required: ['port'],
});

describe('runParseCheck', () => {
  it('accepts files that parse', longCase, async () => {
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

  it('refuses data that do not match the schema, with line, column and pointer', longCase, async () => {
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

  it('uses a schema of the bundle, and does not validate it with itself', longCase, async () => {
    const config = { schema: 'bundle:s.json' };
    const good = await check({ files: { 's.json': schema, 'a.yaml': 'port: 1\n' }, config });
    assert.equal(good.verdict.kind, 'ok');
    const bad = await check({ files: { 's.json': schema, 'a.yaml': 'x: 1\n' }, config });
    assert.equal(bad.verdict.kind, 'refused');
  });

  it(
    'refuses the bundle for its own unusable schema, and gives no verdict for a schema of the host',
    longCase,
    async () => {
      const files = { 'a.yaml': 'port: 1\n' };
      const own = { ...files, 's.json': '{"type":"strnig"}' };
      const config = { schema: 'bundle:s.json' };
      assert.equal((await check({ files: own, config })).verdict.kind, 'refused');
      assert.equal((await check({ files, config })).verdict.kind, 'refused');
      assert.equal((await check({ files, hostSchema: '{"type":"strnig"}' })).verdict.kind, 'broken');
      assert.equal((await check({ files, hostSchema: '{' })).verdict.kind, 'broken');
      const missing = await check({ files, config: { schema: '/nonexistent/schema.json' } });
      assert.equal(missing.verdict.kind, 'broken');
    },
  );

  it('names at most twenty mistakes', async () => {
    const lines = Array.from({ length: 50 }, (_, index) => `a${index}: 1\na${index}: 2\n`).join('');
    const { verdict, text } = await check({ files: { 'a.yaml': lines, 'b.yaml': lines } });
    assert.equal(verdict.kind, 'refused');
    assert.equal(text.split('\n').length, 21);
  });

  it('warns if no file matches', async () => {
    const { verdict } = await check({ files: { 'a.txt': '' } });
    assert.equal(verdict.kind, 'warned');
  });

  it('ends after an abort', async () => {
    const { verdict } = await check({ files: { 'a.yaml': '' }, signal: AbortSignal.abort() });
    assert.equal(verdict.reason, 'interrupted');
  });
});

/** A schema with a pattern that backtracks without end: only the end of the thread stops it. */
const endless = JSON.stringify({ type: 'string', pattern: '^(a+)+$' });
const stuck = { 'a.yaml': '"a"\n', 'b.yaml': `"${'a'.repeat(50)}!"\n` };
const timeoutMs = 6000;

/** The only sleep is the deadline of the check. It ends when the thread has reported that it reads this file. */
function clockUntilReading(t: TestContext, path: string): Clock {
  const clock = fakeClock();
  const { emit } = Worker.prototype;
  const reading = new Promise<void>((resolve) => {
    t.mock.method(Worker.prototype, 'emit', function (this: Worker, ...event: Parameters<typeof emit>) {
      const hasListener = emit.apply(this, event);
      if (event[0] === 'message' && (event[1] as { path?: string }).path === path) resolve();
      return hasListener;
    });
  });
  return { ...clock, sleep: () => reading };
}

describe('the cause of an ended parse check', () => {
  const refused = ({ verdict, exceeded, hint }: CheckAnswer): unknown => {
    assert.match(hint ?? '', new RegExp(`smaller or simpler ${exceeded?.file}`));
    return [verdict.kind, verdict.reason, exceeded];
  };

  it('is the release if a file needs more memory than the check may use', async () => {
    const list = `[${'"x", '.repeat(1_500_000)}"x"]`;
    const config = { maxMemoryBytes: 32_000_000 };
    assert.deepEqual(refused(await check({ files: { 'a.yaml': '1', 'b.yaml': list }, config })), [
      'refused',
      'too much memory',
      { bound: 'memory', file: 'b.yaml' },
    ]);
  });

  it('is the release if a file or its own schema is too large to parse', async () => {
    const large = Buffer.alloc(8_000_001, '#');
    const config = { maxMemoryBytes: 32_000_000 };
    const exceeded = { bound: 'memory', file: 'a.yaml' };
    assert.deepEqual((await check({ files: { 'a.yaml': large }, config })).exceeded, exceeded);
    const files = { 'b.json': '{}', 's.txt': large };
    const own = await check({ files, config: { ...config, schema: 'bundle:s.txt' } });
    assert.deepEqual(own.exceeded, { bound: 'memory', file: 's.txt' });
  });

  it('is the release if a file uses all of the processor time', longCase, async (t) => {
    const clock = clockUntilReading(t, 'b.yaml');
    const setup = { files: stuck, hostSchema: endless, config: { timeoutMs }, cpuMs: () => timeoutMs, clock };
    assert.deepEqual(refused(await check(setup)), [
      'refused',
      'too much time',
      { bound: 'time', file: 'b.yaml' },
    ]);
  });

  it('is the release if a file needs more stack than the thread has', longCase, async () => {
    const hostSchema = JSON.stringify({ type: 'string', pattern: '^(a|b)*$' });
    const files = { 'a.yaml': '"a"\n', 'b.json': `"${'a'.repeat(20_000_000)}"` };
    assert.deepEqual(refused(await check({ files, hostSchema, config: { maxMemoryBytes: 256_000_000 } })), [
      'refused',
      'too much stack',
      { bound: 'stack', file: 'b.json' },
    ]);
  });

  it('is the host, with a hint of its own, if the thread got too little or an unknown processor time', async (t) => {
    for (const cpuMs of [() => timeoutMs / 2, () => undefined]) {
      const clock = clockUntilReading(t, 'b.yaml');
      const { verdict, exceeded, hint } = await check({
        ...{ files: stuck, hostSchema: endless, config: { timeoutMs }, cpuMs, clock },
      });
      assert.deepEqual([verdict.kind, verdict.reason, exceeded], ['broken', 'timed out', undefined]);
      assert.match(hint ?? '', /keeps the host busy/);
    }
  });

  it('is the host if the time was over before the first file', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const { verdict } = await check({ files: stuck, hostSchema: endless, clock, cpuMs: () => 1e9 });
    assert.deepEqual(verdict, { kind: 'broken', reason: 'timed out' });
  });

  it('is the host if its own schema exceeds a bound', async () => {
    const many = Array.from({ length: 400_000 }, (_, index) => [`a${index}`, { type: 'string' }]);
    const huge = JSON.stringify({ properties: Object.fromEntries(many) });
    const files = { 'a.yaml': 'a: 1\n' };
    const memory = await check({ files, hostSchema: huge, config: { maxMemoryBytes: 8_000_000 } });
    assert.deepEqual([memory.verdict, memory.exceeded], [schemaUnusable, undefined]);
    assert.match(memory.hint ?? '', /Fix the schema/);
    const circle = await check({ files, hostSchema: '{"$ref":"#"}' });
    assert.deepEqual(circle.verdict, schemaUnusable);
  });
});

const schemaUnusable = { kind: 'broken', reason: 'schema unusable' };
