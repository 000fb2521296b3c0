// Asks the probe of one group again, between activations, and notes what follows: repeated-probe-rules decides it. Notifies
// nobody; whom it makes pending reconcile notifies. A probe may hang, so it is asked beside the jobs of a host, and its answer
// is noted between them.
import { isDeepStrictEqual } from 'node:util';
import type { WorkerGroupConfig } from '../../core/config/config.js';
import { orUndefined } from '../../core/errors.js';
import { findProcess } from '../../platform/process/processes.js';
import { readActive, readGeneration } from '../generations/generations.js';
import type { HookReport } from '../hooks/hook.js';
import { probeGapMs } from '../settled/probe-gap-rules.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { NotifyContext, ReconcileOptions } from './notify-context.js';
import { type AskedProbe, askProbe, asksEach } from './probe-workers.js';
import {
  afterRight,
  afterSilence,
  afterWrong,
  isAskedAgain,
  isDoubted,
  isOpen,
  isSecondProbeTurn,
  type WrongAnswer,
} from './repeated-probe-rules.js';
import { groupOf, withWorkers, workerOf } from './worker-ledger.js';

export interface RepeatedProbe {
  /** Keys of the workers that it showed using what they are to use. */
  readonly proven: readonly string[];
  /** What is news: who is doubted since now, and who no more. */
  readonly changed: readonly {
    readonly key: string;
    readonly text: string;
    readonly doubted: 'yes' | 'no';
  }[];
}

const maxTextCharacters = 500;

/** What a probe said, about workers as they were when it was asked. */
export interface ProbeAnswer {
  readonly about: ReadonlyMap<string, WorkerLedger>;
  readonly report: HookReport;
  /** It was not answered in time by workers that run, whose release is in its bake time. */
  readonly isOverdue: boolean;
}

type Asked = Pick<NotifyContext, 'target' | 'staging' | 'signal'>;

/**
 * Asks, once: what is wrong is asked again in its time, and nobody waits for that. Writes nothing.
 * @returns the answers; none where nobody is there to be asked about
 */
export async function askAgain(host: Host, group: WorkerGroup, asked: Asked): Promise<ProbeAnswer[]> {
  const { config } = group;
  const { probe } = config;
  const workers = workersToAsk(host, config);
  if (probe === undefined || workers.length === 0) return [];
  const answers: ProbeAnswer[] = [];
  for (const about of asksEach(probe) ? workers.map((one) => [one]) : [workers]) {
    const names = about.map(([key]) => workerOf(key));
    const report = await askUntilRight(host, group, { probe, workers: names, asked, about });
    // Whoever is told to end in the middle of it was told nothing about a worker.
    if (asked.signal.aborted) break;
    answers.push({
      about: new Map(about),
      report,
      isOverdue: await isOverdue(host, group, { about, report }),
    });
  }
  return answers;
}

interface Question extends AskedProbe {
  readonly asked: Asked;
  readonly about: readonly [string, WorkerLedger][];
}

/**
 * If the last move changed nothing that a group uses, its workers still show the path of the generation before. So the
 * generation of their last notification and the active generation are both right.
 * @returns the first right answer, or else the last one
 */
async function askUntilRight(
  host: Host,
  group: WorkerGroup,
  { asked, about, ...question }: Question,
): Promise<HookReport> {
  const context: NotifyContext = { ...asked, groups: [group], nextNotificationId: () => '' };
  const earlier = [...new Set(about.map(([, { wanted }]) => wanted))]
    .filter((wanted) => wanted !== asked.target.generation)
    .sort((one, other) => other - one);
  for (const generation of earlier) {
    const path = orUndefined(() => readGeneration(host.paths, generation).path);
    if (path === undefined) continue;
    const report = await askProbe(host, group, question, { ...context, target: { generation, path } });
    if (report.verdict.kind === 'ok' || asked.signal.aborted) return report;
  }
  return askProbe(host, group, question, context);
}

/**
 * A worker that uses a whole processor answers nothing, and a probe without an answer has no verdict of its own: within a bake
 * time this counts as a wrong answer. One that is gone says nothing, nor does one that is stopped (adr/0058): askProbe sees that.
 */
async function isOverdue(
  host: Host,
  { config, driver }: WorkerGroup,
  { about, report }: { readonly about: readonly [string, WorkerLedger][]; readonly report: HookReport },
): Promise<boolean> {
  const { bakes = {} } = host.ledger.read();
  if (report.verdict.isTimedOut !== true || !config.uses.some((bundle) => bakes[bundle] !== undefined))
    return false;
  for (const [key] of about) {
    const pid = await driver?.pid?.(workerOf(key));
    if (driver?.pid !== undefined && (pid === undefined || findProcess(pid) === undefined)) return false;
  }
  return true;
}

/**
 * Notes what follows of the answers. One about workers that were notified, refused or replaced since it was asked is about
 * nobody who is there.
 * @param minGapMs least time between two wrong answers that count; left out: each counts, because the probe is run at its times
 * @throws WritError STATE_DAMAGED
 */
export function noteAnswers(
  host: Host,
  { config }: Pick<WorkerGroup, 'config'>,
  answers: readonly ProbeAnswer[],
  minGapMs?: number,
): RepeatedProbe {
  const changed: RepeatedProbe['changed'][number][] = [];
  const proven: string[] = [];
  // A wrong answer that a full disk cannot take counts all the same: a release may have to be taken back for it.
  using _ = host.ledger.tolerateDiskErrors(() => false);
  for (const { about, report, isOverdue } of answers) {
    const { workers } = host.ledger.read();
    if (![...about].every(([key, before]) => isDeepStrictEqual(workers[key], before))) continue;
    changed.push(...noteAnswer(host, [...about.keys()], { report, config, isOverdue, minGapMs }));
    if (report.verdict.kind === 'ok') proven.push(...about.keys());
  }
  return { proven: proven.filter((key) => isConfirmed(host, key)), changed };
}

/** Notes that the probe could not be asked, as for want of space. @throws WritError STATE_DAMAGED */
export function noteUnasked(host: Host, { config }: Pick<WorkerGroup, 'config'>, reason: string): void {
  const nowMs = host.clock.nowMs();
  const text = `${config.name}: could not be asked: ${reason}`.slice(0, maxTextCharacters);
  const unasked = workersToAsk(host, config).map(([key, one]): [string, WorkerLedger] => [
    key,
    afterSilence(one, text, nowMs),
  ]);
  using _ = host.ledger.tolerateDiskErrors(() => false);
  host.ledger.write(withWorkers(host.ledger.read(), unasked));
}

/** Both, for who sees to it that nothing else moves the policy meanwhile. @throws WritError DISK_*, STATE_DAMAGED */
export async function repeatProbe(
  host: Host,
  group: WorkerGroup,
  { minGapMs, ...asked }: Asked & Pick<WrongAnswer, 'minGapMs'>,
): Promise<RepeatedProbe> {
  return noteAnswers(host, group, await askAgain(host, group, asked), minGapMs);
}

/**
 * In a cycle: the probes that refused or were not heard, of groups that are not asked by the clock, are asked again, or a
 * finding would stand until the next release.
 * @param options.who `all`: also those that are asked by the clock, since a person wants to know
 */
export async function hearAgain(
  host: Host,
  { staging, who, signal }: Pick<ReconcileOptions, 'staging' | 'who' | 'signal'>,
): Promise<void> {
  const active = readActive(host.paths);
  if (active === undefined) return;
  const target = { generation: active.number, path: active.path };
  for (const group of host.groups) {
    const { name, probe } = group.config;
    const { workers } = host.ledger.read();
    const isOpenHere = Object.entries(workers).some(
      ([key, one]) => groupOf(key) === name && (isOpen(one) || isSecondProbeTurn(one, host.clock.nowMs())),
    );
    if (probe === undefined || !isOpenHere || (who !== 'all' && probe.everyMs !== undefined)) continue;
    // Wrong answers count at the times of the probe, however often a person pulls.
    const minGapMs = probeGapMs(host.config, host.ledger.read(), group.config, probe.everyMs);
    await repeatProbe(host, group, { target, staging: staging(), signal, minGapMs });
  }
}

/** @returns whose doubts began or ended */
function noteAnswer(
  host: Host,
  about: readonly string[],
  {
    report,
    config,
    isOverdue,
    minGapMs,
  }: Pick<ProbeAnswer, 'report' | 'isOverdue'> &
    Pick<WrongAnswer, 'minGapMs'> & { readonly config: WorkerGroupConfig },
): RepeatedProbe['changed'] {
  const ledger = host.ledger.read();
  const known = about.flatMap((key): [string, WorkerLedger][] => {
    const worker = ledger.workers[key];
    return worker === undefined ? [] : [[key, worker]];
  });
  // Of workers that were notified of different releases anyone may have answered: that proves nobody who never proved it.
  const isOfAll = new Set(known.map(([, { wanted }]) => wanted)).size === 1;
  const meant = known.filter(([, one]) => isOfAll || one.state === 'confirmed' || isDoubted(one));
  const text = saidText(asksEach(config.probe) ? (about[0] ?? '') : config.name, report);
  const said = {
    text,
    nowMs: host.clock.nowMs(),
    minGapMs,
    canBeNotified: config.reset === undefined ? 'no' : 'yes',
  } as const;
  const next = meant.map(([key, one]): [string, WorkerLedger] => [
    key,
    follow(one, { verdict: report.verdict, isOverdue }, said),
  ]);
  host.ledger.write(withWorkers(ledger, next));
  return next.flatMap(([key, after], index) => {
    const doubted = isDoubted(after) ? 'yes' : 'no';
    const before = meant[index]?.[1];
    const isNews = before !== undefined && isDoubted(before) !== isDoubted(after);
    return isNews ? [{ key, text: after.text, doubted }] : [];
  });
}

function isConfirmed(host: Host, key: string): boolean {
  return host.ledger.read().workers[key]?.state === 'confirmed';
}

function workersToAsk(host: Host, { name }: WorkerGroupConfig): [string, WorkerLedger][] {
  const own = Object.entries(host.ledger.read().workers).filter(([key]) => groupOf(key) === name);
  return own.filter(([, worker]) => isAskedAgain(worker));
}

function saidText(what: string, { verdict: { reason }, text }: HookReport): string {
  const output = text === reason || text === '' ? '' : `: ${text}`;
  return `${what}: ${reason}${output}`.slice(0, maxTextCharacters);
}

function follow(
  worker: WorkerLedger,
  { verdict, isOverdue }: Pick<HookReport, 'verdict'> & Pick<ProbeAnswer, 'isOverdue'>,
  said: WrongAnswer,
): WorkerLedger {
  if (verdict.kind === 'ok') return afterRight(worker, said.nowMs);
  // Only a probe that this release has passed is a proof that it can be passed.
  const isWrong = verdict.kind === 'refused' || (isOverdue && worker.confirmed === worker.wanted);
  return isWrong ? afterWrong(worker, said) : afterSilence(worker, said.text, said.nowMs);
}
