// From the swap to the last worker's answer, through `writ agent` and `writ pull`, with a list of 100,000 rules: two real
// Knot Resolver workers, and two that answer at once, so that what is left is Writ's own time. Prints both; asserts what
// the resolvers then answer, and no time. Needs kresd, dig and bwrap.
//   npm run build && node dist/bench/notify-resolvers.js
import { lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Notified, type WholeSystem, wholeSystem } from '../test/kit/agent/whole-system.js';
import { tempDir } from '../test/kit/disk/temp-dir.js';
import { sampleDirectory, startRealKresd } from '../test/kit/programs/real-kresd.js';
import { startFakeKresd } from '../test/kit/workers/fake-kresd.js';
import { summarize } from './measure/statistics.js';

const rounds = 5;
const rules = 100_000;

function zone(address: string): string {
  const head = '$ORIGIN rpz.test.\n$TTL 60\n@ SOA ns. admin. 1 3600 600 86400 60\n';
  const blocked = Array.from({ length: rules - 1 }, (_, index) => `host-${index}.example.net CNAME .\n`);
  return `${head}app.example.com A ${address}\n${blocked.join('')}`;
}

function configFor(controlGlob: string): Record<string, unknown> {
  const script = join(sampleDirectory, 'rpz-check.conf');
  const run = ['kresd', '-n', '-c', script, '-c', '-', '{scratch}'];
  const reset = { kresd: controlGlob, command: 'policy_reset()', expect: '0', timeout: '30s' };
  return {
    sandbox: 'auto',
    bundles: [{ name: 'dns-edge', checks: [{ name: 'parses', run, timeout: '30s', binds: [script] }] }],
    workers: [{ name: 'resolver', uses: ['dns-edge'], reset }],
  };
}

/** The link got its time by the rename that is the swap. */
function sinceSwap(writ: WholeSystem, { exitCode, json }: Notified): number {
  if (exitCode !== 0) throw new Error(JSON.stringify(json));
  const answers = (json['workers'] as { atMs: number }[]).map((one) => one.atMs);
  return Math.max(...answers) - lstatSync(join(writ.policy, 'current')).ctimeMs;
}

/** @param inUse throws when the workers do not answer with this address */
async function measure(
  writ: WholeSystem,
  inUse: (address: string) => Promise<void>,
): Promise<readonly number[]> {
  const measured: number[] = [];
  await writ.publish({ 'block.rpz': zone('192.0.2.200') });
  await writ.startAgent();
  await writ.pull();
  for (let round = 1; round <= rounds; round += 1) {
    const address = `192.0.2.${round}`;
    await writ.publish({ 'block.rpz': zone(address) });
    measured.push(sinceSwap(writ, await writ.pull()));
    await inUse(address);
  }
  return measured;
}

async function withResolvers(): Promise<readonly number[]> {
  using dir = tempDir();
  await using kresd = await startRealKresd({ policy: dir.join('state/policy') });
  await using writ = await wholeSystem(dir, { config: configFor(kresd.controlGlob), pollEvery: '1h' });
  return await measure(writ, async (address) => {
    const answers = await kresd.ask('app.example.com');
    if (answers[address] !== 20) throw new Error(`${address}: ${JSON.stringify(answers)}`);
  });
}

async function withStandIns(): Promise<readonly number[]> {
  using dir = tempDir();
  mkdirSync(dir.join('control'));
  const workers = await Promise.all(['1', '2'].map((name) => startFakeKresd(dir.join('control', name))));
  try {
    await using writ = await wholeSystem(dir, { config: configFor(dir.join('control/*')), pollEvery: '1h' });
    return await measure(writ, async () => undefined);
  } finally {
    await Promise.all(workers.map((one) => one.close()));
  }
}

function line(name: string, values: readonly number[]): string {
  const { median = Number.NaN, most = Number.NaN } = summarize(values) ?? {};
  return `  ${name.padEnd(36)} ${median.toFixed(0).padStart(5)} ms   worst ${most.toFixed(0)} ms\n`;
}

process.stdout.write(
  `two workers, ${rules.toLocaleString('en')} rules, swap to the last answer, ${rounds} rounds\n`,
);
process.stdout.write(line('kresd, which reads the list', await withResolvers()));
process.stdout.write(line("answering at once: Writ's own time", await withStandIns()));
