// The catalogue of error codes: one row for each code, grouped by the module that throws it. docs/errors.md is generated from this
// table, and a test verifies that a test produces each code.

/**
 * The kind of an error, which determines the reaction of the caller and the exit code (docs/adr/0006). `rejected` is a verdict on
 * authentic bytes and is remembered. `failed` is a fault of this host or the network and never remembered: one tampered download
 * would otherwise block a good release forever.
 */
export type ErrorKind = keyof typeof exitCodeOfKind;

/** Exit codes by kind. */
export const exitCodeOfKind = {
  failed: 1,
  usage: 2,
  config: 2,
  rejected: 3,
  degraded: 4,
  'rolled-back': 5,
  blocked: 6,
  busy: 7,
  deferred: 8,
} as const;

export interface ErrorRow {
  readonly kind: ErrorKind;
  /** The failure, in one sentence. */
  readonly meaning: string;
  /** The next step of the operator, in one sentence. */
  readonly hint: string;
  /**
   * The previous generation is restored although no worker refused the new one: its releases are tried again, and never remembered
   * as refused.
   */
  readonly isImplicitRefusal?: true;
}

type Row = (meaning: string, hint: string) => ErrorRow;
const rowOf =
  (kind: ErrorKind): Row =>
  (meaning, hint) => ({ kind, meaning, hint });
const usage = rowOf('usage');
const config = rowOf('config');
const failed = rowOf('failed');
const rejected = rowOf('rejected');
const degraded = rowOf('degraded');
const rolledBack = rowOf('rolled-back');
const blocked = rowOf('blocked');
const busy = rowOf('busy');
const deferred = rowOf('deferred');

export const errorCodes = {
  // usage and configuration
  USAGE: usage('The command line was not understood.', 'Run the command with --help.'),
  CONFIG_UNREADABLE: config('The configuration file cannot be read.', 'Check the path and its permissions.'),
  CONFIG_SYNTAX: config('The configuration is not valid YAML.', 'Fix the line that the message names.'),
  CONFIG_INVALID: config('The configuration breaks its schema.', 'Fix each line listed.'),
  CONFIG_CHANGED: degraded(
    'The configuration file is not what the running agent has read.',
    '`writ reload` makes the agent read it; `writ config check` lists its errors before that.',
  ),
  PATH_UNSAFE: config(
    "Users other than root and the agent can change a directory that Writ trusts, or the configuration of root's agent.",
    'Make root or the agent the owner of the path, and remove write permission for others.',
  ),
  PATH_CROSS_DEVICE: config(
    'Staging, archives and policy are on different file systems or mounts, so a rename cannot be atomic.',
    'Put `state` and `policy` (of a publisher: the whole repository) on one file system, and mount nothing on their directories.',
  ),
  SOCKET_PATH_TOO_LONG: config(
    'A socket path is longer than the kernel allows (107 bytes).',
    'Configure a shorter socket path.',
  ),
  ROOT_MISSING: config(
    'The bootstrap root file cannot be read.',
    'Copy metadata/1.root.json of the repository to the path that `root` names.',
  ),
  ROOT_UNUSABLE: config(
    'The file that `root` names is not root metadata, or lacks the signatures that it requires itself.',
    'Copy metadata/1.root.json of the repository to it, and compare its fingerprint with the publisher.',
  ),
  ROOT_NOT_LINKED: config(
    'The configured root is not in the trusted history and not linked to it. Writ never drops trust silently.',
    'Configure the root of this repository. To follow another repository on purpose, move `trust` of the state directory away, then `writ pull`.',
  ),

  // trust: TUF metadata
  METADATA_MALFORMED: failed(
    'A metadata file does not have the form that its role requires.',
    'Inform the publisher; check for a proxy in between.',
  ),
  SIGNATURE_THRESHOLD: failed(
    'The metadata has fewer valid signatures than its role needs: changed bytes, a missing signer, or an attack.',
    'Compare the repository and its keys with the root this host trusts.',
  ),
  SIGNATURE_WRONG_KEY: failed(
    'A metadata file is signed, but not by a key of its role: another repository, revoked keys, or an attack.',
    'Check that `root` is the root of the repository that `repository` names (`writ reload` after a change). If both are right, inform the publisher.',
  ),
  SIGNATURE_DUPLICATE: failed(
    'A metadata file has two signatures of one key id.',
    'Inform the publisher: no honest tool writes this.',
  ),
  METADATA_ROLLBACK: failed(
    'A metadata version is older than one this host has already accepted: a replay or a restored backup.',
    'Restore the newest repository on the server.',
  ),
  METADATA_EXPIRED: failed(
    'A role has expired: it was not re-signed in time, the server no longer gets updates, or an attacker serves old files.',
    'Re-sign the role: `writ refresh`; for targets and teams `writ sign --role`; for the root `writ root rotate`.',
  ),
  METADATA_MIX: failed(
    'Metadata files do not belong together: a mix-and-match attack, or an upload in the wrong order.',
    'At the publisher: `writ refresh`. Where the message names a team that has not signed with its current keys: first `writ sign --role TEAM`.',
  ),
  METADATA_MISSING: failed(
    'The server does not have this metadata file.',
    'Check the repository URL and its upload.',
  ),
  DELEGATION_LIMIT: failed(
    'The search for one bundle would need too many delegated roles, or too large ones. Whether the bundle is listed is unknown.',
    'Make fewer delegations match the path of the bundle, or put its own delegation first and make it terminating.',
  ),
  ROOT_CHAIN_TOO_LONG: failed(
    'There are more new roots than one refresh follows. The roots followed so far are kept.',
    'Run again: the next refresh continues from there.',
  ),
  TRUST_STORE_DAMAGED: failed(
    'The trust store is damaged and cannot be repaired automatically.',
    'Restore trust/ from a backup, or use a new state directory with the bootstrap root.',
  ),
  TARGET_UNKNOWN: failed(
    'The signed targets do not list this bundle and channel.',
    'Publish it, or correct the name in the configuration.',
  ),
  TARGET_MISSING: failed(
    'The server does not have an archive that the signed targets list.',
    'Upload the repository again, archives before metadata.',
  ),
  TARGET_MALFORMED: failed('The signed target entry lacks what Writ needs.', 'Publish with `writ publish`.'),

  CLOCK_BEHIND: degraded(
    'The clock of this host is earlier than the newest signature of the repository. The time of that signature is used for expiry.',
    'Set the clock (`timedatectl set-ntp true`). If it is right, the repository was signed while a clock was ahead (`writ repo status` shows it), or a stolen online key signed it: replace that key.',
  ),

  UNTRUSTED_ACTIVE: degraded(
    'The active release is no longer trusted: its keys were removed, and the current metadata does not list it.',
    'Publish the bundle again with current keys, or run `writ rollback`. `untrusted: rollback` does so automatically.',
  ),
  RELEASE_UNTRUSTED: usage(
    'A rollback never activates a release that no current key trusts.',
    'Choose another generation (`writ history`), or publish again.',
  ),
  RELEASE_WITHDRAWN: usage(
    'The publisher has withdrawn this release.',
    'Choose another generation, or `writ rollback --force`.',
  ),
  ACTIVE_WITHDRAWN: degraded(
    'The active release was withdrawn by its publisher, and this host uses it still.',
    'The message names the reason why the host stays on it. Each poll tries to leave it; `writ pull --force` does so despite a pause or a block, `writ rollback` without the server.',
  ),
  POLICY_STALE: degraded(
    'The policy could not be proven current for longer than `maxStale`. The last good policy stays active.',
    '`writ status` shows since when and why. The host must reach and verify the repository again.',
  ),
  RELEASE_STALE: degraded(
    'A release is offered by verified metadata, and for longer than `release.staleAfter` it could not be fetched or prepared.',
    'The message has the last error and its URL. `writ doctor` asks the server for one byte of the file.',
  ),
  STALE_COMMAND_FAILED: failed(
    'The command of `onStale` or `onFresh` did not exit with 0. It runs again later.',
    'Read its output in `writ history`.',
  ),

  // transport
  SERVER_UNREACHABLE: failed('The server cannot be reached.', 'Check the network and the server.'),
  PROXY_REFUSED: failed(
    'The proxy refused the connection to the server. With status 407 it asks for a user and a password, with 502, 503 or 504 it cannot reach the server.',
    'Check the rules of the proxy, `credentialsFile` of `proxy`, and whether the proxy resolves and reaches the server.',
  ),
  PROXY_INVALID: config(
    'The URL of a proxy, or the file with its credentials or authorities, cannot be used.',
    'Correct `proxy` of the configuration, or HTTPS_PROXY and HTTP_PROXY of the environment.',
  ),
  SERVER_ERROR: failed('The server answered with an error.', 'Read the log of the server.'),
  SERVER_BUSY: failed(
    'The server asks to retry later (Retry-After).',
    'Wait; the agent retries automatically, at the latest after its interval or five minutes. `writ pull` asks now.',
  ),
  REDIRECT_REFUSED: failed(
    'The server redirects to another scheme or host, without a target, or too often.',
    'Configure the final URL, or name its host in `redirects` of this repository.',
  ),
  DOWNLOAD_TOO_LARGE: failed(
    'A body is longer than its bound (an endless-data attack, or the wrong file).',
    'Check whether a proxy answers in place of the server.',
  ),
  DOWNLOAD_TRUNCATED: failed(
    'A body ended before its signed length.',
    'Upload the file again, or run again.',
  ),
  DOWNLOAD_DIGEST: failed(
    'The digest of a body does not match the signed one: changed bytes, or an incomplete upload.',
    'Upload the repository again.',
  ),
  DOWNLOAD_TIMEOUT: failed('A body arrived too slowly.', 'Check the network and the server.'),

  // staging: verdicts on authentic bytes
  ARCHIVE_MALFORMED: rejected(
    'The archive is not a strict tar of regular files.',
    'Publish with `writ publish`.',
  ),
  ENTRY_REFUSED: rejected(
    'The archive has an entry that the entry rules refuse.',
    'Remove the file from SOURCE and publish again.',
  ),
  ARCHIVE_LIMIT: rejected(
    'The archive breaks a limit of size, count, depth or ratio.',
    'Publish less, or raise the limit deliberately.',
  ),
  MANIFEST_MALFORMED: rejected('The manifest of the archive is not valid.', 'Publish with `writ publish`.'),
  MANIFEST_DIGEST: rejected(
    'The digest of the manifest does not match the signed one.',
    'Publish again from a clean tree.',
  ),
  MANIFEST_MISMATCH: rejected('Files and manifest differ.', 'Publish again from a clean tree.'),
  DELTA_MALFORMED: failed(
    'The delta of a release does not produce the files in its manifest.',
    'Nothing on this host: it fetches the whole archive instead. Publish again if it persists.',
  ),
  DELTA_MISMATCH: failed(
    'The files that a delta produced do not match what was signed: local files were changed, or the delta is wrong.',
    'Nothing on this host: it fetched the whole archive and checks the policy on disk. `writ verify` lists damaged files.',
  ),
  DELTA_FAILED: failed(
    'A delta could not be applied, so the whole archive was fetched.',
    'Nothing on this host. If it persists, check what the server has below `targets/`, and publish again.',
  ),

  // age
  SERIAL_ROLLBACK: rejected(
    'The release is older than one that this host has accepted and that was not withdrawn.',
    'Publish the older tree again: it gets a new serial.',
  ),
  SERIAL_REUSED: rejected(
    'A known serial came with different content.',
    'Publish again: each content needs its own serial.',
  ),
  CREATED_IN_FUTURE: rejected(
    'The release was created later than the current time of this host.',
    'Set the clock of the host or of the publisher.',
  ),

  // checks
  CHECK_FAILED: rejected(
    'A check refused the candidate, or a file of it exceeds a bound of a built-in check.',
    'Fix what the check names and publish again.',
  ),
  CHECK_BROKEN: failed(
    'A check gave no verdict: its program is missing, its time was over, or it was killed.',
    'Install the program or raise its timeout. The release is tried again.',
  ),
  CHECK_DEFERRED: deferred('A check exited with 75 ("not now").', 'Nothing: the release is tried again.'),
  CANARY_FAILED: rejected(
    'A canary refused the candidate. Nothing that workers can see was touched.',
    'Fix what it names and publish again.',
  ),
  CANARY_BROKEN: failed(
    'A canary gave no verdict: its program is missing, its time was over, or it was killed.',
    'Install the program or raise its timeout. The release is tried again.',
  ),
  CANARY_DEFERRED: deferred('A canary exited with 75 ("not now").', 'Nothing: the release is tried again.'),
  SANDBOX_MISSING: failed(
    'Commands must run in a sandbox, but its programs are not installed.',
    'Install bubblewrap and util-linux (`apt-get install bubblewrap`). `sandbox: auto` runs without them.',
  ),
  SANDBOX_BROKEN: failed(
    'The sandbox of a command cannot be set up: a path or user does not exist, or the kernel or container refuses.',
    'Fix what the message names; in a container, allow user namespaces (docs/sandbox.md).',
  ),
  CANDIDATE_CHANGED: failed(
    'A check changed the candidate that it had to judge.',
    'Make the check write to {scratch} only.',
  ),
  REMEMBERED_REFUSAL: rejected(
    'This host refused this release before, and the release has not changed.',
    'Publish a new one. If this host was at fault, fix it, then run `writ refusals forget` and `writ pull`.',
  ),

  // activation
  LOADER_FAILED: rolledBack(
    'The loader command refused the new generation.',
    'Read its output in `writ history`.',
  ),
  LOADER_BROKEN: failed(
    'The loader gave no verdict. The previous generation is active again.',
    'Install the program or raise its timeout. Writ retries after a minute, then at growing intervals up to an hour; `writ pull --force` retries now.',
  ),
  LOADER_DEFERRED: deferred(
    'The loader command exited with 75 ("not now"). The previous generation is active again.',
    'Nothing: it runs again after a minute, then at growing intervals up to an hour. `writ pull --force` runs it now.',
  ),
  WORKER_REFUSED: rolledBack(
    'A worker refused the new generation.',
    'Publish a better release; or fix the worker, then `writ refusals forget` and `writ pull`. Its answer is in `writ history`.',
  ),
  RESTORE_UNRECORDED: degraded(
    'A policy was refused and left, or is about to be, and the disk cannot record it.',
    'Free space on the file system that the message names: the agent writes everything then. Until that, a restart goes back again.',
  ),
  BAKE_FAILED: rolledBack(
    'A release failed within its bake time, after it had been accepted; the newest settled release is active again.',
    'Fix the release and publish a newer one. `writ pull --force --no-bake` keeps a release on purpose, `writ pause` keeps new ones out.',
  ),
  BAKE_OVERDUE: degraded(
    'For more than three bake times no living worker has had a release that is in its bake time: it can neither settle nor fail.',
    'Read the log of the worker that `writ status` names, and start it. If the release is at fault: `writ rollback`, or publish a newer one.',
  ),
  CONTACT_LOST: rolledBack(
    'After a release became active, the server could not be reached any more; the release before it is active again.',
    'Check which settings of firewall, routes, resolver and proxy the release changes, and publish a newer one. `writ pull --force --no-bake` keeps it on purpose.',
  ),
  BAKE_GAP: deferred(
    'A release waits, because releases of its bundle were taken back again and again, or none of them settled.',
    'Find out why they failed: `writ history`. The publisher can end the wait on all hosts: `writ publish --fixes SERIAL`, with the serial that is active or failed. `writ pull --force` takes the release now.',
  ),
  WORKER_RESTARTED: degraded(
    'The process of a worker ended within the bake time of a release that it uses, or another process took its place.',
    'Read the log of the worker: if it did not crash, a person or a program restarted it. The finding ends with the bake time.',
  ),
  WORKER_DIED: rolledBack(
    'A worker that was running died with the new generation, or did not start with it.',
    'Read its own log, and its answer in `writ history`.',
  ),
  LOADER_PENDING: degraded(
    'A loader has not succeeded since the machine booted. Its workers may have no policy.',
    'Read its output in the log. It runs again at growing intervals.',
  ),
  PROBE_FAILED: rolledBack(
    'A probe does not see the new generation.',
    'Ask the worker yourself, and read `writ history`.',
  ),
  PROBE_BROKEN: failed(
    'A probe gave no verdict. The previous generation is active again.',
    'Install the program or raise its timeout. Writ retries after a minute, then at growing intervals up to an hour; `writ pull --force` retries now.',
  ),
  WORKER_UNREACHABLE: degraded(
    'A worker cannot be reached. It may answer from an older generation.',
    'Check whether the worker runs, and whether the pid file of its configuration exists. The worker is notified again.',
  ),
  PROCESS_UNKNOWN: degraded(
    'It is not certain which process a worker is: its number may have passed to another program. Nothing was signalled.',
    'Wait until the worker runs, if it is just starting. Else name its process in the configuration: `process.unit`, or `process.program` beside the pid file. `writ doctor` shows what was found.',
  ),
  WORKER_LOST_AFTER: degraded(
    'A worker runs but has been unreachable since a release. The release itself may prevent it from refusing.',
    'Ask the worker itself what it serves. `writ rollback` restores the previous release.',
  ),
  SILENT_REFUSAL: {
    ...degraded(
      'A daemon that refuses by silence kept its old children until the deadline. The previous generation is active again.',
      'Read its own log. After three tries only a newer release, `writ resume` or `writ pull --force` continues.',
    ),
    isImplicitRefusal: true,
  },
  REFUSAL_REPEATED: {
    ...degraded(
      'A worker or a loader refused the new generation, and with the same text the previous one, which it had taken before. It has not judged the release. The previous generation is active again.',
      'Read its text: the worker is busy, or something on this host blocks it. The release is tried again after a minute, then at growing intervals; after five tries only a newer release, `writ resume` or `writ pull --force` continues.',
    ),
    isImplicitRefusal: true,
  },
  SUPERVISOR_GAVE_UP: degraded(
    'A worker failed, and its supervisor does not start it again.',
    'Run the command that the message names once the fault is repaired, or set `onDead: restart`.',
  ),
  WORKERS_MISSING: degraded('Fewer workers than `min` exist.', 'Start the workers of this group.'),
  WORKER_UNCONFIRMED: degraded(
    'Workers were notified, but none of them proved that it uses the generation.',
    'Without a probe: add one to this group, or set `confirm: accept`. With one: it is asked again by itself; run it by hand to see what it finds.',
  ),
  PROBE_CHANGED: degraded(
    'A worker no longer uses what it had proved: a repeated probe failed.',
    'Ask the worker yourself, and find out what else changes its policy. After three failures in a row Writ notifies it, if its group has a `reset`, and again after 1, 2, 4 and 8 minutes.',
  ),
  PROBE_SILENT: degraded(
    'A probe gave no verdict on notified workers. What they use is unknown.',
    'Run the probe by hand. Check its `unreachable` and `pidFile`; raise its timeout if the host is slow.',
  ),
  CANARY_SILENT: degraded(
    'A canary reached no worker, so the candidate was not tried before the swap.',
    'Run the canary by hand. Check its `unreachable` and `pidFile`.',
  ),
  ACTIVATION_BLOCKED: blocked(
    'A release is blocked after repeated failures, or because its rollback failed. The last good policy stays active.',
    'Fix what the message names first: `writ history` has each attempt and its answer. Or publish a better release. `writ resume` is the last step, and tries again.',
  ),
  NO_PREVIOUS: usage('There is no such generation to roll back to.', 'See `writ history`.'),
  GENERATION_CHANGED: busy(
    'Another generation became active while a rollback waited for its turn, or again and again while a cycle downloaded. Nothing was moved.',
    'Run `writ status`. Then run `writ rollback` again if the generation that is active now is to be left, or `writ pull`.',
  ),
  ACTIVATION_PAUSED: deferred(
    'This host is paused. The active policy stays, and new releases wait.',
    'Run `writ resume` or `writ pull --force`. `writ status` shows the user who paused it, and until when.',
  ),
  ACTIVATION_PACED: deferred(
    'A worker group is not notified yet: `settle` waits for further changes, or `minInterval` is not over.',
    'Nothing: the newest release is activated then. `writ pull --force` does not wait.',
  ),
  REQUIRES_UNKNOWN: deferred(
    'The release requires a feature that Writ on this host does not know. No other release is activated instead.',
    'Upgrade Writ on this host. The next pull then activates the release.',
  ),
  RELEASE_HELD: deferred(
    'A rollback holds this release.',
    'Publish a newer release, or withdraw this one. `writ resume` ends the hold, and takes the release again.',
  ),

  SWAP_OUTDATED: failed(
    'Before `current` moved, the host was no longer what the cycle had planned from: another process or a restored backup changed it, or the verified metadata became too old.',
    'Run `writ pull`; `writ status` shows what is active. A cycle begins again once by itself before it fails with this code.',
  ),

  // our own side of the host
  STATE_VANISHED: blocked(
    'The state directory was unmounted, emptied or replaced since this host was booted. Nothing is written, activated or notified until it is back.',
    'Mount the right directory again: this ends by itself. If a person emptied it on purpose: `systemctl stop writ-agent`, `writ resume --new-state`, `systemctl start writ-agent`.',
  ),
  DISK_FULL: failed(
    'The disk or its inodes are full, or would be with this release.',
    'Free space on the file system that the message names. The agent retries when there is enough.',
  ),
  DISK_QUOTA: failed(
    'The quota of the agent on this file system is used up.',
    'Raise the quota (`quota`, `repquota`), or remove files that count against it. The agent retries.',
  ),
  DISK_READ_ONLY: failed('The file system is read-only.', 'Read the kernel log, and remount it.'),
  DISK_DENIED: failed(
    'The operating system denied a file operation.',
    'Check the owner and mode of the path, and which user you are.',
  ),
  DISK_FAILED: failed('A file operation failed. The candidate is discarded.', 'Read the kernel log.'),
  TOO_MANY_FILES: failed(
    'The process or the host has no file descriptor left.',
    'Find out which process has them open (`lsof`, fs.file-nr), or raise LimitNOFILE. The agent retries.',
  ),
  PATH_MOUNTED: failed(
    'Something is mounted inside a directory that Writ has to remove; its files would be removed too.',
    'Unmount it. The rest of the directory is removed at the next start.',
  ),
  LOCK_HELD: busy(
    'Another process has locked this state directory.',
    'Wait for the process that the message names, or stop it.',
  ),
  STATE_DAMAGED: failed(
    'A file in the state or policy directory is not what Writ wrote there.',
    '`writ verify --repair` repairs a damaged policy. Restore any other file from a backup.',
  ),
  REPAIR_FAILED: failed(
    'The policy on disk is damaged and could not be repaired from kept files, the repository or an older generation.',
    'Fix what the message names (disk, repository, worker), then run `writ verify --repair`.',
  ),
  REPAIRED_BY_PREVIOUS: degraded(
    'A damaged release could not be repaired. An older generation is active instead.',
    'Make the repository reachable: the next poll, or `writ pull`, restores the release.',
  ),
  STATE_TOO_NEW: config(
    'A later version of Writ wrote the state directory, in a format that this version does not know.',
    'Install the later version again. The running policy stays unchanged.',
  ),
  STATE_REBUILT: degraded(
    'A file of the state directory was damaged or lost. It was rebuilt from the other files on disk.',
    '`writ history` shows the losses. The damaged file is kept in the same directory as FILE.damaged.',
  ),
  AGENT_UNREACHABLE: failed(
    'The agent does not answer on its socket.',
    'Read its log: `systemctl status writ-agent`, or where `writ agent` was started.',
  ),
  AGENT_STOPPING: deferred('The agent is shutting down.', 'Start it again.'),
  LOCK_UNTRIED: busy(
    'This machine could not start the program that takes the lock: it is stalled, or at its process limit.',
    'Try again; check its load and its process limit.',
  ),
  AGENT_BUSY: busy('The agent has too many watchers.', 'Stop a `writ status --watch`.'),
  INTERRUPTED: failed('The command was interrupted.', 'Run it again.'),

  // publisher
  KEY_UNREADABLE: failed('A key file cannot be used.', 'Check the path; restore it from its backup.'),
  KEY_EXISTS: usage(
    'The key file exists. Writ never overwrites one.',
    'Choose another name, or another directory.',
  ),
  KEYS_IN_REPOSITORY: usage(
    'Secret keys are, or would be, in a repository, or a repository is inside a key directory. Copies of one would contain the other.',
    'Move the keys out of the repository. If it was served or copied with them, rotate the keys.',
  ),
  PASSPHRASE_WRONG: failed('The passphrase does not open the key.', 'Try again.'),
  PASSPHRASE_NEEDED: usage(
    'A passphrase is needed, but there is no terminal to ask for it.',
    'Give --passphrase-file F, or set WRIT_PASSPHRASE.',
  ),
  KEYS_MISSING: failed(
    'Keys that are needed to sign a role are missing.',
    'Provide the key files that the message names, or ask their holder to sign.',
  ),
  REPOSITORY_EXISTS: usage('The directory already contains a repository.', 'Choose another directory.'),
  REPOSITORY_INVALID: failed(
    'The repository does not pass the verification of a client. Nothing was published.',
    'Run `writ repo check`, and restore the files that it names from another copy of the repository.',
  ),
  SIGNED_AHEAD: failed(
    'The repository was signed while a clock was ahead. Hosts use that time as the present, and see no expiry before it.',
    'Publishing continues with that time. To end it, replace the timestamp key (docs/operations.md, "Signed ahead").',
  ),
  CLOCK_UNSURE: failed(
    'The clock is more than 30 days later than every signature, and the kernel reports that it is not synchronised. Nothing was signed.',
    'Set the clock. If it is right, run the command again (for a server: `writ refresh`) with --clock-is-right.',
  ),
  REPOSITORY_LOCKED: busy(
    'Another process writes this repository.',
    'Wait until it ends, or make the command wait: --lock-wait 5m.',
  ),
  REPOSITORY_OWNER: usage(
    'Root would write in a repository of another user. That user could not open its lock or re-sign it any more. Nothing was written.',
    'Run the command as the owner, or publish into a directory of root and copy it as the owner (docs/server.md, "One machine publishes and serves").',
  ),
  SOURCE_REFUSED: usage(
    'SOURCE contains something that cannot be published.',
    'Remove it, leave it out with --exclude or in .writignore, or publish another directory.',
  ),
  CONTENT_SECRET: usage(
    'A file of SOURCE contains a secret, or has the name of one. Every host would have it, and each mirror would serve it. Nothing was published.',
    'Remove it, or leave it out with --exclude or in .writignore. --include permits a file that hosts need; keys and tokens of Writ are never published.',
  ),
  SOURCE_NOT_APART: usage(
    'SOURCE contains the keys, the passphrase or the repository, or is inside the key directory or the repository. Nothing was published.',
    'Move the keys and the repository out of SOURCE, or publish a directory that contains the policy alone.',
  ),
  RELEASE_UNKNOWN: usage(
    'The repository has never listed this release.',
    'See `writ repo status` for bundles, channels and serials.',
  ),
  RELEASE_UNAVAILABLE: usage(
    'The channel has no earlier release left to use, or its archive is gone.',
    'Publish a good tree first: it gets the next serial. Then withdraw.',
  ),
  RELEASE_REFUSED: usage(
    'Hosts would refuse this release on this channel, so it is not signed.',
    'Publish the tree again: it gets the next serial.',
  ),
  CHANGE_TOO_LARGE: rejected(
    'The release changes more of its bundle than the bounds allow, compared with the head of the channel, so it is not signed.',
    'Compare the source with the head (`--dry-run --accept-change` lists files). `--accept-change` goes on; `--max-removed` and `--max-growth` set other bounds.',
  ),
  RELEASE_NOT_SETTLED: rejected(
    'Too few hosts of the channel have the release and outlived its bake time, so it is not promoted.',
    'Wait for it: `writ fleet wait BUNDLE SERIAL --settled`. `writ fleet hosts` shows the hosts.',
  ),
  ROLE_UNKNOWN: usage('The repository does not have this role.', 'See `writ repo status` for its roles.'),
  DELEGATION_REFUSED: usage(
    'This delegation would give one path to two roles, hide published releases, or have no effect.',
    'Change what the message names; give each team paths that no other role has.',
  ),
  TEAM_KEY_UNCONFIRMED: usage(
    'The root removes a targets key, which may have changed the keys of teams, and the keys of a team are not confirmed. Nothing was written.',
    'Ask each team for its public key: `--team-key ROLE=FILE`. Correct another key first, with the old targets key: `writ delegate ROLE --key FILE`, or `--remove --hand-over`; then commit with `--include-waiting`.',
  ),
  SIGNATURE_DISAGREEMENT: failed(
    'The two implementations of Ed25519 disagree about a signature. Nothing was published.',
    'Do not sign on this machine, and report the case.',
  ),

  SIGNER_FAILED: failed(
    'The command of an external signer returned no signature. Nothing was written.',
    'Run it by hand. It gets the bytes on stdin and as the file WRIT_SIGN_FILE.',
  ),
  SIGNER_WRONG: failed(
    'The output of an external signer does not verify under any key of the role. Nothing was written.',
    'It must write the signature raw, in hex or in base64, made with a key that the role lists.',
  ),

  // root ceremonies
  ROOT_CHANGE_REFUSED: usage(
    'This change of the root would be a mistake.',
    'Read the reason. A change that is only dangerous can be confirmed with --yes.',
  ),
  PROPOSAL_MALFORMED: failed(
    'The file is not a root proposal, or hides something.',
    'Ask the proposer for the file again, and compare the code by voice.',
  ),
  PROPOSAL_BASE: failed(
    'The proposal is not based on the root that is trusted here.',
    'Compare the roots by voice before the first signature. A proposal for an older root has to be created again.',
  ),
  PROPOSAL_CODE: failed(
    'The code does not match this proposal: a typing mistake, or a different file.',
    'Do not sign it. Ask the proposer for the code by voice, and for the file again.',
  ),

  // server
  LISTEN_FAILED: failed('The server cannot listen on this address.', 'Choose another --listen.'),
  TLS_INVALID: config(
    'The TLS certificate or key of a server cannot be used, or a file of certificate authorities.',
    'Check --tls-cert and --tls-key, or the file that the message names.',
  ),

  // fleet server: its store
  FLEET_STORE_LOCATION: config(
    'The store must be a postgres:// URL, or a directory that is empty or already a store.',
    'Give an empty directory on a local disk, the existing store, or a postgres:// URL.',
  ),
  FLEET_STORE_NEWER: config(
    'A newer version of Writ wrote the store.',
    'Start that version or a newer one: a store is never downgraded.',
  ),
  FLEET_TOO_OLD: config(
    'The fleet server is of a version that does not know what was asked for.',
    'Upgrade the fleet server, then its hosts. Until then leave out `--settled`.',
  ),
  FLEET_STORE_UNREACHABLE: failed(
    'The database of a fleet server does not answer.',
    'Check the database. Hosts send their reports again automatically.',
  ),
  FLEET_STORE_BUSY: busy(
    'Another program locked the database of a fleet server for longer than the wait allows.',
    'Try again; find the program that keeps the store open.',
  ),
  FLEET_STORE_DAMAGED: failed(
    'The database of a fleet server is damaged, or is not such a database.',
    'Restore a backup. Hosts report again what they run.',
  ),
  FLEET_STORE_UNWRITABLE: failed(
    'The database of a fleet server cannot be written: its disk is full, read-only or failing.',
    'Free space on that disk. Hosts enrol and report again automatically; other requests must be repeated.',
  ),
  FLEET_STORE_FAILED: failed(
    'The database of a fleet server refused an operation.',
    'Read its message: a usual reason is missing permissions.',
  ),

  // fleet server: what it is asked, and answers
  FLEET_TOKEN_REFUSED: failed(
    'The token is unknown, of another kind, revoked, expired or used up.',
    'Make one on the fleet server, `writ fleet token create -q --for hosts` (for people: `--for people`), and put it into the file that was refused.',
  ),
  FLEET_IDENTITY_REFUSED: failed(
    'The identity header of a proxy came twice, without a valid name, or together with a token or a session.',
    'Make the proxy replace this header and set it once. Sign in by the proxy or by a token, not by both: delete the cookie `__Host-writ_session` (`writ_session` without TLS).',
  ),
  FLEET_TOKEN_UNKNOWN: failed(
    'There is no token with this id.',
    'Run `writ fleet token list`; the id is not the token itself.',
  ),
  FLEET_HOST_NOT_COVERED: failed(
    'The token is for other host names than this one.',
    'Use a token with a pattern that covers `host.id`.',
  ),
  FLEET_ENROL_FULL: failed(
    'Too many hosts of this token wait for approval.',
    'Approve or retire the waiting hosts; revoke a token that others know.',
  ),
  FLEET_HOST_UNKNOWN: failed('No host has this key.', 'Run `writ fleet hosts`.'),
  FLEET_FORBIDDEN: failed(
    'The role of the token or session does not allow this.',
    'Use a token with the role that the message names: `writ fleet token create --for people --role ROLE`.',
  ),
  FLEET_OVERLOADED: failed(
    'The fleet server cannot accept this now: it has too many requests, or it is stopping.',
    'Try again later; hosts do so automatically.',
  ),
  FLEET_REFUSED_OFTEN: failed(
    'This address sent too many wrong credentials. The server ignores further ones for a moment.',
    'Try again later; hosts do so automatically. The log of `writ fleet serve` names the clients.',
  ),
  FLEET_REPORTS_OFTEN: failed(
    'The key of this host sends more reports than the fleet server accepts of one key.',
    'Nothing: the host retries. If it persists, find the second machine or program that uses this key.',
  ),
  FLEET_UNANSWERED: failed(
    'The fleet server did not answer, or the answer is not from a fleet server.',
    'Check --url and `writ fleet serve`; a proxy may have answered instead.',
  ),
  FLEET_WEBHOOK_FAILED: failed(
    'The receiver of --webhook did not accept a notification, or its token or authority file cannot be read.',
    'Check the receiver. Writ keeps the notifications and retries at growing intervals, at most five minutes.',
  ),
  FLEET_KEY_UNKNOWN: failed(
    'The request is signed by a key that no host of this fleet has.',
    'Enrol the host again; check whether the store was replaced.',
  ),
  FLEET_KEY_WAITING: failed(
    'The host waits for the approval of a person.',
    'On the fleet server, or with a token of the role operate: `writ fleet host approve KEY`, or `retire KEY`.',
  ),
  FLEET_KEY_RETIRED: failed(
    'The key was retired and is never accepted again.',
    'To enrol the host with a new key, write a token of `writ fleet token create --for hosts` to `fleet.tokenFile`, then: `systemctl stop writ-agent`, `rm -r /var/lib/writ/fleet` (`fleet` of the state directory), `systemctl start writ-agent`.',
  ),
  FLEET_SIGNATURE_REFUSED: failed(
    'The signature of a request does not match its content.',
    'Check for a proxy that changes bodies. The host signs each request.',
  ),
  FLEET_REPORT_INVALID: failed(
    'A report breaks its schema or its bounds.',
    'Check the version of Writ on that host. A report that exceeds a bound is refused as a whole.',
  ),

  // the fleet server, as a host meets it: nothing of it touches a cycle
  FLEET_UNREACHABLE: failed(
    'The fleet server does not answer.',
    'Nothing on this host waits for it: policy continues, and outcomes are reported later. Check `fleet.url` and the server.',
  ),
  FLEET_CERTIFICATE: failed(
    'This host does not trust the certificate of the fleet server, or `fleet.ca` cannot be used.',
    'Set `fleet.ca` to the authority that signed the certificate, and `fleet.url` to a name in it.',
  ),
  FLEET_BUSY: failed(
    'The fleet server asks to retry later.',
    'Nothing: the host retries. If it persists, the server has more hosts than it can serve.',
  ),
  FLEET_ANSWER: failed(
    'The server at `fleet.url` is not a fleet server, or has an incompatible version.',
    'Query the address with `curl`: a proxy may answer instead. Redirects are not followed.',
  ),
  FLEET_TOKEN_UNREADABLE: failed(
    'The file of the enrolment token cannot be read, or contains no token.',
    'Write a token of `writ fleet token create --for hosts` to `fleet.tokenFile`, that line alone (-q). It is read again at the next try, at most four times `fleet.every` later; `writ reload` tries at once.',
  ),
  FLEET_COUNTER: failed(
    'Twice in a row the fleet server knew a higher counter for the key of this host: another machine uses the same key.',
    'Find the copy in `writ fleet hosts`. Remove `fleet` from the state directory of one of the two, and give it a token.',
  ),
  FLEET_STATE_DAMAGED: failed(
    'The key that signs the reports of this host cannot be read.',
    'Stop the agent, remove `fleet` from the state directory, and give the host a new token. Policy is not affected.',
  ),

  // sdk and sockets
  MESSAGE_MALFORMED: failed(
    'A message on a socket is not one line with one JSON object of at most 64 kB.',
    'Use the same version of Writ on both ends.',
  ),

  SOCKET_IN_USE: busy(
    'Another process listens on this socket, or the path is not a socket.',
    'Stop the other process, or configure another socket path.',
  ),

  PACKAGE_MISSING: usage(
    'This command is in a package that is not installed here.',
    'Install it: `sudo apt install writ-fleet`, or `npm install -g writ` without `--omit=optional`.',
  ),

  PROGRAM_REPLACED: failed(
    'Writ was upgraded or removed while this process ran, and a part that it needs is gone.',
    'Run the command again. If the agent reports it, restart the agent: `sudo systemctl restart writ-agent`, or `writ agent` where no unit is installed.',
  ),

  // always a bug
  INTERNAL: failed(
    'Writ reached a state that should be impossible.',
    'Report it with the log. The last line names the active policy.',
  ),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorCodes;

/** @returns true if the error causes a restore although no worker refused the generation */
export function isImplicitRefusal(code: ErrorCode): boolean {
  const row: ErrorRow = errorCodes[code];
  return row.isImplicitRefusal === true;
}
