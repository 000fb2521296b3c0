import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  type CheckResult,
  type CheckSubject,
  type RunChecksOptions,
  runChecks,
} from '../../../../src/agent/checks/run-checks.js';
import type { BundleConfig, CheckConfig } from '../../../../src/core/config/config.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

const check = (name: string, script: string): CheckConfig => ({
  kind: 'run',
  name,
  run: ['sh', '-c', script, 'sh', '{candidate}', '{bundle}', '{current}'],
  timeoutMs: 60_000,
});

function subject(dir: TempDir, name: string, checks: BundleConfig['checks']): CheckSubject {
  const treePath = dir.join('trees', name);
  fs.mkdirSync(treePath, { recursive: true });
  fs.writeFileSync(join(treePath, 'a.yaml'), 'a: 1\n');
  fs.mkdirSync(dir.join('candidate'), { recursive: true });
  fs.symlinkSync(treePath, dir.join('candidate', name));
  const manifest = { files: [manifestFile({ path: 'a.yaml', content: 'a: 1\n' })] };
  const config: BundleConfig = { name, channel: 'stable', checks, mode: 0o644 };
  const base = { kind: 'exempt', reason: 'first release' } as const;
  return { config, treePath, manifest, changed: true, base };
}

interface Bundles {
  readonly [name: string]: BundleConfig['checks'];
}

async function run(bundles: Bundles, changes: Partial<RunChecksOptions> = {}): Promise<CheckResult> {
  using dir = tempDir();
  const subjects = Object.entries(bundles).map(([name, checks]) => subject(dir, name, checks));
  fs.mkdirSync(dir.join('scratch'), { mode: 0o700 });
  return await runChecks({
    bundles: subjects,
    candidatePath: dir.join('candidate'),
    scratchRoot: dir.join('scratch'),
    durable: createDurableFs(),
    clock: systemClock,
    log: silentLog(),
    ...changes,
  });
}

function codesOf({ problems }: CheckResult): Record<string, string> {
  return Object.fromEntries([...problems].map(([bundle, { code }]) => [bundle, code]));
}

describe('runChecks', () => {
  it('runs every check of every bundle and reports each', longCase, async () => {
    const result = await run({
      one: [check('a', 'cat "$1/one/a.yaml" "$2/a.yaml"'), check('b', 'exit 40')],
      two: [{ kind: 'parse', name: 'c', files: ['*.yaml'], timeoutMs: 60_000, maxMemoryBytes: 64_000_000 }],
    });
    assert.deepEqual(
      result.reports.map(({ bundle, name, verdict }) => [bundle, name, verdict.kind]),
      [
        ['one', 'a', 'ok'],
        ['one', 'b', 'warned'],
        ['two', 'c', 'ok'],
      ],
    );
    assert.equal(result.reports[0]?.text, 'a: 1\na: 1');
    assert.deepEqual(codesOf(result), {});
  });

  it('runs only the checks of each bundle on it', async () => {
    const result = await run({
      good: [check('a', 'exit 0')],
      bad: [check('a', 'echo zone is broken; exit 1')],
      later: [check('a', 'exit 75')],
      lost: [check('a', 'exit 127')],
    });
    assert.deepEqual(codesOf(result), { bad: 'CHECK_FAILED', later: 'CHECK_DEFERRED', lost: 'CHECK_BROKEN' });
    const { facts } = result.problems.get('bad') ?? assert.fail();
    assert.equal(facts['check'], 'a');
    assert.equal(facts['output'], 'zone is broken');
  });

  it('refuses a file that exceeds a bound, and names bound and file', async () => {
    const tiny = {
      kind: 'parse',
      name: 'c',
      files: ['*.yaml'],
      timeoutMs: 60_000,
      maxMemoryBytes: 10,
    } as const;
    const result = await run({ one: [tiny] });
    const { code, facts, hint, message } = result.problems.get('one') ?? assert.fail();
    assert.deepEqual([code, facts['bound'], facts['file']], ['CHECK_FAILED', 'memory', 'a.yaml']);
    assert.match(message, /too much memory\): a\.yaml$/);
    assert.match(hint, /simpler a\.yaml, or raise `memory` of the check/);
  });

  it('has the hint once, outside the message', async () => {
    const unusable = {
      kind: 'parse',
      name: 'c',
      files: ['*.yaml'],
      schema: '/nonexistent/schema.json',
      timeoutMs: 60_000,
      maxMemoryBytes: 64_000_000,
    } as const;
    const result = await run({ one: [unusable] });
    const { code, hint, message } = result.problems.get('one') ?? assert.fail();
    assert.equal(code, 'CHECK_BROKEN');
    assert.match(hint, /Fix the schema on this host/);
    assert.doesNotMatch(message, /Fix the schema/);
  });

  it('continues after a refusal, which outweighs a broken or deferring check', async () => {
    const result = await run({
      one: [check('a', 'exit 75'), check('b', 'exit 1'), check('c', 'exit 99'), check('d', 'exit 0')],
      two: [check('a', 'exit 75'), check('b', 'exit 99')],
    });
    assert.equal(result.reports.length, 6);
    assert.deepEqual(codesOf(result), { one: 'CHECK_FAILED', two: 'CHECK_BROKEN' });
    assert.equal(result.problems.get('one')?.facts['check'], 'b');
  });

  it('gives the active generation to commands', async () => {
    using current = tempDir();
    fs.writeFileSync(current.join('mark'), 'active');
    const result = await run({ one: [check('a', 'cat "$3/mark"')] }, { currentPath: current.path });
    assert.equal(result.reports[0]?.text, 'active');
  });

  const tampering: Readonly<Record<string, string>> = {
    'writes into a file': 'echo x >> "$2/a.yaml"',
    'writes the same bytes and puts the time back':
      't=$(stat -c %Y "$2/a.yaml"); printf "b: 2\\n" > "$2/a.yaml"; touch -d "@$t" "$2/a.yaml"',
    'adds a file': 'touch "$2/new"',
    'removes a file': 'rm "$2/a.yaml"',
    'replaces a file': 'cp "$2/a.yaml" copy; rm "$2/a.yaml"; cp copy "$2/a.yaml"',
    'changes a mode': 'chmod 600 "$2/a.yaml"',
    'removes the tree': 'rm -r "$2"',
  };
  for (const [name, script] of Object.entries(tampering)) {
    it(`detects that a check ${name}, even if it refuses`, async () => {
      const result = await run({ one: [check('a', `${script}; exit 1`)], two: [check('a', 'exit 0')] });
      assert.deepEqual(codesOf(result), { one: 'CANDIDATE_CHANGED' });
    });
  }

  it('reports a change of the candidate directory for every bundle', async () => {
    const result = await run({
      one: [check('a', 'ln -sfn /etc "$1/two"')],
      two: [check('a', 'exit 0')],
    });
    assert.deepEqual(codesOf(result), { one: 'CANDIDATE_CHANGED', two: 'CANDIDATE_CHANGED' });
  });

  it('reads nothing without a check', async () => {
    const result = await run({ one: [] }, { candidatePath: '/nonexistent' });
    assert.deepEqual(result.reports, []);
    assert.equal(result.problems.size, 0);
  });

  it('throws after an abort', async () => {
    const signal = AbortSignal.abort();
    await assert.rejects(run({ one: [check('a', 'exit 0')] }, { signal }), { code: 'INTERRUPTED' });
  });
});
