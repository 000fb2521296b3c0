// Whether the directory at the path of the state is the right one: compares what is there with what this process opened and
// what this boot knows (adr/0067). Pure: state-mark.ts reads the facts.
import { sealed, unsealed } from '../state/sealed-json.js';

export interface DirectoryIdentity {
  readonly device: bigint;
  readonly inode: bigint;
}

export interface MarkFacts {
  /** The directory at the path now; undefined where there is none. */
  readonly found: DirectoryIdentity | undefined;
  /** The directory that this process opened; undefined before that. */
  readonly opened: DirectoryIdentity | undefined;
  /** The mark in the directory; undefined where there is none, or none that can be read. */
  readonly mark: string | undefined;
  /** The mark that this process or this boot knows; undefined on a new host and after a reboot. */
  readonly known: string | undefined;
  /** The directory has a ledger and a tree. */
  readonly hasPolicy: boolean;
}

/** `absent`: no directory; `replaced`: not the one that was opened; `empty`: no mark and no policy; `other`: another mark. */
export type VanishedReason = 'absent' | 'replaced' | 'empty' | 'other';

export type MarkVerdict =
  | { readonly kind: 'vanished'; readonly because: VanishedReason }
  /** A new mark is to be written. */
  | { readonly kind: 'unmarked' }
  | { readonly kind: 'right'; readonly mark: string };

/** @returns what the directory is; a mark that is missing beside a policy is no alarm, because a backup can be older than marks */
export function judgeMark({ found, opened, mark, known, hasPolicy }: MarkFacts): MarkVerdict {
  if (found === undefined)
    return known === undefined && opened === undefined
      ? { kind: 'unmarked' }
      : { kind: 'vanished', because: 'absent' };
  if (opened !== undefined && !isSame(found, opened)) return { kind: 'vanished', because: 'replaced' };
  if (mark === undefined)
    return known === undefined || hasPolicy ? { kind: 'unmarked' } : { kind: 'vanished', because: 'empty' };
  return known === undefined || mark === known
    ? { kind: 'right', mark }
    : { kind: 'vanished', because: 'other' };
}

/** @returns whether both are one directory of the running system, by device and inode */
export function isSame(one: DirectoryIdentity, other: DirectoryIdentity): boolean {
  return one.device === other.device && one.inode === other.inode;
}

const found: Readonly<Record<VanishedReason, string>> = {
  absent: 'does not exist any more',
  replaced: 'is not the directory that this process opened',
  empty: 'is empty, and this host has had a policy there since its last boot',
  other: 'belongs to another host or another installation: its mark is not the one that this boot has seen',
};

/** @returns one sentence without a period: the path of the state directory and what is wrong with it */
export function vanishedText(state: string, because: VanishedReason): string {
  return `${state} ${found[because]}`;
}

/** @returns what a person does; undefined where the hint of the code fits */
export function vanishedHint(because: VanishedReason): string | undefined {
  if (because === 'absent')
    return 'Mount the state directory again: nothing else is needed. If a person removed it on purpose: `systemctl stop writ-agent`, create the directory, `writ resume --new-state`, `systemctl start writ-agent`.';
  if (because !== 'replaced') return undefined;
  return 'Mount the state directory again: nothing else is needed. If the right one is there, as after a restore from a backup, restart the agent.';
}

const markForm = /^[0-9a-f]{32}$/;

/** @returns the mark that the file of the state directory has; undefined for any other content */
export function parseMark(text: string): string | undefined {
  const { writ, mark } = objectIn(text);
  return writ === 1 && typeof mark === 'string' && markForm.test(mark) ? mark : undefined;
}

/** @returns the mark that the copy in the run directory has for this boot; undefined for any other content */
export function parseKnownMark(text: string, boot: string): string | undefined {
  return objectIn(text)['boot'] === boot ? parseMark(text) : undefined;
}

/**
 * @returns the content of a file with the state mark
 * @param more the boot id, only in the copy outside of the state directory
 */
export function markText(mark: string, more: { readonly boot?: string } = {}): string {
  return sealed({ writ: 1, mark, ...more });
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = unsealed(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return {};
    throw error;
  }
}
