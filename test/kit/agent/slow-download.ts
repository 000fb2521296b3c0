// An agent in this process with a download that stops after some bytes until its test continues it. Time is virtual.
import assert from 'node:assert/strict';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { startServer } from '../../../src/server/server.js';
import { until } from '../assert/until.js';
import { noise } from '../delta/difference-bench.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type CuttingFront, cuttingFront } from '../net/cutting-front.js';
import { type AgentInProcess, type AgentSite, agentSite } from './agent-in-process.js';
import { zone } from './agent-with-release.js';

/** Files of release 3. */
export const large = { 'block.rpz': noise('large', 300_000) };
/** Bytes of release 3 that arrive. */
export const sentBytes = 100_000;

export interface SlowDownload extends AsyncDisposable {
  readonly site: AgentSite;
  readonly front: CuttingFront;
  /**
   * Activates releases 1 and 2 in order. On return the download of release 3 is stopped.
   * @param between called when release 1 is active
   */
  start(
    between?: () => Promise<void>,
  ): Promise<{ readonly agent: AgentInProcess; readonly pulled: Promise<CycleResult> }>;
}

export interface DownloadOptions {
  /** The files of releases 2 and 3. */
  readonly second?: Readonly<Record<string, string>>;
  readonly third?: Readonly<Record<string, string>>;
  /** False: the server sends each file as a whole. */
  readonly ranges?: boolean;
}

/** @returns an agent that polls every five minutes, and a server behind a proxy that can stop an answer */
export async function slowDownload(
  dir: TempDir,
  keys: Readonly<Record<string, unknown>> = {},
  { second = zone(2), third = large, ranges = true }: DownloadOptions = {},
): Promise<SlowDownload> {
  // Long timeouts, so that virtual time ends nothing that the test does not mean.
  const limits = {
    timeouts: { connect: '10m', idle: '10m', metadata: '1h', refresh: '1h', archive: '1d' },
  };
  const site = agentSite(dir, { limits, poll: { every: '5m' }, ...keys });
  const server = await startServer({ repository: site.repository.directory, host: '127.0.0.1', port: 0 });
  const front = await cuttingFront(server.url, { ranges });
  site.configure({ repository: front.url });
  return {
    ...{ site, front },
    start: async (between = async () => undefined) => {
      await site.repository.publish(zone(1));
      const agent = site.start();
      await passUntil(site, () => agent.cycles().length === 1);
      await between();
      await site.repository.publish(second);
      const pulledSecond = agent.pull();
      await passUntil(site, () => agent.cycles().some(({ generation }) => generation === 2));
      assert.equal((await pulledSecond).outcome, 'activated');
      front.endNext({ bytes: sentBytes, by: 'silence' });
      await site.repository.publish(third);
      const pulled = agent.pull();
      // The test may end before the pull does.
      pulled.catch(() => undefined);
      await until(() => front.files.at(-1)?.sentBytes === sentBytes);
      return { agent, pulled };
    },
    [Symbol.asyncDispose]: async () => {
      await front[Symbol.asyncDispose]();
      await server.close();
    },
  };
}

/** Advances the clock in steps of half a second until `isSo`. @throws AssertionError after 1000 s */
export async function passUntil({ clock }: AgentSite, isSo: () => boolean): Promise<void> {
  let turns = 0;
  await until(async () => {
    if (isSo()) return true;
    turns += 1;
    assert.ok(turns < 2000, 'it did not come within 1000 s');
    await clock.advance(500);
    return false;
  });
}
