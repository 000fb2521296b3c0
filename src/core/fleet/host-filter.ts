// The filter of hosts, as `--where` and the URLs of pages contain it: `state=refused,bundle=dns-edge,label.site=fra`. All conditions
// must match. A backslash escapes a comma or a backslash in a value. Pure; src/fleet selects the rows.
import { WritError } from '../errors.js';
import { type Standing, standings } from './signed-releases.js';

/** Conditions on one bundle of a host. `state` is among them if its value is a state of a bundle. */
export interface BundleFilter {
  readonly bundle?: string;
  readonly channel?: string;
  readonly serial?: number;
  readonly active?: string;
  readonly offered?: string;
  readonly code?: string;
  readonly standing?: Standing;
}

export interface HostFilter {
  readonly bundle: BundleFilter;
  readonly is?:
    | ('waiting' | 'accepted' | 'retired')
    | ('silent' | 'unjudged' | 'stopped' | 'blocked' | 'critical' | 'cloned');
  readonly host?: string;
  readonly health?: string;
  readonly version?: string;
  readonly root?: number;
  readonly kind?: string;
  readonly labels: Readonly<Record<string, string>>;
}

const maxFilterLength = 2000;
const maxConditions = 16;
const maxValueLength = 255;

type Draft = { bundle: Record<string, unknown>; labels: Record<string, string>; [key: string]: unknown };

const active = ['confirmed', 'notified', 'unconfirmed'];
const offered = ['refused', 'rolled-back', 'deferred', 'failed'];
const own = [
  'waiting',
  'accepted',
  'retired',
  'silent',
  'unjudged',
  'stopped',
  'blocked',
  'critical',
  'cloned',
];

const keys: Readonly<Record<string, (draft: Draft, value: string) => void>> = {
  state: (draft, value) => {
    // The outcome of `writ pull` is REJECTED: accept it as a synonym.
    const state = value === 'rejected' ? 'refused' : value;
    if (active.includes(state)) draft.bundle['active'] = state;
    else if (offered.includes(state)) draft.bundle['offered'] = state;
    else if (own.includes(state)) draft['is'] = state;
    else throw refused(`${value} is not a state`, `One of ${[...active, ...offered, ...own].join(', ')}.`);
  },
  bundle: (draft, value) => {
    draft.bundle['bundle'] = value;
  },
  channel: (draft, value) => {
    draft.bundle['channel'] = value;
  },
  serial: (draft, value) => {
    draft.bundle['serial'] = numberOf('serial', value);
  },
  code: (draft, value) => {
    draft.bundle['code'] = value;
  },
  standing: (draft, value) => {
    if (!standings.some((one) => one === value))
      throw refused(`${value} is not a standing`, `One of ${standings.join(', ')}.`);
    draft.bundle['standing'] = value;
  },
  host: (draft, value) => {
    draft['host'] = value;
  },
  health: (draft, value) => {
    draft['health'] = value;
  },
  version: (draft, value) => {
    draft['version'] = value;
  },
  root: (draft, value) => {
    draft['root'] = numberOf('root', value);
  },
  kind: (draft, value) => {
    draft['kind'] = value;
  },
};

/**
 * Parses conditions such as `state=refused,bundle=dns-edge,label.site=fra`, which must all match. Reads no hosts.
 * @param text '' matches all hosts except the retired ones; a backslash escapes a comma or a backslash
 * @returns the conditions. Those on a bundle are in `bundle`, those on labels in `labels` (both `{}` without any), a state of
 *   the host itself in `is`. Keys that are not named are absent. The state `rejected` means `refused`.
 * @throws WritError USAGE for an unknown key, state or standing, an empty value, a key that occurs twice, a number that is not
 *   whole, more than 16 conditions or 2000 characters, or a value above 255 characters
 */
export function parseHostFilter(text: string): HostFilter {
  if (text.length > maxFilterLength) throw refused(`it is longer than ${maxFilterLength} characters`);
  const draft: Draft = { bundle: {}, labels: Object.create(null) as Record<string, string> };
  const seen = new Set<string>();
  const conditions = text === '' ? [] : splitConditions(text);
  if (conditions.length > maxConditions) throw refused(`at most ${maxConditions} conditions are allowed`);
  for (const condition of conditions) {
    const at = condition.indexOf('=');
    const [key, value] = [condition.slice(0, Math.max(0, at)), condition.slice(at + 1)];
    if (at < 1 || value === '') throw refused(`${quoted(condition)} is not KEY=VALUE`);
    if (value.length > maxValueLength) throw refused(`the value of ${quoted(key)} is too long`);
    if (seen.has(key))
      throw refused(`${quoted(key)} occurs twice`, 'All conditions must match: give each key once.');
    seen.add(key);
    apply(draft, key, value);
  }
  return draft as unknown as HostFilter;
}

function apply(draft: Draft, key: string, value: string): void {
  if (key.startsWith('label.') && key.length > 'label.'.length) {
    draft.labels[key.slice('label.'.length)] = value;
    return;
  }
  const set = Object.hasOwn(keys, key) ? keys[key] : undefined;
  if (set === undefined)
    throw refused(
      `${quoted(key)} is not a filter key`,
      `One of ${Object.keys(keys).join(', ')}, label.NAME.`,
    );
  set(draft, value);
}

function splitConditions(text: string): string[] {
  const parts = [''];
  for (const [piece] of text.matchAll(/\\[\\,]|./gsu)) {
    if (piece === ',') parts.push('');
    else parts.push((parts.pop() ?? '') + (piece.length === 2 && piece.startsWith('\\') ? piece[1] : piece));
  }
  return parts;
}

function numberOf(key: string, value: string): number {
  if (/^[0-9]{1,16}$/.test(value) && Number.isSafeInteger(Number(value))) return Number(value);
  throw refused(`${key} must be a whole number`);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 60));
}

function refused(why: string, hint = 'For example state=refused,bundle=dns-edge,label.site=fra.'): WritError {
  return new WritError('USAGE', `the filter was not understood: ${why}`, { hint });
}
