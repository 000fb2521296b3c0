// The effect of each error on the running policy: an operator at night asks first which policy the workers use now. Each code
// has its own entry, because codes of one kind occur before a move, after one, or on a machine that runs no policy.
import type { ErrorCode } from './error-codes.js';

const nothingDone = 'None: the command ended before it changed anything.';
const notStarted = 'None: nothing was started. A running agent keeps its configuration.';
const noneByThisCommand = 'None by this command: another process is at work.';
const onPublisher =
  'None: nothing was published. Hosts keep the release that they have, until its metadata expires or a newer one is published.';
const onFleet = 'None: policy does not depend on the fleet server.';
const nextCycleTries = 'The release is not remembered as refused: the next cycle tries it again.';
/** Errors of metadata and downloads: they end the preparation of a release. */
const notFetched = `The release that is active stays active: no newer one of its bundle is activated. ${nextCycleTries}`;
const beforeSwap = `The active policy stays unchanged: the error occurs before the swap. ${nextCycleTries}`;
const remembered =
  'The active policy stays unchanged. The release is remembered as refused and is tried again later ' +
  '(`refusals.retry`), at boot, after a change of configuration, and by `writ pull --force`.';
/** Errors that occur in each part of a cycle. */
const atAnyPoint = `The active policy stays unchanged. If the error came after the swap, the previous generation is active again. ${nextCycleTries}`;
const restored =
  'The previous generation is active again (at a first activation: none), and every worker was notified. ' +
  'The release is remembered as refused.';
const restoredTriedLater =
  'The previous generation is active again (at a first activation: none), and every worker was notified. The release is not ' +
  'remembered as refused: it is tried again after a minute, then at growing intervals.';
const waits = 'The active policy stays unchanged. The release waits.';
const notProven =
  'The new generation is active, but a worker does not use it, or has not proved that it does.';

export const errorEffects: Readonly<Record<ErrorCode, string>> = {
  // usage and configuration
  USAGE: nothingDone,
  CONFIG_UNREADABLE: notStarted,
  CONFIG_SYNTAX: notStarted,
  CONFIG_INVALID: notStarted,
  CONFIG_CHANGED: 'None: the agent goes on with the configuration that it has read.',
  PATH_UNSAFE: notStarted,
  PATH_CROSS_DEVICE: notStarted,
  SOCKET_PATH_TOO_LONG: notStarted,
  ROOT_MISSING: notStarted,
  ROOT_UNUSABLE: notStarted,
  ROOT_NOT_LINKED: notStarted,

  // trust
  METADATA_MALFORMED: notFetched,
  SIGNATURE_THRESHOLD: notFetched,
  SIGNATURE_WRONG_KEY: notFetched,
  SIGNATURE_DUPLICATE: notFetched,
  METADATA_ROLLBACK: notFetched,
  METADATA_EXPIRED: notFetched,
  METADATA_MIX: notFetched,
  METADATA_MISSING: notFetched,
  DELEGATION_LIMIT: notFetched,
  ROOT_CHAIN_TOO_LONG: notFetched,
  TRUST_STORE_DAMAGED:
    'The active policy stays unchanged. No release is activated until the trust store is restored.',
  TARGET_UNKNOWN: notFetched,
  TARGET_MISSING: notFetched,
  TARGET_MALFORMED: notFetched,
  CLOCK_BEHIND:
    'None: the active policy stays, and new releases are activated. The time of the newest signature decides what has expired.',
  UNTRUSTED_ACTIVE:
    'The active policy stays, and workers use it, unless `untrusted: rollback` is configured: then the newest trusted ' +
    'generation is activated.',
  RELEASE_UNTRUSTED: nothingDone,
  RELEASE_WITHDRAWN: nothingDone,
  ACTIVE_WITHDRAWN:
    'The withdrawn release stays active, and workers use it. Another release is tried at each poll, unless the host is paused or blocked.',
  POLICY_STALE: 'None: the active policy stays. The commands of `onStale` are run.',
  RELEASE_STALE: 'The active policy stays unchanged, and the release that is offered is tried at each poll.',
  STALE_COMMAND_FAILED:
    'None by Writ: the active policy stays unchanged. The changes by the command itself are unknown.',

  // networks
  SERVER_UNREACHABLE: notFetched,
  PROXY_REFUSED: notFetched,
  PROXY_INVALID: notStarted,
  SERVER_ERROR: notFetched,
  SERVER_BUSY: notFetched,
  REDIRECT_REFUSED: notFetched,
  DOWNLOAD_TOO_LARGE: notFetched,
  DOWNLOAD_TRUNCATED: notFetched,
  DOWNLOAD_DIGEST: notFetched,
  DOWNLOAD_TIMEOUT: notFetched,

  // releases
  ARCHIVE_MALFORMED: remembered,
  ENTRY_REFUSED: remembered,
  ARCHIVE_LIMIT: remembered,
  MANIFEST_MALFORMED: remembered,
  MANIFEST_DIGEST: remembered,
  MANIFEST_MISMATCH: remembered,
  DELTA_MALFORMED: 'None: the whole archive is fetched instead. The release is not remembered as refused.',
  DELTA_MISMATCH: 'None: the whole archive is fetched instead. The release is not remembered as refused.',
  DELTA_FAILED: 'None: the whole archive is fetched instead. The release is not remembered as refused.',
  SERIAL_ROLLBACK: remembered,
  SERIAL_REUSED: remembered,
  CREATED_IN_FUTURE: remembered,
  CHECK_FAILED: remembered,
  CHECK_BROKEN: beforeSwap,
  CHECK_DEFERRED: waits,
  CANARY_FAILED: remembered,
  CANARY_BROKEN: beforeSwap,
  CANARY_DEFERRED: waits,
  SANDBOX_MISSING: atAnyPoint,
  SANDBOX_BROKEN: atAnyPoint,
  CANDIDATE_CHANGED: beforeSwap,
  REMEMBERED_REFUSAL: remembered,

  // workers
  LOADER_FAILED: restored,
  LOADER_BROKEN: restoredTriedLater,
  LOADER_DEFERRED:
    'The previous generation is active again (at a first activation: none). The release is not remembered as refused: it is ' +
    'tried again at growing intervals.',
  WORKER_REFUSED: restored,
  RESTORE_UNRECORDED:
    'The generation that the message names is active. The refused one is not activated again, also not by a restart, and no ' +
    'worker is notified of it again.',
  BAKE_FAILED:
    'The newest settled release is active again, as a new generation, and every worker was notified. Where there is ' +
    'nothing to go back to, the failed release stays active, and health is critical.',
  BAKE_OVERDUE:
    'The release stays active, because nothing distinguishes it from a worker that a person stopped. Its bake time passes when a worker has it.',
  CONTACT_LOST:
    'The release before it is active again, and every worker was notified. If the server stays away too, the release is ' +
    'activated again at the first contact, or after 10, 20 and 40 minutes.',
  BAKE_GAP: waits,
  WORKER_RESTARTED: 'None: the release stays active. More of them within its bake time take it back.',
  WORKER_DIED: restored,
  LOADER_PENDING:
    'The active policy stays. Until the loader succeeds, its workers may have an older policy, or none.',
  PROBE_FAILED: restored,
  PROBE_BROKEN: restoredTriedLater,
  WORKER_UNREACHABLE: notProven,
  PROCESS_UNKNOWN: notProven,
  WORKER_LOST_AFTER: notProven,
  SILENT_REFUSAL: restoredTriedLater,
  REFUSAL_REPEATED: restoredTriedLater,
  SUPERVISOR_GAVE_UP:
    'The active policy stays. The worker does not run: it reads the active policy when it is started.',
  WORKERS_MISSING: 'The active policy stays, and the workers that exist use it. Too few of them exist.',
  WORKER_UNCONFIRMED: notProven,
  PROBE_CHANGED:
    'The active policy stays. A worker does not use it any more: after three wrong answers in a row it is notified again. Six in a ' +
    'row within the bake time of a release take the release back.',
  PROBE_SILENT: notProven,
  CANARY_SILENT: 'None: the release is activated without this trial.',
  ACTIVATION_BLOCKED:
    'The last good policy stays active. Refresh, scrub and status continue. The blocked release is not activated, and nothing ' +
    'is rolled back automatically, until the block ends: with `writ resume`, or when a newer release of its bundle is activated. If a ' +
    'worker, a probe or the disk made the rollback fail, it also ends when every worker uses the active policy.',
  NO_PREVIOUS: nothingDone,
  GENERATION_CHANGED: 'None by this command. The generation that another process activated is active.',
  ACTIVATION_PAUSED: waits,
  ACTIVATION_PACED: waits,
  REQUIRES_UNKNOWN: waits,
  RELEASE_HELD: 'The active policy stays unchanged until a newer serial is published or the hold ends.',
  SWAP_OUTDATED:
    'What `current` names stays active: this cycle did not move it, or moved it and put it back. If another process changed ' +
    'the link meanwhile, its choice is active.',

  // disk and state
  STATE_VANISHED:
    'None: no file is written and no worker is notified. Workers keep what they have loaded; the path of the policy leads nowhere ' +
    'until the state directory is back.',
  DISK_FULL: atAnyPoint,
  DISK_QUOTA: atAnyPoint,
  DISK_READ_ONLY: atAnyPoint,
  DISK_DENIED: atAnyPoint,
  DISK_FAILED: atAnyPoint,
  TOO_MANY_FILES: atAnyPoint,
  PATH_MOUNTED: 'None: the active policy stays, and the directory is not removed.',
  LOCK_HELD: noneByThisCommand,
  STATE_DAMAGED:
    'What `current` names stays active. If its files are damaged, workers that read them again may load damaged policy: ' +
    'the agent repairs them, or reports REPAIR_FAILED.',
  REPAIR_FAILED:
    'The damaged policy stays active: workers keep what they have loaded, and may load damaged files when they read them again.',
  REPAIRED_BY_PREVIOUS:
    'An older generation is active in place of the damaged one, and every worker was notified.',
  STATE_TOO_NEW:
    'The active policy stays unchanged, and so does every file of the state directory. Nothing newer is activated until ' +
    'the later version is installed again.',
  STATE_REBUILT:
    'The active policy stays. If the ledger or the journal was lost, every worker is notified again.',

  // the agent
  AGENT_UNREACHABLE: 'None by this command. Whether an agent runs is unknown.',
  AGENT_STOPPING: 'None by this command: the active policy stays unchanged.',
  LOCK_UNTRIED: 'None by this command: the active policy stays unchanged.',
  AGENT_BUSY: 'None: the agent goes on, and the active policy stays unchanged.',
  INTERRUPTED:
    'The active policy is the old or the new generation, complete. The next start finishes or undoes what was started.',

  // the publisher
  KEY_UNREADABLE: onPublisher,
  KEY_EXISTS: onPublisher,
  KEYS_IN_REPOSITORY: onPublisher,
  PASSPHRASE_WRONG: onPublisher,
  PASSPHRASE_NEEDED: onPublisher,
  KEYS_MISSING: onPublisher,
  REPOSITORY_EXISTS: onPublisher,
  REPOSITORY_INVALID: onPublisher,
  SIGNED_AHEAD: onPublisher,
  CLOCK_UNSURE: onPublisher,
  REPOSITORY_LOCKED: noneByThisCommand,
  REPOSITORY_OWNER: onPublisher,
  SOURCE_REFUSED: onPublisher,
  CONTENT_SECRET: onPublisher,
  SOURCE_NOT_APART: onPublisher,
  RELEASE_UNKNOWN: onPublisher,
  RELEASE_UNAVAILABLE: onPublisher,
  RELEASE_REFUSED: onPublisher,
  CHANGE_TOO_LARGE:
    'None: nothing was signed or published, and no serial was used. Hosts keep the head of the channel.',
  RELEASE_NOT_SETTLED: 'None: nothing was promoted. Hosts keep the head of the channel.',
  ROLE_UNKNOWN: onPublisher,
  DELEGATION_REFUSED: onPublisher,
  TEAM_KEY_UNCONFIRMED: onPublisher,
  SIGNATURE_DISAGREEMENT: onPublisher,
  SIGNER_FAILED: onPublisher,
  SIGNER_WRONG: onPublisher,
  ROOT_CHANGE_REFUSED: onPublisher,
  PROPOSAL_MALFORMED: onPublisher,
  PROPOSAL_BASE: onPublisher,
  PROPOSAL_CODE: onPublisher,

  // servers
  LISTEN_FAILED: 'None: the active policy stays unchanged.',
  TLS_INVALID: notStarted,
  FLEET_STORE_LOCATION: onFleet,
  FLEET_STORE_NEWER: onFleet,
  FLEET_TOO_OLD: onFleet,
  FLEET_STORE_UNREACHABLE: onFleet,
  FLEET_STORE_BUSY: onFleet,
  FLEET_STORE_DAMAGED: onFleet,
  FLEET_STORE_UNWRITABLE: onFleet,
  FLEET_STORE_FAILED: onFleet,
  FLEET_TOKEN_REFUSED: onFleet,
  FLEET_IDENTITY_REFUSED: onFleet,
  FLEET_TOKEN_UNKNOWN: onFleet,
  FLEET_HOST_NOT_COVERED: onFleet,
  FLEET_ENROL_FULL: onFleet,
  FLEET_HOST_UNKNOWN: onFleet,
  FLEET_FORBIDDEN: onFleet,
  FLEET_OVERLOADED: onFleet,
  FLEET_REFUSED_OFTEN: onFleet,
  FLEET_REPORTS_OFTEN: onFleet,
  FLEET_UNANSWERED: onFleet,
  FLEET_WEBHOOK_FAILED: onFleet,
  FLEET_KEY_UNKNOWN: onFleet,
  FLEET_KEY_WAITING: onFleet,
  FLEET_KEY_RETIRED: onFleet,
  FLEET_SIGNATURE_REFUSED: onFleet,
  FLEET_REPORT_INVALID: onFleet,
  FLEET_UNREACHABLE: onFleet,
  FLEET_CERTIFICATE: onFleet,
  FLEET_BUSY: onFleet,
  FLEET_ANSWER: onFleet,
  FLEET_TOKEN_UNREADABLE: onFleet,
  FLEET_COUNTER: onFleet,
  FLEET_STATE_DAMAGED: onFleet,

  // the program
  MESSAGE_MALFORMED: 'None: the active policy stays unchanged. The connection is closed.',
  SOCKET_IN_USE: 'None: nothing was started, and the active policy stays unchanged.',
  PACKAGE_MISSING: nothingDone,
  PROGRAM_REPLACED:
    'The active policy is the old or the new generation, complete. The next start finishes or undoes what was started.',
  INTERNAL: 'Unknown in general: the last line of the command and `writ status` show it.',
};
