// How Writ's cost grows: with files, bytes, what share of a policy changed, bundles, and hosts that poll one server. One
// measurement for each size: for the shape of a curve, and not for a table.
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pollRate } from './at-rest.js';
import { measured, writProgram } from './measure/measured-program.js';
import type { Sample } from './measure/sample.js';
import { changeRuleFiles, type TreeSize, writePolicyTree } from './policy-tree.js';
import type { Panel, Point } from './report/plot.js';
import { configure, createRepository, publish } from './subjects/writ.js';
import { startWritServer } from './web/writ-server.js';

export interface GrowthSizes {
  readonly files: readonly number[];
  readonly megabytes: readonly number[];
  /** Rule files that change, of those of `changedOf`. */
  readonly changed: readonly number[];
  readonly changedOf: number;
  readonly bundles: readonly number[];
  readonly hosts: readonly number[];
  /** In each round, for each number of hosts; at least one for each of them. */
  readonly polls: number;
}

export const allSizes: GrowthSizes = {
  files: [100, 1000, 10_000, 100_000],
  megabytes: [1, 10, 100, 1000],
  changed: [1, 10, 100, 1000, 10_000],
  changedOf: 10_000,
  bundles: [1, 5, 20, 50],
  // The most connections that `writ serve` keeps are 10,000, or half of the descriptors: 9,968 where those are 20,000.
  hosts: [1, 10, 100, 1000, 9900],
  polls: 5000,
};

interface Grown {
  readonly x: number;
  readonly sample: Sample;
}

const linesPerMegabyte = 27_778;
/** 3.7 kB. */
const linesPerFile = 137;

/** @param work empty; it is left full */
export async function measureGrowth(
  work: string,
  sizes: GrowthSizes,
  logStep: (progress: string) => void,
): Promise<readonly Panel[]> {
  const firstSyncs = async (
    name: string,
    of: readonly number[],
    size: (x: number) => TreeSize,
  ): Promise<Grown[]> => {
    const grown: Grown[] = [];
    for (const x of of) {
      logStep(`growth: ${x} ${name}`);
      grown.push({ x, sample: await firstSyncOf(join(work, `${name}-${x}`), size(x)) });
    }
    return grown;
  };
  const files = await firstSyncs('files', sizes.files, (count) => ({
    files: count,
    linesPerFile,
    zoneLines: 0,
  }));
  const bytes = await firstSyncs('megabytes', sizes.megabytes, (count) => ({
    files: 0,
    linesPerFile: 0,
    zoneLines: count * linesPerMegabyte,
  }));
  logStep('growth: changed files');
  const changed = await updates(join(work, 'changed'), sizes);
  const bundles: Grown[] = [];
  for (const x of sizes.bundles) {
    logStep(`growth: ${x} bundles`);
    bundles.push({ x, sample: await firstSyncOfBundles(join(work, `bundles-${x}`), x) });
  }
  logStep('growth: hosts that poll');
  const hosts = await measurePolls(join(work, 'hosts'), sizes);
  return [
    ...panelsOf('first sync, by files', files),
    ...panelsOf(
      'first sync, by bytes of one file',
      bytes.map(({ x, sample }) => ({ x: x * 1e6, sample })),
    ),
    ...panelsOf(`update, by files changed of ${sizes.changedOf}`, changed),
    {
      title: 'the same: received',
      unit: 'MB',
      points: changed.map(({ x, sample }) => ({ x, y: (sample.receivedBytes ?? 0) / 1e6 })),
    },
    ...panelsOf('first sync, by bundles', bundles),
    ...hosts,
  ];
}

function panelsOf(title: string, grown: readonly Grown[]): Panel[] {
  const panel = (unit: string, y: (sample: Sample) => number): Panel => ({
    title,
    unit,
    points: grown.map(({ x, sample }): Point => ({ x, y: y(sample) })),
  });
  return [
    panel('seconds, of the process', ({ wallMs }) => wallMs / 1000),
    panel('peak memory, MB', ({ peakBytes }) => (peakBytes ?? 0) / 1e6),
  ];
}

interface Stand {
  readonly tree: string;
  publish(bundle?: string): Promise<Sample>;
  /** By a host of this name, with these bundles. */
  pull(host: string, bundles?: readonly string[]): Promise<Sample>;
}

async function onStand<T>(work: string, size: TreeSize, act: (stand: Stand) => Promise<T>): Promise<T> {
  mkdirSync(work, { recursive: true });
  const tree = join(work, 'tree');
  writePolicyTree(tree, size);
  const repository = await createRepository(work);
  await using server = await startWritServer(repository.repository);
  return await act({
    tree,
    publish: (bundle) => publish(repository, tree, bundle),
    pull: (host, bundles) => {
      const home = join(work, host);
      mkdirSync(home, { recursive: true });
      const config = configure(repository, server, home, bundles === undefined ? {} : { bundles });
      return server.counted(() => measured([...writProgram, 'pull', '--config', config], { notes: home }));
    },
  });
}

function firstSyncOf(work: string, size: TreeSize): Promise<Sample> {
  return onStand(work, size, async (stand) => {
    await stand.publish();
    return await stand.pull('host');
  });
}

function firstSyncOfBundles(work: string, count: number): Promise<Sample> {
  const names = Array.from({ length: count }, (_, index) => `policy-${index}`);
  return onStand(work, { files: 20, linesPerFile, zoneLines: 0 }, async (stand) => {
    for (const name of names) await stand.publish(name);
    return await stand.pull('host', names);
  });
}

/** Each share against the same first version, so that no curve is of what came before. */
function updates(work: string, { changed, changedOf }: GrowthSizes): Promise<Grown[]> {
  return onStand(work, { files: changedOf, linesPerFile, zoneLines: 0 }, async (stand) => {
    await stand.publish();
    const hosts = changed.map((count) => `host-${count}`);
    for (const host of hosts) await stand.pull(host);
    const pristine = join(work, 'pristine');
    cpSync(stand.tree, pristine, { recursive: true });
    const grown: Grown[] = [];
    for (const [index, x] of changed.entries()) {
      cpSync(pristine, stand.tree, { recursive: true });
      changeRuleFiles(stand.tree, x);
      await stand.publish();
      grown.push({ x, sample: await stand.pull(hosts[index] ?? '') });
    }
    return grown;
  });
}

/** One server, and more and more hosts that poll it. */
export async function measurePolls(
  work: string,
  { hosts, polls }: Pick<GrowthSizes, 'hosts' | 'polls'>,
): Promise<Panel[]> {
  mkdirSync(work, { recursive: true });
  const tree = join(work, 'tree');
  writePolicyTree(tree, { files: 20, linesPerFile, zoneLines: 0 });
  const repository = await createRepository(work);
  await publish(repository, tree);
  const rates: { x: number; cpuMs: number; megabytes: number }[] = [];
  for (const x of hosts) {
    const logFile = join(work, `server-${x}.log`);
    await using server = await startWritServer(repository.repository, ['--per-address', 'off'], { logFile });
    const rate = await pollRate(server.pid, `${server.url}/metadata/timestamp.json`, x, Math.max(polls, x));
    rates.push({ x, cpuMs: 1000 / rate.pollsPerCoreSecond, megabytes: rate.residentBytes / 1e6 });
  }
  const title = 'polls of one server, by hosts';
  return [
    { title, unit: 'CPU of a poll, ms', points: rates.map(({ x, cpuMs }) => ({ x, y: cpuMs })) },
    {
      title,
      unit: 'memory of the server, MB',
      points: rates.map(({ x, megabytes }) => ({ x, y: megabytes })),
    },
  ];
}
