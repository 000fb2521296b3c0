// Asks the probe of one group again, between activations, and notes what follows: repeated-probe-rules decides it. Notifies
// nobody; whom it makes pending reconcile notifies. Its caller sees to it that nothing else moves the policy meanwhile.
import type { WorkerGroupConfig } from '../../core/config/config.js';
import type { HookReport } from '../hooks/hook.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { WorkerLedger } from '../state/ledger.js';
import type { NotifyContext } from './notify-context.js';
import { asksEach, askWithRetries } from './probe-workers.js';
import { afterRight, afterSilence, afterWrong, isAskedAgain, isDoubted } from './repeated-probe-rules.js';
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
  const { probe, reset } = config;
  const keys = keysToAsk(host, config);
  if (probe === undefined || keys.length === 0) return { proven: [], changed: [] };
  const context: NotifyContext = { ...asked, groups: [group], nextNotificationId: () => '' };
  const changed: RepeatedProbe['changed'][number][] = [];
  const proven: string[] = [];
  for (const about of asksEach(probe) ? keys.map((key) => [key]) : [keys]) {
    const report = await askWithRetries(host, { ...config, probe }, context, workerOf(about[0] ?? ''));
    // Whoever is told to end in the middle of it was told nothing about a worker.
    if (asked.signal.aborted) break;
    const what = asksEach(probe) ? (about[0] ?? '') : config.name;
    const text = saidText(what, report);
    const ledger = host.ledger.read();
    const next = about.flatMap((key): [string, WorkerLedger][] => {
      const before = ledger.workers[key];
      if (before === undefined) return [];
      const after = follow(before, report, { text, nowMs: host.clock.nowMs(), reset });
      if (isDoubted(before) !== isDoubted(after))
        changed.push({
          key,
          text: isDoubted(after) ? text : after.text,
          doubted: isDoubted(after) ? 'yes' : 'no',
        });
      return [[key, after]];
    });
    host.ledger.write(withWorkers(ledger, next));
    if (report.verdict.kind === 'ok') proven.push(...about);
  }
  return { proven, changed };
}

function keysToAsk(host: Host, { name }: WorkerGroupConfig): string[] {
  const own = Object.entries(host.ledger.read().workers).filter(([key]) => groupOf(key) === name);
  return own.filter(([, worker]) => isAskedAgain(worker)).map(([key]) => key);
}

function saidText(what: string, { verdict: { reason }, text }: HookReport): string {
  const output = text === reason || text === '' ? '' : `: ${text}`;
  return `${what}: ${reason}${output}`.slice(0, maxTextCharacters);
}

function follow(
  worker: WorkerLedger,
  { verdict }: HookReport,
  { text, nowMs, reset }: { text: string; nowMs: number; reset: WorkerGroupConfig['reset'] },
): WorkerLedger {
  if (verdict.kind === 'ok') return afterRight(worker, nowMs);
  if (verdict.kind !== 'refused') return afterSilence(worker, text);
  return afterWrong(worker, { text, nowMs, canBeNotified: reset === undefined ? 'no' : 'yes' });
}
