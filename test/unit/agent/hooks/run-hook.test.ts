import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { HookPlaces, HookReport } from '../../../../src/agent/hooks/hook.js';
import { runHook } from '../../../../src/agent/hooks/run-hook.js';
import { createSandbox } from '../../../../src/agent/hooks/sandbox.js';
import type { HookConfig } from '../../../../src/core/config/config.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';

const places: HookPlaces = {
  generation: '/gen/{bundle}',
  candidate: '/gen/{bundle}',
  current: '/now',
  bundle: '/tree',
};

interface HookCase {
  readonly run: HookConfig['run'];
  readonly places?: HookPlaces;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Runs a command, and asserts that it leaves no files. */
async function run({ run: argv, timeoutMs = 60_000, signal, ...rest }: HookCase): Promise<HookReport> {
  using dir = tempDir();
  const report = await runHook({
    hook: { run: argv, timeoutMs },
    places: rest.places ?? places,
    scratchRoot: dir.path,
    durable: createDurableFs(),
    ...(signal === undefined ? {} : { signal }),
  });
  assert.deepEqual(readdirSync(dir.path), [], 'the scratch directory is left');
  return report;
}

function shell(script: string, ...args: string[]): HookConfig['run'] {
  return ['sh', '-c', script, 'sh', ...args];
}

describe('runHook', () => {
  it('expands placeholders once, anywhere in an argument', async () => {
    const { verdict, text } = await run({
      run: ['printf', '%s|', '{candidate}/a', '{current}', 'x={bundle}', '{other}', '{'],
    });
    assert.equal(verdict.kind, 'ok');
    assert.equal(text, '/gen/{bundle}/a|/now|x=/tree|{other}|{|');
  });

  it('passes a cleared environment', async () => {
    process.env['WRIT_TEST_SECRET'] = 'secret';
    const { text } = await run({ run: ['env'] });
    delete process.env['WRIT_TEST_SECRET'];
    const names = text.split('\n').map((line) => line.split('=')[0]);
    assert.deepEqual(names.sort(), [
      'LANG',
      'PATH',
      'WRIT_BUNDLE_DIR',
      'WRIT_GENERATION_DIR',
      'WRIT_SCRATCH_DIR',
    ]);
    assert.ok(text.includes('WRIT_GENERATION_DIR=/gen/{bundle}\n'));
  });

  it('starts in a private empty directory, which is the scratch directory', async () => {
    const script =
      '[ "$(pwd)" = "$1" ] && [ "$1" = "$WRIT_SCRATCH_DIR" ] && stat -c %a . && ls -A && touch new';
    const { verdict, text } = await run({ run: shell(script, '{scratch}') });
    assert.equal(verdict.kind, 'ok');
    assert.equal(text, '700');
  });

  it('shows an empty directory as {current} before the first activation', async () => {
    const { verdict } = await run({
      run: shell('[ -d "$1" ] && [ -z "$(ls -A "$1")" ]', '{current}'),
      places: { generation: '/gen' },
    });
    assert.equal(verdict.kind, 'ok');
  });

  it('returns no verdict for a placeholder without a value', async () => {
    const { verdict } = await run({ run: ['true', '{bundle}'], places: { generation: '/gen' } });
    assert.equal(verdict.kind, 'broken');
    assert.match(verdict.reason, /\{bundle\}/);
  });

  it('returns no verdict for a misspelled placeholder, and keeps other words in braces', async () => {
    const { verdict } = await run({ run: ['true', '-c', 'x={bundel}/a'] });
    assert.equal(verdict.kind, 'broken');
    assert.match(verdict.reason, /unknown placeholder \{bundel\}; did you mean \{bundle\}\?/);
    const { text } = await run({ run: ['printf', '%s|', '{print}', '$'.concat('{curent}'), '{}'] });
    assert.equal(text, ['{print}', '$', '{curent}', '{}|'].join('|').replace('$|', '$'));
  });

  it('reports both streams, without control characters', async () => {
    const { text, verdict } = await run({ run: shell("printf 'out\\033[31m\\n'; echo err >&2; exit 3") });
    assert.equal(verdict.kind, 'refused');
    assert.equal(text, 'out[31m\n\nerr');
  });

  it('reports the end of a command without output', async () => {
    assert.equal((await run({ run: shell('exit 7') })).text, 'exit 7');
  });

  it('keeps 64 kB of output', async () => {
    const { text } = await run({ run: shell('head -c 1000000 /dev/zero | tr "\\0" x') });
    assert.equal(text.length, 65_536 + '\n[more output omitted]'.length);
  });

  it('returns a verdict for each kind of end', async () => {
    const kindOf = async (script: string): Promise<string> =>
      (await run({ run: shell(script) })).verdict.kind;
    assert.equal(await kindOf('exit 40'), 'warned');
    assert.equal(await kindOf('exit 75'), 'deferred');
    assert.equal(await kindOf('exit 126'), 'broken');
    assert.equal(await kindOf('kill -SEGV $$'), 'broken');
    assert.equal((await run({ run: ['/nonexistent/check'] })).verdict.kind, 'broken');
  });

  it('ends a command with all its children at the deadline', async () => {
    const { verdict } = await run({ run: shell('sleep 600 & sleep 600'), timeoutMs: 200 });
    assert.equal(verdict.kind, 'broken');
    assert.equal(verdict.reason, 'timed out');
  });

  it('ends when it is interrupted', async () => {
    const { verdict } = await run({ run: ['sleep', '60'], signal: AbortSignal.abort() });
    assert.equal(verdict.reason, 'interrupted');
  });

  it('ends a confined command that fills the disk, without a verdict', {
    ...needs('bwrap', 'bubblewrap'),
    ...longCase,
  }, async () => {
    using dir = tempDir();
    for (const name of ['policy', 'staging']) mkdirSync(dir.join(name));
    let bytes = 1e9;
    const report = await runHook({
      hook: { run: shell('sleep 600 & sleep 600'), timeoutMs: 600_000 },
      places,
      scratchRoot: dir.join('staging'),
      durable: createDurableFs(),
      confine: {
        sandbox: createSandbox({ mode: 'required', log: silentLog() }),
        paths: { state: dir.path, policy: dir.join('policy'), run: '/run/writ' },
        view: { kind: 'live' },
        readers: [],
      },
      readFree: () => {
        bytes /= 4;
        return { bytes };
      },
    });
    assert.equal(report.verdict.kind, 'broken');
    assert.match(report.verdict.reason, /half of the free disk space/);
    assert.deepEqual(readdirSync(dir.join('staging')), []);
  });
});
