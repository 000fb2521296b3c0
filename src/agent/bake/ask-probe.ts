// Asks the probe of one group again, between activations, and notes and records what follows. Owns how the question fits between
// the jobs of a host; when it is asked is decided by its caller, and what an answer means by agent/notify.
import { problemOf } from '../../core/cycle/problem.js';
import { WritError } from '../../core/errors.js';
import { readActive } from '../generations/generations.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { recordEvent } from '../job/record.js';
import { openStagingArea } from '../job/staging-area.js';
import {
  noteProbeAnswers,
  noteSkippedProbe,
  type RepeatedProbe,
  runRepeatedProbe,
} from '../notify/repeat-probe.js';
import { isPaused } from '../select/pause.js';
import { bakingBundles } from '../settled/probe-gap-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { isDiskError } from '../state/state-file.js';

/** A proof is as old as its question: its answer may wait for a long job. */
export interface AskedProbe extends RepeatedProbe {
  readonly askedAtMs: number;
}

const nothing: AskedProbe = { proven: [], changed: [], askedAtMs: 0 };

export interface AskProbeOptions {
  /** Asked before and after the probe: a reload may have replaced it. */
  readonly host: () => Host;
  readonly exclusive: Exclusive;
  readonly stop: AbortSignal;
  /** As noteProbeAnswers has it. */
  readonly minGapMs?: number;
}

/**
 * Asks the probe of a group between two activations and notes its answer. Beside the jobs, because a probe may hang: a pull or a
 * rollback does not wait for it. Never rejects.
 */
export async function askProbeOf(
  name: string,
  { host, exclusive, stop, minGapMs }: AskProbeOptions,
): Promise<AskedProbe> {
  // A job that runs now may change the workers, and then the answer of the probe would be discarded.
  await exclusive(async () => undefined);
  const before = host();
  const group = before.groups.find(({ config }) => config.name === name);
  if (group === undefined) return nothing;
  // A pause does not keep a release that fails: within its bake time the probe is asked all the same.
  const isPausedFor = (): boolean =>
    isPaused(before) && bakingBundles(before.ledger.read(), group.config).length === 0;
  const isOver = (): boolean => stop.aborted || host() !== before || isPausedFor();
  if (isOver()) return nothing;
  try {
    const askedAtMs = before.clock.nowMs();
    const asked = await askNow(before, group, stop);
    if (asked === undefined) return nothing;
    return await exclusive(async () => {
      if (isOver()) return nothing;
      const noted = noteProbeAnswers(before, group, asked.answers, minGapMs);
      report(before, asked.cycle, noted);
      return { ...noted, askedAtMs };
    });
  } catch (error) {
    before.log.error({ err: error, group: name }, 'a probe could not be repeated');
    if (!isDiskError(error)) return nothing;
    const noted = exclusive(async () =>
      isOver() ? undefined : noteSkippedProbe(before, group, error.message),
    );
    await noted.catch((cause: unknown) => {
      before.log.error({ err: cause, group: name }, 'a probe without an answer could not be noted');
    });
    return nothing;
  }
}

async function askNow(host: Host, group: WorkerGroup, signal: AbortSignal) {
  const active = readActive(host.paths);
  if (active === undefined) return undefined;
  const cycle = newCycleId();
  const area = openStagingArea(host.paths, host.durable, cycle);
  try {
    const target = { generation: active.number, path: active.path };
    const answers = await runRepeatedProbe(host, group, { target, staging: area.path(), signal });
    return { answers, cycle };
  } finally {
    area.remove(host.log);
  }
}

/** Notes only the changes of an answer, because a probe is asked every few seconds. */
function report(host: Host, cycle: string, { changed }: RepeatedProbe): void {
  const texts = (doubted: 'yes' | 'no'): string[] => [
    ...new Set(changed.filter((one) => one.doubted === doubted).map((one) => one.text)),
  ];
  const problems = texts('yes').map((text) => problemOf(new WritError('PROBE_CHANGED', text)));
  if (problems.length > 0)
    recordEvent(host, { cycle, trigger: 'pending', problems, reason: 'a repeated probe failed' });
  const keys = changed.filter((one) => one.doubted === 'no').map((one) => one.key);
  if (keys.length > 0)
    recordEvent(host, {
      cycle,
      trigger: 'pending',
      problems: [],
      reason: `proved again: ${keys.join(', ')}`,
    });
}
