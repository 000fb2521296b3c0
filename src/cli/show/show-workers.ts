// The workers of a status: the generation and reply of each, and the missing conditions of bake times. Pure: a report in,
// lines out.
import type { BundleStatus, StatusReport, WorkerStatus } from '../../core/protocol/control-protocol.js';
import { unknownAnswerText } from '../../core/status/worker-rules.js';
import { bakeWaitText, counted, indented, roughly, secondTime, table } from './show-text.js';

/** @returns a table of the workers; no line without workers */
export function workerLines(report: StatusReport): string[] {
  if (report.workers.length === 0) return [];
  return table(
    ['worker', 'group', { right: 'last proved' }, 'answered'],
    report.workers.map((one) => [
      one.worker,
      one.group,
      one.confirmed === undefined ? '-' : String(one.confirmed),
      answerText(one, report),
    ]),
  );
}

function answerText(worker: WorkerStatus, report: StatusReport): string {
  const { atMs: nowMs } = report;
  const at = `${secondTime(worker.atMs)} UTC`;
  switch (worker.state) {
    case 'confirmed':
      return `${at}${provenText(worker, nowMs)}`;
    case 'notified':
      return `notified generation ${worker.wanted ?? 'none'} at ${at}, unconfirmed`;
    case 'pending':
      return worker.goneAtMs === undefined
        ? `${worker.text === unknownAnswerText ? 'no answer known since a notification at' : 'to be notified since'} ${at}`
        : `not up since ${at}; notified when it appears`;
    case 'unreachable':
      return `${worker.code ?? 'WORKER_UNREACHABLE'} since ${at}${triesText(worker, report)}${replyText(worker)}`;
    case 'refused':
      return `WORKER_REFUSED at ${at}${replyText(worker)}`;
  }
}

function provenText({ provenAtMs, observed }: WorkerStatus, nowMs: number): string {
  if (provenAtMs === undefined) return '';
  const unobserved = observed === false ? ', not observed since' : '';
  return `, proved ${roughly(nowMs - provenAtMs)} ago${unobserved}`;
}

/** Without an agent, the next notification of a worker is at the next pull. */
function triesText({ tries, nextNotificationAtMs }: WorkerStatus, { agent }: StatusReport): string {
  if (tries === undefined || nextNotificationAtMs === undefined) return '';
  const next = agent === 'stop' ? 'the next pull' : `${secondTime(nextNotificationAtMs)} UTC`;
  return `, ${counted(tries, 'notification')} without an answer, again at ${next}`;
}

/** The text of the worker's reply, or the reason why there is none. */
function replyText({ text }: WorkerStatus): string {
  const [first = ''] = indented(text, '', 1);
  return first === '' ? '' : `: ${first.slice(0, 100)}`;
}

/**
 * @returns as `baking, 3 min left`, `baking, waits`, `no worker has it`, `settled`, `settled, not observed` or `FAILED`; `-`
 *   without a bake time
 */
export function bakeText(bake: BundleStatus['bake']): string {
  if (bake === undefined) return '-';
  const { state, leftMs = 0, untaken, waitsFor, observed } = bake;
  if (state === 'failed') return 'FAILED';
  if (state === 'settled') return observed === false ? 'settled, not observed' : 'settled';
  if (untaken) return 'no worker has it';
  return waitsFor === undefined ? `baking, ${roughly(leftMs)} left` : 'baking, waits';
}

/** @returns the missing condition of each bake time that does not pass, or that is over without a result */
export function bakeWaitLines({ bundles }: Pick<StatusReport, 'bundles'>): string[] {
  return bundles.flatMap(({ bundle, serial, bake }) =>
    bake?.waitsFor === undefined
      ? []
      : [`  bake time ${bundle} ${serial ?? ''} waits for ${bakeWaitText(bake.waitsFor)}`],
  );
}
