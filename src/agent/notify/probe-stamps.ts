// What a probe is told of the release that it asks about: {serial}, {source}, {serial:BUNDLE}. They are those of the release
// that a worker was last to take: one that was rightly not notified of a newer stamp shows the older one. Reads only.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { stampPlaceholder } from '../../core/config/probe-rules.js';
import { sourceName } from '../../core/release/stamps.js';
import { releasesNamedBy } from '../generations/generation-contents.js';
import type { Host } from '../state/host.js';
import { groupOf, workerKey } from './worker-ledger.js';

export interface ProbeQuestion {
  readonly config: WorkerGroupConfig;
  readonly run: readonly [string, ...string[]];
  /** The worker that is asked about, where each is; left out: the group. */
  readonly worker?: string | undefined;
  /** Number of the generation that workers are moved to. */
  readonly generation: number;
}

/**
 * @returns the command for each stamp that is right, the newest first: of a group whose workers were last notified of
 *   different releases anyone may answer. None where a bundle that it names has no release.
 */
export function stampedCommands(
  host: Host,
  question: ProbeQuestion,
): readonly (readonly [string, ...string[]])[] {
  const { run } = question;
  if (!run.some((text) => new RegExp(stampPlaceholder).test(text))) return [run];
  const commands = generationsOf(host, question).flatMap((generation) => {
    const filled = run.map((text) => fill(host, text, { ...question, generation }));
    return filled.includes(undefined) ? [] : [filled as [string, ...string[]]];
  });
  const unique = new Map(commands.map((one) => [JSON.stringify(one), one]));
  return [...unique.values()];
}

/** The newest first. */
function generationsOf(host: Host, { config, worker, generation }: ProbeQuestion): number[] {
  const { workers } = host.ledger.read();
  if (worker !== undefined) return [workers[workerKey(config.name, worker)]?.wanted ?? generation];
  const wanted = Object.entries(workers)
    .filter(([key, one]) => groupOf(key) === config.name && one.goneAtMs === undefined)
    .map(([, one]) => one.wanted);
  return wanted.length === 0 ? [generation] : [...new Set(wanted)].sort((one, other) => other - one);
}

function fill(host: Host, text: string, { config, generation }: ProbeQuestion): string | undefined {
  let isMissing = false;
  const filled = text.replaceAll(new RegExp(stampPlaceholder, 'g'), (whole, what: string, named?: string) => {
    const bundle = named ?? config.uses[0];
    const release = releasesNamedBy(host.paths, generation).find((one) => one.bundle === bundle);
    if (release === undefined) isMissing = true;
    if (release === undefined) return whole;
    return what === 'serial' ? String(release.serial) : sourceName(release);
  });
  return isMissing ? undefined : filled;
}
