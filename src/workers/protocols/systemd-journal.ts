// Determines how runs of a unit ended from systemd's journal, or from its counters. Pure: unit-ends.ts runs the queries. A requested
// stop or restart is a clean end, whatever the exit code.
import { constants } from 'node:os';

/** Message ids of systemd (systemd/sd-messages.h). */
const messageIds = {
  stopping: 'de5b426a63be47a7b6ac3eaac82e2f6f',
  failed: 'd9b373ed55a64feb8242e02dbe79a49c',
  succeeded: '7ad2d189f7e94e70a38c781354912448',
  exited: '98e322203f7a4ed290d09fe03c09fe15',
} as const;

export const journalFields = 'MESSAGE_ID,INVOCATION_ID,EXIT_CODE,EXIT_STATUS';

export interface JournalEnds {
  readonly abnormal: number;
  readonly clean: number;
  /** Ends by the signal of a notification. A process that does not handle the signal yet exits, whatever its policy. */
  readonly bySignal: number;
  /** Time of the last entry in microseconds; undefined without entries. */
  readonly lastAtUs: number | undefined;
}

export interface JournalReading {
  /** Entries up to this time were counted before. */
  readonly afterUs: number;
  /**
   * The signal that Writ sends, as USR1. A starting process may not handle it yet; then the release is not at fault. systemd itself
   * counts an end by HUP as success.
   */
  readonly signal: string | undefined;
}

/**
 * @param text output of `journalctl --output=json` for one unit and process 1
 * @returns undefined if a line is not a journal entry
 */
export function parseUnitJournal(text: string, { afterUs, signal }: JournalReading): JournalEnds | undefined {
  const signalNumber = Object.entries(constants.signals).find(([name]) => name === `SIG${signal}`)?.[1];
  const ownExit = `killed ${signalNumber}`;
  const known: KnownRuns = { stopping: new Set(), signalled: new Set() };
  const counts = { abnormal: 0, clean: 0, bySignal: 0 };
  let lastAtUs: number | undefined;
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const entry = entryOf(line);
    if (entry === undefined) return undefined;
    const { atUs, messageId, invocation, exit } = entry;
    if (messageId === messageIds.stopping) known.stopping.add(invocation);
    if (messageId === messageIds.exited && exit === ownExit) known.signalled.add(invocation);
    if (atUs <= afterUs) continue;
    lastAtUs = atUs;
    const kind = kindOfEnd(entry, known);
    if (kind !== undefined) counts[kind] += 1;
  }
  return { ...counts, lastAtUs };
}

/** Invocation ids of runs that have an earlier entry of this kind. */
interface KnownRuns {
  readonly stopping: Set<string>;
  readonly signalled: Set<string>;
}

/** @returns undefined for an entry that does not report the end of a run */
function kindOfEnd(
  { messageId, invocation }: JournalEntry,
  { stopping, signalled }: KnownRuns,
): 'abnormal' | 'clean' | 'bySignal' | undefined {
  if (messageId === messageIds.succeeded) return 'clean';
  if (messageId !== messageIds.failed) return undefined;
  if (stopping.has(invocation)) return 'clean';
  return signalled.has(invocation) ? 'bySignal' : 'abnormal';
}

interface JournalEntry {
  readonly atUs: number;
  readonly messageId: string;
  readonly invocation: string;
  readonly exit: string;
}

function entryOf(line: string): JournalEntry | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry !== 'object' || entry === null) return undefined;
    const text = (name: string): string => {
      const value: unknown = Reflect.get(entry, name);
      return typeof value === 'string' ? value : '';
    };
    const atUs = Number(text('__REALTIME_TIMESTAMP'));
    if (!Number.isSafeInteger(atUs) || atUs <= 0) return undefined;
    const exit = `${text('EXIT_CODE')} ${text('EXIT_STATUS')}`;
    return { atUs, messageId: text('MESSAGE_ID'), invocation: text('INVOCATION_ID'), exit };
  } catch {
    return undefined;
  }
}

/** The counters of `systemctl show` about the runs of a unit. */
export interface UnitRuns {
  readonly invocation: string;
  readonly restarts: number;
  readonly isFailed: boolean;
  /** systemd restarts the unit only after a failure, so that each restart means a failure. */
  readonly restartsOnFailure: boolean;
}

export const runProperties = 'InvocationID,NRestarts,ActiveState,Restart';

/** @param text output of `systemctl show --property=...`. @returns undefined if a property is missing */
export function parseUnitRuns(text: string): UnitRuns | undefined {
  const values = new Map(
    text.split('\n').map((line): [string, string] => {
      const [name = '', ...value] = line.split('=');
      return [name, value.join('=')];
    }),
  );
  const [invocation, restarts] = [values.get('InvocationID'), values.get('NRestarts')];
  const [active, restart] = [values.get('ActiveState'), values.get('Restart')];
  if (invocation === undefined || restarts === undefined || active === undefined || restart === undefined)
    return undefined;
  if (!/^[0-9]{1,9}$/.test(restarts)) return undefined;
  return {
    ...{ invocation, restarts: Number(restarts), isFailed: active === 'failed' },
    restartsOnFailure: /^on-(failure|abnormal|abort|watchdog)$/.test(restart),
  };
}

/**
 * Counts ends without a journal. A higher restart counter of a unit that restarts on failure, and a failed unit, mean failures.
 * Every other new run has no recorded cause.
 */
export function endsByCounters(
  before: Pick<UnitRuns, 'invocation' | 'restarts' | 'isFailed'>,
  now: UnitRuns,
): { readonly abnormal: number; readonly unrecorded: number } {
  // A manual start resets the counter.
  const grown = now.restarts >= before.restarts ? now.restarts - before.restarts : now.restarts;
  const failed = now.isFailed && !before.isFailed ? 1 : 0;
  if (now.restartsOnFailure || failed > 0)
    return { abnormal: (now.restartsOnFailure ? grown : 0) + failed, unrecorded: 0 };
  return { abnormal: 0, unrecorded: now.invocation === before.invocation ? 0 : 1 };
}
