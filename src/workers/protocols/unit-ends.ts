// Counts how runs of a systemd unit ended since a mark. Queries systemctl at each call, and the journal only after a change. An end in
// neither record is an unrecorded end.
import { maxHookOutputBytes } from '../../core/limits.js';
import { runCommand } from '../../platform/process/run-command.js';
import type { Clock } from '../../platform/time/clock.js';
import type { RecordedEnds } from '../contract/driver.js';
import {
  endsByCounters,
  type JournalEnds,
  journalFields,
  parseUnitJournal,
  parseUnitRuns,
  runProperties,
  type UnitRuns,
} from './systemd-journal.js';

const askTimeoutMs = 5000;
/** Journal entries of one call. More ends are a crash loop in any case. */
const maxEntries = 1000;
/** How much later journald may write entries, on a busy host, than systemd answers. */
const lateEntriesMs = 1000;

export interface UnitEndsOptions {
  /** Search path for programs; undefined: the fixed paths of run-command. */
  readonly programPath?: string;
  /** The signal that Writ sends to the process; undefined if systemd sends it. */
  readonly signal?: string | undefined;
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>;
}

/** The position in the record up to which ends were counted. */
interface Mark extends Pick<UnitRuns, 'invocation' | 'restarts' | 'isFailed'> {
  readonly atUs: number;
}

/** @returns undefined if systemctl does not answer, or the name of the unit is invalid */
export async function unitEndsSince(
  unit: string,
  mark: string | undefined,
  options: UnitEndsOptions,
): Promise<RecordedEnds | undefined> {
  const show = ['systemctl', '--no-pager', 'show', `--property=${runProperties}`, '--', unit] as const;
  const shown = await outputOf(show, options);
  const now = shown === undefined ? undefined : parseUnitRuns(shown);
  if (now === undefined) return undefined;
  const before = mark === undefined ? undefined : parseMark(mark);
  const none = { abnormal: 0, clean: 0, unrecorded: 0 };
  if (mark === undefined || before === undefined)
    return { ...none, mark: markText(now, options.clock.nowMs() * 1000) };
  if (isSame(before, now)) return { ...none, mark };
  const journal = await readNewEnds(unit, before.atUs, options);
  if (journal !== undefined) {
    const { abnormal, clean, bySignal, lastAtUs = before.atUs } = journal;
    // An end by the signal of a notification is no evidence against a release, so it counts as unrecorded.
    return { abnormal, clean, unrecorded: bySignal, mark: markText(now, lastAtUs) };
  }
  // Move the mark to now, so that later journal entries of the same ends are not counted again.
  return { clean: 0, ...endsByCounters(before, now), mark: markText(now, options.clock.nowMs() * 1000) };
}

/** @returns undefined if the journal has no newer end, also after a second attempt */
async function readNewEnds(
  unit: string,
  afterUs: number,
  options: UnitEndsOptions,
): Promise<JournalEnds | undefined> {
  const hasEnds = (one: JournalEnds | undefined): boolean =>
    one !== undefined && one.abnormal + one.clean + one.bySignal > 0;
  const first = await readJournal(unit, afterUs, options);
  if (first === undefined || hasEnds(first)) return first;
  await options.clock.sleep(lateEntriesMs);
  const second = await readJournal(unit, afterUs, options);
  return hasEnds(second) ? second : undefined;
}

async function readJournal(unit: string, afterUs: number, options: UnitEndsOptions) {
  const since = `--since=@${Math.floor(afterUs / 1e6)}`;
  const text = await outputOf(
    [
      ...([
        'journalctl',
        '--quiet',
        '--no-pager',
        '--output=json',
        `--output-fields=${journalFields}`,
      ] as const),
      ...[since, `--lines=${maxEntries}`, '_PID=1', `UNIT=${unit}`],
    ],
    options,
  );
  return text === undefined ? undefined : parseUnitJournal(text, { afterUs, signal: options.signal });
}

async function outputOf(
  argv: readonly [string, ...string[]],
  { programPath }: UnitEndsOptions,
): Promise<string | undefined> {
  const result = await runCommand({
    argv,
    env: programPath === undefined ? {} : { PATH: programPath },
    cwd: '/',
    timeoutMs: askTimeoutMs,
    maxOutputBytes: maxHookOutputBytes,
  });
  return result.kind === 'exited' && result.exitCode === 0 && !result.truncated ? result.stdout : undefined;
}

function isSame(before: Mark, now: UnitRuns): boolean {
  return (
    before.invocation === now.invocation &&
    before.restarts === now.restarts &&
    before.isFailed === now.isFailed
  );
}

function markText({ invocation, restarts, isFailed }: UnitRuns, atUs: number): string {
  return [invocation, restarts, isFailed ? 'failed' : 'ok', atUs].join(' ');
}

function parseMark(text: string): Mark | undefined {
  const match = /^([0-9a-f]*) ([0-9]{1,9}) (ok|failed) ([0-9]{1,16})$/.exec(text);
  if (match === null) return undefined;
  const [, invocation = '', restarts = '', state = '', atUs = ''] = match;
  return { invocation, restarts: Number(restarts), isFailed: state === 'failed', atUs: Number(atUs) };
}
