// First sync of policy-10k: `writ pull` from a directory (fetch, verify, unpack, flush, swap) beside GNU tar, which
// checks and flushes nothing, in one run. Prints seconds, peak memory and ratios; asserts no time.
//   npm run build && node dist/bench/first-sync.js
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { policy10k, writePolicyTree } from './policy-tree.js';

const rounds = 3;
const work = mkdtempSync(join(tmpdir(), 'writ-bench-'));
const writ = join(import.meta.dirname, '..', 'src', 'cli', 'main.js');

interface Measured {
  readonly seconds: number;
  /** Peak of the process itself, megabytes. */
  readonly megabytes: number;
}

/** @returns seconds */
function run(program: string, args: readonly string[]): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1e8 });
  const seconds = (performance.now() - started) / 1000;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: exit ${status}\n${stderr}`);
  return seconds;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function pull(round: number): Measured {
  const state = join(work, `state-${round}`);
  const config = join(work, `agent-${round}.yaml`);
  const peak = join(work, `peak-${round}`);
  writeFileSync(
    config,
    [
      `repository: file://${work}/repo/`,
      `root: ${work}/repo/metadata/1.root.json`,
      `state: ${state}`,
      `run: ${join(work, `run-${round}`)}`,
      'bundles:',
      '  - { name: policy-10k, channel: stable }',
    ].join('\n'),
  );
  // The last thing the process does is to note its own peak.
  const note = `data:text/javascript,import{writeFileSync}from'node:fs';process.on('exit',()=>writeFileSync(${JSON.stringify(peak)},String(process.resourceUsage().maxRSS)))`;
  const seconds = run(process.execPath, ['--import', note, writ, 'pull', '--config', config]);
  return { seconds, megabytes: Number(readFileSync(peak, 'utf8')) / 1024 };
}

function untar(round: number): number {
  const directory = join(work, `tar-${round}`);
  mkdirSync(directory);
  return run('tar', ['xzf', join(work, 'policy.tar.gz'), '-C', directory]);
}

try {
  const source = join(work, 'source');
  writePolicyTree(source, policy10k);
  const keys = ['--repository', join(work, 'repo'), '--keys', join(work, 'keys')];
  run(process.execPath, [writ, 'init', ...keys, '--no-passphrase']);
  const published = run(process.execPath, [writ, 'publish', source, ...keys, '--bundle', 'policy-10k']);
  run('tar', ['czf', join(work, 'policy.tar.gz'), '-C', source, '.']);
  const pulls: Measured[] = [];
  const untars: number[] = [];
  // In turn, so that both meet the same machine.
  for (let round = 0; round < rounds; round++) {
    untars.push(untar(round));
    pulls.push(pull(round));
  }
  const pullSeconds = median(pulls.map((one) => one.seconds));
  const tarSeconds = median(untars);
  const archive = statSync(join(work, 'policy.tar.gz')).size / 1e6;
  process.stdout.write(
    [
      `policy-10k, median of ${rounds} rounds`,
      `  publish              ${published.toFixed(2)} s`,
      `  GNU tar xzf          ${tarSeconds.toFixed(2)} s   (${archive.toFixed(1)} MB; no check, no flush)`,
      `  writ pull, whole     ${pullSeconds.toFixed(2)} s   peak ${Math.max(...pulls.map((one) => one.megabytes)).toFixed(0)} MB`,
      `  ratio                ${(pullSeconds / tarSeconds).toFixed(2)}`,
      '',
    ].join('\n'),
  );
} finally {
  rmSync(work, { recursive: true, force: true });
}
