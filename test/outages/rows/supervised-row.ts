// The frame of a row with one worker under supervisord: a first release that settles, then the actions of the row, then the
// verdict.
import { mkdirSync } from 'node:fs';
import { supervisordPlaces } from '../../kit/programs/supervisord-config.js';
import { type Expected, judgeReplay } from '../rules/judge.js';
import type { Replayed, ReplayOptions } from '../stage/outage.js';
import { type BundleFiles, type OutageHost, outageHost } from '../stage/outage-host.js';
import { startSupervisord } from '../stage/supervisors.js';
import { askWorker, type Watch } from '../stage/watch-workers.js';

export interface SupervisedRow {
  readonly bundle: string;
  /** Sections of agent.yaml. */
  readonly yaml: (places: RowPlaces) => string;
  /** The command line of the worker. */
  readonly command: (places: RowPlaces, host: OutageHost) => readonly string[];
  readonly first: BundleFiles;
  readonly expected: Expected;
  /** The worker's response with the first release; `expected.old` by default. */
  readonly settled?: string;
  /** Runs before the workers are observed. */
  readonly before?: (scene: Omit<RowScene, 'watch'>) => Promise<void>;
  /** Publishes the bad release, and waits until the host has recovered. */
  readonly act: (scene: RowScene) => Promise<void>;
}

export interface RowPlaces {
  /** The socket that the worker serves. */
  readonly socket: string;
  readonly supervisor: string;
}

export interface RowScene {
  readonly host: OutageHost;
  readonly watch: Watch;
  readonly report: (line: string) => void;
  /** Waits until the worker keeps responding with this text, for at most `forMs`. */
  readonly untilServes: (text: string, forMs: number) => Promise<boolean>;
}

export async function replaySupervised(options: ReplayOptions, row: SupervisedRow): Promise<Replayed> {
  const { dir, report } = options;
  const directory = dir.join('supervisor');
  mkdirSync(directory);
  const places = { socket: dir.join('worker.sock'), supervisor: supervisordPlaces(directory).socket };
  await using host = await outageHost(options, { bundle: row.bundle, yaml: row.yaml(places) });
  await host.publish(row.first);
  await host.startAgent();
  await host.untilActive();
  const command = row.command(places, host);
  await using _supervised = await startSupervisord({ directory, group: row.bundle, command });
  const old = row.settled ?? row.expected.old;
  await host.waits(30_000, async () => (await askWorker(places.socket)) === old);
  await host.untilSettled();
  report(`release 1 has settled, and the worker serves ${old}`);
  const untilServes: RowScene['untilServes'] = async (text, forMs) => {
    let sinceMs = Number.POSITIVE_INFINITY;
    return host.waits(forMs, async () => {
      const isServed = (await askWorker(places.socket)) === text;
      sinceMs = isServed ? Math.min(sinceMs, performance.now()) : Number.POSITIVE_INFINITY;
      return performance.now() - sinceMs > steadyMs;
    });
  };
  await row.before?.({ host, report, untilServes });
  await using watch = await host.watch([places.socket]);
  await row.act({ host, watch, report, untilServes });
  return judgeReplay({ samples: watch.samples, history: await host.history() }, row.expected);
}

/** A response counts after it was the same for this time. */
const steadyMs = 3000;
