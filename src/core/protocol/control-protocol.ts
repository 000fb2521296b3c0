// The control protocol of the agent: requests of commands over its socket and the responses, one JSON object per
// line (socket-protocol.ts). Has the types, the parser of requests and the size limit of responses.
//
//   pull, rollback, reload -> CycleEventLine* then one CycleResult        status -> one StatusReport
//   watch -> a StatusReport now and at each change, then {type: 'end'} when the agent ends
//   history        -> HistoryEntry* then {type: 'end'}            resume -> one ResumeResult, pause -> one PauseResult
//   verify -> CycleEventLine* of a repair, then one VerifyResult     refusals, forget -> one RefusalsResult
//   a request that fails -> one ControlError
import type { CycleEventLine, CycleResult, Problem, StepResult } from '../cycle/cycle-report.js';
import { WritError } from '../errors.js';
import { given } from '../given.js';
import { maxSocketLineBytes } from '../limits.js';
import type { PauseStatus, RememberedRefusal, StatusReport } from '../status/status.js';
import type { VerifyResult } from '../status/verify-report.js';
import type { HealthResult } from './read-protocol.js';
import type { SocketMessage } from './socket-protocol.js';

export type ControlRequest =
  | {
      readonly type: 'pull';
      readonly force: boolean;
      readonly by: string;
      /** The active releases are settled at once, without a bake time. */
      readonly noBake?: true;
    }
  | { readonly type: 'reload'; readonly by: string }
  | { readonly type: 'status' }
  | { readonly type: 'watch' }
  | { readonly type: 'history'; readonly limit: number; readonly cycle?: string }
  | {
      readonly type: 'rollback';
      /** Undefined: the previous generation. */
      readonly generation?: number;
      readonly by: string;
      readonly reason?: string;
      /** Permits a withdrawn release. */
      readonly force?: boolean;
    }
  | { readonly type: 'resume'; readonly by: string }
  | {
      readonly type: 'pause';
      readonly by: string;
      readonly reason: string;
      /** Epoch milliseconds; undefined: until `writ resume`. */
      readonly untilMs?: number;
    }
  | { readonly type: 'verify'; readonly repair: boolean; readonly by: string }
  | { readonly type: 'refusals' }
  | {
      readonly type: 'forget';
      readonly by: string;
      /** Undefined: of all bundles. */
      readonly bundle?: string;
      /** Undefined: all refusals of the bundle. */
      readonly serial?: number;
    };

export type ControlAnswer =
  | CycleEventLine
  | Bounded<CycleResult>
  | Bounded<StatusReport>
  | Bounded<HistoryEntry>
  | ResumeResult
  | PauseResult
  | Bounded<VerifyResult>
  | Bounded<RefusalsResult>
  | Bounded<HealthResult>
  | ControlError
  /** `reloaded`: the agent uses the new configuration, and the cycle of the reload follows. */
  | { readonly type: 'reloaded' | 'end' };

/** The entries that were removed so that a response fits a line: name of the list -> number of removed entries. */
export type Bounded<T> = T & { readonly truncated?: Readonly<Record<string, number>> };

export interface ControlError extends Problem {
  readonly type: 'error';
}

export interface ResumeResult {
  readonly schema: 1;
  readonly type: 'resume.result';
  /** What the request ended; empty if nothing blocked changes. */
  readonly ended: readonly {
    readonly kind: 'hold' | 'block' | 'pause' | 'new-state';
    /** As `dns-edge 42`; for `new-state` the accepted directory. */
    readonly what: string;
  }[];
}

export interface PauseResult {
  readonly schema: 1;
  readonly type: 'pause.result';
  readonly pause: PauseStatus;
}

export interface RefusalsResult {
  readonly schema: 1;
  readonly type: 'refusals.result';
  /** The oldest first. */
  readonly refusals: readonly RememberedRefusal[];
}

/** One line of history.jsonl: a cycle that changed something or had a new result. */
export interface HistoryEntry {
  readonly schema: 1;
  readonly type: 'history.entry';
  /** The user who requested it; undefined without a request. */
  readonly by?: string;
  /** Reason given with a rollback. */
  readonly reason?: string;
  /** The pause that an operator began, or `none` if one was ended. If the ledger is lost, the pause is restored from here. */
  readonly pause?: PauseStatus | 'none';
  /** The interrupted cycle that this recovery completed. */
  readonly recovers?: string;
  readonly result: CycleResult;
  readonly steps: readonly StepResult[];
}

export type {
  AgentState,
  BundleStatus,
  StatusReport,
  UntrustedStatus,
  WorkerStatus,
} from '../status/status.js';

export const maxHistoryEntries = 1000;
const maxTextCharacters = 200;

/**
 * Parses a request. Unknown members are ignored, so that a newer command can send requests to an older agent.
 * @throws WritError MESSAGE_MALFORMED with the wrong member
 */
export function parseControlRequest(message: SocketMessage): ControlRequest {
  const { type } = message;
  const text = (name: string): string => textAt(message, name);
  const isGiven = (name: string): boolean => message[name] !== undefined;
  switch (type) {
    case 'pull':
      return {
        ...{ type, force: trueAt(message, 'force') === true, by: text('by') },
        ...given({ noBake: trueAt(message, 'noBake') }),
      };
    case 'status':
    case 'watch':
    case 'refusals':
      return { type };
    case 'forget':
      return {
        type,
        by: text('by'),
        ...given({
          bundle: isGiven('bundle') ? text('bundle') : undefined,
          serial: isGiven('serial') ? countAt(message, 'serial') : undefined,
        }),
      };
    case 'history': {
      const limit = countAt(message, 'limit', maxHistoryEntries);
      return { type, limit, ...given({ cycle: isGiven('cycle') ? text('cycle') : undefined }) };
    }
    case 'rollback':
      return {
        type,
        by: text('by'),
        ...given({
          generation: isGiven('generation') ? countAt(message, 'generation') : undefined,
          reason: isGiven('reason') ? text('reason') : undefined,
          force: trueAt(message, 'force'),
        }),
      };
    case 'resume':
    case 'reload':
      return { type, by: text('by') };
    case 'pause':
      return {
        type,
        by: text('by'),
        reason: text('reason'),
        ...given({ untilMs: isGiven('untilMs') ? countAt(message, 'untilMs') : undefined }),
      };
    case 'verify':
      return { type, repair: message['repair'] === true, by: text('by') };
    default:
      throw malformed('type');
  }
}

const cycleLists = ['bundles', 'workers', 'problems', 'warnings'];
/** The lists and objects that a response has in all versions, and that its readers access without a check. */
const partsOf: ReadonlyMap<string, readonly [lists: readonly string[], objects: readonly string[]]> = new Map(
  [
    ['pull.result', [cycleLists, []]],
    ['rollback.result', [cycleLists, []]],
    ['status.result', [['bundles', 'workers', 'holds', 'problems'], ['freshness']]],
    ['verify.result', [['generations', 'found', 'untrusted'], []]],
    ['history.entry', [['steps'], ['result']]],
    ['resume.result', [['ended'], []]],
    ['pause.result', [[], ['pause']]],
    ['refusals.result', [['refusals'], []]],
  ],
);

/**
 * Requires that a response of an agent has these members.
 * @throws WritError MESSAGE_MALFORMED with the wrong member
 */
export function requireAnswer(answer: ControlAnswer): void {
  const [lists, objects] = partsOf.get(answer.type) ?? [[], []];
  const members = answer as unknown as Readonly<Record<string, unknown>>;
  const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
  const wrong =
    lists.find((name) => !(Array.isArray(members[name]) && members[name].every(isObject))) ??
    objects.find((name) => !isObject(members[name]));
  if (wrong === undefined) return;
  const text = `the agent answered ${answer.type}, and its \`${wrong}\` is missing or wrong`;
  throw new WritError('MESSAGE_MALFORMED', text, { facts: { type: answer.type, member: wrong } });
}

/** @returns the error as a response */
export function controlError(error: WritError): ControlError {
  const { code, message, hint, facts } = error;
  return boundAnswer({ type: 'error', code, message, hint, facts });
}

/**
 * Makes a response fit one line, even for a host with thousands of workers. Texts over 2,000 characters are cut. Then the longest
 * lists are halved until the response fits, and `truncated` has the number of removed entries.
 */
export function boundAnswer<T extends object>(answer: T, maxBytes: number = maxSocketLineBytes): Bounded<T> {
  const bounded = clip(answer, 0) as Answer;
  const dropped: Record<string, number> = {};
  while (sizeOf(bounded) > maxBytes) {
    const [longest] = Object.entries(listsOf(bounded)).sort(
      ([, a], [, b]) => sizeOf(b.list) - sizeOf(a.list),
    );
    if (longest === undefined)
      throw new WritError('MESSAGE_MALFORMED', 'an answer cannot be shortened enough');
    const [name, { list, holder, key }] = longest;
    const keep = Math.floor(list.length / 2);
    dropped[name] = (dropped[name] ?? 0) + list.length - keep;
    holder[key] = list.slice(0, keep);
    bounded['truncated'] = dropped;
  }
  return bounded as Bounded<T>;
}

type Answer = Record<string, unknown>;

/** @returns the non-empty lists of the response and of the objects in it, by name */
function listsOf(holder: Answer): Record<string, { list: readonly unknown[]; holder: Answer; key: string }> {
  const found: ReturnType<typeof listsOf> = {};
  for (const [key, value] of Object.entries(holder)) {
    if (Array.isArray(value)) {
      if (value.length > 0) found[key] = { list: value, holder, key };
    } else if (typeof value === 'object' && value !== null && key !== 'truncated') {
      Object.assign(found, listsOf(value as Answer));
    }
  }
  return found;
}

const maxAnswerTextCharacters = 2000;
const maxAnswerDepth = 8;

function clip(value: unknown, depth: number): unknown {
  if (typeof value === 'string') {
    if (value.length <= maxAnswerTextCharacters) return value;
    return `${value.slice(0, maxAnswerTextCharacters)}... (${value.length - maxAnswerTextCharacters} more)`;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxAnswerDepth) return '...';
  if (Array.isArray(value)) return value.map((one) => clip(one, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, clip(one, depth + 1)]));
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** @returns true if the member is true; any other value counts as undefined */
function trueAt(message: SocketMessage, name: string): true | undefined {
  return message[name] === true ? true : undefined;
}

function textAt(message: SocketMessage, name: string): string {
  const value = message[name];
  if (typeof value !== 'string' || value === '' || value.length > maxTextCharacters) throw malformed(name);
  return value;
}

function countAt(message: SocketMessage, name: string, max: number = Number.MAX_SAFE_INTEGER): number {
  const value = message[name];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw malformed(name);
}

function malformed(member: string): WritError {
  const text = `a request on the control socket: \`${member}\` is missing or wrong`;
  return new WritError('MESSAGE_MALFORMED', text, { facts: { member } });
}
