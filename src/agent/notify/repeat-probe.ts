// Asks the probe of one group again, between activations, and notes what follows: repeated-probe-rules decides it. Notifies
// nobody; whom it makes pending reconcile notifies. Its caller sees to it that nothing else moves the policy meanwhile.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { HookReport } from '../hooks/hook.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { NotifyContext } from './notify-context.js';
import { asksEach, askWithRetries } from './probe-workers.js';
import {
  afterRight,
  afterSilence,
  afterWrong,
  isAskedAgain,
  isDoubted,
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

/** @returns what it showed; nothing where nobody is there to be asked about. @throws WritError DISK_*, STATE_DAMAGED */
export async function repeatProbe(
  host: Host,
  group: WorkerGroup,
  asked: Pick<NotifyContext, 'target' | 'staging' | 'signal'>,
): Promise<RepeatedProbe> {
  const { config } = group;
  const { probe } = config;
  const keys = keysToAsk(host, config);
  if (probe === undefined || keys.length === 0) return { proven: [], changed: [] };
  const context: NotifyContext = { ...asked, groups: [group], nextNotificationId: () => '' };
  const changed: RepeatedProbe['changed'][number][] = [];
  const proven: string[] = [];
  for (const about of asksEach(probe) ? keys.map((key) => [key]) : [keys]) {
    const report = await askWithRetries(host, { ...config, probe }, context, workerOf(about[0] ?? ''));
    // Whoever is told to end in the middle of it was told nothing about a worker.
    if (asked.signal.aborted) break;
    changed.push(...noteAnswer(host, about, { report, config }));
    if (report.verdict.kind === 'ok') proven.push(...about);
  }
  return { proven: proven.filter((key) => isConfirmed(host, key)), changed };
}

/** @returns whose doubts began or ended */
function noteAnswer(
  host: Host,
  about: readonly string[],
  { report, config }: { readonly report: HookReport; readonly config: WorkerGroupConfig },
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
    canBeNotified: config.reset === undefined ? 'no' : 'yes',
  } as const;
  const next = meant.map(([key, one]): [string, WorkerLedger] => [key, follow(one, report, said)]);
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

function keysToAsk(host: Host, { name }: WorkerGroupConfig): string[] {
  const own = Object.entries(host.ledger.read().workers).filter(([key]) => groupOf(key) === name);
  return own.filter(([, worker]) => isAskedAgain(worker)).map(([key]) => key);
}

function saidText(what: string, { verdict: { reason }, text }: HookReport): string {
  const output = text === reason || text === '' ? '' : `: ${text}`;
  return `${what}: ${reason}${output}`.slice(0, maxTextCharacters);
}

function follow(worker: WorkerLedger, { verdict }: HookReport, said: WrongAnswer): WorkerLedger {
  if (verdict.kind === 'ok') return afterRight(worker, said.nowMs);
  if (verdict.kind !== 'refused') return afterSilence(worker, said.text);
  return afterWrong(worker, said);
}
