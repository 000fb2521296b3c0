// The workers of a status: what each uses, and what it answered. Pure: a report in, lines out.
import type { StatusReport, WorkerStatus } from '../../core/protocol/control-protocol.js';
import { counted, indented, roughly, secondTime, table } from './show-text.js';

/** @returns a table of the workers; nothing where there are none */
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
        ? `to be notified since ${at}`
        : `not up since ${at}; notified when it appears`;
    case 'unreachable':
      return `${worker.code ?? 'WORKER_UNREACHABLE'} since ${at}${triesText(worker, report)}${saidText(worker)}`;
    case 'refused':
      return `WORKER_REFUSED at ${at}${saidText(worker)}`;
  }
}

function provenText({ provenAtMs, observed }: WorkerStatus, nowMs: number): string {
  if (provenAtMs === undefined) return '';
  const unobserved = observed === false ? ', not observed since' : '';
  return `, proved ${roughly(nowMs - provenAtMs)} ago${unobserved}`;
}

/** Without an agent nothing notifies a worker until a person or a timer pulls. */
function triesText({ tries, nextNotificationAtMs }: WorkerStatus, { agent }: StatusReport): string {
  if (tries === undefined || nextNotificationAtMs === undefined) return '';
  const next = agent === 'stop' ? 'the next pull' : `${secondTime(nextNotificationAtMs)} UTC`;
  return `, ${counted(tries, 'notification')} without an answer, again at ${next}`;
}

/** Its own words, or why there are none. */
function saidText({ text }: WorkerStatus): string {
  const [first = ''] = indented(text, '', 1);
  return first === '' ? '' : `: ${first.slice(0, 100)}`;
}
