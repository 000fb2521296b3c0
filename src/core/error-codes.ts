// The catalogue of error codes: one row a code, grouped by the part that raises it. docs/errors.md is made
// from this table, and a test holds every code to a test that produces it. Owns words only: no behaviour.

/**
 * What a caller has to do about an error; the exit code follows from it (docs/adr/0006).
 * `rejected` is a verdict on authentic bytes and is remembered; `failed` is our fault or the world's and
 * never is, or one tampered download would block a good release for ever.
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
  /** One sentence: what was found. */
  readonly meaning: string;
  /** One sentence: what a person does next. */
  readonly hint: string;
  /** The generation is taken back though nobody said no: its releases are tried again, and never remembered as refused. */
  readonly isUnsaidNo?: true;
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
  CONFIG_SYNTAX: config('The configuration is not valid YAML.', 'Mend the line that is named.'),
  CONFIG_INVALID: config('The configuration breaks its schema.', 'Mend every line that is named.'),
  PATH_UNSAFE: config(
    "A directory in which the agent or a command trusts a name, or the configuration of root's agent, can be changed by others than root and the agent.",
    'Give what is named to root or the agent, and take write permission from others.',
  ),
  PATH_CROSS_DEVICE: config(
    'Staging, archives and policy are on different file systems or mounts, so that a rename cannot be atomic.',
    'Put `state` and `policy` on one file system, and mount nothing on their directories.',
  ),
  SOCKET_PATH_TOO_LONG: config(
    'A socket path is longer than 107 bytes, the limit of the kernel.',
    'Configure a shorter socket path.',
  ),
  ROOT_MISSING: config(
    'The bootstrap root file cannot be read.',
    'Copy metadata/1.root.json of the repository to the path that `root` names.',
  ),
  ROOT_UNUSABLE: config(
    'The file that `root` names is no root, or has not the signatures that it asks for itself.',
    'Copy metadata/1.root.json of the repository to it, and compare its fingerprint with the publisher.',
  ),
  ROOT_NOT_LINKED: config(
    'The configured root is neither in the trusted history nor linked to it; trust is never dropped silently.',
    'Configure the root of this repository, or use a new state directory for another repository.',
  ),

  // trust: TUF metadata
  METADATA_MALFORMED: failed(
    'A metadata file is not what its role must be.',
    'Tell the publisher; check for a proxy in between.',
  ),
  SIGNATURE_THRESHOLD: failed(
    'Fewer valid signatures than the role needs: changed bytes, a signer missing, or an attack.',
    'Compare the repository and its keys with the root this host trusts.',
  ),
  SIGNATURE_WRONG_KEY: failed(
    'A metadata file is signed, but by no key of its role: another repository, revoked keys, or an attack.',
    'Compare the repository URL and its keys with the root this host trusts.',
  ),
  SIGNATURE_DUPLICATE: failed(
    'One key id signs a metadata file twice.',
    'Tell the publisher: no honest tool writes this.',
  ),
  METADATA_ROLLBACK: failed(
    'A metadata version is older than one this host has already accepted: a replay or a restored backup.',
    'Restore the newest repository on the server.',
  ),
  METADATA_EXPIRED: failed(
    'A role has expired: the publisher is asleep, the server is cut off, or somebody freezes this host.',
    'Sign the role anew: `writ refresh`, for targets and teams `writ sign --role`, for the root `writ root rotate`.',
  ),
  METADATA_MIX: failed(
    'Metadata files do not belong together (mix-and-match, or a publish that was not written in order).',
    'Run `writ refresh`, or publish again.',
  ),
  METADATA_MISSING: failed(
    'The server has no such metadata file.',
    'Check the repository URL and its upload.',
  ),
  DELEGATION_LIMIT: failed(
    'Too many delegated roles, or too large ones, would have to be asked for one bundle; whether it is listed is not known.',
    'Let fewer delegations match the path of the bundle, or put its own first and make it terminating.',
  ),
  ROOT_CHAIN_TOO_LONG: failed(
    'More new roots than one refresh follows; those followed so far are kept.',
    'Run again: the next refresh goes on from there.',
  ),
  TRUST_STORE_DAMAGED: failed(
    'The trust store cannot be used and cannot heal itself.',
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
    'The clock of this host is behind the newest time that the repository has signed; that time is used for expiry.',
    'Set the clock (`timedatectl set-ntp true`). If it is right, the repository was signed by a clock that was ahead: `writ repo status` says so.',
  ),

  UNTRUSTED_ACTIVE: degraded(
    "The active release is no longer vouched for: its keys were taken out of trust, and today's metadata does not list it.",
    'Publish the bundle again with the keys of today, or `writ rollback`; `untrusted: rollback` does so by itself.',
  ),
  RELEASE_UNTRUSTED: usage(
    'No rollback goes to a release that keys of today do not vouch for.',
    'Choose another generation (`writ history`), or publish again.',
  ),
  RELEASE_WITHDRAWN: usage(
    'The publisher has withdrawn this release.',
    'Choose another generation, or `writ rollback --force`.',
  ),
  POLICY_STALE: degraded(
    'Policy could not be proven current for longer than `maxStale`; the last good policy stays.',
    'Read in `writ status` since when and why; the repository must be reached and verified again.',
  ),
  STALE_COMMAND_FAILED: failed(
    'The command of `onStale` or `onFresh` did not exit with 0; it is run again later.',
    'Read its output in `writ history`.',
  ),

  // transport
  SERVER_UNREACHABLE: failed('The server cannot be reached.', 'Check the network and the server.'),
  SERVER_ERROR: failed('The server answered with an error.', 'Look into the log of the server.'),
  SERVER_BUSY: failed(
    'The server asks to come back later (Retry-After).',
    'Wait; the agent does so by itself.',
  ),
  REDIRECT_REFUSED: failed(
    'The server redirects to another scheme or host, to no place, or without end.',
    'Configure the final URL, or name its host in `redirects` of this repository.',
  ),
  DOWNLOAD_TOO_LARGE: failed(
    'A body is longer than its bound: endless data.',
    'Check the server for a proxy that answers in its place.',
  ),
  DOWNLOAD_TRUNCATED: failed(
    'A body ended before its signed length.',
    'Upload the file again, or run again.',
  ),
  DOWNLOAD_DIGEST: failed(
    'A body has not the signed digest: tampered, or a mixed upload.',
    'Upload the repository again.',
  ),
  DOWNLOAD_TIMEOUT: failed('A body came too slowly.', 'Check the network and the server.'),

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
    'Publish less, or raise the limit on purpose.',
  ),
  MANIFEST_MALFORMED: rejected('The manifest of the archive is not valid.', 'Publish with `writ publish`.'),
  MANIFEST_DIGEST: rejected(
    'The manifest has not the digest that was signed.',
    'Publish again from a clean tree.',
  ),
  MANIFEST_MISMATCH: rejected('Files and manifest differ.', 'Publish again from a clean tree.'),
  DELTA_MALFORMED: failed(
    'The delta of a release does not make what its manifest says.',
    'Nothing here: the whole archive is fetched instead. Publish again where it stays so.',
  ),
  DELTA_MISMATCH: failed(
    'What a delta made of the files on this host is not what was signed: they were changed, or the delta is wrong.',
    'Nothing here: the whole archive was taken, and the policy on disk is looked over. See `writ verify` for what is damaged.',
  ),
  DELTA_FAILED: failed(
    'A release could not be made by difference, so that its whole archive was taken.',
    'Nothing here. Where it stays so, look at what the server offers below `targets/`, and publish again.',
  ),

  // age
  SERIAL_ROLLBACK: rejected(
    'The release is older than one this host has accepted, and that one was not withdrawn.',
    'Publish the older tree again: it gets a new serial.',
  ),
  SERIAL_REUSED: rejected(
    'The same serial came with other content.',
    'Publish again: every content needs a serial of its own.',
  ),
  CREATED_IN_FUTURE: rejected(
    'The release was made later than this host believes it is now.',
    'Set the clock of the host or of the publisher.',
  ),

  // checks
  CHECK_FAILED: rejected(
    'A check refused the candidate, or a file of it exceeds a bound of a built-in check.',
    'Mend what the check names and publish again.',
  ),
  CHECK_BROKEN: failed(
    'A check could not give a verdict: program missing, time over, or killed.',
    'Install the program or raise its timeout; the release is tried again.',
  ),
  CHECK_DEFERRED: deferred('A check said "not now" (exit 75).', 'Nothing: the release is tried again.'),
  CANARY_FAILED: rejected(
    'A canary refused the candidate; nothing that workers can see was touched.',
    'Mend what it names and publish again.',
  ),
  CANARY_BROKEN: failed(
    'A canary could not give a verdict: program missing, time over, or killed.',
    'Install the program or raise its timeout; the release is tried again.',
  ),
  CANARY_DEFERRED: deferred('A canary said "not now" (exit 75).', 'Nothing: the release is tried again.'),
  SANDBOX_MISSING: failed(
    'Commands must run in a sandbox, and its programs are not installed.',
    'Install bubblewrap and util-linux (`apt-get install bubblewrap`); `sandbox: auto` does without.',
  ),
  SANDBOX_BROKEN: failed(
    'The sandbox of a command cannot be set up: a path or user that is not there, or a kernel or container that refuses.',
    'Mend what is named; in a container allow user namespaces (docs/sandbox.md).',
  ),
  CANDIDATE_CHANGED: failed(
    'A check changed the candidate it was asked to judge.',
    'Let the check write to {scratch} only.',
  ),
  REMEMBERED_REFUSAL: rejected(
    'This release was refused before and has not changed.',
    'Publish a new one, or `writ pull --force`.',
  ),

  // activation
  LOADER_FAILED: rolledBack(
    'The loader command refused the new generation.',
    'Read its output in `writ history`.',
  ),
  LOADER_BROKEN: failed(
    'The loader could not be run to a verdict; the previous generation is active again.',
    'Install the program or raise its timeout. It is tried again in a minute, at last every hour; `writ pull --force` tries now.',
  ),
  LOADER_DEFERRED: deferred(
    'The loader command said "not now"; the previous generation is active again.',
    'Nothing: it is asked again in a minute, at last every hour. `writ pull --force` asks it now.',
  ),
  WORKER_REFUSED: rolledBack('A worker refused the new generation.', 'Read its answer in `writ history`.'),
  WORKER_DIED: rolledBack(
    'A worker that lived before did not survive the new generation, or did not come up with it.',
    'Read its own log, and its answer in `writ history`.',
  ),
  LOADER_DUE: degraded(
    'A loader has not run to a good end since the machine booted; its workers may be without policy.',
    'Read its output in the log; it is run again, later and later.',
  ),
  PROBE_FAILED: rolledBack(
    'A probe does not see the new generation.',
    'Ask the worker yourself; read `writ history`.',
  ),
  PROBE_BROKEN: failed(
    'A probe could not be run to a verdict; the previous generation is active again.',
    'Install the program or raise its timeout. It is tried again in a minute, at last every hour; `writ pull --force` tries now.',
  ),
  WORKER_UNREACHABLE: degraded(
    'A worker cannot be reached; it may answer from an older generation.',
    'Look whether the worker runs; it is notified again.',
  ),
  WORKER_LOST_AFTER: degraded(
    'A worker lives and could not be reached since a release: the release may have talked its refusal away.',
    'Ask the worker itself what it serves; `writ rollback` takes the release back.',
  ),
  SILENT_REFUSAL: {
    ...degraded(
      'A daemon that refuses by silence kept its children for a whole deadline; the previous generation is active again.',
      'Read its own log. After three tries the release waits for a newer one, `writ resume` or `writ pull --force`.',
    ),
    isUnsaidNo: true,
  },
  WORKERS_MISSING: degraded('Fewer workers than `min` exist.', 'Start the workers of this group.'),
  WORKER_UNCONFIRMED: degraded(
    'Workers were notified, and none of them proved that it uses the generation.',
    'Add a probe to this group, or say `confirm: accept`.',
  ),
  PROBE_CHANGED: degraded(
    'A worker does not use any more what it had proved: a probe that is repeated says no.',
    'Ask the worker yourself; look for who else changes what it uses. It is notified again after the third no in a row.',
  ),
  PROBE_SILENT: degraded(
    'A probe gave no verdict on workers that were notified: what they use is not known by it.',
    'Run the probe by hand; look at its `unreachable` and `pidFile`, and raise its timeout where the host is slow.',
  ),
  CANARY_SILENT: degraded(
    'A canary reached nobody, so that nobody has tried the candidate before its swap.',
    'Run the canary by hand; look at its `unreachable` and `pidFile`.',
  ),
  ACTIVATION_BLOCKED: blocked(
    'Activation is blocked after repeated failures; the last good policy stays.',
    'Mend the cause, then `writ resume`.',
  ),
  NO_PREVIOUS: usage('There is no such generation to roll back to.', 'See `writ history`.'),
  ACTIVATION_PAUSED: deferred(
    'This host is paused: what is active stays, and new releases wait.',
    '`writ resume`, or `writ pull --force`; see `writ status` for who paused it, and until when.',
  ),
  ACTIVATION_PACED: deferred(
    'A worker group is not to be notified yet: its changes settle, or it was notified a short while ago.',
    'Nothing: the newest release is taken then. `writ pull --force` does not wait.',
  ),
  REQUIRES_UNKNOWN: deferred(
    'The release requires a feature that the Writ of this host does not know; nothing is taken in its place.',
    'Upgrade Writ on this host: the next pull takes the release then.',
  ),
  RELEASE_HELD: deferred('A rollback holds this release.', '`writ resume`, or `writ pull --force`.'),

  // our own side of the host
  DISK_FULL: failed(
    'The disk or its inodes are full, or would be with this release.',
    'Free space on the file system that is named; the agent tries again when there is enough.',
  ),
  DISK_QUOTA: failed(
    'The quota of the agent on this file system is used up.',
    'Raise the quota (`quota`, `repquota`), or remove files that count against it; the agent tries again.',
  ),
  DISK_READ_ONLY: failed('The file system is read-only.', 'Look into the kernel log; remount it.'),
  DISK_DENIED: failed(
    'The operating system denied a file operation.',
    'Check owner and mode of what is named, and who you are.',
  ),
  DISK_FAILED: failed('A file operation failed; the candidate is discarded.', 'Look into the kernel log.'),
  TOO_MANY_FILES: failed(
    'The process or the host has no file descriptor left.',
    'Look for who holds them (`lsof`, fs.file-nr), or raise LimitNOFILE; the agent tries again.',
  ),
  PATH_MOUNTED: failed(
    'Something is mounted inside a directory that Writ is to remove, and would be removed with it.',
    'Unmount what is named; what is left there is removed at the next start.',
  ),
  LOCK_HELD: busy(
    'Another process has the lock of this state directory.',
    'Wait for the process that is named, or end it.',
  ),
  STATE_DAMAGED: failed(
    'What lies in the state or policy directory is not what Writ left there.',
    'A damaged policy is mended by `writ verify --repair`; restore any other file that is named from a backup.',
  ),
  REPAIR_FAILED: failed(
    'The policy on disk is damaged, and could not be made anew: neither from what is kept, nor from the repository, nor from an older generation.',
    'Mend what is named (disk, repository, worker), then `writ verify --repair`.',
  ),
  REPAIRED_BY_PREVIOUS: degraded(
    'A damaged release could not be made anew, so that an older generation is active in its place.',
    'Let the host reach the repository: the next poll, or `writ pull`, brings the release back.',
  ),
  STATE_REBUILT: degraded(
    'A file of the state directory was damaged or lost, and was made anew from what lies on the disk.',
    'Read what is lost in `writ history`; what lay there is kept beside it as FILE.damaged.',
  ),
  AGENT_UNREACHABLE: failed('The agent does not answer on its socket.', 'systemctl status writ-agent'),
  AGENT_STOPPING: deferred('The agent is shutting down.', 'Start it again.'),
  LOCK_UNTRIED: busy(
    'This machine could not run the program that takes the lock: it is stalled, or has no process left.',
    'Try again; look at its load and at the limit of processes.',
  ),
  AGENT_BUSY: busy('Too many watch the agent already.', 'End a `writ status --watch`.'),
  INTERRUPTED: failed('The command was interrupted.', 'Run it again.'),

  // publisher
  KEY_UNREADABLE: failed('A key file cannot be used.', 'Check the path; restore it from its backup.'),
  KEY_EXISTS: usage(
    'A key file exists already and is never overwritten.',
    'Choose another name, or another directory.',
  ),
  KEYS_IN_REPOSITORY: usage(
    'Secret keys lie, or would lie, in a repository, or a repository among secret keys: whoever is given the one gets the other.',
    'Move the keys out of the repository; where it was served or copied with them, rotate them.',
  ),
  PASSPHRASE_WRONG: failed('The passphrase does not open the key.', 'Try again.'),
  PASSPHRASE_NEEDED: usage(
    'A passphrase is needed and nobody can be asked.',
    'Give --passphrase-file F, or set WRIT_PASSPHRASE.',
  ),
  KEYS_MISSING: failed(
    'Keys to sign a role are missing.',
    'Bring the key files that are named, or let their holder sign.',
  ),
  REPOSITORY_EXISTS: usage('The directory holds a repository already.', 'Choose another directory.'),
  REPOSITORY_INVALID: failed(
    'The repository does not verify as a client would verify it; nothing went live.',
    'Run `writ repo check`; restore what it names from another copy of the repository.',
  ),
  SIGNED_AHEAD: failed(
    'The repository was signed by a clock that was ahead: hosts take that time for the present, and see no expiry before it.',
    'Publishing goes on, by that time. To end it, replace the timestamp key (docs/operations.md, "Signed ahead").',
  ),
  CLOCK_UNSURE: failed(
    'The clock is more than 30 days past all that was signed, and its kernel says that nobody keeps it right; nothing was signed.',
    'Set the clock. If it is right, say so: the same command, or `writ refresh` for a server, with --clock-is-right.',
  ),
  REPOSITORY_LOCKED: busy(
    'Another process writes this repository.',
    'Wait for it to end, or let the command wait: --lock-wait 5m.',
  ),
  SOURCE_REFUSED: usage(
    'SOURCE holds something that cannot be published.',
    'Remove it, or publish another directory.',
  ),
  RELEASE_UNKNOWN: usage(
    'The repository never listed this release.',
    'See `writ repo status` for bundles, channels and serials.',
  ),
  RELEASE_UNAVAILABLE: usage(
    'There is no release left that the channel could point at, or its archive is gone.',
    'Publish a good tree first: it gets the next serial. Then withdraw.',
  ),
  RELEASE_REFUSED: usage(
    'Hosts would refuse this release on this channel, so it is not signed.',
    'Publish the tree again: it gets the next serial.',
  ),
  ROLE_UNKNOWN: usage('The repository has no such role.', 'See `writ repo status` for its roles.'),
  DELEGATION_REFUSED: usage(
    'This delegation would let two roles speak for one path, hide what is published, or mean nothing.',
    'Change what is named; give each team paths that no other role has.',
  ),
  SIGNATURE_DISAGREEMENT: failed(
    'The two implementations of Ed25519 disagree about a signature; nothing was published.',
    'Do not use this machine to sign; report it.',
  ),

  SIGNER_FAILED: failed(
    'The command of an external signer gave no signature; nothing was written.',
    'Run it by hand; it reads the bytes on stdin and as the file WRIT_SIGN_FILE.',
  ),
  SIGNER_WRONG: failed(
    'What an external signer wrote verifies under no key of the role; nothing was written.',
    'Let it write the raw signature, its hex or its base64, made with a key that the role lists.',
  ),

  // root ceremonies
  ROOT_CHANGE_REFUSED: usage(
    'The change of the root would be a mistake.',
    'Read the reason; what is only dangerous can be said on purpose with --yes.',
  ),
  PROPOSAL_MALFORMED: failed(
    'The file is not a proposal of a root, or hides something in it.',
    'Ask whoever proposed for the file again, and compare the code by voice.',
  ),
  PROPOSAL_BASE: failed(
    'The proposal is not based on the root that is trusted here.',
    'Compare the roots by voice before anybody signs; a proposal on an older root has to be made anew.',
  ),
  PROPOSAL_CODE: failed(
    'The code is not that of this proposal: a typing mistake, or another file than the one you were told about.',
    'Do not sign it. Ask whoever proposed for the code by voice, and for the file again.',
  ),

  // server
  LISTEN_FAILED: failed('The server cannot listen on this address.', 'Choose another --listen.'),
  TLS_INVALID: config('The TLS certificate or key cannot be used.', 'Check --tls-cert and --tls-key.'),

  // fleet server: its store
  FLEET_STORE_LOCATION: config(
    'The store of a fleet server is neither a directory that is one, or can become one, nor a postgres:// URL.',
    'Name an empty directory on a local disk, the one of before, or a postgres:// URL.',
  ),
  FLEET_STORE_NEWER: config(
    'The store was written by a newer version of Writ.',
    'Start that version, or a newer one; a store never goes back.',
  ),
  FLEET_STORE_UNREACHABLE: failed(
    'The database of a fleet server does not answer.',
    'Look at the database; hosts send their reports again by themselves.',
  ),
  FLEET_STORE_BUSY: busy(
    'Somebody else holds the database of a fleet server for longer than the wait allows.',
    'Try again; look for a program that keeps the store open.',
  ),
  FLEET_STORE_DAMAGED: failed(
    'The database of a fleet server is damaged, or is something else.',
    'Put a backup in its place; hosts say anew what they run.',
  ),
  FLEET_STORE_FAILED: failed(
    'The database of a fleet server refused an operation.',
    'Read what it says: a full disk and missing permissions are the usual reasons.',
  ),

  // fleet server: what it is asked, and answers
  FLEET_TOKEN_REFUSED: failed(
    'The token is unknown, of another kind, revoked, expired or used up.',
    'Make a new one with `writ fleet token create`.',
  ),
  FLEET_TOKEN_UNKNOWN: failed(
    'No token has this id.',
    'Run `writ fleet token list`; the id is not the token itself.',
  ),
  FLEET_HOST_NOT_COVERED: failed(
    'The token is for other host names than this one.',
    'Use a token whose pattern covers `host.id`.',
  ),
  FLEET_ENROL_FULL: failed(
    'Too many hosts of this token wait for approval.',
    'Approve or retire those that wait; a token that others know is revoked.',
  ),
  FLEET_HOST_UNKNOWN: failed('No host has this key.', 'Run `writ fleet hosts`.'),
  FLEET_FORBIDDEN: failed(
    'The token, or the session, may not do what was asked.',
    'Ask with a token of the role that is named: `writ fleet token create --for people --role ROLE`.',
  ),
  FLEET_OVERLOADED: failed(
    'The fleet server does not take this now: too many ask, or it ends.',
    'Ask again later; hosts do so by themselves.',
  ),
  FLEET_REFUSED_OFTEN: failed(
    'From this address came so many credentials that were refused that others are not looked at for a moment.',
    'Ask again later; hosts do so by themselves. The log of `writ fleet serve` says who asks with what is refused.',
  ),
  FLEET_UNANSWERED: failed(
    'The fleet server did not answer, or with something that is no answer of one.',
    'Look at --url and at `writ fleet serve`; a proxy may have answered in its place.',
  ),
  FLEET_WEBHOOK_FAILED: failed(
    'The receiver behind --webhook did not take what changed in the fleet, or its token or authority cannot be read.',
    'Look at the receiver. What it was not told is kept, and tried again ever later, after five minutes at most.',
  ),
  FLEET_KEY_UNKNOWN: failed(
    'No host of this fleet has the key that signed.',
    'Enrol the host again; ask whether the store was replaced.',
  ),
  FLEET_KEY_WAITING: failed(
    'The host waits until a person approves it.',
    'Run `writ fleet host approve`, or retire it.',
  ),
  FLEET_KEY_RETIRED: failed(
    'The key was retired and is never accepted again.',
    'Remove STATE/fleet on the host and enrol it anew.',
  ),
  FLEET_SIGNATURE_REFUSED: failed(
    'The signature of a request does not hold for what came.',
    'Look for a proxy that changes bodies; the host signs each request.',
  ),
  FLEET_REPORT_INVALID: failed(
    'A report breaks its schema or its bounds.',
    'Look at the version of that host; a report beyond a bound is refused whole.',
  ),

  // the fleet server, as a host meets it: nothing of it touches a cycle
  FLEET_UNREACHABLE: failed(
    'The fleet server does not answer.',
    'Nothing on this host waits for it: policy goes on, and what happened is reported later. Look at `fleet.url`, and at the server.',
  ),
  FLEET_CERTIFICATE: failed(
    'The certificate of the fleet server is not one that this host trusts, or `fleet.ca` cannot be read.',
    'Let `fleet.ca` be the authority that signed it, and `fleet.url` a name that it holds.',
  ),
  FLEET_BUSY: failed(
    'The fleet server asks to come back later.',
    'The host does, by itself. Where it lasts, the server has more hosts than it can serve.',
  ),
  FLEET_ANSWER: failed(
    'What answers at `fleet.url` is no fleet server, or another version of one.',
    'Ask the address with `curl`: a proxy may answer in its place. Redirects are not followed.',
  ),
  FLEET_TOKEN_UNREADABLE: failed(
    'The file of the enrolment token cannot be read, or holds none.',
    'Put a token of `writ fleet token create --for hosts` into `fleet.tokenFile`; it is read again at the next try.',
  ),
  FLEET_COUNTER: failed(
    'The fleet server has heard a higher number from the key of this host, twice in a row: another machine signs with the same key.',
    'Find the copy in `writ fleet hosts`; give one of the two a state directory without `fleet`, and a token.',
  ),
  FLEET_STATE_DAMAGED: failed(
    'The key with which this host signs its reports cannot be read.',
    'Stop the agent, remove `fleet` in the state directory, and give the host a new token; policy is not concerned.',
  ),

  // sdk and sockets
  MESSAGE_MALFORMED: failed(
    'A message on a socket is not one JSON object of at most 64 kB a line.',
    'Use the same version of Writ on both ends.',
  ),

  SOCKET_IN_USE: busy(
    'Another process listens on this socket, or something that is no socket lies in its place.',
    'End the other process, or configure another socket path.',
  ),

  PACKAGE_MISSING: usage(
    'What was asked for is in a package that is not installed here: the fleet server is one of its own.',
    'Install it: `sudo apt install writ-fleet`, or `npm install -g writ` without `--omit=optional`.',
  ),

  PROGRAM_REPLACED: failed(
    'A part of the program that is loaded when it is first needed is gone: Writ was upgraded or removed while this process ran.',
    'Run the command again; where the agent says it, restart that: sudo systemctl restart writ-agent.',
  ),

  // always a bug
  INTERNAL: failed(
    'Writ met a state it should never be in.',
    'Report it with the log; the running policy is as the last line says.',
  ),
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorCodes;

/** True for what takes a generation back though nobody said no. */
export function isUnsaidNo(code: ErrorCode): boolean {
  const row: ErrorRow = errorCodes[code];
  return row.isUnsaidNo === true;
}
