// How long `writ agent` takes to be ready on policy-10k: at the first start after a boot, when every byte is read, and
// when the agent alone was restarted. Prints seconds from the spawn to the state `run`; fails above the bound.
//   npm run build && node dist/bench/restart.js
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { policy10k, writePolicyTree } from './policy-tree.js';

const rounds = 5;
/** What a restart of the agent alone may take. */
const boundSeconds = 1;
const work = mkdtempSync(join(tmpdir(), 'writ-bench-'));
const writ = join(import.meta.dirname, '..', 'src', 'cli', 'main.js');
const config = join(work, 'agent.yaml');
const ledger = join(work, 'state', 'ledger.json');

function run(args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [writ, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`writ ${args.join(' ')}: exit ${status}\n${stdout}${stderr}`);
}

/** Resolves when the agent's log says that it is in the state `run`. */
function untilReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('"state":"run"')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`the agent ended with ${code}\n${log}`)));
  });
}

interface Measured {
  /** From the spawn to the state `run`. */
  readonly seconds: number;
  /** Of this process alone until then: what a busy machine does not change. */
  readonly cpuSeconds: number;
}

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const ticksPerSecond = 100;

function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** The agent has ended in good order when this returns. */
async function startOnce(): Promise<Measured> {
  const started = performance.now();
  const child = spawn(process.execPath, [writ, 'agent', '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await untilReady(child);
  const seconds = (performance.now() - started) / 1000;
  const cpuSeconds = cpuSecondsOf(child.pid ?? 0);
  child.removeAllListeners('exit');
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  return { seconds, cpuSeconds };
}

/** As after a boot: the ledger names another one. */
function forgetBoot(): void {
  const value = JSON.parse(readFileSync(ledger, 'utf8')) as Record<string, unknown>;
  writeFileSync(ledger, JSON.stringify({ ...value, verifiedBootId: 'another' }));
}

async function measure(before: () => void): Promise<Measured[]> {
  const all: Measured[] = [];
  for (let round = 0; round < rounds; round += 1) {
    before();
    all.push(await startOnce());
  }
  return all;
}

function median(all: readonly number[]): number {
  return [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}

function line(name: string, all: readonly Measured[]): string {
  const seconds = all.map((one) => one.seconds);
  const cpuSeconds = median(all.map((one) => one.cpuSeconds));
  const figures = [median(seconds), Math.max(...seconds), cpuSeconds].map((one) => `${one.toFixed(2)} s`);
  return `  ${name.padEnd(28)} ${figures[0]}   worst ${figures[1]}   CPU ${figures[2]}\n`;
}

try {
  writePolicyTree(join(work, 'source'), policy10k);
  const keys = ['--repository', join(work, 'repo'), '--keys', join(work, 'keys')];
  run(['init', ...keys, '--no-passphrase']);
  run(['publish', join(work, 'source'), ...keys, '--bundle', 'policy-10k']);
  const places = {
    state: join(work, 'state'),
    run: join(work, 'run'),
    root: join(work, 'repo/metadata/1.root.json'),
  };
  const settings = { repository: `file://${work}/repo/`, ...places, bundles: [{ name: 'policy-10k' }] };
  writeFileSync(config, JSON.stringify({ ...settings, host: { id: 'bench' }, poll: { every: '1d' } }));
  run(['pull', '--config', config]);
  const boots = await measure(forgetBoot);
  const restarts = await measure(() => undefined);
  process.stdout.write(`policy-10k, agent ready, median of ${rounds} rounds\n`);
  process.stdout.write(line('first start after a boot', boots) + line('the agent alone', restarts));
  if (median(restarts.map((one) => one.seconds)) >= boundSeconds) {
    process.stdout.write(`a restart of the agent alone takes more than ${boundSeconds} s\n`);
    process.exitCode = 1;
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
