// The progress of a running cycle: events in, calls of the reporter out. Steps without a text are printed only with
// --verbose. The further lines of a step follow as notes.
import type { CycleEventLine, CycleWait, WorkerWait } from '../../core/cycle/cycle-report.js';
import type { ControlAnswer } from '../../core/protocol/control-protocol.js';
import { sizeText } from '../../core/size-text.js';
import type { Reporter, StepState } from '../console/command.js';
import type { CommonFlags } from '../console/flags.js';
import { secondTime } from './show-text.js';

const stateOf = { ok: 'ok', warn: 'warn', fail: 'FAIL', skip: 'skip' } as const satisfies Record<
  string,
  StepState
>;
const maxNotes = 20;

/** @returns a listener for the events of one cycle; it ignores other messages */
export function stepPrinter(
  reporter: Reporter,
  { verbose }: Partial<Pick<CommonFlags, 'verbose'>>,
): (message: CycleEventLine | ControlAnswer) => void {
  const detail = verbose === true ? 'all' : 'news';
  return (event) => {
    switch (event.type) {
      case 'step.started':
        return reporter.begin(event.step);
      case 'step.progress':
        return reporter.progress(event.step, {
          done: event.doneBytes,
          total: event.totalBytes,
          unit: 'bytes',
        });
      case 'step.finished':
        return finish(reporter, event, detail);
      case 'workers.awaited':
        return reporter.note(awaitedText(event));
      case 'reloaded':
        return reporter.note('the configuration was read again and is in use; its cycle follows');
      case 'cycle.awaited':
        return reporter.note(cycleText(event));
    }
  };
}

function finish(
  reporter: Reporter,
  event: CycleEventLine & { readonly type: 'step.finished' },
  detail: 'all' | 'news',
): void {
  const [first = '', ...rest] = event.text.split('\n').filter((line) => line.trim() !== '');
  const news =
    event.verdict === 'warn' || event.verdict === 'fail' || (event.verdict === 'ok' && first !== '');
  if (!news && detail === 'news') {
    reporter.drop(event.step);
    return;
  }
  reporter.finish(event.step, first, stateOf[event.verdict]);
  for (const line of rest.slice(0, maxNotes)) reporter.note(line);
  if (rest.length > maxNotes) reporter.note(`(${rest.length - maxNotes} more lines)`);
}

/** A request may end the download of that cycle: the next line of the step reports it. */
function cycleText({ cycle, step, doneBytes, totalBytes, resumable }: CycleWait & { cycle: string }): string {
  const bytes =
    doneBytes === undefined || totalBytes === undefined
      ? ''
      : `, ${sizeText(doneBytes)} of ${sizeText(totalBytes)} downloaded`;
  const whole =
    resumable === false ? '; its server sends files only as a whole, so the download is not ended' : '';
  return `cycle ${cycle} began before this request: ${step}${bytes}${whole}`;
}

const maxNamed = 5;

function awaitedText({ group, missing, untilAtMs }: WorkerWait): string {
  const more = missing.length > maxNamed ? `, and ${missing.length - maxNamed} more` : '';
  return `waiting for ${group} until ${secondTime(untilAtMs)} UTC: ${missing.slice(0, maxNamed).join(', ')}${more} not there`;
}
