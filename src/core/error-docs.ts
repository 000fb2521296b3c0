// What the documentation says of an error code beyond its row: its effect on the running policy.
// docs/errors.md, the pages of the site and `writ help CODE` are made of it. Owns words only: no behaviour.
import { type ErrorCode, type ErrorKind, type ErrorRow, errorCodes, exitCodeOfKind } from './error-codes.js';

/** What a person at 3 a.m. asks first: which policy answers now? */
const effectOfKind: Readonly<Record<ErrorKind, string>> = {
  usage: 'None: nothing was started.',
  config: 'None: nothing was started. A running agent keeps its configuration.',
  failed:
    'The active policy stays unchanged. If the error came after the swap, the previous generation is ' +
    'active again. The release is not remembered as refused: the next cycle tries it again.',
  rejected:
    'The active policy stays unchanged. The release is remembered as refused and is tried again later ' +
    '(`refusals.retry`), at boot, after a change of configuration, and by `writ pull --force`.',
  degraded: 'The new generation is active, but a worker does not use it, or has not proved that it does.',
  'rolled-back':
    'The previous generation is active again (at a first activation: none), and every worker was notified. ' +
    'The release is remembered as refused.',
  blocked: 'The active policy stays unchanged.',
  busy: 'None by this command: another process is at work.',
  deferred: 'The active policy stays unchanged. The release waits.',
};

/** Codes whose effect differs from that of their kind. */
const effectOfCode: Readonly<Partial<Record<ErrorCode, string>>> = {
  CHANGE_TOO_LARGE:
    'None: nothing was signed or published, and no serial was used. Hosts keep the head of the channel.',
  DELTA_MALFORMED: 'None: the whole archive is fetched instead. The release is not remembered as refused.',
  LOADER_BROKEN:
    'The previous generation is active again (at a first activation: none). The release is not remembered as ' +
    'refused: the next cycle tries it again.',
  BAKE_FAILED:
    'The newest settled release is active again, as a new generation, and every worker was notified. Where there is ' +
    'nothing to go back to, the failed release stays active, and health is critical.',
  RESTORE_UNRECORDED:
    'The generation that the message names is active. The refused one is not activated again, also not by a restart, and no ' +
    'worker is notified of it again.',
  WORKER_RESTARTED: 'None: the release stays active. More of them within its bake time take it back.',
  CONFIG_CHANGED: 'None: the agent goes on with the configuration that it has read.',
  ACTIVATION_BLOCKED:
    'The last good policy stays active. Refresh, scrub and status continue. The blocked release is not activated, and nothing ' +
    'is rolled back automatically, until the block ends: with `writ resume`, or when a newer release of its bundle is activated. If a ' +
    'worker, a probe or the disk made the rollback fail, it also ends when every worker uses the active policy.',
  STATE_VANISHED:
    'None: no file is written and no worker is notified. Workers keep what they have loaded; the path of the policy leads nowhere ' +
    'until the state directory is back.',
  RELEASE_HELD: 'The active policy stays unchanged until a newer serial is published or the hold ends.',
  FLEET_UNREACHABLE: 'None: policy does not depend on the fleet server.',
  AGENT_UNREACHABLE: 'None by this command. Whether an agent runs is unknown.',
  STATE_TOO_NEW:
    'The active policy stays unchanged, and so does every file of the state directory. Nothing newer is activated until ' +
    'the later version is installed again.',
  STATE_REBUILT:
    'The active policy stays. If the ledger or the journal was lost, every worker is notified again.',
  SWAP_OUTDATED:
    'What `current` names stays active: this cycle did not move it, or moved it and put it back. If another process changed ' +
    'the link meanwhile, its choice is active.',
  INTERRUPTED:
    'The active policy is the old or the new generation, complete. The next start finishes or undoes what was started.',
  INTERNAL: 'Unknown in general: the last line of the command and `writ status` say it.',
};

/** Codes that never end a command. */
const warnings: ReadonlySet<ErrorCode> = new Set(['STATE_REBUILT', 'CONFIG_CHANGED', 'WORKER_RESTARTED']);

export interface ErrorPage {
  readonly code: ErrorCode;
  readonly kind: ErrorKind;
  /** As `exit code 3`, or that it is always a warning. */
  readonly exit: string;
  readonly meaning: string;
  /** On the running policy. */
  readonly effect: string;
  readonly hint: string;
}

/** @returns all that is known of a code, in Markdown */
export function errorPage(code: ErrorCode): ErrorPage {
  const { kind, meaning, hint }: ErrorRow = errorCodes[code];
  const exit = warnings.has(code)
    ? 'always a warning: it changes no exit code'
    : `exit code ${exitCodeOfKind[kind]}`;
  return { code, kind, exit, meaning, effect: effectOfCode[code] ?? effectOfKind[kind], hint };
}
