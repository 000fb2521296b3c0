// Each command and each service of `writ` on a stdout or stderr that accepts no text. The effect and the exit code of a
// command are compared with the same command on streams that accept everything.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { commands as table } from '../../../src/cli/run.js';
import { sampled } from '../../kit/assert/sample.js';
import { prepareWalk, walkedCommands } from '../../kit/cli/command-walk.js';
import { type LossyStreams, runLossyWrit } from '../../kit/cli/lossy-text.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { lossesOfServices, runLossyService, services } from './lossy-services.js';

const places = '--repository repo --keys keys';
const host = '--config agent.yaml';

/** Commands that the list of all commands lacks: a second release, its rollback, and its withdrawal. */
const moves: readonly (readonly [name: string, rest: string])[] = [
  ['publish', `source-2 ${places} --bundle dns-edge`],
  ['pull', host],
  ['rollback', host],
  ['resume', host],
  ['pull', `${host} --json --verbose`],
  ['withdraw', `${places} --bundle dns-edge --serial 2`],
  ['pull', host],
  ['refusals', `forget ${host}`],
  ['verify', `--repair ${host}`],
  ['status', `${host} --json`],
  ['history', `${host} --json`],
  ['pull', '--help'],
];

const everywhere: readonly LossyStreams[] = [
  ...(['closed', 'full', 'gone'] as const).flatMap((loss) => [
    { stdout: loss },
    { stderr: loss },
    { stdout: loss, stderr: loss },
  ]),
];
/** The narration of a release has so many lines at most. */
const someLines: readonly LossyStreams[] = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((lines) => [
  { stderr: 'gone', lines },
  ...(lines % 3 === 0 ? [{ stdout: 'gone' as const, stderr: 'gone' as const, lines }] : []),
]);
const narrated = new Set(['publish', 'pull', 'rollback', 'withdraw']);

interface CommandCase {
  readonly step: number;
  readonly streams: LossyStreams;
}

const steps = [...walkedCommands, ...moves].map(([name, rest]) => ({
  name,
  args: [...name.split(' '), ...rest.split(' ')],
}));

const commandCases: readonly CommandCase[] = steps.flatMap(({ name }, step) =>
  [...everywhere, ...(narrated.has(name) && step >= walkedCommands.length ? someLines : [])].map(
    (streams) => ({ step, streams }),
  ),
);
const serviceCases = services.flatMap((service) => lossesOfServices.map((streams) => ({ service, streams })));
const chosen = sampled([...commandCases, ...serviceCases]);

/** Commands that change something, so that their output is not their only purpose. */
const acting = new Set([
  ...['init', 'publish', 'withdraw', 'promote', 'delegate', 'refresh', 'key new', 'key passphrase', 'sign'],
  ...['root rotate', 'root commit', 'repo gc', 'repo export', 'pull', 'rollback', 'pause', 'resume'],
  'reload',
]);
const actingFlags = new Set(['forget', '--repair']);
/** Exit codes of a failure where 1 has another meaning: a difference or an alarm. */
const failureExitCodes: Readonly<Record<string, number>> = { diff: 2, 'fleet status': 3 };

/** @returns the expected exit code of a command on such streams, from its usual one */
function expectedExitCode({ step, streams }: CommandCase, own: number | null): number | null {
  const { name = '', args = [] } = steps[step] ?? {};
  // Node opens /dev/null in place of a closed stream, and nothing is lost then as far as a program can see.
  const isLost = streams.stdout === 'full' || (streams.stdout === 'gone' && (streams.lines ?? 0) === 0);
  const acts = acting.has(name) || args.some((arg) => actingFlags.has(arg));
  if (own !== 0 || !isLost) return own;
  if (acts && !args.includes('--dry-run') && !args.includes('--help')) return own;
  return failureExitCodes[name] ?? 1;
}

/** The effect of a command: names of files without random ones, and the active policy. */
function effectOf(dir: TempDir): Readonly<Record<string, unknown>> {
  const namesIn = (...path: string[]): string[] => {
    const folder = dir.join(...path);
    return fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
  };
  const current = dir.join('state/policy/current');
  return {
    files: namesIn(),
    metadata: namesIn('repo', 'metadata'),
    generations: namesIn('state', 'policy', 'generations'),
    state: namesIn('state'),
    current: fs.existsSync(current) ? fs.readlinkSync(current) : 'none',
  };
}

describe('a command on a stream that takes no text', () => {
  it('has the same effect, and fails only when its output is its only purpose', async (test) => {
    using place = tempDir();
    using kept = tempDir();
    const work = place.join('work');
    fs.mkdirSync(work);
    const dir: TempDir = { ...place, path: work, join: (...parts) => place.join('work', ...parts) };
    prepareWalk(dir);
    writeTree(dir.join('source-2'), { 'block.rpz': 'two\n' });
    // Links stay what they are.
    const copy = (from: string, to: string): void => {
      fs.rmSync(to, { recursive: true, force: true });
      execFileSync('cp', ['-a', from, to]);
    };
    const save = (name: string): void => copy(work, kept.join(name));
    const restore = (name: string): void => copy(kept.join(name), work);
    const cases = chosen.filter((one): one is CommandCase => 'step' in one);
    for (const [step, { args }] of steps.entries()) {
      const here = cases.filter((one) => one.step === step);
      if (here.length > 0) save('before');
      const { exitCode: own } = await runWrit(args, { cwd: work });
      if (here.length === 0) continue;
      const effect = effectOf(dir);
      save('after');
      await test.test(`writ ${args.join(' ')}`, async () => {
        for (const one of here) {
          restore('before');
          const { exitCode } = await runLossyWrit(args, { cwd: work, streams: one.streams });
          const what = JSON.stringify(one.streams);
          assert.equal(exitCode, expectedExitCode(one, own), what);
          assert.deepEqual(effectOf(dir), effect, what);
        }
      });
      restore('after');
    }
    test.diagnostic(`${cases.length} of ${commandCases.length} commands on such streams`);
  });

  it('is each command that ends by itself', () => {
    const ended = table
      .map(({ name }) => name)
      .filter((name) => !['agent', 'serve', 'fleet serve'].includes(name));
    assert.deepEqual([...new Set(steps.map(({ name }) => name))].sort(), ended.sort());
  });
});

describe('a service on a stream that takes no text', () => {
  for (const one of chosen) {
    if (!('service' in one)) continue;
    const streams = JSON.stringify(one.streams);
    it(`does its work and ends with 0: writ ${one.service} ${streams}`, () =>
      runLossyService(one.service, one.streams));
  }
});
